//! ZeroClaw: one TOML file for all agents, shared databases, a bot alias that belongs to an agent.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use serde_json::{Map, Value};

use super::Wish;
use super::found::{
    Content, Found, FoundAgent, FoundBinding, FoundConversation, FoundMemory, FoundPerson,
};
use super::mapping::{self, Address, Token, ToolLists, words};
use super::openclaw::IDENTITY;
use super::plan;
use super::report::{Kind, System};
use super::source::{Database, Source, slug};
use super::tree::{Tree, What};
use crate::config::{MemorySwitch, Names, Risk, SkillNames, Visibility};
use crate::domain::{PersonId, Platform, SessionKey};
use crate::records::transcript::{Arriving, Speaker};

/// The form of the config that is understood.
const SCHEMA: i64 = 3;
const PLATFORMS: [Platform; 2] = [Platform::Telegram, Platform::Discord];
/// Folders with databases; the second is the older name.
const DATA: [&str; 2] = ["data", "workspace"];

pub(super) fn read(source: &Source, wish: &Wish) -> Option<Found> {
    let text = source.text(&source.tree, "config.toml");
    let is_folder = |path: &str| {
        source
            .tree
            .what(Path::new(path))
            .is_ok_and(|what| what == Some(What::Folder))
    };
    if text.is_none() && !is_folder("agents") && !is_folder("data") {
        return None;
    }
    let settings = text.map(|text| {
        toml::from_str::<Value>(&text).unwrap_or_else(|error| {
            source.left(Kind::File, "config.toml", error.message());
            Value::Object(Map::new())
        })
    });
    let settings = settings.unwrap_or_else(|| Value::Object(Map::new()));
    let is_known = settings["schema_version"].as_i64() == Some(SCHEMA);
    if !is_known {
        let why = "its form is not version 3, so only identity files and memories are carried; let ZeroClaw upgrade it";
        source.left(Kind::Setting, "config.toml", why);
    }
    let house = House {
        source,
        settings: &settings,
        wish,
        is_known,
    };
    let mut found = Found::default();
    house.agents(&mut found);
    house.memories(&mut found);
    if is_known {
        house.bots(&mut found);
        house.providers(&mut found);
        house.conversations(&mut found);
        house.schedules(&mut found);
        for (key, why) in [
            ("mcp", "MCP servers are set up by hand here"),
            ("knowledge_bundles", "there is no such thing here"),
        ] {
            if settings.get(key).is_some() {
                source.left(Kind::Setting, key, why);
            }
        }
    }
    Some(found)
}

struct House<'a> {
    source: &'a Source,
    settings: &'a Value,
    wish: &'a Wish,
    is_known: bool,
}

