//! Hermes: a folder is a profile, and a profile is an agent. The first profile often has the
//! routes, people and conversations of all.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Wish;
use super::found::{Content, Found, FoundAgent, FoundBinding, FoundConversation, FoundPerson};
use super::mapping::{self, Address, Token, short, words};
use super::report::Kind;
use super::some;
use super::source::{Cells, Source};
use super::tree::{Tree, What};
use crate::config::{MemorySwitch, Names};
use crate::domain::{PersonId, Platform, SessionKey};
use crate::records::transcript::{Arriving, Speaker};

/// The profile in the folder itself.
const DEFAULT: &str = "default";
const PLATFORMS: [Platform; 2] = [Platform::Telegram, Platform::Discord];

const LEFT: [(&str, &str); 5] = [
    ("personalities", "an agent has one personality here"),
    ("mcp_servers", "MCP servers are set up by hand here"),
    ("command_allowlist", "agents have no shell here"),
    ("approvals", "agents have no shell here"),
    ("hooks", "there are no hooks here"),
];

pub(super) fn read(source: &Source, _wish: &Wish) -> Option<Found> {
    let is_there = |path: &str| {
        source
            .tree
            .what(Path::new(path))
            .is_ok_and(|what| what.is_some())
    };
    let marks = ["config.yaml", "SOUL.md", "state.db", "profiles", "memories"];
    if !marks.into_iter().any(is_there) {
        return None;
    }
    let mut found = Found::default();
    let first = Profile::open(source, source.tree.clone(), DEFAULT);
    first.read(source, &mut found);
    let mut profiles = vec![first];
    for name in source.names(&source.tree, "profiles", What::Folder) {
        let tree = source.tree.below(&Path::new("profiles").join(&name));
        match tree {
            Ok(tree) => {
                let profile = Profile::open(source, Arc::new(tree), &name);
                profile.read(source, &mut found);
                profiles.push(profile);
            }
            Err(error) => source.left(Kind::Agent, name, error.to_string()),
        }
    }
    if let Some(first) = profiles.first() {
        first.house(source, &mut found);
    }
    let mut sessions: HashMap<String, Vec<Held>> = HashMap::new();
    for profile in &profiles {
        conversations(source, profile, &mut sessions);
    }
    for (agent, held) in sessions {
        match found.agent(&agent) {
            Some(agent) => add_conversations(source, agent, held),
            None => {
                let held = some(held.len(), "conversation", "conversations");
                let what = format!("{held} of {agent}");
                source.left(Kind::Conversation, what, "there is no such profile");
            }
        }
    }
    Some(found)
}

struct Profile {
    tree: Arc<Tree>,
    name: String,
    settings: Value,
    env: HashMap<String, String>,
}

impl Profile {
    fn open(source: &Source, tree: Arc<Tree>, name: &str) -> Self {
        let settings = source.text(&tree, "config.yaml").map(|text| {
            let read = serde_saphyr::from_str::<Value>(&text);
            read.unwrap_or_else(|error| {
                let path = super::source::shown(&tree, Path::new("config.yaml"));
                let error = error.to_string();
                let first = error.lines().next().unwrap_or_default();
                source.left(Kind::File, path, first);
                Value::Null
            })
        });
        let settings = settings.filter(Value::is_object);
        let env = mapping::dotenv(&source.text(&tree, ".env").unwrap_or_default());
        Profile {
            tree,
            name: name.to_owned(),
            settings: settings.unwrap_or_else(|| Value::Object(Map::new())),
            env,
        }
    }

    /// A key, at the top or under `gateway`.
    fn setting(&self, key: &str) -> Option<&Value> {
        let top = self.settings.get(key);
        top.or_else(|| self.settings.get("gateway")?.get(key))
    }

    /// A key of a platform, from any of its places in the settings.
    fn of_platform(&self, platform: Platform, key: &str) -> Option<&Value> {
        let name = platform.as_str();
        let top = self.settings.get(name);
        let platforms = self.settings.get("platforms").and_then(|all| all.get(name));
        let gateway = self
            .settings
            .get("gateway")
            .and_then(|gateway| gateway.get("platforms")?.get(name));
        [top, platforms, gateway]
            .into_iter()
            .flatten()
            .find_map(|settings| {
                settings
                    .get(key)
                    .or_else(|| settings.get("extra")?.get(key))
            })
    }

