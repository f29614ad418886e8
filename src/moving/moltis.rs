//! Moltis: a data folder with Markdown files, JSONL histories and a database, and a config folder.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Wish;
use super::found::{Found, FoundAgent, FoundBinding, FoundConversation, FoundPerson};
use super::mapping::{self, Address, Token, ToolLists, short, words};
use super::openclaw::IDENTITY;
use super::plan;
use super::report::{Kind, System};
use super::source::{Database, Source, shown, slug, time_in};
use super::tree::{Tree, What};
use crate::config::{Names, SkillLists, SkillNames};
use crate::domain::{PersonId, Platform, SessionKey};
use crate::records::transcript::{Arriving, Speaker};

const MAIN: &str = "main";
const PLATFORMS: [Platform; 2] = [Platform::Telegram, Platform::Discord];
/// The largest history.
const MAX_HISTORY_BYTES: u64 = 256 * 1024 * 1024;
/// Hexadecimal digits of a session's key in one name of a folder.
const DIGITS: usize = 120;

pub(super) fn read(source: &Source, wish: &Wish) -> Option<Found> {
    let is_there = |path: &str| {
        source
            .tree
            .what(Path::new(path))
            .is_ok_and(|what| what.is_some())
    };
    let marks = ["moltis.db", "moltis.toml", "agents", "SOUL.md", "sessions"];
    if !marks.into_iter().any(is_there) {
        return None;
    }
    let settings = settings(source, wish);
    let database = source.database(&source.tree, "moltis.db");
    let house = House {
        source,
        wish,
        settings,
        database,
    };
    let mut found = Found::default();
    house.agents(&mut found);
    for platform in PLATFORMS {
        house.bot(platform, &mut found);
    }
    house.providers(&mut found);
    house.conversations(&mut found);
    house.schedules(&mut found);
    for (key, why) in [
        ("mcp", "MCP servers are set up by hand here"),
        (
            "hooks",
            "programs that run inside; [hooks.<name>] here is for calls from outside",
        ),
        ("heartbeat", "write [agents.<id>.heartbeat] here"),
        ("env", "set variables where the gateway is started"),
    ] {
        if house.settings.get(key).is_some() {
            source.left(Kind::Setting, key, why);
        }
    }
    Some(found)
}

/// `moltis.toml`, in its own folder or beside the data.
fn settings(source: &Source, wish: &Wish) -> Value {
    let own = wish
        .config_folder
        .as_ref()
        .and_then(|folder| Tree::open(folder).ok());
    let text = own
        .as_ref()
        .and_then(|tree| source.text(tree, "moltis.toml"));
    let text = text.or_else(|| source.text(&source.tree, "moltis.toml"));
    let Some(text) = text else {
        source.manual(
            Kind::Setting,
            "moltis.toml",
            "it was not found; name its folder with --config-dir",
        );
        return Value::Object(Map::new());
    };
    toml::from_str(&text).unwrap_or_else(|error: toml::de::Error| {
        source.left(Kind::File, "moltis.toml", error.message());
        Value::Object(Map::new())
    })
}

struct House<'a> {
    source: &'a Source,
    wish: &'a Wish,
    settings: Value,
    database: Option<Database>,
}

