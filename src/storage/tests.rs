use std::os::unix::fs::PermissionsExt;

use super::*;

async fn open(folder: &tempfile::TempDir) -> Db {
    Db::open(&folder.path().join("parlor.db")).await.unwrap()
}

async fn scratch_table(db: &Db) {
    db.write(|tx| tx.execute_batch("CREATE TABLE scratch (n INTEGER NOT NULL)"))
        .await
        .unwrap();
}

async fn count(db: &Db) -> i64 {
    db.read(|connection| connection.query_row("SELECT count(*) FROM scratch", [], |row| row.get(0)))
        .await
        .unwrap()
}

/// The number of commits to this file, as seen by another connection.
fn commits_seen_by(watcher: &Connection) -> i64 {
    watcher
        .query_row("PRAGMA data_version", [], |row| row.get(0))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_wait_together_are_committed_together() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    let (open_gate, gate) = std::sync::mpsc::channel::<()>();
    let (started, has_started) = tokio::sync::oneshot::channel();
    let held = tokio::spawn({
        let db = db.clone();
        async move {
            db.write(move |_| {
                started.send(()).unwrap();
                Ok(gate.recv().ok())
            })
            .await
        }
    });
    has_started.await.unwrap();
    let log = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    for n in 0..50 {
        let (db, log) = (db.clone(), log.clone());
        let job = async move {
            db.write(move |tx| {
                // Rows visible to another connection while we run are rows of earlier commits.
                let watcher = Connection::open(tx.path().unwrap())?;
                let committed: i64 =
                    watcher.query_row("SELECT count(*) FROM scratch", [], |row| row.get(0))?;
                log.lock().unwrap().push(committed);
                tx.execute("INSERT INTO scratch VALUES (?1)", [n])
            })
            .await
        };
        waiting.push(tokio::spawn(job));
    }
    while db.writer_backlog() < 50 {
        tokio::task::yield_now().await;
    }
    open_gate.send(()).unwrap();
    held.await.unwrap().unwrap();
    for job in waiting {
        job.await.unwrap().unwrap();
    }
    assert_eq!(count(&db).await, 50);
    assert!(
        log.lock().unwrap().iter().all(|committed| *committed == 0),
        "one commit carried all fifty: {log:?}"
    );
}

/// Writes a number, and keeps the writer busy until the other end of `gate` sends.
fn held(
    db: &Db,
    number: i64,
    gate: std::sync::mpsc::Receiver<()>,
) -> (
    tokio::task::JoinHandle<()>,
    tokio::sync::oneshot::Receiver<()>,
) {
    let (started, has_started) = tokio::sync::oneshot::channel();
    let db = db.clone();
    let job = async move {
        let work = move |tx: &Transaction<'_>| {
            tx.execute("INSERT INTO scratch VALUES (?1)", [number])?;
            started.send(()).unwrap();
            Ok(gate.recv().ok())
        };
        db.write(work).await.unwrap();
    };
    (tokio::spawn(job), has_started)
}

async fn write_number(db: Db, number: i64) {
    db.write(move |tx| tx.execute("INSERT INTO scratch VALUES (?1)", [number]))
        .await
        .unwrap();
}

/// Writes a number urgently. Returns the numbers visible to another connection at this moment: the
/// numbers committed before.
async fn write_number_urgently(db: Db, number: i64) -> String {
    let (stop, seen) = (
        CancellationToken::new(),
        std::sync::Arc::new(std::sync::Mutex::new(String::new())),
    );
    let work = || {
        let seen = seen.clone();
        move |tx: &Transaction<'_>| {
            let watcher = Connection::open(tx.path().unwrap())?;
            let numbers = "SELECT coalesce(group_concat(n), '') FROM scratch";
            *seen.lock().unwrap() = watcher.query_row(numbers, [], |row| row.get(0))?;
            tx.execute("INSERT INTO scratch VALUES (?1)", [number])
        }
    };
    db.write_urgently(&stop, work).await.unwrap();
    seen.lock().unwrap().clone()
}

