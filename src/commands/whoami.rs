//! `/whoami`: the person, the place ready to paste into config.toml, the agent, and the rule that chose it.

use super::Context;
use crate::domain::SessionKey;

pub(super) fn run(context: &Context<'_>) -> String {
    let origin = &context.inbound.origin;
    let agent = context.desk.registry.get(&context.route.agent).map_or_else(String::new, |agent| agent.label());
    let (paste, remark) = to_paste(&origin.key);
    format!(
        "You are {}, `{}` ({}).\nThis place is `{}`{}.\n{agent} (`{}`) answers here: {}.\n\n\
         To give it to somebody for good, put this into config.toml:\n```toml\n[[bindings]]\nmatch = \"{paste}\"\nagent = \"{}\"\n```{remark}",
        context.inbound.person_name,
        origin.person,
        context.standing.as_str(),
        origin.key,
        origin.name.as_ref().map_or_else(String::new, |name| format!(", called “{name}”")),
        context.route.agent,
        context.route.rule,
        context.route.agent,
    )
}

/// The key people mean when they want to bind this place, and what else they may mean.
fn to_paste(key: &SessionKey) -> (SessionKey, String) {
    match key.whole_group() {
        // One conversation per member: the place people see is the group.
        Some(group) if !key.is_shared() => (group, format!("\nFor you alone in this group, write `{key}`.")),
        Some(group) => (key.clone(), format!("\nFor the whole group, write `{group}`.")),
        None => (key.clone(), String::new()),
    }
}
