//! All integration tests in one binary: it links once and shares its support code.

mod access;
mod channels;
mod checks;
mod cli;
mod commands;
mod delivery;
mod discord;
mod discord_life;
mod discord_out;
mod fake_discord;
mod fake_telegram;
mod groups;
mod incoming;
mod lanes;
mod lifecycle;
mod menus;
mod models;
mod proxy;
mod slash;
mod streaming;
mod support;
mod topics;
mod topics_life;
mod webhook;
