//! The life of agents. Changes of the home are made by `tenants`; a running gateway then takes them
//! in at once.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Number;
use tokio::time::{Instant, sleep};
use utoipa::ToSchema;

use super::config_file::{blocking, difference, examined};
use super::{Live, Operations, Refusal, RefusalKind, texts, work};
use crate::agents::{Agent, Registry};
use crate::clock::now_ms;
use crate::config::{ListedProblem, Report};
use crate::domain::{AgentId, AgentUid, nearest};
use crate::home::Reload;
use crate::lanes::{Sessions, Stage};
use crate::records::agent_pauses::Pause;
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::config_history;
use crate::tenants::{
    self, Added, Adding, Imported, OldFolder, Purged, Removed, Restored, Setting, Site, Stake,
    Steered, Steering, TenantError, Wish,
};

/// A wish about an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentRequest {
    /// Whether a new agent can have this id.
    MayAdd {
        id: String,
    },
    Add(Adding),
    Adopt {
        id: String,
    },
    Clone {
        from: String,
        to: String,
    },
    SetDefault {
        agent: String,
    },
    /// Changes keys in its table.
    Edit {
        agent: String,
        edit: Box<AgentEdit>,
    },
    Rename {
        from: String,
        to: String,
    },
    Remove {
        agent: String,
    },
    Restore {
        which: String,
        as_id: Option<String>,
    },
    /// What a purge would destroy.
    AtStake {
        which: String,
    },
    Purge {
        which: String,
    },
    /// Pauses, resumes, restarts or clears an agent.
    Steer {
        agent: String,
        steering: Steering,
    },
    Import {
        file: PathBuf,
        as_id: Option<String>,
        keep_global: bool,
        only_look: bool,
    },
}

impl AgentRequest {
    /// Additions to the config are made under its own lock.
    pub(super) fn shares_home(&self) -> bool {
        matches!(
            self,
            AgentRequest::MayAdd { .. }
                | AgentRequest::Add(_)
                | AgentRequest::Adopt { .. }
                | AgentRequest::Clone { .. }
                | AgentRequest::SetDefault { .. }
                | AgentRequest::AtStake { .. }
        )
    }
}

/// Keys of an agent's table. Absent: stays. Null: is taken out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentEdit {
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) name: Option<Option<String>>,
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) emoji: Option<Option<String>>,
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) creature: Option<Option<String>>,
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) vibe: Option<Option<String>>,
    /// `provider/model`
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) model: Option<Option<String>>,
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) fallback: Option<Option<Vec<String>>>,
    /// Names of allowed skills; null allows the whole pool.
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) skills: Option<Option<Vec<String>>>,
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) system_prompt: Option<Option<String>>,
    /// The name of a `[risk_profiles.<name>]`.
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) risk_profile: Option<Option<String>>,
    /// look, change or reach.
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) max_risk: Option<Option<String>>,
    #[serde(default)]
    pub(crate) tools: ToolsEdit,
    #[serde(default)]
    pub(crate) limits: LimitsEdit,
}

/// Keys of `[agents.<id>.tools]`. Absent: stays. Null: is taken out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsEdit {
    /// Only these tools; null allows all.
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) allow: Option<Option<Vec<String>>>,
    /// Not these tools.
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) deny: Option<Option<Vec<String>>>,
}

/// Keys of `[agents.<id>.limits]`. Absent: stays. Null: is taken out. Zero is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsEdit {
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub(crate) max_steps: Option<Option<i64>>,
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub(crate) max_minutes: Option<Option<i64>>,
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub(crate) tokens_per_turn: Option<Option<i64>>,
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub(crate) tokens_per_day: Option<Option<i64>>,
    /// Money, with at most six decimals.
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub(crate) cost_per_day: Option<Option<Number>>,
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub(crate) tokens_per_month: Option<Option<i64>>,
    /// Money, with at most six decimals.
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub(crate) cost_per_month: Option<Option<Number>>,
    #[serde(default, with = "settable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub(crate) turns_per_minute: Option<Option<i64>>,
}

