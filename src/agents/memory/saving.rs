//! Decides about a memory before its write: its words, its visibility, and whether there is room.

use rusqlite::{Connection, Transaction};

use super::rows::{self, Provenance};
use super::scope::Reader;
use crate::agents::Agent;
use crate::clock::now_ms;
use crate::config::{DefaultVisibility, Visibility};
use crate::domain::{PersonId, Role};

/// The longest memory.
pub(super) const MAX_TEXT_BYTES: usize = 8 * 1024;
/// The most memories of an agent from a guest.
const MOST_OF_A_GUEST: u32 = 20;
/// The most memories of an agent from a member or admin.
const MOST_OF_A_MEMBER: u32 = 2000;

/// A memory before its write, which may share a transaction with other rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saving {
    row: rows::New,
    bound: Option<Bound>,
}

/// The most memories that an agent keeps from a person.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    ids: Vec<PersonId>,
    most: u32,
}

/// Why nothing is saved. The text is for people and models.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSaved {
    #[error("There is nothing to remember.")]
    Empty,
    #[error("A memory has at most {} KiB. Make it shorter, or save it in parts.", MAX_TEXT_BYTES / 1024)]
    TooLong,
    /// Memories for all people need a higher role.
    #[error(
        "Only an owner can have something remembered for everybody. Without a visibility it is kept for this person or this place. Nothing was saved."
    )]
    ForEverybody,
    #[error("No single person asked, so nothing can be remembered for one. Nothing was saved.")]
    NoPerson,
    #[error("There is no place to remember this for. Nothing was saved.")]
    NoPlace,
    #[error(
        "This person has {0} things remembered already, and that is the most. `/forget` takes one away. Nothing was saved."
    )]
    Full(u32),
}

/// A memory of the agent, to be written. Without a visibility, the place and the config decide.
pub(super) fn prepare(
    agent: &Agent,
    reader: &Reader,
    text: &str,
    wanted: Option<Visibility>,
) -> Result<Saving, NotSaved> {
    let text = clean(text);
    let text = match reader.role() {
        Role::Guest => told_by_a_guest(&text),
        Role::Member | Role::Admin | Role::Owner => text.trim().to_owned(),
    };
    if text.is_empty() {
        return Err(NotSaved::Empty);
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(NotSaved::TooLong);
    }
    let row = rows::New {
        owner: agent.uid,
        visibility: visibility(agent.memory.default_visibility, reader, wanted)?,
        path: None,
        text,
        said: Provenance {
            place: reader.place().cloned(),
            person: reader.speaker().cloned(),
        },
        labels: reader.labels(),
        created_at: now_ms(),
    };
    Ok(Saving {
        row,
        bound: bound(reader),
    })
}

/// Prefixes a guest's memory with `[guest]`, because the agent may recall the memory while working
/// for a person with more rights. A single rare word, so search is not disturbed.
fn told_by_a_guest(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("[guest] {text}"),
    }
}

/// A memory without a wanted visibility stays with the person or the place of the conversation.
fn visibility(
    default: DefaultVisibility,
    reader: &Reader,
    wanted: Option<Visibility>,
) -> Result<Visibility, NotSaved> {
    let apart = match reader.place() {
        Some(_) if reader.is_private() && !reader.ids().is_empty() => Visibility::Person,
        Some(_) => Visibility::Place,
        // The command line.
        None => Visibility::Private,
    };
    let usual = match default {
        DefaultVisibility::Apart => apart,
        DefaultVisibility::Private => Visibility::Private,
        DefaultVisibility::Global => Visibility::Global,
    };
    match wanted {
        None if may_publish(default, reader.role(), usual) => Ok(usual),
        None => Ok(apart),
        Some(Visibility::Person) if reader.ids().is_empty() => Err(NotSaved::NoPerson),
        Some(Visibility::Place) if reader.place().is_none() => Err(NotSaved::NoPlace),
        Some(wanted) if may_publish(default, reader.role(), wanted) => Ok(wanted),
        Some(_) => Err(NotSaved::ForEverybody),
    }
}

/// Whether a person of this role may save a memory with this visibility. Memories for the turns of
/// all people come from owners, and from members where the config shares memories anyway.
pub(super) fn may_publish(default: DefaultVisibility, role: Role, visibility: Visibility) -> bool {
    match (visibility, role) {
        (Visibility::Person | Visibility::Place, _) | (_, Role::Owner) => true,
        (_, Role::Guest) => false,
        (Visibility::Private, Role::Member | Role::Admin) => default != DefaultVisibility::Apart,
        (Visibility::Global, Role::Member | Role::Admin) => default == DefaultVisibility::Global,
    }
}