    fn variable(&self, name: &str) -> Vec<String> {
        let value = self.env.get(name).cloned().map(Value::String);
        words(value.as_ref())
    }

    /// The agent: identity, memory, skills, model, schedules.
    fn read(&self, source: &Source, found: &mut Found) {
        let mut agent = FoundAgent::new(&self.name);
        agent.is_default = self.name == DEFAULT;
        let tree = &self.tree;
        source.add_file(&mut agent, (tree, Path::new("SOUL.md")), "SOUL.md");
        for (from, to) in [
            ("memories/MEMORY.md", "MEMORY.md"),
            ("memories/USER.md", "USER.md"),
        ] {
            if let Some(text) = source.text(tree, from) {
                agent.add_file(Kind::File, to, Content::Text(paragraphs(&text)));
            }
        }
        let disabled = words(self.settings["skills"].get("disabled"));
        let is_wanted = |name: &str, path: &Path| {
            let is_aside = path.iter().any(|part| part == ".archive" || part == "_org");
            !is_aside && !disabled.iter().any(|other| other == name)
        };
        source.add_skills(&mut agent, (tree, Path::new("skills")), is_wanted);
        agent.table.name = match self.name.as_str() {
            DEFAULT => None,
            name => short(Some(name)),
        };
        agent.table.model = self.model();
        let fallback = words(self.settings.get("fallback_providers"));
        if !fallback.is_empty() {
            agent.table.fallback = Some(Names(fallback));
        }
        let memory = &self.settings["memory"];
        if memory["memory_enabled"] == false {
            agent.table.memory = Some(MemorySwitch::Off);
        }
        if let Some(provider) = memory["provider"]
            .as_str()
            .filter(|name| *name != "builtin")
        {
            let what = format!("{}: memories in {provider}", self.name);
            source.left(Kind::Memory, what, "they are kept by another program");
        }
        for (key, why) in LEFT {
            if self.settings.get(key).is_some_and(|value| !value.is_null()) {
                source.left(Kind::Setting, format!("{}: {key}", self.name), why);
            }
        }
        agent.schedules = self.schedules(source);
        found.agents.push(agent);
    }

    fn model(&self) -> Option<String> {
        match &self.settings["model"] {
            Value::String(model) => Some(model.clone()),
            Value::Object(model) => {
                let name = ["default", "model", "name"]
                    .iter()
                    .find_map(|key| model.get(*key)?.as_str());
                let provider = model.get("provider").and_then(Value::as_str);
                match (provider, name) {
                    (Some(provider), Some(name)) if !name.starts_with(&format!("{provider}/")) => {
                        Some(format!("{provider}/{name}"))
                    }
                    (_, name) => name.map(str::to_owned),
                }
            }
            _ => None,
        }
    }

    fn schedules(&self, source: &Source) -> Vec<Value> {
        let file = source.json(&self.tree, "cron/jobs.json");
        let Some(file) = file else { return Vec::new() };
        let jobs = file["jobs"].as_array().or_else(|| file.as_array());
        jobs.cloned().unwrap_or_default()
    }

    /// Bots, people and routes. The first profile has them for all profiles.
    fn house(&self, source: &Source, found: &mut Found) {
        for platform in PLATFORMS {
            let variable = format!("{}_BOT_TOKEN", platform.as_str().to_uppercase());
            if self.env.contains_key(&variable) {
                let path = format!("{variable} in .env");
                let token = Token::of(&variable, &self.env);
                found.secrets.push(mapping::bot(platform, path, token));
            }
            self.people(source, platform, found);
        }
        mapping::providers_in(&self.env, &mut found.secrets, ".env");
        for key in ["providers", "custom_providers"] {
            if self.settings.get(key).is_some_and(|value| !value.is_null()) {
                source.manual(Kind::Setting, key, "set these up under [providers]");
            }
        }
        self.routes(source, found);
        self.chats(source, found);
    }

