use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// A workspace in a home with a secret beside it.
struct Place {
    home: TempDir,
    workspace: Workspace,
}

fn place() -> Place {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("secret"), "nobody's business").unwrap();
    std::fs::create_dir(home.path().join("agent")).unwrap();
    let workspace = Workspace::new(home.path().join("agent/workspace"), 1);
    workspace.write(Path::new("mine.md"), b"mine").unwrap();
    Place { home, workspace }
}

impl Place {
    fn at(&self, path: &str) -> PathBuf {
        self.workspace.root().join(path)
    }

    fn read(&self, path: &str) -> Result<String, FileError> {
        self.workspace
            .read(Path::new(path), 1000)
            .map(|content| String::from_utf8(content).unwrap())
    }

    fn write(&self, path: &str, content: &str) -> Result<(), FileError> {
        self.workspace.write(Path::new(path), content.as_bytes())
    }

    fn secret_is_untouched(&self) {
        assert_eq!(
            std::fs::read_to_string(self.home.path().join("secret")).unwrap(),
            "nobody's business"
        );
        let mut names: Vec<_> = std::fs::read_dir(self.home.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["agent", "secret"]);
    }
}

/// S3.4
#[test]
fn a_workspace_is_made_when_it_is_first_used_and_is_private() {
    let place = place();
    let mode = |path: &str| {
        std::fs::metadata(place.at(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    place.write("deep/er/a.md", "a").unwrap();
    assert_eq!(
        (
            mode(""),
            mode("deep"),
            mode("deep/er"),
            mode("deep/er/a.md")
        ),
        (0o700, 0o700, 0o700, 0o600)
    );
    std::fs::remove_dir_all(place.workspace.root()).unwrap();
    place.write("a.md", "again").unwrap();
    assert_eq!(place.read("a.md").unwrap(), "again");
}

/// S1.2, S3.10, S4.28
#[test]
fn links_lead_nowhere_but_inside() {
    let place = place();
    symlink(place.home.path().join("secret"), place.at("absolute")).unwrap();
    symlink("../../secret", place.at("relative")).unwrap();
    symlink("../..", place.at("up")).unwrap();
    symlink("mine.md", place.at("inside")).unwrap();
    symlink("loop", place.at("loop")).unwrap();
    for path in [
        "absolute",
        "relative",
        "up/secret",
        "up/agent/workspace/mine.md",
    ] {
        assert_eq!(place.read(path), Err(FileError::Outside), "{path}");
    }
    assert_eq!(place.read("inside").unwrap(), "mine");
    assert!(place.read("loop").is_err());
    for path in ["absolute", "relative", "inside", "loop"] {
        assert_eq!(place.write(path, "x"), Err(FileError::Link), "{path}");
    }
    assert_eq!(place.write("up/secret", "x"), Err(FileError::Outside));
    assert_eq!(place.write("up/new/folder", "x"), Err(FileError::Outside));
    assert_eq!(
        place.workspace.remove(Path::new("up/secret")),
        Err(FileError::Outside)
    );
    place.workspace.remove(Path::new("absolute")).unwrap();
    place.secret_is_untouched();
}

#[test]
fn a_workspace_that_is_a_link_is_not_used() {
    let place = place();
    let other = Workspace::new(place.home.path().join("agent/link"), 1);
    symlink(place.workspace.root(), other.root()).unwrap();
    assert!(other.read(Path::new("mine.md"), 10).is_err());
}

#[test]
fn a_hard_link_is_neither_read_nor_written() {
    let place = place();
    std::fs::hard_link(place.home.path().join("secret"), place.at("linked")).unwrap();
    assert_eq!(place.read("linked"), Err(FileError::HardLink));
    assert_eq!(place.write("linked", "x"), Err(FileError::HardLink));
    place.secret_is_untouched();
}

/// A read of a pipe without a writer would wait for ever.
#[test]
fn what_is_no_file_is_refused_at_once() {
    let place = place();
    assert!(
        Command::new("mkfifo")
            .arg(place.at("pipe"))
            .status()
            .unwrap()
            .success()
    );
    let _socket = std::os::unix::net::UnixListener::bind(place.at("socket")).unwrap();
    symlink("/dev/zero", place.at("device")).unwrap();
    assert_eq!(place.read("pipe"), Err(FileError::NotAFile("a pipe")));
    assert_eq!(place.write("pipe", "x"), Err(FileError::NotAFile("a pipe")));
    assert_eq!(place.read("socket"), Err(FileError::NotAFile("a socket")));
    assert_eq!(place.read("device"), Err(FileError::Outside));
    assert_eq!(place.read("."), Err(FileError::IsFolder));
    assert_eq!(place.write(".", "x"), Err(FileError::IsFolder));
    assert_eq!(place.read("none"), Err(FileError::NotFound));
    assert_eq!(place.read("mine.md/x"), Err(FileError::NoFolder));
    assert_eq!(place.write("mine.md/x", "x"), Err(FileError::NoFolder));
}

/// A folder is swapped for a link out, again and again, while files are read and written inside.
#[test]
fn a_link_that_is_swapped_in_meanwhile_leads_nowhere() {
    let place = place();
    std::fs::create_dir(place.home.path().join("agent/target")).unwrap();
    std::fs::write(place.home.path().join("agent/target/a.md"), "secret").unwrap();
    place.write("folder/a.md", "mine").unwrap();
    let (folder, aside) = (place.at("folder"), place.at("aside"));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                std::fs::rename(&folder, &aside).unwrap();
                if symlink("../target", &folder).is_ok() {
                    std::fs::remove_file(&folder).unwrap();
                }
                // While the name was free, a write may have made a folder with this name.
                while std::fs::rename(&aside, &folder).is_err() {
                    drop(std::fs::remove_dir_all(&folder));
                }
            }
        });
        for _ in 0..400 {
            if let Ok(text) = place.read("folder/a.md") {
                assert_eq!(text, "mine");
            }
            // The edit may find the folder gone and make none: the name is taken by the link or
            // free for a moment.
            drop(
                place
                    .workspace
                    .edit(Path::new("folder/a.md"), 100, Labels::NONE, |content| {
                        Ok::<_, FileError>((content, ()))
                    }),
            );
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(
        std::fs::read_to_string(place.home.path().join("agent/target/a.md")).unwrap(),
        "secret"
    );
    assert_eq!(
        std::fs::read_dir(place.home.path().join("agent/target"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn a_full_workspace_takes_no_more_until_something_is_deleted() {
    let place = place();
    let half = "x".repeat(500_000);
    place.write("one", &half).unwrap();
    place.write("one", &half).unwrap();
    let full = Err(FileError::Full {
        quota_mb: 1,
        used_mb: 1,
    });
    assert_eq!(place.write("two", &half), full);
    assert_eq!(place.workspace.has_room_for(600_000), full);
    // Files put there by other programs count from the next counting on, and deletions count at
    // once.
    place.workspace.remove(Path::new("one")).unwrap();
    place.write("two", &half).unwrap();
    let incoming = place.home.path().join("agent/incoming");
    std::fs::write(&incoming, &half).unwrap();
    assert_eq!(
        place
            .workspace
            .take_in(&incoming, Path::new("inbox/three"))
            .map(drop),
        full
    );
    assert!(incoming.exists());
    place.workspace.remove(Path::new("two")).unwrap();
    place
        .workspace
        .take_in(&incoming, Path::new("inbox/three"))
        .unwrap();
    assert!(!incoming.exists() && place.at("inbox/three").exists());
}

#[test]
fn many_small_files_fill_it_too() {
    let place = place();
    let written = (0..1000)
        .take_while(|number| place.write(&number.to_string(), "").is_ok())
        .count();
    assert!((200..250).contains(&written), "{written}");
}

#[test]
fn a_large_file_is_not_read_whole() {
    let place = place();
    std::fs::File::create(place.at("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    assert_eq!(
        place.read("huge"),
        Err(FileError::TooLarge {
            bytes: 1 << 40,
            max_bytes: 1000
        })
    );
}

/// No reader ever sees a half-written file, and nothing is left lying about.
#[test]
fn writing_is_all_or_nothing() {
    let place = place();
    let (short, long) = ("a".repeat(10), "b".repeat(900));
    place.write("file", &short).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..50).for_each(|number| {
                place
                    .write("file", if number % 2 == 0 { &long } else { &short })
                    .unwrap();
            });
        });
        for _ in 0..500 {
            let text = place.read("file").unwrap();
            assert!(text == short || text == long, "{} bytes", text.len());
        }
    });
    assert_eq!(
        std::fs::read_dir(place.workspace.root()).unwrap().count(),
        2
    );
}

fn any_link() -> impl Strategy<Value = (String, String)> {
    let name = "[abc]";
    let target = "(\\.\\./){0,4}(secret|agent|[abc]|\\.)(/[abc]){0,2}|/|/etc|/etc/passwd|\\.\\.";
    (name, target)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..Default::default() })]

    /// With any links and folders in a workspace, no path reads or changes anything outside.
    #[test]
    fn no_path_leaves_the_workspace(
        links in proptest::collection::vec(any_link(), 0..6),
        folders in proptest::collection::vec("[abc](/[abc]){0,2}", 0..3),
        paths in proptest::collection::vec("(\\./|\\.\\./|[abc]/|secret/|agent/){0,4}([abc]|secret|\\.\\.|passwd)", 1..8),
    ) {
        let place = place();
        for folder in folders {
            drop(std::fs::create_dir_all(place.at(&folder)));
        }
        for (name, target) in links {
            drop(symlink(target, place.at(&name)));
        }
        for path in paths {
            if let Ok(text) = place.read(&path) {
                prop_assert!(text == "mine" || text == "written", "{} has {:?}", path, text);
            }
            drop(place.write(&path, "written"));
            drop(place.workspace.remove(Path::new(&path)));
            drop(place.workspace.walk(Path::new(&path), usize::MAX, |entry| {
                assert_ne!(entry.path.file_name().unwrap(), "passwd");
                std::ops::ControlFlow::Continue(())
            }));
        }
        place.secret_is_untouched();
    }
}

