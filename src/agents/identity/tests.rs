//! Files read from a home folder, and files left out.

use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::tests::agent_of;
use super::*;

fn home_with(files: &[(&str, &str)]) -> TempDir {
    let home = TempDir::new().unwrap();
    for (name, text) in files {
        write(&home, name, text);
    }
    home
}

fn write(home: &TempDir, name: &str, content: impl AsRef<[u8]>) {
    let path = home.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn load(home: &TempDir, id: &str) -> Identity {
    Identity::load(&agent_of(home.path(), id), true)
}

/// A line per file: name, origin, text.
fn summary(identity: &Identity) -> String {
    let line = |loaded: &LoadedFile| {
        format!(
            "{}: {} {}",
            loaded.file.name(),
            loaded.origin,
            loaded.content
        )
        .trim_end()
        .to_owned()
    };
    identity
        .files()
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

fn soul(identity: &Identity) -> &LoadedFile {
    identity.get(IdentityFile::Soul).unwrap()
}

const ROOT: [(&str, &str); 5] = [
    ("IDENTITY.md", "root i"),
    ("SOUL.md", "root s"),
    ("AGENTS.md", "root a"),
    ("TOOLS.md", "root t"),
    ("USER.md", "root u"),
];

/// S0.11, S1.9
#[test]
fn only_what_an_agent_overrides_is_its_own() {
    let home = home_with(&ROOT);
    write(&home, "agents/dot/SOUL.md", "dot's soul");
    insta::assert_snapshot!(summary(&load(&home, "dot")), @"
    IDENTITY.md: inherited root i
    SOUL.md: own dot's soul
    AGENTS.md: inherited root a
    TOOLS.md: inherited root t
    USER.md: inherited root u
    BOOTSTRAP.md: missing
    MEMORY.md: missing
    ");
}

/// S0.3, S0.10
#[test]
fn a_new_soul_counts_at_once_and_only_for_its_agent() {
    let home = home_with(&ROOT);
    assert_eq!(soul(&load(&home, "dot")).content, "root s");

    write(&home, "agents/dot/SOUL.md", "dot's soul");
    assert_eq!(soul(&load(&home, "dot")).content, "dot's soul");
    assert_eq!(soul(&load(&home, "ada")).content, "root s");

    fs::remove_file(home.path().join("agents/dot/SOUL.md")).unwrap();
    assert_eq!(soul(&load(&home, "dot")).content, "root s");
}

/// S0.55, S1.29
#[test]
fn an_agent_with_an_empty_or_absent_folder_has_the_root_identity() {
    let home = home_with(&ROOT);
    fs::create_dir_all(home.path().join("agents/empty")).unwrap();
    for id in ["empty", "absent"] {
        let identity = load(&home, id);
        assert_eq!(
            (soul(&identity).origin, soul(&identity).content.as_str()),
            (FileOrigin::Inherited, "root s"),
            "{id}"
        );
    }
}

/// S1.29
#[test]
fn a_home_without_any_file_is_no_error() {
    let identity = load(&home_with(&[]), "dot");
    assert!(
        identity
            .files()
            .iter()
            .all(|loaded| loaded.origin == FileOrigin::Missing && loaded.problem.is_none())
    );
}

/// S1.14
#[test]
fn memory_and_bootstrap_are_never_inherited() {
    let home = home_with(&[
        ("MEMORY.md", "root"),
        ("BOOTSTRAP.md", "root"),
        ("agents/rose/MEMORY.md", "rose's"),
    ]);
    let dot = load(&home, "dot");
    for file in [IdentityFile::Memory, IdentityFile::Bootstrap] {
        assert_eq!(dot.get(file).unwrap().origin, FileOrigin::Missing);
    }
    assert_eq!(
        load(&home, "rose")
            .get(IdentityFile::Memory)
            .unwrap()
            .content,
        "rose's"
    );
}

/// S3.5
#[test]
fn bootstrap_is_read_only_until_the_first_turn_is_finished() {
    let home = home_with(&[("agents/dot/BOOTSTRAP.md", "say hello")]);
    let dot = agent_of(home.path(), "dot");
    assert_eq!(
        Identity::load(&dot, true)
            .get(IdentityFile::Bootstrap)
            .unwrap()
            .content,
        "say hello"
    );
    assert_eq!(
        Identity::load(&dot, false).get(IdentityFile::Bootstrap),
        None
    );
}

fn dot_with(home: &TempDir, personality: &str) -> Identity {
    Identity::load(
        &Agent {
            personality: Some(personality.into()),
            ..agent_of(home.path(), "dot")
        },
        true,
    )
}

/// S0.6: the personality file of the config replaces SOUL.md, wherever SOUL.md is.
#[test]
fn a_personality_is_read_in_place_of_the_soul() {
    let home = home_with(&ROOT);
    write(&home, "agents/dot/SOUL.md", "dot's soul");
    write(&home, "agents/dot/voices/night.md", "dot at night");
    let identity = dot_with(&home, "voices/night.md");
    let loaded = soul(&identity);
    assert_eq!(
        (loaded.name(), loaded.origin, loaded.content.as_str()),
        ("voices/night.md", FileOrigin::Own, "dot at night")
    );
    assert_eq!(loaded.problem, None);
    assert_eq!(
        identity.get(IdentityFile::Identity).unwrap().content,
        "root i",
        "the others are as before"
    );
}

/// S0.6
#[test]
fn nothing_stands_in_for_a_personality_that_is_missing() {
    let home = home_with(&ROOT);
    write(&home, "night.md", "of the house");
    write(&home, "agents/dot/SOUL.md", "dot's soul");
    write(&home, "agents/dot/day.md/inside", "x");
    for (path, problem) in [
        ("night.md", "agents/dot/night.md is not there"),
        ("day.md", "day.md cannot be read: it is a folder"),
    ] {
        let identity = dot_with(&home, path);
        let loaded = soul(&identity);
        assert_eq!(
            (loaded.origin, loaded.content.as_str()),
            (FileOrigin::Missing, ""),
            "{path}"
        );
        assert!(
            loaded.problem.as_ref().unwrap().ends_with(problem),
            "{:?}",
            loaded.problem
        );
    }
}

#[test]
fn an_empty_file_of_its_own_silences_the_inherited_one() {
    let home = home_with(&[("SOUL.md", "root"), ("agents/dot/SOUL.md", "")]);
    assert_eq!(
        (
            soul(&load(&home, "dot")).origin,
            soul(&load(&home, "dot")).content.as_str()
        ),
        (FileOrigin::Own, "")
    );
}

#[test]
fn what_is_no_readable_file_is_passed_over_and_reported() {
    let home = home_with(&[("SOUL.md", "root"), ("agents/dot/SOUL.md/inside", "x")]);
    let identity = load(&home, "dot");
    assert_eq!(
        (soul(&identity).origin, soul(&identity).content.as_str()),
        (FileOrigin::Inherited, "root")
    );
    assert!(
        soul(&identity)
            .problem
            .as_ref()
            .unwrap()
            .ends_with("SOUL.md cannot be read: it is a folder")
    );
}

#[test]
fn an_agent_folder_that_is_a_file_is_reported() {
    let home = home_with(&[("SOUL.md", "root"), ("agents/dot", "not a folder")]);
    let identity = load(&home, "dot");
    assert_eq!(soul(&identity).content, "root");
    assert!(soul(&identity).problem.is_some());
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_a_link_to_nothing_is_reported() {
    let home = home_with(&[
        ("shared/voice.md", "shared voice"),
        ("agents/dot/IDENTITY.md", "dot"),
    ]);
    std::os::unix::fs::symlink(
        home.path().join("shared/voice.md"),
        home.path().join("agents/dot/SOUL.md"),
    )
    .unwrap();
    std::os::unix::fs::symlink("nowhere.md", home.path().join("agents/dot/USER.md")).unwrap();
    let identity = load(&home, "dot");
    assert_eq!(soul(&identity).content, "shared voice");
    assert!(identity.get(IdentityFile::User).unwrap().problem.is_some());
}

#[cfg(unix)]
#[test]
fn a_fifo_does_not_block() {
    let home = home_with(&[("agents/dot/IDENTITY.md", "dot")]);
    let fifo = home.path().join("agents/dot/SOUL.md");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let agent = agent_of(home.path(), "dot");
    let (done, loaded) = mpsc::channel();
    thread::spawn(move || done.send(Identity::load(&agent, true)));
    let identity = loaded
        .recv_timeout(Duration::from_secs(10))
        .expect("loading does not wait for a writer");
    assert!(
        soul(&identity)
            .problem
            .as_ref()
            .unwrap()
            .ends_with("it is not a regular file")
    );
}

#[test]
fn a_long_file_is_cut_at_a_line_and_says_so() {
    let home = home_with(&[]);
    write(
        &home,
        "agents/dot/SOUL.md",
        "a line of text that is not the last\n".repeat(1138),
    );
    let content = soul(&load(&home, "dot")).content.clone();
    let (kept, marker) = content.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(
        marker,
        "[cut: SOUL.md is 41 KiB and only its first 16 KiB are read]"
    );
    assert!(kept.len() <= MAX_FILE_BYTES && kept.ends_with("not the last"));
}

#[test]
fn a_file_of_exactly_the_limit_is_whole() {
    let home = home_with(&[("agents/dot/SOUL.md", &"x".repeat(MAX_FILE_BYTES))]);
    assert_eq!(
        soul(&load(&home, "dot")).content,
        "x".repeat(MAX_FILE_BYTES)
    );
}

#[test]
fn a_character_torn_by_the_limit_leaves_no_mark() {
    for lead in 0..4 {
        let text = format!("{}{}", "x".repeat(lead), "🌹".repeat(5000));
        let home = home_with(&[
            ("agents/dot/SOUL.md", &text),
            ("agents/bom/SOUL.md", &format!("\u{feff}{text}")),
        ]);
        for id in ["dot", "bom"] {
            let content = soul(&load(&home, id)).content.clone();
            assert!(
                content.starts_with(&text[..text.floor_char_boundary(MAX_FILE_BYTES - 8)])
                    && !content.contains('\u{fffd}'),
                "{id} {lead}"
            );
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let home = home_with(&[]);
    write(&home, "agents/dot/SOUL.md", b"\xef\xbb\xbfcaf\xe9 open");
    assert_eq!(soul(&load(&home, "dot")).content, "caf\u{fffd} open");
}

proptest! {
    #[test]
    fn a_head_is_a_start_within_the_limit(text in "(.|\n){0,80}", max_bytes in 0usize..120) {
        let head = head(&text, max_bytes);
        prop_assert!(text.starts_with(head) && head.len() <= max_bytes);
        prop_assert!(head.len() + 4 > max_bytes / 2 || head == text);
    }

    #[test]
    fn any_bytes_become_bounded_text(chunk in proptest::collection::vec(any::<u8>(), 1..40), times in 1usize..1500) {
        let bytes = chunk.repeat(times);
        let start = &bytes[..bytes.len().min(MAX_FILE_BYTES + 1)];
        let text = bounded("SOUL.md", start, bytes.len() as u64);
        prop_assert!(text.len() <= MAX_FILE_BYTES + 100);
        prop_assert!(bytes.len() <= MAX_FILE_BYTES || text.contains("[cut: SOUL.md is "));
    }
}
