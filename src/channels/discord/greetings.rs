//! Keeps the bot's greetings apart: Discord allows one in five seconds, and a thousand a day.
//!
//! <https://discord.com/developers/docs/events/gateway#session-start-limit-object>

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// What Discord asks for, and a little more.
const APART: Duration = Duration::from_millis(5100);

#[derive(Default)]
pub(super) struct Greetings {
    /// When the last one was allowed. An async mutex, because whoever waits holds the line for those behind.
    last: Mutex<Option<Instant>>,
}

impl Greetings {
    /// Returns when it is the caller's turn.
    pub(super) async fn turn(&self) {
        let mut last = self.last.lock().await;
        if let Some(last) = *last {
            sleep_until(last + APART).await;
        }
        *last = Some(Instant::now());
    }
}
