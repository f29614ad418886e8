//! The models of an agent: the allowed models, and the model in a place.

use serde::Serialize;

use crate::config::{AgentSpec, Config, ModelRef, ModelSettings};

/// An agent's models in the config.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentModels {
    /// The agent's own model, else the config's default.
    pub model: ModelRef,
    pub source: Source,
    /// Asked in this order when the model cannot answer.
    pub fallback: Vec<ModelRef>,
    pub settings: ModelSettings,
    /// Every model for `/model`: the agent's own, its fallbacks, and the models offered by
    /// providers.
    pub usable: Vec<ModelRef>,
}

/// The model of an agent in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub model: ModelRef,
    pub source: Source,
    /// Chosen in the place, but not usable there any more.
    pub ignored: Option<ModelRef>,
}

/// The source of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `/model` in the place.
    Override,
    /// The agent's `model`.
    Agent,
    /// `default_model`.
    Default,
}

impl AgentModels {
    pub fn of(config: &Config, spec: &AgentSpec) -> Self {
        let (model, source) = match &spec.model {
            Some(model) => (model.clone(), Source::Agent),
            None => (config.default_model.clone(), Source::Default),
        };
        let offered = config.providers.iter().flat_map(|(name, provider)| {
            provider.models.iter().map(|model| ModelRef::Of {
                provider: name.clone(),
                model: model.clone(),
            })
        });
        let all = [model.clone()]
            .into_iter()
            .chain(spec.fallback.iter().cloned())
            .chain(offered);
        let usable = without_repeats(all);
        AgentModels {
            model,
            source,
            fallback: spec.fallback.clone(),
            settings: spec.settings,
            usable,
        }
    }

    /// The model in a place, where people may have chosen `wanted`.
    pub fn choose(&self, wanted: Option<&ModelRef>) -> Chosen {
        match wanted {
            Some(model) if self.usable.contains(model) => Chosen {
                model: model.clone(),
                source: Source::Override,
                ignored: None,
            },
            ignored => Chosen {
                model: self.model.clone(),
                source: self.source,
                ignored: ignored.cloned(),
            },
        }
    }

    /// The models in order of attempts: the chosen model, the agent's own, then the fallbacks.
    pub fn lineup(&self, chosen: &Chosen) -> Vec<ModelRef> {
        let own = (!self.fallback.is_empty()).then(|| self.model.clone());
        without_repeats(
            [chosen.model.clone()]
                .into_iter()
                .chain(own)
                .chain(self.fallback.iter().cloned()),
        )
    }
}

fn without_repeats(models: impl IntoIterator<Item = ModelRef>) -> Vec<ModelRef> {
    let mut once = Vec::new();
    for model in models {
        if !once.contains(&model) {
            once.push(model);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::AgentId;

    fn model(name: &str) -> ModelRef {
        name.parse().unwrap()
    }

    fn models(own: Option<&str>, fallback: &[&str]) -> AgentModels {
        let fallback = fallback.iter().map(|name| model(name)).collect();
        let spec = AgentSpec {
            model: own.map(model),
            fallback,
            ..AgentSpec::unnamed(AgentId::main())
        };
        AgentModels::of(
            &Config {
                default_model: model("p/default"),
                ..Config::embedded()
            },
            &spec,
        )
    }

    #[test]
    fn the_place_decides_before_the_agent_and_the_agent_before_the_default() {
        let own = models(Some("p/own"), &["p/second"]);
        let check = |models: &AgentModels, wanted: Option<&str>, expected: &str, source| {
            let chosen = models.choose(wanted.map(model).as_ref());
            assert_eq!((chosen.model, chosen.source), (model(expected), source));
        };
        check(&own, Some("p/second"), "p/second", Source::Override);
        check(&own, None, "p/own", Source::Agent);
        check(&own, Some("p/gone"), "p/own", Source::Agent);
        check(&models(None, &[]), None, "p/default", Source::Default);
        assert_eq!(
            own.choose(Some(&model("p/gone"))).ignored,
            Some(model("p/gone"))
        );
    }

    #[test]
    fn a_chosen_model_has_the_agents_own_behind_it_where_there_are_fallbacks() {
        let lineup = |models: &AgentModels, wanted: &str| {
            models.lineup(&models.choose(Some(&model(wanted))))
        };
        let own = models(Some("p/own"), &["p/second", "p/third"]);
        assert_eq!(
            lineup(&own, "p/third"),
            [model("p/third"), model("p/own"), model("p/second")]
        );
        assert_eq!(
            lineup(&models(Some("p/own"), &[]), "p/own"),
            [model("p/own")]
        );
    }
}
