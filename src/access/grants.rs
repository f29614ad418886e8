//! Ids, roles and names granted by owners while the gateway runs: the tables `person_links`,
//! `person_roles` and `person_names`. A grant hangs on an id, not on a name, so a table of the same
//! name in config.toml takes over nothing.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::config::{GrantedPerson, People};
use crate::domain::{AgentId, AgentUid, PersonId, Role};

/// The author and the time of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grantor {
    /// A person's id, or `cli`.
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) at: i64,
}

/// Everything granted to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    /// Stands for the person.
    pub(crate) main: PersonId,
    pub(crate) name: Option<(String, Grantor)>,
    pub(crate) links: Vec<(PersonId, Grantor)>,
    pub(crate) role: Option<(Role, Grantor)>,
    pub(crate) agents: BTreeMap<AgentId, (Role, Grantor)>,
}

impl Granted {
    fn new(main: PersonId) -> Self {
        Granted {
            main,
            name: None,
            links: Vec::new(),
            role: None,
            agents: BTreeMap::new(),
        }
    }

    fn person(&self) -> GrantedPerson {
        let links = self.links.iter().map(|(id, _)| id);
        let agents = self.agents.iter();
        GrantedPerson {
            name: self.name.as_ref().map(|(name, _)| name.clone()),
            ids: std::iter::once(&self.main).chain(links).cloned().collect(),
            role: self.role.as_ref().map(|(role, _)| *role),
            agents: agents
                .map(|(agent, (role, _))| (agent.clone(), *role))
                .collect(),
        }
    }
}

/// A number changed by every grant of any process.
pub(crate) fn revision(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT number FROM people_revision")?
        .query_row([], |row| row.get(0))
}

/// The people of the file with all grants of now.
pub(crate) fn people(connection: &Connection, people: &People) -> rusqlite::Result<People> {
    // Before the rows, so that a change in between is noticed by the next look.
    let revision = revision(connection)?;
    let granted: Vec<GrantedPerson> = load(connection)?.iter().map(Granted::person).collect();
    Ok(people.granting(&granted, revision))
}

/// Everything granted, by person.
pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Vec<Granted>> {
    let mut granted: BTreeMap<PersonId, Granted> = BTreeMap::new();
    fn of<'a>(granted: &'a mut BTreeMap<PersonId, Granted>, main: &PersonId) -> &'a mut Granted {
        let new = || Granted::new(main.clone());
        granted.entry(main.clone()).or_insert_with(new)
    }
    let names = "SELECT main, granted_by, granted_name, granted_at, name FROM person_names";
    for (main, grantor, name) in rows(connection, names, |row| row.get(4))? {
        of(&mut granted, &main).name = Some((name, grantor));
    }
    let links = "SELECT main, granted_by, granted_name, granted_at, id FROM person_links ORDER BY granted_at, id";
    for (main, grantor, id) in rows(connection, links, |row| row.get::<_, String>(4))? {
        if let Ok(id) = id.parse() {
            of(&mut granted, &main).links.push((id, grantor));
        }
    }
    // Roles with removed agents wait until the agent is brought back.
    let roles = "SELECT main, granted_by, granted_name, granted_at, role, coalesce(slug, '')
        FROM person_roles LEFT JOIN agents ON uid = agent_uid
        WHERE agent_uid = '' OR (uid IS NOT NULL AND archived_at IS NULL)";
    let read = |row: &Row<'_>| Ok((row.get::<_, String>(4)?, row.get::<_, String>(5)?));
    for (main, grantor, (role, agent)) in rows(connection, roles, read)? {
        let Ok(role) = role.parse() else { continue };
        let known = of(&mut granted, &main);
        match AgentId::parse(&agent) {
            Ok(agent) => drop(known.agents.insert(agent, (role, grantor))),
            Err(_) => known.role = Some((role, grantor)),
        }
    }
    Ok(granted.into_values().collect())
}

/// Rows beginning with the main id and the grantor. Rows with an invalid id are left out.
fn rows<T>(
    connection: &Connection,
    sql: &str,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<(PersonId, Grantor, T)>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let grantor = Grantor {
            id: row.get(1)?,
            name: row.get(2)?,
            at: row.get(3)?,
        };
        let main = row.get::<_, String>(0)?.parse::<PersonId>().ok();
        Ok(main.map(|main| (main, grantor)).zip(Some(read(row)?)))
    })?;
    let known = rows.filter_map(Result::transpose);
    known
        .map(|row| row.map(|((main, grantor), rest)| (main, grantor, rest)))
        .collect()
}

pub(crate) fn set_role(
    tx: &Transaction<'_>,
    main: &PersonId,
    agent: Option<AgentUid>,
    role: Role,
    by: &Grantor,
) -> rusqlite::Result<()> {
    let agent = agent.map_or_else(String::new, |uid| uid.to_string());
    tx.execute(
        "INSERT OR REPLACE INTO person_roles (main, agent_uid, role, granted_by, granted_name, granted_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![main.to_string(), agent, role.as_str(), by.id, by.name, by.at],
    )?;
    changed(tx)
}

