//! `/whoami`: the person, the place ready to paste into config.toml, the agent, and the deciding
//! rule.

use super::{CommandError, Context, model};
use crate::domain::SessionKey;

pub(super) async fn run(context: &Context<'_>) -> Result<String, CommandError> {
    let origin = &context.inbound.origin;
    let (agent, chosen) = model::here(context).await?;
    let agent = agent.label();
    let (paste, remark) = to_paste(&origin.key);
    Ok(format!(
        "You are {}, `{}` ({}).\nThis place is `{}`{}.\n{agent} (`{}`) answers here: {}.\nIts model is `{}` ({}).\n\n\
         To give it to somebody for good, put this into config.toml:\n```toml\n[[bindings]]\nmatch = \"{paste}\"\nagent = \"{}\"\n```{remark}",
        context.inbound.person_name,
        origin.person,
        context.role.as_str(),
        origin.key,
        origin
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!(", called “{name}”")),
        context.route.agent,
        context.route.rule,
        chosen.model,
        chosen.source,
        context.route.agent,
    ))
}

/// The key for a binding of this place, and the other keys a person may mean.
fn to_paste(key: &SessionKey) -> (SessionKey, String) {
    match key.whole_group() {
        // Each member has a conversation of their own, but people see the group as the place.
        Some(group) if !key.is_shared() => (
            group,
            format!("\nFor you alone in this group, write `{key}`."),
        ),
        Some(group) => (
            key.clone(),
            format!("\nFor the whole group, write `{group}`."),
        ),
        None => (key.clone(), String::new()),
    }
}
