//! `parlor backup` and `parlor restore`: everything comes back, and nothing is ever half there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use insta::assert_snapshot;
use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::Value;
use tempfile::TempDir;

use crate::cli::{Ran, run};
use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::ALICE;
use crate::support::house::{Process, ask};
use crate::tenants::{fine, lived_in};

/// By their path, with mode and content.
type Files = BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>;
/// Rows by table.
type Tables = BTreeMap<String, Vec<Vec<Cell>>>;

/// Files by their path, with mode and content; folders too. What belongs to processes is left out.
fn files(home: &Path) -> Files {
    let (mut found, mut open) = (BTreeMap::new(), vec![home.to_owned()]);
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder)
            .expect("a folder")
            .flatten()
            .map(|entry| entry.path())
        {
            let inside = path.strip_prefix(home).expect("inside").to_owned();
            let name = inside.display().to_string();
            let is_of_processes = name.starts_with("parlor.db")
                || [
                    "parlor.lock",
                    "parlor.sock",
                    "config.lock",
                    "test.log",
                    "backups",
                ]
                .contains(&name.as_str())
                || name.starts_with("before-restore-");
            if is_of_processes {
                continue;
            }
            let mode = fs::metadata(&path).expect("is there").permissions().mode() & 0o700;
            if path.is_dir() {
                found.insert(inside, (mode, None));
                open.push(path);
            } else {
                found.insert(inside, (mode, Some(fs::read(&path).expect("reads"))));
            }
        }
    }
    found
}

/// Every row of every table, and the schema itself.
fn rows(home: &Path) -> Tables {
    let connection = Connection::open(home.join("parlor.db")).expect("opens");
    let all = |sql: &str| -> Vec<Vec<Cell>> {
        let mut statement = connection.prepare(sql).expect("a query");
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect());
        rows.expect("rows").map(|row| row.expect("a row")).collect()
    };
    let schema = all("SELECT name, type, sql FROM sqlite_schema ORDER BY type, name");
    let mut found = BTreeMap::new();
    for row in &schema {
        let (Cell::Text(name), Cell::Text(kind)) = (&row[0], &row[1]) else {
            continue;
        };
        if kind == "table" {
            let mut rows = all(&format!("SELECT * FROM \"{name}\""));
            // A restore tells of itself.
            if name == "audit" {
                rows.retain(|row| !row.contains(&Cell::Text("restore".into())));
            }
            found.insert(name.clone(), rows);
        }
    }
    // Numbers that were given, and the counter of commits, go on.
    found.remove("sqlite_sequence");
    found.insert("schema".into(), schema);
    found.insert("version".into(), all("PRAGMA user_version"));
    found
}

fn state(home: &Path) -> (Files, Tables) {
    (files(home), rows(home))
}

/// Asserts that two homes are the same, and names the difference.
fn assert_same(home: &Path, expected: &Path) {
    let ((files, rows), (expected_files, expected_rows)) = (state(home), state(expected));
    assert_eq!(
        files.keys().cloned().collect::<Vec<_>>(),
        expected_files.keys().cloned().collect::<Vec<_>>()
    );
    for (path, found) in &files {
        assert_eq!(Some(found), expected_files.get(path), "{}", path.display());
    }
    for (table, expected) in &expected_rows {
        assert_eq!(rows.get(table), Some(expected), "table {table}");
    }
    assert_eq!(rows.len(), expected_rows.len());
}

/// A home with a bit of everything, and a backup of it.
async fn backed_up() -> (TempDir, TempDir, String) {
    let home = lived_in().await;
    fs::create_dir_all(home.path().join("secrets")).expect("makes");
    fs::write(home.path().join("secrets/telegram"), "123:abc").expect("writes");
    fs::create_dir_all(home.path().join("agents/ada/workspace/empty")).expect("makes");
    let script = home.path().join("skills/thread-summary/run.sh");
    fs::write(&script, "#!/bin/sh\n").expect("writes");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("sets");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("all.tar.gz").display().to_string();
    fine(home.path(), &["backup", &file]).await;
    (home, folder, file)
}

