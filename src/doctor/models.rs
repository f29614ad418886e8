//! Models: every model in use by an agent is asked for a word.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use tokio::time::timeout;

use super::Patient;
use crate::config::{AgentSpec, ModelRef, ModelSettings};
use crate::home::Snapshot;
use crate::models::{CallError, ModelError, ModelMessage, ModelRequest, Unavailable};
use crate::operations::diagnosis::{Finding, State};

/// A model that has not begun to answer by then is slow.
const PATIENCE: Duration = Duration::from_secs(5);
/// The smallest answer allowed by all servers.
const FEW_TOKENS: u32 = 16;

/// The use of a model: for an agent's first try, or only behind another model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Fallback,
    First,
}

/// Asks every model, side by side.
pub(super) async fn ask(patient: &Patient<'_>) -> Vec<Finding> {
    let Some(snapshot) = &patient.snapshot else {
        return Vec::new();
    };
    let home = patient.home.path();
    let asked = used(snapshot)
        .into_iter()
        .map(async |(name, (model, used))| match model {
            ModelRef::Demo => demo(snapshot),
            model => one((snapshot, home), &name, &model, used).await,
        });
    join_all(asked).await
}

/// The state of the models, known to the gateway from its own calls.
pub(super) fn known(patient: &Patient<'_>) -> Vec<Finding> {
    let Some(snapshot) = &patient.snapshot else {
        return Vec::new();
    };
    let home = patient.home.path();
    let told = |(name, (model, used)): (String, (ModelRef, Use))| match model {
        ModelRef::Demo => demo(snapshot),
        model => match snapshot.models.trouble(&model) {
            Some(trouble) => troubled(
                (snapshot, home),
                &name,
                &model,
                used,
                &trouble.failure.error,
            )
            .cause(trouble.failure.error.to_string()),
            None => Finding::ok("models", format!("{name} has no trouble.")),
        },
    };
    used(snapshot).into_iter().map(told).collect()
}

/// Models by their name.
fn used(snapshot: &Snapshot) -> BTreeMap<String, (ModelRef, Use)> {
    let mut found: BTreeMap<String, (ModelRef, Use)> = BTreeMap::new();
    let config = &snapshot.config;
    let first = config.agents.iter().map(|agent| {
        let model = agent.model.as_ref().unwrap_or(&config.default_model);
        (model, Use::First)
    });
    let behind = config.agents.iter().flat_map(|agent| &agent.fallback);
    for (model, used) in first.chain(behind.map(|model| (model, Use::Fallback))) {
        let entry = found
            .entry(model.to_string())
            .or_insert_with(|| (model.clone(), used));
        entry.1 = entry.1.max(used);
    }
    found
}

fn demo(snapshot: &Snapshot) -> Finding {
    let config = &snapshot.config;
    let is_demo = |agent: &&AgentSpec| {
        *agent.model.as_ref().unwrap_or(&config.default_model) == ModelRef::Demo
    };
    let ids: Vec<&str> = config
        .agents
        .iter()
        .filter(is_demo)
        .map(|agent| agent.id.as_str())
        .collect();
    let who = match ids.as_slice() {
        [] => "A fallback is".to_owned(),
        all if all.len() == config.agents.len() => "All agents answer with".to_owned(),
        [one] => format!("{one} answers with"),
        some => format!("{} answer with", some.join(", ")),
    };
    Finding::note(
        "models",
        format!("{who} the built-in demo model, which only echoes."),
    )
    .fix(
        "parlor setup connects a model, or write default_model = \"provider/model\" in config.toml",
    )
}

async fn one(
    (snapshot, home): (&Snapshot, &Path),
    name: &str,
    model: &ModelRef,
    used: Use,
) -> Finding {
    match timeout(PATIENCE, answer(snapshot, model)).await {
        Ok(Ok(())) => Finding::ok("models", format!("{name} answers.")),
        Ok(Err(failed)) => {
            let cause = match &failed.detail {
                Some(detail) => format!("{}: {detail}", failed.error),
                None => failed.error.to_string(),
            };
            troubled((snapshot, home), name, model, used, &failed.error).cause(cause)
        }
        Err(_) => Finding::warn("models", format!("{name} did not answer within 5 s."))
            .fix("Try again; if it stays so, choose another model or add a fallback."),
    }
}

/// Any piece of an answer will do, and an answer cut short too.
async fn answer(snapshot: &Snapshot, model: &ModelRef) -> Result<(), CallError> {
    let request = ModelRequest {
        system: "".into(),
        messages: vec![ModelMessage::user("Say ok.".to_owned())],
        tools: Vec::new(),
        settings: ModelSettings {
            temperature: None,
            max_tokens: Some(FEW_TOKENS),
            reasoning: None,
        },
        cache_key: String::new(),
    };
    let mut stream = snapshot.models.stream(model, request).await?;
    match stream.next().await {
        Some(Err(failed)) => Err(failed),
        Some(Ok(_)) | None => Ok(()),
    }
}

fn troubled(
    (snapshot, home): (&Snapshot, &Path),
    name: &str,
    model: &ModelRef,
    used: Use,
    error: &ModelError,
) -> Finding {
    let state = match used {
        Use::First => State::Bad,
        Use::Fallback => State::Warn,
    };
    let finding = Finding::new("models", state, format!("{name} does not answer."));
    finding.fix(fix((snapshot, home), model, error))
}

fn fix((snapshot, home): (&Snapshot, &Path), model: &ModelRef, error: &ModelError) -> String {
    let provider = match model {
        ModelRef::Demo => "",
        ModelRef::Of { provider, .. } => provider.as_str(),
    };
    match error {
        ModelError::Unavailable(why) if why.open_file().is_some() => {
            let name = why.open_file().unwrap_or_default();
            let path = home.join(name);
            format!("chmod 600 {}, then parlor reload", path.display())
        }
        ModelError::Unavailable(Unavailable::KeyMissing(why)) if why.contains(" is not set") => {
            "Set it where Parlor is started, then start Parlor again: a reload brings no new variables."
                .into()
        }
        ModelError::Unavailable(Unavailable::KeyMissing(_)) => {
            format!("Put the key where api_key of [providers.{provider}] points, then parlor reload")
        }
        ModelError::Unavailable(Unavailable::KeyRejected(_)) => {
            format!(
                "Put a valid key where api_key of [providers.{provider}] points, then parlor reload; a new environment variable needs a new start"
            )
        }
        ModelError::Unavailable(Unavailable::KeyWanted(_)) => {
            format!("Add api_key to [providers.{provider}] in config.toml, then parlor reload")
        }
        ModelError::Unavailable(Unavailable::NoCredit(_)) => {
            format!("Add credit to the account of [providers.{provider}].")
        }
        ModelError::Unavailable(Unavailable::NoSuchModel(_) | Unavailable::NotAllowed(_)) => {
            match snapshot.models.similar(model) {
                Some(similar) => format!("Did you mean {similar}? Correct it in config.toml."),
                None => "Name a model that the provider has, in config.toml.".into(),
            }
        }
        ModelError::Unreachable(_) | ModelError::Unavailable(_) => {
            format!("Check base_url of [providers.{provider}], and that the server runs.")
        }
        ModelError::RateLimited { .. } | ModelError::Overloaded => {
            "Wait, or add a fallback to the agents that use it.".into()
        }
        _ => format!("Check [providers.{provider}] in config.toml."),
    }
}
