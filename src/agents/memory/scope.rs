//! Decides about the visibility of memories. Every read takes a [`Reader`] and goes through a
//! [`Clause`].

use rusqlite::{CachedStatement, Connection, Params, params};

use crate::agents::{Agent, Audience, Content, may_be_led};
use crate::domain::{AgentUid, Labels, PersonId, Role, SessionKey};
use crate::routing::places;

/// The person and place that memories are read and saved for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reader {
    /// All ids of the person. Empty where several people ask, and where no person is known.
    ids: Vec<PersonId>,
    /// The writer of the first message.
    speaker: Option<PersonId>,
    place: Option<SessionKey>,
    role: Role,
    /// The labels of everything that the turn had read. Memories saved by the turn get them.
    read: Labels,
}

impl Reader {
    /// `ids` are all ids of the person who asks; empty if several people ask.
    pub fn new(speaker: &PersonId, ids: &[PersonId], place: &SessionKey, role: Role) -> Self {
        Reader {
            // People without an id of their own would share their memories.
            ids: ids.iter().filter(|id| !id.is_nobody()).cloned().collect(),
            speaker: Some(speaker.clone()),
            place: Some(place.clone()),
            role,
            read: Labels::NONE,
        }
    }

    /// The reader in a turn with these labels.
    #[must_use]
    pub fn having_read(self, read: Labels) -> Self {
        Reader { read, ..self }
    }

    /// The operator at the command line, who may look on behalf of a person and a place.
    pub fn operator(ids: &[PersonId], place: Option<SessionKey>) -> Self {
        Reader {
            ids: ids.to_owned(),
            speaker: ids.first().cloned(),
            place,
            role: Role::Owner,
            read: Labels::NONE,
        }
    }

    /// Whether the person is alone with the agent in the place.
    pub fn is_private(&self) -> bool {
        self.place.as_ref().is_some_and(SessionKey::is_private)
    }

    pub fn role(&self) -> Role {
        self.role
    }

    fn audience(&self) -> Audience {
        Audience::of(self.place.as_ref(), self.role, self.read)
    }

    /// The person whose own memories are found.
    fn people(&self) -> &[PersonId] {
        match may_be_led(self.place.as_ref(), self.role, self.read) {
            true => &[],
            false => &self.ids,
        }
    }

    /// The labels of memories saved for the reader.
    pub(super) fn labels(&self) -> Labels {
        self.read | Labels::of(self.role)
    }

    pub(super) fn ids(&self) -> &[PersonId] {
        &self.ids
    }

    pub(super) fn speaker(&self) -> Option<&PersonId> {
        self.speaker.as_ref()
    }

    pub(super) fn place(&self) -> Option<&SessionKey> {
        self.place.as_ref()
    }
}

/// The rows of a read.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// No agent: global rows only.
    Global,
    /// Rows for an agent that searches on behalf of its reader: its own rows, global rows, and the
    /// rows of agents in `read_memory_from`. Rows for a person or a place only if they are the
    /// reader's.
    Of(&'a Agent, &'a Reader),
    /// The rows of [`Scope::Of`] without global rows.
    PrivateOf(&'a Agent, &'a Reader),
    /// The rows of [`Scope::Of`] for a recall without a request by a person. Memories for one
    /// person stay out of places with other readers.
    RecalledBy(&'a Agent, &'a Reader),
}

impl Scope<'_> {
    /// The visible kinds of memories, in words.
    pub(super) fn in_words(&self) -> String {
        self.parts().join(", ")
    }

    /// The visible memories in words, a text for each kind.
    pub(crate) fn parts(&self) -> Vec<String> {
        let clause = Clause::of(*self);
        let mut parts = Vec::new();
        if let Scope::Of(agent, _) | Scope::PrivateOf(agent, _) | Scope::RecalledBy(agent, _) = self
        {
            let own = clause.has_private;
            parts.extend(own.then(|| format!("memories of {}", agent.name)));
            let others = agent.memory.read_from.iter();
            let others = others.filter(|peer| clause.owners.contains(&peer.uid));
            let others = others.filter_map(|peer| peer.folder.file_name()?.to_str());
            parts.extend(others.map(|id| format!("memories of {id} (read_memory_from)")));
        }
        let people = clause.people.iter();
        parts.extend(people.map(|person| format!("memories for {person}")));
        parts.extend(clause.place.map(|place| format!("memories for {place}")));
        if clause.has_global {
            parts.push("global memories".to_owned());
        }
        parts
    }
}

/// The rows visible to a scope. No other code decides this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clause {
    /// Agents whose rows are visible; the first is the reader's.
    owners: Vec<AgentUid>,
    /// Ids of the person whose rows are visible.
    people: Vec<PersonId>,
    /// The place whose rows are visible.
    place: Option<SessionKey>,
    has_private: bool,
    has_global: bool,
}