/// The round trip, into an empty folder: every file, mode and row.
#[tokio::test]
async fn a_restored_home_is_the_home_that_was_backed_up() {
    let (home, folder, file) = backed_up().await;
    let mode = fs::metadata(&file).expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(
        fs::read_dir(folder.path()).expect("reads").count(),
        1,
        "nothing else is left"
    );
    let new = folder.path().join("new");
    let restored = run(&new, &["restore", &file]).await;
    assert_eq!(restored.code, 0, "{}", restored.stderr);
    assert_same(&new, home.path());
    let modified = |home: &Path| {
        let path = home.join("agents/rose/SOUL.md");
        let at = fs::metadata(path)
            .expect("is there")
            .modified()
            .expect("a time");
        at.duration_since(std::time::UNIX_EPOCH)
            .expect("later")
            .as_secs()
    };
    assert_eq!(modified(&new), modified(home.path()));
    let audit = fine(&new, &["audit"]).await;
    assert!(audit.contains("brought the home back"), "{audit}");
    let talk = crate::cli::run_with_input(&new, &["chat"], "still there?\n").await;
    assert_eq!(
        (talk.code, talk.stdout.lines().count()),
        (0, 1),
        "{}",
        talk.stderr
    );
}

#[tokio::test]
async fn what_was_there_before_a_restore_is_kept_aside() {
    let (home, _folder, file) = backed_up().await;
    let before = tempfile::tempdir().expect("a folder");
    let copy = before.path().join("copy");
    fine(&copy, &["restore", &file]).await;
    fs::write(home.path().join("SOUL.md"), "changed since").expect("writes");
    fs::write(home.path().join("notes.txt"), "new since").expect("writes");
    fine(home.path(), &["remember", "--agent", "rose", "new since"]).await;
    let changed = state(home.path());
    let restored = run(home.path(), &["restore", &file]).await;
    assert_eq!(restored.code, 0, "{}", restored.stderr);
    assert_same(home.path(), &copy);
    let aside = fs::read_dir(home.path())
        .expect("reads")
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.display().to_string().contains("before-restore-"))
        .expect("the old content");
    assert!(
        restored
            .stderr
            .contains(&aside.file_name().expect("a name").display().to_string())
    );
    assert_eq!(state(&aside), changed, "the old content is whole");
    let again = run(home.path(), &["backup", "--json"]).await;
    let told: Value = serde_json::from_str(&again.stdout).expect("JSON");
    let files = told["files"].as_u64().expect("a number");
    assert_eq!(
        usize::try_from(files).expect("few"),
        self::files(home.path())
            .values()
            .filter(|(_, content)| content.is_some())
            .count(),
        "it is in no later backup"
    );
}

