//! All integration tests in one binary: it links once and shares its support code.

mod access;
mod checks;
mod cli;
mod commands;
mod delivery;
mod fake_telegram;
mod files;
mod groups;
mod incoming;
mod lanes;
mod lifecycle;
mod menus;
mod models;
mod peers;
mod proxy;
mod streaming;
mod subagents;
mod support;
mod topics;
mod topics_life;
mod turns;
mod webhook;
