use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn text(folder: &Path) -> String {
    fs::read_to_string(folder.join(MEMORY_FILE)).unwrap_or_default()
}

fn names(folder: &Path) -> Vec<String> {
    versions(folder)
        .unwrap()
        .into_iter()
        .map(|version| version.name)
        .collect()
}

fn moment(millis: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_800_000_000_000 + millis).unwrap()
}

#[test]
fn edits_add_replace_and_remove() {
    let add = |text: &str| Edit::Add(text.into());
    let remove = |text: &str| Edit::Remove(text.into());
    assert_eq!(apply("", &add(" tea at four \n")).unwrap(), "tea at four\n");
    assert_eq!(apply("a\n", &add("b")).unwrap(), "a\nb\n");
    assert_eq!(apply("a\n\nb\n\nc\n", &remove("b")).unwrap(), "a\n\nc\n");
    assert_eq!(apply("a\n", &remove("a")).unwrap(), "");
    let replace = Edit::Replace {
        old: "four".into(),
        new: "five".into(),
    };
    assert_eq!(apply("tea at four\n", &replace).unwrap(), "tea at five\n");

    let told = |current: &str, edit: &Edit| apply(current, edit).unwrap_err().to_string();
    insta::assert_snapshot!(told("", &add("  ")), @"There is nothing to add.");
    insta::assert_snapshot!(told("a", &remove("")), @"Say which text of MEMORY.md is meant.");
    insta::assert_snapshot!(told("a", &remove("b")), @"MEMORY.md does not have that text. Repeat it exactly as it stands there.");
    insta::assert_snapshot!(told("b b", &remove("b")), @"MEMORY.md has that text 2 times. Repeat more of what stands around it.");
    insta::assert_snapshot!(told("", &add(&"x".repeat(MAX_FILE_BYTES))), @"MEMORY.md would have 17 KiB, and 16 KiB are the most. Remove or shorten something first; details belong into daily notes.");
}

#[test]
fn a_file_that_is_too_long_can_be_made_shorter() {
    let long = format!("{}\nlast\n", "x".repeat(MAX_FILE_BYTES));
    assert!(apply(&long, &Edit::Remove("last".into())).is_ok());
    assert!(apply(&long, &Edit::Add("more".into())).is_err());
}

#[test]
fn earlier_versions_can_be_restored_and_only_so_many_are_kept() {
    let folder = TempDir::new().unwrap();
    for number in 0..MOST_VERSIONS + 5 {
        edit(
            folder.path(),
            &Edit::Add(format!("line {number}")),
            moment(0),
        )
        .unwrap();
    }
    let kept = names(folder.path());
    assert_eq!(kept.len(), MOST_VERSIONS);
    let now = text(folder.path());

    restore(folder.path(), &kept[0], moment(5)).unwrap();
    assert_eq!(
        format!("{}line {}\n", text(folder.path()), MOST_VERSIONS + 4),
        now
    );
    // The former text is a version now, so a restore is undone the same way.
    restore(folder.path(), &names(folder.path())[0], moment(6)).unwrap();
    assert_eq!(text(folder.path()), now);

    for bad in ["nope", "../../MEMORY", ""] {
        assert!(
            matches!(
                restore(folder.path(), bad, moment(7)),
                Err(EditError::Refused(_))
            ),
            "{bad}"
        );
    }
}

#[test]
fn edits_at_once_lose_none() {
    let folder = TempDir::new().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let folder = folder.path();
            scope.spawn(move || {
                for number in 0..25 {
                    edit(
                        folder,
                        &Edit::Add(format!("{writer}:{number}")),
                        moment(number),
                    )
                    .unwrap();
                }
            });
        }
    });
    assert_eq!(text(folder.path()).lines().count(), 100);
}

