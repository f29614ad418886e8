//! Guilds, channels, members and the gateway's greetings, as Discord writes them.
//!
//! <https://discord.com/developers/docs/resources/guild#guild-object>

use serde_json::{Value, json};

use super::clock::LONG_AGO;
use super::users::{APPLICATION_ID, PARLOR_BOT, User};
use super::world::{BotMay, Channel, DM, FORUM, Guild, Member, World};

const ADMINISTRATOR: u64 = 1 << 3;
const VIEW_CHANNEL: u64 = 1 << 10;
const SEND_MESSAGES: u64 = 1 << 11;
const READ_MESSAGE_HISTORY: u64 = 1 << 16;
const SEND_MESSAGES_IN_THREADS: u64 = 1 << 38;
const EVERYBODY_MAY: u64 =
    VIEW_CHANNEL | SEND_MESSAGES | READ_MESSAGE_HISTORY | SEND_MESSAGES_IN_THREADS;

/// `GET /guilds/{id}`, which has no channels.
pub(super) fn guild(guild: &Guild) -> Value {
    json!({
        "id": guild.id.to_string(),
        "name": guild.name,
        "icon": null,
        "splash": null,
        "discovery_splash": null,
        "owner_id": guild.owner.id.to_string(),
        "afk_channel_id": null,
        "afk_timeout": 300,
        "verification_level": 0,
        "default_message_notifications": 1,
        "explicit_content_filter": 0,
        "roles": roles(guild),
        "emojis": [],
        "features": [],
        "mfa_level": 0,
        "application_id": null,
        "system_channel_id": null,
        "system_channel_flags": 0,
        "rules_channel_id": null,
        "max_members": 500_000,
        "vanity_url_code": null,
        "description": null,
        "banner": null,
        "premium_tier": 0,
        "premium_subscription_count": 0,
        "preferred_locale": "en-US",
        "public_updates_channel_id": null,
        "nsfw_level": 0,
        "stickers": [],
        "premium_progress_bar_enabled": false,
        "safety_alerts_channel_id": null,
    })
}

/// The data of `GUILD_CREATE`: threads that are archived or private without the bot are not in it.
pub(super) fn guild_create(guild: &Guild, world: &World) -> Value {
    let mut data = self::guild(guild);
    let seen = || {
        world
            .channels
            .values()
            .filter(|channel| channel.guild == Some(guild.id) && channel.bot_may != BotMay::NotSee)
    };
    let channels: Vec<Value> = seen()
        .filter(|channel| channel.thread.is_none())
        .map(channel)
        .collect();
    let threads: Vec<Value> = seen()
        .filter(|channel| channel.is_active_thread())
        .map(channel)
        .collect();
    let extra = json!({
        "joined_at": LONG_AGO,
        "large": false,
        "unavailable": false,
        "member_count": guild.members.len() + 1,
        "members": [full_member(PARLOR_BOT, &world.member(guild.id, PARLOR_BOT.id))],
        "channels": channels,
        "threads": threads,
        "voice_states": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
    });
    merge(&mut data, extra);
    data
}

fn roles(guild: &Guild) -> Vec<Value> {
    let colors = json!({ "primary_color": 0, "secondary_color": null, "tertiary_color": null });
    let role = |(position, (id, name)): (usize, (&u64, &String))| {
        json!({
            "id": id.to_string(), "name": name, "color": 0, "colors": colors, "hoist": false, "icon": null,
            "unicode_emoji": null, "managed": false, "mentionable": false, "permissions": EVERYBODY_MAY.to_string(),
            "position": position, "flags": 0,
        })
    };
    guild.roles.iter().enumerate().map(role).collect()
}

/// A channel, thread or DM.
pub(super) fn channel(channel: &Channel) -> Value {
    let id = channel.id.to_string();
    let last = channel.messages.keys().next_back().map(u64::to_string);
    if channel.kind == DM {
        let recipients: Vec<Value> = channel.dm_with.into_iter().map(User::json).collect();
        return json!({ "id": id, "type": DM, "last_message_id": last, "flags": 0, "recipients": recipients });
    }
    let mut data = json!({
        "id": id, "type": channel.kind, "name": channel.name, "guild_id": channel.guild.map(|guild| guild.to_string()),
        "parent_id": channel.parent.map(|parent| parent.to_string()), "last_message_id": last, "flags": 0,
        "rate_limit_per_user": 0,
    });
    let extra = match &channel.thread {
        Some(_) => thread_fields(channel),
        None => {
            json!({ "position": 0, "topic": null, "nsfw": false, "permission_overwrites": overwrites(channel) })
        }
    };
    merge(&mut data, extra);
    if channel.kind == FORUM {
        merge(&mut data, forum_fields(channel));
    }
    if matches!(channel.kind, super::world::VOICE | super::world::STAGE) {
        merge(
            &mut data,
            json!({ "bitrate": 64000, "user_limit": 0, "rtc_region": null }),
        );
    }
    data
}

