//! Secrets: their sources, and proof of their secrecy.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use insta::assert_snapshot;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::config::file::draft_in;
use crate::config::secrets::Vault;
use crate::config::{Draft, ProviderLines, Secret, Secrets, Source, load};

/// Drafts with an environment of two variables and an empty home folder.
fn drafted(text: &str) -> Draft {
    drafted_in(text, Path::new("home"), Secrets::Required)
}

fn drafted_in(text: &str, home: &Path, secrets: Secrets) -> Draft {
    let environment = |name: &str| match name {
        "GOOD" => Some("123:abc".to_owned()),
        "EMPTY" => Some(" ".to_owned()),
        _ => None,
    };
    let source = Source {
        path: "config.toml".into(),
        text: text.to_owned(),
    };
    draft_in(
        source,
        &Vault {
            home,
            secrets,
            environment: &environment,
        },
    )
}

fn report(text: &str) -> String {
    drafted(text)
        .finish()
        .expect_err("the text has a problem")
        .to_string()
}

/// No printed form of a draft may show the secret.
fn assert_hidden(text: &str) -> String {
    let draft = drafted(text);
    assert!(!format!("{draft:?}").contains("hunter2"), "{draft:?}");
    let report = draft.finish().expect_err("the text has a problem");
    assert!(!format!("{report:?}").contains("hunter2"));
    assert!(!report.to_string().contains("hunter2"), "{report}");
    report.to_string()
}

#[test]
fn a_secret_does_not_print() {
    let secret = Secret::new("hunter2".to_owned());
    assert_eq!(format!("{secret} {secret:?}"), "[secret] [secret]");
    assert_eq!(secret.expose(), "hunter2");
}

fn write_secret(path: &Path, mode: u32) {
    std::fs::write(path, "123:abc\r\n\n").unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A wrong secret is told at the check, and not by the platform later.
#[test]
fn a_secret_that_cannot_be_one_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let text = "[telegram]\ntoken = { file = \"bot\" }\n";
    let path = home.path().join("bot");
    let told = |content: &str| {
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let draft = drafted_in(text, home.path(), Secrets::Required);
        let told = draft
            .problems
            .into_iter()
            .map(|problem| format!("{} → {}", problem.message, problem.help.unwrap_or_default()));
        told.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(told("123:abc\n"), "");
    assert_snapshot!(told("hello\n"), @"this is not a token of a Telegram bot → a token is a number, a colon and many letters; @BotFather shows it with /mybots or /token");
    assert_snapshot!(told("\"123:abc\"\n"), @"the file bot has quotes around the secret → delete the quotes there: only config.toml needs them");
    assert_snapshot!(told("'123:abc'"), @"the file bot has quotes around the secret → delete the quotes there: only config.toml needs them");
    std::fs::write(&path, "hello").unwrap();
    let looked = drafted_in(text, home.path(), Secrets::WherePresent);
    assert!(looked.problems.is_empty(), "most verbs need no secret");
}

/// As ssh does with its keys.
#[test]
fn a_secret_that_others_may_read_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let text = "[telegram]\ntoken = { file = \"bot\" }\n";
    let draft = || drafted_in(text, home.path(), Secrets::Required);
    for mode in [0o644, 0o640, 0o604, 0o620, 0o666, 0o660] {
        write_secret(&home.path().join("bot"), mode);
        let report = draft().finish().expect_err("it is open").to_string();
        let expected = match mode & 0o002 {
            0 => "the file bot is open to other users of this machine",
            _ => "the file bot can be changed by every user of this machine",
        };
        assert!(report.contains(expected), "{mode:o}: {report}");
        let advice = format!("run `chmod 600 {}`", home.path().join("bot").display());
        assert!(report.contains(&advice), "{mode:o}: {report}");
        assert!(!report.contains("123:abc"), "{report}");
    }
    for mode in [0o600, 0o400] {
        write_secret(&home.path().join("bot"), mode);
        assert!(draft().finish().is_ok(), "{mode:o}");
    }
}

