//! Archives of another system's folder: the same comes in as from the folder, and nothing of this
//! machine besides.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use insta::assert_snapshot;
use serde_json::Value;

use super::{Source, hermes, moltis, openclaw, signet, state, zeroclaw};
use crate::cli::{fresh_home, run};
use crate::support::pty::Pty;
use crate::tenants::fine;

#[derive(Clone, Copy)]
enum Form {
    /// With the folder itself in it, as people pack it.
    TarGz,
    /// Without the folder around.
    Tar,
    /// By Python, as Hermes packs its own.
    Zip,
}

impl Source {
    fn packed(&self, form: Form) -> PathBuf {
        let (around, name) = (self.folder.path(), self.name);
        let (file, mut command) = match form {
            Form::TarGz => ("backup.tar.gz", Command::new("tar")),
            Form::Tar => ("backup.tar", Command::new("tar")),
            Form::Zip => ("backup.zip", Command::new("python3")),
        };
        let file = around.join(file);
        match form {
            Form::TarGz => command
                .arg("czf")
                .arg(&file)
                .arg("-C")
                .arg(around)
                .arg(name),
            Form::Tar => command
                .arg("cf")
                .arg(&file)
                .arg("-C")
                .arg(self.path())
                .arg("."),
            Form::Zip => command
                .args(["-m", "zipfile", "-c"])
                .arg(&file)
                .arg(name)
                .current_dir(around),
        };
        assert!(
            command.status().expect("it starts").success(),
            "{command:?}"
        );
        file
    }
}

async fn imported(home: &Path, system: &str, from: &Path, more: &[&str]) -> Value {
    let from = from.display().to_string();
    let words = [&["import", system, &from, "--json"], more].concat();
    let ran = run(home, &words).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stderr, ran.stdout);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

/// What was carried: kind, and where it is now.
fn carried(report: &Value) -> Vec<String> {
    let items = report["items"].as_array().expect("items");
    let done = items.iter().filter(|item| item["state"] == "done");
    let mut lines: Vec<String> = done
        .map(|item| format!("{} {}", item["kind"], item["target"]))
        .collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn an_archive_brings_the_same_as_its_folder() {
    let all = [
        (openclaw::source(), "openclaw", Form::TarGz),
        (hermes::source(), "hermes", Form::Zip),
        (zeroclaw::source(), "zeroclaw", Form::Tar),
        (moltis::source(), "moltis", Form::TarGz),
        (signet::source(signet::LATE), "signet", Form::Zip),
    ];
    for (source, system, form) in all {
        let (by_folder, by_archive) = (fresh_home().await, fresh_home().await);
        let archive = source.packed(form);
        let before = source.content();
        let expected = imported(by_folder.path(), system, &source.path(), &["--yes"]).await;
        let home = by_archive.path();
        let report = imported(home, system, &archive, &["--yes"]).await;
        assert_eq!(carried(&report), carried(&expected), "{system}");
        assert!(!carried(&report).is_empty(), "{system}");
        assert_eq!(report["source"], archive.display().to_string());
        assert!(
            !report.to_string().contains(".moving-"),
            "people know the archive: {report:#}"
        );
        let after = state(home);
        imported(home, system, &archive, &["--yes"]).await;
        assert_eq!(
            state(home),
            after,
            "{system}: a second time changes nothing"
        );
        assert_eq!(source.content(), before, "{system}");
        let left = fs::read_dir(home).expect("reads").flatten();
        let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".moving"));
        assert_eq!(left.count(), 0, "nothing unpacked stays");
    }
}

/// A config that came with an archive cannot name folders of this machine.
#[tokio::test]
async fn an_archive_reaches_nothing_outside() {
    let private = tempfile::tempdir().expect("a folder");
    fs::write(private.path().join("SOUL.md"), "my own words").expect("writes");
    let path = private.path().display().to_string();
    for (name, system, file, text) in [
        (
            ".openclaw",
            "openclaw",
            "openclaw.json",
            format!("{{ agents: {{ entries: {{ evil: {{ workspace: \"{path}\" }} }} }} }}"),
        ),
        (
            ".zeroclaw",
            "zeroclaw",
            "config.toml",
            format!(
                "schema_version = 3\n[agents.evil]\n[agents.evil.workspace]\npath = \"{path}\"\n"
            ),
        ),
    ] {
        let source = Source::new(name);
        source.write(file, &text);
        let home = fresh_home().await;
        imported(home.path(), system, &source.packed(Form::TarGz), &["--yes"]).await;
        let soul = home.path().join("agents/evil/SOUL.md");
        let soul = fs::read_to_string(soul).unwrap_or_default();
        assert!(!soul.contains("my own words"), "{system}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_archive_is_told() {
    let home = fresh_home().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("notes.txt");
    fs::write(&file, "words").expect("writes");
    let path = file.display().to_string();
    let ran = run(home.path(), &["import", "openclaw", &path]).await;
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.stderr.replace(&path, "FILE"), @"error: FILE: it is neither a folder nor an archive (.tar, .tar.gz, .zip)");
    fs::write(&file, [0x1f, 0x8b, 8, 0, 1, 2, 3]).expect("writes");
    let ran = run(home.path(), &["import", "openclaw", &path]).await;
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("it cannot be unpacked"),
        "{}",
        ran.stderr
    );
}

/// At a terminal the plan is shown first, and only a yes carries it out.
#[tokio::test]
async fn a_person_is_asked_before_anything_is_carried() {
    let (home, source) = (fresh_home().await, hermes::source());
    fine(home.path(), &["agent", "list"]).await;
    let before = state(home.path());
    let words = ["import", "hermes", &source.text()];
    for keys in ["n\r", "\r"] {
        let mut pty = Pty::start(home.path(), &words, 100, &[]);
        pty.shows("Carry this out? [y/N]").await;
        pty.types(keys);
        let screen = pty.shows("Nothing was changed.").await;
        assert!(!screen.contains("--yes"), "{screen}");
        assert_eq!(pty.ends().await, 0);
        assert_eq!(state(home.path()), before);
    }
    let mut pty = Pty::start(home.path(), &words, 100, &[]);
    pty.shows("Carry this out? [y/N]").await;
    pty.types("y\r");
    assert_eq!(pty.ends().await, 0);
    assert!(home.path().join("agents/coder").exists());
    assert_ne!(state(home.path()), before);
}
