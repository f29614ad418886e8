//! Parlor: one bot, a room for every agent.
//!
//! The map, in reading order. A module may use modules above its own line, never modules below.
//!
//! - [`domain`]: plain values: ids, session keys, messages. Uses no other module.
//! - [`sandbox`]: work on strangers' bytes, in a child process with limits.
//! - [`storage`]: the database: a single writer with group commit, a few readers. Knows no table.
//! - `jobs`: the schedules of jobs: when a turn is due. Pure.
//! - [`config`]: `config.toml`, as written and as checked.
//! - `access`: the people allowed to speak to the bot, and where.
//! - [`routing`]: the agent of a place, and why.
//! - [`channels`]: the platforms: Telegram, Discord, the web chat and the terminal.
//! - [`agents`]: the agents and their belongings: identity files, models, skills, memory,
//!   workspace.
//! - [`models`]: model providers, fallbacks after a failure, and the built-in demo model.
//! - [`tools`]: the abilities of an agent besides talking, and the policy of their use.
//! - [`home`]: the home folder and its lock, the checked config, the agents, and a snapshot of all
//!   of them.
//! - `turn`: a single run of an agent: prompt → model ⇄ tools.
//! - [`delivery`]: the outbox and its senders, the platforms' limits, previews of unfinished
//!   answers.
//! - [`records`]: the tables about sessions: inbox, transcript, journal, ledger, turn log. SQL
//!   only.
//! - `subagents`: turns asked for by another turn, and messages between places.
//! - `answering`: from a queued message to its written answer: admit, prepare, run, finish, commit.
//! - [`lanes`]: order within a place; the [`lanes::Sessions`] handle.
//! - `tenants`: the life of an agent: added, renamed, removed, brought back, taken along.
//! - `backups`: a home in one file, and back.
//! - `moving`: agents and conversations of other systems, brought in; our agents, written for others.
//! - `operations`: everything an operator can ask or change, for chat, command line and HTTP alike.
//! - `doctor`: what is wrong with a house, and the fix for each.
//! - [`commands`]: the commands people give to the gateway itself.
//! - [`gateway`]: start, supervise, drain; `gateway/inbound.rs` is where to follow a message.
//! - `setup`: from nothing to an agent that answers in a topic: the steps of `parlor setup`.
//! - `admin`: the listener: HTTP API and dashboard behind their door, metrics, health.
//! - [`cli`]: the command line, one file per verb.
//!
//! Beside them, for all modules: `backoff` (waits between tries), `clock` (the time), `console` (lines
//! for an operator who watches), `door` (the
//! HTTP server for calls from outside), [`fail_points`] (where tests kill the process), `figures` (numbers and
//! time zones for people), `fuzzing` (readers of strangers' bytes, for
//! fuzzers), `http` (the base of HTTP clients), `open_files` (their
//! limit), `metered` (bounds on archives), `metrics` (numbers about the
//! running gateway), `printable` (text for a terminal), `signing` (tags on buttons), `slots` (shares of scarce
//! things), [`telemetry`] (logs).

mod access;
mod admin;
pub mod agents;
mod answering;
mod backoff;
mod backups;
pub mod channels;
pub mod cli;
mod clock;
pub mod commands;
pub mod config;
mod console;
pub mod delivery;
mod doctor;
pub mod domain;
mod door;
pub mod fail_points;
mod figures;
#[doc(hidden)]
pub mod fuzzing;
pub mod gateway;
pub mod home;
mod http;
pub mod jobs;
pub mod lanes;
mod machine;
mod metered;
mod metrics;
pub mod models;
mod moving;
mod open_files;
mod operations;
mod printable;
pub mod records;
pub mod routing;
pub mod sandbox;
mod setup;
mod signing;
mod slots;
pub mod storage;
mod subagents;
pub mod telemetry;
mod tenants;
pub mod tools;
mod turn;
