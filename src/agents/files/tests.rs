use proptest::prelude::*;

use super::*;
use crate::config::AgentTools;

/// Rose may read Ada's files and write Main's; she writes the handbook and reads the archive.
fn rose() -> Files {
    let mut config = Config::embedded();
    let id = |text: &str| AgentId::parse(text).unwrap();
    for name in ["rose", "ada"] {
        let spec = config.agents[0].clone();
        config.agents.push(crate::config::AgentSpec {
            id: id(name),
            tools: AgentTools::default(),
            ..spec
        });
    }
    let access = Siblings {
        read: vec![id("ada")],
        write: vec![id("main")],
    };
    let shared = |name: &str, read: &[&str], write: &[&str]| {
        let ids = |list: &[&str]| list.iter().map(|name| id(name)).collect();
        SharedPath {
            name: name.into(),
            path: None,
            max_mb: 1,
            agents: Siblings {
                read: ids(read),
                write: ids(write),
            },
        }
    };
    config.tools.shared = vec![
        shared("handbook", &["ada"], &["rose"]),
        shared("archive", &["rose"], &[]),
        shared("secret", &["ada"], &["main"]),
    ];
    Workspaces::new(&config, Path::new("home")).of(&id("rose"), &access)
}

fn check(written: &str, want: Want, expected: &str) {
    let found = rose().find(written, want);
    let told = match found {
        Ok(found) => format!(
            "{} in {}",
            found.path.display(),
            found.workspace.root().display()
        ),
        Err(error) => error.to_string(),
    };
    assert_eq!(told, expected, "{written}");
}

#[test]
fn a_path_says_whose_file_it_is() {
    check(
        "notes/a.md",
        Want::Write,
        "notes/a.md in home/agents/rose/workspace",
    );
    check(
        "./notes//a.md/",
        Want::Read,
        "notes/a.md in home/agents/rose/workspace",
    );
    check("", Want::Read, ". in home/agents/rose/workspace");
    check(
        "@ada/notes/a.md",
        Want::Read,
        "notes/a.md in home/agents/ada/workspace",
    );
    check("@ada", Want::Read, ". in home/agents/ada/workspace");
    check(
        "@main/a.md",
        Want::Write,
        "a.md in home/agents/main/workspace",
    );
    check(
        "shared/handbook/a.md",
        Want::Write,
        "a.md in home/shared/handbook",
    );
    check("shared/archive", Want::Read, ". in home/shared/archive");
    check(
        "./shared/handbook",
        Want::Write,
        "shared/handbook in home/agents/rose/workspace",
    );
    check(
        "./@ada/a.md",
        Want::Write,
        "@ada/a.md in home/agents/rose/workspace",
    );
}

/// S3.9, S3.10, S4.5: the boundary is asked before the access list.
#[test]
fn a_path_never_leads_out() {
    let outside = |written: &str| {
        format!(
            "`{written}` leads out of the workspace. Paths begin in your workspace and have no `..`, such as `notes/today.md`."
        )
    };
    for written in [
        "..",
        "../x",
        "a/../../x",
        "a/..",
        "/etc/passwd",
        "/",
        "@ada/../x",
        "shared/../x",
        "./..",
    ] {
        check(written, Want::Read, &outside(written));
    }
    for odd in [
        "a\0b",
        "a\nb",
        "invoice\u{202e}fdp.exe",
        "a\u{2028}b",
        "\u{2066}a",
    ] {
        check(odd, Want::Read, &PathError::Unusable.to_string());
    }
    check(
        &"a/".repeat(40),
        Want::Read,
        &PathError::Unusable.to_string(),
    );
    check(
        &"a".repeat(2000),
        Want::Read,
        &PathError::Unusable.to_string(),
    );
}

/// S3.11, S3.12, S4.32
#[test]
fn what_is_not_listed_is_not_open() {
    let besides = "Open besides your own: `@main`, `@ada`, `shared/handbook`, `shared/archive`.";
    check(
        "@bob/x",
        Want::Read,
        &format!("`@bob` is not open to you. {besides}"),
    );
    check(
        "@rose/x",
        Want::Read,
        &format!("`@rose` is not open to you. {besides}"),
    );
    check(
        "shared/secret/x",
        Want::Read,
        &format!("`shared/secret` is not open to you. {besides}"),
    );
    check(
        "shared",
        Want::Read,
        &format!("`shared` is not open to you. {besides}"),
    );
    let read_only =
        "is open to you for reading only, by the access list of the config. Nothing was changed.";
    check("@ada/x", Want::Write, &format!("`@ada` {read_only}"));
    check(
        "shared/archive/x",
        Want::Write,
        &format!("`shared/archive` {read_only}"),
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..Default::default() })]

    #[test]
    fn whatever_is_written_stays_below_a_root(written in "[a.@/~\\\\ é-]{0,24}|(\\.\\./|a/|@ada/|shared/|handbook/|/|\\./){0,8}") {
        if let Ok(found) = rose().find(&written, Want::Read) {
            prop_assert!(found.path.components().all(|step| matches!(step, Component::Normal(_) | Component::CurDir)), "{:?}", found.path);
        }
    }
}