/// The gateway answers while it is copied, and everything before the copy is in there.
#[tokio::test]
async fn a_backup_is_made_while_the_gateway_works() {
    let mut house = House::new("[access]\nowners = [\"telegram:111\"]\n").await;
    // The store goes back to an earlier time.
    house.give_up(Promise::SentOnce);
    house.leave_leftovers();
    let process = house.spawn().await;
    let chat = house.telegram.dm(ALICE);
    chat.says("first").await;
    chat.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    house
        .model
        .enqueue_when("second", Script::text("Second answer.").held());
    chat.says("second").await;
    house.model.wait_for_open(1).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("all.tar.gz").display().to_string();
    let arguments = ["backup", file.as_str()];
    let (backed_up, ()) = tokio::join!(run(house.home.path(), &arguments), async {
        for _ in 0..20 {
            house.telegram.dm(ALICE).says("/whoami").await;
        }
    });
    assert_eq!(backed_up.code, 0, "{}", backed_up.stderr);
    let refused = run(house.home.path(), &["restore", &file]).await;
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("is already running on HOME"),
        "{}",
        refused.stderr
    );
    process.kill().await;
    house.model.release();
    house
        .model
        .enqueue_when("second", Script::text("Second answer."));
    let new = folder.path().join("new");
    fine(&new, &["restore", &file]).await;
    assert_eq!(ask(&new, "PRAGMA integrity_check"), "ok");
    assert_eq!(
        ask(&new, "SELECT count(*) FROM messages WHERE text = 'first'"),
        "1"
    );
    assert_ne!(
        ask(&new, "SELECT count(*) FROM inbox WHERE state = 'waiting'"),
        "0",
        "the question under way is in it"
    );
    let polls = house.telegram.calls("getUpdates").len();
    let process = Process::start(&new, &["run"]);
    house.telegram.wait_for_calls("getUpdates", polls + 1).await;
    let answered = async {
        while !house
            .telegram
            .dm(ALICE)
            .texts()
            .iter()
            .any(|text| text == "Second answer.")
        {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let answered = tokio::time::timeout(std::time::Duration::from_secs(20), answered).await;
    answered.expect("the restored home goes on with the question under way");
    assert_eq!(process.stop().await, 0);
}

/// An archive without the database would look like a good one, and rotate good ones away.
#[tokio::test]
async fn a_home_that_has_lost_its_database_is_not_backed_up() {
    let (home, folder, _file) = backed_up().await;
    let to = folder.path().join("all");
    fs::create_dir(&to).expect("makes");
    fs::write(to.join("parlor-2020-01-01T00-00-00Z.tar.gz"), "good").expect("writes");
    fs::remove_file(home.path().join("parlor.db")).expect("is there");
    let folder = to.display().to_string();
    let ran = run(home.path(), &["backup", "--to", &folder, "--keep", "1"]).await;
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("is missing"), "{}", ran.stderr);
    assert_eq!(fs::read_dir(&to).expect("reads").count(), 1);
}

#[tokio::test]
async fn old_backups_make_room_for_new_ones() {
    let (home, folder, _file) = backed_up().await;
    let to = folder.path().join("all/of/them").display().to_string();
    fine(home.path(), &["backup", "--to", &to]).await;
    for name in [
        "parlor-2020-01-01T00-00-00Z.tar.gz",
        "parlor-2020-01-02T00-00-00Z.tar.gz",
        "parlor-mine.tar.gz",
    ] {
        fs::write(Path::new(&to).join(name), "").expect("writes");
    }
    // Names have seconds.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let ran = run(
        home.path(),
        &["backup", "--to", &to, "--keep", "2", "--json"],
    )
    .await;
    let told: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(told["removed"].as_array().map(Vec::len), Some(2), "{told}");
    let mut left: Vec<String> = fs::read_dir(&to)
        .expect("reads")
        .flatten()
        .map(|entry| entry.file_name().display().to_string())
        .collect();
    left.sort();
    assert_eq!(left.len(), 3);
    assert!(left.contains(&"parlor-mine.tar.gz".to_owned()), "{left:?}");
    assert!(!left.iter().any(|name| name.contains("2020")), "{left:?}");
}

