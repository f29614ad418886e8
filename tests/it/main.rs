//! All integration tests in one binary: it links once and shares its support code.

mod access;
mod aimock;
mod budgets;
mod checks;
mod choosing;
mod cli;
mod commands;
mod context;
mod delivery;
mod fake_telegram;
mod fallback;
mod groups;
mod incoming;
mod lanes;
mod lifecycle;
mod menus;
mod models;
mod pictures;
mod proxy;
mod streaming;
mod support;
mod topics;
mod topics_life;
mod turns;
mod webhook;