impl LimitsEdit {
    fn settings(self) -> impl Iterator<Item = Setting> {
        let counts = [
            ("limits.max_steps", self.max_steps),
            ("limits.max_minutes", self.max_minutes),
            ("limits.tokens_per_turn", self.tokens_per_turn),
            ("limits.tokens_per_day", self.tokens_per_day),
            ("limits.tokens_per_month", self.tokens_per_month),
            ("limits.turns_per_minute", self.turns_per_minute),
        ];
        let costs = [
            ("limits.cost_per_day", self.cost_per_day),
            ("limits.cost_per_month", self.cost_per_month),
        ];
        let counts = counts.into_iter();
        let counts = counts.filter_map(|(key, value)| Some(Setting::number(key, value?)));
        let costs = costs.into_iter();
        let costs = costs.filter_map(|(key, value)| Some(Setting::number(key, value?)));
        counts.chain(costs)
    }
}

/// What a change would do to config.toml.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct EditPreview {
    /// Whether anything would change.
    pub(crate) changes: bool,
    /// Whether the change could be made: no problem is an error.
    pub(crate) ok: bool,
    #[schema(value_type = Vec<Object>)]
    pub(crate) problems: Vec<ListedProblem>,
    /// Each line with its mark: a space in both, `-` only before, `+` only after.
    pub(crate) lines: Vec<String>,
}

/// Shows what [`AgentRequest::Edit`] would do, and changes nothing.
pub(crate) async fn preview(
    operations: &Operations,
    actor: &Actor,
    word: &str,
    edit: AgentEdit,
) -> Result<EditPreview, Refusal> {
    let site = Site {
        home: operations.home.clone(),
        db: operations.db.clone(),
        by: actor.clone(),
    };
    let edited = tenants::preview(&site, word, edit.settings()).await?;
    let home = operations.home.clone();
    blocking(move || {
        let (_, checked) = examined(&home, edited.after.clone());
        Ok(EditPreview {
            changes: edited.is_new(),
            ok: checked.ok,
            problems: checked.problems,
            lines: difference(&edited.before, &edited.after),
        })
    })
    .await
}

