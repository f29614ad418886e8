//! Bindings, topics and people of `openclaw.json`, as narrow here as there.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::super::Wish;
use super::super::found::{Found, FoundBinding, FoundPerson};
use super::super::mapping::{self, Token, words};
use super::super::report::Kind;
use super::super::source::Source;
use super::super::tree::What;
use crate::domain::{PersonId, Platform};

pub(super) struct Places<'a> {
    pub(super) source: &'a Source,
    pub(super) settings: &'a Value,
    pub(super) wish: &'a Wish,
    pub(super) env: &'a HashMap<String, String>,
    pub(super) default: Option<&'a str>,
}

/// A bot of the source, with all its settings.
struct Account {
    platform: Platform,
    id: String,
    settings: Map<String, Value>,
}

/// The people who may write in a group, and whether they must mention the bot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rights {
    /// None: all people there.
    users: Option<Vec<PersonId>>,
    require_mention: Option<bool>,
}

impl Places<'_> {
    pub(super) fn read(&self, found: &mut Found) {
        let platforms = [Platform::Telegram, Platform::Discord];
        let accounts = platforms.map(|platform| self.account(platform));
        for account in accounts.iter().flatten() {
            self.token(account, found);
            self.people(account, found);
        }
        for (index, binding) in self.list("bindings").iter().enumerate() {
            self.binding((index, binding), &accounts, found);
        }
        for account in accounts.iter().flatten() {
            match account.platform {
                Platform::Telegram => self.telegram_groups(account, found),
                _ => self.discord_channels(account, found),
            }
        }
        self.owners(found);
        self.links();
        self.broadcasts();
    }

    fn list(&self, key: &str) -> &[Value] {
        self.settings[key].as_array().map_or(&[], Vec::as_slice)
    }

    /// The bot to be carried: this program has a single bot for each platform.
    fn account(&self, platform: Platform) -> Option<Account> {
        let name = platform.to_string();
        let channel = self.settings["channels"][&name].as_object()?;
        let accounts = channel.get("accounts").and_then(Value::as_object);
        let ids: Vec<&String> = accounts.into_iter().flat_map(Map::keys).collect();
        let wanted = self
            .wish
            .account
            .as_deref()
            .filter(|id| ids.iter().any(|known| known == id));
        let wanted = wanted.or_else(|| channel.get("defaultAccount").and_then(Value::as_str));
        let first = ids.iter().find(|id| **id == "default").or(ids.first());
        let id = wanted
            .map(str::to_owned)
            .or_else(|| first.map(|id| (*id).clone()));
        let id = id.unwrap_or_else(|| "default".to_owned());
        for other in ids.iter().filter(|other| ***other != id) {
            let why = format!(
                "there is one bot for each platform here; --account {other} takes this one"
            );
            self.source.left(
                Kind::Setting,
                format!("channels.{name}.accounts.{other}"),
                why,
            );
        }
        let mut settings = channel.clone();
        settings.remove("accounts");
        let own = accounts.and_then(|accounts| accounts.get(&id)?.as_object());
        for (key, value) in own.into_iter().flatten() {
            settings.insert(key.clone(), value.clone());
        }
        Some(Account {
            platform,
            id,
            settings,
        })
    }

    fn token(&self, account: &Account, found: &mut Found) {
        let name = account.platform.to_string();
        let variable = format!("{}_BOT_TOKEN", name.to_uppercase());
        let of = |key: &str| account.settings.get(key);
        let path = format!("channels.{name}");
        if let Some(file) = of("tokenFile").and_then(Value::as_str) {
            let source = format!("{path}.tokenFile ({file})");
            found
                .secrets
                .push(mapping::bot(account.platform, source, Token::default()));
            return;
        }
        let token = match of("botToken").or_else(|| of("token")) {
            Some(Value::String(text)) => Token::read(text, self.env),
            Some(secret) if secret["source"] == "env" => {
                Token::of(secret["id"].as_str().unwrap_or(&variable), self.env)
            }
            _ => Token::of(&variable, self.env),
        };
        found
            .secrets
            .push(mapping::bot(account.platform, path, token));
    }

    /// People who may write in private chats become members, not more.
    fn people(&self, account: &Account, found: &mut Found) {
        let name = account.platform.to_string();
        let policy = account.settings.get("dmPolicy").and_then(Value::as_str);
        let mut ids = words(account.settings.get("allowFrom"));
        match policy.unwrap_or("pairing") {
            "disabled" => {
                let why = "private chats are off there, so nobody of its list is let in";
                self.source
                    .left(Kind::Setting, format!("channels.{name}.dmPolicy"), why);
                return;
            }
            "open" => {
                let why = "private chats are open to everybody there; here [access] dms decides";
                self.source
                    .left(Kind::Setting, format!("channels.{name}.dmPolicy"), why);
            }
            "pairing" => ids.extend(self.paired(account)),
            _ => {}
        }
        for id in ids.into_iter().filter(|id| id != "*") {
            match mapping::person(account.platform, &id) {
                Some(id) => add_person(found, id, None, false),
                None => self.source.left(
                    Kind::Person,
                    format!("{name}: {id}"),
                    "only a person's number can be carried",
                ),
            }
        }
    }

    /// People let in by a code.
    fn paired(&self, account: &Account) -> Vec<String> {
        let name = account.platform.to_string();
        let tree = &self.source.tree;
        let mut ids = Vec::new();
        if let Some(database) = self.source.database(tree, "state/openclaw.sqlite") {
            let columns = ["channel_key", "account_id", "entry"];
            let order = ["sort_order"];
            let rows = ("channel_pairing_allow_entries", columns.as_slice());
            let read = database.rows(self.source, rows, ("", &order), |row| {
                Some((row.text(0)?, row.text(1).unwrap_or_default(), row.text(2)?))
            });
            let own = read.into_iter().filter(|(channel, id, _)| {
                *channel == name && (id.is_empty() || *id == account.id)
            });
            ids.extend(own.map(|(_, _, entry)| entry));
        }
        for file in self.source.names(tree, "credentials", What::File) {
            let usual = [
                format!("{name}-allowFrom.json"),
                format!("{name}-{}-allowFrom.json", account.id),
            ];
            if !usual.contains(&file) {
                continue;
            }
            if let Some(value) = self.source.json(tree, format!("credentials/{file}")) {
                let listed = value.get("allowFrom").or(Some(&value));
                ids.extend(words(listed));
            }
        }
        ids
    }

    fn owners(&self, found: &mut Found) {
        for id in words(self.settings["commands"].get("ownerAllowFrom")) {
            let platform = match id.split_once(':') {
                Some(("discord", _)) => Platform::Discord,
                _ => Platform::Telegram,
            };
            match mapping::person(platform, &id) {
                Some(id) => add_person(found, id, None, true),
                None => {
                    let why = "only a person's number can be carried";
                    self.source.left(Kind::Person, format!("owner {id}"), why);
                }
            }
        }
    }

    fn links(&self) {
        let links = self.settings["session"]["identityLinks"].as_object();
        for (name, ids) in links.into_iter().flatten() {
            let ids = words(Some(ids)).join("\", \"");
            let why = format!("[people.<name>] with ids = [\"{ids}\"] makes this one person");
            self.source.manual(Kind::Person, name, why);
        }
    }

    /// Places with several agents.
    fn broadcasts(&self) {
        let places = self.settings["broadcast"].as_object();
        for (place, agents) in places.into_iter().flatten() {
            if place == "strategy" {
                continue;
            }
            let agents = words(agents.get("agents").or(Some(agents)));
            let why = "one agent answers in a place here";
            let what = format!("broadcast {place}: {}", agents.join(", "));
            self.source.left(Kind::Binding, what, why);
        }
    }

    fn binding(
        &self,
        (index, binding): (usize, &Value),
        accounts: &[Option<Account>; 2],
        found: &mut Found,
    ) {
        let source = format!("bindings[{index}]");
        let left = |why: &str| self.source.left(Kind::Binding, &source, why);
        if binding["type"] == "acp" {
            return left("it is for another program (acp)");
        }
        let Some(agent) = binding["agentId"].as_str() else {
            return left("it names no agent");
        };
        let matched = &binding["match"];
        let channel = matched["channel"].as_str().unwrap_or_default();
        let mut accounts = accounts.iter().flatten();
        let Some(account) = accounts.find(|account| account.platform.as_str() == channel) else {
            return left(&format!(
                "`{channel}` is not set up there, or is no platform here"
            ));
        };
        match matched["accountId"].as_str() {
            None | Some("*") => {}
            Some(id) if id == account.id => {}
            Some(id) => return left(&format!("it is for another bot, `{id}`")),
        }
        let roles: Vec<u64> = words(matched.get("roles"))
            .iter()
            .filter_map(|role| role.parse().ok())
            .collect();
        let peer = &matched["peer"];
        let id = match &peer["id"] {
            Value::String(id) => Some(id.clone()),
            Value::Number(id) => Some(id.to_string()),
            _ => None,
        };
        let kind = peer["kind"].as_str().unwrap_or_default();
        let rule = match (account.platform, kind, id.as_deref()) {
            (Platform::Telegram, "direct" | "dm", Some("*")) => {
                Ok(("telegram:dm".into(), Rights::default()))
            }
            (Platform::Discord, "direct" | "dm", Some("*")) => {
                Ok(("discord:dm".into(), Rights::default()))
            }
            (_, _, Some("*")) => Err("there is no rule for every group here".to_owned()),
            (platform, "direct" | "dm", Some(id)) => match mapping::person(platform, id) {
                Some(person) => {
                    let number = person.to_string();
                    let number = number.rsplit(':').next().unwrap_or_default().to_owned();
                    Ok((format!("{platform}:dm:{number}"), Rights::default()))
                }
                None => Err("only a person's number can be carried".to_owned()),
            },
            (Platform::Telegram, _, Some(id)) => {
                let (chat, topic) = match id.split_once(":topic:") {
                    Some((chat, topic)) => (chat, Some(topic)),
                    None => (id, None),
                };
                self.telegram_rights(account, chat, topic)
                    .map(|rights| match topic {
                        Some(topic) => (format!("telegram:topic:{chat}:{topic}"), rights),
                        None => (format!("telegram:group:{chat}"), rights),
                    })
            }
            (_, _, Some(id)) => self
                .discord_rights(account, id)
                .map(|(rights, _)| (format!("discord:channel:{id}"), rights)),
            (_, _, None) => match matched["guildId"].as_str() {
                Some(guild) => self
                    .guild(account, guild)
                    .map(|rights| (format!("discord:guild:{guild}"), rights)),
                None => Ok((channel.to_owned(), Rights::default())),
            },
        };
        match rule {
            Ok((pattern, rights)) => found.bindings.push(FoundBinding {
                source,
                pattern,
                agent: agent.to_owned(),
                require_mention: rights.require_mention,
                users: rights.users,
                roles,
            }),
            Err(why) => left(&why),
        }
    }

    /// The agent for places of an account without a rule of their own.
    fn usual_agent(&self, account: &Account) -> Option<String> {
        let wide = self.list("bindings").iter().find(|binding| {
            let matched = &binding["match"];
            let is_for = matches!(matched["accountId"].as_str(), None | Some("*"))
                || matched["accountId"].as_str() == Some(&account.id);
            matched["channel"].as_str() == Some(account.platform.as_str())
                && is_for
                && binding["type"] != "acp"
                && matched.get("peer").is_none()
                && matched.get("guildId").is_none()
        });
        let agent = wide.and_then(|binding| binding["agentId"].as_str());
        agent.or(self.default).map(str::to_owned)
    }

    /// The people who may write in a Telegram group, or in a topic of the group. An error for a
    /// closed place.
    fn telegram_rights(
        &self,
        account: &Account,
        chat: &str,
        topic: Option<&str>,
    ) -> Result<Rights, String> {
        let groups = account.settings.get("groups").and_then(Value::as_object);
        let all = groups.and_then(|groups| groups.get("*"));
        let group = groups.and_then(|groups| groups.get(chat));
        if groups.is_some_and(|groups| !groups.is_empty()) && group.is_none() && all.is_none() {
            return Err(
                "the group is not in channels.telegram.groups, so nobody is answered there".into(),
            );
        }
        let topics = group.and_then(|group| group.get("topics"));
        let own = topic.and_then(|topic| topics?.get(topic));
        let wide = topics
            .and_then(|topics| topics.get("*"))
            .filter(|_| topic.is_some());
        let layers: Vec<&Value> = [own, wide, group, all].into_iter().flatten().collect();
        rights(&account.settings, &layers, Platform::Telegram)
    }

    /// The groups in the config, and their topics.
    fn telegram_groups(&self, account: &Account, found: &mut Found) {
        let groups = account.settings.get("groups").and_then(Value::as_object);
        let usual = self.usual_agent(account);
        for (chat, group) in groups.into_iter().flatten() {
            let path = format!("channels.telegram.groups.{chat}");
            if chat == "*" {
                let why =
                    "there is no rule for every group here; `parlor` answers where a binding is";
                self.source.left(Kind::Binding, path, why);
                continue;
            }
            let pattern = format!("telegram:group:{chat}");
            let agent = found
                .bindings
                .iter()
                .find(|binding| binding.pattern == pattern);
            let agent = agent
                .map(|binding| binding.agent.clone())
                .or_else(|| usual.clone());
            self.telegram_place(
                account,
                (&path, chat, None),
                (pattern, agent.clone()),
                found,
            );
            let topics = group.get("topics").and_then(Value::as_object);
            for (topic, settings) in topics.into_iter().flatten() {
                let path = format!("{path}.topics.{topic}");
                let own = settings["agentId"].as_str().map(str::to_owned);
                let pattern = format!("telegram:topic:{chat}:{topic}");
                for key in ["systemPrompt", "skills"] {
                    self.no_counterpart(settings, &path, key);
                }
                let is_bound = found
                    .bindings
                    .iter()
                    .any(|binding| binding.pattern == pattern);
                // A topic without an agent of its own is the group's.
                if own.is_none() && is_bound {
                    continue;
                }
                let agent = own.or_else(|| agent.clone());
                self.telegram_place(account, (&path, chat, Some(topic)), (pattern, agent), found);
            }
            for key in ["systemPrompt", "skills", "tools", "toolsBySender"] {
                self.no_counterpart(group, &path, key);
            }
        }
    }

    fn no_counterpart(&self, settings: &Value, path: &str, key: &str) {
        if settings.get(key).is_some_and(|value| !value.is_null()) {
            let why = "it has no counterpart here; AGENTS.md or the binding's agent can say it";
            self.source
                .left(Kind::Setting, format!("{path}.{key}"), why);
        }
    }

    fn telegram_place(
        &self,
        account: &Account,
        (path, chat, topic): (&str, &str, Option<&str>),
        (pattern, agent): (String, Option<String>),
        found: &mut Found,
    ) {
        let Some(agent) = agent else {
            let why = "no agent has this place there";
            return self.source.left(Kind::Binding, path, why);
        };
        // A topic's own agent stands above a rule for the same topic, as in OpenClaw.
        let taken = found
            .bindings
            .iter()
            .position(|binding| binding.pattern == pattern);
        if let (Some(at), Some(_)) = (taken, topic) {
            found.bindings.remove(at);
        } else if taken.is_some() {
            return;
        }
        match self.telegram_rights(account, chat, topic) {
            Ok(rights) => found.bindings.push(FoundBinding {
                source: path.to_owned(),
                pattern,
                agent,
                require_mention: rights.require_mention,
                users: rights.users,
                roles: Vec::new(),
            }),
            Err(why) => self.source.left(Kind::Binding, path, why),
        }
    }

    /// The people who may write in a Discord channel, and the roles with this right. An error for a
    /// closed channel.
    fn discord_rights(
        &self,
        account: &Account,
        channel: &str,
    ) -> Result<(Rights, Vec<u64>), String> {
        let guilds = account.settings.get("guilds").and_then(Value::as_object);
        for guild in guilds.into_iter().flatten().map(|(_, guild)| guild) {
            let channels = guild.get("channels").and_then(Value::as_object);
            let own = channels.and_then(|channels| channels.get(channel));
            if let Some(own) = own {
                let layers = [own, guild];
                let roles = layers.iter().map(|layer| words(layer.get("roles")));
                let roles = roles.into_iter().find(|roles| !roles.is_empty());
                let roles = roles.unwrap_or_default();
                let roles = roles.iter().filter_map(|role| role.parse().ok()).collect();
                let rights = rights(&account.settings, &layers, Platform::Discord)?;
                return Ok((rights, roles));
            }
        }
        let policy = account.settings.get("groupPolicy").and_then(Value::as_str);
        match policy {
            Some("open") => Ok((Rights::default(), Vec::new())),
            _ => Err(
                "the channel is not in channels.discord.guilds, so nobody is answered there".into(),
            ),
        }
    }

    /// The people who may write in a whole server. An error if only some channels are open.
    fn guild(&self, account: &Account, id: &str) -> Result<Rights, String> {
        let guilds = account.settings.get("guilds").and_then(Value::as_object);
        let Some(guild) = guilds.and_then(|guilds| guilds.get(id).or_else(|| guilds.get("*")))
        else {
            let policy = account.settings.get("groupPolicy").and_then(Value::as_str);
            return match policy {
                Some("open") => Ok(Rights::default()),
                _ => Err(
                    "the server is not in channels.discord.guilds, so nobody is answered there"
                        .into(),
                ),
            };
        };
        let channels = guild.get("channels").and_then(Value::as_object);
        if channels.is_some_and(|channels| !channels.is_empty() && !channels.contains_key("*")) {
            return Err(
                "only some channels of the server are open there; each has a rule of its own"
                    .into(),
            );
        }
        rights(&account.settings, &[guild], Platform::Discord)
    }

    /// The channels in the config.
    fn discord_channels(&self, account: &Account, found: &mut Found) {
        let guilds = account.settings.get("guilds").and_then(Value::as_object);
        let usual = self.usual_agent(account);
        for (guild_id, guild) in guilds.into_iter().flatten() {
            let of_guild = self.list("bindings").iter().find(|binding| {
                let matched = &binding["match"];
                matched["guildId"].as_str() == Some(guild_id) && matched.get("roles").is_none()
            });
            let of_guild = of_guild.and_then(|binding| binding["agentId"].as_str());
            let agent = of_guild.map(str::to_owned).or_else(|| usual.clone());
            let channels = guild.get("channels").and_then(Value::as_object);
            for channel in channels.into_iter().flatten().map(|(id, _)| id) {
                let path = format!("channels.discord.guilds.{guild_id}.channels.{channel}");
                if channel == "*" {
                    continue;
                }
                if channel.parse::<u64>().is_err() {
                    let why = "a channel is known by its number here";
                    self.source.left(Kind::Binding, path, why);
                    continue;
                }
                let pattern = format!("discord:channel:{channel}");
                if found
                    .bindings
                    .iter()
                    .any(|binding| binding.pattern == pattern)
                {
                    continue;
                }
                let Some(agent) = agent.clone() else {
                    self.source
                        .left(Kind::Binding, path, "no agent has this place there");
                    continue;
                };
                match self.discord_rights(account, channel) {
                    Ok((rights, roles)) => found.bindings.push(FoundBinding {
                        source: path,
                        pattern,
                        agent,
                        require_mention: rights.require_mention,
                        users: rights.users,
                        roles,
                    }),
                    Err(why) => self.source.left(Kind::Binding, path, why),
                }
            }
        }
    }
}