/// The number of global rows in the index.
pub(super) const GLOBAL: i64 = 0;

/// Values of the SQL of a clause.
pub(super) struct Values {
    /// A JSON list of uids.
    pub(super) owners: String,
    /// A JSON list of people.
    pub(super) people: String,
    pub(super) place: Option<String>,
}

impl Clause {
    pub(super) fn of(scope: Scope<'_>) -> Self {
        let clause = |agent: &Agent, reader: &Reader, people: &[PersonId], has_global| Clause {
            owners: owners(agent, reader.audience()),
            people: people.to_owned(),
            place: reader.place.clone(),
            has_private: reader.audience().may_see(&agent.memory, Content::Memory),
            has_global,
        };
        match scope {
            Scope::Global => Clause {
                owners: Vec::new(),
                people: Vec::new(),
                place: None,
                has_private: false,
                has_global: true,
            },
            Scope::Of(agent, reader) => clause(agent, reader, reader.people(), true),
            Scope::PrivateOf(agent, reader) => clause(agent, reader, reader.people(), false),
            Scope::RecalledBy(agent, reader) if reader.is_private() => {
                clause(agent, reader, &reader.ids, true)
            }
            Scope::RecalledBy(agent, reader) => clause(agent, reader, &[], true),
        }
    }

    /// A condition on `memories AS m`, with the parameters of [`Clause::values`]. Archived rows fit
    /// no side.
    pub(super) fn sql(&self) -> String {
        let global = if self.has_global {
            "m.visibility = 'global' OR "
        } else {
            ""
        };
        let private = if self.has_private {
            "m.visibility = 'private' OR "
        } else {
            ""
        };
        format!(
            "({global}(m.agent_uid IN (SELECT value FROM json_each(:owners)) AND ({private}\
             (m.visibility = 'person' AND m.person IN (SELECT value FROM json_each(:people))) \
             OR (m.visibility = 'place' AND m.place_id = (SELECT id FROM places WHERE key = :place)))))"
        )
    }

    pub(super) fn values(&self) -> Values {
        Values {
            owners: json_list(&self.owners),
            people: json_list(&self.people),
            place: self.place.as_ref().map(ToString::to_string),
        }
    }

    /// The numbers before visible words in the index. Scopes without any memory have no number.
    pub(super) fn numbers(&self, connection: &Connection) -> rusqlite::Result<Vec<i64>> {
        let mut numbers = Vec::new();
        if self.has_global {
            let mut find = connection.prepare_cached(
                "SELECT number FROM memory_scopes WHERE number = ?1 AND slots > 0",
            )?;
            add(&mut numbers, &mut find, params![GLOBAL])?;
        }
        // A statement for each row, because a list in SQL is put into a table first. Most readers
        // see the rows of a single agent.
        let mut find = connection.prepare_cached(
            "SELECT number FROM memory_scopes WHERE agent_uid = ?1 AND person IS ?2 AND place_id IS ?3 AND slots > 0",
        )?;
        let place = self.place.as_ref();
        let place = place
            .map(|place| places::id(connection, place))
            .transpose()?;
        for owner in &self.owners {
            let owner = owner.to_string();
            add(
                &mut numbers,
                &mut find,
                params![owner, None::<&str>, None::<i64>],
            )?;
            if let Some(place) = place.flatten() {
                add(&mut numbers, &mut find, params![owner, None::<&str>, place])?;
            }
            for person in &self.people {
                add(
                    &mut numbers,
                    &mut find,
                    params![owner, person.to_string(), None::<i64>],
                )?;
            }
        }
        numbers.sort_unstable_by_key(|number| std::cmp::Reverse(*number));
        Ok(numbers)
    }
}

fn add(
    numbers: &mut Vec<i64>,
    find: &mut CachedStatement<'_>,
    scope: impl Params,
) -> rusqlite::Result<()> {
    let mut rows = find.query(scope)?;
    while let Some(row) = rows.next()? {
        numbers.push(row.get(0)?);
    }
    Ok(())
}

/// Uids, and ids of people, have no quotes.
fn json_list(items: &[impl ToString]) -> String {
    let items: Vec<String> = items
        .iter()
        .map(|item| format!("\"{}\"", item.to_string()))
        .collect();
    format!("[{}]", items.join(","))
}

/// The agents whose rows an agent sees.
fn owners(agent: &Agent, audience: Audience) -> Vec<AgentUid> {
    let others = agent.memory.read_from.iter().map(|peer| peer.uid);
    let others = others.filter(|_| audience.may_see(&agent.memory, Content::OthersMemory));
    [agent.uid].into_iter().chain(others).collect()
}
