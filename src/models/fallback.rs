//! Chooses the model to ask next: the same again after a pause, the next of the lineup, or none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::quotes::without_quotes;
use super::{CallError, ModelError, ModelMessage, Models, Unanswered};
use crate::config::{ModelRef, ModelSettings};

/// The models of an agent, with their settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lineup {
    /// The first is asked first, the others when the first cannot answer.
    pub models: Vec<ModelRef>,
    pub settings: ModelSettings,
    /// The same for all calls with the same beginning, so that the provider finds the kept
    /// beginning.
    pub cache_key: String,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    error: CallError,
    /// Text already shown cannot be taken back, so no model is asked again.
    said_something: bool,
}

impl Failure {
    /// Words of the request are taken out of what the provider said.
    pub fn new(
        error: CallError,
        said_something: bool,
        system: &str,
        messages: &[ModelMessage],
    ) -> Self {
        let CallError { error, detail } = error;
        let detail = match error {
            // The network knows nothing of the request.
            ModelError::Unreachable(_) => detail,
            _ => detail.and_then(|said| without_quotes(&said, system, messages)),
        };
        Failure {
            error: CallError { error, detail },
            said_something,
        }
    }
}

/// Tries after the first for a call without any text so far.
const MAX_RETRIES: u32 = 2;
/// The wait before the first retry; doubles with each.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// A longer pause is told to the person instead of waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The same where another model can answer meanwhile.
const LONGEST_WAIT_BEFORE_NEXT: Duration = Duration::from_secs(5);

/// How long a model is left alone after a failure, by the kind of failure.
const REST_AFTER_TROUBLE: Duration = Duration::from_secs(60);
const REST_AFTER_REFUSAL: Duration = Duration::from_secs(5 * 60);
const LONGEST_REST: Duration = Duration::from_secs(60 * 60);
/// Models left alone at the same time. A config names far fewer.
const MOST_RESTING: usize = 1_000;

/// Models left alone for a while, and until when. Forgotten with the process.
#[derive(Clone, Default)]
pub(super) struct Resting {
    // A plain lock: every section is a look-up or an insert, and none awaits.
    until: Arc<Mutex<HashMap<ModelRef, Instant>>>,
}

impl Resting {
    /// How much longer a model is left alone.
    pub(super) fn left(&self, model: &ModelRef) -> Option<Duration> {
        let until = self
            .until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(model)
            .copied()?;
        Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
    }

    fn begin(&self, model: &ModelRef, rest: Duration) {
        let now = Instant::now();
        let mut resting = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        resting.retain(|_, until| *until > now);
        if resting.len() < MOST_RESTING {
            resting.insert(model.clone(), now + rest);
        }
    }

    fn end(&self, model: &ModelRef) {
        self.until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(model);
    }
}

/// The way of a call through a lineup. Ask [`Attempts::model`]; after a failure,
/// [`Attempts::after`] says how to go on.
pub struct Attempts<'a> {
    models: &'a Models,
    /// Models still to be asked; the first is asked now.
    left: Vec<ModelRef>,
    /// How many of the last failed a short while ago, and are asked only because no other can
    /// answer.
    last_resorts: usize,
    retries: u32,
    backoff: Duration,
    /// The first model's error is told to the person when all fail.
    first_failure: Option<Unanswered>,
}

impl Models {
    /// Resting models come after all others.
    pub fn attempts(&self, lineup: &Lineup) -> Attempts<'_> {
        let is_awake = |model: &ModelRef| self.resting.left(model).is_none();
        let (mut left, resting): (Vec<ModelRef>, Vec<ModelRef>) =
            lineup.models.iter().cloned().partition(is_awake);
        let last_resorts = if left.is_empty() { 0 } else { resting.len() };
        left.extend(resting);
        if let (Some(first), Some(chosen)) = (lineup.models.first(), left.first())
            && first != chosen
        {
            tracing::info!(model = %first, "the model rests after a failure; asking {chosen}");
        }
        Attempts {
            models: self,
            left,
            last_resorts,
            retries: 0,
            backoff: FIRST_BACKOFF,
            first_failure: None,
        }
    }
}

