//! Disks that take no more bytes, files that may not be written, and databases that are damaged:
//! nothing is confirmed that is not stored, and nothing is overwritten that may still be saved.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::cli::run;
use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB};
use crate::support::house::{Process, ask, parlor};
use crate::support::seeded::Seeded;
use crate::support::tell_skipped;

const OPEN: &str = "[access]\nowners = [\"telegram:111\"]\ndms = \"open\"\n";
const PAGE: u64 = 4096;

/// A limit of the system for the length of files stands for a full disk: it is met in the middle of
/// any write, at a byte of our choice, and can be lifted while the process runs.
#[cfg(target_os = "linux")]
mod full {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    use super::*;

    /// The process gets an error instead of a signal.
    fn without_signal(home: &Path) -> Command {
        let program = parlor(home).as_std().get_program().to_owned();
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "trap '' XFSZ; exec \"$0\" run"])
            .arg(program)
            .env_clear()
            .env("PARLOR_HOME", home)
            .env("USER", "ann")
            .stdin(std::process::Stdio::null());
        command
    }

    fn limit_files(process: &Process, bytes: Option<u64>) {
        let pid = i32::try_from(process.pid()).ok().and_then(Pid::from_raw);
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(pid, Resource::Fsize, limit).expect("the limit is set");
    }

    /// Returns when the gateway waits for the disk, or has done everything without a wait.
    async fn meets_the_limit(house: &House, process: &Process, waits_before: usize) -> bool {
        let looking = async {
            loop {
                if waits(process) > waits_before {
                    return true;
                }
                let open = "SELECT (SELECT count(*) FROM inbox WHERE state = 'waiting')
                                 + (SELECT count(*) FROM outbox WHERE state <> 'sent')";
                if house.telegram.dm(ALICE).texts().len() > 1 && house.ask(open) == "0" {
                    return false;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let patience = std::time::Duration::from_secs(30);
        let met = tokio::time::timeout(patience, looking).await;
        met.unwrap_or_else(|_| panic!("neither waits nor answers:\n{}", process.log()))
    }

    fn waits(process: &Process) -> usize {
        let log = process.log();
        log.matches("waits for the store").count() + log.matches("could not be stored").count()
    }

    /// Every further page is a later write: the message itself, the turn, the answer, the note that
    /// it was sent.
    #[tokio::test]
    async fn a_disk_that_is_full_at_any_write_loses_nothing_and_repeats_nothing() {
        let mut met = 0;
        for pages in [0, 1, 3, 6, 9, 12, 16, 20, 25, 32, 40] {
            let house = House::new(OPEN).await;
            let (alice, polls) = (house.telegram.dm(ALICE), "getUpdates");
            let process = Process::start_as(without_signal(house.home.path()), house.home.path());
            house.telegram.wait_for_calls(polls, 1).await;
            alice.says("before").await;
            alice.wait_for_sent(1).await;
            house
                .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
                .await;
            let log = house.home.path().join("parlor.db-wal");
            let before = std::fs::metadata(&log).expect("a log").len();
            // In the middle of a page.
            limit_files(&process, Some(before + pages * PAGE + PAGE / 3));
            let asked = alice.says("in need").await;
            let has_met = meets_the_limit(&house, &process, 0).await;
            if has_met && house.ask("SELECT count(*) FROM inbox") == "1" {
                let is_confirmed = house.telegram.is_confirmed(asked.update_id);
                assert!(!is_confirmed, "{pages}: confirmed, and not stored");
            }
            if has_met && pages == 0 {
                let status = run(house.home.path(), &["status"]).await;
                let told = status.stdout;
                assert!(told.contains("nothing can be stored: "), "{told}");
            }
            met += usize::from(has_met);
            limit_files(&process, None);
            alice.wait_for_sent(2).await;
            house.telegram.all_confirmed().await;
            alice.says("after").await;
            alice.wait_for_sent(3).await;
            assert_eq!(process.stop().await, 0, "{pages}");
            assert_eq!(
                alice.texts(),
                ["re: before", "re: in need", "re: after"],
                "{pages}"
            );
        }
        assert!(met >= 4, "only {met} of the limits were met");
    }
}

/// A user whom permissions stop. They stop nobody who is root, so root hands the home to `nobody`.
struct Bound<'a> {
    house: &'a House,
}

const NOBODY: u32 = 65_534;
/// Time for a start that is refused, on a loaded machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

impl Bound<'_> {
    /// None where this user's programs cannot be started.
    async fn new(house: &House) -> Option<Bound<'_>> {
        let bound = Bound { house };
        for path in everything_in(house.home.path()) {
            if bound.is_root() {
                std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
            }
        }
        let started = bound.command(&["--version"]).status().await;
        if started.is_ok_and(|status| status.success()) {
            return Some(bound);
        }
        tell_skipped("the program cannot be started by the user nobody");
        None
    }

    fn is_root(&self) -> bool {
        std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = parlor(self.house.home.path());
        command.args(arguments);
        if self.is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// What a start says that is refused.
    async fn refused(&self) -> String {
        let mut command = self.command(&["run"]);
        command.kill_on_drop(true);
        let ran = tokio::time::timeout(PATIENCE, command.output()).await;
        let ran = ran.expect("a refused start ends").expect("it starts");
        assert_eq!(ran.status.code(), Some(1));
        let place = self.house.home.path().display().to_string();
        let text = String::from_utf8(ran.stderr).expect("text");
        text.replace(&place, "HOME")
    }
}