impl House<'_> {
    fn table(&self, key: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.settings[key].as_object().into_iter().flatten()
    }

    fn agents(&self, found: &mut Found) {
        let none = Value::Object(Map::new());
        let mut names: Vec<(String, &Value)> = Vec::new();
        if self.is_known {
            names.extend(
                self.table("agents")
                    .map(|(name, agent)| (name.clone(), agent)),
            );
        }
        for name in self.source.names(&self.source.tree, "agents", What::Folder) {
            if names.iter().all(|(known, _)| *known != name) {
                names.push((name, &none));
            }
        }
        for (name, settings) in names {
            if settings["enabled"] == false {
                self.source
                    .left(Kind::Agent, name, "it is switched off there");
                continue;
            }
            found.agents.push(self.agent(&name, settings));
        }
        let is_alone = found.agents.len() == 1;
        if let Some(first) = found.agents.first_mut().filter(|_| is_alone) {
            first.is_default = true;
        }
    }

    fn agent(&self, name: &str, settings: &Value) -> FoundAgent {
        let mut agent = FoundAgent::new(name);
        if let Some(tree) = self.workspace(name, settings) {
            for file in IDENTITY {
                self.source
                    .add_file(&mut agent, (&tree, Path::new(file)), file);
            }
            let beside = plan::beside(System::ZeroClaw);
            self.source.add_file(
                &mut agent,
                (&tree, Path::new("HEARTBEAT.md")),
                beside.join("HEARTBEAT.md"),
            );
            self.source
                .add_notes(&mut agent, (&tree, Path::new("memory")), &beside);
        }
        self.skills(&mut agent, settings);
        self.limits(&mut agent, settings);
        agent.table.model = self.model(settings);
        match settings["memory"]["backend"].as_str() {
            None | Some("sqlite" | "markdown") => {}
            Some("none") => agent.table.memory = Some(MemorySwitch::Off),
            Some(other) => {
                let what = format!("{name}: memories in {other}");
                self.source
                    .left(Kind::Memory, what, "they are kept by another program");
            }
        }
        if settings["identity"]["format"] == "aieos" {
            let what = format!("{name}: identity in the form aieos");
            self.source
                .left(Kind::Setting, what, "identities are Markdown files here");
        }
        let shared = words(settings["workspace"].get("read_memory_from"));
        if !shared.is_empty() {
            agent.table.read_memory_from = Some(Names(shared));
        }
        for key in ["access", "unrestricted_filesystem"] {
            if settings["workspace"]
                .get(key)
                .is_some_and(|value| *value != false)
            {
                let what = format!("{name}: workspace.{key}");
                self.source.left(
                    Kind::Setting,
                    what,
                    "the operator of this house gives rights",
                );
            }
        }
        agent
    }

    fn workspace(&self, name: &str, settings: &Value) -> Option<Arc<Tree>> {
        let usual = Path::new("agents").join(name).join("workspace");
        let named = settings["workspace"]["path"].as_str().map(PathBuf::from);
        if let Some(path) = named.filter(|path| path.is_absolute())
            && let Some(tree) = self.source.outside(&path)
        {
            return Some(Arc::new(tree));
        }
        let is_plain = usual
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let is_there = is_plain && self.source.is_folder(&self.source.tree, &usual);
        is_there.then(|| self.source.tree.below(&usual).ok().map(Arc::new))?
    }

    /// The skills of an agent's bundles. Without bundles it has none.
    fn skills(&self, agent: &mut FoundAgent, settings: &Value) {
        let Some(bundles) = settings.get("skill_bundles") else {
            return;
        };
        for name in words(Some(bundles)) {
            let bundle = &self.settings["skill_bundles"][&name];
            let (include, exclude) = (words(bundle.get("include")), words(bundle.get("exclude")));
            let folder = bundle["directory"]
                .as_str()
                .map_or_else(|| Path::new("shared/skills").join(&name), PathBuf::from);
            let folder = folder
                .strip_prefix(self.source.tree.path())
                .map_or(folder.clone(), Path::to_owned);
            if !folder
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
            {
                let what = format!("bundle {name} in {}", folder.display());
                self.source
                    .left(Kind::Skill, what, "it is outside the folder");
                continue;
            }
            let is_wanted = |skill: &str, _: &Path| {
                let is_listed = |list: &[String]| list.iter().any(|other| other == skill);
                (include.is_empty() || is_listed(&include)) && !is_listed(&exclude)
            };
            self.source
                .add_skills(agent, (&self.source.tree, &folder), is_wanted);
        }
        let mut names: Vec<String> = Vec::new();
        for file in &agent.files {
            let skill = file.target.strip_prefix("skills").ok();
            let skill = skill.and_then(|path| path.iter().next()?.to_str());
            names.extend(
                skill
                    .map(str::to_owned)
                    .filter(|name| !names.contains(name)),
            );
        }
        agent.table.skills = Some(SkillNames::Allow(Names(names)));
    }

    fn limits(&self, agent: &mut FoundAgent, settings: &Value) {
        let named = |key: &str, table: &str| {
            let name = settings[key].as_str()?;
            self.settings[table].get(name)
        };
        if let Some(risk) = named("risk_profile", "risk_profiles") {
            let lists = ToolLists {
                allow: risk
                    .get("allowed_tools")
                    .map(|list| words(Some(list)))
                    .filter(|list| !list.is_empty()),
                deny: words(risk.get("excluded_tools")),
                max_risk: match risk["level"].as_str() {
                    Some("full") => None,
                    Some("supervised") => Some(Risk::Change),
                    _ => Some(Risk::Look),
                },
            };
            let unknown = lists.put_into(&mut agent.table);
            if !unknown.is_empty() {
                let what = format!("{}: tools {}", agent.source_id, unknown.join(", "));
                self.source
                    .left(Kind::Setting, what, "there are no such tools here");
            }
        }
        if let Some(runtime) = named("runtime_profile", "runtime_profiles") {
            let steps = runtime["max_tool_iterations"].as_u64();
            agent.table.limits.max_steps = steps
                .and_then(|steps| u32::try_from(steps).ok())
                .filter(|steps| *steps > 0);
            let cents = runtime["max_cost_per_day_cents"].as_f64();
            agent.table.limits.cost_per_day = cents.map(|cents| cents / 100.0);
        }
    }

    fn model(&self, settings: &Value) -> Option<String> {
        let (kind, alias) = settings["model_provider"].as_str()?.split_once('.')?;
        let provider = &self.settings["providers"]["models"][kind][alias];
        let model = provider["model"].as_str()?;
        Some(format!("{}/{model}", slug(kind)?))
    }

    /// The alias whose bot moves in, for each platform.
    fn alias(&self, platform: Platform) -> Option<(String, &Value)> {
        let bots = self.settings["channels"][platform.as_str()].as_object()?;
        let is_on = |bot: &&Value| bot["enabled"] != false;
        let wanted = self
            .wish
            .account
            .as_ref()
            .and_then(|name| bots.get_key_value(name));
        let first = bots.iter().find(|(_, bot)| is_on(bot));
        let (name, bot) = wanted.or(first)?;
        Some((name.clone(), bot))
    }

    fn bots(&self, found: &mut Found) {
        for platform in PLATFORMS {
            let Some((alias, bot)) = self.alias(platform) else {
                continue;
            };
            let bots = self.settings["channels"][platform.as_str()].as_object();
            for other in bots
                .into_iter()
                .flat_map(Map::keys)
                .filter(|other| **other != alias)
            {
                let why = format!(
                    "there is one bot for each platform here; --account {other} takes this one"
                );
                self.source
                    .left(Kind::Setting, format!("channels.{platform}.{other}"), why);
            }
            let path = format!("channels.{platform}.{alias}.bot_token");
            if let Some(text) = bot["bot_token"].as_str() {
                let token = self.token(text, &path);
                found.secrets.push(mapping::bot(platform, path, token));
            }
            let channel = format!("{platform}.{alias}");
            let owner = self
                .table("agents")
                .find(|(_, agent)| words(agent.get("channels")).contains(&channel));
            let Some((owner, _)) = owner else {
                self.source
                    .left(Kind::Binding, channel, "no agent has this bot there");
                continue;
            };
            found.bindings.push(FoundBinding {
                source: channel.clone(),
                pattern: platform.to_string(),
                agent: owner.clone(),
                require_mention: None,
                users: None,
                roles: Vec::new(),
            });
            let peers = self.peers(platform, &channel, owner);
            for id in words(bot.get("channel_ids")) {
                found.bindings.push(FoundBinding {
                    source: format!("{channel}: channel {id}"),
                    pattern: format!("discord:channel:{id}"),
                    agent: owner.clone(),
                    require_mention: bot["mention_only"].as_bool(),
                    users: Some(peers.clone()),
                    roles: Vec::new(),
                });
            }
            for id in peers {
                if found.people.iter().all(|person| person.id != id) {
                    found.people.push(FoundPerson {
                        id,
                        name: None,
                        was_owner: false,
                    });
                }
            }
        }
    }

    /// People who may write to an agent by a bot. An open group stays closed.
    fn peers(&self, platform: Platform, channel: &str, agent: &str) -> Vec<PersonId> {
        let mut people: Vec<PersonId> = Vec::new();
        for (name, group) in self.table("peer_groups") {
            let named = group["channel"].as_str().unwrap_or_default();
            let is_for = named == channel || named == platform.as_str();
            let agents = words(group.get("agents"));
            if !is_for || !(agents.is_empty() || agents.iter().any(|other| other == agent)) {
                continue;
            }
            let ignored = words(group.get("ignore"));
            for id in words(group.get("external_peers"))
                .into_iter()
                .filter(|id| !ignored.contains(id))
            {
                match mapping::person(platform, &id) {
                    Some(id) if !people.contains(&id) => people.push(id),
                    Some(_) => {}
                    None => {
                        let why = match id.as_str() {
                            "*" => "everybody may write there; here [access] dms decides",
                            _ => "only a person's number can be carried",
                        };
                        self.source
                            .left(Kind::Person, format!("peer_groups.{name}: {id}"), why);
                    }
                }
            }
        }
        people
    }

    fn providers(&self, found: &mut Found) {
        let kinds = self.settings["providers"]["models"].as_object();
        for (kind, aliases) in kinds.into_iter().flatten() {
            let Some((alias, provider)) = aliases
                .as_object()
                .and_then(|aliases| aliases.iter().next())
            else {
                continue;
            };
            let path = format!("providers.models.{kind}.{alias}");
            let token = match provider["api_key"].as_str() {
                Some(text) => self.token(text, &path),
                None => Token::default(),
            };
            let secret = slug(kind).and_then(|name| {
                mapping::provider((&name, kind), provider["uri"].as_str(), path.clone(), token)
            });
            match secret {
                Some(secret) => found.secrets.push(secret),
                None => self
                    .source
                    .left(Kind::Setting, path, "its dialect is not known here"),
            }
        }
    }

    /// A secret of the config; an encrypted one is opened with the key beside it, if secrets are
    /// wanted.
    fn token(&self, text: &str, path: &str) -> Token {
        let Some(hex) = text.strip_prefix("enc2:") else {
            if text.starts_with("enc:") {
                self.source
                    .left(Kind::Secret, path, "it is encrypted in an old way");
                return Token::default();
            }
            return Token::read(text, &HashMap::new());
        };
        if !self.wish.with_secrets {
            return Token {
                value: Some(String::new().into()),
                variable: None,
            };
        }
        let key = self.source.tree.bytes(Path::new(".secret_key"), 1024).ok();
        let plain = key.and_then(|key| decrypt(&key, hex));
        if plain.is_none() {
            self.source.left(
                Kind::Secret,
                path,
                "it cannot be decrypted with .secret_key",
            );
        }
        Token {
            value: plain.map(Into::into),
            variable: None,
        }
    }

    /// Memories of the shared database and of each agent's own.
    fn memories(&self, found: &mut Found) {
        let mut paths: Vec<PathBuf> = DATA
            .iter()
            .map(|data| Path::new(data).join("memory/brain.db"))
            .collect();
        for agent in &found.agents {
            if Path::new(&agent.source_id)
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
            {
                paths.push(
                    Path::new("agents")
                        .join(&agent.source_id)
                        .join("workspace/memory/brain.db"),
                );
            }
        }
        for path in paths {
            let Some(database) = self.source.database(&self.source.tree, &path) else {
                continue;
            };
            let own = path
                .starts_with("agents")
                .then(|| path.iter().nth(1)?.to_str().map(str::to_owned))
                .flatten();
            self.brain(&database, own.as_deref(), found);
        }
    }

    fn brain(&self, database: &Database, own: Option<&str>, found: &mut Found) {
        let (mut talk, mut lost) = (0, 0);
        let mut days: HashMap<(String, String), Vec<String>> = HashMap::new();
        for row in self.brain_rows(database) {
            if row.category == "conversation" {
                talk += 1;
                continue;
            }
            if row.is_old {
                continue;
            }
            let alias = row.alias.as_deref().or(own).unwrap_or("default");
            let is_alone = found.agents.len() == 1;
            let agent = found
                .agents
                .iter_mut()
                .find(|agent| agent.source_id == alias || (alias == "default" && is_alone));
            let Some(agent) = agent else {
                lost += 1;
                continue;
            };
            if row.category == "daily" {
                let time = chrono::DateTime::from_timestamp_millis(row.created_at);
                let day = time.unwrap_or_default().format("%Y-%m-%d").to_string();
                let notes = days.entry((agent.source_id.clone(), day)).or_default();
                notes.push(row.text);
                continue;
            }
            agent.memories.push(FoundMemory {
                source_id: format!("{}/{}", agent.source_id, row.id),
                text: row.text,
                visibility: Visibility::Private,
                created_at: row.created_at,
            });
        }
        add_days(found, days);
        let left = |count, why| {
            if count > 0 {
                let what = super::some(count, "memory", "memories");
                self.source.left(Kind::Memory, what, why);
            }
        };
        left(talk, "they are copies of what was said");
        left(lost, "their agent is not there");
    }

    fn brain_rows(&self, database: &Database) -> Vec<BrainRow> {
        let table = ("agents", ["id", "alias"].as_slice());
        let agents = database.rows(self.source, table, ("", &[]), |row| {
            Some((row.text(0)?, row.text(1)?))
        });
        let aliases: HashMap<String, String> = agents.into_iter().collect();
        let alias = |id: String| aliases.get(&id).cloned().unwrap_or(id);
        let columns = [
            "id",
            "key",
            "content",
            "category",
            "created_at",
            "superseded_by",
            "agent_id",
        ];
        let table = ("memories", columns.as_slice());
        database.rows(self.source, table, ("", &["created_at", "id"]), |row| {
            Some(BrainRow {
                id: row.text(0)?,
                alias: row.word(6).map(alias),
                text: with_key(row.word(1), row.word(2)?),
                category: row.text(3).unwrap_or_default(),
                created_at: row.time(4).unwrap_or(0),
                is_old: row.word(5).is_some(),
            })
        })
    }

    /// Histories are kept for each sender there; those of one place are one conversation here.
    fn conversations(&self, found: &mut Found) {
        for data in DATA {
            let path = Path::new(data).join("sessions/sessions.db");
            if let Some(database) = self.source.database(&self.source.tree, path) {
                self.sessions(&database, found);
            }
        }
        for agent in &mut found.agents {
            agent
                .conversations
                .sort_by_key(|conversation| conversation.messages.last_at);
        }
    }

    fn sessions(&self, database: &Database, found: &mut Found) {
        let source = self.source;
        let columns = [
            "session_key",
            "agent_alias",
            "channel_id",
            "room_id",
            "sender_id",
        ];
        let rows = database.rows(source, ("session_metadata", &columns), ("", &[]), |row| {
            Some((
                row.text(0)?,
                [row.word(1), row.word(2), row.word(3), row.word(4)],
            ))
        });
        let metadata: HashMap<String, [Option<String>; 4]> = rows.into_iter().collect();
        let keys = database.rows(
            source,
            ("sessions", &["session_key"]),
            ("GROUP BY session_key", &[]),
            |row| row.text(0),
        );
        // By agent, and by place or key.
        let mut held: Vec<Held> = Vec::new();
        for key in keys {
            let [alias, channel, _, sender] = metadata.get(&key).cloned().unwrap_or_default();
            let place = match (&channel, &sender) {
                (Some(channel), Some(sender)) => self.place(&key, channel, sender),
                _ => Err("its place cannot be told from its name"),
            };
            let owner = alias.or_else(|| {
                let channel = channel.as_ref()?;
                let mut agents = self.table("agents");
                agents
                    .find(|(_, agent)| words(agent.get("channels")).contains(channel))
                    .map(|(name, _)| name.clone())
            });
            let first = found.agents.first().map(|agent| agent.source_id.clone());
            let Some(owner) = owner.or(first) else {
                continue;
            };
            let messages = messages(source, database, (&key, &place, sender.as_deref()));
            let same = held
                .iter_mut()
                .find(|(agent, other, ..)| *agent == owner && place.is_ok() && *other == place);
            match same {
                Some((.., all)) => all.extend(messages),
                None => held.push((owner, place, key, messages)),
            }
        }
        for (owner, place, key, mut messages) in held {
            messages.sort_by_key(|message| message.at);
            let Some(agent) = found.agent(&owner) else {
                source.left(
                    Kind::Conversation,
                    key,
                    format!("no agent `{owner}` is there"),
                );
                continue;
            };
            let source_id = place
                .as_ref()
                .map_or_else(|_| key.clone(), ToString::to_string);
            match source.spool(messages) {
                Ok(messages) if messages.count > 0 => agent.conversations.push(FoundConversation {
                    source_id,
                    name: key,
                    place,
                    messages,
                    summary: None,
                }),
                Ok(_) => {}
                Err(error) => source.left(Kind::Conversation, key, error.to_string()),
            }
        }
    }

    /// `telegram_home_-100_7_7_5` is topic 7 of the group, with the bot and the sender known.
    fn place(&self, key: &str, channel: &str, sender: &str) -> Result<SessionKey, &'static str> {
        let (platform, alias) = channel.split_once('.').unwrap_or((channel, ""));
        let known = PLATFORMS.iter().find(|known| known.as_str() == platform);
        let Some(known) = known else {
            return Err("it was held in no place of Telegram or Discord");
        };
        if self.alias(*known).is_none_or(|(name, _)| name != alias) {
            return Err("it was held with another bot");
        }
        let flat = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
        let rest = key.strip_prefix(&format!("{platform}_{}_", flat(alias)));
        let rest = rest.and_then(|rest| rest.strip_suffix(&format!("_{}", flat(sender))));
        let fields: Vec<&str> = rest.unwrap_or_default().split('_').collect();
        let (chat, thread) = match fields.as_slice() {
            [chat] if !chat.is_empty() => (*chat, None),
            [chat, thread, again] if thread == again => (*chat, Some((*thread).to_owned())),
            _ => return Err("its place cannot be told from its name"),
        };
        let is_direct = chat == sender;
        let address = Address {
            platform: platform.to_owned(),
            kind: if is_direct { "direct" } else { "group" }.to_owned(),
            chat: chat.to_owned(),
            member: (!is_direct && thread.is_none()).then(|| sender.to_owned()),
            thread,
        };
        address
            .place()
            .ok_or("its place cannot be told from its name")
    }

    fn schedules(&self, found: &mut Found) {
        let mut jobs: Vec<(String, Value)> = Vec::new();
        for (name, job) in self.table("cron") {
            let owner = self
                .table("agents")
                .find(|(_, agent)| words(agent.get("cron_jobs")).contains(name));
            let mut job = job.clone();
            if let Some(job) = job.as_object_mut() {
                job.entry("name").or_insert_with(|| name.clone().into());
            }
            jobs.push((
                owner.map(|(owner, _)| owner.clone()).unwrap_or_default(),
                job,
            ));
        }
        for data in DATA {
            let Some(database) = self
                .source
                .database(&self.source.tree, Path::new(data).join("cron/jobs.db"))
            else {
                continue;
            };
            let columns = [
                "agent_alias",
                "id",
                "name",
                "expression",
                "schedule",
                "job_type",
                "prompt",
                "command",
                "delivery",
                "source",
            ];
            let rows = database.rows(self.source, ("cron_jobs", &columns), ("", &["id"]), |row| {
                let mut job = Map::new();
                for (at, column) in columns.iter().enumerate() {
                    if let Some(text) = row.text(at) {
                        job.insert((*column).to_owned(), text.into());
                    }
                }
                Some((row.text(0).unwrap_or_default(), Value::Object(job)))
            });
            // The others are in the config too.
            jobs.extend(rows.into_iter().filter(|(_, job)| {
                job["source"]
                    .as_str()
                    .is_none_or(|source| source == "imperative")
            }));
        }
        for (owner, job) in jobs {
            match found.agent(&owner) {
                Some(agent) => agent.schedules.push(job),
                None => {
                    let name = job["name"].as_str().unwrap_or("a schedule").to_owned();
                    self.source
                        .left(Kind::Schedule, name, "it belongs to no agent");
                }
            }
        }
    }
}

