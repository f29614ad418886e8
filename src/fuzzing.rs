//! Everything that reads strangers' bytes, as functions of bytes. Each panics on a broken promise.
//!
//! Two callers feed them: `fuzz/` with libFuzzer, and `tests/it/fuzz.rs` with the corpus and seeded
//! mutations of it.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::channels::{discord, telegram};
use crate::config::{Secrets, Source, draft};
use crate::models;
use crate::tenants;

/// A name, which is that of the folder in `fuzz/corpus/` too, and its function.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: &[Target] = &[
    ("telegram_update", telegram_update),
    ("discord_event", discord_event),
    ("model_stream", model_stream),
    ("markdown", markdown),
    ("config", config),
    ("button", button),
    ("package", package),
];

/// An update as a webhook or a poll brings it.
pub fn telegram_update(data: &[u8]) {
    telegram::fuzz::update(data);
}

/// A payload of Discord's gateway.
pub fn discord_event(data: &[u8]) {
    discord::fuzz::event(data);
}

/// The first byte chooses one of the five dialects; the rest is the body of an answer.
pub fn model_stream(data: &[u8]) {
    models::fuzz_stream(data);
}

/// An agent's answer, for both platforms.
pub fn markdown(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    telegram::fuzz::markdown(&text);
    discord::fuzz::markdown(&text);
}

/// A `config.toml`, with its report for people.
pub fn config(data: &[u8]) {
    let Ok(text) = String::from_utf8(data.to_vec()) else {
        return;
    };
    let home = Path::new("/nonexistent");
    let path = home.join("config.toml");
    let drafted = draft(Source { path, text }, home, Secrets::WherePresent);
    if let Err(report) = drafted.finish() {
        assert!(!report.to_string().is_empty(), "a refusal has a reason");
    }
}

/// The payload of a button. No payload counts that this gateway has not signed.
pub fn button(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    telegram::fuzz::button(&text);
    discord::fuzz::button(&text);
}

/// A package of an agent, before its compression.
pub fn package(data: &[u8]) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("parlor-fuzz-{}-{number}", std::process::id());
    let (around, inside) = (std::env::temp_dir().join(&name), "inside");
    std::fs::create_dir_all(around.join(inside)).expect("a folder for the package");
    tenants::fuzz_package(data, &around.join(inside));
    let beside: Vec<_> = std::fs::read_dir(&around)
        .expect("the folder is there")
        .flatten()
        .filter(|entry| entry.file_name() != inside)
        .collect();
    let removed = std::fs::remove_dir_all(&around);
    assert!(beside.is_empty(), "a package wrote outside: {beside:?}");
    removed.expect("the folder can be removed");
}