/// Secrets are told, and can be left out.
#[tokio::test]
async fn a_backup_tells_which_secrets_are_in_it() {
    let (home, folder, _file) = backed_up().await;
    let config = home.path().join("config.toml");
    let written = fs::read_to_string(&config).expect("a config");
    fs::write(
        &config,
        format!("{written}\n[telegram]\ntoken = {{ env = \"TELEGRAM_BOT_TOKEN\" }}\n"),
    )
    .expect("writes");
    let size = |text: &str| -> String {
        let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        for at in 1..words.len() {
            if words[at].starts_with("KB") {
                words[at - 1] = "N".into();
            }
        }
        words.join(" ").replace(
            &format!("schema {}", crate::backups::schema(home.path())),
            "schema N",
        )
    };
    let with = run(
        home.path(),
        &["backup", &folder.path().join("with").display().to_string()],
    )
    .await;
    assert_snapshot!(size(&with.stderr), @"
    Written and verified: the database (schema N) and 24 files, N KB.
    It has everything that people wrote, and secrets: secrets/telegram. Keep it as safe as the home folder.
    Not in it, and needed after a restore: TELEGRAM_BOT_TOKEN.
    ");
    let without = folder.path().join("without").display().to_string();
    let ran = run(home.path(), &["backup", "--without-secrets", &without]).await;
    assert_snapshot!(size(&ran.stderr), @"
    Written and verified: the database (schema N) and 23 files, N KB.
    It has everything that people wrote, and no secrets. Keep it safe.
    Not in it, and needed after a restore: TELEGRAM_BOT_TOKEN, secrets/telegram.
    ");
    let new = folder.path().join("new");
    fine(&new, &["restore", &without]).await;
    assert!(!new.join("secrets/telegram").exists());
    let again = run(home.path(), &["backup", &without]).await;
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("is there already"),
        "{}",
        again.stderr
    );
}

pub(crate) fn schema(home: &Path) -> String {
    ask(home, "PRAGMA user_version")
}

/// A file may not be larger than the archive: as on a full disk, nothing is left of it.
#[tokio::test]
async fn without_room_no_half_backup_is_left() {
    let (home, folder, _file) = backed_up().await;
    let to = folder.path().join("full");
    let mut shell = tokio::process::Command::new("sh");
    shell
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 8; exec \"$0\" backup --to \"$1\"",
        ])
        .arg(env!("CARGO_BIN_EXE_parlor"))
        .arg(&to)
        .env_clear()
        .env("PARLOR_HOME", home.path());
    let ran = shell.output().await.expect("it ends");
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{told}");
    assert_eq!(fs::read_dir(&to).expect("reads").count(), 0, "{told}");
    let before = state(home.path());
    let mut shell = tokio::process::Command::new("sh");
    shell
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 8; exec \"$0\" restore \"$1\"",
        ])
        .arg(env!("CARGO_BIN_EXE_parlor"))
        .arg(folder.path().join("all.tar.gz"))
        .env_clear()
        .env("PARLOR_HOME", home.path());
    let ran = shell.output().await.expect("it ends");
    assert_eq!(
        ran.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert_eq!(state(home.path()), before, "nothing changed");
}

type Made<'a> = (&'a str, tar::EntryType, &'a [u8]);

/// An archive made by hand, with names that no honest writer writes.
fn archive(folder: &Path, entries: &[Made<'_>]) -> String {
    let path = folder.join("evil.tar.gz");
    let encoder = GzEncoder::new(File::create(&path).expect("a file"), Compression::default());
    let mut builder = tar::Builder::new(encoder);
    for (name, kind, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o777);
        header.set_entry_type(*kind);
        header.as_gnu_mut().expect("gnu").name[..name.len()].copy_from_slice(name.as_bytes());
        if matches!(kind, tar::EntryType::Symlink | tar::EntryType::Link) {
            header.set_link_name("/etc/passwd").expect("fits");
        }
        header.set_cksum();
        builder.append(&header, *content).expect("an entry");
    }
    builder
        .into_inner()
        .expect("a tar")
        .finish()
        .expect("an archive");
    path.display().to_string()
}

const HEAD: &[u8] = br#"{"form":1,"parlor":"9.9.9","schema":null,"made_at":1,"has_secrets":false}"#;

fn sums(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let line = |(name, content): &(&str, &[u8])| {
        let digest = ring::digest::digest(&ring::digest::SHA256, content);
        let hex: String = digest
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{hex}  {name}\n")
    };
    entries.iter().map(line).collect::<String>().into_bytes()
}

