//! The keys of each table of the config file. Every other key is a problem.

/// A kind of table.
pub struct Shape {
    /// The name for people.
    pub name: &'static str,
    pub keys: &'static [Key],
}

/// A key of a table.
pub struct Key {
    pub name: &'static str,
    /// A possible value, shown as advice.
    pub(super) example: &'static str,
    pub absence: Absence,
}

/// The meaning of an absent key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// A problem.
    Refused,
    /// The thing does not exist, or another key decides.
    Nothing,
    /// The value the example file shows.
    Default,
}

impl Shape {
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.keys.iter().map(|key| key.name)
    }

    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Key {
    /// The key as written in the file: `name = "Rose"`, or `[telegram]` for a table.
    pub(super) fn usage(&self) -> String {
        let is_header = self.example.trim_start_matches('[').starts_with(self.name);
        if is_header {
            self.example.to_owned()
        } else {
            format!("{} = {}", self.name, self.example)
        }
    }
}

const fn refused(name: &'static str, example: &'static str) -> Key {
    Key {
        name,
        example,
        absence: Absence::Refused,
    }
}

const fn nothing(name: &'static str, example: &'static str) -> Key {
    Key {
        name,
        example,
        absence: Absence::Nothing,
    }
}

const fn default(name: &'static str, example: &'static str) -> Key {
    Key {
        name,
        example,
        absence: Absence::Default,
    }
}