fn thread_fields(channel: &Channel) -> Value {
    let thread = channel.thread.as_ref().expect("only called for threads");
    let applied: Vec<String> = thread.applied_tags.iter().map(u64::to_string).collect();
    let count = channel.messages.len();
    json!({
        "owner_id": thread.owner.to_string(),
        "thread_metadata": {
            "archived": thread.archived, "auto_archive_duration": thread.auto_archive_minutes, "archive_timestamp": LONG_AGO,
            "locked": thread.locked, "create_timestamp": LONG_AGO,
        },
        "message_count": count,
        "member_count": 1,
        "total_message_sent": count,
        "applied_tags": applied,
    })
}

fn forum_fields(channel: &Channel) -> Value {
    let tag = |(id, name): &(u64, String)| json!({ "id": id.to_string(), "name": name, "moderated": false, "emoji_id": null, "emoji_name": null });
    let tags: Vec<Value> = channel.tags.iter().map(tag).collect();
    json!({ "available_tags": tags, "default_reaction_emoji": null, "default_sort_order": null, "default_forum_layout": 0 })
}

fn overwrites(channel: &Channel) -> Value {
    let denied = match channel.bot_may {
        BotMay::Write => return json!([]),
        BotMay::OnlyRead => SEND_MESSAGES | SEND_MESSAGES_IN_THREADS,
        BotMay::NotSee => VIEW_CHANNEL,
    };
    json!([{ "id": PARLOR_BOT.id.to_string(), "type": 1, "allow": "0", "deny": denied.to_string() }])
}

/// The `member` of an event, which has no `user`.
pub(super) fn partial_member(member: &Member) -> Value {
    let roles: Vec<String> = member.roles.iter().map(u64::to_string).collect();
    json!({
        "roles": roles, "nick": member.nick, "avatar": null, "joined_at": LONG_AGO, "premium_since": null, "deaf": false,
        "mute": false, "flags": 0, "pending": false, "communication_disabled_until": null,
    })
}

pub(super) fn full_member(user: User, member: &Member) -> Value {
    let mut data = partial_member(member);
    data["user"] = user.json();
    data
}

/// The `member` of an interaction, which says what the person may do there.
pub(super) fn interaction_member(user: User, member: &Member) -> Value {
    let mut data = full_member(user, member);
    data["permissions"] = permissions(member).to_string().into();
    data
}

fn permissions(member: &Member) -> u64 {
    EVERYBODY_MAY
        | if member.is_administrator {
            ADMINISTRATOR
        } else {
            0
        }
}

/// What the bot may do where an interaction came from.
pub(super) fn bot_permissions() -> String {
    EVERYBODY_MAY.to_string()
}

/// The data of `READY`.
pub(super) fn ready(session_id: &str, shard: [u64; 2], gateway_url: &str, guilds: &[u64]) -> Value {
    let guilds: Vec<Value> = guilds
        .iter()
        .map(|id| json!({ "id": id.to_string(), "unavailable": true }))
        .collect();
    json!({
        "v": 10,
        "user_settings": {},
        "user": me(),
        "session_type": "normal",
        "session_id": session_id,
        "resume_gateway_url": gateway_url,
        "relationships": [],
        "private_channels": [],
        "presences": [],
        "guilds": guilds,
        "guild_join_requests": [],
        "geo_ordered_rtc_regions": [],
        "game_relationships": [],
        "auth": {},
        "shard": shard,
        "application": { "id": APPLICATION_ID.to_string(), "flags": 0 },
        "_trace": ["[\"fake\",{\"micros\":1}]"],
    })
}

/// The bot as it sees itself.
pub(super) fn me() -> Value {
    let mut me = PARLOR_BOT.json();
    merge(
        &mut me,
        json!({ "verified": true, "mfa_enabled": false, "flags": 0, "email": null }),
    );
    me
}

/// `shows_content`: Message Content Intent is on in the portal.
pub(super) fn application(shows_content: bool) -> Value {
    let flags = if shows_content { 1 << 19 } else { 0 };
    json!({
        "id": APPLICATION_ID.to_string(), "name": "Parlor", "icon": null, "description": "", "bot_public": false,
        "bot_require_code_grant": false, "verify_key": "00", "team": null, "flags": flags, "owner": super::users::CAROL.json(),
    })
}

/// Puts the fields of an object into another.
pub(super) fn merge(target: &mut Value, extra: Value) {
    match (target, extra) {
        (Value::Object(target), Value::Object(extra)) => target.extend(extra),
        (target, extra) => panic!("not two objects: {target} and {extra}"),
    }
}
