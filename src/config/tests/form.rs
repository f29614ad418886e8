//! Reports about the form of the file: notation, keys, types and words.

use insta::assert_snapshot;

use super::report;

/// S2.47
#[test]
fn an_unknown_key_names_the_nearest_known_one() {
    assert_snapshot!(report("defualt_agent = \"main\"\n"), @r#"
    error: unknown key `defualt_agent`
     --> config.toml:1:1
      |
    1 | defualt_agent = "main"
      | ^^^^^^^^^^^^^ not a key of the top level
      |
      = help: did you mean `default_agent`?

    1 problem in config.toml.
    "#);
}

/// S2.47
#[test]
fn an_unknown_key_like_no_other_lists_the_known_ones() {
    assert_snapshot!(report("[access]\nzzz = 1\n"), @"
    error: unknown key `zzz`
     --> config.toml:2:1
      |
    2 | zzz = 1
      | ^^^ not a key of [access]
      |
      = help: known here: `owners`, `dms`, `groups`, `require_mention`, `observe`, `limits`, `tools`

    1 problem in config.toml.
    ");
}

#[test]
fn an_admin_listener_for_other_machines_has_to_be_meant() {
    let texts = [
        "[admin]\nlisten = \"0.0.0.0:7717\"\n",
        "[admin]\nlisten = \"0.0.0.0:7717\"\npublic = true\n",
        "[admin]\nlisten = \"7717\"\n",
        "[admin]\nlisten = \"0.0.0.0:7717\"\npublic = true\ntoken = { env = \"HOME\" }\nmetrics = \"open\"\n",
    ];
    let reports: Vec<_> = texts.map(report).to_vec();
    assert_snapshot!(reports.join("\n"), @r#"
    error: `listen` is open to other machines
     --> config.toml:2:10
      |
    2 | listen = "0.0.0.0:7717"
      |          ^^^^^^^^^^^^^^ plain HTTP, for everybody who reaches this address
      |
      = help: write `127.0.0.1` and a port, or add `public = true` and a token if a firewall or a container's network lets only your own programs in; `behind_proxy = true` and `url` are for a web server with TLS in front

    1 problem in config.toml.
    error: a listener for other machines needs a token
     --> config.toml:2:10
      |
    2 | listen = "0.0.0.0:7717"
      |          ^^^^^^^^^^^^^^ nothing would prove a caller
      |
      = help: add a line such as `token = { env = "PARLOR_ADMIN_TOKEN" }`

    1 problem in config.toml.
    error: `listen` is not an address to listen on
     --> config.toml:2:10
      |
    2 | listen = "7717"
      |          ^^^^^^ expected an IP address and a port
      |
      = help: write `listen = "127.0.0.1:7717"`

    1 problem in config.toml.
    error: `metrics = "open"` works on this machine only
     --> config.toml:5:11
      |
    5 | metrics = "open"
      |           ^^^^^^ other machines reach this listener
      |
      = help: delete the line, and have the reader of the metrics send the token

    1 problem in config.toml.
    "#);
}

#[test]
fn a_log_that_cannot_be_meant() {
    let text =
        "[log]\nformat = \"jsonl\"\nlevel = \"verbose\"\nfile = \"logs/\"\nrotate = \"hourly\"\n";
    assert_snapshot!(report(text), @r#"
    error: `format` cannot be `jsonl`
     --> config.toml:2:10
      |
    2 | format = "jsonl"
      |          ^^^^^^^ not one of the choices
      |
      = help: did you mean `json`? The choices are `text`, `json`

    error: `level` cannot be `verbose`
     --> config.toml:3:9
      |
    3 | level = "verbose"
      |         ^^^^^^^^^ not one of the choices
      |
      = help: the choices are `error`, `warn`, `info`, `debug`, `trace`

    error: `file` is not the name of a file
     --> config.toml:4:8
      |
    4 | file = "logs/"
      |        ^^^^^^^ expected a path
      |
      = help: write it like `file = "logs/parlor.log"`

    error: `rotate` cannot be `hourly`
     --> config.toml:5:10
      |
    5 | rotate = "hourly"
      |          ^^^^^^^^ not one of the choices
      |
      = help: the choices are `daily`, `size`

    4 problems in config.toml.
    "#);
}

/// S2.1
#[test]
fn no_other_store_can_be_chosen() {
    let text = "[storage]\nbackend = \"postgres\"\n[memory]\nbackend = \"markdown\"\n";
    assert_snapshot!(report(text), @r#"
    error: unknown key `storage`
     --> config.toml:1:2
      |
    1 | [storage]
      |  ^^^^^^^ not a key of the top level
      |
      = help: everything is kept in one SQLite file, parlor.db in the home folder, and no other store can be chosen; remove this

    error: unknown key `backend`
     --> config.toml:4:1
      |
    4 | backend = "markdown"
      | ^^^^^^^ not a key of [memory]
      |
      = help: everything is kept in one SQLite file, parlor.db in the home folder, and no other store can be chosen; remove this

    2 problems in config.toml.
    "#);
    for key in ["store", "database", "db"] {
        assert!(
            report(&format!("{key} = \"postgres://localhost\"\n")).contains("one SQLite file"),
            "{key}"
        );
    }
}

/// S0.56
#[test]
fn all_problems_come_at_once_in_file_order() {
    let text = r#"default_agent = "rosa"
default_model = "opnai/gpt-5.4"

[telegram]
api_url = "http://telegram.example.org"

[providers.openai]
kind = "openai"

[agents.rose]
nmae = "Rose"

[[bindings]]
agent = "rose"
"#;
    assert_snapshot!(report(text), @r#"
    error: unknown agent `rosa`
     --> config.toml:1:17
      |
    1 | default_agent = "rosa"
      |                 ^^^^^^ no agent has this id
      |
      = help: did you mean `rose`? If not, add a section [agents.rosa]

    error: unknown provider `opnai`
     --> config.toml:2:17
      |
    2 | default_model = "opnai/gpt-5.4"
      |                 ^^^^^^^^^^^^^^^ this file has no [providers.opnai]
      |
      = help: did you mean `openai`?

    error: missing key `token`
     --> config.toml:4:2
      |
    4 | [telegram]
      |  ^^^^^^^^ [telegram] needs `token`
      |
      = help: add a line such as `token = { env = "TELEGRAM_BOT_TOKEN" }`

    error: `api_url` would send secrets in the clear
     --> config.toml:5:11
      |
    5 | api_url = "http://telegram.example.org"
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ plain http to another machine
      |
      = help: use https://; plain http is only for 127.0.0.1, ::1 and localhost

    error: missing key `api_key`
     --> config.toml:7:12
      |
    7 | [providers.openai]
      |            ^^^^^^ a server on another machine needs `api_key`
      |
      = help: add a line such as `api_key = { env = "OPENAI_API_KEY" }`

    error: unknown key `nmae`
      --> config.toml:11:1
       |
    11 | nmae = "Rose"
       | ^^^^ not a key of an agent
       |
       = help: did you mean `name`?

    error: missing key `match`
      --> config.toml:13:1
       |
    13 | [[bindings]]
       | ^^^^^^^^^^^^ a binding needs `match`
       |
       = help: add a line such as `match = "telegram:topic:-1001234567890:101"`

    7 problems in config.toml.
    "#);
}

#[test]
fn a_wrong_type_says_what_is_expected() {
    assert_snapshot!(report("default_agent = 5\n[telegram]\ntoken = { env = \"T\" }\nlimits = { per_second = -1 }\n"), @r#"
    error: `default_agent` must be text in quotes
     --> config.toml:1:17
      |
    1 | default_agent = 5
      |                 ^ this is a number
      |
      = help: write it like `default_agent = "main"`

    error: `per_second` must be 0 or more, and at most 4294967295
     --> config.toml:4:25
      |
    4 | limits = { per_second = -1 }
      |                         ^^ too small or too large
      |
      = help: write it like `per_second = 30`

    2 problems in config.toml.
    "#);
}

#[test]
fn a_wrong_word_names_the_nearest_and_all_allowed() {
    assert_snapshot!(report("[access]\ndms = \"pair\"\ngroups = \"zzz\"\n"), @r#"
    error: `dms` cannot be `pair`
     --> config.toml:2:7
      |
    2 | dms = "pair"
      |       ^^^^^^ not one of the choices
      |
      = help: did you mean `pairing`? The choices are `pairing`, `open`, `closed`

    error: `groups` cannot be `zzz`
     --> config.toml:3:10
      |
    3 | groups = "zzz"
      |          ^^^^^ not one of the choices
      |
      = help: the choices are `bound`, `open`

    2 problems in config.toml.
    "#);
}

#[test]
fn a_missing_table_shows_how_to_write_it() {
    assert_snapshot!(report("telegram = true\nagents = [\"rose\"]\n"), @r#"
    error: `telegram` must be a section
     --> config.toml:1:12
      |
    1 | telegram = true
      |            ^^^^ this is `true` or `false`
      |
      = help: write it like `[telegram]`

    error: `agents` must be a section for each name
     --> config.toml:2:10
      |
    2 | agents = ["rose"]
      |          ^^^^^^^^ this is a list
      |
      = help: write it like `[agents.rose]`

    2 problems in config.toml.
    "#);
}

/// The rest of the file is still looked at: the last line is wrong, too.
#[test]
fn a_broken_value_is_shown_with_everything_else() {
    assert_snapshot!(report("default_agent = main\n[agents.rose]\nname =\nemojy = \"x\"\n"), @r#"
    error: text needs quotes
     --> config.toml:1:17
      |
    1 | default_agent = main
      |                 ^^^^ no quotes around this
      |
      = help: write `default_agent = "main"`

    error: a value is missing
     --> config.toml:3:7
      |
    3 | name =
      |       ^ expected a value after `=`
      |
      = help: write a value, such as `name = "Rose"`, or delete the line

    error: unknown key `emojy`
     --> config.toml:4:1
      |
    4 | emojy = "x"
      | ^^^^^ not a key of an agent
      |
      = help: did you mean `emoji`?

    3 problems in config.toml.
    "#);
}

/// The parser may lose the tables below, so the report does not complain about missing keys.
#[test]
fn broken_notation_is_shown_where_it_breaks() {
    assert_snapshot!(report("default_agent = \"rose\"\n\n[access\ndms = \"opn\"\n\n[agents.rose]\n"), @"
    error: the section's header is not closed
     --> config.toml:3:8
      |
    3 | [access
      |        ^ expected `]`
      |
      = help: write `[access]`

    1 problem in config.toml.
    ");
}

#[test]
fn a_key_that_is_there_twice_is_shown_at_the_second() {
    assert_snapshot!(report("[access]\ndms = \"open\"\ndms = \"closed\"\n"), @r#"
    error: `dms` is set twice
     --> config.toml:3:1
      |
    2 | dms = "open"
      | --- the first one
    3 | dms = "closed"
      | ^^^ the second one
      |
      = help: delete one of the two lines

    1 problem in config.toml.
    "#);
}
