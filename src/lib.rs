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
//! - [`home`]: the home folder and its lock, the checked config, the agents, and all of it as one snapshot.
//! - [`turn`]: one run of one agent: prompt → model ⇄ tools.
//! - [`delivery`]: the outbox and its senders, the platforms' limits, answers that are being written.
//! - [`records`]: the tables about sessions: inbox, transcript, journal, ledger, turn log. SQL only.
//! - `subagents`: turns that another turn asked for, and messages between places.
//! - `answering`: from a queued message to its written answer: admit, prepare, run, finish, commit.
//! - [`lanes`]: order within a place; the [`lanes::Sessions`] handle.
//! - [`tenants`]: the life of an agent: added, renamed, removed, brought back, taken along.
//! - [`commands`]: what people tell the gateway itself.
//! - [`gateway`]: start, supervise, drain; `gateway/inbound.rs` is where to follow a message.
//! - [`cli`]: the command line, one file per verb.
//!
//! Beside them, for everyone: `backoff` (waits between tries), `clock` (the time), `http` (how clients begin), `open_files` (how many
//! there may be), `signing` (tags on buttons), [`telemetry`] (logs).

pub mod access;
pub mod agents;
mod answering;
mod backoff;
pub mod channels;
pub mod cli;
mod clock;
pub mod commands;
pub mod config;
pub mod delivery;
pub mod domain;
pub mod gateway;
pub mod home;
mod http;
pub mod lanes;
pub mod models;
mod open_files;
pub mod records;
pub mod routing;
mod signing;
pub mod storage;
mod subagents;
pub mod telemetry;
pub mod tenants;
pub mod tools;
pub mod turn;
