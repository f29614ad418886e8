//! What would become of a message, real or made up, under the rules that count or under edited ones,
//! and which real messages edited rules would answer in another way. Changes nothing.
//!
//! Everything is decided by the functions that the gateway asks.

mod replay;
mod stages;

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use serde::Serialize;
use tokio::sync::Semaphore;
use utoipa::ToSchema;

use super::abilities::{self, Abilities, Asker, ToolsLeft};
use super::config_file::{self, Checked, blocking};
use super::house::House;
use super::named::Named;
use super::thinking::{Thinking, thinking};
use super::{Operations, Refusal};
use crate::access::{Role, Standing, people};
use crate::agents::{AgentModels, Registry};
use crate::answering::{Answer, Faltering, Question, Silence, over_at, who_answers};
use crate::clock::now_ms;
use crate::config::settings::Settings;
use crate::config::{Config, ModelRef};
use crate::domain::{Addressed, Origin};
use crate::home::{self, CheckedConfig};
use crate::records::{agent_pauses, model_overrides};
use crate::routing::ranked::Ranked;
use crate::routing::{self, Table, Visit, names, pins};

pub(crate) use replay::{Message, Replay, message, recent, replay};
pub(crate) use stages::Stage;

/// Texts that are checked at once; others wait. A person who types asks again and again.
static TRIALS: Semaphore = Semaphore::const_new(2);

/// Rules that are looked at.
pub(crate) struct Rules {
    /// With the people that were granted something in chat.
    pub(crate) house: House,
    /// The config as it is written.
    pub(crate) written: Arc<Config>,
    pub(crate) table: Arc<Table>,
    registry: Arc<Registry>,
    settings: Settings,
}

impl Rules {
    /// The rules that count now.
    pub(crate) async fn running(operations: &Operations) -> Result<Self, Refusal> {
        let snapshot = operations.snapshot().await?;
        let text = config_file::read(operations).await?.text;
        let (config, table) = (snapshot.config.clone(), snapshot.table.clone());
        Ok(Rules {
            house: house(operations, config.clone(), table.clone()).await?,
            settings: settings(operations.home.clone(), config.clone(), text).await?,
            registry: snapshot.registry.clone(),
            written: config,
            table,
        })
    }

    /// The rules of a text, if it has no problem.
    pub(crate) async fn edited(
        &self,
        operations: &Operations,
        text: String,
    ) -> Result<(Option<Self>, Checked), Refusal> {
        let _turn = TRIALS.acquire().await;
        let (home, examined) = (operations.home.clone(), text.clone());
        let found = blocking(move || Ok(config_file::examined(&home, examined)));
        let (usable, checked) = found.await?;
        let Some((config, table)) = usable else {
            return Ok((None, checked));
        };
        let (written, table) = (Arc::new(config), Arc::new(table));
        let granted = CheckedConfig {
            config: written.clone(),
            table: table.clone(),
        };
        let config = granted.with_grants(&operations.db).await?.config;
        let registry = home::imagined(&config, &operations.home, &operations.db).await?;
        let rules = Rules {
            house: self.house.under(config.clone(), table.clone()),
            settings: settings(operations.home.clone(), config, text).await?,
            registry: Arc::new(registry),
            written,
            table,
        };
        Ok((Some(rules), checked))
    }

    pub(crate) fn config(&self) -> &Arc<Config> {
        &self.house.config
    }
}

/// The house under these rules, with the names of places that are ignored.
async fn house(
    operations: &Operations,
    config: Arc<Config>,
    table: Arc<Table>,
) -> Result<House, Refusal> {
    let house = House::load(&operations.db, config, table).await?;
    Ok(house.with_places(operations.ignored_names()))
}

async fn settings(home: PathBuf, config: Arc<Config>, text: String) -> Result<Settings, Refusal> {
    blocking(move || Ok(Settings::of(&config, &text, &home))).await
}

/// Whether a text is a command when a person of this role writes it.
pub(crate) type IsCommand = Arc<dyn Fn(Role) -> bool + Send + Sync>;

