//! The keys of each table of the config file. Every other key is a problem.
//!
//! The list feeds the checks, the book's reference and the schema for editors.

use super::choices::Choice;
use super::{
    AfterUntrusted, Approver, DefaultVisibility, Dms, GroupSessions, Groups, HookSignature,
    LogFormat, LogLevel, MemoryKind, MemorySwitch, MetricsAccess, ProviderKind, Quote, Reasoning,
    Risk, Rotate, Switch, TransportMode, Visibility,
};
use crate::domain::{Platform, Role};
use crate::jobs::{JobContext, Missed};

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
    pub(super) kind: Kind,
}

/// The values of a key, for the schema. A test compares them with the checks.
pub(super) enum Kind {
    /// The type of the example: text, a whole number from 0 on, a switch, a list of texts, or a
    /// table with keys of its own.
    LikeExample,
    /// A word from a short list.
    Word(fn() -> Vec<&'static str>),
    /// A list of such words.
    Words(fn() -> Vec<&'static str>),
    /// A whole number from here on.
    AtLeast(u32),
    /// A number between these two.
    Between(f64, f64),
    Money,
    /// A switch or a list of texts.
    SwitchOrList,
    /// A text or a list of texts.
    TextOrList,
    /// A list of texts, or a table with the lists `allow` and `deny`.
    ListOrLists,
    /// Numbers, with or without quotes.
    Ids,
    /// A number, with or without quotes.
    Id,
    /// A text or the place of a secret.
    TextOrSecret,
    /// A list of tables with keys of their own.
    Tables,
    /// A table with a word for each name.
    WordByName(fn() -> Vec<&'static str>),
}

/// The kinds of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Whole,
    Fraction,
    Money,
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
    const fn kind(self, kind: Kind) -> Self {
        Key { kind, ..self }
    }

    const fn word<T: Choice>(self) -> Self {
        self.kind(Kind::Word(T::words))
    }

    const fn words<T: Choice>(self) -> Self {
        self.kind(Kind::Words(T::words))
    }

    /// The kind of number that the key takes.
    pub(super) fn number(&self) -> Option<Number> {
        match self.kind {
            Kind::Money => Some(Number::Money),
            Kind::Between(..) => Some(Number::Fraction),
            Kind::AtLeast(_) => Some(Number::Whole),
            Kind::LikeExample if self.example.starts_with(|c: char| c.is_ascii_digit()) => {
                Some(Number::Whole)
            }
            _ => None,
        }
    }

    /// Whether the key is written as a section.
    pub(super) fn is_table(&self) -> bool {
        self.example.trim_start_matches('[').starts_with(self.name)
    }

    /// Whether the key is written as a section in double brackets, once for each item.
    pub(super) fn is_list_of_tables(&self) -> bool {
        matches!(self.kind, Kind::Tables) || self.is_table() && self.example.starts_with("[[")
    }

    /// The key as written in the file: `name = "Rose"`, or `[telegram]` for a table.
    pub(super) fn usage(&self) -> String {
        if self.is_table() {
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
        kind: Kind::LikeExample,
    }
}

const fn nothing(name: &'static str, example: &'static str) -> Key {
    Key {
        name,
        example,
        absence: Absence::Nothing,
        kind: Kind::LikeExample,
    }
}

const fn default(name: &'static str, example: &'static str) -> Key {
    Key {
        name,
        example,
        absence: Absence::Default,
        kind: Kind::LikeExample,
    }
}

/// The smallest context that can hold a prompt and a conversation.
pub(super) const LEAST_CONTEXT: u32 = 2_048;
pub(super) const MAX_TEMPERATURE: f64 = 2.0;

pub(super) const TOP: Shape = Shape {
    name: "the top level",
    keys: &[
        default("default_agent", r#""main""#),
        default("default_model", r#""openai/gpt-5.4""#),
        default("group_sessions", r#""per-user""#).word::<GroupSessions>(),
        default("switch", r#""separate""#).word::<Switch>(),
        nothing("max_running", "1024").kind(Kind::AtLeast(1)),
        default("currency", r#""EUR""#),
        nothing("limits", "[limits]"),
        nothing("telegram", "[telegram]"),
        nothing("discord", "[discord]"),
        nothing("web", "[web]"),
        nothing("providers", "[providers.openai]"),
        nothing("access", "[access]"),
        nothing("people", "[people.alice]"),
        nothing("memory", "[memory]"),
        nothing("log", "[log]"),
        nothing("admin", "[admin]"),
        nothing("agents", "[agents.rose]"),
        nothing("bindings", "[[bindings]]"),
        nothing("route_tests", "[[route_tests]]"),
        nothing("risk_profiles", "[risk_profiles.careful]"),
        nothing("approvals", "[approvals]"),
        nothing("shared_paths", "[shared_paths.handbook]"),
        nothing("peer_groups", "[peer_groups.desk]"),
        nothing("hooks", "[hooks.builds]"),
    ],
};

pub(super) const HOUSE_LIMITS: Shape = Shape {
    name: "[limits]",
    keys: &[
        default("tokens_per_day", "5_000_000"),
        default("cost_per_day", "10.0").kind(Kind::Money),
        default("tokens_per_month", "50_000_000"),
        default("cost_per_month", "100.0").kind(Kind::Money),
    ],
};

pub(super) const TELEGRAM: Shape = Shape {
    name: "[telegram]",
    keys: &[
        refused("token", r#"{ env = "TELEGRAM_BOT_TOKEN" }"#),
        default("api_url", r#""https://api.telegram.org""#),
        default("mode", r#""polling""#).word::<TransportMode>(),
        nothing("webhook", "[telegram.webhook]"),
        nothing("proxy", r#"{ env = "TELEGRAM_PROXY" }"#).kind(Kind::TextOrSecret),
        default("auto_bind", "true"),
        default("gather_ms", "2000"),
        default("max_file_mb", "20"),
        default("streaming", "true"),
        nothing(
            "limits",
            "{ per_second = 30, chat_per_second = 1, group_per_minute = 20 }",
        ),
        nothing("nicknames", r#"["parlor", "hey rose"]"#),
        default("quote", r#""auto""#).word::<Quote>(),
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
        default("quote", r#""auto""#).word::<Quote>(),
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
        refused("kind", r#""openai""#).word::<ProviderKind>(),
        default("base_url", r#""https://api.openai.com/v1/""#),
        nothing("api_key", r#"{ env = "OPENAI_API_KEY" }"#),
        nothing("proxy", r#"{ env = "OPENAI_PROXY" }"#).kind(Kind::TextOrSecret),
        nothing(
            "prices",
            r#"{ "gpt-5.4" = { input = 2.5, output = 10, cached = 0.25 } }"#,
        ),
        nothing("models", r#"["gpt-5.4", "gpt-5.4-mini"]"#),
        nothing("vision", r#"["gpt-5.4"]"#).kind(Kind::SwitchOrList),
        nothing("context_tokens", "200_000").kind(Kind::AtLeast(LEAST_CONTEXT)),
    ],
};

pub(super) const PRICE: Shape = Shape {
    name: "a price",
    keys: &[
        refused("input", "2.5").kind(Kind::Money),
        refused("output", "10").kind(Kind::Money),
        nothing("cached", "0.25").kind(Kind::Money),
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
        default("dms", r#""pairing""#).word::<Dms>(),
        default("groups", r#""bound""#).word::<Groups>(),
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
        nothing("role", r#""admin""#).word::<Role>(),
        nothing("agents", r#"{ coding = "member" }"#).kind(Kind::WordByName(Role::words)),
        nothing("time_zone", r#""Europe/Vienna""#),
    ],
};

pub(super) const PEOPLE_LIMITS: Shape = Shape {
    name: "`limits`",
    keys: &[
        default("tokens_per_day", "200_000"),
        default("cost_per_day", "0.5").kind(Kind::Money),
        default("tokens_per_month", "2_000_000"),
        default("cost_per_month", "5.0").kind(Kind::Money),
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
        default("cost_per_day", "0.5").kind(Kind::Money),
        default("tokens_per_month", "5_000_000"),
        default("cost_per_month", "5.0").kind(Kind::Money),
        default("turns_at_once", "2"),
    ],
};

pub(super) const MEMORY: Shape = Shape {
    name: "[memory]",
    keys: &[default("default_visibility", r#""apart""#).word::<DefaultVisibility>()],
};

pub(super) const LOG: Shape = Shape {
    name: "[log]",
    keys: &[
        default("format", r#""text""#).word::<LogFormat>(),
        default("level", r#""info""#).word::<LogLevel>(),
        nothing("file", r#""logs/parlor.log""#),
        default("rotate", r#""daily""#).word::<Rotate>(),
        default("max_mb", "50"),
        default("keep", "7"),
    ],
};

pub(super) const ADMIN: Shape = Shape {
    name: "[admin]",
    keys: &[
        default("listen", r#""127.0.0.1:7717""#),
        default("public", "false"),
        nothing("token", r#"{ env = "PARLOR_ADMIN_TOKEN" }"#),
        default("metrics", r#""token""#).word::<MetricsAccess>(),
        default("prompts_kept", "10"),
        nothing("behind_proxy", "true"),
        nothing("url", r#""https://parlor.example""#),
    ],
};

pub(super) const WEB: Shape = Shape {
    name: "[web]",
    keys: &[default("enabled", "true")],
};

pub(super) const CEILINGS: Shape = Shape {
    name: "[access.tools]",
    keys: &[
        default("guest", r#""look""#).word::<Risk>(),
        default("member", r#""reach""#).word::<Risk>(),
        default("admin", r#""reach""#).word::<Risk>(),
        default("owner", r#""reach""#).word::<Risk>(),
    ],
};

pub(super) const RISK_PROFILE: Shape = Shape {
    name: "a risk profile",
    keys: &[
        nothing("allow", r#"["now", "file_read"]"#),
        nothing("deny", r#"["web_fetch"]"#),
        nothing("ask", r#"["message_send"]"#),
        nothing("max_risk", r#""change""#).word::<Risk>(),
    ],
};

pub(super) const APPROVALS: Shape = Shape {
    name: "[approvals]",
    keys: &[
        default("by", r#""admin""#).word::<Approver>(),
        default("expires_minutes", "60").kind(Kind::AtLeast(1)),
    ],
};

pub(super) const TOOL_LIMITS: Shape = Shape {
    name: "`tools`",
    keys: &[
        nothing("allow", r#"["now", "file_read"]"#),
        nothing("deny", r#"["web_fetch"]"#),
        nothing("ask", r#"["message_send"]"#),
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
        nothing("path", r#""/srv/handbook""#),
        default("max_mb", "500").kind(Kind::AtLeast(1)),
        nothing("read", r#"["rose"]"#),
        nothing("write", r#"["main"]"#),
    ],
};

pub(super) const PEER_GROUP: Shape = Shape {
    name: "a peer group",
    keys: &[
        refused("members", r#"["rose", "ada"]"#),
        nothing("platform", r#""telegram""#).word::<Platform>(),
    ],
};

pub(super) const HOOK: Shape = Shape {
    name: "a hook",
    keys: &[
        refused("prompt", r#""A build ended: {{body.status}}""#),
        refused("token", r#"{ env = "PARLOR_HOOK_TOKEN" }"#),
        default("signature", r#""token""#).word::<HookSignature>(),
        nothing("agent", r#""rose""#),
        nothing("place", r#""telegram:topic:-1001234567890:101""#),
        default("context", r#""own""#).word::<JobContext>(),
        default("role", r#""member""#).word::<Role>(),
        default("per_minute", "30").kind(Kind::AtLeast(1)),
        default("max_kb", "256").kind(Kind::AtLeast(1)),
    ],
};

pub(super) const AGENT: Shape = Shape {
    name: "an agent",
    keys: &[
        nothing("name", r#""Rose""#),
        nothing("emoji", r#""🌹""#),
        nothing("creature", r#""hedgehog""#),
        nothing("vibe", r#""warm, a little dry""#),
        nothing("time_zone", r#""Europe/Vienna""#),
        nothing("who", r#""member""#).kind(Kind::TextOrList),
        nothing("model", r#""openai/gpt-5.4""#),
        nothing("fallback", r#"["anthropic/claude-opus-4.6"]"#),
        nothing("temperature", "0.7").kind(Kind::Between(0.0, MAX_TEMPERATURE)),
        nothing("max_tokens", "4096").kind(Kind::AtLeast(1)),
        nothing("reasoning", r#""low""#).word::<Reasoning>(),
        nothing("skills", r#"["invoices"]"#).kind(Kind::ListOrLists),
        nothing("personality", r#""night.md""#),
        nothing("system_prompt", r#""Prices are in euros.""#),
        default("memory", r#""off""#).word::<MemorySwitch>(),
        default("recall", "false"),
        default("recall_tokens", "1000"),
        nothing("recall_visibility", r#"["person", "place"]"#).words::<Visibility>(),
        nothing("recall_kinds", r#"["memory", "note"]"#).words::<MemoryKind>(),
        nothing("recall_max_age_days", "90").kind(Kind::AtLeast(1)),
        nothing("read_memory_from", r#"["main"]"#),
        default("memory_for_guests", "false"),
        nothing("tools", r#"{ deny = ["web_fetch"] }"#),
        nothing("risk_profile", r#""careful""#),
        nothing("max_risk", r#""look""#).word::<Risk>(),
        default("after_untrusted", r#""refuse""#).word::<AfterUntrusted>(),
        nothing("access", r#"{ read = ["main"] }"#),
        default("workspace_mb", "500"),
        nothing(
            "limits",
            "{ tokens_per_day = 1_000_000, turns_per_minute = 20 }",
        ),
        nothing(
            "jobs",
            r#"[{ name = "plan", cron = "0 9 * * 1-5", prompt = "Plan the day." }]"#,
        )
        .kind(Kind::Tables),
        nothing("heartbeat", r#"{ every = "30m" }"#),
    ],
};

pub(super) const JOB: Shape = Shape {
    name: "a job",
    keys: &[
        refused("name", r#""morning-plan""#),
        nothing("cron", r#""0 9 * * 1-5""#),
        nothing("every", r#""2h""#),
        nothing("at", r#""2026-12-24 18:00""#),
        nothing("time_zone", r#""Europe/Vienna""#),
        nothing("prompt", r#""Plan the day.""#),
        nothing("prompt_file", r#""jobs/plan.md""#),
        nothing("place", r#""telegram:topic:-1001234567890:101""#),
        default("context", r#""own""#).word::<JobContext>(),
        nothing("quiet", r#""22:00-07:00""#),
        default("missed", r#""skip""#).word::<Missed>(),
        default("jitter", r#""5m""#),
        default("enabled", "true"),
    ],
};

pub(super) const HEARTBEAT: Shape = Shape {
    name: "`heartbeat`",
    keys: &[
        refused("every", r#""30m""#),
        nothing("hours", r#""08:00-22:00""#),
        nothing("place", r#""telegram:topic:-1001234567890:101""#),
        default("context", r#""own""#).word::<JobContext>(),
        default("enabled", "true"),
    ],
};

/// The long form of `skills`, which mostly is a list.
pub(super) const SKILL_LISTS: Shape = Shape {
    name: "`skills`",
    keys: &[
        nothing("allow", r#"["invoices"]"#),
        nothing("deny", r#"["invoices"]"#),
    ],
};

pub(super) const AGENT_LIMITS: Shape = Shape {
    name: "`limits`",
    keys: &[
        default("max_steps", "40").kind(Kind::AtLeast(1)),
        default("max_minutes", "30").kind(Kind::AtLeast(1)),
        default("tokens_per_turn", "500_000"),
        default("tokens_per_day", "1_000_000"),
        default("cost_per_day", "5.0").kind(Kind::Money),
        default("tokens_per_month", "20_000_000"),
        default("cost_per_month", "50.0").kind(Kind::Money),
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
        nothing("roles", r#"["9123"]"#).kind(Kind::Ids),
        nothing("name", r#""release *""#),
        nothing("tag", r#""question""#),
    ],
};

pub(super) const ROUTE_TEST: Shape = Shape {
    name: "a route test",
    keys: &[
        nothing("name", r#""Rose has the garden""#),
        refused("place", r#""telegram:topic:-1001234567890:101""#),
        refused("agent", r#""rose""#),
        nothing("person", r#""telegram:12345678""#),
        nothing("role", r#""member""#).word::<Role>(),
        nothing("text", r#""good morning""#),
        default("mention", "false"),
        default("reply", "true"),
        nothing("topic", r#""release 7""#),
        nothing("server", r#""8123456789""#).kind(Kind::Id),
        nothing("category", r#""7123""#).kind(Kind::Id),
        nothing("roles", r#"["9123"]"#).kind(Kind::Ids),
        nothing("tags", r#"["question"]"#),
    ],
};

/// Where each kind of table is in the file. Feeds the book's reference and the tests of
/// `config.example.toml`.
///
/// `*` is any name, `|` separates several places, and a list stands for each of its items.
pub const PLACES: &[(&str, &Shape)] = &[
    ("", &TOP),
    ("limits", &HOUSE_LIMITS),
    ("telegram", &TELEGRAM),
    ("telegram.webhook", &WEBHOOK),
    ("telegram.limits", &LIMITS),
    ("discord", &DISCORD),
    ("discord.limits", &DISCORD_LIMITS),
    ("web", &WEB),
    ("providers.*", &PROVIDER),
    ("providers.*.prices.*", &PRICE),
    ("access", &ACCESS),
    ("access.tools", &CEILINGS),
    ("access.limits", &PEOPLE_LIMITS),
    ("access.limits.guest", &ROLE_LIMITS),
    ("access.limits.member", &ROLE_LIMITS),
    ("people.*", &PERSON),
    ("memory", &MEMORY),
    ("log", &LOG),
    ("admin", &ADMIN),
    ("risk_profiles.*", &RISK_PROFILE),
    ("approvals", &APPROVALS),
    ("shared_paths.*", &SHARED_PATH),
    ("peer_groups.*", &PEER_GROUP),
    ("hooks.*", &HOOK),
    ("agents.*", &AGENT),
    ("agents.*.tools", &TOOL_LIMITS),
    ("agents.*.access", &SIBLINGS),
    ("agents.*.limits", &AGENT_LIMITS),
    ("agents.*.jobs", &JOB),
    ("agents.*.heartbeat", &HEARTBEAT),
    ("bindings", &BINDING),
    ("route_tests", &ROUTE_TEST),
    (
        "telegram.token|discord.token|providers.*.api_key|admin.token|hooks.*.token",
        &SECRET,
    ),
];
