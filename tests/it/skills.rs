//! Skills: who has which, in the prompt, in the tool, in the chat and on the command line.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::cli::{fresh_home, run, run_with_input};
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::ALICE;

const TEAM: &str = r#"
[access]
owners = ["telegram:111"]
[agents.main]
skills = ["alpha"]
[agents.rose]
[agents.dot]
skills = []
"#;

/// Who has no skills is not offered the tool either.
const NO_TOOL: &str = "There is no tool `skill`.";

fn put(house: &House, shelf: &str, name: &str) {
    let text =
        format!("---\nname: {name}\ndescription: How {name} is done.\n---\nSteps of {name}.\n");
    house.write(&format!("{shelf}/{name}/SKILL.md"), &text);
}

async fn house() -> House {
    let house = House::new(TEAM).await;
    put(&house, "skills", "alpha");
    put(&house, "skills", "beta");
    put(&house, "agents/rose/skills", "gamma");
    house
}

fn listed(house: &House) -> Vec<String> {
    let system = house.model.last_request().system;
    let list = system.split("# Skills").nth(1).unwrap_or_default();
    list.lines()
        .filter_map(|line| Some(line.strip_prefix("- ")?.split(':').next()?.to_owned()))
        .collect()
}

/// S2.50, S0.4, S0.13, S4.25, S4.30: what is listed is what can be read, and both change with the
/// agent.
#[tokio::test]
async fn switching_the_agent_changes_which_skills_are_listed_and_read() {
    let house = house().await;
    let gateway = house.open().await;
    let chat = house.telegram.dm(ALICE);
    let mut said = 0;
    for (agent, list, alpha, gamma) in [
        (
            "main",
            &["alpha"][..],
            "Steps of alpha.",
            "You have no skill `gamma`. You have: alpha.",
        ),
        (
            "rose",
            &["alpha", "beta", "gamma"],
            "Steps of alpha.",
            "Steps of gamma.",
        ),
        ("dot", &[], NO_TOOL, NO_TOOL),
    ] {
        chat.says(&format!("/agent {agent}")).await;
        for (skill, expected) in [("alpha", alpha), ("gamma", gamma)] {
            house
                .model
                .enqueue(Script::tool_call("skill", json!({ "name": skill })));
            chat.says("go").await;
            said += 1;
            house.model.wait_for_requests(said * 2).await;
            let (role, result) = house
                .model
                .last_request()
                .messages
                .last()
                .cloned()
                .expect("a result");
            assert!(
                role == "tool" && result.starts_with(expected),
                "{agent} {skill}: {result}"
            );
            assert_eq!(listed(&house), list, "{agent}");
        }
        house.settled(&gateway).await;
    }
    gateway.shutdown().await;
}

/// S0.12: no restart in between.
#[tokio::test]
async fn a_skill_added_later_counts_from_the_next_message_on() {
    let house = house().await;
    let gateway = house.open().await;
    let chat = house.telegram.dm(ALICE);
    chat.says("/agent rose").await;
    chat.says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(listed(&house), ["alpha", "beta", "gamma"]);
    put(&house, "skills", "delta");
    house.write("skills/beta/SKILL.md", "broken now");
    chat.says("hello again").await;
    house.settled(&gateway).await;
    assert_eq!(listed(&house), ["alpha", "delta", "gamma"]);
    gateway.shutdown().await;
}