impl Attempts<'_> {
    /// The model to ask now.
    pub fn model(&self) -> ModelRef {
        self.left.first().cloned().unwrap_or_default()
    }

    /// A model with an answer needs no rest.
    pub fn succeeded(&self) {
        let model = self.model();
        self.models.resting.end(&model);
        self.models.health.answered(&model);
    }

    /// Returns when a model can be asked again, or the error when no model is left.
    pub async fn after(&mut self, failure: Failure) -> Result<(), Unanswered> {
        let Failure {
            error: CallError { error, detail },
            said_something,
        } = failure;
        let model = self.model();
        let (host, said) = (self.models.host(&model), detail.as_deref());
        if said_something {
            tracing::warn!(%model, host, said, "{error}, in the middle of an answer");
            let error = cut_short(error);
            return Err(Unanswered {
                model,
                error,
                detail,
            });
        }
        if let Some(wait) = self.pause(&error) {
            tracing::warn!(%model, host, said, "{error}; trying again in {} s", wait.as_secs());
            tokio::time::sleep(wait).await;
            self.retries += 1;
            self.backoff *= 2;
            return Ok(());
        }
        if let Some(rest) = rest_after(&error) {
            self.models.resting.begin(&model, rest);
        }
        self.move_on(Unanswered {
            model,
            error,
            detail,
        })
    }

    /// A server that cannot be reached is trouble only if no other has answered.
    fn move_on(&mut self, failure: Unanswered) -> Result<(), Unanswered> {
        let health = &self.models.health;
        let Some(next) = self.left.get(1) else {
            health.failed(&failure);
            let first = self.first_failure.take();
            first.iter().for_each(|first| health.failed(first));
            return Err(first.unwrap_or(failure));
        };
        let Unanswered {
            model,
            error,
            detail,
        } = &failure;
        tracing::warn!(%model, host = self.models.host(model), said = detail.as_deref(), "{error}; going on with {next}");
        if !matches!(error, ModelError::Unreachable(_)) {
            health.failed(&failure);
        }
        self.left.remove(0);
        self.first_failure.get_or_insert(failure);
        (self.retries, self.backoff) = (0, FIRST_BACKOFF);
        Ok(())
    }

    /// Only after trouble that may pass by itself, and only for a wait that a person would sit
    /// through.
    fn pause(&self, error: &ModelError) -> Option<Duration> {
        let has_next = self.left.len() > self.last_resorts + 1;
        let is_last_resort = self.left.len() <= self.last_resorts;
        let longest = if has_next {
            LONGEST_WAIT_BEFORE_NEXT
        } else {
            LONGEST_WAIT
        };
        let wait = match error {
            ModelError::RateLimited { retry_after } => retry_after.unwrap_or(self.backoff),
            ModelError::Overloaded
            | ModelError::CutOff
            | ModelError::Unreachable(_)
            | ModelError::Broken(_) => self.backoff,
            // A model that was silent for minutes is asked again only if there is no other.
            ModelError::Stalled if has_next || self.retries > 0 => return None,
            ModelError::Stalled => self.backoff,
            // The next answer would be as long.
            ModelError::TooMuch(_) => return None,
            ModelError::ContextTooLong | ModelError::Refused(_) | ModelError::Unavailable(_) => {
                return None;
            }
        };
        (self.retries < MAX_RETRIES && wait <= longest && !is_last_resort)
            .then(|| wait + jitter(self.backoff))
    }
}

/// Half an answer is there, so the person must know about the missing rest.
fn cut_short(error: ModelError) -> ModelError {
    match error {
        ModelError::Stalled | ModelError::Unreachable(_) | ModelError::Broken(_) => {
            ModelError::CutOff
        }
        other => other,
    }
}

/// `None` after errors without meaning for the model's next call.
fn rest_after(error: &ModelError) -> Option<Duration> {
    match error {
        ModelError::RateLimited { retry_after } => {
            Some(retry_after.unwrap_or(REST_AFTER_TROUBLE).min(LONGEST_REST))
        }
        ModelError::Overloaded
        | ModelError::Stalled
        | ModelError::Unreachable(_)
        | ModelError::Broken(_) => Some(REST_AFTER_TROUBLE),
        ModelError::Unavailable(_) => Some(REST_AFTER_REFUSAL),
        ModelError::CutOff
        | ModelError::TooMuch(_)
        | ModelError::ContextTooLong
        | ModelError::Refused(_) => None,
    }
}