/// The note of a send must not wait behind other writes: a kill would lose the note, and the
/// message would be sent again.
#[tokio::test(flavor = "multi_thread")]
async fn an_urgent_write_waits_for_the_commit_under_way_and_for_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    let (open_gate, gate) = std::sync::mpsc::channel();
    let (first, has_started) = held(&db, 0, gate);
    has_started.await.unwrap();
    let others: Vec<_> = (1..=600)
        .map(|number| tokio::spawn(write_number(db.clone(), number)))
        .collect();
    while db.writer_backlog() < 600 {
        tokio::task::yield_now().await;
    }
    let urgent = tokio::spawn(write_number_urgently(db.clone(), -1));
    while db.writer_backlog() < 601 {
        tokio::task::yield_now().await;
    }
    open_gate.send(()).unwrap();
    assert_eq!(
        urgent.await.unwrap(),
        "0",
        "six hundred came before it, and it was there before them"
    );
    first.await.unwrap();
    for other in others {
        other.await.unwrap();
    }
    assert_eq!(count(&db).await, 602);
}

/// The writer is asleep until then.
#[tokio::test]
async fn an_urgent_write_alone_is_done_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    assert_eq!(write_number_urgently(db.clone(), 1).await, "");
    assert_eq!(write_number_urgently(db.clone(), 2).await, "1");
}

/// Jobs that take long do not fill up one commit.
#[tokio::test(flavor = "multi_thread")]
async fn an_urgent_write_does_not_wait_for_the_rest_of_a_slow_batch() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    let ((open_first, first_gate), (open_second, second_gate)) =
        (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let (first, first_started) = held(&db, 0, first_gate);
    first_started.await.unwrap();
    let (second, second_started) = held(&db, 1, second_gate);
    while db.writer_backlog() < 1 {
        tokio::task::yield_now().await;
    }
    let third = tokio::spawn(write_number(db.clone(), 2));
    while db.writer_backlog() < 2 {
        tokio::task::yield_now().await;
    }
    open_first.send(()).unwrap();
    second_started.await.unwrap();
    let urgent = tokio::spawn(write_number_urgently(db.clone(), -1));
    while db.writer_backlog() < 1 {
        tokio::task::yield_now().await;
    }
    std::thread::sleep(writer::LONGEST_RUN);
    open_second.send(()).unwrap();
    assert_eq!(
        urgent.await.unwrap(),
        "0,1",
        "the third waited in the same batch as the second"
    );
    for job in [first, second, third] {
        job.await.unwrap();
    }
}

#[tokio::test]
async fn a_failing_write_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    let failing = db.write(|tx| {
        tx.execute("INSERT INTO scratch VALUES (1)", [])?;
        tx.execute("INSERT INTO no_such_table VALUES (1)", [])
    });
    let panicking = db.write(|_| -> rusqlite::Result<()> { panic!("on purpose") });
    let good = db.write(|tx| tx.execute("INSERT INTO scratch VALUES (2)", []));
    let (failing, panicking, good) = tokio::join!(failing, panicking, good);
    assert!(matches!(failing, Err(StoreError::Failed(_))));
    assert!(matches!(panicking, Err(StoreError::Failed(_))));
    good.unwrap();
    assert_eq!(count(&db).await, 1);
}

/// A job alone in its commit leaves nothing behind either, and the next job works.
#[tokio::test]
async fn a_failing_write_that_is_alone_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    let fill = |tx: &Transaction<'_>| tx.execute("INSERT INTO scratch VALUES (1)", []);
    let failing =
        db.write(move |tx| fill(tx).and_then(|_| tx.execute("INSERT INTO nowhere VALUES (1)", [])));
    assert!(matches!(failing.await, Err(StoreError::Failed(_))));
    let panicking =
        db.write(move |tx| -> rusqlite::Result<()> { panic!("on purpose, after {:?}", fill(tx)) });
    assert!(matches!(panicking.await, Err(StoreError::Failed(_))));
    assert_eq!(count(&db).await, 0);
    db.write(fill).await.unwrap();
    assert_eq!(count(&db).await, 1);
}

/// Has these numbers written in a single commit, in this order. Returns how each of them ended.
async fn write_together(db: &Db, numbers: &[i64]) -> Vec<Result<(), StoreError>> {
    let (open_gate, gate) = std::sync::mpsc::channel();
    let (first, has_started) = held(db, 0, gate);
    has_started.await.unwrap();
    let mut jobs = Vec::new();
    for (waiting, number) in (1..).zip(numbers.iter().copied()) {
        let own = db.clone();
        jobs.push(tokio::spawn(async move {
            own.write(move |tx| {
                tx.execute("INSERT INTO scratch VALUES (?1)", [number])
                    .map(drop)
            })
            .await
        }));
        while db.writer_backlog() < waiting {
            tokio::task::yield_now().await;
        }
    }
    open_gate.send(()).unwrap();
    first.await.unwrap();
    let mut ended = Vec::new();
    for job in jobs {
        ended.push(job.await.unwrap());
    }
    ended
}