/// Whatever is in the file, nothing changes, and nothing lies anywhere else.
#[tokio::test]
async fn hostile_archives_change_nothing() {
    let home = lived_in().await;
    let folder = tempfile::tempdir().expect("a folder");
    let before = state(home.path());
    let file = tar::EntryType::Regular;
    let good: Made<'_> = ("parlor-backup.json", file, HEAD);
    let newer = br#"{"form":1,"parlor":"9.9.9","schema":99999,"made_at":1,"has_secrets":false}"#;
    let other_form =
        br#"{"form":2,"parlor":"9.9.9","schema":null,"made_at":1,"has_secrets":false}"#;
    let fine_sums = sums(&[("parlor-backup.json", HEAD), ("home/a", b"x")]);
    let cases: Vec<Vec<Made<'_>>> = vec![
        vec![good, ("../evil", file, b"x")],
        vec![good, ("home/../../evil", file, b"x")],
        vec![good, ("/tmp/evil", file, b"x")],
        vec![good, ("home/link", tar::EntryType::Symlink, b"")],
        vec![good, ("home/hard", tar::EntryType::Link, b"")],
        vec![good, ("home/pipe", tar::EntryType::Fifo, b"")],
        vec![good, ("home/parlor.lock", file, b"x")],
        vec![good, ("home/backups/a", file, b"x")],
        vec![good, ("home/restoring.json", file, b"{}")],
        vec![good, ("other", file, b"x")],
        vec![good, ("home/a", file, b"x"), ("home/a", file, b"x")],
        vec![("home/a", file, b"x"), good],
        vec![("parlor-backup.json", file, newer)],
        vec![
            ("parlor-backup.json", file, other_form),
            ("home/a", file, b"x"),
        ],
        vec![("parlor-backup.json", file, b"{}")],
        vec![good, ("home/a", file, b"x")],
        vec![
            good,
            ("home/a", file, b"y"),
            ("SHA256SUMS", file, &fine_sums),
        ],
        vec![good, ("SHA256SUMS", file, &fine_sums)],
        vec![
            good,
            ("home/a", file, b"x"),
            ("home/b", file, b"x"),
            ("SHA256SUMS", file, &fine_sums),
        ],
        vec![
            good,
            ("home/a", file, b"x"),
            ("SHA256SUMS", file, &fine_sums),
            ("home/b", file, b"x"),
        ],
        vec![good, ("SHA256SUMS", file, b"nonsense")],
    ];
    let mut told = String::new();
    for entries in cases {
        let evil = archive(folder.path(), &entries);
        let Ran { code, stderr, .. } = run(home.path(), &["restore", &evil]).await;
        assert_eq!(code, 1, "{entries:?}: {stderr}");
        told += &stderr.replace(&format!("error: {evil}: "), "");
        assert_eq!(state(home.path()), before, "{stderr}");
        let checked = run(home.path(), &["restore", "--dry-run", &evil]).await;
        assert_eq!(checked.code, 1, "{entries:?}");
    }
    let left: Vec<_> = fs::read_dir(home.path())
        .expect("reads")
        .flatten()
        .map(|entry| entry.file_name().display().to_string())
        .filter(|name| name.contains("restor"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(fs::read_dir(folder.path()).expect("reads").count(), 1);
    assert_snapshot!(crate::support::without_schema(&told), @"
    `../evil` would lie outside the home folder
    `home/../../evil` would lie outside the home folder
    `/tmp/evil` would lie outside the home folder
    `home/link` is a link or something else that is no plain file
    `home/hard` is a link or something else that is no plain file
    `home/pipe` is a link or something else that is no plain file
    `home/parlor.lock` does not belong into a backup
    `home/backups/a` does not belong into a backup
    `home/restoring.json` does not belong into a backup
    `other` does not belong into a backup
    `home/a` is in it twice
    this is no backup: it does not begin with parlor-backup.json
    it was made by a newer Parlor (9.9.9, schema 99999; this one knows N). Restore it with that version
    it has form 2, and this version reads form 1
    its parlor-backup.json cannot be read: missing field `form` at line 1 column 2
    it has no checksums, so it is no backup, or its end is missing
    `home/a` is damaged: its checksum differs
    `home/a` is missing in it
    `home/b` is damaged: its checksum differs
    `home/b` stands behind its checksums
    its SHA256SUMS cannot be read
    ");
}

/// A file that says it is larger than the disk is not begun, and a damaged one is told.
#[tokio::test]
async fn huge_and_damaged_archives_are_refused() {
    let (home, folder, file) = backed_up().await;
    let before = state(home.path());
    let refused = async |bytes: &[u8]| {
        let evil = folder.path().join("evil").display().to_string();
        fs::write(&evil, bytes).expect("writes");
        let ran = run(home.path(), &["restore", &evil]).await;
        assert_eq!(ran.code, 1, "{}", ran.stdout);
        assert_eq!(state(home.path()), before);
        ran.stderr.replace(&evil, "FILE")
    };
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let mut header = tar::Header::new_gnu();
    header.set_size(HEAD.len() as u64);
    builder
        .append_data(&mut header, "parlor-backup.json", HEAD)
        .expect("an entry");
    let mut header = tar::Header::new_gnu();
    header.set_size(1 << 60);
    header.set_path("home/big").expect("fits");
    header.set_cksum();
    builder.append(&header, &[0_u8; 512][..]).expect("a header");
    let huge = builder
        .into_inner()
        .expect("a tar")
        .finish()
        .expect("a file");
    assert_snapshot!(refused(&huge).await, @"error: FILE: it would not fit on this disk");
    let whole = fs::read(&file).expect("reads");
    for cut in [0, 10, whole.len() / 2, whole.len() - 12, whole.len() - 4] {
        let told = refused(&whole[..cut]).await;
        assert!(told.starts_with("error: FILE: "), "{cut}: {told}");
    }
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let told = refused(&flipped).await;
    assert!(told.starts_with("error: FILE: "), "{told}");
    assert_snapshot!(refused(b"no archive").await, @"error: FILE: this is no backup, or it is damaged: invalid gzip header");
}

/// A process killed between two renames; the next verb goes on from the note before it looks.
#[tokio::test]
async fn a_restore_that_was_killed_is_finished_by_the_next_verb() {
    let (home, folder, file) = backed_up().await;
    let new = folder.path().join("new");
    fine(&new, &["restore", &file]).await;
    // As after the first step of the first phase.
    let staging = home.path().join(".restoring-1");
    fs::create_dir(&staging).expect("makes");
    let aside = home.path().join("before-restore-x");
    fs::create_dir(&aside).expect("makes");
    fs::rename(home.path().join("agents"), aside.join("agents")).expect("moves");
    fs::write(
        home.path().join("restoring.json"),
        r#"{"staging":".restoring-1","aside":"before-restore-x","phase":"out"}"#,
    )
    .expect("writes");
    copy(&new, &staging);
    fs::remove_file(staging.join("parlor.lock")).expect("is there");
    let listed = run(home.path(), &["config", "check"]).await;
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(!home.path().join("restoring.json").exists() && !staging.exists());
    assert!(aside.join("parlor.db").exists() && aside.join("agents/rose").exists());
    assert_same(home.path(), &new);
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("reads").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&target).expect("makes");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copies");
        }
    }
}

/// `sha256sum` and `tar` are enough to look at a backup, and to use it.
#[tokio::test]
async fn a_backup_can_be_read_without_parlor() {
    let (home, folder, file) = backed_up().await;
    let script = "cd \"$0\" && tar xzf \"$1\" && sha256sum --quiet -c SHA256SUMS";
    let ran = tokio::process::Command::new("sh")
        .args(["-c", script])
        .arg(folder.path())
        .arg(&file)
        .output()
        .await
        .expect("it runs");
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert_same(&folder.path().join("home"), home.path());
}

#[tokio::test]
async fn a_folder_of_other_things_is_no_home() {
    let (_home, folder, file) = backed_up().await;
    let other = folder.path().join("documents");
    fs::create_dir(&other).expect("makes");
    fs::write(other.join("letter.txt"), "dear").expect("writes");
    let ran = run(&other, &["restore", &file]).await;
    assert_snapshot!(ran.stderr, @"error: HOME has other files in it and is no home of Parlor. Use an empty folder with --home");
    assert_eq!(fs::read_dir(&other).expect("reads").count(), 1);
}
