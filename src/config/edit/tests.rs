//! Edits of a file: the rest of the file stays untouched.

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

const FILE: &str = r#"# My house.

default_agent = "main"   # who opens

# The host.
[agents.main]
emoji = "☕"
read_memory_from = ["rose", "ada"]  # both

# Rose writes.
[agents.rose]
name = "Rose"  # short
skills = [
  "a",  # first
]
[agents.rose.limits]
turns = 3

[agents.ada]

# Places. Keep this.

# The writing room.
[[bindings]]
match = "local:home:writing"
agent = "rose"
[[bindings]]
match = "local:home:code"
agent = "ada"

# The end.
"#;

fn id(text: &str) -> AgentId {
    AgentId::parse(text).unwrap()
}

/// Lines of a diff. All other lines are untouched.
fn changes(after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (FILE.lines().collect(), after.lines().collect());
    let gone = before
        .iter()
        .filter(|line| !after.contains(line))
        .map(|line| format!("- {line}"));
    let new = after
        .iter()
        .filter(|line| !before.contains(line))
        .map(|line| format!("+ {line}"));
    gone.chain(new).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_agent_is_added_behind_the_others() {
    let dot = NewAgent {
        name: Some("Dot \"the\" 1st".into()),
        skills: Some(vec!["a".into()]),
        ..NewAgent::default()
    };
    let after = add_agent(FILE, &id("dot"), &dot).unwrap();
    assert_snapshot!(changes(&after), @r#"
    + [agents.dot]
    + name = 'Dot "the" 1st'
    + skills = ["a"]
    "#);
    assert!(
        after.contains("[agents.ada]\n\n[agents.dot]\n")
            && after.contains("\n\n# Places. Keep this.\n"),
        "{after}"
    );
    assert_eq!(
        add_agent("", &id("dot"), &NewAgent::default()).unwrap(),
        "[agents.dot]\n"
    );
}

#[test]
fn an_agent_is_taken_out_with_its_bindings_and_put_back() {
    let taken = take_out_agent(FILE, &id("rose")).unwrap();
    assert_snapshot!(taken.text, @r#"
    # My house.

    default_agent = "main"   # who opens

    # The host.
    [agents.main]
    emoji = "☕"
    read_memory_from = ["ada"]  # both

    [agents.ada]

    # Places. Keep this.

    [[bindings]]
    match = "local:home:code"
    agent = "ada"

    # The end.
    "#);
    assert_snapshot!(taken.piece, @r#"
    # Rose writes.
    [agents.rose]
    name = "Rose"  # short
    skills = [
      "a",  # first
    ]

    [agents.rose.limits]
    turns = 3

    # The writing room.
    [[bindings]]
    match = "local:home:writing"
    agent = "rose"
    "#);
    assert_eq!(taken.bindings, ["local:home:writing"]);
    assert_eq!(taken.mentions, ["agents.main.read_memory_from"]);
    let back = put_back(&taken.text, &taken.piece).unwrap();
    assert_snapshot!(back, @r#"
    # My house.

    default_agent = "main"   # who opens

    # The host.
    [agents.main]
    emoji = "☕"
    read_memory_from = ["ada"]  # both

    [agents.ada]

    # Rose writes.
    [agents.rose]
    name = "Rose"  # short
    skills = [
      "a",  # first
    ]

    [agents.rose.limits]
    turns = 3

    # Places. Keep this.

    [[bindings]]
    match = "local:home:code"
    agent = "ada"

    # The writing room.
    [[bindings]]
    match = "local:home:writing"
    agent = "rose"

    # The end.
    "#);
}

#[test]
fn renaming_changes_every_place_that_names_the_agent() {
    assert_snapshot!(changes(&rename_agent(FILE, &id("rose"), &id("rosa")).unwrap()), @r#"
    - read_memory_from = ["rose", "ada"]  # both
    - [agents.rose]
    - [agents.rose.limits]
    - agent = "rose"
    + read_memory_from = ["rosa", "ada"]  # both
    + [agents.rosa]
    + [agents.rosa.limits]
    + agent = "rosa"
    "#);
    assert_snapshot!(changes(&rename_agent(FILE, &id("main"), &id("host")).unwrap()), @r#"
    - default_agent = "main"   # who opens
    - [agents.main]
    + default_agent = "host"   # who opens
    + [agents.host]
    "#);
}

/// S1.12
#[test]
fn the_default_is_one_key() {
    assert_snapshot!(changes(&set_default(FILE, &id("ada")).unwrap()), @r#"
    - default_agent = "main"   # who opens
    + default_agent = "ada"   # who opens
    "#);
    assert_eq!(
        set_default("", &id("ada")).unwrap(),
        "default_agent = \"ada\"\n"
    );
    let without = "# Top.\n\n# About ada.\n[agents.ada]\n";
    assert_eq!(
        set_default(without, &id("ada")).unwrap(),
        "# Top.\n\ndefault_agent = \"ada\"\n\n# About ada.\n[agents.ada]\n"
    );
    let with_key = "switch = 1\n[agents.ada]\n";
    assert_eq!(
        set_default(with_key, &id("ada")).unwrap(),
        "default_agent = \"ada\"\nswitch = 1\n[agents.ada]\n"
    );
}

#[test]
fn a_form_that_cannot_be_edited_is_told() {
    let told = |text: &str| take_out_agent(text, &id("rose")).unwrap_err().to_string();
    assert_snapshot!(told("bindings = [{ match = \"local\", agent = \"rose\" }]\n[agents.rose]\n"), @"`bindings` is written in a way that cannot be edited by program. Write it as [[bindings]] tables, or make this change by hand");
    assert_snapshot!(told("agents = { rose = { name = \"R\" } }\n"), @"agent rose is written in a way that cannot be edited by program. Write it as a table [agents.<id>], or make this change by hand");
    assert!(add_agent("agents = { rose = {} }\n", &id("dot"), &NewAgent::default()).is_err());
    assert!(add_binding("bindings = []\n", "local", &id("rose")).is_err());
    assert!(
        take_out_agent(
            "bindings = [{ match = \"local\", agent = \"ada\" }]\n[agents.rose]\n",
            &id("rose")
        )
        .is_ok()
    );
    assert_snapshot!(told("[agents"), @"config.toml is not TOML, so it was not changed. `parlor config check` shows where");
}

/// The same agents in all notations of TOML.
const FORMS: [&str; 6] = [
    "[agents.main]\n[agents.rose]\nname = \"R\" # x\nlimits = { max_steps = 3 }\n\n[access]\ndms = \"open\"\n",
    "# The writer.\nagents.rose.name = \"R\" # x\nagents . \"rose\" . limits.max_steps = 3\nagents.main = {}\n\n[access]\ndms = \"open\"\n",
    "[access]\ndms = \"open\"\n[agents]\n# The writer.\nrose = { name = \"R\", limits.max_steps = 3 } # x\nmain = {}\n",
    "[agents]\nmain.emoji = \"m\"\nrose.name = 'R' # x\nrose.limits = { max_steps = 3 }\n[access]\ndms = \"open\"",
    "agents.rose = { name = \"R\", limits = { max_steps = 3 } }\nagents.main.emoji = \"x\"\n[access]\ndms = \"open\"\n",
    "[ agents . \"rose\" ]\n\"name\" = \"R\" # x\n[agents.'rose'.limits]\nmax_steps = 3\n[access]\ndms = \"open\"\n",
];

#[test]
fn every_form_can_be_renamed_taken_out_and_put_back() {
    for plain in FORMS {
        for text in [
            plain.to_owned(),
            plain.replace('\n', "\r\n"),
            format!("\u{feff}{plain}"),
        ] {
            let before: toml::Table = text.parse().unwrap();
            let parsed = |text: &str| {
                text.parse::<toml::Table>()
                    .unwrap_or_else(|error| panic!("{error}\n{text}"))
            };
            let renamed = rename_agent(&text, &id("rose"), &id("rosa")).unwrap();
            assert_eq!(
                parsed(&renamed)["agents"]["rosa"],
                before["agents"]["rose"],
                "{renamed}"
            );
            assert!(
                parsed(&renamed)["agents"].get("rose").is_none(),
                "{renamed}"
            );
            assert_eq!(
                parsed(&rename_agent(&text, &id("rose"), &id("rose")).unwrap()),
                before,
                "a restore under its own id"
            );
            let taken = take_out_agent(&text, &id("rose")).unwrap();
            assert!(
                !taken.text.contains("rose") && !taken.text.contains("# x"),
                "{}",
                taken.text
            );
            assert!(
                !text.contains("# x") || taken.piece.contains("# x"),
                "{}",
                taken.piece
            );
            assert_eq!(
                taken.piece.contains("# The writer."),
                text.contains("# The writer."),
                "{}",
                taken.piece
            );
            let back = put_back(&taken.text, &taken.piece).unwrap();
            assert_eq!(
                parsed(&back)["agents"]["rose"],
                before["agents"]["rose"],
                "{back}"
            );
            assert_eq!(parsed(&back)["access"], before["access"]);
            let more = add_agent(&text, &id("dot"), &NewAgent::default()).unwrap();
            assert!(
                parsed(&more)["agents"].get("dot").is_some()
                    && parsed(&more)["agents"].get("rose").is_some(),
                "{more}"
            );
            let default = set_default(&text, &id("rose")).unwrap();
            assert_eq!(
                parsed(&default)["default_agent"].as_str(),
                Some("rose"),
                "{default}"
            );
            for edited in [&renamed, &taken.text, &back, &more, &default] {
                assert_eq!(edited.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
                assert!(
                    !text.contains('\r')
                        || edited.matches('\n').count() == edited.matches("\r\n").count(),
                    "{edited:?}"
                );
            }
        }
    }
}

/// An agent written as a single line becomes a table, and its comments become lines of the table.
#[test]
fn a_line_becomes_a_table() {
    let piece = |form: usize| take_out_agent(FORMS[form], &id("rose")).unwrap().piece;
    assert_snapshot!(piece(1), @r#"
    [agents.rose]
    # The writer.
    name = "R" # x
    limits.max_steps = 3
    "#);
    assert_snapshot!(piece(2), @r#"
    [agents.rose]
    # The writer.
    # x
    name = "R"
    limits.max_steps = 3
    "#);
    assert_snapshot!(piece(3), @"
    [agents.rose]
    name = 'R' # x
    limits = { max_steps = 3 }
    ");
}

const LISTS: &str = r#"[agents.main]
read_memory_from = ["ada", "rose"]
access = { read = ["rose"], write = ["rose", "ada"] }
[agents.ada]
read_memory_from = [
  "main",  # the host
  # Writers:
  "rose",  # the writer
  "dot"    # the last
]
[shared_paths.handbook]
read = [ "rose", "ada" ]
[peer_groups.desk]
members = [
  "ada", "main", # these two
  "rose" # and this one
]
"#;

#[test]
fn a_list_loses_one_agent_and_no_comment_of_another() {
    let taken = take_out_agent(LISTS, &id("rose")).unwrap();
    assert_snapshot!(taken.text, @r#"
    [agents.main]
    read_memory_from = ["ada"]
    access = { read = [], write = ["ada"] }
    [agents.ada]
    read_memory_from = [
      "main",  # the host
      # Writers:
      "dot"    # the last
    ]
    [shared_paths.handbook]
    read = [ "ada" ]
    [peer_groups.desk]
    members = [
      "ada", "main", # these two
    ]
    "#);
    assert_snapshot!(taken.mentions.join("\n"), @"
    agents.main.read_memory_from
    agents.main.access.read
    agents.main.access.write
    agents.ada.read_memory_from
    shared_paths.handbook.read
    peer_groups.desk.members
    ");
    let taken = take_out_agent(LISTS, &id("ada")).unwrap();
    assert_snapshot!(taken.text, @r#"
    [agents.main]
    read_memory_from = ["rose"]
    access = { read = ["rose"], write = ["rose"] }
    [shared_paths.handbook]
    read = [ "rose" ]
    [peer_groups.desk]
    members = [
      "main", # these two
      "rose" # and this one
    ]
    "#);
    let twice = "[agents.main]\nread_memory_from = [\"rose\", \"rose\"]\n";
    assert_eq!(
        take_out_agent(twice, &id("rose")).unwrap().text,
        "[agents.main]\nread_memory_from = []\n"
    );
}

#[test]
fn an_agent_comes_back_into_its_lists() {
    let taken = take_out_agent(LISTS, &id("rose")).unwrap();
    let back = taken.mentions.iter().fold(taken.text, |text, list| {
        add_mention(&text, list, &id("rose")).unwrap().unwrap()
    });
    assert_snapshot!(back, @r#"
    [agents.main]
    read_memory_from = ["ada", "rose"]
    access = { read = ["rose"], write = ["ada", "rose"] }
    [agents.ada]
    read_memory_from = [
      "main",  # the host
      # Writers:
      "dot", "rose"    # the last
    ]
    [shared_paths.handbook]
    read = [ "ada", "rose" ]
    [peer_groups.desk]
    members = [
      "ada", "main", "rose", # these two
    ]
    "#);
    assert_eq!(
        add_mention(&back, "agents.main.read_memory_from", &id("rose")).unwrap(),
        None,
        "it is there"
    );
    assert_eq!(
        add_mention(&back, "agents.gone.read_memory_from", &id("rose")).unwrap(),
        None,
        "there is no such list"
    );
    let renamed = rename_agent(LISTS, &id("rose"), &id("rosa")).unwrap();
    assert_eq!(renamed, LISTS.replace("rose", "rosa"));
}

/// S3.31: a text of several lines belongs to its agent, even with lines like comments.
#[test]
fn a_line_of_a_text_is_no_comment_of_the_next_table() {
    let text = "[agents.ada]\nsystem_prompt = \"\"\"\n# Rules\n# Be kind\"\"\"\n# Rose writes.\n[agents.rose]\npersonality = \"night.md\"\n";
    let without = take_out_agent(text, &id("rose")).unwrap();
    assert_eq!(
        without.piece,
        "# Rose writes.\n[agents.rose]\npersonality = \"night.md\"\n"
    );
    assert_eq!(
        without.text,
        "[agents.ada]\nsystem_prompt = \"\"\"\n# Rules\n# Be kind\"\"\"\n"
    );
    let close = text.replace("# Rose writes.\n", "");
    assert_eq!(
        take_out_agent(&close, &id("rose")).unwrap().text,
        without.text
    );
    let ada = take_out_agent(text, &id("ada")).unwrap();
    assert_eq!(ada.piece, without.text);
    let renamed = rename_agent(text, &id("ada"), &id("ida")).unwrap();
    assert_eq!(renamed, text.replace("[agents.ada]", "[agents.ida]"));
}

/// The same for agents without headers.
#[test]
fn a_line_of_a_text_is_no_comment_of_the_next_key() {
    let text = "agents.ada.system_prompt = \"\"\"\n# Rules\n# Be kind\"\"\"\n# Rose writes.\nagents.rose.name = \"R\"\n";
    for text in [text.to_owned(), text.replace("# Rose writes.\n", "")] {
        let taken = take_out_agent(&text, &id("rose")).unwrap();
        assert_eq!(
            taken.text,
            "agents.ada.system_prompt = \"\"\"\n# Rules\n# Be kind\"\"\"\n"
        );
        assert!(taken.piece.ends_with("name = \"R\"\n"), "{}", taken.piece);
    }
}

/// An agent may have the name of its own table.
#[test]
fn an_agent_called_agents_is_renamed() {
    for text in [
        "agents.agents.name = \"A\"\n",
        "[agents]\nagents.name = \"A\"\n",
        "[agents.agents]\nname = \"A\"\n",
    ] {
        let renamed = rename_agent(text, &id("agents"), &id("ada")).unwrap();
        assert_eq!(
            renamed.parse::<toml::Table>().unwrap()["agents"]["ada"]["name"].as_str(),
            Some("A"),
            "{renamed}"
        );
        let piece = take_out_agent(text, &id("agents")).unwrap().piece;
        assert_eq!(piece, "[agents.agents]\nname = \"A\"\n");
    }
}

/// `DocumentMut` would group the dotted keys, spell both headers alike and end the last line.
#[test]
fn lines_that_an_edit_is_not_about_stay_as_they_are() {
    let text = "agents.rose.name = 'R'\r\nswitch = 1\nagents.ada.name = 'A'\nagents.rose.emoji = 'r'\n[ shared_paths . \"a\" ]\nread = []\n[shared_paths.'a'.b]\nx = 1 # end";
    let rest = "switch = 1\nagents.ada.name = 'A'\n[ shared_paths . \"a\" ]\nread = []\n[shared_paths.'a'.b]\nx = 1 # end";
    assert_eq!(take_out_agent(text, &id("rose")).unwrap().text, rest);
    assert_eq!(
        rename_agent(text, &id("rose"), &id("rosa")).unwrap(),
        text.replace("rose", "rosa")
    );
    assert_eq!(
        set_default(text, &id("ada"))
            .unwrap()
            .replace("default_agent = \"ada\"\n", ""),
        text
    );
    let binding = "\n\n[[bindings]]\nmatch = \"local\"\nagent = \"ada\"\n";
    assert_eq!(
        add_binding(text, "local", &id("ada")).unwrap(),
        format!("{text}{binding}")
    );
}

proptest! {
    /// For any order of tables: taking out and putting back loses no key, and edits give TOML.
    #[test]
    fn taking_out_and_putting_back_keeps_the_meaning(
        order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
        blank in proptest::collection::vec(any::<bool>(), 6),
    ) {
        let tables = [
            "# a\n[agents.rose]\nname = \"R\" # x\n", "[agents.rose.limits]\nn = 1\n", "[agents.ada]\nsystem_prompt = \"\"\"\n# a\n# b\"\"\"\n", "[access]\ndms = \"open\"\n# late\n",
            "[[bindings]]\nmatch = \"local:a\"\nagent = \"rose\"\n", "[[bindings]]\nagent = \"ada\"\nmatch = \"local:b\"\n",
        ];
        let parts = order.iter().zip(blank).map(|(index, blank)| format!("{}{}", tables[*index], if blank { "\n" } else { "" }));
        let text = parts.collect::<String>();
        let taken = take_out_agent(&text, &id("rose")).unwrap();
        prop_assert!(!taken.text.contains("rose"));
        let rest: toml::Table = taken.text.parse().unwrap();
        prop_assert!(rest["access"]["dms"].as_str() == Some("open"));
        prop_assert!(format!("{}{}", taken.text, taken.piece).contains("# late"), "no comment is lost");
        let back: toml::Table = put_back(&taken.text, &taken.piece).unwrap().parse().unwrap();
        let before: toml::Table = text.parse().unwrap();
        prop_assert_eq!(&back["agents"], &before["agents"]);
        prop_assert_eq!(back["bindings"].as_array().unwrap().len(), 2);
        let renamed: toml::Table = rename_agent(&text, &id("rose"), &id("rosa")).unwrap().parse().unwrap();
        prop_assert_eq!(&renamed["agents"]["rosa"], &before["agents"]["rose"]);
    }
}

#[test]
fn an_owner_is_added_and_nothing_else_changes() {
    let alice: PersonId = "telegram:11".parse().unwrap();
    let check = |text: &str, expected: &str| {
        let added = add_owner(text, &alice).unwrap();
        assert_eq!(added, expected);
        assert_eq!(add_owner(&added, &alice).unwrap(), added, "once");
    };
    check("", "[access]\nowners = [\"telegram:11\"]\n");
    check(
        "# mine\ndefault_agent = \"main\"",
        "# mine\ndefault_agent = \"main\"\n\n[access]\nowners = [\"telegram:11\"]\n",
    );
    check(
        "[access]  # who\r\n# how\r\ndms = \"open\"\r\n",
        "[access]  # who\r\nowners = [\"telegram:11\"]\r\n# how\r\ndms = \"open\"\r\n",
    );
    check("[access]", "[access]\nowners = [\"telegram:11\"]\n");
    check(
        "[access]\nowners = []  # nobody\n",
        "[access]\nowners = [\"telegram:11\"]  # nobody\n",
    );
    check(
        "[access]\nowners = [\n  \"discord:7\", # Bob\n]\n",
        "[access]\nowners = [\n  \"discord:7\", \"telegram:11\", # Bob\n]\n",
    );
    check(
        "access.owners = [\"discord:7\"]\n",
        "access.owners = [\"discord:7\", \"telegram:11\"]\n",
    );
    check(
        "access = { owners = [\"discord:7\"] }\n",
        "access = { owners = [\"discord:7\", \"telegram:11\"] }\n",
    );
    check(
        "[access.tools]\n",
        "[access.tools]\n\n[access]\nowners = [\"telegram:11\"]\n",
    );
    check(
        "# You.\n\n#[access]\n#owners = [\"telegram:12345678\"]\n\n# Them.\n[agents.main]\n",
        "# You.\n\n[access]\nowners = [\"telegram:11\"]\n\n# Them.\n[agents.main]\n",
    );
    check(
        "# [access]\n# dms = \"open\"",
        "[access]\nowners = [\"telegram:11\"]\n# dms = \"open\"",
    );
    check(
        "#[access]\ndefault_agent = \"main\"\n",
        "#[access]\ndefault_agent = \"main\"\n\n[access]\nowners = [\"telegram:11\"]\n",
    );
    for text in [
        "access = { dms = \"open\" }\n",
        "access.dms = \"open\"\n",
        "[access]\nowners = 5\n",
    ] {
        assert!(matches!(add_owner(text, &alice), Err(EditError::Form(..))));
    }
    assert_eq!(add_owner("not toml", &alice), Err(EditError::NotToml));
}

#[test]
fn a_route_test_is_added_and_nothing_else_changes() {
    let test = || toml_edit::Table::from_iter([("place", "local:home"), ("agent", "rose")]);
    let check = |text: &str, expected: &str| {
        assert_eq!(add_route_test(text, test()).unwrap(), expected);
    };
    let added = "[[route_tests]]\nplace = \"local:home\"\nagent = \"rose\"\n";
    check("", added);
    check(
        "# mine\nswitch   =  \"separate\"",
        &format!("# mine\nswitch   =  \"separate\"\n\n{added}"),
    );
    check(
        "[[route_tests]] # first\nplace = \"local:work\"\nagent = \"main\"\n\n# last\n[agents.rose]\n",
        &format!(
            "[[route_tests]] # first\nplace = \"local:work\"\nagent = \"main\"\n\n{added}\n# last\n[agents.rose]\n"
        ),
    );
    let crlf = add_route_test("[agents.rose]\r\n", test()).unwrap();
    assert_eq!(
        crlf,
        format!("[agents.rose]\n\n{added}").replace('\n', "\r\n")
    );
    let inline = "route_tests = [{ place = \"local:home\", agent = \"main\" }]\n";
    assert!(matches!(
        add_route_test(inline, test()),
        Err(EditError::Form(..))
    ));
}

#[test]
fn route_tests_follow_their_agent() {
    let text = "[agents.rose]\n\n# hers\n[[route_tests]]\nplace = \"local:home\"\nagent = \"rose\"\n\n[[route_tests]]\nplace = \"local:work\"\nagent = \"nobody\"\n";
    let renamed = rename_agent(text, &id("rose"), &id("lily")).unwrap();
    assert_eq!(renamed, text.replace("rose", "lily"));
    let taken = take_out_agent(text, &id("rose")).unwrap();
    assert_eq!(
        taken.text,
        "[[route_tests]]\nplace = \"local:work\"\nagent = \"nobody\"\n"
    );
    assert!(
        taken.piece.contains("# hers\n[[route_tests]]"),
        "{}",
        taken.piece
    );
    assert!(
        put_back(&taken.text, &taken.piece)
            .unwrap()
            .contains("# hers\n[[route_tests]]")
    );
    let (rest, _) = without_bindings(&taken.piece).unwrap();
    assert!(!rest.contains("route_tests"), "{rest}");
}
