//! `/whoami`: the person, the place ready to paste into config.toml, the agent, and the rule that chose it.

use super::Context;
use crate::domain::SessionKey;

pub(super) fn run(context: &Context<'_>) -> String {
    let origin = &context.inbound.origin;
    let agent = context.desk.registry.get(&context.route.agent).map_or_else(String::new, |agent| agent.label());
    let mut text = format!(
        "You are {}, `{}` ({}).\nThis place is `{}`.\n{agent} (`{}`) answers here: {}.\n\n\
         To give it to somebody for good, put this into config.toml:\n```toml\n[[bindings]]\nmatch = \"{}\"\nagent = \"{}\"\n```",
        context.inbound.person_name,
        origin.person,
        context.standing.as_str(),
        origin.key,
        context.route.agent,
        context.route.rule,
        origin.key,
        context.route.agent,
    );
    if let Some(whole) = whole_group(&origin.key) {
        text.push_str(&format!("\nFor the whole group, write `{whole}`."));
    }
    text
}

/// The key that covers more than this place, where there is one.
fn whole_group(key: &SessionKey) -> Option<SessionKey> {
    match key {
        SessionKey::TelegramTopic { chat, .. } | SessionKey::TelegramGroup { chat, member: Some(_) } => {
            Some(SessionKey::TelegramGroup { chat: *chat, member: None })
        }
        SessionKey::DiscordThread { channel, .. } | SessionKey::DiscordChannel { channel, member: Some(_) } => {
            Some(SessionKey::DiscordChannel { channel: *channel, member: None })
        }
        _ => None,
    }
}
