//! Reads `[discord]`.

use super::reader::Section;
use super::secrets::Vault;
use super::{Discord, DiscordLimits, platform, schema};

/// People without a subscription may send files of up to 10 MB.
const DISCORD: platform::Defaults = platform::Defaults {
    api_url: "https://discord.com",
    max_file_mb: 10,
};

pub(super) fn read(section: &Section<'_>, vault: &Vault<'_>) -> Discord {
    Discord {
        platform: platform::read(section, vault, &DISCORD),
        limits: section
            .section("limits", &schema::DISCORD_LIMITS)
            .map(|section| limits(&section))
            .unwrap_or_default(),
    }
}

fn limits(section: &Section<'_>) -> DiscordLimits {
    let default = DiscordLimits::default();
    DiscordLimits {
        per_second: section.count("per_second").unwrap_or(default.per_second),
        channel_per_second: section
            .count("channel_per_second")
            .unwrap_or(default.channel_per_second),
    }
}
