//! Circuit breaker: after three refusals a channel is left alone for a minute. Discord bans bots
//! with many invalid requests.
//!
//! <https://discord.com/developers/docs/topics/rate-limits#invalid-request-limit-aka-cloudflare-bans>

use std::time::Duration;

use dashmap::DashMap;
use tokio::time::Instant;

use crate::channels::PlaceLoss;
use crate::domain::DiscordId;

/// Refusals in a row before the pause.
const MOST_REFUSALS: u32 = 3;
const LEFT_ALONE: Duration = Duration::from_secs(60);
/// Channels in memory.
const MOST_KEPT: usize = 1000;

struct Refusal {
    why: PlaceLoss,
    refusals: u32,
    since: Instant,
}

#[derive(Default)]
pub(super) struct RefusedChannels {
    channels: DashMap<DiscordId, Refusal>,
}

impl RefusedChannels {
    pub(super) fn note(&self, channel: DiscordId, why: PlaceLoss) {
        if self.channels.len() >= MOST_KEPT {
            self.channels.clear();
        }
        let since = Instant::now();
        let mut loss = self.channels.entry(channel).or_insert(Refusal {
            why,
            refusals: 0,
            since,
        });
        *loss = Refusal {
            why,
            refusals: loss.refusals + 1,
            since,
        };
    }

    /// The reason for a pause; none if the channel may be called.
    pub(super) fn left_alone(&self, channel: DiscordId) -> Option<PlaceLoss> {
        let loss = self.channels.get(&channel)?;
        (loss.refusals >= MOST_REFUSALS && loss.since.elapsed() < LEFT_ALONE).then_some(loss.why)
    }

    /// Ends the count of a channel. True if there were refusals.
    pub(super) fn forget(&self, channel: DiscordId) -> bool {
        self.channels.remove(&channel).is_some()
    }
}
