//! The room's readers and writers as functions of any bytes, for `src/fuzzing.rs`.

use std::time::Duration;

use super::address::Address;
use super::me::Me;
use super::parse::{PANICKED, Reader};
use super::render::{MAX_ENTITIES, MAX_UNITS, render};
use super::updates::{Update, read_answer, read_one};
use super::{api, buttons};
use crate::channels::nicknames::Nicknames;
use crate::config::GroupSessions;
use crate::domain::Arrival;
use crate::signing::Signer;

const KEY: [u8; Signer::KEY_BYTES] = [7; Signer::KEY_BYTES];

pub(crate) fn update(data: &[u8]) {
    read(&[read_one(data)]);
    let answer = [br#"{"ok":true,"result":["#, data, b"]}"].concat();
    if let Some(answer) = read_answer(&answer) {
        read(&answer.updates);
        read(answer.cut_off.as_slice());
    }
    drop(api::refusal(reqwest::StatusCode::OK, data).to_string());
}

fn read(updates: &[Update]) {
    let (signer, nicknames) = (Signer::new(&KEY), Nicknames::new(&["parlor".to_owned()]));
    let me = Me {
        username: Some("parlor_bot".to_owned()),
        ..Me::default()
    };
    let reader = Reader {
        bot_id: "123456",
        me: &me,
        group_sessions: GroupSessions::PerUser,
        nicknames: &nicknames,
        signer: &signer,
        gather: Duration::ZERO,
    };
    for arrival in reader.read_all(updates) {
        // A panic is caught and kept, so that it costs no other update.
        if let Arrival::Broken { reason, raw, .. } = arrival {
            assert_ne!(reason, PANICKED, "{raw}");
        }
    }
    updates
        .iter()
        .for_each(|update| drop(reader.read_press(update)));
}

pub(crate) fn markdown(text: &str) {
    for part in render(text) {
        let units = part.text.encode_utf16().count();
        assert!(units > 0 && units <= MAX_UNITS, "{units} units");
        assert!(part.entities.len() <= MAX_ENTITIES);
    }
}

pub(crate) fn button(data: &str) {
    let address = Address {
        chat_id: -1001,
        message_thread_id: Some(7),
    };
    let pressed = buttons::pressed(&Signer::new(&KEY), address, data);
    assert_eq!(pressed, None, "nobody else can sign a button");
}