/// A second line is a leftover or a second secret, and the server would get both.
#[test]
fn a_secret_is_one_line() {
    let home = tempfile::tempdir().unwrap();
    let text = "[telegram]\ntoken = { file = \"bot\" }\n";
    let path = home.path().join("bot");
    write_secret(&path, 0o600);
    for (content, is_fine) in [
        ("123:abc", true),
        ("\n 123:abc \r\n\n", true),
        ("123:abc\n456:def\n", false),
        ("# the bot\n123:abc\n", false),
        ("123:abc\r456:def", false),
    ] {
        std::fs::write(&path, content).unwrap();
        match drafted_in(text, home.path(), Secrets::Required).finish() {
            Ok(config) => {
                assert!(is_fine, "{content:?}");
                assert_eq!(config.telegram.unwrap().platform.token.expose(), "123:abc");
            }
            Err(report) => {
                assert!(!is_fine, "{content:?}: {report}");
                assert!(
                    report
                        .to_string()
                        .contains("the file bot has several lines")
                );
                assert!(!report.to_string().contains("123:abc"), "{report}");
            }
        }
    }
}

#[test]
fn a_file_that_is_no_secret_says_why() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("bot")).unwrap();
    let text = "[telegram]\ntoken = { file = \"bot\" }\n";
    let report = drafted_in(text, home.path(), Secrets::Required)
        .finish()
        .unwrap_err();
    assert_eq!(report.problems[0].message, "the file bot is a folder");
    assert!(!report.to_string().contains("os error"), "{report}");
}

/// A secret in every string of a secret's field, in files that are right and in files that are not.
#[test]
fn no_secret_in_the_wrong_spot_is_shown_however_it_looks() {
    const FIELDS: [&str; 18] = [
        "token = \"S\"",
        "token = { env = \"S\" }",
        "token = { file = \"S\" }",
        "token = { file = 'S' }",
        "token = { env = \"GOOD\", file = \"S\" }",
        "token = { env = \"S\", file = \"S\" }",
        "token = { \"S\" = \"GOOD\" }",
        "token = { \"S\" = 1, env = \"GOOD\" }",
        "token = [\"S\", { env = \"S\" }]",
        "token.\"S\" = 1",
        "token.file = \"S\"",
        "token = { env = \"GOOD\" }\n\"to\\u006ben\" = \"S\"",
        "token = { env = \"S\" }\ntoken = { file = \"S\" }",
        "\"to\\u006ben\" = { file = \"S\" }\nzzz",
        "token = { env = \"S\" ",
        "token = { file = \"S\"\nzzz = \"",
        "token { env = \"S\" }",
        "tokn = { env = \"S\" }",
    ];
    let shapes = (
        0..FIELDS.len(),
        prop_oneof![
            "[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
            "sk-[A-Za-z0-9]{20,48}",
            "xoxb-[0-9]{10}-[A-Za-z0-9]{24}",
            "[0-9a-f]{32,64}",
            "[A-Za-z0-9]{32,64}",
            "[A-Za-z0-9+/]{40,64}=",
            "[A-Za-z0-9_-]{24}\\.[A-Za-z0-9_-]{6}\\.[A-Za-z0-9_-]{38}",
        ],
        prop_oneof![Just("telegram"), Just("discord"), Just("providers.x")],
    );
    let config = ProptestConfig {
        cases: 4096,
        ..Default::default()
    };
    let looked = TestRunner::new(config).run(&shapes, |(field, secret, table)| {
        let mut text = format!("[{table}]\n{}\n", FIELDS[field].replace('S', &secret));
        if table == "providers.x" {
            text = text
                .replace("tok", "api_k")
                .replace("api_ken", "api_key")
                .replace("to\\u006b", "api_\\u006b");
            text += "kind = \"openai\"\n";
        }
        for secrets in [Secrets::Required, Secrets::WherePresent] {
            let draft = drafted_in(&text, Path::new("home"), secrets);
            let told = format!("{draft:?}");
            prop_assert!(!told.contains(&secret), "{}\n{}", text, told);
            if let Err(report) = draft.finish() {
                prop_assert!(
                    !report.to_string().contains(&secret),
                    "{}\n{}",
                    text,
                    report
                );
            }
        }
        Ok(())
    });
    looked.unwrap();
}