impl House<'_> {
    /// The main agent in the folder itself, those of the database, and folders.
    fn agents(&self, found: &mut Found) {
        let mut rows: Vec<AgentRow> = Vec::new();
        if let Some(database) = &self.database {
            let columns = [
                "id",
                "name",
                "emoji",
                "theme",
                "creature",
                "vibe",
                "is_default",
            ];
            rows = database.rows(
                self.source,
                ("agents", &columns),
                ("", &["created_at"]),
                |row| {
                    let theme = row.word(3).or_else(|| row.word(4)).or_else(|| row.word(5));
                    Some((
                        row.word(0)?,
                        row.word(1),
                        row.word(2),
                        theme,
                        row.flag(6).unwrap_or(false),
                    ))
                },
            );
        }
        let mut ids = vec![MAIN.to_owned()];
        ids.extend(rows.iter().map(|row| row.0.clone()).filter(|id| id != MAIN));
        for folder in self.source.names(&self.source.tree, "agents", What::Folder) {
            if folder.ends_with(".archived") {
                self.source
                    .left(Kind::Agent, folder, "it was deleted there");
            } else if !ids.contains(&folder) {
                ids.push(folder);
            }
        }
        let default = rows
            .iter()
            .find(|row| row.4)
            .map_or(MAIN, |row| row.0.as_str());
        for id in &ids {
            let mut agent = FoundAgent::new(id);
            agent.is_default = id == default;
            self.files(&mut agent);
            if let Some((_, name, emoji, theme, _)) = rows.iter().find(|row| row.0 == *id) {
                agent.table.name = short(name.as_deref()).or(agent.table.name);
                agent.table.emoji = short(emoji.as_deref()).or(agent.table.emoji);
                agent.table.creature = short(theme.as_deref()).or(agent.table.creature);
            }
            self.preset(&mut agent);
            found.agents.push(agent);
        }
        let presets = self.settings["agents"]["presets"].as_object();
        for preset in presets
            .into_iter()
            .flat_map(Map::keys)
            .filter(|name| !ids.contains(name))
        {
            self.source.left(
                Kind::Agent,
                format!("preset {preset}"),
                "it is a role of subagents, and no agent",
            );
        }
    }

    fn files(&self, agent: &mut FoundAgent) {
        let own = Path::new("agents").join(&agent.source_id);
        let beside = plan::beside(System::Moltis);
        let mut folders: Vec<PathBuf> = Vec::new();
        if own
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
            && self.source.is_folder(&self.source.tree, &own)
        {
            folders.push(own);
        }
        // The main agent's files are in the folder itself, unless it has one of its own.
        if agent.source_id == MAIN {
            folders.push(PathBuf::new());
        }
        let tree: &Arc<Tree> = &self.source.tree;
        for folder in &folders {
            for name in IDENTITY {
                self.source
                    .add_file(agent, (tree, &folder.join(name)), name);
            }
            for name in ["HEARTBEAT.md", "BOOT.md"] {
                self.source
                    .add_file(agent, (tree, &folder.join(name)), beside.join(name));
            }
            self.source
                .add_notes(agent, (tree, &folder.join("memory")), &beside);
        }
        let text = folders
            .iter()
            .find_map(|folder| self.source.text(tree, folder.join("IDENTITY.md")));
        let front = text
            .and_then(|text| front_matter(&text))
            .unwrap_or(Value::Null);
        let word = |key: &str| short(front[key].as_str());
        agent.table.name = word("name");
        agent.table.emoji = word("emoji");
        agent.table.creature = word("theme").or_else(|| word("creature"));
        agent.table.vibe = word("vibe");
        self.source
            .add_skills(agent, (tree, Path::new("skills")), |_, _| true);
    }

    /// A preset of the same name has the limits of an agent.
    fn preset(&self, agent: &mut FoundAgent) {
        let preset = &self.settings["agents"]["presets"][&agent.source_id];
        let models = words(self.settings["chat"].get("priority_models"));
        agent.table.model = preset["model"]
            .as_str()
            .map(str::to_owned)
            .or_else(|| models.into_iter().next());
        if preset.is_null() {
            return;
        }
        let tools = &preset["tools"];
        let lists = ToolLists {
            allow: tools.get("allow").map(|list| words(Some(list))),
            deny: words(tools.get("deny")),
            max_risk: None,
        };
        let unknown = lists.put_into(&mut agent.table);
        if !unknown.is_empty() {
            let what = format!("{}: tools {}", agent.source_id, unknown.join(", "));
            self.source
                .left(Kind::Setting, what, "there are no such tools here");
        }
        let names = |key: &str| -> Option<Names> {
            let list = preset["skills"].get(key)?;
            Some(Names(
                words(Some(list))
                    .iter()
                    .filter_map(|name| slug(name))
                    .collect(),
            ))
        };
        let (allow, deny) = (names("allow"), names("deny"));
        agent.table.skills = match (allow, deny) {
            (None, None) => None,
            (Some(allow), None) => Some(SkillNames::Allow(allow)),
            (allow, deny) => Some(SkillNames::Lists(SkillLists { allow, deny })),
        };
        let steps = preset["max_iterations"].as_u64();
        agent.table.limits.max_steps = steps
            .and_then(|steps| u32::try_from(steps).ok())
            .filter(|steps| *steps > 0);
        if let Some(words) = preset["system_prompt_suffix"].as_str() {
            agent.table.system_prompt = Some(words.to_owned());
        }
    }

    /// The accounts of a platform, of the file and of the database.
    fn accounts(&self, platform: Platform) -> Vec<(String, Value)> {
        let listed = self.settings["channels"][platform.as_str()].as_object();
        let listed = listed.into_iter().flatten();
        let mut accounts: Vec<(String, Value)> = listed
            .map(|(id, account)| (id.clone(), account.clone()))
            .collect();
        if let Some(database) = &self.database {
            let columns = ["channel_type", "account_id", "config"];
            let rows = database.rows(
                self.source,
                ("channels", &columns),
                ("", &["created_at"]),
                |row| Some((row.text(0)?, row.text(1)?, row.json(2))),
            );
            let own = rows.into_iter().filter(|(kind, id, _)| {
                kind == platform.as_str() && accounts.iter().all(|(known, _)| known != id)
            });
            for (_, id, config) in own.collect::<Vec<_>>() {
                match config.filter(Value::is_object) {
                    Some(config) => accounts.push((id, config)),
                    None => {
                        let what = format!("{platform} account {id}");
                        self.source.left(
                            Kind::Setting,
                            what,
                            "its settings are encrypted, or cannot be read",
                        );
                    }
                }
            }
        }
        accounts
    }

    fn account(&self, platform: Platform) -> Option<(String, Value)> {
        let mut accounts = self.accounts(platform);
        let wanted = self.wish.account.as_ref();
        let at = accounts
            .iter()
            .position(|(id, _)| Some(id) == wanted)
            .unwrap_or(0);
        (at < accounts.len()).then(|| accounts.swap_remove(at))
    }

    fn bot(&self, platform: Platform, found: &mut Found) {
        let Some((id, account)) = self.account(platform) else {
            return;
        };
        for (other, _) in self
            .accounts(platform)
            .iter()
            .filter(|(other, _)| *other != id)
        {
            let why = format!(
                "there is one bot for each platform here; --account {other} takes this one"
            );
            self.source
                .left(Kind::Setting, format!("channels.{platform}.{other}"), why);
        }
        let path = format!("channels.{platform}.{id}");
        if let Some(text) = account["token"].as_str() {
            let token = Token::read(text, &HashMap::new());
            found
                .secrets
                .push(mapping::bot(platform, format!("{path}.token"), token));
        }
        self.people(platform, (&path, &account), found);
        self.bindings(platform, (&path, &account), found);
    }

    fn people(&self, platform: Platform, (path, account): (&str, &Value), found: &mut Found) {
        let mut add = |id: &str, was_owner: bool| match mapping::person(platform, id) {
            Some(id) => match found.people.iter_mut().find(|person| person.id == id) {
                Some(person) => person.was_owner |= was_owner,
                None => found.people.push(FoundPerson {
                    id,
                    name: None,
                    was_owner,
                }),
            },
            None => {
                let what = format!("{platform}: {id}");
                self.source
                    .left(Kind::Person, what, "only a person's number can be carried");
            }
        };
        match account["dm_policy"].as_str() {
            Some("disabled") => return,
            Some("open") => {
                let why = "private chats are open to everybody there; here [access] dms decides";
                self.source
                    .left(Kind::Setting, format!("{path}.dm_policy"), why);
            }
            _ => {}
        }
        for id in words(account.get("allowlist")) {
            add(&id, false);
        }
        for id in words(account.get("operators")) {
            add(&id, true);
        }
    }

    fn bindings(&self, platform: Platform, (path, account): (&str, &Value), found: &mut Found) {
        self.chats(platform, (path, account), found);
        self.users(platform, (path, account), found);
        if let Some(agent) = account["agent_id"].as_str() {
            found
                .bindings
                .push(binding(path.to_owned(), platform.to_string(), agent));
        }
    }

    /// Groups, channels and private chats with an agent of their own.
    fn chats(&self, platform: Platform, (path, account): (&str, &Value), found: &mut Found) {
        let mention = account["mention_mode"].as_str().unwrap_or("mention");
        let policy = account["group_policy"].as_str().unwrap_or("open");
        let usual = account["agent_id"].as_str().unwrap_or(MAIN);
        let listed = words(account.get("group_allowlist"));
        let mut chats: Vec<(String, String)> = Vec::new();
        for (chat, rule) in account["channel_overrides"]
            .as_object()
            .into_iter()
            .flatten()
        {
            if let Some(agent) = rule["agent_id"].as_str() {
                chats.push((chat.clone(), agent.to_owned()));
            }
        }
        if policy == "allowlist" {
            let others = listed
                .iter()
                .filter(|chat| chats.iter().all(|(known, _)| known != *chat));
            let others: Vec<_> = others
                .map(|chat| (chat.clone(), usual.to_owned()))
                .collect();
            chats.extend(others);
        }
        for (chat, agent) in chats {
            let what = format!("{path}: chat {chat}");
            let is_direct = platform == Platform::Telegram && !chat.starts_with('-');
            let is_closed = policy == "disabled"
                || mention == "none"
                || (policy == "allowlist" && !listed.contains(&chat));
            if !is_direct && is_closed {
                self.source.left(
                    Kind::Binding,
                    what,
                    "the bot does not answer in that chat there",
                );
                continue;
            }
            let pattern = match (platform, is_direct) {
                (Platform::Telegram, true) => format!("telegram:dm:{chat}"),
                (Platform::Telegram, false) => format!("telegram:group:{chat}"),
                _ => format!("discord:channel:{chat}"),
            };
            found.bindings.push(FoundBinding {
                require_mention: (!is_direct).then_some(mention != "always"),
                ..binding(what, pattern, &agent)
            });
        }
    }

    /// People with an agent of their own, wherever they write.
    fn users(&self, platform: Platform, (path, account): (&str, &Value), found: &mut Found) {
        for (user, rule) in account["user_overrides"].as_object().into_iter().flatten() {
            let (Some(agent), Some(_)) =
                (rule["agent_id"].as_str(), mapping::person(platform, user))
            else {
                self.source.left(
                    Kind::Binding,
                    format!("{path}: user {user}"),
                    "only a person's number can be carried",
                );
                continue;
            };
            let what = format!("{path}: user {user}");
            let why = format!(
                "name {platform}:{user} in `who` of the agent, which is closed here; a rule for a place counts more"
            );
            self.source.manual(Kind::Binding, &what, why);
            found
                .bindings
                .push(binding(what, format!("{platform}:user:{user}"), agent));
        }
    }

    fn providers(&self, found: &mut Found) {
        for (name, provider) in self.settings["providers"].as_object().into_iter().flatten() {
            if provider["enabled"] == false || !provider.is_object() {
                continue;
            }
            let path = format!("providers.{name}");
            let token = match provider["api_key"].as_str() {
                Some(text) => Token::read(text, &HashMap::new()),
                None => Token::default(),
            };
            let url = provider["base_url"].as_str();
            match mapping::provider((name, name), url, path.clone(), token) {
                Some(secret) => found.secrets.push(secret),
                None => self
                    .source
                    .left(Kind::Setting, path, "its dialect is not known here"),
            }
        }
    }

    fn conversations(&self, found: &mut Found) {
        let Some(database) = &self.database else {
            return;
        };
        let bound = self.bound(database);
        let (mut tools, mut external) = (0, 0);
        for session in self.sessions(database) {
            match session.is_external {
                true => external += 1,
                false => tools += self.conversation(session, &bound, found),
            }
        }
        for agent in &mut found.agents {
            agent
                .conversations
                .sort_by_key(|conversation| conversation.messages.last_at);
        }
        let left = |count, (one, many), why| {
            if count > 0 {
                let what = super::some(count, one, many);
                self.source.left(Kind::Conversation, what, why);
            }
        };
        let results = ("result of a tool", "results of tools");
        left(tools, results, "the words of people and agents are carried");
        let sessions = ("session", "sessions");
        left(external, sessions, "they were held with another program");
    }

    /// The places of sessions, by session key.
    fn bound(&self, database: &Database) -> HashMap<String, Bound> {
        let columns = [
            "channel_type",
            "account_id",
            "chat_id",
            "thread_id",
            "session_key",
        ];
        let table = ("channel_sessions", columns.as_slice());
        let bound = database.rows(self.source, table, ("", &[]), |row| {
            let address = (row.text(0)?, row.text(1)?, row.text(2)?, row.word(3));
            Some((row.text(4)?, address))
        });
        bound.into_iter().collect()
    }

    fn sessions(&self, database: &Database) -> Vec<Session> {
        let columns = [
            "key",
            "agent_id",
            "channel_binding",
            "updated_at",
            "parent_session_key",
            "external_agent_kind",
        ];
        let table = ("sessions", columns.as_slice());
        database.rows(self.source, table, ("", &["updated_at"]), |row| {
            Some(Session {
                key: row.text(0)?,
                agent: row.word(1),
                binding: row.json(2),
                is_branch: row.word(4).is_some(),
                is_external: row.word(5).is_some(),
            })
        })
    }

    /// Returns the number of tool results that are not carried.
    fn conversation(
        &self,
        session: Session,
        bound: &HashMap<String, Bound>,
        found: &mut Found,
    ) -> usize {
        let (source, key) = (self.source, session.key);
        let Some(text) = self.history(&key) else {
            return 0;
        };
        let own = bound.get(&key).cloned();
        let address = own.or_else(|| bound_in(&session.binding?));
        let place = match (&address, session.is_branch) {
            (Some(_), true) => Err("it is a branch of another"),
            (Some(address), false) => self.place(address),
            (None, _) => Err("it was held in no place of Telegram or Discord"),
        };
        let person = place.as_ref().ok().and_then(SessionKey::only_person);
        let (messages, tools) = messages_in(&text, person.as_ref());
        let id = session.agent.unwrap_or_else(|| MAIN.to_owned());
        let Some(agent) = found.agent(&id) else {
            source.left(Kind::Conversation, key, format!("no agent `{id}` is there"));
            return tools;
        };
        match source.spool(messages) {
            Ok(messages) if messages.count > 0 => agent.conversations.push(FoundConversation {
                source_id: key.clone(),
                name: key,
                place,
                messages,
                summary: None,
            }),
            Ok(_) => {}
            Err(error) => source.left(Kind::Conversation, key, error.to_string()),
        }
        tools
    }

    fn place(&self, (platform, account, chat, thread): &Bound) -> Result<SessionKey, &'static str> {
        let known = PLATFORMS.iter().find(|known| known.as_str() == platform);
        let Some(known) = known else {
            return Err("it was held in no place of Telegram or Discord");
        };
        if self.account(*known).is_none_or(|(id, _)| id != *account) {
            return Err("it was held with another bot");
        }
        let is_direct = *known == Platform::Telegram && !chat.starts_with('-');
        let address = Address {
            platform: platform.clone(),
            kind: if is_direct { "direct" } else { "group" }.to_owned(),
            chat: chat.clone(),
            thread: thread.clone(),
            member: None,
        };
        address.place().ok_or("its place cannot be told")
    }

    /// The history of a session, under the new name or the old one.
    fn history(&self, key: &str) -> Option<String> {
        let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
        let mut path = PathBuf::from("sessions/v1");
        for (at, part) in hex.as_bytes().chunks(DIGITS).enumerate() {
            let part = str::from_utf8(part).unwrap_or_default();
            path.push(match at {
                0 => format!("k{part}"),
                _ => part.to_owned(),
            });
        }
        path.push("history.jsonl");
        let old = Path::new("sessions").join(format!("{}.jsonl", key.replace([':', '/'], "_")));
        let tree = &self.source.tree;
        let path = [path, old]
            .into_iter()
            .find(|path| self.source.is_file(tree, path))?;
        match tree.bytes(&path, MAX_HISTORY_BYTES) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => {
                self.source
                    .left(Kind::Conversation, shown(tree, &path), error.to_string());
                None
            }
        }
    }

    fn schedules(&self, found: &mut Found) {
        let Some(database) = &self.database else {
            return;
        };
        let jobs = database.rows(
            self.source,
            ("cron_jobs", &["id", "data"]),
            ("", &["id"]),
            |row| row.json(1),
        );
        for job in jobs {
            if job["id"] == "__heartbeat__" || job["system"] == true {
                continue;
            }
            let agent = job["payload"]["agent_id"]
                .as_str()
                .unwrap_or(MAIN)
                .to_owned();
            match found.agent(&agent) {
                Some(agent) => agent.schedules.push(job),
                None => self
                    .source
                    .left(Kind::Schedule, agent, "it belongs to no agent"),
            }
        }
    }
}