/// Up to a quarter more, so that turns do not come back together after a common failure.
fn jitter(backoff: Duration) -> Duration {
    // Without chance the pause is only a little too regular.
    let chance = getrandom::u32().unwrap_or(0);
    backoff.mul_f64(f64::from(chance) / f64::from(u32::MAX) / 4.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::models::Unavailable;

    fn model(name: &str) -> ModelRef {
        ModelRef::Of {
            provider: "p".into(),
            model: name.into(),
        }
    }

    fn lineup(names: &[&str]) -> Lineup {
        Lineup {
            models: names.iter().map(|name| model(name)).collect(),
            ..Lineup::default()
        }
    }

    fn silent(error: ModelError) -> Failure {
        Failure::new(error.into(), false, "", &[])
    }

    fn told(name: &str, error: ModelError) -> Unanswered {
        Unanswered {
            model: model(name),
            error,
            detail: None,
        }
    }

    fn models() -> Models {
        Models::new(&BTreeMap::new())
    }

    fn limited(seconds: u64) -> ModelError {
        ModelError::RateLimited {
            retry_after: Some(Duration::from_secs(seconds)),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_overloaded_model_is_asked_three_times_and_then_left_alone() {
        let (models, lineup) = (models(), lineup(&["a", "b"]));
        let mut attempts = models.attempts(&lineup);
        let began = Instant::now();
        for asked in ["a", "a", "a", "b"] {
            assert_eq!(attempts.model(), model(asked));
            attempts
                .after(silent(ModelError::Overloaded))
                .await
                .expect("somebody is left");
        }
        assert!(
            (3..6).contains(&began.elapsed().as_secs()),
            "{:?}",
            began.elapsed()
        );
        assert_eq!(
            models.attempts(&lineup).model(),
            model("b"),
            "the next call does not knock at the first"
        );
        tokio::time::advance(REST_AFTER_TROUBLE).await;
        assert_eq!(models.attempts(&lineup).model(), model("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_kept_in_full_when_it_is_short() {
        let (models, alone) = (models(), lineup(&["a"]));
        let mut attempts = models.attempts(&alone);
        let began = Instant::now();
        attempts
            .after(silent(limited(20)))
            .await
            .expect("it is worth waiting");
        assert!(began.elapsed() >= Duration::from_secs(20));
        assert_eq!(
            attempts.after(silent(limited(31))).await,
            Err(told("a", limited(31))),
            "too long for a person"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_wait_goes_to_the_next_and_rests_as_long() {
        let (models, lineup) = (models(), lineup(&["a", "b"]));
        let mut attempts = models.attempts(&lineup);
        let began = Instant::now();
        attempts
            .after(silent(limited(600)))
            .await
            .expect("there is another");
        assert_eq!(
            (attempts.model(), began.elapsed()),
            (model("b"), Duration::ZERO)
        );
        assert_eq!(
            models.resting.left(&model("a")),
            Some(Duration::from_secs(600))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_cannot_serve_is_asked_once() {
        let (models, lineup) = (models(), lineup(&["a", "b"]));
        let mut attempts = models.attempts(&lineup);
        let gone = ModelError::Unavailable(Unavailable::NoSuchModel(404));
        attempts
            .after(silent(gone.clone()))
            .await
            .expect("there is another");
        assert_eq!(attempts.model(), model("b"));
        let refused = ModelError::Refused("no".into());
        assert_eq!(
            attempts.after(silent(refused)).await,
            Err(told("a", gone)),
            "the first model's error is told"
        );
        assert_eq!(
            models.resting.left(&model("b")),
            None,
            "one request says nothing about the next"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_takes_over_in_the_middle_of_a_sentence() {
        let (models, lineup) = (models(), lineup(&["a", "b"]));
        let failure = Failure::new(ModelError::CutOff.into(), true, "", &[]);
        assert_eq!(
            models.attempts(&lineup).after(failure).await,
            Err(told("a", ModelError::CutOff))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_one_is_not_waited_for_twice_when_there_is_another() {
        let (models, both) = (models(), lineup(&["a", "b"]));
        let mut attempts = models.attempts(&both);
        attempts
            .after(silent(ModelError::Stalled))
            .await
            .expect("there is another");
        assert_eq!(attempts.model(), model("b"));
        attempts
            .after(silent(ModelError::Stalled))
            .await
            .expect("once more, because it is the last");
        assert_eq!(
            attempts.after(silent(ModelError::Stalled)).await,
            Err(told("a", ModelError::Stalled))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_rest_all_are_asked_and_an_answer_ends_the_rest() {
        let (models, lineup) = (models(), lineup(&["a", "b"]));
        models.resting.begin(&model("a"), REST_AFTER_REFUSAL);
        models.resting.begin(&model("b"), REST_AFTER_REFUSAL);
        let attempts = models.attempts(&lineup);
        assert_eq!(attempts.model(), model("a"));
        attempts.succeeded();
        assert_eq!(models.attempts(&lineup).left, [model("a"), model("b")]);
        models.resting.begin(&model("a"), REST_AFTER_REFUSAL);
        models.resting.end(&model("b"));
        let mut attempts = models.attempts(&lineup);
        assert_eq!(attempts.left, [model("b"), model("a")]);
        attempts
            .after(silent(ModelError::Unavailable(Unavailable::WebPage)))
            .await
            .expect("a last resort");
        let gone = Err(told("b", ModelError::Unavailable(Unavailable::WebPage)));
        assert_eq!(
            attempts.after(silent(ModelError::Overloaded)).await,
            gone,
            "which is asked once"
        );
    }
}