/// A message, real or made up.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) origin: Origin,
    pub(crate) addressed: Addressed,
    /// Instead of the writer's own.
    pub(crate) role: Option<Role>,
    pub(crate) text: String,
    pub(crate) is_command: IsCommand,
}

/// The way of a message, from the door to what its answer would be made with.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Walk {
    pub(crate) place: Named,
    /// The names of group and topic, where both are known: `Family/Garden`.
    pub(crate) path: Option<String>,
    /// Null: nobody in particular.
    pub(crate) person: Option<Named>,
    /// With the agent.
    pub(crate) role: &'static str,
    /// `privately`, `by_mention`, `by_reply`, `by_topic_name` or `not_at_all`.
    #[schema(value_type = String)]
    pub(crate) addressed: Addressed,
    /// Parlor itself answers.
    pub(crate) is_command: bool,
    /// The agent that answers; null: nobody does.
    pub(crate) agent: Option<Named>,
    /// The agent that would, if something does not keep it from answering.
    pub(crate) meant: Named,
    /// Why nobody answers.
    pub(crate) silence: Option<&'static str>,
    /// What was asked in turn. The first that stops the message is the reason for a silence.
    pub(crate) stages: Vec<Stage>,
    /// All fourteen, strongest first.
    pub(crate) ranks: Vec<Ranked>,
    pub(crate) model: Option<Thinking>,
    /// Which rule takes which tools away.
    pub(crate) tools_left: Vec<ToolsLeft>,
    /// Tools, skills, memory and limits; null for an agent that is not there yet.
    pub(crate) abilities: Option<Abilities>,
}

/// A walk, with what a sentence about it needs.
pub(crate) struct Walked {
    pub(crate) walk: Walk,
    pub(crate) answer: Answer,
    pub(crate) origin: Origin,
    pub(crate) standing: Standing,
}

/// Walks a message through the rules.
pub(crate) async fn walk(
    operations: &Operations,
    rules: &Rules,
    case: &Case,
) -> Result<Walked, Refusal> {
    let Asked {
        origin,
        standing,
        answer,
        wanted,
        is_command,
    } = ask(operations, rules, case).await?;
    let role = standing.with(answer.agent());
    let present = present(operations, rules, &answer, &origin, role).await?;
    let visit = Visit {
        access: &rules.config().access,
        origin: &origin,
        standing: &standing,
    };
    let said = (case.addressed, is_command);
    let stages = stages::of(rules, &answer, &present, visit, said);
    let answer = completed(
        operations,
        rules,
        answer,
        present,
        (&origin, wanted.as_ref()),
    )
    .await?;
    let asker = Asker {
        person: origin.person.clone(),
        role,
        place: origin.key.clone(),
    };
    let abilities = abilities_of(operations, rules, &answer, &asker).await?;
    let house = &rules.house;
    let is_answered = answer.silence.is_none() && !is_command;
    let tools_left = abilities
        .as_ref()
        .map(|has| abilities::tools_left(&has.tools));
    let walk = Walk {
        place: house.names.place(&origin.key),
        path: house.names.path(&origin.key),
        person: (!origin.person.is_nobody()).then(|| house.names.person(&origin.person)),
        role: role.as_str(),
        addressed: case.addressed,
        is_command,
        agent: is_answered.then(|| house.agent(answer.agent())),
        meant: house.agent(answer.agent()),
        silence: answer.silence.as_ref().map(Silence::as_str),
        stages,
        ranks: ranks(rules, &answer, &origin),
        model: thinking(
            rules.config(),
            answer.agent(),
            wanted.as_ref(),
            &rules.settings,
        ),
        tools_left: tools_left.unwrap_or_default(),
        abilities,
    };
    Ok(Walked {
        walk,
        answer,
        origin,
        standing,
    })
}

/// The answer of rules and settings made in chat, with what it was asked with.
struct Asked {
    origin: Origin,
    standing: Standing,
    answer: Answer,
    /// Chosen with /model.
    wanted: Option<ModelRef>,
    is_command: bool,
}