/// Ends the guest role of a person who was let in.
pub(crate) fn end_guest_role(tx: &Transaction<'_>, id: &PersonId) -> rusqlite::Result<()> {
    let sql = "DELETE FROM person_roles WHERE agent_uid = '' AND role = 'guest'
               AND (main = ?1 OR main IN (SELECT main FROM person_links WHERE id = ?1))";
    match tx.execute(sql, [id.to_string()])? {
        0 => Ok(()),
        _ => changed(tx),
    }
}

/// False if another person has the name.
pub(crate) fn set_name(
    tx: &Transaction<'_>,
    main: &PersonId,
    name: &str,
    by: &Grantor,
) -> rusqlite::Result<bool> {
    let other: Option<String> = tx
        .query_row(
            "SELECT main FROM person_names WHERE name = ?1",
            [name],
            |row| row.get(0),
        )
        .optional()?;
    if other.is_some_and(|other| other != main.to_string()) {
        return Ok(false);
    }
    tx.execute(
        "INSERT OR REPLACE INTO person_names (main, name, granted_by, granted_name, granted_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![main.to_string(), name, by.id, by.name, by.at],
    )?;
    changed(tx)?;
    Ok(true)
}

/// Makes an id another id of a person. Ids linked to the id come along; its own roles and name end,
/// because the person has theirs.
pub(crate) fn link(
    tx: &Transaction<'_>,
    main: &PersonId,
    id: &PersonId,
    by: &Grantor,
) -> rusqlite::Result<()> {
    let (main, id) = (main.to_string(), id.to_string());
    tx.execute("DELETE FROM person_roles WHERE main = ?1", [&id])?;
    tx.execute("DELETE FROM person_names WHERE main = ?1", [&id])?;
    tx.execute(
        "UPDATE person_links SET main = ?2 WHERE main = ?1",
        params![id, main],
    )?;
    tx.execute(
        "INSERT OR REPLACE INTO person_links (id, main, granted_by, granted_name, granted_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![id, main, by.id, by.name, by.at],
    )?;
    changed(tx)
}

/// Takes back all grants to a person. False if the person had none.
pub(crate) fn remove(tx: &Transaction<'_>, ids: &[PersonId]) -> rusqlite::Result<bool> {
    let mut removed = 0;
    for id in ids {
        let id = id.to_string();
        removed += tx.execute("DELETE FROM person_roles WHERE main = ?1", [&id])?
            + tx.execute("DELETE FROM person_names WHERE main = ?1", [&id])?
            + tx.execute("DELETE FROM person_links WHERE id = ?1 OR main = ?1", [&id])?;
    }
    changed(tx)?;
    Ok(removed > 0)
}

/// Deletes the roles with an agent.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<()> {
    tx.execute(
        "DELETE FROM person_roles WHERE agent_uid = ?1",
        [uid.to_string()],
    )?;
    changed(tx)
}

/// Makes every gateway on the home look again.
pub(crate) fn changed(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    tx.execute("UPDATE people_revision SET number = number + 1", [])
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Db;

    fn id(text: &str) -> PersonId {
        text.parse().unwrap()
    }

    fn cli(at: i64) -> Grantor {
        Grantor {
            id: "cli".into(),
            name: None,
            at,
        }
    }

    #[tokio::test]
    async fn a_linked_id_brings_its_links_and_leaves_its_roles() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let work = move |tx: &Transaction<'_>| {
            let before = revision(tx)?;
            set_role(tx, &id("telegram:2"), None, Role::Owner, &cli(1))?;
            link(tx, &id("telegram:2"), &id("discord:2"), &cli(2))?;
            assert!(set_name(tx, &id("telegram:2"), "bob", &cli(3))?);
            assert!(!set_name(tx, &id("telegram:3"), "bob", &cli(3))?, "taken");
            set_role(tx, &id("telegram:1"), None, Role::Member, &cli(4))?;
            link(tx, &id("telegram:1"), &id("telegram:2"), &cli(5))?;
            let people = people(tx, &People::default())?;
            assert_eq!(people.all().len(), 1);
            for linked in ["telegram:1", "telegram:2", "discord:2"] {
                assert_eq!(people.of(&id(linked)).unwrap().role, Some(Role::Member));
                assert_eq!(people.main_id(&id(linked)), &id("telegram:1"));
            }
            assert_eq!(people.revision(), before + 5);
            assert!(remove(tx, people.ids_of(&id("discord:2")))?);
            assert_eq!(load(tx)?, []);
            assert!(!remove(tx, &[id("discord:2")])?);
            Ok(())
        };
        db.write(work).await.unwrap();
    }
}
