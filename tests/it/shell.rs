//! The manners of the command line: help, version, aliases, completions, manual pages, quiet and
//! talkative output, tables in a narrow terminal.

use std::path::Path;
use std::process::Stdio;

use insta::assert_snapshot;
use tokio::io::AsyncWriteExt;

use crate::cli::{Ran, fresh_home, run, run_with_input};
use crate::support::house::parlor;
use crate::support::pty::Pty;

/// Runs with more in the environment.
async fn run_in(home: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let output = parlor(home)
        .envs(environment.iter().copied())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .expect("it runs");
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).expect("text");
        text.replace(&home.display().to_string(), "HOME")
    };
    Ran {
        code: output.status.code().expect("by itself"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

#[tokio::test]
async fn help_lists_every_verb() {
    let home = tempfile::tempdir().expect("a folder");
    let help = run(home.path(), &["--help"]).await.stdout;
    assert_snapshot!(help, @"
    One bot, a room for every agent: a chat gateway that gives each topic to its own
    agent.

    Usage: parlor [OPTIONS] [COMMAND]

    Commands:
      run          Run the gateway until Ctrl-C (the default without a command)
      chat         Talk to the agents in this terminal
      ask          Ask one question and print the answer, for scripts
      init         Write a home folder with three agents; existing files are kept
      setup        Connect a model and a bot, step by step
      config       Check config.toml, show every setting, print a schema for editors
      route        Explain who answers where
      agent        List, add, change and remove agents [alias: agents]
      import       Bring agents in from OpenClaw, Hermes, ZeroClaw, Moltis or Signet
      export       Write agents and bindings for OpenClaw
      skill        List skills, and check how they are written [alias: skills]
      remember     Give an agent something to remember
      recall       Search memories: those of an agent, or the global ones
      forget       Delete a saved memory of an agent
      memory       List, export and import memories [alias: memories]
      pair         Let people in by their code, list them, take it back
      sessions     List, show, search, copy and move conversations [alias: session]
      people       List people, give them roles, link their ids
      allow        Raise a limit of an agent, a person or the house for today
      pause        Pause work that nobody waits for
      resume       Go on with paused work
      security     Look for things that are more open than they may seem
      failed       List messages that could not be delivered, resend or drop them
      approvals    List calls of tools that wait for a yes or no, and decide
      usage        Show tokens and costs by agent, place, person and model
      status       Show whether the gateway runs, what it does, and what is wrong
      pin          Give a place to an agent, or take that back
      new          Begin a new conversation in a place
      stop         Stop the answers under way
      queue        Show the answers under way and the messages that wait
      job          List, run, pause, add and remove jobs [alias: jobs]
      reload       Have the running gateway read config.toml, tokens and keys anew
      dashboard    Open the dashboard of the running gateway in a browser
      token        Make, list and revoke tokens for the HTTP API [alias: tokens]
      logs         Show lines of the log file, of one agent, place or message
      audit        Show who changed what: switches, bindings, people, reloads
      doctor       Look at everything, and tell what is wrong with the fix for each
      backup       Write everything into one file, also while the gateway runs
      restore      Bring everything back from a backup; what is there is kept aside
      version      Show version, commit, database schema and platform
      completions  Print the completion script of a shell
      man          Print the manual page, or write a page for every verb
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Options everywhere:
          --home <DIR>    Folder with config, agents and data [default: ~/.parlor]
                          [env: PARLOR_HOME]
          --color <WHEN>  Colours: auto, always or never [default: auto]
      -q, --quiet         Print results and errors only: no remarks, no warnings
      -v, --verbose...    Log more: -v for debugging, -vv for everything

    Examples:
      parlor setup                     connect a model and a bot, step by step
      parlor chat                      talk to the agents in this terminal
      parlor run                       connect to Telegram and Discord
      parlor help agent                the verbs for agents
    ");
    assert_eq!(run(home.path(), &["help"]).await.stdout, help);
    assert_eq!(run(home.path(), &["frobnicate"]).await.code, 2);
}

#[tokio::test]
async fn help_of_a_verb_has_examples() {
    let home = tempfile::tempdir().expect("a folder");
    let help = run(home.path(), &["help", "agent", "add"]).await.stdout;
    assert_snapshot!(help, @r#"
    Add an agent to config.toml, with files to begin with

    Usage: parlor agent add [OPTIONS] [ID]

    Arguments:
      [ID]  Id that people type: a-z, 0-9 and hyphens. In a terminal, whatever is
            missing is asked for

    Options:
          --name <NAME>          Name that people see [default: the id with a
                                 capital letter]
          --emoji <EMOJI>        Emoji before the name
          --creature <CREATURE>  What kind of creature the agent is, such as
                                 hedgehog
          --vibe <VIBE>          The agent's manner in a few words, such as "warm, a
                                 little dry"
          --personality <TEXT>   What the agent is like, in a sentence or more;
                                 becomes its SOUL.md
          --model <MODEL>        Model, as provider/model [default: default_model of
                                 the config]
          --skills <NAMES>       Skills with commas between them, "" for none
                                 [default: all of skills/]
          --bind <PLACE>         Place of its own, as /whoami shows it; may be given
                                 several times
          --json                 Print the result as JSON
      -h, --help                 Print help

    Options everywhere:
          --home <DIR>    Folder with config, agents and data [default: ~/.parlor]
                          [env: PARLOR_HOME]
          --color <WHEN>  Colours: auto, always or never [default: auto]
      -q, --quiet         Print results and errors only: no remarks, no warnings
      -v, --verbose...    Log more: -v for debugging, -vv for everything

    Examples:
      parlor agent add
      parlor agent add Dot --emoji 🦔 --personality 'Short and dry.'
      parlor agent add scribe --model openai/gpt-5.4 --skills minutes
      parlor agent add desk --bind telegram:topic:-1001234567890:101
    "#);
    assert_eq!(
        run(home.path(), &["agent", "add", "--help"]).await.stdout,
        help
    );
}

#[test]
fn every_help_fits_eighty_columns() {
    fn wide(command: &mut clap::Command, found: &mut Vec<String>) {
        let texts = [
            command.render_help().to_string(),
            command.render_long_help().to_string(),
        ];
        let lines = texts.iter().flat_map(|text| text.lines());
        found.extend(
            lines
                .filter(|line| line.chars().count() > 80)
                .map(|line| format!("{}: {line}", command.get_name())),
        );
        for verb in command.get_subcommands_mut() {
            wide(verb, found);
        }
    }
    let mut command = parlor::cli::command();
    command.build();
    let mut found = Vec::new();
    wide(&mut command, &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test]
async fn version_tells_builds_apart() {
    let home = tempfile::tempdir().expect("a folder");
    let told = run(home.path(), &["version"]).await.stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], format!("parlor {}", env!("CARGO_PKG_VERSION")));
    assert!(lines[1].starts_with("commit: "), "{told}");
    let steps = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations"))
        .expect("migrations")
        .flatten()
        .filter_map(|step| {
            let name = step.file_name().into_string().ok()?;
            let (number, _) = name.strip_prefix('V')?.split_once("__")?;
            number.parse::<u32>().ok()
        });
    let newest = steps.max().expect("a step");
    assert_eq!(lines[2], format!("database schema: {newest}"));
    assert!(
        lines[3].contains(std::env::consts::ARCH) && lines[3].contains(std::env::consts::OS),
        "{told}"
    );
    let short = run(home.path(), &["--version"]).await.stdout;
    assert!(
        short.starts_with(&format!("parlor {} (", env!("CARGO_PKG_VERSION"))),
        "{short}"
    );
    assert!(!home.path().join("parlor.db").exists(), "nothing is made");
}

#[tokio::test]
async fn nouns_and_short_verbs_of_other_programs_work() {
    let home = fresh_home().await;
    let listed = run(home.path(), &["agent", "list"]).await;
    assert_eq!(listed.code, 0);
    for same in [
        &["agents"][..],
        &["agent"],
        &["agents", "ls"],
        &["agent", "ls"],
    ] {
        assert_eq!(
            run(home.path(), same).await.stdout,
            listed.stdout,
            "{same:?}"
        );
    }
    let shown = run(home.path(), &["agent", "show", "rose"]).await;
    assert!(
        shown.stdout.starts_with("🌹 Rose (rose)"),
        "{}",
        shown.stdout
    );
    assert_eq!(
        run(home.path(), &["skills", "-a", "rose"]).await.code,
        2,
        "`skills` alone lists, and options belong to `skill list`"
    );
    assert_eq!(
        run(home.path(), &["skill", "ls", "-a", "rose"]).await.code,
        0
    );
    assert_eq!(run(home.path(), &["failed", "--json"]).await.stdout, "[]\n");
    assert_eq!(run(home.path(), &["agent", "rm", "ada"]).await.code, 0);
}

#[tokio::test]
async fn habits_get_a_hint() {
    let home = fresh_home().await;
    let told = async |arguments: &[&str]| {
        let ran = run(home.path(), arguments).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}");
        ran.stderr
    };
    assert_snapshot!(told(&["start"]).await, @"
    error: there is no `parlor start`
    hint: `parlor run` starts the gateway
    ");
    assert_snapshot!(told(&["config", "set"]).await, @"
    error: there is no `parlor config set`
    hint: `parlor config show` shows every setting; to change one, edit HOME/config.toml, then run `parlor config check`
    ");
    for (wrong, meant) in [
        (&["agnet"][..], "agent"),
        (&["sesions", "list"], "sessions"),
        (&["pasue", "rose"], "pause"),
        (&["agent", "pasue", "rose"], "agent pause"),
    ] {
        let told = told(wrong).await;
        let hint = format!("\nhint: did you mean `parlor {meant}`?\n");
        assert!(told.ends_with(&hint), "{told}");
    }
    assert_snapshot!(told(&["pause", "rose"]).await, @"
    error: rose has no switch here; `background` has one
    hint: `parlor agent pause rose` pauses an agent of that name, `parlor agent resume rose` lets it go on
    ");
    assert_snapshot!(told(&["frobnicate"]).await, @"
    error: there is no `parlor frobnicate`
    hint: `parlor help` lists all commands
    ");
}

/// Commands in texts can be typed as they are.
#[tokio::test]
async fn hints_name_the_home_that_was_typed() {
    let home = fresh_home().await;
    let path = home.path().to_str().expect("text").to_owned();
    let told = async |arguments: &[&str]| {
        let named: Vec<&str> = ["--home", &path]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let elsewhere = tempfile::tempdir().expect("a folder");
        let ran = run(elsewhere.path(), &named).await;
        format!("{}{}", ran.stdout, ran.stderr).replace(&path, "HOME")
    };
    assert_snapshot!(told(&["start"]).await, @"
    error: there is no `parlor --home HOME start`
    hint: `parlor --home HOME run` starts the gateway
    ");
    assert_snapshot!(told(&["failed", "retry", "7"]).await, @"
    error: no undelivered message has this number or place
    hint: `parlor --home HOME failed` lists undelivered messages
    ");
    assert_snapshot!(told(&["reload"]).await, @"
    error: no gateway runs on HOME, so there is nothing to reload
    hint: the next start reads config.toml; `parlor --home HOME config check` looks at it now
    ");
    let status = told(&["status"]).await;
    assert_eq!(
        status.lines().next(),
        Some("No gateway runs on HOME. `parlor --home HOME run` starts one.")
    );
    assert_snapshot!(told(&["agent", "pause", "rose"]).await, @"🌹 Rose is paused. Messages are kept and answered after `parlor --home HOME agent resume rose`.");
    assert_snapshot!(told(&["failed", "retry", "7", "--json"]).await, @r#"
    {
      "error": {
        "message": "no undelivered message has this number or place",
        "hint": "`parlor --home HOME failed` lists undelivered messages",
        "exit_code": 1
      }
    }
    "#);
    let removed = told(&["agent", "remove", "ada"]).await;
    assert!(
        removed.contains("`parlor --home HOME agent restore ada-"),
        "{removed}"
    );
}

#[tokio::test]
async fn an_agent_that_was_never_here_has_no_audit() {
    let home = fresh_home().await;
    let unknown = run(home.path(), &["audit", "--agent", "rosa"]).await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (2, ""));
    assert_snapshot!(unknown.stderr, @"error: no agent is called rosa. Did you mean rose?");
    let known = run(home.path(), &["audit", "--agent", "rose"]).await;
    assert_eq!((known.code, known.stderr.as_str()), (0, "No changes.\n"));
    // The audit remembers an agent that is gone.
    run(home.path(), &["agent", "remove", "ada"]).await;
    let gone = run(
        home.path(),
        &["audit", "--agent", "ada", "--since", "2099-01-01"],
    )
    .await;
    assert_eq!(gone.code, 0, "{}", gone.stderr);
}

#[tokio::test]
async fn messages_of_every_place_are_dropped_only_when_asked_for() {
    let home = fresh_home().await;
    let ran = run(home.path(), &["queue", "--clear"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert_snapshot!(ran.stderr, @"
    error: --clear needs a place, because messages that are dropped are gone
    hint: `parlor queue` shows where messages wait; `parlor queue --clear --all` drops them in every place
    ");
    let all = run(home.path(), &["queue", "--clear", "--all"]).await;
    assert!(!all.stderr.contains("needs a place"), "{}", all.stderr);
}

/// One message, whichever verb comes first.
#[tokio::test]
async fn every_verb_says_the_same_without_a_home() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home");
    for arguments in [
        &["agent", "list"][..],
        &["agent", "add", "dot"],
        &["skills"],
        &["skill", "check"],
        &["pair", "list"],
        &["pair", "ABCD2345"],
        &["usage"],
        &["logs"],
        &["audit"],
        &["failed"],
        &["recall", "tea"],
        &["remember", "tea"],
        &["memory", "list"],
        &["security", "check"],
        &["doctor"],
        &["backup"],
        &["config", "check"],
        &["route", "explain", "local:home"],
    ] {
        let ran = run(&home, arguments).await;
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (
                1,
                "error: There is no config file at HOME/config.toml. Run `parlor init` to write one.\n"
            ),
            "{arguments:?}"
        );
    }
    assert!(!home.exists(), "nothing is made");
}

#[tokio::test]
async fn errors_are_json_where_json_was_asked_for() {
    let home = fresh_home().await;
    let error = async |arguments: &[&str], code: i32| {
        let ran = run(home.path(), arguments).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (code, ""), "{arguments:?}");
        ran.stdout
    };
    assert_snapshot!(error(&["agent", "info", "ros", "--json"], 2).await, @r#"
    {
      "error": {
        "message": "no agent is called ros. Did you mean rose?",
        "hint": null,
        "exit_code": 2
      }
    }
    "#);
    assert_snapshot!(error(&["failed", "retry", "--json"], 1).await, @r#"
    {
      "error": {
        "message": "there are no undelivered messages",
        "hint": null,
        "exit_code": 1
      }
    }
    "#);
    assert_snapshot!(error(&["usage", "--json", "--sinse"], 2).await, @r#"
    {
      "error": {
        "message": "unexpected argument '--sinse' found",
        "hint": "a similar argument exists: '--since'",
        "exit_code": 2
      }
    }
    "#);
    assert_snapshot!(error(&["start", "--json"], 2).await, @r#"
    {
      "error": {
        "message": "there is no `parlor start`",
        "hint": "`parlor run` starts the gateway",
        "exit_code": 2
      }
    }
    "#);
}

/// The words of people that look like a flag do not make it JSON.
#[tokio::test]
async fn words_behind_two_hyphens_are_no_flags() {
    let home = fresh_home().await;
    let ran = run(home.path(), &["remember", "--", "--json", "is a flag"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "1\n"));
    assert!(ran.stderr.contains("remembers"), "{}", ran.stderr);
}

#[tokio::test]
async fn quiet_leaves_remarks_out() {
    let home = fresh_home().await;
    let loud = run(home.path(), &["remember", "tea"]).await;
    assert!(loud.stderr.contains("remembers"), "{}", loud.stderr);
    for quiet in [
        &["-q", "remember", "tea"][..],
        &["remember", "tea", "--quiet"],
    ] {
        let ran = run(home.path(), quiet).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{quiet:?}");
    }
    let failed = run(home.path(), &["-q", "agent", "info", "ros"]).await;
    assert!(failed.stderr.starts_with("error: "), "{}", failed.stderr);
}

#[tokio::test]
async fn more_and_less_is_logged_when_asked() {
    let home = fresh_home().await;
    let logged = async |environment: &[(&str, &str)], flags: &[&str]| {
        let mut command = parlor(home.path());
        command.envs(environment.iter().copied()).args(flags);
        command.arg("chat").stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(b"hello\n").await.expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().await.expect("it ends");
        String::from_utf8(output.stderr).expect("text")
    };
    assert_eq!(logged(&[], &[]).await, "");
    assert!(logged(&[], &["-v"]).await.contains("DEBUG"));
    assert!(
        logged(&[("PARLOR_LOG", "debug")], &[])
            .await
            .contains("DEBUG")
    );
    assert_eq!(
        logged(&[("PARLOR_LOG", "debug")], &["-q"]).await,
        "",
        "a flag wins"
    );
}

#[tokio::test]
async fn a_log_variable_that_means_nothing_is_told() {
    let home = fresh_home().await;
    let environment = [("PARLOR_LOG", "nonsense")];
    let ran = run_in(home.path(), &environment, &["agent", "list"]).await;
    assert_eq!(ran.code, 0);
    assert_snapshot!(ran.stderr, @"note: `nonsense` in PARLOR_LOG means nothing and is left out. Write a level (off, error, warn, info, debug, trace), or one part with its level, such as parlor::routing=debug");
}

/// What a shell gets at Tab behind these words.
async fn completed(home: &Path, words: &[&str]) -> Vec<String> {
    let index = (words.len() - 1).to_string();
    let environment = [
        ("PARLOR_COMPLETE", "bash"),
        ("_CLAP_COMPLETE_INDEX", index.as_str()),
        ("_CLAP_COMPLETE_COMP_TYPE", "9"),
        ("_CLAP_COMPLETE_SPACE", "false"),
        ("_CLAP_IFS", "\n"),
    ];
    let arguments: Vec<&str> = [&["--"], words].concat();
    let ran = run_in(home, &environment, &arguments).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words:?}");
    ran.stdout.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn shells_complete_verbs_agents_and_places() {
    let home = fresh_home().await;
    run_with_input(home.path(), &["chat", "--topic", "garden"], "hello\n").await;
    let check = async |words: &[&str], expected: &[&str]| {
        assert_eq!(completed(home.path(), words).await, expected, "{words:?}");
    };
    check(&["parlor", "agent", "inf"], &["info"]).await;
    check(&["parlor", "agent", "info", "r"], &["rose"]).await;
    check(&["parlor", "recall", "-a", ""], &["main", "rose", "ada"]).await;
    check(
        &["parlor", "route", "explain", "local:"],
        &["local:home:garden"],
    )
    .await;
    for verb in ["show", "fork", "new", "move", "export"] {
        check(
            &["parlor", "sessions", verb, "local:"],
            &["local:home:garden"],
        )
        .await;
    }
    check(
        &["parlor", "config", "show", "agents.rose.l"],
        &["agents.rose.limits"],
    )
    .await;
    check(&["parlor", "agent", "restore", "ada"], &[]).await;
    run(home.path(), &["agent", "remove", "ada"]).await;
    let archives = completed(home.path(), &["parlor", "agent", "restore", "ada"]).await;
    assert!(
        archives.len() == 1 && archives[0].starts_with("ada-"),
        "{archives:?}"
    );
}

/// The line may name another home, and a home that is missing or broken is no reason to say
/// anything.
#[tokio::test]
async fn completion_is_silent_and_changes_nothing() {
    let home = fresh_home().await;
    let named = home.path().display().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("home");
    assert_eq!(
        completed(&missing, &["parlor", "agent", "info", "r"]).await,
        Vec::<String>::new()
    );
    let elsewhere = ["parlor", "--home", &named, "agent", "info", "r"];
    assert_eq!(completed(&missing, &elsewhere).await, ["rose"]);
    assert!(!missing.exists());
    std::fs::write(home.path().join("parlor.db"), "no database").expect("writes");
    assert_eq!(
        completed(home.path(), &["parlor", "route", "explain", "local:"]).await,
        Vec::<String>::new()
    );
    std::fs::write(home.path().join("config.toml"), "[agents").expect("writes");
    completed(home.path(), &["parlor", "agent", "info", "r"]).await;
}

#[tokio::test]
async fn every_shell_has_a_script() {
    let home = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(home.path(), &["completions", shell]).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{shell}");
        assert!(
            ran.stdout.contains("PARLOR_COMPLETE") && ran.stdout.contains("parlor"),
            "{shell}: {}",
            ran.stdout
        );
    }
    assert_eq!(run(home.path(), &["completions", "csh"]).await.code, 2);
}

#[tokio::test]
async fn every_verb_has_a_manual_page() {
    let home = tempfile::tempdir().expect("a folder");
    let main = run(home.path(), &["man"]).await.stdout;
    assert!(main.starts_with(".ie"), "{main}");
    let folder = home.path().join("man1");
    let out = folder.display().to_string();
    let ran = run(home.path(), &["man", "--out", &out]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for page in ["parlor.1", "parlor-agent.1", "parlor-agent-add.1"] {
        let text = std::fs::read_to_string(folder.join(page)).expect(page);
        assert!(text.contains(".SH NAME"), "{page}: {text}");
    }
    let add = std::fs::read_to_string(folder.join("parlor-agent-add.1")).expect("a page");
    assert!(add.contains("night") || add.contains("Examples"), "{add}");
}

/// Nothing is cut in the middle of a number or an id.
#[tokio::test]
async fn tables_fit_a_narrow_terminal() {
    let home = fresh_home().await;
    run_with_input(home.path(), &["chat", "--topic", "writing"], "hello\n").await;
    run(home.path(), &["agent", "remove", "ada"]).await;
    let narrow = [("COLUMNS", "60")];
    for arguments in [
        &["agent", "list"][..],
        &["agent", "archive", "list"],
        &["skill", "list"],
        &["usage"],
    ] {
        let told = run_in(home.path(), &narrow, arguments).await.stdout;
        assert!(
            told.lines().all(|line| line.chars().count() <= 60),
            "{arguments:?}\n{told}"
        );
    }
    let place = ["route", "explain", "local:terminal:writing", "--all"];
    let told = run_in(home.path(), &[("COLUMNS", "45")], &place).await;
    let told = told.stdout;
    assert!(
        told.lines().all(|line| line.chars().count() <= 45),
        "{told}"
    );
    let below = "pin: local:terminal:writing\n  no pin\nexact topic: local:terminal:writing\n";
    assert!(told.contains(below), "{told}");
    let agents = run_in(home.path(), &narrow, &["agent", "list"])
        .await
        .stdout;
    assert_snapshot!(agents.replace(|c: char| c.is_ascii_digit(), "0"), @"
    ID        main
    NAME      ☕ Main
    MODEL     demo
    SKILLS    0
    PLACES    0
    MEMORIES  0
    STATE     default

    ID        rose
    NAME      🌹 Rose
    MODEL     demo
    SKILLS    0
    PLACES    0
    MEMORIES  0

    ID        ada
    SKILLS    0
    PLACES    0
    MEMORIES  0
    STATE     archived as ada-00000000-000000
    ");
    assert_snapshot!(run_in(home.path(), &narrow, &["skill", "list"]).await.stdout, @"
    AGENT  SKILL           FROM   USABLE  WHY
    main   thread-summary  pool   yes     no `skills` list
    rose   thread-summary  pool   yes     no `skills` list
    rose   tighten         local  yes     in its own folder
    ");
    let wide = run_in(home.path(), &[("COLUMNS", "200")], &["skill", "list"]).await;
    assert_eq!(
        wide.stdout,
        run(home.path(), &["skill", "list"]).await.stdout
    );
}

#[tokio::test]
async fn a_name_becomes_an_id() {
    let home = fresh_home().await;
    let ran = run(home.path(), &["agent", "add", "Night Desk"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout
            .ends_with("Night Desk (night-desk) is in config.toml.\n"),
        "{}",
        ran.stdout
    );
    assert_snapshot!(ran.stderr, @"Next: `parlor chat --agent night-desk` talks to it.");
    assert_eq!(
        run(
            home.path(),
            &["agent", "add", "night-desk", "--name", "Dot"]
        )
        .await
        .code,
        1
    );
}

/// A terminal at which all answers are typed already.
fn terminal_with(typed: &str) -> (std::fs::File, Stdio) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::Write;
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("it is ours");
    unlockpt(&ours).expect("it opens");
    let path = ptsname(&ours, Vec::new()).expect("it has a name");
    let path = path.into_string().expect("text");
    let theirs = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("the other side");
    let mut ours = std::fs::File::from(ours);
    ours.write_all(typed.as_bytes()).expect("it takes them");
    (ours, Stdio::from(theirs))
}

#[tokio::test]
async fn adding_an_agent_at_a_terminal_asks_for_each_thing() {
    let home = fresh_home().await;
    let (_terminal, stdin) = terminal_with("Rose\nDot\n🦔\nDry as dust.\n\nlocal:home:dots\n");
    let output = parlor(home.path())
        .args(["agent", "add"])
        .stdin(stdin)
        .output()
        .await
        .expect("it runs");
    let told = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_snapshot!(told.replace(": ", ":\n"), @"
    A new agent. Enter alone leaves an answer out.
    Id, with a-z, 0-9 and hyphens:
    there is an agent called rose already. Choose another id
    Id, with a-z, 0-9 and hyphens:
    Emoji before the name, if any:
    What is Dot like, in a sentence? Model as provider/model [the default model]:
    A place of its own, as /whoami in a chat shows it, if any:
    Next:
    `parlor chat --agent dot` talks to it.
    ");
    let config = std::fs::read_to_string(home.path().join("config.toml")).expect("a config");
    let added = config.split("[agents.dot]").nth(1).unwrap_or_default();
    assert!(
        added.starts_with("\nname = \"Dot\"\nemoji = \"🦔\"\n"),
        "{config}"
    );
    assert!(config.contains("match = \"local:home:dots\""), "{config}");
}

#[tokio::test]
async fn enter_alone_leaves_everything_out() {
    let home = fresh_home().await;
    let (_terminal, stdin) = terminal_with("\n\n\n\n\n");
    let output = parlor(home.path())
        .args(["agent", "add", "dot"])
        .stdin(stdin)
        .output()
        .await
        .expect("it runs");
    assert_eq!(output.status.code(), Some(0));
    let config = std::fs::read_to_string(home.path().join("config.toml")).expect("a config");
    let added = config.split("[agents.dot]").nth(1).unwrap_or_default();
    let table = added.split("\n[").next().unwrap_or_default();
    assert!(
        table
            .lines()
            .all(|line| line.is_empty() || line.starts_with('#')),
        "{config}"
    );
}

#[tokio::test]
async fn a_running_gateway_is_told_of_and_no_other() {
    let house = crate::support::House::new("[agents.rose]\n").await;
    let home = house.home.path();
    let quiet = run(home, &["agent", "default", "rose"]).await;
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    let gateway = house.open().await;
    let told = run(home, &["agent", "default", "main"]).await;
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_snapshot!(told.stderr, @"It counts from now on.");
    let json = run(home, &["agent", "default", "rose", "--json"])
        .await
        .stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["gateway_runs"], true);
    gateway.shutdown().await;
}

/// A home from the environment is not part of the line that people have to type.
#[tokio::test]
async fn usage_lines_have_no_home_that_nobody_typed() {
    let home = fresh_home().await;
    let wrong = run(home.path(), &["pair", "--owner"]).await;
    assert_eq!(wrong.code, 2);
    assert_snapshot!(wrong.stderr, @"
    error: `parlor pair` needs CODE (the code that the bot told the person)
    hint: for example `parlor pair ABCD2345`; `parlor help pair` tells more
    ");
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let home = fresh_home().await;
    let told = async |arguments: &[&str]| run(home.path(), arguments).await.stderr;
    assert_snapshot!(told(&["memory", "list"]).await, @"Main has no memories yet. `parlor remember` adds one.");
    assert_snapshot!(told(&["memory", "list", "--agent", "rose"]).await, @"Rose has no memories yet. `parlor remember` adds one.");
    // A running gateway would read the file, so the path is a whole one.
    let here = std::env::current_dir().expect("a folder");
    let missing = told(&["agent", "import", "nowhere.tar.gz"]).await;
    assert_snapshot!(missing.replace(&here.display().to_string(), "HERE"), @"error: there is no file HERE/nowhere.tar.gz");
    assert_snapshot!(told(&["agent", "remove", "nobody"]).await, @"error: no agent is called nobody. The agents are: main, rose, ada");
    assert_snapshot!(told(&["failed", "retry"]).await, @"error: there are no undelivered messages");
    assert_snapshot!(told(&["failed", "retry", "7"]).await, @"
    error: no undelivered message has this number or place
    hint: `parlor failed` lists undelivered messages
    ");
    assert_snapshot!(told(&["pair", "revoke", "foo"]).await, @"error: `foo` is not a person's id; `parlor pair list` shows ids");
    assert_snapshot!(told(&["route", "explain", "foo"]).await, @"
    error: no place is called `foo`
    hint: `parlor sessions` lists places, `parlor sessions list --ignored` those where nobody answers
    ");
}

/// Runs with a device that is always full in place of stdout.
async fn run_into_full(home: &Path, arguments: &[&str], input: &str) -> Ran {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut child = parlor(home)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(full.expect("Linux has it"))
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    // A program that ends early does not read.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let output = child.wait_with_output().await.expect("it ends");
    Ran {
        code: output.status.code().expect("by itself"),
        stdout: String::new(),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Data that is not where it was to be is a failure; a reader who has gone is none.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_told_and_a_closed_pipe_is_not() {
    let home = fresh_home().await;
    run(home.path(), &["remember", "tea"]).await;
    for arguments in [
        &["agents"][..],
        &["agents", "--json"],
        &["ask", "hello"],
        &["ask", "--json", "hello"],
        &["memory", "export"],
        &["config", "schema"],
        &["--help"],
        &["chat"],
        &["man"],
    ] {
        let ran = run_into_full(home.path(), arguments, "hello\n").await;
        assert_eq!(
            (ran.code, ran.stderr.lines().last()),
            (
                1,
                Some("error: cannot write to stdout: no space left on device")
            ),
            "{arguments:?}"
        );
    }
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut gone = parlor(home.path());
    gone.arg("agents").stdout(writer).stderr(Stdio::piped());
    let output = gone.output().await.expect("it runs");
    assert_eq!(
        (output.status.code(), output.stderr.len()),
        (Some(0), 0),
        "nobody reads"
    );
}

/// One style for all words that are no verb, and the hint of the nearest thing.
#[tokio::test]
async fn unknown_verbs_and_options_get_a_hint_that_helps() {
    let home = fresh_home().await;
    let mut told = String::new();
    for line in [
        "service",
        "bind",
        "whoami",
        "uninstall",
        "unpin",
        "xyzzy",
        "agent xyzzy",
        "config path",
        "agent remove ada --yes",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let ran = run(home.path(), &words).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{line}");
        told += &format!("{line}:\n{}\n", ran.stderr.trim_end());
    }
    assert_snapshot!(told, @"
    service:
    error: there is no `parlor service`
    hint: `parlor setup` offers a service that starts with the machine; the book has the unit file too
    bind:
    error: there is no `parlor bind`
    hint: `parlor pin PLACE AGENT` gives a place to an agent, as /agent does in a chat; a binding in config.toml does it too
    whoami:
    error: there is no `parlor whoami`
    hint: /whoami in a chat with the bot shows your id and the place's key; `parlor people` lists everybody it knows
    uninstall:
    error: there is no `parlor uninstall`
    hint: stop the gateway, then delete the program and the home folder; `parlor backup` keeps a copy before
    unpin:
    error: there is no `parlor unpin`
    hint: `parlor pin PLACE --reset` takes a pin back; a binding is taken out of config.toml
    xyzzy:
    error: there is no `parlor xyzzy`
    hint: `parlor help` lists all commands
    agent xyzzy:
    error: there is no `parlor agent xyzzy`
    hint: `parlor help agent` lists what there is
    config path:
    error: there is no `parlor config path`
    hint: `parlor config show` shows every setting; to change one, edit HOME/config.toml, then run `parlor config check`
    agent remove ada --yes:
    error: unexpected argument '--yes' found

    Usage: parlor agent remove <AGENT>

    For more information, try '--help'.
    ");
}

/// A noun alone shows what there is.
#[tokio::test]
async fn nouns_alone_list_or_check() {
    let home = fresh_home().await;
    for (noun, whole) in [
        ("skill", "skill list"),
        ("agents", "agent list"),
        ("people", "people list"),
        ("memory", "memory list"),
        ("security", "security check"),
        ("pair", "pair list"),
        ("config", "config check"),
    ] {
        let whole: Vec<&str> = whole.split(' ').collect();
        let (short, long) = (
            run(home.path(), &[noun]).await,
            run(home.path(), &whole).await,
        );
        assert_eq!(
            (short.code, &short.stdout, &short.stderr),
            (long.code, &long.stdout, &long.stderr),
            "{noun}"
        );
    }
}

/// A topic that a binding names is a place, also before anybody has written there.
#[tokio::test]
async fn a_bound_topic_is_known_by_its_name() {
    let home = fresh_home().await;
    let ran = run(home.path(), &["pin", "writing", "ada"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_snapshot!(ran.stdout, @"Ada (ada) answers in writing (local:home:writing) now.");
}

#[tokio::test]
async fn words_are_refused_where_an_emoji_or_a_topic_belongs() {
    let home = fresh_home().await;
    let first = |ran: Ran| ran.stderr.lines().next().unwrap_or_default().to_owned();
    let emoji = run(home.path(), &["agent", "add", "fern", "--emoji", "Fern"]).await;
    assert_eq!(emoji.code, 2);
    assert_snapshot!(first(emoji), @"error: invalid value 'Fern' for '--emoji <EMOJI>': `Fern` is no emoji; words belong in --name");
    let topic = run(home.path(), &["chat", "--topic", "Ünï"]).await;
    assert_eq!(topic.code, 2);
    assert_snapshot!(first(topic), @"error: a topic is written with a-z, 0-9, - and _, not `Ünï`");
    let nonsense = run_with_input(home.path(), &["chat"], "/nonsense\n").await;
    assert_eq!(nonsense.code, 1);
    assert_snapshot!(format!("{}{}", nonsense.stdout, nonsense.stderr), @"
    There is no command /nonsense. /help shows what there is.
    error: a line was not answered
    ");
}

/// Words stay whole at the edge of a narrow terminal.
#[tokio::test]
async fn notes_helps_and_findings_break_between_words() {
    const COLUMNS: u16 = 50;
    let home = fresh_home().await;
    let config = home.path().join("config.toml");
    let text = std::fs::read_to_string(&config).expect("a config");
    std::fs::write(&config, format!("workspaces = 5\n{text}")).expect("writes");
    let own = home.path().display().to_string();
    for arguments in [
        &["config", "check"][..],
        &["doctor"],
        &["run"],
        &["pin", "nowhere", "ada"],
    ] {
        let mut shown = Pty::start(home.path(), arguments, COLUMNS, &[("NO_COLOR", "1")]);
        let bytes = shown.everything().await;
        assert!(!bytes.is_empty(), "{arguments:?}");
        for line in bytes.lines() {
            let line = line.trim_end();
            let is_drawn = line.contains(" | ") || line.contains("-->");
            let fits = line.chars().count() <= COLUMNS.into() || is_drawn || line.contains(&own);
            assert!(fits, "{arguments:?}: {line:?}\n{bytes}");
        }
    }
}