/// Folders count the same when made, when removed, and in a count of the whole workspace.
#[test]
fn folders_do_not_get_around_the_quota() {
    let place = place();
    place.write("large", &"x".repeat(900_000)).unwrap();
    for _ in 0..300 {
        place.write("a/b/c/d", "x").unwrap();
        for path in ["a/b/c/d", "a/b/c", "a/b", "a"] {
            place.workspace.remove(Path::new(path)).unwrap();
        }
    }
    assert!(
        matches!(
            place.write("another", &"x".repeat(900_000)),
            Err(FileError::Full { .. })
        ),
        "it was counted down"
    );

    let deep = |n: usize| format!("{n}/{}file", "f/".repeat(28));
    let fitted = (0..50)
        .filter(|n| place.write(&deep(*n), "").is_ok())
        .count();
    assert!(fitted < 2, "{fitted} times thirty folders");
    let made = std::fs::read_dir(place.workspace.root()).unwrap().count();
    assert!(
        made <= 3,
        "what does not fit leaves no folders behind: {made}"
    );
}

/// Finding 6: a name that is there gets a number, and the same file twice is one.
#[test]
fn no_file_of_people_takes_the_place_of_another() {
    let place = place();
    let take = |content: &str| {
        let incoming = place.home.path().join("agent/incoming");
        std::fs::write(&incoming, content).unwrap();
        let taken = place
            .workspace
            .take_in(&incoming, Path::new("inbox/x/contract.txt"))
            .unwrap();
        assert!(!incoming.exists());
        taken.display().to_string()
    };
    assert_eq!(take("Pay Ann"), "inbox/x/contract.txt");
    assert_eq!(take("Pay Eve"), "inbox/x/contract-2.txt");
    assert_eq!(take("Pay Ann"), "inbox/x/contract.txt");
    assert_eq!(take("Pay Bob"), "inbox/x/contract-3.txt");
    let read = |path: &str| std::fs::read_to_string(place.at(path)).unwrap();
    assert_eq!(read("inbox/x/contract.txt"), "Pay Ann");
    assert_eq!(read("inbox/x/contract-2.txt"), "Pay Eve");
}

