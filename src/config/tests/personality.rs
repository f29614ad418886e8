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

    1 problem in config.toml; nothing was started.
    "#);
    assert_snapshot!(report("[agents.rose]\npersonality = \"voices/../../ada/SOUL.md\"\n"), @r#"
    error: `personality` leaves the agent's folder
     --> config.toml:2:15
      |
    2 | personality = "voices/../../ada/SOUL.md"
      |               ^^^^^^^^^^^^^^^^^^^^^^^^^^ `..` leads out of it
      |
      = help: write the path from the agent's own folder on, such as `personality = "night.md"`

    1 problem in config.toml; nothing was started.
    "#);
    assert_snapshot!(report("[agents.rose]\npersonality = \"./\"\n"), @r#"
    error: `personality` names no file
     --> config.toml:2:15
      |
    2 | personality = "./"
      |               ^^^^ no file name in it
      |
      = help: write the path from the agent's own folder on, such as `personality = "night.md"`

    1 problem in config.toml; nothing was started.
    "#);
    assert_snapshot!(report("[agents.rose]\npersonality = \"a\\nb\"\n"), @r#"
    error: `personality` does not fit
     --> config.toml:2:15
      |
    2 | personality = "a\nb"
      |               ^^^^^^ too long, or with control characters in it
      |
      = help: write the path from the agent's own folder on, such as `personality = "night.md"`

    1 problem in config.toml; nothing was started.
    "#);
    assert_snapshot!(report("[agents.rose]\npersonality = [\"night.md\"]\n"), @r#"
    error: `personality`: expected a string
     --> config.toml:2:15
      |
    2 | personality = ["night.md"]
      |               ^^^^^^^^^^^^ this is a list
      |
      = help: write it like `personality = "night.md"`

    1 problem in config.toml; nothing was started.
    "#);
}

/// S2.38
#[test]
fn a_system_prompt_that_says_nothing_is_refused() {
    assert_snapshot!(report("[agents.rose]\nsystem_prompt = \"  \"\n"), @r#"
    error: `system_prompt` says nothing
     --> config.toml:2:17
      |
    2 | system_prompt = "  "
      |                 ^^^^ nothing is written here
      |
      = help: write it like `system_prompt = "Prices are in euros."`, or remove the line

    1 problem in config.toml; nothing was started.
    "#);
}

#[test]
fn what_a_switch_can_be_is_told() {
    assert_snapshot!(report("switch = \"seperate\"\n"), @r#"
    error: `seperate` is no value for `switch`
     --> config.toml:1:10
      |
    1 | switch = "seperate"
      |          ^^^^^^^^^^ not one of the known words
      |
      = help: did you mean `separate`? It can be `handoff`, `separate`

    1 problem in config.toml; nothing was started.
    "#);
}