/// The rights in a place: by its own settings, else by the settings around it, else by the whole
/// account.
fn rights(
    account: &Map<String, Value>,
    layers: &[&Value],
    platform: Platform,
) -> Result<Rights, String> {
    let first = |key: &str| layers.iter().find_map(|layer| layer.get(key));
    if first("enabled") == Some(&Value::Bool(false)) || first("allow") == Some(&Value::Bool(false))
    {
        return Err("it is switched off there".into());
    }
    let policy = first("groupPolicy").or_else(|| account.get("groupPolicy"));
    let require_mention = first("requireMention").and_then(Value::as_bool);
    let users = match policy.and_then(Value::as_str).unwrap_or("allowlist") {
        "disabled" => return Err("groups are switched off there".into()),
        "open" => None,
        _ => {
            let listed = first("users").or_else(|| first("allowFrom"));
            let has_roles = first("roles").is_some();
            let listed = match platform {
                // In Discord the list of channels is the list of allowed channels.
                Platform::Discord => listed,
                _ => listed
                    .or_else(|| account.get("groupAllowFrom"))
                    .or_else(|| account.get("allowFrom")),
            };
            let ids = words(listed);
            let is_everybody = ids.iter().any(|id| id == "*");
            let has_no_list = listed.is_none() && platform == Platform::Discord;
            match is_everybody || has_no_list || (has_roles && ids.is_empty()) {
                true => None,
                false => {
                    let people = ids.iter().filter_map(|id| mapping::person(platform, id));
                    let unique: HashSet<PersonId> = people.collect();
                    let mut unique: Vec<PersonId> = unique.into_iter().collect();
                    unique.sort_by_key(ToString::to_string);
                    Some(unique)
                }
            }
        }
    };
    Ok(Rights {
        users,
        require_mention,
    })
}

pub(super) fn add_person(found: &mut Found, id: PersonId, name: Option<String>, was_owner: bool) {
    let known = found.people.iter_mut().find(|person| person.id == id);
    match known {
        Some(person) => person.was_owner |= was_owner,
        None => found.people.push(FoundPerson {
            id,
            name,
            was_owner,
        }),
    }
}
