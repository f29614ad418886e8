//! Cases that are kept as `[[route_tests]]` in config.toml.

use serde::Serialize;
use toml_edit::{Array, Table, value};
use utoipa::ToSchema;

use super::agent_files::hash;
use super::config_file::{self, Checked, ConfigText, NotApplied};
use super::what_if::{Case, Rules};
use super::{Operations, Refusal, texts};
use crate::access::{Role, Standing, people};
use crate::config::{NOBODY, RouteTest, Spanned, edit};
use crate::domain::{Addressed, AgentId};
use crate::home::route_tests;
use crate::records::audit::Actor;

/// A case to be kept.
pub(crate) struct Wish {
    pub(crate) case: Case,
    /// Absent: made of agent and place.
    pub(crate) name: Option<String>,
    /// The expected agent, or `nobody`. Absent: as the rules say.
    pub(crate) agent: Option<String>,
}

/// A case that was added to a text.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Kept {
    /// The whole text.
    #[serde(flatten)]
    pub(crate) config: ConfigText,
    /// The first line of the test.
    pub(crate) line: usize,
    /// The expected agent; null: nobody.
    pub(crate) agent: Option<String>,
    /// Whether config.toml has it.
    pub(crate) saved: bool,
}

/// Adds a case to a text, and writes nothing. A text with problems is told as such.
pub(crate) async fn add(
    operations: &Operations,
    text: String,
    wish: &Wish,
) -> Result<Result<Kept, Checked>, Refusal> {
    let running = Rules::running(operations).await?;
    let (rules, checked) = running.edited(operations, text.clone()).await?;
    let Some(rules) = rules else {
        return Ok(Err(checked));
    };
    if (wish.case.is_command)(Role::Owner) {
        return Err(Refusal::wrong_use(texts::COMMAND_IS_NO_CASE));
    }
    let test = test(operations, &rules, wish).await?;
    let added = edit::add_route_test(&text, table(&test))
        .map_err(|error| Refusal::failed(error.to_string()))?;
    let line = added_at(&text, &added);
    Ok(Ok(Kept {
        config: ConfigText {
            hash: hash(&added),
            text: added,
        },
        line,
        agent: test.agent.value.map(|agent| agent.to_string()),
        saved: false,
    }))
}

/// Adds a case to config.toml, and has the gateway read it. `base` is the hash of the file's text.
pub(crate) async fn keep(
    operations: &Operations,
    actor: &Actor,
    base: &str,
    wish: &Wish,
) -> Result<Kept, NotApplied> {
    let now = config_file::read(operations).await?;
    if now.hash != base {
        return Err(NotApplied::Stale(now));
    }
    let kept = add(operations, now.text, wish).await?;
    let kept = kept.map_err(NotApplied::Problems)?;
    let config = config_file::apply(operations, actor, base, kept.config.text).await?;
    Ok(Kept {
        config,
        saved: true,
        ..kept
    })
}

/// The case as a test. A role that is not in the file is written into the test, because a test knows
/// the file alone.
async fn test(operations: &Operations, rules: &Rules, wish: &Wish) -> Result<RouteTest, Refusal> {
    let origin = &wish.case.origin;
    let (config, person) = (rules.config().clone(), origin.person.clone());
    let read = move |connection: &rusqlite::Connection| {
        people::standing(connection, &config.access, &person)
    };
    let standing = operations.db.read(read).await?;
    let plain = Standing::of(&rules.written.access, &origin.person, false);
    let role = (wish.case.role).or_else(|| (standing != plain).then(|| standing.role()));
    let mut test = RouteTest {
        name: wish.name.clone(),
        place: origin.key.clone(),
        person: (!origin.person.is_nobody()).then(|| origin.person.clone()),
        roles: origin.roles.clone(),
        server: origin.server,
        category: origin.category,
        topic: origin.name.clone(),
        tags: origin.tags.clone(),
        role,
        text: wish.case.text.clone(),
        mention: wish.case.addressed != Addressed::NotAtAll
            && wish.case.addressed != Addressed::ByReply,
        reply: wish.case.addressed == Addressed::ByReply,
        agent: Spanned {
            value: None,
            span: 0..0,
        },
    };
    test.agent.value = match wish.agent.as_deref() {
        Some(NOBODY) => None,
        Some(word) => {
            let id = AgentId::parse(word).map_err(|error| Refusal::wrong_use(error.to_string()))?;
            Some(id)
        }
        None => {
            let judged = route_tests::outcome(&rules.written, &rules.table, &test);
            judged.answered_by().cloned()
        }
    };
    let names = &rules.house.names;
    test.name.get_or_insert_with(|| {
        let place = names.path(&test.place);
        let place = place.or_else(|| names.place(&test.place).name);
        let place = place.or_else(|| test.topic.clone());
        texts::case_name(test.agent.value.as_ref(), place, &test.place)
    });
    Ok(test)
}

/// The test as it is written. What is as without the key is left out.
fn table(test: &RouteTest) -> Table {
    let mut table = Table::new();
    let expected = test.agent.value.as_ref().map(ToString::to_string);
    let texts = [
        ("name", test.name.clone()),
        ("place", Some(test.place.to_string())),
        ("agent", Some(expected.unwrap_or_else(|| NOBODY.to_owned()))),
        ("person", test.person.as_ref().map(ToString::to_string)),
        ("role", test.role.map(|role| role.as_str().to_owned())),
        (
            "text",
            Some(test.text.clone()).filter(|text| !text.is_empty()),
        ),
        ("topic", test.topic.clone()),
        ("server", test.server.map(|id| id.to_string())),
        ("category", test.category.map(|id| id.to_string())),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            table.insert(key, value(text));
        }
    }
    if !test.mention && !test.reply {
        table.insert("mention", value(false));
    }
    if test.reply {
        table.insert("mention", value(false));
        table.insert("reply", value(true));
    }
    let roles: Vec<String> = test.roles.iter().map(ToString::to_string).collect();
    for (key, list) in [("roles", &roles), ("tags", &test.tags)] {
        if !list.is_empty() {
            table.insert(
                key,
                value(list.iter().map(String::as_str).collect::<Array>()),
            );
        }
    }
    table
}

/// The first line that the longer text has and the other has not, counted from 1; without the empty
/// line before it.
fn added_at(before: &str, after: &str) -> usize {
    let same = before.lines().zip(after.lines());
    let same = same.take_while(|(one, other)| one == other).count();
    let empty = after.lines().skip(same);
    same + empty.take_while(|line| line.trim().is_empty()).count() + 1
}
