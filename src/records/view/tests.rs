//! Tests of the agents' views of a place.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rusqlite::{Transaction, params};
use serde_json::json;
use tempfile::TempDir;

use super::super::inbox::Accepted;
use super::super::journal::AskedMessage;
use super::super::summaries::{self, Summary};
use super::super::transcript::{Asked, Spot};
use super::*;
use crate::domain::{Addressed, Extras, MessageId, Origin, PersonId, Role, SessionKey};
use crate::storage::Db;

const AGENTS: usize = 3;

fn uid(agent: usize) -> AgentUid {
    format!("00000000-0000-0000-0000-00000000000{agent}")
        .parse()
        .unwrap()
}

fn place() -> SessionKey {
    "telegram:topic:-1001:5".parse().unwrap()
}

fn inbound(text: &str, message: &str, note: Option<Note>) -> Inbound {
    Inbound {
        update_id: message.into(),
        origin: Origin::new(place(), "telegram:111".parse().unwrap()),
        person_name: "Alice".into(),
        text: text.into(),
        addressed: Addressed::Privately,
        message: MessageId(message.into()),
        sent_at: 0,
        extras: Extras {
            note,
            ..Extras::default()
        },
    }
}

/// A store with agents. Rows written by a test go with its transaction.
async fn store() -> (TempDir, Connection) {
    let home = TempDir::new().unwrap();
    let path = home.path().join("parlor.db");
    drop(Db::open(&path).await.unwrap());
    let connection = Connection::open(path).unwrap();
    connection
        .pragma_update(None, "foreign_keys", "on")
        .unwrap();
    for agent in 0..AGENTS {
        let sql = "INSERT INTO agents (uid, slug, created_at) VALUES (?1, ?2, 0)";
        connection
            .execute(
                sql,
                params![uid(agent).to_string(), format!("agent-{agent}")],
            )
            .unwrap();
    }
    (home, connection)
}

/// An event in a place, with the agent whose part it belongs to.
#[derive(Debug, Clone)]
enum Act {
    /// Several messages can be answered together.
    Asked {
        of: usize,
        messages: usize,
        is_answered: bool,
    },
    /// Talk among people while the place was this agent's.
    Overheard {
        by: usize,
    },
    /// An edit of the nth message so far.
    Edited {
        nth: usize,
    },
    /// A message from another place.
    Sent {
        by: usize,
    },
    RunEnded {
        of: usize,
    },
    Stopped {
        of: usize,
    },
    ChangedHands,
    SummedUp {
        by: usize,
    },
    StartedAnew,
}

/// Writes events, each with a unique word.
struct Diary<'a> {
    tx: &'a Transaction<'a>,
    now: i64,
    /// Words of the current conversation with their owners; none is nobody's word.
    words: Vec<(Option<usize>, String)>,
    /// Words of past conversations with their owners.
    past: Vec<(Option<usize>, String)>,
    /// The owner of each message of a person.
    told: Vec<Option<usize>>,
    /// Words that are no messages.
    marks: Vec<String>,
}

fn person() -> PersonId {
    "telegram:111".parse().unwrap()
}

fn asked(person: &PersonId) -> Asked<'_> {
    Asked {
        inbox_id: 1,
        person,
        read: crate::domain::Labels::NONE,
    }
}