/// A null is told apart from an absent key.
mod settable {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer, T: Serialize>(
        value: &Option<Option<T>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<Option<Option<T>>, D::Error> {
        Option::<T>::deserialize(deserializer).map(Some)
    }
}

impl AgentEdit {
    fn settings(self) -> Vec<Setting> {
        let texts = [
            ("name", self.name),
            ("emoji", self.emoji),
            ("creature", self.creature),
            ("vibe", self.vibe),
            ("model", self.model),
            ("system_prompt", self.system_prompt),
            ("risk_profile", self.risk_profile),
            ("max_risk", self.max_risk),
        ];
        let texts = texts.into_iter();
        let texts = texts.filter_map(|(key, value)| Some(Setting::text(key, value?)));
        let lists = [
            ("fallback", self.fallback),
            ("skills", self.skills),
            ("tools.allow", self.tools.allow),
            ("tools.deny", self.tools.deny),
        ];
        let lists = lists.into_iter();
        let lists = lists.filter_map(|(key, value)| Some(Setting::list(key, value?)));
        texts.chain(lists).chain(self.limits.settings()).collect()
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentReply {
    MayBeAdded,
    Added(Added),
    Adopted(AgentId),
    Cloned(AgentId),
    Default { agent: AgentId, is_new: bool },
    Edited { agent: AgentId, is_new: bool },
    Renamed { from: AgentId, to: AgentId },
    Removed(Removed),
    Restored(Restored),
    Stake(Stake),
    Purged(Purged),
    Imported(Imported),
    Steered { agent: AgentId, steered: Steered },
}

pub(super) async fn run(
    operations: &Operations,
    actor: &Actor,
    request: AgentRequest,
) -> Result<AgentReply, Refusal> {
    let agents = Agents {
        operations,
        site: Site {
            home: operations.home.clone(),
            db: operations.db.clone(),
            by: actor.clone(),
        },
    };
    match request {
        AgentRequest::MayAdd { id } => {
            tenants::may_add(&agents.site, &id).await?;
            Ok(AgentReply::MayBeAdded)
        }
        AgentRequest::Add(adding) => agents.add(adding).await.map(AgentReply::Added),
        AgentRequest::Adopt { id } => agents.adopt(&id).await.map(AgentReply::Adopted),
        AgentRequest::Clone { from, to } => {
            let id = tenants::clone(&agents.site, &from, &to).await?;
            agents.take_in("agent clone").await;
            Ok(AgentReply::Cloned(id))
        }
        AgentRequest::SetDefault { agent } => agents.set_default(&agent).await,
        AgentRequest::Edit { agent, edit } => agents.edit(&agent, *edit).await,
        AgentRequest::Rename { from, to } => agents.rename(&from, &to).await,
        AgentRequest::Remove { agent } => agents.remove(&agent).await.map(AgentReply::Removed),
        AgentRequest::Restore { which, as_id } => {
            let restored = tenants::restore(&agents.site, &which, as_id.as_deref()).await?;
            agents.take_in("agent restore").await;
            Ok(AgentReply::Restored(restored))
        }
        AgentRequest::AtStake { which } => {
            let stake = tenants::at_stake(&agents.site, &which).await?;
            Ok(AgentReply::Stake(stake))
        }
        AgentRequest::Steer { agent, steering } => agents.steer(&agent, steering).await,
        AgentRequest::Purge { which } => agents.purge(&which).await.map(AgentReply::Purged),
        AgentRequest::Import {
            file,
            as_id,
            keep_global,
            only_look,
        } => {
            let wish = Wish {
                as_id: as_id.as_deref(),
                keep_global,
                only_look,
            };
            let imported = tenants::import(&agents.site, &file, wish).await?;
            if !only_look {
                agents.take_in("agent import").await;
            }
            Ok(AgentReply::Imported(imported))
        }
    }
}

/// A stopped turn is over soon; a purge waits so long for its last rows.
const SOON_OVER: Duration = Duration::from_secs(10);
/// How often turns under way are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

struct Agents<'a> {
    operations: &'a Operations,
    site: Site,
}

impl Agents<'_> {
    async fn add(&self, adding: Adding) -> Result<Added, Refusal> {
        let added = tenants::add(&self.site, adding).await?;
        self.note(Action::AgentAdd, &added.id).await?;
        self.take_in("agent add").await;
        Ok(added)
    }

    async fn adopt(&self, id: &str) -> Result<AgentId, Refusal> {
        let id = tenants::adopt(&self.site, id).await?;
        self.note(Action::AgentAdd, &id).await?;
        self.take_in("agent adopt").await;
        Ok(id)
    }

    async fn set_default(&self, word: &str) -> Result<AgentReply, Refusal> {
        let (agent, is_new) = tenants::set_default(&self.site, word).await?;
        if is_new {
            self.note(Action::AgentDefault, &agent).await?;
            self.take_in("agent default").await;
        }
        Ok(AgentReply::Default { agent, is_new })
    }

    async fn edit(&self, word: &str, edit: AgentEdit) -> Result<AgentReply, Refusal> {
        let settings = edit.settings();
        let keys: Vec<&str> = settings.iter().map(|setting| setting.key).collect();
        let keys = keys.join(" ");
        let edited = tenants::set(&self.site, word, settings).await?;
        let (agent, is_new) = (edited.agent.clone(), edited.is_new());
        if is_new {
            let by = self.site.by.clone();
            let note = move |tx: &rusqlite::Transaction<'_>| {
                let now = now_ms();
                config_history::keep(tx, &by.grantor(now).id, &edited.before, now)?;
                let change = Change::new(Action::AgentEdit).of(&edited.agent).about(keys);
                audit::note(tx, &by, &change, now)
            };
            self.operations.db.write(note).await?;
            self.take_in("agent edit").await;
        }
        Ok(AgentReply::Edited { agent, is_new })
    }

