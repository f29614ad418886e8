//! `/agents`: everyone who can answer, with a mark at the one who does.

use super::Context;

pub(super) fn run(context: &Context<'_>) -> String {
    let lines = context.desk.registry.all().iter().map(|agent| {
        let here = if agent.id == context.route.agent { " ← answers here" } else { "" };
        format!("- {} (`{}`), {}{here}", agent.label(), agent.id, agent.model)
    });
    let list = lines.collect::<Vec<_>>().join("\n");
    format!("{list}\n\n`/agent <id>` gives this place to another.")
}
