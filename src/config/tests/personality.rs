//! Keys of an agent's table about its personality.

use insta::assert_snapshot;

use super::{config, report};

/// S0.6, S2.38
#[test]
fn a_personality_is_a_path_inside_the_agents_folder() {
    let personality = |path: &str| {
        let config = config(&format!(
            "[agents.rose]\npersonality = \"{path}\"\nsystem_prompt = \"Prices are in euros.\"\n"
        ));
        assert_eq!(
            config.agents[1].system_prompt.as_deref(),
            Some("Prices are in euros.")
        );
        config.agents[1]
            .personality
            .as_ref()
            .map(|path| path.value.clone())
            .expect("it is set")
    };
    assert_eq!(personality("night.md"), "night.md");
    assert_eq!(personality("./voices//night.md"), "voices/night.md");
    assert_eq!(personality("voices/.night..md"), "voices/.night..md");
    assert!(
        config("[agents.rose]\n").agents[1].personality.is_none(),
        "without the key there is none"
    );
}

/// S0.6
#[test]
fn a_personality_that_is_elsewhere_is_refused() {
    assert_snapshot!(report("[agents.rose]\npersonality = \"/etc/passwd\"\n"), @r#"
    error: `personality` cannot be an absolute path
     --> config.toml:2:15
      |
    2 | personality = "/etc/passwd"
      |               ^^^^^^^^^^^^^ begins at the root of the disk
      |
      = help: write the path from the agent's own folder on, such as `personality = "night.md"`

    1 problem in config.toml.
    "#);
    assert_snapshot!(report("[agents.rose]\npersonality = \"voices/../../ada/SOUL.md\"\n"), @r#"
    error: `personality` leaves the agent's folder
     --> config.toml:2:15
      |
    2 | personality = "voices/../../ada/SOUL.md"
      |               ^^^^^^^^^^^^^^^^^^^^^^^^^^ `..` leads out of it
      |
      = help: write the path from the agent's own folder on, such as `personality = "night.md"`

    1 problem in config.toml.
    "#);
    assert_snapshot!(report("[agents.rose]\npersonality = \"./\"\n"), @r#"
    error: `personality` does not name a file
     --> config.toml:2:15
      |
    2 | personality = "./"
      |               ^^^^ no file name in it
      |
      = help: write the path from the agent's own folder on, such as `personality = "night.md"`

    1 problem in config.toml.
    "#);
    assert_snapshot!(report("[agents.rose]\npersonality = \"a\\nb\"\n"), @r#"
    error: `personality` is not a usable path
     --> config.toml:2:15
      |
    2 | personality = "a\nb"
      |               ^^^^^^ too long, or with control characters in it
      |
      = help: write the path from the agent's own folder on, such as `personality = "night.md"`

    1 problem in config.toml.
    "#);
    assert_snapshot!(report("[agents.rose]\npersonality = [\"night.md\"]\n"), @r#"
    error: `personality` must be text in quotes
     --> config.toml:2:15
      |
    2 | personality = ["night.md"]
      |               ^^^^^^^^^^^^ this is a list
      |
      = help: write it like `personality = "night.md"`

    1 problem in config.toml.
    "#);
}

/// S2.38
#[test]
fn a_system_prompt_that_says_nothing_is_refused() {
    assert_snapshot!(report("[agents.rose]\nsystem_prompt = \"  \"\n"), @r#"
    error: `system_prompt` is empty
     --> config.toml:2:17
      |
    2 | system_prompt = "  "
      |                 ^^^^ no text in it
      |
      = help: write it like `system_prompt = "Prices are in euros."`, or delete the line

    1 problem in config.toml.
    "#);
}

#[test]
fn what_a_switch_can_be_is_told() {
    assert_snapshot!(report("switch = \"seperate\"\n"), @r#"
    error: `switch` cannot be `seperate`
     --> config.toml:1:10
      |
    1 | switch = "seperate"
      |          ^^^^^^^^^^ not one of the choices
      |
      = help: did you mean `separate`? The choices are `handoff`, `separate`

    1 problem in config.toml.
    "#);
}
