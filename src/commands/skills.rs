//! `/skills`: lists the skills of this place's agent, with the reason for each.

use super::Context;
use super::texts::memory as texts;
use crate::access::Role;
use crate::agents::skills::{Because, Reason, Skill, SkillOrigin};
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
        Err(_) => texts::SKILLS_UNREADABLE.into(),
    }
}

fn text(agent: &Agent, skills: &Skills, role: Role) -> String {
    let own = skills.readable.iter().filter(|skill| is_own(skill)).count();
    let shared = skills.readable.len() - own;
    let mut text = texts::skills(&agent.label(), shared, own, is_chosen(agent));
    for skill in &skills.readable {
        text.push_str(&texts::skill(&skill.name, mark(skill), &skill.description));
    }
    // Problems of files are told to owners alone, because only they can mend files.
    let broken = skills
        .left_out
        .iter()
        .filter(|left| matches!(left.reason, Reason::Broken { .. }));
    let broken: Vec<String> = broken.map(|left| format!("`{}`", left.name)).collect();
    if role == Role::Owner && !broken.is_empty() {
        text.push_str(&texts::broken_skills(&broken));
    }
    text
}

/// Whether config.toml names skills of the agent.
fn is_chosen(agent: &Agent) -> bool {
    agent.skills.is_some() || !agent.denied_skills.is_empty()
}

fn is_own(skill: &Skill) -> bool {
    matches!(skill.origin, SkillOrigin::Local)
}

fn mark(skill: &Skill) -> Option<&'static str> {
    match skill.because {
        Because::OwnInsteadOfPool => Some(texts::OWN_INSTEAD),
        _ if is_own(skill) => Some(texts::OWN_SKILL),
        _ => None,
    }
}
