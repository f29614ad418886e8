//! A model that does not answer at present, as part of the truth about a place.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::texts;
use crate::config::ModelRef;
use crate::models::{ModelError, Models, Unanswered, Unavailable};
use crate::records::provider_notices;

/// The model of an agent refuses, or is out of reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Faltering {
    pub(crate) model: ModelRef,
    pub(crate) trouble: Trouble,
    /// A fallback that answers meanwhile.
    pub(crate) instead: Option<ModelRef>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trouble {
    /// Unix milliseconds.
    pub(crate) since: i64,
    pub(crate) kind: Kind,
    /// Follows a colon: `the API key for openai was rejected (401)`.
    pub(crate) cause: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Refuses,
    OutOfReach,
    /// Nobody was asked, because the key cannot be read.
    NoKey,
    /// Failed when last asked, in a way that passes by itself.
    Failed,
}

impl Faltering {
    /// Whether no model answers until somebody does something.
    pub(crate) fn is_lasting(&self) -> bool {
        self.instead.is_none() && self.trouble.kind != Kind::Failed
    }

    /// As the models of this process were found when last asked.
    pub(crate) fn now(models: &Models, lineup: &[ModelRef]) -> Option<Self> {
        Faltering::among(lineup, |model| {
            let trouble = models.trouble(model);
            let (trouble, passes) = match trouble {
                Some(trouble) => (trouble, false),
                None => (models.passing_trouble(model)?, true),
            };
            let failure = Unanswered {
                model: model.clone(),
                ..trouble.failure
            };
            Some(Trouble {
                since: trouble.since,
                kind: if passes {
                    Kind::Failed
                } else {
                    kind(&failure.error)
                },
                cause: texts::why_not(&failure, models),
            })
        })
    }

    /// As owners were told last, for verbs that run beside the gateway.
    pub(crate) fn as_told(
        connection: &Connection,
        lineup: &[ModelRef],
    ) -> rusqlite::Result<Option<Self>> {
        let mut troubles = Vec::new();
        for model in lineup {
            let told = provider_notices::trouble_of(connection, model)?;
            troubles.push(told.map(|(told, since)| Trouble {
                since,
                kind: match provider_notices::is_out_of_reach(&told) {
                    true => Kind::OutOfReach,
                    false if told.contains(" is not set") => Kind::NoKey,
                    false => Kind::Refuses,
                },
                cause: texts::as_told(&told),
            }));
        }
        let of = |model: &ModelRef| {
            let at = lineup.iter().position(|other| other == model)?;
            troubles[at].clone()
        };
        Ok(Faltering::among(lineup, of))
    }

    fn among(lineup: &[ModelRef], trouble: impl Fn(&ModelRef) -> Option<Trouble>) -> Option<Self> {
        let (model, behind) = lineup.split_first()?;
        Some(Faltering {
            model: model.clone(),
            trouble: trouble(model)?,
            instead: behind.iter().find(|next| trouble(next).is_none()).cloned(),
        })
    }
}

fn kind(error: &ModelError) -> Kind {
    match error {
        ModelError::Unreachable(_) => Kind::OutOfReach,
        ModelError::Unavailable(Unavailable::KeyMissing(_)) => Kind::NoKey,
        _ => Kind::Refuses,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_model_falters_and_the_next_sound_one_answers_instead() {
        let models: Vec<ModelRef> = ["p/a", "p/b", "q/c"]
            .map(|name| name.parse().expect("a model"))
            .into();
        let trouble = Trouble {
            since: 1,
            kind: Kind::Refuses,
            cause: "no".into(),
        };
        let check = |down: &[usize], expected: Option<Option<usize>>| {
            let found = Faltering::among(&models, |model| {
                let is_down = down.iter().any(|at| models[*at] == *model);
                is_down.then(|| trouble.clone())
            });
            let found = found.map(|found| found.instead);
            assert_eq!(found, expected.map(|at| at.map(|at| models[at].clone())));
        };
        check(&[], None);
        check(&[1], None);
        check(&[0], Some(Some(1)));
        check(&[0, 1], Some(Some(2)));
        check(&[0, 1, 2], Some(None));
    }
}