impl<'a> Diary<'a> {
    fn new(tx: &'a Transaction<'a>) -> Self {
        Diary {
            tx,
            now: 0,
            words: Vec::new(),
            past: Vec::new(),
            told: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// A word of the gateway between messages, which counts as no message.
    fn mark(&mut self, owner: Option<usize>) -> String {
        let word = self.word(owner);
        self.marks.push(word.clone());
        word
    }

    fn word(&mut self, owner: Option<usize>) -> String {
        let word = format!(
            "word{}x",
            self.now * 100 + i64::try_from(self.words.len()).unwrap()
        );
        self.words.push((owner, word.clone()));
        word
    }

    fn written(&mut self, owner: Option<usize>) -> Inbound {
        let (word, message) = (self.word(owner), self.told.len().to_string());
        self.told.push(owner);
        inbound(&word, &message, None)
    }

    fn spot(&self, owner: Option<usize>) -> Spot {
        Spot {
            conversation: transcript::conversation(self.tx, &place()).unwrap(),
            part: owner.map(uid),
        }
    }

    fn happened(&mut self, act: &Act) -> rusqlite::Result<()> {
        self.now += 1;
        let (tx, now) = (self.tx, self.now);
        transcript::touch(tx, &place(), now)?;
        match *act {
            Act::Asked {
                of,
                messages,
                is_answered,
            } => {
                let mut said: Vec<Inbound> =
                    (0..messages).map(|_| self.written(Some(of))).collect();
                let mut all = said.iter().map(|inbound| Accepted::new(0, inbound.clone()));
                let mut accepted = all.next().unwrap();
                accepted.backlog = all.collect();
                // The text as the agent reads it.
                said.iter_mut()
                    .for_each(|said| said.text.push_str(", with a file"));
                let spot = self.spot(Some(of));
                let said: Vec<AskedMessage> = said
                    .into_iter()
                    .map(|inbound| AskedMessage {
                        inbound,
                        role: Role::Guest,
                        rows: vec![0],
                    })
                    .collect();
                transcript::append_question(tx, &accepted, &said, spot, now)?;
                if is_answered {
                    let word = self.word(Some(of));
                    transcript::append_agent(
                        tx,
                        &place(),
                        spot.conversation,
                        (uid(of), &word),
                        asked(&person()),
                        now,
                    )?;
                }
            }
            Act::Overheard { by } => {
                let heard = Accepted::new(0, self.written(Some(by)));
                transcript::append_observed(tx, &heard, Some(uid(by)), now)?;
            }
            Act::Edited { nth } => {
                let Some(nth) = nth.checked_rem(self.told.len()) else {
                    return Ok(());
                };
                let owner = self.told[nth];
                let inbound = inbound(&self.word(owner), &nth.to_string(), Some(Note::Edit));
                let part = of_note(tx, &inbound, Note::Edit)?;
                assert_eq!(
                    part,
                    owner.map(uid),
                    "an edit is of the part of what it changes"
                );
                transcript::append_person(
                    tx,
                    &Accepted::new(0, inbound),
                    Spot {
                        part,
                        ..self.spot(None)
                    },
                    now,
                )?;
            }
            Act::Sent { by } => {
                let word = self.word(Some(by));
                let meta = json!({ "v": 1, "kind": "message_send" });
                transcript::append_sent(
                    tx,
                    &place(),
                    (uid(by), &word),
                    asked(&person()),
                    &meta,
                    now,
                )?;
            }
            Act::RunEnded { of } => {
                let word = self.mark(Some(of));
                transcript::append_event(tx, &place(), uid(of), &word, &json!({ "v": 1 }), now)?;
            }
            Act::Stopped { of } => {
                let word = self.mark(Some(of));
                transcript::append_mark(tx, &place(), Some(uid(of)), &word, now)?;
            }
            Act::ChangedHands => {
                let word = self.mark(None);
                transcript::append_mark(tx, &place(), None, &word, now)?;
            }
            Act::SummedUp { by } => self.sum_up(by)?,
            Act::StartedAnew => {
                transcript::start_anew(tx, &place(), now)?;
                self.past.append(&mut self.words);
                self.told.clear();
            }
        }
        Ok(())
    }

    /// A summary repeats every word of its messages.
    fn sum_up(&mut self, by: usize) -> rusqlite::Result<()> {
        let view = View::PartOf(uid(by));
        let conversation = transcript::conversation(self.tx, &place())?;
        let shown = shown(self.tx, view);
        let Some(upto) = transcript::after(self.tx, &place(), conversation, view, 0)?
            .last()
            .map(|message| message.id)
        else {
            return Ok(());
        };
        let summary = Summary {
            labels: crate::domain::Labels::NONE,
            text: shown,
            upto,
            messages: 1,
        };
        summaries::keep(
            self.tx,
            &place(),
            (conversation, view),
            uid(by),
            &summary,
            self.now,
        )
    }
}

/// Everything a turn reads of a place without searching.
fn shown(connection: &Connection, view: View) -> String {
    let history = transcript::history(connection, &place(), view).unwrap();
    let mut texts: Vec<String> = history
        .summary
        .into_iter()
        .map(|summary| summary.text)
        .collect();
    texts.extend(
        history
            .messages
            .into_iter()
            .map(|message| message.said.text.clone()),
    );
    texts.join("\n")
}

fn found(connection: &Connection, view: View) -> String {
    let found =
        transcript::search(connection, &place(), view, &["word".to_owned()], u32::MAX).unwrap();
    found
        .into_iter()
        .map(|(said, ..)| said.text)
        .collect::<Vec<_>>()
        .join("\n")
}

fn any_act() -> impl Strategy<Value = Act> {
    let agent = 0..AGENTS;
    prop_oneof![
        6 => (agent.clone(), 1..4_usize, any::<bool>())
            .prop_map(|(of, messages, is_answered)| Act::Asked { of, messages, is_answered }),
        2 => agent.clone().prop_map(|by| Act::Overheard { by }),
        2 => any::<usize>().prop_map(|nth| Act::Edited { nth }),
        1 => agent.clone().prop_map(|by| Act::Sent { by }),
        1 => agent.clone().prop_map(|of| Act::RunEnded { of }),
        1 => agent.clone().prop_map(|of| Act::Stopped { of }),
        1 => Just(Act::ChangedHands),
        2 => agent.prop_map(|by| Act::SummedUp { by }),
        1 => Just(Act::StartedAnew),
    ]
}

/// However agents take turns, each reads every word of its own part, and no word of another part.
#[tokio::test]
async fn no_agent_reads_a_word_of_a_part_it_did_not_take_part_in() {
    let (_home, connection) = store().await;
    let connection = RefCell::new(connection);
    let everything = proptest::collection::vec(any_act(), 1..30);
    let check = |acts: Vec<Act>| {
        let mut connection = connection.borrow_mut();
        let tx = connection.transaction().unwrap();
        let mut diary = Diary::new(&tx);
        acts.iter().try_for_each(|act| diary.happened(act)).unwrap();
        for agent in 0..AGENTS {
            let view = View::of(Switch::Separate, uid(agent));
            let (shown, found) = (shown(&tx, view), found(&tx, view));
            for (owner, word) in &diary.words {
                let is_its_own = view.shows(owner.map(uid));
                prop_assert_eq!(
                    shown.contains(word),
                    is_its_own,
                    "{} for {}, of {:?}: {}",
                    word,
                    agent,
                    owner,
                    shown
                );
            }
            for (owner, word) in diary.words.iter().chain(&diary.past) {
                prop_assert_eq!(
                    found.contains(word),
                    view.shows(owner.map(uid)),
                    "{} for {}, of {:?}",
                    word,
                    agent,
                    owner
                );
            }
            for (_, word) in &diary.past {
                prop_assert!(!shown.contains(word), "/new ends everyone's");
            }
            let own = diary
                .words
                .iter()
                .filter(|(owner, word)| *owner == Some(agent) && !diary.marks.contains(word))
                .count();
            prop_assert_eq!(
                transcript::length(&tx, &place(), view).unwrap(),
                i64::try_from(own).unwrap()
            );
            for carried in transcript::export(&tx, uid(agent), view).unwrap() {
                prop_assert!(carried.own);
            }
        }
        let whole = shown(&tx, View::of(Switch::Handoff, uid(0)));
        for (_, word) in &diary.words {
            prop_assert!(whole.contains(word), "a handoff shows everything");
        }
        Ok(())
    };
    TestRunner::default().run(&everything, check).unwrap();
}

#[test]
fn a_part_is_shown_to_its_agent() {
    let check = |switch: Switch, part: Option<usize>, expected: bool| {
        assert_eq!(
            View::of(switch, uid(1)).shows(part.map(uid)),
            expected,
            "{switch} {part:?}"
        );
    };
    check(Switch::Separate, Some(1), true);
    check(Switch::Separate, Some(0), false);
    check(Switch::Separate, Some(2), false);
    check(Switch::Separate, None, false);
    check(Switch::Handoff, Some(1), true);
    check(Switch::Handoff, Some(0), true);
    check(Switch::Handoff, None, true);
}

/// A row for each kind of event: whether agents 0 and 1 read it when agents are separate.
#[tokio::test]
async fn everything_that_is_written_down_belongs_to_one_agent_or_nobody() {
    let (_home, mut connection) = store().await;
    let mut check = |act: Act, agent_0: bool, agent_1: bool| {
        let tx = connection.transaction().unwrap();
        let mut diary = Diary::new(&tx);
        diary.happened(&act).unwrap();
        let reads = |agent| {
            diary
                .words
                .iter()
                .all(|(_, word)| shown(&tx, View::PartOf(uid(agent))).contains(word))
        };
        assert_eq!((reads(0), reads(1)), (agent_0, agent_1), "{act:?}");
    };
    check(
        Act::Asked {
            of: 0,
            messages: 1,
            is_answered: true,
        },
        true,
        false,
    );
    check(
        Act::Asked {
            of: 1,
            messages: 3,
            is_answered: true,
        },
        false,
        true,
    );
    check(
        Act::Asked {
            of: 0,
            messages: 1,
            is_answered: false,
        },
        true,
        false,
    );
    check(Act::Overheard { by: 0 }, true, false);
    check(Act::Sent { by: 1 }, false, true);
    check(Act::RunEnded { of: 0 }, true, false);
    check(Act::Stopped { of: 1 }, false, true);
    check(Act::ChangedHands, false, false);
    check(Act::StartedAnew, true, true);
}

/// After a change of `switch`, a summary of the whole conversation is in no agent's part.
#[tokio::test]
async fn a_summary_of_the_whole_is_shown_to_nobody_who_has_a_part() {
    let (_home, mut connection) = store().await;
    let tx = connection.transaction().unwrap();
    let mut diary = Diary::new(&tx);
    diary
        .happened(&Act::Asked {
            of: 0,
            messages: 1,
            is_answered: true,
        })
        .unwrap();
    let conversation = transcript::conversation(&tx, &place()).unwrap();
    let summary = Summary {
        labels: crate::domain::Labels::NONE,
        text: "all of it".into(),
        upto: 1,
        messages: 1,
    };
    summaries::keep(
        &tx,
        &place(),
        (conversation, View::Whole),
        uid(0),
        &summary,
        9,
    )
    .unwrap();
    assert!(shown(&tx, View::Whole).contains("all of it"));
    assert!(!shown(&tx, View::PartOf(uid(0))).contains("all of it"));
    assert!(!shown(&tx, View::PartOf(uid(1))).contains("all of it"));
}

/// People's words to a deleted agent stay, and no other agent sees them.
#[tokio::test]
async fn what_was_told_to_an_agent_that_was_destroyed_is_nobodys() {
    let (_home, mut connection) = store().await;
    let tx = connection.transaction().unwrap();
    let mut diary = Diary::new(&tx);
    diary
        .happened(&Act::Asked {
            of: 0,
            messages: 1,
            is_answered: true,
        })
        .unwrap();
    diary
        .happened(&Act::Asked {
            of: 1,
            messages: 1,
            is_answered: true,
        })
        .unwrap();
    transcript::purge(&tx, uid(0)).unwrap();
    tx.execute("DELETE FROM agents WHERE uid = ?1", [uid(0).to_string()])
        .expect("nothing hangs on it");
    let told = &diary.words[0].1;
    assert!(shown(&tx, View::Whole).contains(told));
    assert!(!shown(&tx, View::PartOf(uid(1))).contains(told));
}
