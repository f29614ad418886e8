//! Channels that took nothing from us lately. Discord locks out whoever knocks too often where it may not.
//!
//! <https://discord.com/developers/docs/topics/rate-limits#invalid-request-limit-aka-cloudflare-bans>

use std::time::Duration;

use dashmap::DashMap;
use tokio::time::Instant;

use crate::channels::PlaceLoss;
use crate::domain::DiscordId;

/// Refusals in a row after which a channel is left alone for a while.
const MOST_REFUSALS: u32 = 3;
const LEFT_ALONE: Duration = Duration::from_secs(60);
/// Channels that are remembered.
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
        let mut loss = self.channels.entry(channel).or_insert(Refusal { why, refusals: 0, since });
        *loss = Refusal { why, refusals: loss.refusals + 1, since };
    }

    /// Why a channel is not even asked right now.
    pub(super) fn left_alone(&self, channel: DiscordId) -> Option<PlaceLoss> {
        let loss = self.channels.get(&channel)?;
        (loss.refusals >= MOST_REFUSALS && loss.since.elapsed() < LEFT_ALONE).then_some(loss.why)
    }

    /// It takes messages, or may do so again. True when it was lost.
    pub(super) fn forget(&self, channel: DiscordId) -> bool {
        self.channels.remove(&channel).is_some()
    }
}
