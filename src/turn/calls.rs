//! The record of a turn's model calls: times, tokens and failures, and none of the words.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::budget;
use crate::clock::now_ms;
use crate::config::{ModelRef, Price};
use crate::models::{ModelError, Usage};

/// A call of a model, answered or not. Its names are short, because each turn has a row with them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ModelCall {
    /// Unix milliseconds.
    pub(crate) at: i64,
    #[serde(rename = "m")]
    pub(crate) model: String,
    /// From the call to the model's first sign.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub(crate) first_ms: Option<u64>,
    #[serde(rename = "t")]
    pub(crate) took_ms: u64,
    #[serde(rename = "i", default, skip_serializing_if = "is_zero")]
    pub(crate) input_tokens: u64,
    #[serde(rename = "o", default, skip_serializing_if = "is_zero")]
    pub(crate) output_tokens: u64,
    /// Part of the input.
    #[serde(rename = "c", default, skip_serializing_if = "is_zero")]
    pub(crate) cached_tokens: u64,
    /// In millionths of the currency; absent for a model without a price.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost_micros: Option<u64>,
    /// Why there was no answer.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The error of a call that was dropped in the middle.
const CUT_SHORT: &str = "stopped in the middle";

/// Calls of a turn that no row has yet.
#[derive(Default)]
pub(super) struct CallLog(Mutex<Vec<ModelCall>>);

impl CallLog {
    pub(super) fn begin(&self, model: &ModelRef) -> OpenCall<'_> {
        OpenCall {
            log: self,
            began: Instant::now(),
            call: ModelCall {
                at: now_ms(),
                model: model.to_string(),
                error: Some(CUT_SHORT.to_owned()),
                ..ModelCall::default()
            },
        }
    }

    pub(super) fn all(&self) -> Vec<ModelCall> {
        self.lock().clone()
    }

    pub(super) fn take(&self) -> Vec<ModelCall> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<ModelCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call under way. It is recorded when it is dropped, so that a stopped turn has its last call.
pub(super) struct OpenCall<'a> {
    log: &'a CallLog,
    began: Instant,
    call: ModelCall,
}

impl OpenCall<'_> {
    /// The model gave a sign.
    pub(super) fn hear(&mut self) {
        let passed = self.began.elapsed();
        self.call.first_ms.get_or_insert_with(|| millis(passed));
    }

    pub(super) fn answered(mut self, usage: Usage, price: Option<Price>) {
        self.call.error = None;
        self.call.input_tokens = usage.input_tokens;
        self.call.output_tokens = usage.output_tokens;
        self.call.cached_tokens = usage.cached_tokens;
        self.call.cost_micros = price.map(|price| budget::cost(&price, usage).0);
    }

    pub(super) fn failed(mut self, error: &ModelError) {
        self.call.error = Some(error.to_string());
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let took_ms = millis(self.began.elapsed());
        let call = std::mem::take(&mut self.call);
        self.log.lock().push(ModelCall { took_ms, ..call });
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Money;

    #[tokio::test(start_paused = true)]
    async fn a_call_is_recorded_however_it_ends() {
        let log = CallLog::default();
        let mut call = log.begin(&ModelRef::Demo);
        tokio::time::advance(Duration::from_millis(40)).await;
        call.hear();
        tokio::time::advance(Duration::from_millis(60)).await;
        call.hear();
        let usage = Usage {
            input_tokens: 1_000,
            output_tokens: 10,
            cached_tokens: 400,
        };
        let price = Price {
            input: Money(2_000_000),
            output: Money(0),
            cached: Money(0),
        };
        call.answered(usage, Some(price));
        drop(log.begin(&ModelRef::Demo));
        let calls = log.take();
        let first = &calls[0];
        assert_eq!((first.first_ms, first.took_ms), (Some(40), 100));
        assert_eq!((first.cost_micros, &first.error), (Some(1_200), &None));
        assert_eq!(calls[1].error.as_deref(), Some(CUT_SHORT));
        assert!(log.take().is_empty(), "written down once");
    }
}
