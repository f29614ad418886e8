//! Parlor: one bot, a room for every agent.
//!
//! The map, in reading order. A module may use those above it, never those below.
//!
//! - [`domain`]: plain values: ids, session keys, messages. Uses nothing of ours.
//! - [`storage`]: the database: one writer with group commit, a few readers. Knows no table.
//! - [`config`]: `config.toml`, as written and as checked.
//! - [`access`]: who may speak to the bot, and where.
//! - [`routing`]: which agent answers in a place, and why.
//! - [`channels`]: the platforms: Telegram, Discord and the terminal.
//! - [`agents`]: who the agents are and what is theirs: identity files, models, skills, memory, workspace.
//! - [`models`]: model providers, who is asked when one fails, and the built-in stand-in.
//! - [`tools`]: what an agent can do besides talking, and the policy that decides whether it may.
//! - [`turn`]: one run of one agent: prompt → model ⇄ tools.
//! - [`delivery`]: the outbox and its senders, the platforms' limits, answers that are being written.
//! - [`sessions`]: places: inbox, lanes, turns and their journal, transcript, what was spent.
//! - [`tenants`]: the life of an agent: added, renamed, removed, brought back, taken along.
//! - [`commands`]: what people tell the gateway itself.
//! - [`gateway`]: start, supervise, drain; `gateway/inbound.rs` is where to follow a message.
//! - [`cli`]: the command line, one file per verb.
//!
//! Beside them, for everyone: `backoff` (waits between tries), `clock` (the time), `http` (how clients begin), `signing` (tags on buttons), [`telemetry`] (logs),
//! [`work`] (what is under way).

pub mod access;
pub mod agents;
mod backoff;
pub mod channels;
pub mod cli;
mod clock;
pub mod commands;
pub mod config;
pub mod delivery;
pub mod domain;
pub mod gateway;
mod http;
pub mod models;
pub mod routing;
pub mod sessions;
mod signing;
pub mod storage;
pub mod telemetry;
pub mod tenants;
pub mod tools;
pub mod turn;
pub mod work;
