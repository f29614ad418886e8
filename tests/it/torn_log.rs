//! The log of a killed gateway, cut or torn anywhere, as a power cut or a bad disk leaves it. What
//! was confirmed to Telegram before that point is there, and the gateway goes on.

use std::path::Path;

use rusqlite::Connection;

use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB};
use crate::support::seeded::Seeded;

const OPEN: &str = "[access]\ndms = \"open\"\n";
/// Each is a copy of the database with another end of its log.
const CUTS: usize = 150;
/// Starts of the real gateway on such a copy.
const STARTS: usize = 8;
const SEED: u64 = 19;

/// What a killed gateway left, and how long its log was when each update was confirmed.
struct Recording {
    database: Vec<u8>,
    log: Vec<u8>,
    confirmed: Vec<Confirmed>,
}

struct Confirmed {
    update_id: i64,
    log_bytes: usize,
}

impl Recording {
    /// A killed gateway that has answered all but the last three messages.
    async fn of(house: &House) -> Self {
        let process = house.spawn().await;
        let log = house.home.path().join("parlor.db-wal");
        let mut confirmed = Vec::new();
        let tool = Script::tool_call("now", serde_json::json!({}));
        for number in 0..14 {
            if number == 11 {
                house.model.hold();
            }
            if number % 3 == 0 {
                house.model.enqueue(tool.clone());
            }
            let person = if number % 2 == 0 { ALICE } else { BOB };
            let chat = house.telegram.dm(person);
            let update_id = chat.says(&format!("message {number}")).await.update_id;
            house.telegram.confirmed(update_id).await;
            let log_bytes = length(&log);
            confirmed.push(Confirmed {
                update_id,
                log_bytes,
            });
            if number < 11 {
                chat.wait_for_sent(number / 2 + 1).await;
            }
        }
        process.kill().await;
        house.model.release();
        let read = |name: &str| std::fs::read(house.home.path().join(name)).expect("reads");
        Recording {
            database: read("parlor.db"),
            log: read("parlor.db-wal"),
            confirmed,
        }
    }

    /// Puts the database back as it was, with a torn log.
    fn put_into(&self, home: &Path, torn: &[u8]) {
        drop(std::fs::remove_file(home.join("parlor.db-shm")));
        std::fs::write(home.join("parlor.db"), &self.database).expect("writes");
        std::fs::write(home.join("parlor.db-wal"), torn).expect("writes");
    }

    /// The updates that were confirmed before the log had this length.
    fn kept_at(&self, bytes: usize) -> Vec<String> {
        let before = self.confirmed.iter().filter(|one| one.log_bytes <= bytes);
        before.map(|one| one.update_id.to_string()).collect()
    }

    /// The log up to a point, and then nothing, zeros, or anything.
    fn torn(&self, at: usize, seeded: &mut Seeded) -> Vec<u8> {
        let mut torn = self.log[..at].to_vec();
        let rest = self.log.len() - at;
        match seeded.below(3) {
            0 => {}
            1 => torn.resize(self.log.len(), 0),
            _ => torn.extend((0..rest).map(|_| seeded.number().to_be_bytes()[0])),
        }
        torn
    }
}

fn length(path: &Path) -> usize {
    let bytes = std::fs::metadata(path).expect("there is a log").len();
    usize::try_from(bytes).expect("a small file")
}

/// The updates in a database, which must be whole.
fn stored(home: &Path) -> Vec<String> {
    let connection = Connection::open(home.join("parlor.db")).expect("the database opens");
    let verdict: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("the database is checked");
    assert_eq!(verdict, "ok");
    let mut statement = connection
        .prepare("SELECT update_id FROM inbox ORDER BY id")
        .expect("the table is there");
    let rows = statement.query_map([], |row| row.get(0));
    let rows = rows.expect("the rows are read").collect::<Result<_, _>>();
    rows.expect("the rows are text")
}

fn check(recording: &Recording, home: &Path, at: usize) {
    let (stored, kept) = (stored(home), recording.kept_at(at));
    for update_id in &kept {
        // A row's number has the bot before it and a sum of the message behind it.
        let is_of_it = |row: &String| row.split(':').nth(1) == Some(update_id.as_str());
        assert!(
            stored.iter().any(is_of_it),
            "update {update_id} was confirmed before byte {at} of the log, and only {stored:?} are there"
        );
    }
}

#[tokio::test]
async fn a_log_that_is_torn_anywhere_has_all_that_was_confirmed_before() {
    let mut house = House::new(OPEN).await;
    house.leave_leftovers();
    // A torn log may have forgotten answers that Telegram shows.
    house.give_up(Promise::SentOnce);
    let recording = Recording::of(&house).await;
    let marks = recording.confirmed.windows(2);
    assert!(
        marks.clone().all(|two| two[0].log_bytes < two[1].log_bytes),
        "the log was not begun anew meanwhile"
    );
    let mut seeded = Seeded::new(SEED);
    let scratch = tempfile::tempdir().expect("a folder");
    // The exact moments of confirmation count as well.
    let exact = recording.confirmed.iter().map(|one| one.log_bytes);
    let anywhere = (0..CUTS).map(|_| seeded.below(recording.log.len()));
    let cuts: Vec<usize> = anywhere.chain(exact).collect();
    for at in cuts {
        let torn = recording.torn(at, &mut seeded);
        recording.put_into(scratch.path(), &torn);
        check(&recording, scratch.path(), at);
    }
    recording.put_into(scratch.path(), &recording.log);
    assert_eq!(stored(scratch.path()).len(), recording.confirmed.len());
}

#[tokio::test]
async fn the_gateway_starts_on_a_torn_log_and_goes_on() {
    let mut house = House::new(OPEN).await;
    house.leave_leftovers();
    for promise in [Promise::SentOnce, Promise::InOrder] {
        house.give_up(promise);
    }
    let recording = Recording::of(&house).await;
    let mut seeded = Seeded::new(SEED + 1);
    let alice = house.telegram.dm(ALICE);
    for start in 0..STARTS {
        let at = seeded.below(recording.log.len());
        recording.put_into(house.home.path(), &recording.torn(at, &mut seeded));
        let gateway = house.open().await;
        let question = format!("after tear {start}");
        alice.says(&question).await;
        alice
            .place()
            .wait_for("the answer", |texts| {
                texts
                    .iter()
                    .any(|text| text.starts_with("re: ") && text.ends_with(&question))
            })
            .await;
        house.settled(&gateway).await;
        gateway.shutdown().await;
        check(&recording, house.home.path(), at);
        assert_eq!(
            house.ask("SELECT count(*) FROM inbox WHERE state = 'waiting'"),
            "0"
        );
    }
}