    /// Turns under way are finished under the old id.
    async fn rename(&self, from: &str, to: &str) -> Result<AgentReply, Refusal> {
        let under_way = self.under_way(from);
        let old_folder = if under_way.is_empty() {
            OldFolder::Goes
        } else {
            OldFolder::LeadsToNew
        };
        let (from, to) = tenants::rename(&self.site, (from, to), old_folder).await?;
        self.take_in("agent rename").await;
        if let Some(live) = self
            .operations
            .live
            .clone()
            .filter(|_| !under_way.is_empty())
        {
            let (home, old) = (self.site.home.clone(), from.clone());
            live.tasks.clone().spawn(async move {
                ended(&live, &under_way).await;
                tenants::stop_leading(&home, &old);
            });
        }
        Ok(AgentReply::Renamed { from, to })
    }

    /// The inbox rows of the agent's turns.
    fn under_way(&self, word: &str) -> BTreeSet<i64> {
        let Some(live) = &self.operations.live else {
            return BTreeSet::new();
        };
        let snapshot = live.snapshots.current();
        let Some(agent) = snapshot.registry.find(word) else {
            return BTreeSet::new();
        };
        rows_of(live, agent.uid)
    }

    /// Turns of the agent are stopped, and their places are told.
    async fn remove(&self, word: &str) -> Result<Removed, Refusal> {
        let removed = tenants::remove(&self.site, word).await?;
        let (id, uid) = (&removed.archive.id, removed.archive.uid);
        let label = self.label(uid).unwrap_or_else(|| id.to_string());
        self.take_in("agent remove").await;
        let Some(live) = &self.operations.live else {
            return Ok(removed);
        };
        let own = live.sessions.work().into_iter();
        let own = own.filter(|work| work.agent == Some(uid));
        let told = texts::removed(&label);
        work::end(self.operations, live, &self.site.by, own.collect(), &told).await?;
        Ok(removed)
    }

    fn label(&self, uid: AgentUid) -> Option<String> {
        let snapshot = self.operations.live.as_ref()?.snapshots.current();
        snapshot.registry.by_uid(uid).map(|agent| agent.label())
    }

    async fn purge(&self, which: &str) -> Result<Purged, Refusal> {
        let stake = tenants::at_stake(&self.site, which).await?;
        let archive = match stake.archive {
            None => self.remove(stake.id.as_str()).await?.archive,
            Some(archive) => archive,
        };
        if let Some(live) = &self.operations.live {
            let under_way = rows_of(live, archive.uid);
            // A turn that does not end leaves its last rows, and nothing else.
            drop(tokio::time::timeout(SOON_OVER, ended(live, &under_way)).await);
        }
        Ok(tenants::purge(&self.site, &archive.name).await?)
    }

    async fn steer(&self, word: &str, steering: Steering) -> Result<AgentReply, Refusal> {
        let snapshot = self.operations.snapshot().await?;
        let agent = find_agent(&snapshot.registry, word)?;
        let (uid, id, by) = (agent.uid, agent.id.clone(), self.site.by.clone());
        let write = move |tx: &rusqlite::Transaction<'_>| {
            tenants::steer(tx, steering, (uid, &id), &by, now_ms())
        };
        let steered = self.operations.db.write(write).await?;
        if let Some(live) = &self.operations.live {
            take_effect(&live.sessions, steering, uid, &self.site.by);
        }
        let agent = agent.id.clone();
        Ok(AgentReply::Steered { agent, steered })
    }

    /// For changes that write no row of their own.
    async fn note(&self, action: Action, id: &AgentId) -> Result<(), Refusal> {
        let (by, id) = (self.site.by.clone(), id.clone());
        let note = move |tx: &rusqlite::Transaction<'_>| {
            audit::note(tx, &by, &Change::new(action).of(&id), now_ms())
        };
        Ok(self.operations.db.write(note).await?)
    }

    async fn take_in(&self, cause: &str) {
        take_in(self.operations, cause).await;
    }
}

