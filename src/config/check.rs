//! Turns the parsed file into the checked config: the top level, `[telegram]` and `[access]`.

use toml::de::DeTable;

use super::declared::DeclaredAgents;
use super::items::person;
use super::reader::{Problems, Section};
use super::secrets::Vault;
use super::{Access, AgentSpec, Config, Memory, Spanned, Telegram, TelegramLimits, WebChat};
use super::{
    admin, agents, approvals, bindings, currency, discord, hooks, limits, log, peers, people,
    platform, prices, providers, proxy, route_tests, schema, tools, transport,
};
use crate::domain::AgentId;

/// Telegram's own servers give a bot files of up to 20 MB.
const TELEGRAM: platform::Defaults = platform::Defaults {
    api_url: "https://api.telegram.org",
    max_file_mb: 20,
};

/// Reads the whole file. Broken values are noted, and left out or replaced by their default.
pub(super) fn check(
    tree: &DeTable<'_>,
    source: &str,
    vault: &Vault<'_>,
    problems: &Problems,
) -> Config {
    let file = Spanned {
        value: String::new(),
        span: 0..0,
    };
    let top = Section::open(&schema::TOP, tree, &file, problems);
    let provider_names = providers::ProviderNames::of(&top);
    let access = top.section("access", &schema::ACCESS);
    let (mut declared, doors) = agents::read(&top, &provider_names, &tools::profile_names(&top));
    let people = people::read(&top, &declared, source);
    doors.open(&mut declared, &people, &top);
    let telegram = top
        .section("telegram", &schema::TELEGRAM)
        .map(|section| telegram(&section, vault));
    let discord = top
        .section("discord", &schema::DISCORD)
        .map(|section| discord::read(&section, vault));
    let web = match top.section("web", &schema::WEB) {
        Some(section) if section.boolean("enabled").unwrap_or(true) => WebChat::Meant,
        None if telegram.is_none() && discord.is_none() => WebChat::Implied,
        Some(_) | None => WebChat::Off,
    };
    let route_tests = route_tests::read(&top, &declared, &people);
    let bindings::Read {
        bindings,
        matches_left_out,
    } = bindings::read(&top, &declared, &people);
    let config = Config {
        default_agent: default_agent(&top, &declared),
        default_model: providers::model(&top, "default_model", &provider_names).unwrap_or_default(),
        group_sessions: top.choice("group_sessions").unwrap_or_default(),
        switch: top.choice("switch").unwrap_or_default(),
        max_running: top
            .at_least_one("max_running")
            .and_then(|most| most.try_into().ok()),
        currency: currency::read(&top),
        budget: limits::house(&top),
        telegram,
        discord,
        web,
        providers: providers::read(&top, source, vault),
        memory: top
            .section("memory", &schema::MEMORY)
            .map(|section| memory(&section))
            .unwrap_or_default(),
        log: top
            .section("log", &schema::LOG)
            .map(|section| log::read(&section))
            .unwrap_or_default(),
        admin: top
            .section("admin", &schema::ADMIN)
            .and_then(|section| admin::read(&section, vault)),
        access: Access {
            people,
            ..access
                .as_ref()
                .map(|section| rights(section, source))
                .unwrap_or_default()
        },
        tools: tools::read(&top, access.as_ref(), &declared),
        approvals: top
            .section("approvals", &schema::APPROVALS)
            .map(|section| approvals::read(&section))
            .unwrap_or_default(),
        hooks: hooks::read(&top, &declared, vault),
        peer_groups: peers::read(&top, &declared),
        bindings,
        matches_left_out,
        route_tests,
        agents: declared.agents,
    };
    prices::check(&config, &top, source);
    people::note_idle_roles(&config.access.people, &config.access.owners, problems);
    config
}

fn default_agent(top: &Section<'_>, declared: &DeclaredAgents) -> AgentId {
    let named = top
        .text("default_agent")
        .and_then(|name| declared.find(&name, top.problems));
    named.map_or_else(AgentId::main, |agent: &AgentSpec| agent.id.clone())
}

fn telegram(section: &Section<'_>, vault: &Vault<'_>) -> Telegram {
    let platform = platform::read(section, vault, &TELEGRAM);
    vault.check_token(section, &platform.token);
    Telegram {
        transport: transport::transport(section),
        proxy: proxy::read(
            section,
            vault,
            &proxy::Server {
                url: &platform.api_url,
                key: "api_url",
            },
        ),
        limits: section
            .section("limits", &schema::LIMITS)
            .map(|section| sending_limits(&section))
            .unwrap_or_default(),
        platform,
    }
}

fn sending_limits(section: &Section<'_>) -> TelegramLimits {
    let default = TelegramLimits::default();
    TelegramLimits {
        per_second: section.count("per_second").unwrap_or(default.per_second),
        chat_per_second: section
            .count("chat_per_second")
            .unwrap_or(default.chat_per_second),
        group_per_minute: section
            .count("group_per_minute")
            .unwrap_or(default.group_per_minute),
    }
}

fn rights(section: &Section<'_>, source: &str) -> Access {
    let default = Access::default();
    Access {
        owners: section
            .list("owners", person)
            .map(|owners| owners.value)
            .unwrap_or_default(),
        owners_line: section
            .value("owners")
            .map(|owners| people::line(source, owners.span().start)),
        dms: section.choice("dms").unwrap_or(default.dms),
        groups: section.choice("groups").unwrap_or(default.groups),
        require_mention: section
            .boolean("require_mention")
            .unwrap_or(default.require_mention),
        observe: section.boolean("observe").unwrap_or(default.observe),
        limits: limits::people(section),
        ..default
    }
}

fn memory(section: &Section<'_>) -> Memory {
    Memory {
        default_visibility: section.choice("default_visibility").unwrap_or_default(),
    }
}