async fn ask(operations: &Operations, rules: &Rules, case: &Case) -> Result<Asked, Refusal> {
    let config = rules.config();
    let mut origin = case.origin.clone();
    rules.house.follow(&mut origin);
    let (access, asked) = (config.clone(), origin.clone());
    let read = move |connection: &Connection| {
        Ok((
            people::standing(connection, &access.access, &asked.person)?,
            pins::from_chat(connection, &asked.key)?,
            names::load(connection, &asked.key)?,
            model_overrides::load(connection, &asked.key)?,
        ))
    };
    let (standing, from_chat, name, wanted) = operations.db.read(read).await?;
    origin.name = origin.name.or(name);
    let standing = case.role.map_or(standing, Standing::just);
    let is_command = (case.is_command)(standing.role());
    let answer = who_answers(Question {
        table: &rules.table,
        visit: Visit {
            access: &config.access,
            origin: &origin,
            standing: &standing,
        },
        from_chat,
        addressed: case.addressed,
        is_command,
    });
    Ok(Asked {
        origin,
        standing,
        answer,
        wanted,
        is_command,
    })
}

/// The answer with everything that only the moment knows.
async fn completed(
    operations: &Operations,
    rules: &Rules,
    answer: Answer,
    present: Present,
    (origin, wanted): (&Origin, Option<&ModelRef>),
) -> Result<Answer, Refusal> {
    let config = rules.config();
    let spec = config.agents.iter().find(|spec| spec.id == *answer.agent());
    let lineup = spec.map(|spec| {
        let models = AgentModels::of(config, spec);
        models.lineup(&models.choose(wanted))
    });
    let faltering = match (&operations.live, &lineup) {
        (Some(live), Some(lineup)) => Faltering::now(&live.snapshots.current().models, lineup),
        _ => None,
    };
    let obstacles = operations
        .all_obstacles(&origin.key, &origin.person, answer.needs_mention)
        .await?;
    let Present { pause, over, door } = present;
    let answer = answer.at_the_door(door).unless_paused(pause).within(over);
    Ok(answer.with_models(faltering).behind(obstacles))
}

fn ranks(rules: &Rules, answer: &Answer, origin: &Origin) -> Vec<Ranked> {
    let pin = answer.resolved.pin.as_ref();
    let mut explanation = routing::explain(&rules.table, pin, origin);
    explanation.route = answer.resolved.route.clone();
    explanation.by_rank()
}

/// None for an agent that is not there yet.
async fn abilities_of(
    operations: &Operations,
    rules: &Rules,
    answer: &Answer,
    asker: &Asker,
) -> Result<Option<Abilities>, Refusal> {
    let Some(agent) = rules.registry.get(answer.agent()) else {
        return Ok(None);
    };
    let (db, settings) = (&operations.db, &rules.settings);
    let found = abilities::abilities(db, rules.config(), settings, agent, asker).await?;
    Ok(Some(found))
}

/// What only the store knows about an answer.
struct Present {
    pause: Option<agent_pauses::Pause>,
    over: Option<crate::turn::budget::Over>,
    door: Option<people::AtTheDoor>,
}

async fn present(
    operations: &Operations,
    rules: &Rules,
    answer: &Answer,
    origin: &Origin,
    role: Role,
) -> Result<Present, Refusal> {
    let agent = rules.registry.get(answer.agent());
    let spec = rules.config().agents.iter();
    let limits = spec.clone().find(|spec| spec.id == *answer.agent());
    let asked = agent.zip(limits.map(|spec| spec.limits.budget));
    let asked = asked.map(|(agent, limits)| (agent.uid, limits));
    let (config, person) = (rules.config().clone(), origin.person.clone());
    let read = move |connection: &Connection| {
        let now = now_ms();
        let (pause, over) = match asked {
            Some((uid, limits)) => (
                agent_pauses::of(connection, uid)?,
                over_at(connection, &config, (uid, limits), &person, role, now)?,
            ),
            None => (None, None),
        };
        let door = people::at_the_door(connection, &person, now)?;
        Ok(Present { pause, over, door })
    };
    Ok(operations.db.read(read).await?)
}