#[test]
fn a_linked_file_stays_a_link() {
    let (folder, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let target = elsewhere.path().join("shared.md");
    fs::write(&target, "one\n").unwrap();
    std::os::unix::fs::symlink(&target, folder.path().join(MEMORY_FILE)).unwrap();
    edit(folder.path(), &Edit::Add("two".into()), moment(0)).unwrap();
    assert_eq!(fs::read_to_string(target).unwrap(), "one\ntwo\n");
    assert!(folder.path().join(MEMORY_FILE).is_symlink());
}

fn edits() -> impl Strategy<Value = Edit> {
    let line = "[a-c ]{0,6}";
    prop_oneof![
        line.prop_map(Edit::Add),
        (line, line).prop_map(|(old, new)| Edit::Replace { old, new }),
        line.prop_map(Edit::Remove),
        Just(Edit::Add("x".repeat(MAX_FILE_BYTES / 3))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..Default::default() })]

    /// The file always holds the result of the accepted edits, within its bound; the newest version
    /// holds the text before.
    #[test]
    fn the_file_is_what_its_edits_say(edits in proptest::collection::vec(edits(), 1..12)) {
        let folder = TempDir::new().unwrap();
        let mut expected = String::new();
        for (number, edited) in (0..).zip(&edits) {
            let before = expected.clone();
            match apply(&expected, edited) {
                Ok(new) => {
                    prop_assert_eq!(edit(folder.path(), edited, moment(number)).unwrap(), new.len());
                    expected = new;
                }
                Err(_) => prop_assert!(edit(folder.path(), edited, moment(number)).is_err()),
            }
            prop_assert_eq!(&text(folder.path()), &expected);
            prop_assert!(expected.len() <= MAX_FILE_BYTES);
            if before != expected && !before.is_empty() {
                let newest = names(folder.path()).remove(0);
                prop_assert_eq!(fs::read_to_string(version_path(folder.path(), &newest)).unwrap(), before);
            }
        }
        let leftovers = fs::read_dir(folder.path()).unwrap().flatten();
        let leftovers = leftovers.filter(|entry| entry.file_name().to_string_lossy().ends_with(".new"));
        prop_assert_eq!(leftovers.count(), 0);
    }
}

/// A person saves the file in an editor during the agent's change: the file has both changes
/// afterwards.
#[test]
fn what_a_person_saves_meanwhile_is_not_lost() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("MEMORY.md");
    fs::write(&path, "tea\n").unwrap();
    let saved = std::cell::Cell::new(false);
    let by_agent = |current: &str| {
        if !saved.replace(true) {
            fs::write(&path, "tea\ncoffee\n").unwrap();
        }
        apply(current, &Edit::Add("milk".into())).map_err(EditError::from)
    };
    change(folder.path(), Utc::now(), by_agent).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "tea\ncoffee\nmilk\n");
    assert!(!folder.path().join(".MEMORY.md.new").exists());

    let never_at_rest = std::cell::Cell::new(0);
    let by_agent = |current: &str| {
        never_at_rest.set(never_at_rest.get() + 1);
        fs::write(&path, format!("{}\n", never_at_rest.get())).unwrap();
        apply(current, &Edit::Add("milk".into())).map_err(EditError::from)
    };
    let told = change(folder.path(), Utc::now(), by_agent)
        .unwrap_err()
        .to_string();
    assert_eq!(
        told,
        "Somebody else is changing MEMORY.md right now. Nothing was changed; try again later."
    );
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        format!("{}\n", never_at_rest.get())
    );
}

/// Neither waited for nor read into memory.
#[test]
fn what_is_no_file_of_a_usual_size_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("MEMORY.md");
    let told = || {
        edit(folder.path(), &Edit::Add("tea".into()), Utc::now())
            .unwrap_err()
            .to_string()
    };
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(
        told(),
        "MEMORY.md has more than 1024 KiB. An operator must make it shorter first. Nothing was changed."
    );
    fs::remove_file(&path).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(
        told(),
        "MEMORY.md is no regular file, so it is left alone. Nothing was changed."
    );
}