    fn may_all_write(&self, platform: Platform) -> bool {
        let name = platform.as_str().to_uppercase();
        [
            format!("{name}_ALLOW_ALL_USERS"),
            "GATEWAY_ALLOW_ALL_USERS".to_owned(),
        ]
        .iter()
        .filter_map(|variable| self.env.get(variable))
        .any(|value| matches!(value.to_ascii_lowercase().as_str(), "true" | "1" | "yes"))
    }

    /// All people who may write to the bot of a platform.
    fn allowed(&self, source: &Source, platform: Platform) -> Vec<FoundPerson> {
        let name = platform.as_str();
        let mut people: Vec<FoundPerson> = Vec::new();
        let mut add = |id: &str, name: Option<String>, was_owner: bool| {
            let Some(id) = mapping::person(platform, id) else {
                if id != "*" {
                    let what = format!("{platform}: {id}");
                    source.left(Kind::Person, what, "only a person's number can be carried");
                }
                return;
            };
            match people.iter_mut().find(|person| person.id == id) {
                Some(person) => person.was_owner |= was_owner,
                None => people.push(FoundPerson {
                    id,
                    name,
                    was_owner,
                }),
            }
        };
        for folder in ["platforms/pairing", "pairing"] {
            let path = format!("{folder}/{name}-approved.json");
            let approved = source.json(&self.tree, path);
            for (id, entry) in approved
                .as_ref()
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                add(id, short(entry["user_name"].as_str()), false);
            }
        }
        for id in self.variable(&format!("{}_ALLOWED_USERS", name.to_uppercase())) {
            add(&id, None, false);
        }
        for id in words(self.of_platform(platform, "allow_from")) {
            add(&id, None, false);
        }
        for id in words(self.of_platform(platform, "allow_admin_from")) {
            add(&id, None, true);
        }
        people
    }

    fn people(&self, source: &Source, platform: Platform, found: &mut Found) {
        if self.may_all_write(platform) {
            let why = "everybody may write there; here [access] dms decides";
            source.left(
                Kind::Setting,
                format!("{platform}: all users are allowed"),
                why,
            );
        }
        let policy = self
            .of_platform(platform, "dm_policy")
            .and_then(Value::as_str);
        if policy == Some("disabled") {
            return;
        }
        found.people.extend(self.allowed(source, platform));
    }

    /// The people of a group's rule. None: all people there.
    fn users(&self, source: &Source, platform: Platform) -> Option<Vec<PersonId>> {
        if self.may_all_write(platform) {
            return None;
        }
        let mut people: Vec<PersonId> = self
            .allowed(source, platform)
            .into_iter()
            .map(|person| person.id)
            .collect();
        let group = self.variable(&format!(
            "{}_GROUP_ALLOWED_USERS",
            platform.as_str().to_uppercase()
        ));
        people.extend(group.iter().filter_map(|id| mapping::person(platform, id)));
        people.sort_by_key(ToString::to_string);
        people.dedup();
        Some(people)
    }

    /// The chats and channels that the bot is limited to. None: no limit.
    fn limited_to(&self, platform: Platform) -> Option<Vec<String>> {
        let (key, variable) = match platform {
            Platform::Discord => ("allowed_channels", "DISCORD_ALLOWED_CHANNELS"),
            _ => ("allowed_chats", "TELEGRAM_GROUP_ALLOWED_CHATS"),
        };
        let mut chats = words(self.of_platform(platform, key));
        chats.extend(self.variable(variable));
        (!chats.is_empty()).then_some(chats)
    }

    fn require_mention(&self, platform: Platform) -> Option<bool> {
        self.of_platform(platform, "require_mention")
            .and_then(Value::as_bool)
    }

    fn routes(&self, source: &Source, found: &mut Found) {
        let routes = self.setting("profile_routes").and_then(Value::as_array);
        let Some(routes) = routes.filter(|routes| !routes.is_empty()) else {
            return;
        };
        if self.setting("multiplex_profiles") != Some(&Value::Bool(true)) {
            let why =
                "profiles share no gateway there (multiplex_profiles is off), so routes do nothing";
            source.left(Kind::Binding, "profile_routes", why);
            return;
        }
        let mut routes: Vec<&Value> = routes.iter().collect();
        // Hermes prefers the narrower of two matching routes, and the order of the file within one
        // kind.
        routes.sort_by_key(|route| {
            let points = [("thread_id", 8), ("chat_id", 4), ("guild_id", 2)];
            let has = |key: &str| route.get(key).is_some_and(|value| !value.is_null());
            let points: i32 = points
                .iter()
                .filter(|(key, _)| has(key))
                .map(|(_, points)| points)
                .sum();
            -points
        });
        for (index, route) in routes.into_iter().enumerate() {
            let name = route["name"].as_str().map(str::to_owned);
            let name = format!("route {}", name.unwrap_or_else(|| (index + 1).to_string()));
            match self.route(source, route) {
                Ok((pattern, users, roles)) => found.bindings.push(FoundBinding {
                    source: name,
                    require_mention: match pattern.contains(":dm") || !pattern.contains(':') {
                        true => None,
                        false => self.require_mention(platform_of(route)),
                    },
                    pattern,
                    agent: route["profile"].as_str().unwrap_or_default().to_owned(),
                    users,
                    roles,
                }),
                Err(why) => source.left(Kind::Binding, name, why),
            }
        }
    }

    fn route(&self, source: &Source, route: &Value) -> Result<Rule, String> {
        if route["enabled"] == false {
            return Err("it is switched off there".into());
        }
        let text = |key: &str| match &route[key] {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let platform = platform_of(route);
        let named = route["platform"].as_str().unwrap_or_default();
        if named != platform.as_str() {
            return Err(format!("`{named}` is no platform here"));
        }
        let (chat, thread, guild) = (text("chat_id"), text("thread_id"), text("guild_id"));
        let is_group = !(platform == Platform::Telegram
            && chat.as_deref().is_some_and(|chat| !chat.starts_with('-')));
        if let (Some(limited), Some(chat)) = (self.limited_to(platform), &chat)
            && is_group
            && !limited.contains(chat)
        {
            return Err("the bot does not answer in that chat there".into());
        }
        let users = self.users(source, platform);
        let roles = self.variable("DISCORD_ALLOWED_ROLES");
        let roles = roles.iter().filter_map(|role| role.parse().ok()).collect();
        let everybody = (None, Vec::new());
        let (users, roles) = match (platform, users) {
            (Platform::Discord, Some(users)) if users.is_empty() => (None::<Vec<PersonId>>, roles),
            (_, users) => (users, Vec::new()),
        };
        let (pattern, (users, roles)) = match (platform, chat, thread, guild) {
            (Platform::Telegram, Some(chat), Some(thread), _) if is_group => {
                (format!("telegram:topic:{chat}:{thread}"), (users, roles))
            }
            (Platform::Telegram, Some(chat), None, _) if is_group => {
                (format!("telegram:group:{chat}"), (users, roles))
            }
            (Platform::Telegram, Some(chat), Some(thread), _) => {
                (format!("telegram:dm:{chat}:{thread}"), everybody)
            }
            (Platform::Telegram, Some(chat), None, _) => (format!("telegram:dm:{chat}"), everybody),
            (Platform::Discord, Some(chat), Some(thread), _) => {
                (format!("discord:thread:{chat}:{thread}"), (users, roles))
            }
            (Platform::Discord, Some(chat), None, _) => {
                (format!("discord:channel:{chat}"), (users, roles))
            }
            (Platform::Discord, None, None, Some(guild)) => {
                if self.limited_to(platform).is_some() {
                    return Err("only some channels are open there".into());
                }
                (format!("discord:guild:{guild}"), (users, roles))
            }
            (platform, None, None, None) => (platform.to_string(), everybody),
            _ => return Err("such a rule cannot be written here".into()),
        };
        // Without people and roles, the rule lets no person in there.
        if platform == Platform::Discord
            && users.is_none()
            && roles.is_empty()
            && !self.may_all_write(platform)
            && pattern.contains(':')
        {
            return Ok((pattern, Some(Vec::new()), roles));
        }
        Ok((pattern, users, roles))
    }

    /// Groups with answers but without a route: the first profile's.
    fn chats(&self, source: &Source, found: &mut Found) {
        for platform in PLATFORMS {
            let kind = match platform {
                Platform::Discord => "channel",
                _ => "group",
            };
            for chat in self.limited_to(platform).unwrap_or_default() {
                let pattern = format!("{platform}:{kind}:{chat}");
                if found
                    .bindings
                    .iter()
                    .any(|binding| binding.pattern == pattern)
                {
                    continue;
                }
                found.bindings.push(FoundBinding {
                    source: format!("{platform}: allowed chat {chat}"),
                    pattern,
                    agent: DEFAULT.to_owned(),
                    require_mention: self.require_mention(platform),
                    users: self.users(source, platform),
                    roles: Vec::new(),
                });
            }
            for key in [
                "channel_prompts",
                "channel_skill_bindings",
                "dm_topics",
                "group_topics",
            ] {
                if self
                    .of_platform(platform, key)
                    .is_some_and(|value| !value.is_null())
                {
                    let why = "a place has no prompt or skill of its own here; its agent has";
                    source.left(Kind::Setting, format!("{platform}.{key}"), why);
                }
            }
        }
    }
}

