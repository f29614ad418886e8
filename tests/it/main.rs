//! All integration tests in one binary: it links once and shares its support code.

mod fake_telegram;
mod models;
mod support;