pub(super) const TOP: Shape = Shape {
    name: "the top level",
    keys: &[
        default("default_agent", r#""main""#),
        default("default_model", r#""openai/gpt-5.4""#),
        default("group_sessions", r#""per-user""#),
        default("switch", r#""separate""#),
        default("max_running", "1024"),
        nothing("telegram", "[telegram]"),
        nothing("discord", "[discord]"),
        nothing("providers", "[providers.openai]"),
        nothing("access", "[access]"),
        nothing("people", "[people.alice]"),
        nothing("memory", "[memory]"),
        nothing("agents", "[agents.rose]"),
        nothing("bindings", "[[bindings]]"),
        nothing("risk_profiles", "[risk_profiles.careful]"),
        nothing("shared_paths", "[shared_paths.handbook]"),
        nothing("peer_groups", "[peer_groups.desk]"),
    ],
};

pub(super) const TELEGRAM: Shape = Shape {
    name: "[telegram]",
    keys: &[
        refused("token", r#"{ env = "TELEGRAM_BOT_TOKEN" }"#),
        default("api_url", r#""https://api.telegram.org""#),
        default("mode", r#""polling""#),
        nothing("webhook", "[telegram.webhook]"),
        nothing("proxy", r#"{ env = "TELEGRAM_PROXY" }"#),
        default("auto_bind", "true"),
        default("gather_ms", "2000"),
        default("max_file_mb", "20"),
        default("streaming", "true"),
        nothing(
            "limits",
            "{ per_second = 30, chat_per_second = 1, group_per_minute = 20 }",
        ),
        nothing("nicknames", r#"["parlor", "hey rose"]"#),
        default("quote", r#""auto""#),
        default("show_agent", "false"),
        default("link_previews", "false"),
        default("max_parts", "5"),
        default("reactions", "false"),
    ],
};

pub(super) const WEBHOOK: Shape = Shape {
    name: "[telegram.webhook]",
    keys: &[
        refused("url", r#""https://bot.example.org/hook""#),
        default("listen", r#""127.0.0.1:8443""#),
        default("public", "false"),
    ],
};

pub(super) const LIMITS: Shape = Shape {
    name: "`limits`",
    keys: &[
        default("per_second", "30"),
        default("chat_per_second", "1"),
        default("group_per_minute", "20"),
    ],
};

pub(super) const DISCORD: Shape = Shape {
    name: "[discord]",
    keys: &[
        refused("token", r#"{ env = "DISCORD_BOT_TOKEN" }"#),
        default("api_url", r#""https://discord.com""#),
        default("auto_bind", "true"),
        default("gather_ms", "2000"),
        default("max_file_mb", "10"),
        default("streaming", "true"),
        nothing("limits", "{ per_second = 50, channel_per_second = 1 }"),
        nothing("nicknames", r#"["parlor", "hey rose"]"#),
        default("quote", r#""auto""#),
        default("show_agent", "false"),
        default("link_previews", "false"),
        default("max_parts", "5"),
        default("reactions", "false"),
    ],
};

pub(super) const DISCORD_LIMITS: Shape = Shape {
    name: "`limits`",
    keys: &[
        default("per_second", "50"),
        default("channel_per_second", "1"),
    ],
};

pub(super) const PROVIDER: Shape = Shape {
    name: "a provider",
    keys: &[
        refused("kind", r#""openai""#),
        default("base_url", r#""https://api.openai.com/v1/""#),
        nothing("api_key", r#"{ env = "OPENAI_API_KEY" }"#),
        nothing("proxy", r#"{ env = "OPENAI_PROXY" }"#),
        nothing(
            "prices",
            r#"{ "gpt-5.4" = { input = 2.5, output = 10, cached = 0.25 } }"#,
        ),
        nothing("models", r#"["gpt-5.4", "gpt-5.4-mini"]"#),
        nothing("vision", r#"["gpt-5.4"]"#),
        nothing("context_tokens", "200_000"),
    ],
};

pub(super) const PRICE: Shape = Shape {
    name: "a price",
    keys: &[
        refused("input", "2.5"),
        refused("output", "10"),
        nothing("cached", "0.25"),
    ],
};

pub(super) const SECRET: Shape = Shape {
    name: "a secret",
    keys: &[
        nothing("env", r#""TELEGRAM_BOT_TOKEN""#),
        nothing("file", r#""secrets/telegram""#),
    ],
};

pub(super) const ACCESS: Shape = Shape {
    name: "[access]",
    keys: &[
        nothing("owners", r#"["telegram:12345678"]"#),
        default("dms", r#""pairing""#),
        default("groups", r#""bound""#),
        default("require_mention", "true"),
        default("observe", "true"),
        nothing(
            "limits",
            "{ guest = { messages_per_minute = 10, tokens_per_day = 200_000 } }",
        ),
        nothing("tools", r#"{ guest = "look" }"#),
    ],
};

pub(super) const PERSON: Shape = Shape {
    name: "a person",
    keys: &[
        refused("ids", r#"["telegram:12345678", "discord:8765"]"#),
        nothing("role", r#""admin""#),
        nothing("agents", r#"{ coding = "member" }"#),
    ],
};

pub(super) const PEOPLE_LIMITS: Shape = Shape {
    name: "`limits`",
    keys: &[
        default("tokens_per_day", "200_000"),
        default("turns_per_minute", "10"),
        nothing("guest", "{ messages_per_minute = 10, turns_at_once = 2 }"),
        nothing("member", "{ messages_per_minute = 60, turns_at_once = 8 }"),
    ],
};

pub(super) const ROLE_LIMITS: Shape = Shape {
    name: "the limits of a role",
    keys: &[
        default("messages_per_minute", "10"),
        default("turns_per_minute", "6"),
        default("tokens_per_day", "500_000"),
        default("turns_at_once", "2"),
    ],
};

pub(super) const MEMORY: Shape = Shape {
    name: "[memory]",
    keys: &[default("default_visibility", r#""apart""#)],
};
pub(super) const CEILINGS: Shape = Shape {
    name: "[access.tools]",
    keys: &[
        default("guest", r#""look""#),
        default("member", r#""reach""#),
        default("admin", r#""reach""#),
        default("owner", r#""reach""#),
    ],
};

pub(super) const RISK_PROFILE: Shape = Shape {
    name: "a risk profile",
    keys: &[
        nothing("allow", r#"["now", "file_read"]"#),
        nothing("deny", r#"["web_fetch"]"#),
        nothing("max_risk", r#""change""#),
    ],
};

pub(super) const TOOL_LIMITS: Shape = Shape {
    name: "`tools`",
    keys: &[
        nothing("allow", r#"["now", "file_read"]"#),
        nothing("deny", r#"["web_fetch"]"#),
    ],
};

pub(super) const SIBLINGS: Shape = Shape {
    name: "`access`",
    keys: &[
        nothing("read", r#"["main"]"#),
        nothing("write", r#"["main"]"#),
    ],
};

pub(super) const SHARED_PATH: Shape = Shape {
    name: "a shared folder",
    keys: &[
        nothing("read", r#"["rose"]"#),
        nothing("write", r#"["main"]"#),
    ],
};

pub(super) const PEER_GROUP: Shape = Shape {
    name: "a peer group",
    keys: &[
        refused("members", r#"["rose", "ada"]"#),
        nothing("platform", r#""telegram""#),
    ],
};

pub(super) const AGENT: Shape = Shape {
    name: "an agent",
    keys: &[
        nothing("name", r#""Rose""#),
        nothing("emoji", r#""🌹""#),
        nothing("who", r#""member""#),
        nothing("model", r#""openai/gpt-5.4""#),
        nothing("fallback", r#"["anthropic/claude-opus-4.6"]"#),
        nothing("temperature", "0.7"),
        nothing("max_tokens", "4096"),
        nothing("reasoning", r#""low""#),
        nothing("skills", r#"["invoices"]"#),
        nothing("personality", r#""night.md""#),
        nothing("system_prompt", r#""Prices are in euros.""#),
        default("memory", r#""off""#),
        default("recall", "false"),
        default("recall_tokens", "1000"),
        nothing("read_memory_from", r#"["main"]"#),
        nothing("tools", r#"{ deny = ["web_fetch"] }"#),
        nothing("risk_profile", r#""careful""#),
        nothing("max_risk", r#""look""#),
        nothing("access", r#"{ read = ["main"] }"#),
        default("workspace_mb", "500"),
        nothing(
            "limits",
            "{ tokens_per_day = 1_000_000, turns_per_minute = 20 }",
        ),
    ],
};

pub(super) const AGENT_LIMITS: Shape = Shape {
    name: "`limits`",
    keys: &[
        default("max_steps", "40"),
        default("max_minutes", "30"),
        default("tokens_per_turn", "500_000"),
        default("tokens_per_day", "1_000_000"),
        default("cost_per_day", "5.0"),
        default("turns_per_minute", "20"),
    ],
};

pub(super) const BINDING: Shape = Shape {
    name: "a binding",
    keys: &[
        refused("match", r#""telegram:topic:-1001234567890:101""#),
        refused("agent", r#""main""#),
        default("locked", "true"),
        nothing("require_mention", "false"),
        nothing("users", r#"["telegram:12345678"]"#),
        nothing("roles", r#"["9123"]"#),
        nothing("name", r#""release *""#),
        nothing("tag", r#""question""#),
    ],
};

/// Where each kind of table stands in the file. Feeds the book's reference and the tests of
/// `config.example.toml`.
///
/// `*` is any name, `|` separates several places, and a list stands for each of its items.
pub const PLACES: &[(&str, &Shape)] = &[
    ("", &TOP),
    ("telegram", &TELEGRAM),
    ("telegram.webhook", &WEBHOOK),
    ("telegram.limits", &LIMITS),
    ("discord", &DISCORD),
    ("discord.limits", &DISCORD_LIMITS),
    ("providers.*", &PROVIDER),
    ("providers.*.prices.*", &PRICE),
    ("access", &ACCESS),
    ("access.tools", &CEILINGS),
    ("access.limits", &PEOPLE_LIMITS),
    ("access.limits.guest", &ROLE_LIMITS),
    ("access.limits.member", &ROLE_LIMITS),
    ("people.*", &PERSON),
    ("memory", &MEMORY),
    ("risk_profiles.*", &RISK_PROFILE),
    ("shared_paths.*", &SHARED_PATH),
    ("peer_groups.*", &PEER_GROUP),
    ("agents.*", &AGENT),
    ("agents.*.tools", &TOOL_LIMITS),
    ("agents.*.access", &SIBLINGS),
    ("agents.*.limits", &AGENT_LIMITS),
    ("bindings", &BINDING),
    ("telegram.token|discord.token|providers.*.api_key", &SECRET),
];
