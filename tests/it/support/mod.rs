//! Fake far ends and the harness that starts the real thing.

pub(crate) mod fake_model;
pub(crate) mod fake_telegram;
pub(crate) mod house;

pub(crate) use house::House;
