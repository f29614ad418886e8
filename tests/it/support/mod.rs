//! Fake far ends and the harness that starts the real thing.

#[expect(dead_code, reason = "has what the tests of the Discord channel need")]
pub(crate) mod fake_discord;
pub(crate) mod fake_model;
pub(crate) mod fake_telegram;
pub(crate) mod faults;
pub(crate) mod house;

pub(crate) use house::House;
