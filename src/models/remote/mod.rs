//! Models behind an API: a client for five dialects.
//!
//! Written here, because client crates take events, error pages and tool calls of any length from a
//! server.

mod answer;
mod anthropic;
mod bounds;
mod chat;
mod classify;
mod claude;
mod events;
mod fuzz;
mod gemini;
mod json;
mod messages;
mod ollama;
mod reading;
mod request;
mod responses;
mod sentence;
mod thinking;
mod thoughts;

#[cfg(test)]
mod tests;

pub(crate) use fuzz::stream as fuzz_stream;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use reqwest::header::CONTENT_TYPE;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::{
    CallError, ModelError, ModelEvent, ModelProvider, ModelRequest, ModelStream, Unavailable,
};
use crate::config::{Provider, ProviderKind, Secret};
use crate::fail_points::{self, Passing};
use crate::{http, open_files};

use bounds::MAX_ERROR_BYTES;
use classify::{causes, of_status, of_transport, web_page};
use reading::Reading;
use thoughts::Thoughts;

/// A server that sends not a single byte for so long has forgotten us.
const STALL: Duration = Duration::from_secs(120);

/// A provider of the config.
pub(super) struct Remote {
    provider: Provider,
    client: SharedClient,
    thoughts: Thoughts,
}

impl Remote {
    pub(super) fn new(provider: Provider, client: &SharedClient) -> Self {
        Self {
            client: client.through(provider.proxy.clone()),
            provider,
            thoughts: Thoughts::default(),
        }
    }

    fn body(&self, model: &str, request: &ModelRequest) -> Result<Vec<u8>, ModelError> {
        let cache_key = self.cache_key(request);
        match self.provider.kind {
            ProviderKind::OpenAi => written(&chat::body(model, request, cache_key)),
            ProviderKind::OpenAiResponses => written(&responses::body(model, request, cache_key)),
            ProviderKind::Anthropic => written(&anthropic::body(model, request, &self.thoughts)),
            ProviderKind::Gemini => written(&gemini::body(model, request)),
            ProviderKind::Ollama => written(&ollama::body(model, request)),
        }
    }

    /// Other servers speak OpenAI's first dialect too, and some refuse an unknown field.
    fn cache_key<'a>(&self, request: &'a ModelRequest) -> Option<&'a str> {
        let is_known = self.provider.kind == ProviderKind::OpenAiResponses
            || self
                .provider
                .base_url
                .starts_with("https://api.openai.com/");
        Some(request.cache_key.as_str()).filter(|key| is_known && !key.is_empty())
    }
}

fn written(body: &impl Serialize) -> Result<Vec<u8>, ModelError> {
    serde_json::to_vec(body)
        .map_err(|_| ModelError::Broken("the request could not be made".to_owned()))
}

#[async_trait]
impl ModelProvider for Remote {
    async fn stream(
        &self,
        model: &str,
        mut request: ModelRequest,
    ) -> Result<ModelStream, CallError> {
        if let Some(why) = &self.provider.missing_key {
            return Err(ModelError::Unavailable(Unavailable::KeyMissing(why.clone())).into());
        }
        let kind = self.provider.kind;
        if kind == ProviderKind::Anthropic && self.thoughts.are_missing(&request.messages) {
            // Anthropic refuses to think on where the thoughts before are gone, after a restart or
            // another model's step.
            request.settings.reasoning = None;
        }
        let turn = self.client.turn().await;
        let asking = self
            .client
            .get()?
            .post(request::address(&self.provider, model)?);
        let asking = asking
            .headers(request::headers(&self.provider)?)
            .body(self.body(model, &request)?);
        Ok(Call {
            max_tokens: request.settings.max_tokens,
            progress: Progress::Asking(asking),
            reading: Reading::new(kind),
            thoughts: self.thoughts.clone(),
            turn: Some(turn),
            passing: None,
            key: self.provider.api_key.clone(),
        }
        .into_stream())
    }
}

/// The client of all providers of a config, except those with a proxy of their own.
#[derive(Clone)]
pub(super) struct SharedClient {
    proxy: Option<Secret>,
    /// Made for the first call.
    client: Arc<OnceLock<reqwest::Client>>,
    /// Permits for calls at the same time. Other calls wait their turn.
    calls: Arc<Semaphore>,
}

impl Default for SharedClient {
    fn default() -> Self {
        SharedClient {
            proxy: None,
            client: Arc::default(),
            calls: Arc::new(Semaphore::new(open_files::shares().model_calls)),
        }
    }
}

impl SharedClient {
    /// A client of its own for a proxy. The permits are those of all.
    fn through(&self, proxy: Option<Secret>) -> Self {
        let own = |proxy| SharedClient {
            proxy: Some(proxy),
            client: Arc::default(),
            calls: self.calls.clone(),
        };
        proxy.map_or_else(|| self.clone(), own)
    }

    async fn turn(&self) -> OwnedSemaphorePermit {
        self.calls
            .clone()
            .acquire_owned()
            .await
            .expect("the semaphore is never closed")
    }