#[tokio::test]
async fn skills_in_the_chat_say_what_the_agent_here_has() {
    let house = house().await;
    put(&house, "agents/rose/skills", "alpha");
    house.write("skills/broken/SKILL.md", "no front matter");
    let gateway = house.open().await;
    let chat = house.telegram.dm(ALICE);
    chat.says("/skills").await;
    assert_snapshot!(chat.wait_for_sent(1).await.text, @"
    Main has 1 skill, chosen by an owner.
    • alpha: How alpha is done.
    ");
    chat.says("/agent rose").await;
    chat.says("/skills").await;
    assert_snapshot!(chat.wait_for_sent(3).await.text, @"
    Rose has 3 skills: 1 shared, 2 of its own.
    • alpha (own, instead of the shared one): How alpha is done.
    • beta: How beta is done.
    • gamma (own): How gamma is done.

    Broken and left out: broken. parlor skill check shows why.
    ");
    chat.says("/agent dot").await;
    chat.says("/skills").await;
    assert_snapshot!(chat.wait_for_sent(5).await.text, @"Dot has no skills.");
    house.close(gateway).await;
}

/// S0.56
#[tokio::test]
async fn a_list_that_names_a_missing_skill_is_a_config_error() {
    let home = fresh_home().await;
    let text = "[agents.rose]\nskills = [\"thread-sumary\", \"tighten\", \"tighten\", 7]\n[agents.dot]\nskills = [\"tighten\"]\n";
    std::fs::write(home.path().join("config.toml"), text).expect("writes");
    let checked = run(home.path(), &["config", "check"]).await;
    assert_eq!(checked.code, 1);
    assert_snapshot!(checked.stderr, @r#"
    error: no skill is called `thread-sumary`
     --> HOME/config.toml:2:11
      |
    2 | skills = ["thread-sumary", "tighten", "tighten", 7]
      |           ^^^^^^^^^^^^^^^ neither in skills/ nor in agents/rose/skills/
      |
      = help: did you mean `thread-summary`?

    error: `tighten` is in the list twice
     --> HOME/config.toml:2:39
      |
    2 | skills = ["thread-sumary", "tighten", "tighten", 7]
      |                                       ^^^^^^^^^ the second one
      |
      = help: delete one of them

    error: a skill's name must be text in quotes
     --> HOME/config.toml:2:50
      |
    2 | skills = ["thread-sumary", "tighten", "tighten", 7]
      |                                                  ^ this is a number
      |
      = help: write it like `skills = ["invoices"]`

    error: no skill is called `tighten`
     --> HOME/config.toml:4:11
      |
    4 | skills = ["tighten"]
      |           ^^^^^^^^^ neither in skills/ nor in agents/dot/skills/
      |
      = help: the skills are thread-summary

    4 problems in config.toml.
    "#);
}

#[tokio::test]
async fn skill_list_says_who_has_what_and_why() {
    let home = fresh_home().await;
    std::fs::create_dir_all(home.path().join("skills/Bad")).expect("makes");
    std::fs::write(
        home.path().join("skills/Bad/SKILL.md"),
        "---\nname: Bad\ndescription: x\n---\n",
    )
    .expect("writes");
    let config = std::fs::read_to_string(home.path().join("config.toml")).expect("reads");
    let config = config.replace("name = \"Rose\"", "name = \"Rose\"\nskills = [\"tighten\"]");
    std::fs::write(home.path().join("config.toml"), config).expect("writes");
    assert_snapshot!(run(home.path(), &["skill", "list"]).await.stdout, @"
    AGENT  SKILL           FROM   USABLE  WHY
    main   Bad             pool   no      broken, line 2: `name` is 1 to 64 of a-z, 0-9 and single hyphens inside, such as `bad`
    main   thread-summary  pool   yes     no `skills` list
    rose   Bad             pool   no      its `skills` does not name it
    rose   thread-summary  pool   no      its `skills` does not name it
    rose   tighten         local  yes     its `skills` names it
    ada    Bad             pool   no      broken, line 2: `name` is 1 to 64 of a-z, 0-9 and single hyphens inside, such as `bad`
    ada    bug-report      local  yes     in its own folder
    ada    thread-summary  pool   yes     no `skills` list
    ");
    let json = run(home.path(), &["skill", "list", "--agent", "ada", "--json"])
        .await
        .stdout;
    let rows: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&rows[1]["skill"], &rows[1]["origin"], &rows[1]["usable"]),
        (&json!("bug-report"), &json!("local"), &json!(true))
    );
    let unknown = run(home.path(), &["skill", "list", "--agent", "ros"]).await;
    assert_eq!(
        (unknown.code, unknown.stderr.as_str()),
        (2, "error: no agent is called ros. Did you mean rose?\n")
    );
}

#[tokio::test]
async fn skill_check_names_file_and_line() {
    let home = fresh_home().await;
    assert_snapshot!(run(home.path(), &["skill", "check"]).await.stdout, @"3 skills are fine.");
    std::fs::create_dir_all(home.path().join("agents/rose/skills/odd")).expect("makes");
    let text = "---\nname: odd\nlicence: MIT\ndescription: 5\n---\n";
    std::fs::write(home.path().join("agents/rose/skills/odd/SKILL.md"), text).expect("writes");
    let all = run(home.path(), &["skill", "check"]).await;
    assert_eq!(all.code, 1);
    assert_snapshot!(all.stdout, @"HOME/agents/rose/skills/odd/SKILL.md:4: `description` must be text; put it in quotes");
    assert_snapshot!(all.stderr, @"error: 1 of 4 skills cannot be used");
    let one = home.path().join("skills/thread-summary");
    assert_snapshot!(run(home.path(), &["skill", "check", &one.display().to_string()]).await.stdout, @"1 skill is fine.");
    let none = home.path().join("nowhere");
    assert_eq!(
        run(
            home.path(),
            &["skill", "check", &none.display().to_string()]
        )
        .await
        .code,
        2
    );
}

/// The demo model can be told to use the tool, so skills can be tried without an account.
#[tokio::test]
async fn the_stand_in_reads_a_skill_when_told_to() {
    let home = fresh_home().await;
    let ran = run_with_input(
        home.path(),
        &["chat", "--topic", "code"],
        "use skill {\"name\": \"bug-report\"}\n",
    )
    .await;
    assert!(
        ran.stdout
            .contains("`skill` says: “The reader of the report cannot ask back today"),
        "{}",
        ran.stdout
    );
}