/// Id, name, emoji, theme, and whether it is the default.
type AgentRow = (String, Option<String>, Option<String>, Option<String>, bool);

/// A session as its table has it.
struct Session {
    key: String,
    agent: Option<String>,
    binding: Option<Value>,
    is_branch: bool,
    /// Held with another program.
    is_external: bool,
}

/// Platform, account, chat and thread.
type Bound = (String, String, String, Option<String>);

fn bound_in(value: &Value) -> Option<Bound> {
    let text = |key: &str| match &value[key] {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    Some((
        text("channel_type")?,
        text("account_id")?,
        text("chat_id")?,
        text("thread_id"),
    ))
}

/// The words in a history, and the number of results of tools.
fn messages_in(text: &str, person: Option<&PersonId>) -> (Vec<Arriving>, usize) {
    let (mut messages, mut tools) = (Vec::new(), 0);
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let speaker = match line["role"].as_str() {
            Some("user") => Speaker::Person {
                id: person.cloned(),
                name: short(line["channel"]["sender_name"].as_str()),
            },
            Some("assistant") => Speaker::Agent,
            Some("tool" | "tool_result") => {
                tools += 1;
                continue;
            }
            _ => continue,
        };
        messages.push(Arriving {
            speaker,
            text: text_of(&line["content"]),
            at: time_in(&line["created_at"]).unwrap_or(0),
        });
    }
    (messages, tools)
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| match part["type"].as_str() {
                Some("text") => part["text"].as_str().map(str::to_owned),
                Some("image_url") => Some("[picture]".to_owned()),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// The YAML between two lines `---` at the beginning.
fn front_matter(text: &str) -> Option<Value> {
    let rest = text
        .strip_prefix("---")?
        .trim_start_matches('\r')
        .strip_prefix('\n')?;
    let (yaml, _) = rest.split_once("\n---")?;
    serde_saphyr::from_str::<Value>(yaml).ok()
}

fn binding(source: String, pattern: String, agent: &str) -> FoundBinding {
    FoundBinding {
        source,
        pattern,
        agent: agent.to_owned(),
        require_mention: None,
        users: None,
        roles: Vec::new(),
    }
}