/// Makes inserts of negative numbers fail.
async fn break_negative_numbers(db: &Db, how: &'static str) {
    scratch_table(db).await;
    let sql = format!(
        "CREATE TABLE no_room (id INTEGER PRIMARY KEY AUTOINCREMENT);
         INSERT INTO no_room VALUES (9223372036854775807);
         CREATE TRIGGER broken BEFORE INSERT ON scratch WHEN NEW.n < 0 BEGIN {how}; END"
    );
    db.write(move |tx| tx.execute_batch(&sql)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_can_never_work_is_undone_alone_in_its_commit() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    break_negative_numbers(&db, "SELECT RAISE(ABORT, 'on purpose')").await;
    let ended = write_together(&db, &[1, -1, 2]).await;
    assert_eq!((&ended[0], &ended[2]), (&Ok(()), &Ok(())));
    let error = ended[1].clone().unwrap_err();
    assert_eq!(error.remedy(), Remedy::GiveUp, "{error}");
    assert_eq!(count(&db).await, 3);
}

/// SQLite ends the whole transaction: the neighbours are asked to try again, not told to give up.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_ends_the_transaction_fails_none_of_its_neighbours_for_good() {
    for (how, remedy) in [
        ("SELECT RAISE(ROLLBACK, 'on purpose')", Remedy::GiveUp),
        ("INSERT INTO no_room (id) VALUES (NULL)", Remedy::Wait),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder).await;
        break_negative_numbers(&db, how).await;
        let ended = write_together(&db, &[1, -1, 2]).await;
        assert_eq!(ended[1].clone().unwrap_err().remedy(), remedy, "{how}");
        for neighbour in [&ended[0], &ended[2]] {
            if let Err(error) = neighbour {
                assert_eq!(error.remedy(), Remedy::Wait, "{how}: {error}");
            }
        }
        let kept = ended.iter().filter(|ended| ended.is_ok()).count();
        assert_eq!(count(&db).await, 1 + i64::try_from(kept).unwrap(), "{how}");
    }
}

/// A constraint that is looked at with the commit: nobody knows which of them it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_can_never_work_is_tried_again_by_each_of_its_writes() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    let tables = "CREATE TABLE known (n INTEGER PRIMARY KEY); INSERT INTO known VALUES (0), (1), (2);
                  CREATE TABLE scratch (n INTEGER NOT NULL REFERENCES known (n) DEFERRABLE INITIALLY DEFERRED)";
    db.write(move |tx| tx.execute_batch(tables)).await.unwrap();
    let ended = write_together(&db, &[1, -1, 2]).await;
    assert!(
        ended.iter().all(|ended| *ended == Err(StoreError::Undone)),
        "{ended:?}"
    );
    let alone = db.write(|tx| tx.execute("INSERT INTO scratch VALUES (-1)", []));
    assert_eq!(alone.await.unwrap_err().remedy(), Remedy::GiveUp);
    assert_eq!(count(&db).await, 1);
}

#[tokio::test]
async fn a_part_of_a_write_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    break_negative_numbers(&db, "SELECT RAISE(ABORT, 'on purpose')").await;
    let insert = |tx: &Transaction<'_>, n: i64| tx.execute("INSERT INTO scratch VALUES (?1)", [n]);
    let parts = db.write(move |tx| {
        let first = part(tx, || insert(tx, 1))?;
        let second = part(tx, || insert(tx, 2).and_then(|_| insert(tx, -1)))?;
        Ok((first, second, part(tx, || insert(tx, 3))?))
    });
    let (first, second, third) = parts.await.unwrap();
    assert_eq!((first, third), (Ok(1), Ok(1)));
    assert_eq!(second.unwrap_err().remedy(), Remedy::GiveUp);
    assert_eq!(count(&db).await, 2);
}

