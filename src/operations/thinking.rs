//! The model of an agent in a place, and the setting behind it.

use serde::Serialize;
use utoipa::ToSchema;

use super::abilities::{Cause, cause};
use crate::agents::{AgentModels, Source};
use crate::config::settings::Settings;
use crate::config::{Config, ModelRef, Reasoning};
use crate::domain::AgentId;

/// The model of the agent in this place.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Thinking {
    pub(crate) model: String,
    #[schema(value_type = String)]
    pub(crate) source: Source,
    /// Chosen with /model, but not usable any more.
    pub(crate) ignored: Option<String>,
    pub(crate) fallback: Vec<String>,
    pub(crate) temperature: Option<f64>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) reasoning: Option<&'static str>,
    /// The setting behind the model; absent where it was chosen with /model.
    pub(crate) because: Option<Cause>,
}

/// `wanted`: chosen with /model in the place. None for an agent that is not in the config.
pub(crate) fn thinking(
    config: &Config,
    agent: &AgentId,
    wanted: Option<&ModelRef>,
    settings: &Settings,
) -> Option<Thinking> {
    let spec = config.agents.iter().find(|spec| spec.id == *agent)?;
    let models = AgentModels::of(config, spec);
    let chosen = models.choose(wanted);
    let behind = models.lineup(&chosen).split_off(1);
    let because = match chosen.source {
        Source::Override => None,
        Source::Agent => cause(settings, &format!("agents.{agent}.model")),
        Source::Default => cause(settings, "default_model"),
    };
    Some(Thinking {
        because,
        model: chosen.model.to_string(),
        source: chosen.source,
        ignored: chosen.ignored.map(|model| model.to_string()),
        fallback: behind.iter().map(ModelRef::to_string).collect(),
        temperature: models.settings.temperature,
        max_tokens: models.settings.max_tokens,
        reasoning: models.settings.reasoning.map(Reasoning::as_str),
    })
}