#[test]
fn a_token_comes_from_the_environment() {
    let config = drafted("[telegram]\ntoken = { env = \"GOOD\" }\n")
        .finish()
        .unwrap();
    assert_eq!(config.telegram.unwrap().platform.token.expose(), "123:abc");
}

#[test]
fn a_token_comes_from_a_file_in_the_home_folder() {
    let home = tempfile::tempdir().unwrap();
    write_secret(&home.path().join("bot"), 0o600);
    let config = drafted_in(
        "[telegram]\ntoken = { file = \"bot\" }\n",
        home.path(),
        Secrets::Required,
    )
    .finish()
    .unwrap();
    assert_eq!(config.telegram.unwrap().platform.token.expose(), "123:abc");
}

/// The gateway can start without the key of a provider. Lines are for advice.
#[test]
fn a_missing_key_of_a_provider_is_remembered_and_no_problem() {
    let text = "# first\n[providers.p]\nkind = \"openai\"\napi_key = { env = \"OPENAI_API_KEY\" }\n\
                [providers.q]\nkind = \"openai\"\napi_key = { env = \"GOOD\" }\nbase_url = \"https://x.org/\"\n";
    let providers = drafted(text).finish().unwrap().providers;
    assert_eq!(
        providers["p"].missing_key.as_deref(),
        Some("the environment variable OPENAI_API_KEY is not set")
    );
    assert_eq!(providers["q"].missing_key, None);
    let lines = |name: &str| {
        let ProviderLines {
            section,
            api_key,
            base_url,
        } = providers[name].lines;
        (section, api_key, base_url)
    };
    assert_eq!(lines("p"), (Some(2), Some(4), None));
    assert_eq!(lines("q"), (Some(5), Some(7), Some(8)));
}