fn bound(reader: &Reader) -> Option<Bound> {
    let most = match reader.role() {
        Role::Guest => MOST_OF_A_GUEST,
        Role::Member | Role::Admin => MOST_OF_A_MEMBER,
        Role::Owner => return None,
    };
    let mut ids = reader.ids().to_vec();
    ids.extend(reader.speaker().filter(|id| !ids.contains(id)).cloned());
    Some(Bound { ids, most })
}

/// A text without characters that drive a terminal. Every kind of line break becomes `\n`.
pub(super) fn clean(text: &str) -> String {
    text.replace("\r\n", "\n")
        .chars()
        .filter_map(|c| match c {
            '\n' | '\t' => Some(c),
            '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
            c if c.is_control() => None,
            c => Some(c),
        })
        .collect()
}

impl Saving {
    /// The id of the memory; none if its person has too many.
    pub fn write(&self, tx: &Transaction<'_>) -> rusqlite::Result<Option<i64>> {
        if self.is_over(tx)? {
            return Ok(None);
        }
        rows::insert(tx, &self.row).map(Some)
    }

    /// Whether the person has too many memories already.
    pub(super) fn is_over(&self, connection: &Connection) -> rusqlite::Result<bool> {
        let Some(Bound { ids, most }) = &self.bound else {
            return Ok(false);
        };
        Ok(rows::count_said_by(connection, self.row.owner, ids)? >= *most)
    }

    pub(super) fn full(&self) -> NotSaved {
        NotSaved::Full(self.bound.as_ref().map_or(0, |bound| bound.most))
    }

    pub fn visibility(&self) -> Visibility {
        self.row.visibility
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(place: &str, role: Role) -> Reader {
        let person: PersonId = "telegram:5".parse().unwrap();
        Reader::new(
            &person,
            std::slice::from_ref(&person),
            &place.parse().unwrap(),
            role,
        )
    }

    #[test]
    fn what_is_said_stays_where_it_was_said_unless_an_owner_or_the_config_says_otherwise() {
        use DefaultVisibility::{Apart, Global as ByDefaultGlobal, Private as ByDefaultPrivate};
        use Role::{Admin, Guest, Member, Owner};
        use Visibility::{Global, Person, Place, Private};
        let check = |default, place: &str, role, wanted, expected: Result<Visibility, NotSaved>| {
            let chosen = visibility(default, &reader(place, role), wanted);
            assert_eq!(chosen, expected, "{default:?} {place} {role} {wanted:?}");
        };
        let (dm, topic, of_member) = (
            "telegram:dm:5",
            "telegram:topic:-100:7",
            "telegram:group:-100:5",
        );
        for role in Role::ALL {
            check(Apart, dm, role, None, Ok(Person));
            check(Apart, topic, role, None, Ok(Place));
            check(Apart, of_member, role, None, Ok(Place));
            check(Apart, topic, role, Some(Person), Ok(Person));
            check(Apart, dm, role, Some(Place), Ok(Place));
        }
        for wanted in [Private, Global] {
            check(Apart, dm, Owner, Some(wanted), Ok(wanted));
            for role in [Guest, Member, Admin] {
                check(
                    Apart,
                    topic,
                    role,
                    Some(wanted),
                    Err(NotSaved::ForEverybody),
                );
            }
        }
        check(ByDefaultPrivate, dm, Owner, None, Ok(Private));
        check(ByDefaultPrivate, dm, Member, None, Ok(Private));
        check(ByDefaultPrivate, dm, Guest, None, Ok(Person));
        check(ByDefaultPrivate, topic, Guest, None, Ok(Place));
        check(
            ByDefaultPrivate,
            topic,
            Member,
            Some(Global),
            Err(NotSaved::ForEverybody),
        );
        check(ByDefaultGlobal, topic, Member, Some(Global), Ok(Global));
        check(ByDefaultGlobal, topic, Member, None, Ok(Global));
        check(
            ByDefaultGlobal,
            topic,
            Guest,
            Some(Global),
            Err(NotSaved::ForEverybody),
        );
        let several = Reader::new(
            &"telegram:5".parse().unwrap(),
            &[],
            &topic.parse().unwrap(),
            Member,
        );
        assert_eq!(
            visibility(Apart, &several, Some(Person)),
            Err(NotSaved::NoPerson)
        );
        assert_eq!(visibility(Apart, &several, None), Ok(Place));
        assert_eq!(
            visibility(Apart, &Reader::operator(&[], None), None),
            Ok(Private)
        );
    }

    #[test]
    fn a_stored_text_drives_no_terminal() {
        assert_eq!(
            clean("a\x1b]52;c;x\x07b\r\nc\rd\u{2028}e\u{85}f\0\u{9b}g\th"),
            "a]52;c;xb\nc\nd\ne\nfg\th"
        );
    }
}
