//! The room's readers and writers as functions of any bytes, for `src/fuzzing.rs`.

use std::time::Duration;

use serde_json::{Value, json};

use super::broken_json::{read_page, read_payload};
use super::directory::{Directory, Surroundings, id_in};
use super::interactions;
use super::parse::Reader;
use super::render::{MAX_UNITS, render};
use crate::channels::nicknames::Nicknames;
use crate::config::GroupSessions;
use crate::domain::{DiscordId, Note};
use crate::signing::Signer;

const KEY: [u8; Signer::KEY_BYTES] = [7; Signer::KEY_BYTES];

pub(crate) fn event(data: &[u8]) {
    drop(read_page(data, DiscordId(0)));
    drop(read_page(&[b"[", data, b"]"].concat(), DiscordId(0)));
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(payload) = read_payload(text) {
        read(&payload["d"]);
    }
}

fn read(raw: &Value) {
    let (nicknames, directory) = (Nicknames::new(&["parlor".to_owned()]), Directory::default());
    directory.learn_server(raw);
    directory.learn_threads(raw);
    drop(directory.learn(raw, None));
    let thread = Surroundings {
        server: id_in(raw, "guild_id"),
        thread_of: id_in(raw, "parent_id"),
        ..Surroundings::default()
    };
    let reader = Reader {
        me: DiscordId(1),
        group_sessions: GroupSessions::PerUser,
        nicknames: &nicknames,
        gather: Duration::ZERO,
    };
    for around in [Surroundings::default(), thread] {
        drop(reader.message(raw, &around, None));
        drop(reader.message(raw, &around, Some(Note::Edit)));
        drop(reader.thread_made(raw, &around));
        drop(reader.reaction(raw, &around));
    }
    drop(interactions::pressed(&Signer::new(&KEY), raw));
}

pub(crate) fn markdown(text: &str) {
    for part in render(text) {
        let units = part.encode_utf16().count();
        assert!(units > 0 && units <= MAX_UNITS, "{units} units");
    }
}

pub(crate) fn button(data: &str) {
    let press = json!({ "guild_id": "8001", "channel_id": "8101", "data": { "custom_id": data } });
    let pressed = interactions::pressed(&Signer::new(&KEY), &press);
    assert_eq!(pressed, None, "nobody else can sign a button");
}
