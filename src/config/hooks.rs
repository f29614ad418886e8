//! Reads `[hooks.<name>]`: calls from other programs that become turns.

use std::collections::BTreeMap;

use super::declared::DeclaredAgents;
use super::reader::Section;
use super::secrets::{Secret, Vault};
use super::{Problem, jobs, schema};
use crate::domain::{AgentId, LocalName, Role, SessionKey};
use crate::jobs::JobContext;

/// Calls in a minute, unless the section says otherwise.
const PER_MINUTE: u32 = 30;
/// The largest body, in kilobytes.
const MAX_KB: u32 = 256;
const MOST_KB: u32 = 1_024;

/// An address of ours that other programs call.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    pub name: LocalName,
    /// Absent: the agent of the place; without a place, the default agent.
    pub agent: Option<AgentId>,
    /// The task, with places for the body.
    pub prompt: String,
    /// Where the answer goes. None: nowhere.
    pub place: Option<SessionKey>,
    pub context: JobContext,
    pub token: Secret,
    pub signature: Signature,
    /// The rights of the turns.
    pub role: Role,
    pub per_minute: u32,
    pub max_kb: u32,
}

/// A caller's proof of knowing the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signature {
    /// The caller sends the token itself.
    #[default]
    Token,
    /// `X-Hub-Signature-256`.
    Github,
    /// `Stripe-Signature`.
    Stripe,
}

pub(super) fn read(
    top: &Section<'_>,
    declared: &DeclaredAgents,
    vault: &Vault<'_>,
) -> BTreeMap<String, Hook> {
    let mut hooks = BTreeMap::new();
    for named in top.named("hooks") {
        let Some(table) = named.section(&schema::HOOK) else {
            continue;
        };
        if top.value("admin").is_none() {
            let problem = Problem::new(named.name.span.clone(), "nothing listens for this hook")
                .label("hooks are at the listener of [admin]");
            top.problems.note(
                problem
                    .help("add [admin]; with nothing below it, the listener is on 127.0.0.1:7717"),
            );
        }
        let name: Option<LocalName> = named.name.value.parse().ok();
        if name.is_none() {
            let problem = Problem::new(
                named.name.span.clone(),
                format!("`{}` cannot be the name of a hook", named.name.value),
            );
            let problem = problem.label("small letters, digits, `-` and `_`");
            top.problems
                .note(problem.help("write it like [hooks.builds]"));
        }
        let hook = hook(&table, declared, vault).zip(name);
        hooks.extend(hook.map(|(hook, name)| (name.to_string(), Hook { name, ..hook })));
    }
    hooks
}

fn hook(table: &Section<'_>, declared: &DeclaredAgents, vault: &Vault<'_>) -> Option<Hook> {
    let agent = table.text("agent");
    let agent = agent.and_then(|name| {
        declared
            .find(&name, table.problems)
            .map(|agent| agent.id.clone())
    });
    let prompt = table.text("prompt");
    let place = jobs::place(table);
    let context = jobs::context(table, place.as_ref());
    let token = vault.secret(table, "token");
    let per_minute = table.at_least_one("per_minute").unwrap_or(PER_MINUTE);
    let max_kb = table.at_least_one("max_kb").unwrap_or(MAX_KB);
    if max_kb > MOST_KB {
        let span = table
            .value("max_kb")
            .map(|value| value.span())
            .unwrap_or_default();
        let problem = Problem::new(span, "`max_kb` is too large");
        table
            .problems
            .note(problem.label(format!("at most {MOST_KB}")));
    }
    let prompt = prompt?;
    if prompt.value.trim().is_empty() {
        let problem = Problem::new(prompt.span.clone(), "`prompt` is empty").label("nothing to do");
        table
            .problems
            .note(problem.help(format!("write it like `{}`", table.usage("prompt"))));
    }
    Some(Hook {
        // Filled in by the caller.
        name: "hook".parse().ok()?,
        agent,
        prompt: prompt.value.trim().to_owned(),
        place,
        context,
        token: token?,
        signature: table.choice("signature").unwrap_or_default(),
        role: table.choice("role").unwrap_or(Role::Member),
        per_minute,
        max_kb,
    })
}