/// The places of a rule, its people and its roles.
type Rule = (String, Option<Vec<PersonId>>, Vec<u64>);

fn platform_of(route: &Value) -> Platform {
    match route["platform"].as_str() {
        Some("discord") => Platform::Discord,
        _ => Platform::Telegram,
    }
}

/// Entries of a memory file stand between lines with a §.
fn paragraphs(text: &str) -> String {
    let mut entries: Vec<String> = vec![String::new()];
    for line in text.lines() {
        match line.trim() {
            "§" => entries.push(String::new()),
            _ => {
                if let Some(last) = entries.last_mut() {
                    last.push_str(line);
                    last.push('\n');
                }
            }
        }
    }
    let entries = entries.iter().map(|entry| entry.trim());
    let entries: Vec<&str> = entries.filter(|entry| !entry.is_empty()).collect();
    entries.join("\n\n") + "\n"
}

/// A session of the source.
struct Held {
    id: String,
    parent: Option<String>,
    key: String,
    place: Result<SessionKey, &'static str>,
    started_at: i64,
    messages: Vec<Arriving>,
}

/// The sessions of a profile's database, by agent.
fn conversations(source: &Source, profile: &Profile, into: &mut HashMap<String, Vec<Held>>) {
    let Some(database) = source.database(&profile.tree, "state.db") else {
        return;
    };
    let columns = [
        "id",
        "source",
        "user_id",
        "session_key",
        "chat_id",
        "chat_type",
        "thread_id",
        "origin_json",
        "parent_session_id",
        "started_at",
        "profile_name",
    ];
    let per_user = profile.setting("group_sessions_per_user") != Some(&Value::Bool(false));
    let sessions = database.rows(
        source,
        ("sessions", &columns),
        ("", &["started_at"]),
        |row| held(row, profile, per_user),
    );
    let mut tools = 0;
    for (agent, mut held, is_wanted) in sessions {
        if !is_wanted {
            continue;
        }
        let (messages, left) = messages(source, &database, &held);
        tools += left;
        held.messages = messages;
        into.entry(agent).or_default().push(held);
    }
    if tools > 0 {
        let tools = some(tools, "row", "rows");
        let what = format!(
            "{}: {tools} of tools, and of talk among people",
            profile.name
        );
        source.left(
            Kind::Conversation,
            what,
            "the words of people to the agent, and its own, are carried",
        );
    }
}