/// Has the running gateway use the changed home.
pub(super) async fn take_in(operations: &Operations, cause: &str) {
    let Some(live) = &operations.live else {
        return;
    };
    // Pins are remembered with the agent's id, and count for agents that are there.
    live.pins.all_changed();
    // A refused reload is told to the owners.
    if let Some(Reload::Refused(_)) = live.reload.ask(cause).await {
        tracing::warn!("the change counts when config.toml can be read again");
    }
    live.pins.all_changed();
}

/// The agent with this id or name.
pub(super) fn find_agent<'a>(
    registry: &'a Registry,
    word: &str,
) -> Result<&'a Arc<Agent>, Refusal> {
    registry.find(word).ok_or_else(|| {
        let ids = registry.all().iter().map(|agent| agent.id.as_str());
        Refusal::wrong_use(match nearest(word, ids.clone()) {
            Some(near) => format!("no agent is called {word}. Did you mean {near}?"),
            None => format!(
                "no agent is called {word}. The agents are: {}",
                ids.collect::<Vec<_>>().join(", ")
            ),
        })
    })
}

/// Has the lanes of a running gateway follow an agent that was steered. Call after the commit.
pub(crate) fn take_effect(sessions: &Sessions, steering: Steering, agent: AgentUid, by: &Actor) {
    match steering {
        Steering::Pause if sessions.pause_of(agent).is_some() => {}
        Steering::Pause => sessions.pause_changed(agent, Some(Pause::by(by, now_ms()))),
        Steering::Resume => sessions.pause_changed(agent, None),
        Steering::Restart => {
            let turns = sessions.begin_again(agent);
            tracing::info!(agent.uid = %agent, "restarted; {turns} turns begin again");
        }
        // The models chosen for the old conversations went with them.
        Steering::Reset => sessions.moved(),
    }
}

fn rows_of(live: &Live, agent: AgentUid) -> BTreeSet<i64> {
    let work = live.sessions.work().into_iter();
    let own = work.filter(|work| work.agent == Some(agent) && work.stage != Stage::Waits);
    own.flat_map(|work| work.item.ids).collect()
}

/// Returns when none of these rows has a turn, or the gateway stops.
async fn ended(live: &Live, rows: &BTreeSet<i64>) {
    let is_under_way = || {
        let work = live.sessions.work();
        work.iter()
            .any(|work| work.item.ids.iter().any(|id| rows.contains(id)))
    };
    let began = Instant::now();
    while is_under_way() && !live.stop.is_cancelled() {
        // A long turn is looked at less often.
        sleep(LOOK_AGAIN.max(began.elapsed() / 20)).await;
    }
}

impl From<TenantError> for Refusal {
    fn from(error: TenantError) -> Self {
        match error {
            TenantError::Unknown(error) => Refusal::wrong_use(error.to_string()),
            TenantError::Conflict(error) => Refusal {
                kind: RefusalKind::Conflict,
                ..Refusal::failed(error.to_string())
            },
            TenantError::Problems(report) => {
                let errors = if report.problems.len() == 1 {
                    "this error"
                } else {
                    "these errors"
                };
                let end = format!(
                    "Nothing was changed. With your options config.toml would have had {errors}."
                );
                with_end(&report, &end)
            }
            TenantError::Broken(report) => {
                with_end(&report, "Nothing was changed. Fix config.toml first.")
            }
            other => Refusal::failed(other.to_string()),
        }
    }
}

/// A report that ends with the operation's own words.
fn with_end(report: &Report, end: &str) -> Refusal {
    let rendered = |color| format!("{}{end}", report.render_problems(color));
    Refusal {
        coloured: Some(rendered(true)),
        ..Refusal::failed(rendered(false))
    }
}
