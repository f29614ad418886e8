//! The fake itself under test: if it were kinder than Discord, every other test would be worth less.

mod bot;
mod connection;
