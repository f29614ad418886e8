//! What will happen: the sentences before a change.

use super::layout::counted;
use crate::jobs::Missed;

pub(super) const WHAT_PAUSING_DOES: &str = "It begins no further answer. Running answers are finished. Messages are kept and wait until it is resumed.";

pub(super) const WHAT_CLONING_DOES: &str = "The new agent gets the same settings, identity files and skills, and no memories, places or conversations.";

pub(super) const WHAT_RENAMING_DOES: &str = "config.toml, its folder, bindings, pins, memories and conversations follow. People can use the old id for 30 days.";

pub(super) const WHAT_FORKING_DOES: &str = "A copy goes to a new place of the terminal, and its agent goes on there. This one stays as it is.";

pub(super) const WHAT_FORKING_TO_THE_WEB_DOES: &str = "A copy goes to a new topic of the web chat, where everybody who may open this dashboard can read it. Its agent goes on there, and this one stays as it is.";

pub(super) const WHAT_GIVING_UP_DOES: &str = "It is deleted for good, and nobody will get it.";

pub(super) const WHAT_RENEWING_DOES: &str =
    "The agent forgets what was said here. The words stay in the store.";

pub(super) const WHAT_A_BACKUP_IS: &str =
    "Everything goes into one file of the folder backups, without secrets.";

pub(super) const NO_JOBS: &str = "There are no jobs. `parlor job add` makes one, a `[[agents.<id>.jobs]]` in config.toml does too, and members can ask an agent for one.";

pub(super) const NO_SUCH_JOB: &str = "there is no such job, or it is over";

pub(super) const WHAT_REMOVING_A_JOB_DOES: &str =
    "It runs no more. A run under way is finished, and its runs so far stay listed for a while.";

pub(super) fn of_missed(missed: Missed) -> &'static str {
    match missed {
        Missed::Skip => "skipped",
        Missed::Once => "made up for by one late run",
    }
}

pub(super) fn what_default_does(agent: &str, now: &str) -> String {
    format!("{agent} answers in every place without a rule, where {now} does now.")
}

pub(super) fn what_removal_does(agent: &str, places: usize, memories: u32) -> String {
    format!(
        "{agent}'s folder and tables go to the archive with {}. {} of its own fall back to other rules or to the default agent, and running answers are stopped. Restore brings everything back.",
        counted(memories as usize, "memory"),
        capitalized(&counted(places, "place")),
    )
}

pub(super) fn what_removing_a_person_does(name: &str) -> String {
    format!(
        "Everything that was granted to {name} is taken back. What config.toml says still counts."
    )
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase());
    first.into_iter().flatten().chain(letters).collect()
}