fn everything_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(everything_in(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("the mode is set");
}

#[tokio::test]
async fn a_database_that_may_not_be_written_is_told_at_the_start_and_nothing_is_taken() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    assert_eq!(process.stop().await, 0);
    let Some(bound) = Bound::new(&house).await else {
        return;
    };
    let database = house.home.path().join("parlor.db");
    house.telegram.dm(ALICE).says("are you there").await;
    allow(&database, 0o400);
    let told = bound.refused().await;
    assert!(told.contains("read-only"), "{told}");
    allow(&database, 0o600);
    allow(house.home.path(), 0o500);
    let told = bound.refused().await;
    assert!(told.starts_with("error: "), "{told}");
    allow(house.home.path(), 0o000);
    let ran = bound.command(&["status"]).output().await;
    allow(house.home.path(), 0o700);
    let told = String::from_utf8(ran.expect("it starts").stderr).expect("text");
    assert!(
        told.contains("config.toml may not be read by this user. Run the command as"),
        "{told}"
    );
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
    let process = Process::start_as(bound.command(&["run"]), house.home.path());
    house.telegram.dm(ALICE).wait_for_sent(2).await;
    house.telegram.all_confirmed().await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(
        house.telegram.dm(ALICE).texts(),
        ["re: hello", "re: are you there"]
    );
}

/// The files of a database, to the byte.
#[derive(PartialEq, Eq)]
struct Files {
    database: Vec<u8>,
    log: Option<Vec<u8>>,
}

impl Files {
    fn of(home: &Path) -> Self {
        Files {
            database: std::fs::read(home.join("parlor.db")).expect("reads"),
            log: std::fs::read(home.join("parlor.db-wal"))
                .ok()
                .filter(|log| !log.is_empty()),
        }
    }

    fn put_into(&self, home: &Path) {
        for name in ["parlor.db-shm", "parlor.db-wal"] {
            drop(std::fs::remove_file(home.join(name)));
        }
        std::fs::write(home.join("parlor.db"), &self.database).expect("writes");
        if let Some(log) = &self.log {
            std::fs::write(home.join("parlor.db-wal"), log).expect("writes");
        }
    }
}

const INNER_PAGES: &str = "a schema of noise";

/// Ways in which a file is damaged so that its tables cannot be found.
fn damage(database: &[u8], seeded: &mut Seeded) -> Vec<(&'static str, Vec<u8>)> {
    let mut noise = |from: usize, to: usize| {
        let mut damaged = database.to_vec();
        damaged[from..to].fill_with(|| seeded.number().to_be_bytes()[0]);
        damaged
    };
    let page = usize::try_from(PAGE).expect("small");
    let half = database.len() / 2;
    let mut zeroed = database.to_vec();
    zeroed[..page].fill(0);
    vec![
        ("a header of noise", noise(0, 100)),
        ("a first page of noise", noise(100, page)),
        (INNER_PAGES, noise(page, 12 * page)),
        ("noise everywhere", noise(0, database.len())),
        ("a first page of zeros", zeroed),
        ("another kind of file", b"PK\x03\x04".repeat(half / 4)),
        ("half of it gone", database[..half / page * page].to_vec()),
        ("cut within its first page", database[..page / 2].to_vec()),
    ]
}

const GOES_ON: &str = "goes on, with everything";

/// What a start does with damaged files. It leaves them to the byte, or has everything: the log of a
/// killed process may have the damaged page.
async fn outcome(home: &Path, damaged: &Files, messages: &str) -> String {
    damaged.put_into(home);
    // A verb that opens the database as `run` does, and ends by itself.
    let ran = run(home, &["chat"]).await;
    if ran.code == 0 {
        assert_eq!(ask(home, "PRAGMA integrity_check"), "ok");
        assert_eq!(ask(home, "SELECT count(*) FROM messages"), messages);
        return GOES_ON.to_owned();
    }
    let left = Files::of(home);
    assert!(
        left == *damaged,
        "the database is {}the same and the log is {}the same, and it said {}",
        if left.database == damaged.database {
            ""
        } else {
            "not "
        },
        if left.log == damaged.log { "" } else { "not " },
        ran.stderr
    );
    ran.stderr.trim().to_owned()
}

/// With the log of a killed process beside it, which a careless start would fold into the file.
#[tokio::test]
async fn a_damaged_database_is_told_at_the_start_and_not_overwritten() {
    let mut house = House::new(OPEN).await;
    house.leave_leftovers();
    let process = house.spawn().await;
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    assert_eq!(process.stop().await, 0);
    let folded = Files::of(house.home.path());
    assert_eq!(folded.log.as_ref().map_or(0, Vec::len), 0);
    let process = house.spawn().await;
    house.telegram.dm(BOB).says("hi").await;
    house.telegram.dm(BOB).wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    process.kill().await;
    let killed = Files::of(house.home.path());
    assert!(killed.log.as_ref().is_some_and(|log| !log.is_empty()));
    for (files, beside, messages) in [(&folded, "alone", "2"), (&killed, "with a log", "4")] {
        for (what, database) in damage(&files.database, &mut Seeded::new(7)) {
            let log = files.log.clone();
            let damaged = Files { database, log };
            // Such a file opens, and the damage is found by the first statement that reads the page.
            if what == INNER_PAGES && beside == "with a log" {
                continue;
            }
            let outcome = outcome(house.home.path(), &damaged, messages).await;
            let goes_on = outcome == GOES_ON;
            assert!(!goes_on || beside == "with a log", "{what} goes unnoticed");
            assert!(
                goes_on || outcome.contains("parlor.db"),
                "{what}, {beside}: {outcome}"
            );
        }
    }
    // The copy that the operator puts back has everything.
    killed.put_into(house.home.path());
    let process = house.spawn().await;
    house.telegram.dm(BOB).says("and now").await;
    house.telegram.dm(BOB).wait_for_sent(2).await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(house.telegram.dm(BOB).texts(), ["re: hi", "re: and now"]);
}
