//! Providers that refuse or cannot be reached, and those that answer again, so that owners can be
//! told once about each change. In memory; the store knows what was told before a restart.
//!
//! Trouble that passes by itself, such as a crowd or a limit, is remembered too, but is no news.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{ModelError, Unanswered, Unavailable};
use crate::clock::now_ms;
use crate::config::ModelRef;

/// Providers and models kept in mind. A config names far fewer.
const MOST_SUBJECTS: usize = 1_000;

/// After so long without a question to a model, its last trouble tells nothing about the present.
const PASSING_MS: i64 = 60 * 60 * 1000;

/// What is known about providers. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Health {
    // A plain lock: every section is a look-up or an insert, and none awaits.
    known: Arc<Mutex<BTreeMap<String, Known>>>,
    /// The last trouble of models that passes by itself, until the model answers. A plain lock, as
    /// above.
    passing: Arc<Mutex<BTreeMap<String, Trouble>>>,
}

struct Known {
    trouble: Option<Trouble>,
    is_told: bool,
}

/// A provider, or one of its models, that has refused or was out of reach when last asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub failure: Unanswered,
    /// The first failure after the last answer, in Unix milliseconds.
    pub since: i64,
}

/// The state of a provider, or of one of its models, that may be news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// `openai`, or `openai/gpt-9` if only this model is refused.
    pub subject: String,
    /// None: a model has answered.
    pub trouble: Option<Unanswered>,
}

impl Health {
    pub(super) fn failed(&self, failure: &Unanswered) {
        let Some(subject) = subject(failure) else {
            self.note_passing(failure);
            return;
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.get(&subject).and_then(|known| known.trouble.as_ref());
        let is_known = before.is_some_and(|before| before.failure.error == failure.error);
        if !is_known && (known.len() < MOST_SUBJECTS || known.contains_key(&subject)) {
            let trouble = Some(Trouble {
                failure: failure.clone(),
                since: before.map_or_else(now_ms, |before| before.since),
            });
            known.insert(
                subject,
                Known {
                    trouble,
                    is_told: false,
                },
            );
        }
    }

    /// Set while a model does not answer, by itself or with its whole provider.
    pub(super) fn trouble(&self, model: &ModelRef) -> Option<Trouble> {
        let ModelRef::Of { provider, .. } = model else {
            return None;
        };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        [provider.clone(), model.to_string()]
            .iter()
            .find_map(|subject| known.get(subject)?.trouble.clone())
    }

    /// The trouble of a model when it was last asked, if it is of a kind that passes by itself.
    pub(super) fn passing(&self, model: &ModelRef) -> Option<Trouble> {
        let passing = self.passing.lock().unwrap_or_else(PoisonError::into_inner);
        let trouble = passing.get(&model.to_string())?;
        (now_ms()
            < trouble
                .since
                .saturating_add(lasts_ms(&trouble.failure.error)))
        .then(|| trouble.clone())
    }

    fn note_passing(&self, failure: &Unanswered) {
        if !is_of_the_server(&failure.error) {
            return;
        }
        let mut passing = self.passing.lock().unwrap_or_else(PoisonError::into_inner);
        let name = failure.model.to_string();
        if passing.len() < MOST_SUBJECTS || passing.contains_key(&name) {
            let (failure, since) = (failure.clone(), now_ms());
            passing.insert(name, Trouble { failure, since });
        }
    }

    /// The first answer of a process counts too: a trouble may have been told by an earlier one.
    pub(super) fn answered(&self, model: &ModelRef) {
        let ModelRef::Of { provider, .. } = model else {
            return;
        };
        let mut passing = self.passing.lock().unwrap_or_else(PoisonError::into_inner);
        passing.remove(&model.to_string());
        drop(passing);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for subject in [provider.clone(), model.to_string()] {
            let is_known = known
                .get(&subject)
                .is_some_and(|known| known.trouble.is_none());
            if !is_known && (known.len() < MOST_SUBJECTS || known.contains_key(&subject)) {
                known.insert(
                    subject,
                    Known {
                        trouble: None,
                        is_told: false,
                    },
                );
            }
        }
    }

    pub(super) fn news(&self) -> Vec<News> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let untold = known.iter().filter(|(_, known)| !known.is_told);
        untold
            .map(|(subject, known)| News {
                subject: subject.clone(),
                trouble: failure_of(known).cloned(),
            })
            .collect()
    }

    /// Takes news off the list, unless they have changed meanwhile.
    pub(super) fn told(&self, news: &News) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get_mut(&news.subject)
            && failure_of(known) == news.trouble.as_ref()
        {
            known.is_told = true;
        }
    }
}

fn failure_of(known: &Known) -> Option<&Unanswered> {
    known.trouble.as_ref().map(|trouble| &trouble.failure)
}