/// Not for ever, and not only once: what fails may have come from a moment.
#[tokio::test]
async fn a_patient_write_that_can_never_work_is_tried_three_times() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    let (stop, mut tries) = (CancellationToken::new(), 0);
    let work = || {
        tries += 1;
        |tx: &Transaction<'_>| tx.execute("INSERT INTO nowhere VALUES (1)", [])
    };
    let written = db.write_patiently(&stop, Durability::Kill, work).await;
    assert_eq!(written.unwrap_err().remedy(), Remedy::GiveUp);
    assert_eq!(tries, 3);
}

/// A closed database is waited for, so a panic must not look like one.
#[tokio::test]
async fn a_read_that_panics_fails_for_good_and_takes_no_reader_away() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    for _ in 0..4 {
        let panicking = db.read(|_| -> rusqlite::Result<()> { panic!("on purpose") });
        assert_eq!(panicking.await.unwrap_err().remedy(), Remedy::GiveUp);
    }
    assert_eq!(count(&db).await, 0);
}

#[tokio::test]
async fn a_commit_is_seen_from_outside_and_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    let watcher = Connection::open(folder.path().join("parlor.db")).unwrap();
    let before = commits_seen_by(&watcher);
    db.write(|tx| tx.execute("INSERT INTO scratch VALUES (1)", []))
        .await
        .unwrap();
    assert_ne!(commits_seen_by(&watcher), before);
    drop(db);
    assert_eq!(count(&open(&folder).await).await, 1);
}

/// Part of S0.15.
#[tokio::test]
async fn opening_twice_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let schema = |connection: &Connection| {
        let mut statement = connection.prepare("SELECT group_concat(sql) FROM sqlite_schema")?;
        statement.query_row([], |row| row.get::<_, String>(0))
    };
    let first = open(&folder).await.read(schema).await.unwrap();
    assert_eq!(open(&folder).await.read(schema).await.unwrap(), first);
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("parlor.db");
    drop(Db::open(&path).await.unwrap());
    let connection = Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "user_version", 9000)
        .unwrap();
    drop(connection);
    let error = Db::open(&path).await.unwrap_err().to_string();
    assert!(error.contains("newer Parlor (schema 9000"), "{error}");
}

#[tokio::test]
async fn a_damaged_file_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("parlor.db");
    std::fs::write(
        &path,
        "this is not a database, whatever its name says".repeat(100),
    )
    .unwrap();
    let error = Db::open(&path).await.unwrap_err();
    assert_eq!(error, StoreError::Corrupt(path));
}

#[tokio::test]
async fn a_full_disk_says_so_and_loses_no_earlier_row() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    db.write(|tx| tx.execute("INSERT INTO scratch VALUES (1)", []))
        .await
        .unwrap();
    // A page limit lets a test fill the disk.
    db.write(|tx| tx.query_row("PRAGMA max_page_count = 1", [], |_| Ok(())))
        .await
        .unwrap();
    let flood = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) INSERT INTO scratch SELECT i FROM n";
    let error = db.write(move |tx| tx.execute(flood, [])).await.unwrap_err();
    assert_eq!(error, StoreError::Full);
    assert_eq!(count(&db).await, 1);
}

#[tokio::test]
async fn the_file_is_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("parlor.db");
    drop(Db::open(&path).await.unwrap());
    assert_eq!(
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_an_error_with_its_path() {
    let error = Db::open(Path::new("/nonexistent/parlor.db"))
        .await
        .unwrap_err()
        .to_string();
    let told = "the database cannot be opened: there is no folder /nonexistent. `parlor init` makes a home folder";
    assert_eq!(error, told);
}

/// Each reason has its own sentence, because each is put right in another way.
#[test]
fn reasons_for_a_file_that_cannot_be_opened_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("parlor.db");
    let of = |code: i32| StoreError::from_disk(&path, &std::io::Error::from_raw_os_error(code));
    for code in [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE] {
        assert_eq!(of(code.raw_os_error()), StoreError::TooManyOpenFiles);
    }
    assert_eq!(
        of(rustix::io::Errno::ACCESS.raw_os_error()),
        StoreError::ReadOnly
    );
    assert_eq!(
        of(rustix::io::Errno::ROFS.raw_os_error()),
        StoreError::ReadOnly
    );
    assert_eq!(
        of(rustix::io::Errno::NOSPC.raw_os_error()),
        StoreError::Full
    );
    assert!(matches!(
        of(rustix::io::Errno::ISDIR.raw_os_error()),
        StoreError::CannotOpen(_)
    ));
    let of_sqlite = |path: &Path| {
        let error = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)
            .unwrap_err();
        (StoreError::at(path, &error), StoreError::from(error))
    };
    let (known, unknown) = of_sqlite(&folder.path().join("nowhere/parlor.db"));
    assert_eq!(known, StoreError::NoFolder(folder.path().join("nowhere")));
    assert!(matches!(unknown, StoreError::CannotOpen(_)), "{unknown}");
    assert!(
        matches!(of_sqlite(&path).0, StoreError::CannotOpen(_)),
        "not read-only: nothing is there"
    );
}