#[test]
fn a_missing_secret_says_how_to_give_it() {
    assert_snapshot!(report("[telegram]\ntoken = { env = \"TELEGRAM_BOT_TOKEN\" }\n"), @r#"
    error: the environment variable TELEGRAM_BOT_TOKEN is not set
     --> config.toml:2:17
      |
    2 | token = { env = "TELEGRAM_BOT_TOKEN" }
      |                 ^^^^^^^^^^^^^^^^^^^^ the secret is looked for here
      |
      = help: set it where Parlor is started (`export TELEGRAM_BOT_TOKEN=…`), or keep the secret in a file and write { file = "…" }

    1 problem in config.toml. Parlor was not started.
    "#);
    assert_snapshot!(report("[telegram]\ntoken = { env = \"EMPTY\" }\n"), @r#"
    error: the environment variable EMPTY is empty
     --> config.toml:2:17
      |
    2 | token = { env = "EMPTY" }
      |                 ^^^^^^^ the secret is looked for here
      |
      = help: set it where Parlor is started (`export EMPTY=…`), or keep the secret in a file and write { file = "…" }

    1 problem in config.toml. Parlor was not started.
    "#);
    assert_snapshot!(report("[telegram]\ntoken = { file = \"secrets/telegram\" }\n"), @r#"
    error: the file secrets/telegram does not exist
     --> config.toml:2:18
      |
    2 | token = { file = "secrets/telegram" }
      |                  ^^^^^^^^^^^^^^^^^^ looked for home/secrets/telegram
      |
      = help: write the secret into this file, and nothing else, or use { env = "…" }

    1 problem in config.toml. Parlor was not started.
    "#);
}

#[test]
fn a_missing_secret_is_fine_when_none_is_needed() {
    let text = "[telegram]\ntoken = { env = \"TELEGRAM_BOT_TOKEN\" }\n[providers.openai]\nkind = \"openai\"\napi_key = { file = \"none\" }\n";
    let config = drafted_in(text, Path::new("home"), Secrets::WherePresent)
        .finish()
        .unwrap();
    assert_eq!(config.telegram.unwrap().platform.token.expose(), "");
    let wrong_form = drafted_in(
        "[telegram]\ntoken = 5\n",
        Path::new("home"),
        Secrets::WherePresent,
    );
    assert_eq!(wrong_form.problems.len(), 1);
}

#[test]
fn a_section_without_its_token_says_so() {
    assert_snapshot!(report("[telegram]\n"), @r#"
    error: missing key `token`
     --> config.toml:1:2
      |
    1 | [telegram]
      |  ^^^^^^^^ [telegram] needs `token`
      |
      = help: add a line such as `token = { env = "TELEGRAM_BOT_TOKEN" }`

    1 problem in config.toml. Parlor was not started.
    "#);
}

#[test]
fn a_secret_is_kept_in_one_place() {
    assert_snapshot!(report("[telegram]\ntoken = { env = \"GOOD\", file = \"bot\" }\n"), @r#"
    error: `token` needs either `env` or `file`
     --> config.toml:2:9
      |
    2 | token = { env = "GOOD", file = "bot" }
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ exactly one of the two belongs here
      |
      = help: write it like `token = { env = "TELEGRAM_BOT_TOKEN" }`

    1 problem in config.toml. Parlor was not started.
    "#);
    assert_snapshot!(report("[telegram]\ntoken = { evn = \"GOOD\" }\n"), @"
    error: unknown key `evn`
     --> config.toml:2:11
      |
    2 | token = { evn = ****** }
      |           ^^^ not a key of a secret
      |
      = help: known here: `env`, `file`

    1 problem in config.toml. Parlor was not started.
    ");
}

#[test]
fn discords_token_is_kept_outside_like_telegrams() {
    assert_snapshot!(assert_hidden("[discord]\ntoken = \"hunter2.hunter2\"\n"), @r#"
    error: `token` is in the config file itself
     --> config.toml:2:9
      |
    2 | token = *****************
      |         ^^^^^^^^^^^^^^^^^ a secret in plain text, hidden here
      |
      = help: move it to the environment and write `token = { env = "DISCORD_BOT_TOKEN" }`, or to a file and write `token = { file = "secrets/token" }`

    1 problem in config.toml. Parlor was not started.
    "#);
    assert_snapshot!(report("[discord]\ntoken = { env = \"GOOD\" }\napi_url = \"http://discord.example.org\"\nproxy = 1\n"), @r#"
    error: `api_url` would send secrets in the clear
     --> config.toml:3:11
      |
    3 | api_url = "http://discord.example.org"
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ plain http to another machine
      |
      = help: use https://; plain http is only for 127.0.0.1, ::1 and localhost

    error: unknown key `proxy`
     --> config.toml:4:1
      |
    4 | proxy = *
      | ^^^^^ not a key of [discord]
      |
      = help: `proxy` belongs under [telegram] or [providers.<name>]

    2 problems in config.toml. Parlor was not started.
    "#);
}

#[test]
fn a_literal_token_is_refused_and_not_shown() {
    assert_snapshot!(assert_hidden("[telegram]\ntoken = \"123:hunter2\" # of the bot\n"), @r#"
    error: `token` is in the config file itself
     --> config.toml:2:9
      |
    2 | token = ************* # of the bot
      |         ^^^^^^^^^^^^^ a secret in plain text, hidden here
      |
      = help: move it to the environment and write `token = { env = "TELEGRAM_BOT_TOKEN" }`, or to a file and write `token = { file = "secrets/token" }`

    1 problem in config.toml. Parlor was not started.
    "#);
}

#[test]
fn a_secret_in_the_wrong_spot_is_not_shown_either() {
    assert_snapshot!(assert_hidden("[telegram]\ntoken = { env = \"123:hunter2\" }\n"), @"
    error: `env` takes the name of an environment variable
     --> config.toml:2:17
      |
    2 | token = { env = ************* }
      |                 ^^^^^^^^^^^^^ not a variable's name
      |
      = help: write only the name, such as `TELEGRAM_BOT_TOKEN`, and keep the secret itself out of this file

    1 problem in config.toml. Parlor was not started.
    ");
    assert_snapshot!(assert_hidden("[telegram]\ntoken = 123:hunter2\n"), @r#"
    error: text needs quotes
     --> config.toml:2:9
      |
    2 | token = ***********
      |         ^^^^^^^^^^^ no quotes around this
      |
      = help: write a value, such as `token = { env = "TELEGRAM_BOT_TOKEN" }`

    1 problem in config.toml. Parlor was not started.
    "#);
    for text in [
        "[telegram]\ntokn = \"123:hunter2\"\n",
        "[telegram]\nbot_token = \"123:hunter2\"\n",
        "[telegram]\ntoken = { value = \"123:hunter2\" }\n",
        "[telegram]\ntoken = [\"123:hunter2\"]\n",
        "[telegram]\ntoken.value = \"123:hunter2\"\n",
        "[telegram.token]\nenv = \"123:hunter2\"\n",
        "[telegram]\ntoken = \"a\"\ntoken = \"123:hunter2\"\n",
        "[telegram]\ntoken = \"\"\"\n123:hunter2\"\"\"\n",
        "[telegram]\ntoken = \"123:hunter2\ntoken = \"hunter2\"\n",
        "[telegram]\ntoken = \"\"\"\n123:hunter2\n",
        "[telegram]\ntoken =\n\"123:hunter2\"\n",
        "[telegram]\ntoken \"123:hunter2\"\n",
        "[telegram]\n  token: 123:hunter2\n",
        "telegram = { token = \"123:hunter2\", zzz = 1 }\n",
        "telegram = { \"token\" = \"123:hunter2\", zzz\n",
        "discord = { token = \"hunter2\" }\n",
        "[providers.x]\nkind = \"openai\"\napi_key = \"hunter2\"\nbase_url = \"https://me:hunter2@example.org\"\n",
        "[telegram]\nproxy = \"http://me:hunter2@example.org\"\n",
        "[telegram]\nproxy = \"me:hunter2@example.org:3128\"\n",
        "[telegram]\nproxy = \"http://me:hunter2@example.org\n",
        "[telegram]\nprxy = \"me:hunter2@example.org:3128\"\n",
        "[telegram]\nproxy = { env = \"http://me:hunter2@example.org\" }\n",
        "[providers.x]\nkind = \"openai\"\napikey = \"hunter2\"\n",
    ] {
        assert_hidden(text);
    }
}

#[test]
fn a_home_folder_without_a_config_says_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let error = load(home.path(), Secrets::Required)
        .unwrap_err()
        .to_string();
    let path = home.path().join("config.toml");
    assert_eq!(
        error,
        format!(
            "There is no config file at {}. Run `parlor init` to write one.",
            path.display()
        )
    );
    std::fs::write(&path, b"# mine\ndefault_agent = \"\xff\"\n").unwrap();
    let error = load(home.path(), Secrets::Required)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        format!(
            "The config file {} is not UTF-8 text: line 2 has other bytes. Save it as UTF-8 and try again.",
            path.display()
        )
    );
    std::fs::write(&path, "").unwrap();
    assert!(
        load(home.path(), Secrets::Required)
            .unwrap()
            .finish()
            .is_ok()
    );
}

/// Numbers of tokens are no tokens.
#[test]
fn a_number_of_tokens_is_shown() {
    let shown = report(
        "[agents.rose]\nrecall_tokens = -4\nmax_token = 7\n[agents.rose.limits]\ntokens_per_dya = 5\ntoken_per_day = 6\ntokens_per_day = \"many\"\ntokens = \"hunter2\"\npassword = 1234567\n",
    );
    assert!(shown.contains("token_per_day = 6"), "{shown}");
    assert!(shown.contains("max_token = 7"), "{shown}");
    assert!(!shown.contains("1234567"), "{shown}");
    assert!(shown.contains("recall_tokens = -4"), "{shown}");
    assert!(shown.contains("tokens_per_dya = 5"), "{shown}");
    assert!(shown.contains("tokens_per_day = \"many\""), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
    let broken = report("[agents.rose.limits]\ntoken_per_day = 6\n[access\n");
    assert!(!broken.contains('*'), "{broken}");
}
