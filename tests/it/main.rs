//! All integration tests in one binary: it links once and shares its support code.

mod access;
mod budgets;
mod checks;
mod cli;
mod commands;
mod delivery;
mod fake_telegram;
mod groups;
mod incoming;
mod lanes;
mod lifecycle;
mod menus;
mod models;
mod proxy;
mod streaming;
mod support;
mod topics;
mod topics_life;
mod turns;
mod webhook;