#[tokio::test]
async fn a_file_that_cannot_be_written_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    db.write(|tx| tx.pragma_update(None, "query_only", true))
        .await
        .unwrap();
    let error = db
        .write(|tx| tx.execute("INSERT INTO scratch VALUES (1)", []))
        .await
        .unwrap_err();
    assert_eq!(error, StoreError::ReadOnly);
}

#[tokio::test]
async fn closing_leaves_everything_in_the_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    let clone = db.clone();
    drop(db);
    clone
        .write(|tx| tx.execute("INSERT INTO scratch VALUES (1)", []))
        .await
        .unwrap();
    drop(clone);
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(
        folder.path().join("parlor.db"),
        copy.path().join("parlor.db"),
    )
    .unwrap();
    assert_eq!(count(&open(&copy).await).await, 1);
}

#[tokio::test]
async fn a_patient_write_goes_through_once_the_trouble_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    let stop = CancellationToken::new();
    let insert = || |tx: &Transaction<'_>| tx.execute("INSERT INTO scratch VALUES (1)", []);
    let (written, ()) = tokio::join!(
        db.write_patiently(&stop, Durability::PowerCut, insert),
        scratch_table(&db)
    );
    written.unwrap();
    assert_eq!(count(&db).await, 1);
    stop.cancel();
    let hopeless = || |tx: &Transaction<'_>| tx.execute("INSERT INTO no_such_table VALUES (1)", []);
    assert!(
        db.write_patiently(&stop, Durability::PowerCut, hopeless)
            .await
            .is_err(),
        "it ends with the process"
    );
}

#[tokio::test]
async fn the_strictest_write_decides_how_its_commit_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    let synchronous =
        |tx: &Transaction<'_>| tx.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0));
    const NORMAL: i64 = 1;
    const FULL: i64 = 2;
    assert_eq!(
        db.write_as(Durability::Kill, synchronous).await.unwrap(),
        NORMAL
    );
    assert_eq!(db.write(synchronous).await.unwrap(), FULL);
    assert_eq!(
        db.write_as(Durability::Kill, synchronous).await.unwrap(),
        NORMAL
    );
}

#[tokio::test]
async fn a_kept_statement_is_compiled_once_whatever_is_bound_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    db.write(|tx| tx.execute_batch("CREATE INDEX open_ones ON scratch (n) WHERE n > 0"))
        .await
        .unwrap();
    let compiled_again = |connection: &Connection| {
        let mut statement =
            connection.prepare_cached("SELECT count(*) FROM scratch WHERE n > ?1")?;
        for n in 0..10 {
            statement.query_row([n], |_| Ok(()))?;
        }
        Ok(statement.get_status(rusqlite::StatementStatus::RePrepare))
    };
    assert_eq!(db.read(compiled_again).await.unwrap(), 0);
    assert_eq!(db.write(move |tx| compiled_again(tx)).await.unwrap(), 0);
}

/// The count is in the header, and a write without a change costs no page.
#[tokio::test]
async fn commits_that_change_something_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    let count = |tx: &Transaction<'_>| {
        tx.query_row("PRAGMA application_id", [], |row| row.get::<_, i32>(0))
    };
    let before = db.write(count).await.unwrap();
    assert_ne!(before, 0);
    db.write(|tx| tx.execute("INSERT INTO scratch VALUES (1)", []))
        .await
        .unwrap();
    assert_eq!(db.write(count).await.unwrap(), before.wrapping_add(1));
    db.write(|tx| tx.execute("DELETE FROM scratch WHERE n = 7", []))
        .await
        .unwrap();
    assert_eq!(db.write(count).await.unwrap(), before.wrapping_add(1));
}

async fn harm_of(db: &Db) -> Harmed {
    let error = db
        .write(|tx| tx.execute("INSERT INTO scratch VALUES (2)", []))
        .await
        .unwrap_err();
    assert_eq!(db.harmed().await, error);
    match error {
        StoreError::Harmed(harmed) => harmed,
        other => panic!("{other}"),
    }
}

