//! `/skills`: lists the skills of this place's agent, with the reason for each.

use super::Context;
use crate::access::Role;
use crate::agents::skills::{Because, LeftOut, Reason, Skill};
use crate::agents::{Agent, Skills};

pub(super) async fn run(context: &Context<'_>) -> String {
    let registry = &context.snapshot.registry;
    let agent = registry
        .get(&context.route.agent)
        .unwrap_or_else(|| registry.default_agent())
        .clone();
    let of_agent = agent.clone();
    match tokio::task::spawn_blocking(move || Skills::load(&of_agent)).await {
        Ok(skills) => text(&agent, &skills, context.role),
        Err(_) => "The skills could not be looked up.".into(),
    }
}

fn text(agent: &Agent, skills: &Skills, role: Role) -> String {
    let mut text = opening(agent, skills.readable.len());
    for skill in &skills.readable {
        text.push_str(&format!(
            "\n- `{}`{}: {}",
            skill.name,
            mark(skill),
            skill.description
        ));
    }
    // Problems of files are told to owners alone, because only they can mend files.
    let broken: Vec<&LeftOut> = skills
        .left_out
        .iter()
        .filter(|left| matches!(left.reason, Reason::Broken { .. }))
        .collect();
    if role == Role::Owner && !broken.is_empty() {
        let names: Vec<String> = broken
            .iter()
            .map(|left| format!("`{}`", left.name))
            .collect();
        text.push_str(&format!(
            "\n\nBroken and left out: {}. `parlor skill check` says why.",
            names.join(", ")
        ));
    }
    text
}

fn opening(agent: &Agent, count: usize) -> String {
    let (who, count) = (
        agent.label(),
        if count == 1 {
            "1 skill".to_owned()
        } else {
            format!("{count} skills")
        },
    );
    match &agent.skills {
        Some(list) if list.is_empty() => {
            format!("{who} has no skills: `skills = []` in config.toml.")
        }
        Some(_) => format!("{who} has {count}, as `skills` in config.toml says."),
        None => format!("{who} has {count}: the whole pool and its own."),
    }
}

fn mark(skill: &Skill) -> &'static str {
    match (skill.because, skill.origin) {
        (Because::OwnInsteadOfPool, _) => " (local, instead of the pool's)",
        (_, crate::agents::skills::SkillOrigin::Local) => " (local)",
        _ => "",
    }
}
