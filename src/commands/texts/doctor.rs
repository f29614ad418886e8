//! Words of `/doctor`.

use std::cmp::Reverse;

use crate::operations::diagnosis::{Diagnosis, Finding, State};

pub(in crate::commands) const NEEDS_OWNER: &str = "Only owners can ask the doctor.";
pub(in crate::commands) const IN_PRIVATE: &str =
    "Others read along here, so ask me in our private chat: /doctor";
const ALL_WELL: &str = "All is well.";
const MORE: &str =
    "`parlor doctor` on the machine also asks every model and platform, and repairs with `--fix`.";

/// Findings that need an action, the worst first. Notes about things that are open on purpose come
/// after notes about things that do not work.
pub(in crate::commands) fn told(diagnosis: &Diagnosis) -> String {
    let mut found: Vec<&Finding> = diagnosis.findings.iter().collect();
    found.retain(|found| found.state > State::Ok);
    found.sort_by_key(|found| (Reverse(found.state), found.id.starts_with("security")));
    let fine = diagnosis.count(State::Ok);
    if found.is_empty() {
        return format!("{ALL_WELL} {fine} checks are fine.\n{MORE}");
    }
    let lines: Vec<String> = found.into_iter().map(line).collect();
    format!("{}\n\n{fine} checks are fine. {MORE}", lines.join("\n"))
}

fn line(found: &Finding) -> String {
    let mark = match found.state {
        State::Bad => "❌",
        State::Warn => "⚠️",
        State::Note | State::Ok => "•",
    };
    match &found.fix {
        Some(fix) => format!("{mark} {} → {fix}", found.text),
        None => format!("{mark} {}", found.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first_and_what_is_fine_is_counted() {
        let diagnosis = Diagnosis {
            findings: vec![
                Finding::ok("config", "config.toml is fine, and in use."),
                Finding::note("security.after-untrusted", "Guests can talk to `main`."),
                Finding::note("backup", "No backup is in backups/ of the home folder.")
                    .fix("parlor backup"),
                Finding::bad("telegram", "Telegram is not connected."),
            ],
            belongings: Vec::new(),
        };
        insta::assert_snapshot!(told(&diagnosis), @r"
        ❌ Telegram is not connected.
        • No backup is in backups/ of the home folder. → parlor backup
        • Guests can talk to `main`.

        1 checks are fine. `parlor doctor` on the machine also asks every model and platform, and repairs with `--fix`.
        ");
        let well = Diagnosis {
            findings: vec![Finding::ok("config", "config.toml is fine, and in use.")],
            belongings: Vec::new(),
        };
        insta::assert_snapshot!(told(&well), @r"
        All is well. 1 checks are fine.
        `parlor doctor` on the machine also asks every model and platform, and repairs with `--fix`.
        ");
    }
}