/// Finding 7: the share of guests is 5 %, here 50 KB. The oldest of theirs goes, and nobody else's.
#[test]
fn guests_have_a_share_of_the_workspace() {
    let place = place();
    let take = |name: &str, bytes: usize| {
        let incoming = place.home.path().join("agent/incoming");
        std::fs::write(&incoming, "x".repeat(bytes)).unwrap();
        place.workspace.make_room_for_guest(bytes as u64)?;
        place
            .workspace
            .take_in(&incoming, Path::new(name))
            .map(drop)
    };
    place
        .write("inbox/a/of-a-member", &"x".repeat(500_000))
        .unwrap();
    place
        .write("inbox/a/deep/guests", &"x".repeat(50_000))
        .unwrap();
    for (number, folder) in [(1, "a"), (2, "b"), (3, "a"), (4, "c")] {
        take(&format!("inbox/{folder}/guests/{number}"), 15_000).unwrap();
        let modified = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number);
        let file = std::fs::File::options()
            .write(true)
            .open(place.at(&format!("inbox/{folder}/guests/{number}")))
            .unwrap();
        file.set_modified(modified).unwrap();
    }
    let is_there = |path: &str| place.at(path).exists();
    assert!(!is_there("inbox/a/guests/1"), "the oldest");
    for path in [
        "inbox/b/guests/2",
        "inbox/a/guests/3",
        "inbox/c/guests/4",
        "inbox/a/of-a-member",
        "inbox/a/deep/guests",
    ] {
        assert!(is_there(path), "{path}");
    }
    let too_large = take("inbox/c/guests/5", 60_000);
    assert!(
        matches!(
            too_large,
            Err(FileError::TooLarge {
                max_bytes: 50_000,
                ..
            })
        ),
        "{too_large:?}"
    );
    assert!(
        is_there("inbox/c/guests/4"),
        "nothing went for a file that cannot come"
    );
}
