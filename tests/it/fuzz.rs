//! The targets of `fuzz/` on their corpus and on seeded mutations of it. `PARLOR_MUTATIONS=100000` makes
//! more of them, `PARLOR_SEED=7` makes others.

use std::panic::catch_unwind;
use std::path::Path;

use parlor::fuzzing::{TARGETS, Target};

use crate::support::seeded::Seeded;

/// For each target.
const MUTATIONS: u64 = 1500;
const SEED: u64 = 1;

/// A number of the environment, or the usual one.
pub(crate) fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// The files of a folder of the corpus, by name.
pub(crate) fn corpus(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let folder = std::fs::read_dir(root.join(target)).expect("every target has a corpus");
    let mut files: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
        .iter()
        .map(|path| std::fs::read(path).expect("reads"))
        .collect()
}

fn check((name, function): Target) {
    let mut samples = corpus(name);
    assert!(!samples.is_empty(), "{name} has samples");
    if name == "config" {
        samples.push(include_bytes!("../../config.example.toml").to_vec());
    }
    let mut seeded = Seeded::new(setting("PARLOR_SEED", SEED));
    let try_out = |bytes: &[u8]| {
        let ran = catch_unwind(|| function(bytes));
        assert!(
            ran.is_ok(),
            "{name} fails on {:?}",
            String::from_utf8_lossy(bytes)
        );
    };
    samples.iter().for_each(|sample| try_out(sample));
    for _ in 0..setting("PARLOR_MUTATIONS", MUTATIONS) {
        let (sample, other) = (seeded.pick(&samples).clone(), seeded.pick(&samples).clone());
        try_out(&seeded.mutate_bytes(&sample, &other));
    }
}

#[test]
fn telegram_updates_and_buttons_of_any_bytes_are_read() {
    checked(&["telegram_update", "button"]);
}

#[test]
fn discord_events_of_any_bytes_are_read() {
    checked(&["discord_event"]);
}

#[test]
fn model_streams_of_any_bytes_are_read() {
    checked(&["model_stream"]);
}

#[test]
fn markdown_of_any_bytes_is_rendered_and_split() {
    checked(&["markdown"]);
}

#[test]
fn configs_of_any_bytes_are_checked() {
    checked(&["config"]);
}

#[test]
fn packages_of_any_bytes_are_unpacked_or_refused() {
    checked(&["package"]);
}

fn checked(names: &[&str]) {
    for name in names {
        let target = TARGETS.iter().find(|(known, _)| known == name);
        check(*target.expect("a target"));
    }
}

/// Each target has its file for libFuzzer, its entry in the package, and its test here.
#[test]
fn every_target_can_be_fuzzed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = std::fs::read_to_string(root.join("fuzz/Cargo.toml")).expect("a package");
    let tests = include_str!("fuzz.rs");
    for (name, _) in TARGETS {
        let file = root.join(format!("fuzz/fuzz_targets/{name}.rs"));
        let text = std::fs::read_to_string(file).expect("a file for libFuzzer");
        assert!(
            text.contains(&format!("parlor::fuzzing::{name}(")),
            "{name}"
        );
        assert!(package.contains(&format!("name = \"{name}\"\n")), "{name}");
        assert!(tests.contains(&format!("\"{name}\"")), "{name}");
    }
}
