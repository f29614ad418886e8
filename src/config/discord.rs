//! Reads `[discord]`.

use super::check::{answers, nicknames};
use super::reader::Section;
use super::secrets::Vault;
use super::{Discord, DiscordLimits, schema};

/// Discord's own servers.
const DISCORD_API: &str = "https://discord.com";

/// The largest file of people without a subscription.
const MAX_FILE_MB: u32 = 10;

pub(super) fn read(section: &Section<'_>, vault: &Vault<'_>) -> Discord {
    let address = section.address("api_url", DISCORD_API).map(|address| address.url);
    Discord {
        token: vault.secret(section, "token").unwrap_or_default(),
        api_url: address.as_deref().unwrap_or(DISCORD_API).trim_end_matches('/').to_owned(),
        auto_bind: section.boolean("auto_bind").unwrap_or_default(),
        streaming: section.boolean("streaming").unwrap_or(true),
        limits: section.section("limits", &schema::DISCORD_LIMITS).map(|section| limits(&section)).unwrap_or_default(),
        nicknames: nicknames(section),
        answers: answers(section),
        gather_ms: section.count("gather_ms").unwrap_or(0),
        max_file_mb: section.count("max_file_mb").unwrap_or(MAX_FILE_MB),
    }
}

fn limits(section: &Section<'_>) -> DiscordLimits {
    let default = DiscordLimits::default();
    DiscordLimits {
        per_second: section.count("per_second").unwrap_or(default.per_second),
        channel_per_second: section.count("channel_per_second").unwrap_or(default.channel_per_second),
    }
}