/// A database with a single row, for tests of harm to its files.
async fn filled() -> (tempfile::TempDir, Db) {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder).await;
    scratch_table(&db).await;
    db.write(|tx| tx.execute("INSERT INTO scratch VALUES (1)", []))
        .await
        .unwrap();
    (folder, db)
}

#[tokio::test]
async fn a_file_that_is_moved_away_is_saved_with_all_rows() {
    let (folder, db) = filled().await;
    let path = folder.path().join("parlor.db");
    std::fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    let harmed = harm_of(&db).await;
    let saved = folder.path().join("parlor.db.saved");
    assert_eq!(
        (harmed.harm, harmed.saved),
        (Harm::Removed, Saved::As(saved.clone()))
    );
    assert_eq!(
        std::fs::metadata(&saved).unwrap().permissions().mode() & 0o777,
        0o600
    );
    drop(db);
    assert!(!path.exists(), "nothing was made in its place");
    std::fs::rename(saved, path).unwrap();
    assert_eq!(
        count(&open(&folder).await).await,
        1,
        "with the log that is still beside it"
    );
}

#[tokio::test]
async fn a_file_that_is_overwritten_with_an_older_one_is_not_written_to() {
    let (folder, db) = filled().await;
    let path = folder.path().join("parlor.db");
    let older = std::fs::read(&path).unwrap();
    // Moves all rows into the file, so the file has more than the copy.
    db.write(|tx| tx.execute("INSERT INTO scratch VALUES (2)", []))
        .await
        .unwrap();
    let watcher = Connection::open(&path).unwrap();
    watcher
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(watcher);
    db.write(|tx| tx.execute("INSERT INTO scratch VALUES (3)", []))
        .await
        .unwrap();
    std::fs::write(&path, &older).unwrap();
    let harmed = harm_of(&db).await;
    assert_eq!((harmed.harm, harmed.saved), (Harm::Overwritten, Saved::No));
    drop(db);
    assert_eq!(
        std::fs::read(&path).unwrap(),
        older,
        "the copy is as it was"
    );
    assert_eq!(
        Db::open(&path).await.unwrap_err(),
        StoreError::OtherLog(path.clone())
    );
    for name in ["parlor.db-wal", "parlor.db-shm"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    drop(open(&folder).await);
}

#[tokio::test]
async fn a_file_that_is_cut_is_noticed() {
    for bytes in [0, 50, 4096] {
        let (folder, db) = filled().await;
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(folder.path().join("parlor.db"))
            .unwrap();
        file.set_len(bytes).unwrap();
        assert_eq!(harm_of(&db).await.harm, Harm::Overwritten, "{bytes}");
    }
}

/// A check without any write finds the harm.
#[tokio::test]
async fn a_look_finds_what_no_write_has_found() {
    let (folder, db) = filled().await;
    db.look().await;
    assert!(!db.is_harmed());
    std::fs::remove_file(folder.path().join("parlor.db-shm")).unwrap();
    db.look().await;
    assert!(db.is_harmed());
    assert!(matches!(
        db.harmed().await,
        StoreError::Harmed(Harmed {
            harm: Harm::LogRemoved,
            saved: Saved::InPlace,
            ..
        })
    ));
}

/// Operators open the database with other programs, and these may shrink the file.
#[tokio::test]
async fn work_of_other_programs_is_no_harm() {
    let (folder, db) = filled().await;
    let flood = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) INSERT INTO scratch SELECT i FROM n";
    db.write(move |tx| tx.execute(flood, [])).await.unwrap();
    db.write(|tx| tx.execute("DELETE FROM scratch", []))
        .await
        .unwrap();
    let other = Connection::open(folder.path().join("parlor.db")).unwrap();
    let bytes = || {
        std::fs::metadata(folder.path().join("parlor.db"))
            .unwrap()
            .len()
    };
    other
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let before = bytes();
    db.look().await;
    other
        .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO scratch VALUES (1)")
        .unwrap();
    drop(other);
    assert!(bytes() < before);
    db.look().await;
    db.write(|tx| tx.execute("INSERT INTO scratch VALUES (2)", []))
        .await
        .unwrap();
    drop(db);
    assert_eq!(count(&open(&folder).await).await, 2);
}
