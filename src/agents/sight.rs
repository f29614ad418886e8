//! Files that people sent, and the people who see them. Pure.
//!
//! A file is kept in the folder of its place: `inbox/telegram.dm.5/…`. The people of the place and
//! owners see the file. Files that agents write elsewhere in a workspace are open to all people.

use std::path::{Component, Path, PathBuf};

use crate::domain::{PersonId, SessionKey};

/// The folder for files that people sent.
const INBOX: &str = "inbox";
/// The folder of guests' files, within the folder of a place.
pub const GUESTS: &str = "guests";

/// The files of people that a turn sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// All files, for owners.
    Everything,
    Of {
        /// The place of the turn, with its former key.
        places: Vec<SessionKey>,
        /// All ids of the person, in a private chat: a person's private chats on several platforms
        /// are a single place. Else empty.
        ids: Vec<PersonId>,
    },
}

/// The folder for files sent in a place, within a workspace.
pub fn inbox_folder(place: &SessionKey) -> PathBuf {
    // No part of a key has a dot, so different keys have different folders.
    Path::new(INBOX).join(place.to_string().replace(':', "."))
}

impl Sight {
    /// Whether the turn sees this path of a workspace. Links must be resolved already.
    pub(in crate::agents) fn has(&self, path: &Path) -> bool {
        let Sight::Of { places, ids } = self else {
            return true;
        };
        let mut steps = path
            .components()
            .filter(|step| !matches!(step, Component::CurDir));
        let is_inbox = |step: Component<'_>| step.as_os_str().eq_ignore_ascii_case(INBOX);
        if !steps.next().is_some_and(is_inbox) {
            return true;
        }
        let Some(folder) = steps.next() else {
            // The inbox folder itself; each entry is checked later.
            return true;
        };
        let key = folder
            .as_os_str()
            .to_str()
            .map(|name| name.replace('.', ":"));
        let Some(key) = key.and_then(|key| key.parse::<SessionKey>().ok()) else {
            return false;
        };
        places.contains(&key) || owner_of(&key).is_some_and(|person| ids.contains(&person))
    }
}

/// The sender of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sender {
    Guest,
    /// The only person of a private chat.
    Person(PersonId),
    /// A member, an admin or an owner.
    Somebody,
}

/// The sender of a file, by its path within a workspace. None for files outside the inbox.
pub fn sender_of(path: &Path) -> Option<Sender> {
    let mut steps = path
        .components()
        .filter(|step| !matches!(step, Component::CurDir))
        .map(|step| step.as_os_str());
    if !steps.next()?.eq_ignore_ascii_case(INBOX) {
        return None;
    }
    let place = steps.next()?.to_str().map(|name| name.replace('.', ":"));
    if steps
        .next()
        .is_some_and(|step| step.eq_ignore_ascii_case(GUESTS))
    {
        return Some(Sender::Guest);
    }
    let person = place
        .and_then(|key| key.parse::<SessionKey>().ok())
        .and_then(|key| owner_of(&key));
    Some(person.map_or(Sender::Somebody, Sender::Person))
}

/// The person of a private chat.
fn owner_of(key: &SessionKey) -> Option<PersonId> {
    match key {
        SessionKey::TelegramDm { user, .. } => Some(PersonId::Telegram(*user)),
        SessionKey::DiscordDm { user } => Some(PersonId::Discord(*user)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(place: &str, ids: &[&str]) -> Sight {
        Sight::Of {
            places: vec![place.parse().unwrap()],
            ids: ids.iter().map(|id| id.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn files_of_people_are_seen_in_their_place_and_by_owners() {
        let dm = sight("telegram:dm:5", &["telegram:5", "discord:6"]);
        let topic = sight("telegram:topic:-100:7", &[]);
        let check = |path: &str, in_dm: bool, in_topic: bool| {
            assert_eq!(dm.has(Path::new(path)), in_dm, "{path}");
            assert_eq!(topic.has(Path::new(path)), in_topic, "{path}");
            assert!(Sight::Everything.has(Path::new(path)), "{path}");
        };
        check(".", true, true);
        check("notes/inbox/x", true, true);
        check("inbox", true, true);
        check("inbox/telegram.dm.5", true, false);
        check("inbox/telegram.dm.5/a.pdf", true, false);
        check("inbox/telegram.dm.5.9/a.pdf", true, false);
        check("./INBOX/telegram.dm.5/a.pdf", true, false);
        check("inbox/discord.dm.6/a.pdf", true, false);
        check("inbox/discord.dm.5/a.pdf", false, false);
        check("inbox/telegram.topic.-100.7/guests/a.pdf", false, true);
        check("inbox/telegram.topic.-100.8/a.pdf", false, false);
        check("inbox/telegram.group.-100.5/a.pdf", false, false);
        check("inbox/2026-11-16-250-contract.txt", false, false);
        check("INBOX/2026-11-16-250-contract.txt", false, false);
        check("inbox/../inbox", false, false);
    }

    #[test]
    fn the_path_of_a_file_tells_its_sender() {
        let check = |path: &str, expected: Option<Sender>| {
            assert_eq!(sender_of(Path::new(path)), expected, "{path}");
        };
        let alice = || Sender::Person("telegram:5".parse().unwrap());
        check("notes.md", None);
        check("notes/inbox/x", None);
        check("inbox", None);
        check("inbox/telegram.dm.5/a.pdf", Some(alice()));
        check("./INBOX/telegram.dm.5/a.pdf", Some(alice()));
        check("inbox/telegram.dm.5/guests/a.pdf", Some(Sender::Guest));
        check("inbox/telegram.topic.-100.7/a.pdf", Some(Sender::Somebody));
        check(
            "inbox/telegram.topic.-100.7/guests/a.pdf",
            Some(Sender::Guest),
        );
        check("inbox/2026-11-16-250-contract.txt", Some(Sender::Somebody));
    }

    #[test]
    fn each_place_has_a_folder_of_its_own() {
        let key: SessionKey = "telegram:topic:-1001:7".parse().unwrap();
        assert_eq!(
            inbox_folder(&key),
            Path::new("inbox/telegram.topic.-1001.7")
        );
    }
}
