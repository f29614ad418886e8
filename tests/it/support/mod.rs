//! Fake far ends and the harness that starts the real thing.

pub(crate) mod checker;
pub(crate) mod crowd;
#[expect(dead_code, reason = "has what the tests of the Discord channel need")]
pub(crate) mod fake_discord;
pub(crate) mod fake_model;
pub(crate) mod fake_telegram;
pub(crate) mod faults;
pub(crate) mod house;
pub(crate) mod http;
pub(crate) mod line;
pub(crate) mod pty;
pub(crate) mod seeded;

pub(crate) use house::House;

/// Tells that a test did not run. Not by a macro: what those print is kept back when a test passes.
#[expect(clippy::disallowed_methods, reason = "a test has no door of its own")]
pub(crate) fn tell_skipped(reason: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "SKIPPED: {reason}"));
}

/// A text without the newest schema's number, which every migration changes.
pub(crate) fn without_schema(text: &str) -> String {
    let newest = newest_schema();
    text.replace(&format!("this one knows {newest}"), "this one knows N")
}

/// The number of the newest file in `migrations/`.
fn newest_schema() -> u32 {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let files = std::fs::read_dir(folder)
        .expect("the folder is there")
        .flatten();
    let numbers = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        name.strip_prefix('V')?.split_once("__")?.0.parse().ok()
    });
    numbers.max().expect("there are migrations")
}