/// Whom a failure says something about. Trouble that passes by itself is about nobody.
fn subject(failure: &Unanswered) -> Option<String> {
    let ModelRef::Of { provider, .. } = &failure.model else {
        return None;
    };
    match &failure.error {
        ModelError::Unavailable(Unavailable::NoSuchModel(_) | Unavailable::NotAllowed(_)) => {
            Some(failure.model.to_string())
        }
        ModelError::Unavailable(_) | ModelError::Unreachable(_) => Some(provider.clone()),
        _ => None,
    }
}

/// Whether trouble that passes says something about the server, and not only about one request.
fn is_of_the_server(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::RateLimited { .. }
            | ModelError::Overloaded
            | ModelError::Stalled
            | ModelError::Broken(_)
    )
}

/// A limit ends at its time.
fn lasts_ms(error: &ModelError) -> i64 {
    match error {
        ModelError::RateLimited {
            retry_after: Some(wait),
        } => i64::try_from(wait.as_millis()).unwrap_or(PASSING_MS),
        _ => PASSING_MS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(error: Unavailable) -> Unanswered {
        Unanswered {
            model: "openai/gpt".parse().expect("a model"),
            error: ModelError::Unavailable(error),
            detail: None,
        }
    }

    fn told(health: &Health) -> Vec<(String, bool)> {
        let news = health.news();
        news.iter().for_each(|news| health.told(news));
        news.into_iter()
            .map(|news| (news.subject, news.trouble.is_some()))
            .collect()
    }

    #[test]
    fn a_change_is_news_once() {
        let health = Health::default();
        health.failed(&failure(Unavailable::KeyRejected(401)));
        health.failed(&failure(Unavailable::KeyRejected(401)));
        assert_eq!(told(&health), [("openai".to_owned(), true)]);
        health.failed(&failure(Unavailable::KeyRejected(401)));
        assert_eq!(told(&health), []);
        health.failed(&failure(Unavailable::NoSuchModel(404)));
        assert_eq!(told(&health), [("openai/gpt".to_owned(), true)]);
        health.answered(&"openai/gpt".parse().expect("a model"));
        let both = [
            ("openai".to_owned(), false),
            ("openai/gpt".to_owned(), false),
        ];
        assert_eq!(told(&health), both);
        health.answered(&"openai/gpt".parse().expect("a model"));
        assert_eq!(told(&health), []);
    }

    #[test]
    fn a_model_is_in_trouble_until_it_answers() {
        let (health, model) = (Health::default(), "openai/gpt".parse().expect("a model"));
        assert_eq!(health.trouble(&model), None);
        health.failed(&failure(Unavailable::KeyRejected(401)));
        let first = health.trouble(&model).expect("the provider refuses");
        assert!((now_ms() - first.since).abs() < 60_000);
        health.failed(&failure(Unavailable::NoCredit(402)));
        let second = health.trouble(&model).expect("the provider refuses");
        assert_eq!(second.since, first.since, "the trouble goes on");
        assert_eq!(
            second.failure.error,
            ModelError::Unavailable(Unavailable::NoCredit(402))
        );
        health.answered(&model);
        assert_eq!(health.trouble(&model), None);
        health.failed(&failure(Unavailable::NoSuchModel(404)));
        assert!(health.trouble(&model).is_some());
        assert_eq!(health.trouble(&"openai/o".parse().expect("a model")), None);
    }

    #[test]
    fn trouble_that_passes_is_no_news() {
        let health = Health::default();
        health.failed(&Unanswered {
            error: ModelError::Overloaded,
            ..failure(Unavailable::WebPage)
        });
        health.answered(&ModelRef::Demo);
        assert_eq!(health.news(), []);
    }

    #[test]
    fn trouble_that_passes_is_known_until_the_model_answers() {
        let (health, model) = (Health::default(), "openai/gpt".parse().expect("a model"));
        let fails = |error: ModelError| {
            health.failed(&Unanswered {
                error,
                ..failure(Unavailable::WebPage)
            });
            health.passing(&model).map(|trouble| trouble.failure.error)
        };
        let limited = |seconds: u64| ModelError::RateLimited {
            retry_after: Some(std::time::Duration::from_secs(seconds)),
        };
        assert_eq!(fails(ModelError::ContextTooLong), None, "about one request");
        assert_eq!(fails(ModelError::Overloaded), Some(ModelError::Overloaded));
        assert_eq!(fails(limited(600)), Some(limited(600)));
        assert_eq!(fails(limited(0)), None, "the limit has ended");
        fails(ModelError::Stalled);
        health.answered(&model);
        assert_eq!(health.passing(&model), None);
    }
}