/// A session with its agent, and whether people took part.
fn held(row: &Cells<'_, '_>, profile: &Profile, per_user: bool) -> Option<(String, Held, bool)> {
    let platform = row.text(1).unwrap_or_default();
    let key = row.text(3).unwrap_or_default();
    let kind = row.text(5).unwrap_or_default();
    let origin = row.json(7).unwrap_or(Value::Null);
    let parent_chat = match &origin["parent_chat_id"] {
        Value::String(chat) => Some(chat.clone()),
        Value::Number(chat) => Some(chat.to_string()),
        _ => None,
    };
    let thread = row.word(6);
    let chat = match kind.as_str() {
        "thread" => parent_chat.or_else(|| row.word(4)),
        _ => row.word(4),
    };
    let is_direct = kind == "dm";
    let member = row
        .word(2)
        .filter(|_| per_user && !is_direct && thread.is_none());
    let address = Address {
        platform: platform.clone(),
        kind,
        chat: chat.unwrap_or_default(),
        thread,
        member,
    };
    let place = match platform.as_str() {
        "telegram" | "discord" => address.place().ok_or("its place cannot be told"),
        _ => Err("it was held in no place of Telegram or Discord"),
    };
    let named = row.word(10).or_else(|| {
        let space = key.strip_prefix("agent:")?.split(':').next()?;
        Some(space.to_owned())
    });
    let agent = match named.as_deref() {
        None => profile.name.clone(),
        Some("main") => DEFAULT.to_owned(),
        Some(name) => name.to_owned(),
    };
    let is_wanted = platform != "cron";
    let held = Held {
        id: row.text(0)?,
        parent: row.word(8),
        key: match key.is_empty() {
            true => platform,
            false => key,
        },
        place,
        started_at: row.time(9).unwrap_or(0),
        messages: Vec::new(),
    };
    Some((agent, held, is_wanted))
}