/// Agent, place, key and messages.
type Held = (
    String,
    Result<SessionKey, &'static str>,
    String,
    Vec<Arriving>,
);

/// A memory as its table has it.
struct BrainRow {
    id: String,
    /// The agent's name, or its id where no name is known.
    alias: Option<String>,
    text: String,
    category: String,
    created_at: i64,
    /// Another memory has replaced this one.
    is_old: bool,
}

/// The key of a memory stands before its text, unless the text has the key already.
fn with_key(key: Option<String>, text: String) -> String {
    match key {
        Some(key) if !text.to_lowercase().contains(&key.to_lowercase()) => {
            format!("{key}: {text}")
        }
        _ => text,
    }
}

/// Notes of a day, as the file of that day.
fn add_days(found: &mut Found, days: HashMap<(String, String), Vec<String>>) {
    for ((agent, day), notes) in days {
        let notes = notes.iter();
        let lines = notes.map(|note| format!("- {}\n", note.replace('\n', "\n  ")));
        let content = Content::Text(lines.collect());
        if let Some(agent) = found.agent(&agent) {
            agent.add_file(Kind::File, format!("memory/{day}.md"), content);
        }
    }
}

fn messages(
    source: &Source,
    database: &Database,
    (key, place, sender): (&str, &Result<SessionKey, &'static str>, Option<&str>),
) -> Vec<Arriving> {
    let filter = format!("WHERE session_key = '{}'", key.replace('\'', "''"));
    let private = place.as_ref().ok().and_then(SessionKey::only_person);
    let platform = place.as_ref().ok().and_then(SessionKey::platform);
    let person = private.or_else(|| mapping::person(platform?, sender?));
    let columns = ["role", "content", "created_at"];
    let rows = database.rows(source, ("sessions", &columns), (&filter, &["id"]), |row| {
        let speaker = match row.text(0)?.as_str() {
            "user" => Speaker::Person {
                id: person.clone(),
                name: None,
            },
            "assistant" => Speaker::Agent,
            _ => return Some(None),
        };
        Some(Some(Arriving {
            speaker,
            text: row.text(1)?,
            at: row.time(2).unwrap_or(0),
        }))
    });
    rows.into_iter().flatten().collect()
}

/// Opens `<nonce><ciphertext><tag>` in hexadecimal digits.
fn decrypt(key: &[u8], hex: &str) -> Option<String> {
    let key = match key.len() {
        32 => key.to_vec(),
        _ => unhex(str::from_utf8(key).ok()?.trim())?,
    };
    let bytes = unhex(hex.trim())?;
    let (nonce, sealed) = bytes.split_at_checked(12)?;
    let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &key).ok()?);
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut sealed = sealed.to_vec();
    let plain = key.open_in_place(nonce, Aad::empty(), &mut sealed).ok()?;
    String::from_utf8(plain.to_vec()).ok()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            u8::from_str_radix(str::from_utf8(pair).ok()?, 16)
                .ok()
                .filter(|_| pair.len() == 2)
        })
        .collect()
}
