//! Tells the program its commit and its platform, for `parlor version`.
//!
//! `PARLOR_COMMIT` says it outright, for builds without a repository. Else a release build asks
//! git. A development build has no commit: it would be compiled anew after each commit.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PARLOR_COMMIT");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=PARLOR_TARGET={target}");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let told = std::env::var("PARLOR_COMMIT").ok();
    let commit = told.or_else(|| is_release.then(commit).flatten());
    let commit = commit.unwrap_or_default();
    println!("cargo::rustc-env=PARLOR_COMMIT={}", commit.trim());
    if is_release && has_own_linker(&target) {
        order_functions();
    }
}

/// Whether this is the linker that Rust itself brings for this target. Another may not know its options.
fn has_own_linker(target: &str) -> bool {
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    target == "x86_64-unknown-linux-gnu"
        && std::env::var_os("RUSTC_LINKER").is_none()
        && !flags.contains("link")
        && !flags.contains("fuse-ld")
}

/// Puts the functions that a start and a turn run through side by side, so that no page around a single one is in memory.
/// Names that are not there any more are left out.
fn order_functions() {
    let names = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/functions-of-a-turn.txt");
    println!("cargo::rerun-if-changed={}", names.display());
    println!("cargo::rerun-if-env-changed=PARLOR_LINK_MAP");
    if names.exists() {
        println!(
            "cargo::rustc-link-arg-bins=-Wl,--symbol-ordering-file={}",
            names.display()
        );
        println!("cargo::rustc-link-arg-bins=-Wl,--no-warn-symbol-ordering");
    }
    // For `scripts/functions`, which makes the list.
    if let Ok(map) = std::env::var("PARLOR_LINK_MAP") {
        println!("cargo::rustc-link-arg-bins=-Wl,-Map={map}");
    }
}

/// None outside a repository, and inside a repository of something else.
fn commit() -> Option<String> {
    let here = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    let top = git(&here, &["rev-parse", "--show-toplevel"])?;
    let is_ours = Path::new(&top).canonicalize().ok()? == Path::new(&here).canonicalize().ok()?;
    if !is_ours {
        return None;
    }
    // The log of HEAD grows with every commit, and also when another branch is checked out.
    let log = git(&here, &["rev-parse", "--git-path", "logs/HEAD"]);
    // A path that is not there would have the script run at each build.
    if let Some(log) = log.filter(|log| Path::new(&here).join(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&here, &["rev-parse", "--short=10", "HEAD"])
}

fn git(folder: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