fn messages(
    source: &Source,
    database: &super::source::Database,
    held: &Held,
) -> (Vec<Arriving>, usize) {
    let person = held.place.as_ref().ok().and_then(SessionKey::only_person);
    let filter = format!("WHERE session_id = '{}'", held.id.replace('\'', "''"));
    let columns = ["role", "content", "timestamp", "observed", "active"];
    let mut left = 0;
    let order = ["id"];
    let read = database.rows(source, ("messages", &columns), (&filter, &order), |row| {
        let role = row.text(0)?;
        let is_active = row.flag(4).unwrap_or(true);
        let is_observed = row.flag(3).unwrap_or(false);
        let speaker = match role.as_str() {
            "user" if !is_observed => Some(Speaker::Person {
                id: person.clone(),
                name: None,
            }),
            "assistant" => Some(Speaker::Agent),
            _ => None,
        };
        let Some(speaker) = speaker.filter(|_| is_active) else {
            left += 1;
            return Some(None);
        };
        let text = plain(&row.text(1).unwrap_or_default());
        Some(Some(Arriving {
            speaker,
            text,
            at: row.time(2).unwrap_or(0),
        }))
    });
    (read.into_iter().flatten().collect(), left)
}

/// A content with parts begins with a NUL and `json:`.
fn plain(content: &str) -> String {
    let Some(json) = content.strip_prefix("\0json:") else {
        return content.to_owned();
    };
    let Ok(Value::Array(parts)) = serde_json::from_str(json) else {
        return String::new();
    };
    let texts = parts.iter().filter_map(|part| match part["type"].as_str() {
        Some("text" | "input_text") => part["text"].as_str().map(str::to_owned),
        Some(kind) if kind.contains("image") => Some("[picture]".to_owned()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A session with a shortened history names the session before: both are one conversation.
fn add_conversations(source: &Source, agent: &mut FoundAgent, held: Vec<Held>) {
    let keys: HashMap<String, String> = held
        .iter()
        .map(|held| (held.id.clone(), held.key.clone()))
        .collect();
    let parents: HashMap<String, String> = held
        .iter()
        .filter_map(|held| Some((held.id.clone(), held.parent.clone()?)))
        .filter(|(id, parent)| keys.get(id) == keys.get(parent))
        .collect();
    let root = |id: &str| {
        let (mut id, mut seen) = (id.to_owned(), HashSet::new());
        while let Some(parent) = parents.get(&id).filter(|_| seen.insert(id.clone())) {
            id = parent.clone();
        }
        id
    };
    let mut whole: Vec<Held> = Vec::new();
    let mut held = held;
    held.sort_by_key(|held| held.started_at);
    for next in held {
        let root = root(&next.id);
        match whole.iter_mut().find(|held| held.id == root) {
            Some(first) => first.messages.extend(next.messages),
            None => whole.push(next),
        }
    }
    for held in whole {
        match source.spool(held.messages) {
            Ok(messages) if messages.count > 0 => agent.conversations.push(FoundConversation {
                source_id: held.id,
                name: held.key,
                place: held.place,
                messages,
                summary: None,
            }),
            Ok(_) => {}
            Err(error) => source.left(Kind::Conversation, held.key, error.to_string()),
        }
    }
    agent
        .conversations
        .sort_by_key(|conversation| conversation.messages.last_at);
}