    fn get(&self) -> Result<&reqwest::Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Redirects would carry the key to another server, in headers reqwest does not know as
        // secret.
        let builder = http::client_builder().redirect(reqwest::redirect::Policy::none());
        let builder = http::through(builder, self.proxy.as_ref());
        let client = builder.build();
        let client = client.map_err(|_| ModelError::Broken("cannot set up HTTPS".to_owned()))?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// A call to a server.
struct Call {
    /// The longest answer, as the request says.
    max_tokens: Option<u32>,
    progress: Progress,
    reading: Reading,
    thoughts: Thoughts,
    /// Given back with the connection.
    turn: Option<OwnedSemaphorePermit>,
    /// From the first byte to the last.
    passing: Option<Passing>,
    /// Never shown, wherever the server puts it.
    key: Option<Secret>,
}

/// How far a call has come.
enum Progress {
    Asking(reqwest::RequestBuilder),
    Answering(reqwest::Response),
    /// Only the end is left to be told.
    Ending(Result<ModelEvent, CallError>),
    Over,
}

impl Call {
    /// Pieces of text, then a single `Done` or error, then nothing.
    fn into_stream(self) -> ModelStream {
        stream::unfold(Box::new(self), |mut call| async {
            let event = call.next().await?;
            Some((event, call))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Result<ModelEvent, CallError>> {
        loop {
            if let Some(event) = self.reading.next_event() {
                return Some(Ok(event));
            }
            match std::mem::replace(&mut self.progress, Progress::Over) {
                Progress::Asking(asking) => {
                    self.passing = Some(fail_points::calls(fail_points::Call::Model));
                    match ask(asking, self.key.as_ref()).await {
                        Ok(response) => self.progress = Progress::Answering(response),
                        Err(error) => self.end(Err(error)),
                    }
                }
                Progress::Answering(mut response) => match self.read_on(&mut response).await {
                    Ok(()) if self.reading.is_complete() => self.finish(),
                    Ok(()) => self.progress = Progress::Answering(response),
                    Err(error) => self.end(Err(error)),
                },
                Progress::Ending(last) => return Some(last),
                Progress::Over => return None,
            }
        }
    }

    async fn read_on(&mut self, response: &mut reqwest::Response) -> Result<(), CallError> {
        let bytes = timeout(STALL, response.chunk())
            .await
            .map_err(|_| ModelError::Stalled)?;
        let bytes = bytes.map_err(|error| disconnected(&error, self.key.as_ref()))?;
        let taken = match bytes {
            Some(bytes) => self.reading.take(&bytes),
            None => self.reading.take_end(),
        };
        taken.map_err(|error| {
            let said = self.reading.failed_event();
            let key = self.key.as_ref();
            CallError {
                error: without_key(error, key),
                detail: said.and_then(|said| sentence::sentence(said, exposed(key))),
            }
        })
    }

    fn finish(&mut self) {
        let end = self
            .reading
            .finish(self.max_tokens)
            .map(|(done, thoughts)| {
                if let ModelEvent::Done { tool_calls, .. } = &done {
                    self.thoughts.keep(tool_calls, thoughts);
                }
                done
            });
        self.end(end.map_err(CallError::from));
    }

    fn end(&mut self, last: Result<ModelEvent, CallError>) {
        self.reading.tell_rest();
        self.turn = None;
        if let Some(passing) = self.passing.take() {
            passing.ended();
        }
        self.progress = Progress::Ending(last);
    }
}

async fn ask(
    asking: reqwest::RequestBuilder,
    key: Option<&Secret>,
) -> Result<reqwest::Response, CallError> {
    let response = timeout(STALL, asking.send())
        .await
        .map_err(|_| ModelError::Stalled)?;
    let response = response.map_err(|error| disconnected(&error, key))?;
    if !response.status().is_success() {
        return Err(refusal(response, key).await);
    }
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    if content_type.is_some_and(|content_type| content_type.starts_with("text/html")) {
        return Err(web_page().into());
    }
    Ok(response)
}

/// The beginning of an error page tells enough, and so does the status where the page does not
/// come.
async fn refusal(mut response: reqwest::Response, key: Option<&Secret>) -> CallError {
    let mut body = Vec::new();
    let reading = async {
        while body.len() < MAX_ERROR_BYTES
            && let Ok(Some(bytes)) = response.chunk().await
        {
            body.extend_from_slice(&bytes[..bytes.len().min(MAX_ERROR_BYTES - body.len())]);
        }
    };
    let _ = timeout(STALL, reading).await;
    let body = String::from_utf8_lossy(&body);
    let error = of_status(response.status(), response.headers(), &body);
    CallError {
        error: without_key(error, key),
        detail: sentence::sentence(&body, exposed(key)),
    }
}

fn disconnected(error: &reqwest::Error, key: Option<&Secret>) -> CallError {
    CallError {
        error: of_transport(error),
        detail: sentence::cleaned(&causes(error), exposed(key)),
    }
}

/// A server cannot reject a key that it did not get.
fn without_key(error: ModelError, key: Option<&Secret>) -> ModelError {
    match error {
        ModelError::Unavailable(Unavailable::KeyRejected(status)) if key.is_none() => {
            ModelError::Unavailable(Unavailable::KeyWanted(status))
        }
        error => error,
    }
}

fn exposed(key: Option<&Secret>) -> Option<&str> {
    key.map(Secret::expose)
}
