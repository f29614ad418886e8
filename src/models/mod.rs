//! Model providers: one request in, a stream of events out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde_json::Value;

use crate::config::{self, ModelRef, ModelSettings, Price, Provider};

mod abilities;
mod content;
mod fallback;
mod offline;
mod remote;

use fallback::Resting;
use offline::Offline;
use remote::{Remote, SharedClient};

pub use abilities::estimate_tokens;
pub use content::{Content, Image, ImageKind};
pub use fallback::{Attempts, Failure, Lineup};

/// Every model an agent can be given. Cheap to make: nothing is connected before the first call.
#[derive(Clone)]
pub struct Models {
    providers: Arc<BTreeMap<String, Arc<dyn ModelProvider>>>,
    offline: Arc<dyn ModelProvider>,
    /// Providers as the config has them.
    known: Arc<BTreeMap<String, Provider>>,
    resting: Resting,
}

impl Models {
    pub fn new(providers: &BTreeMap<String, Provider>) -> Self {
        let client = SharedClient::default();
        let remote = |provider: &Provider| {
            Arc::new(Remote::new(provider.clone(), &client)) as Arc<dyn ModelProvider>
        };
        let known = Arc::new(providers.clone());
        let providers = providers
            .iter()
            .map(|(name, provider)| (name.clone(), remote(provider)))
            .collect();
        Self {
            providers: Arc::new(providers),
            offline: Arc::new(Offline),
            known,
            resting: Resting::default(),
        }
    }

    /// The price of a model, as far as the config says.
    pub fn price(&self, model: &ModelRef) -> Option<Price> {
        config::price(&self.known, model)
    }

    /// A model without eyes gets the words alone: they name the pictures.
    pub async fn stream(
        &self,
        model: &ModelRef,
        request: ModelRequest,
    ) -> Result<ModelStream, ModelError> {
        let request = if self.sees(model) {
            request
        } else {
            request.without_images()
        };
        match model {
            ModelRef::Offline => self.offline.stream("", request).await,
            ModelRef::Of { provider, model } => {
                self.provider(provider)?.stream(model, request).await
            }
        }
    }

    /// Whether a model is shown pictures.
    pub fn sees(&self, model: &ModelRef) -> bool {
        abilities::sees(self.config_of(model), model)
    }

    /// How many tokens a model reads at once, its answer included.
    pub fn window(&self, model: &ModelRef) -> u32 {
        abilities::window(self.config_of(model), model)
    }

    /// How much longer a model is left alone after a failure.
    pub fn rests_for(&self, model: &ModelRef) -> Option<Duration> {
        self.resting.left(model)
    }

    fn config_of(&self, model: &ModelRef) -> Option<&Provider> {
        match model {
            ModelRef::Offline => None,
            ModelRef::Of { provider, .. } => self.known.get(provider),
        }
    }

    fn provider(&self, name: &str) -> Result<&dyn ModelProvider, ModelError> {
        let provider = self.providers.get(name).map(Arc::as_ref);
        provider.ok_or_else(|| ModelError::Unavailable(format!("no provider is called {name}")))
    }
}

/// A model that answers. Dropping the stream cancels the call.
#[async_trait]
pub trait ModelProvider: Send + Sync + 'static {
    /// `model` is its name at the provider.
    async fn stream(&self, model: &str, request: ModelRequest) -> Result<ModelStream, ModelError>;
}

/// Ends with exactly one `Done` or one error; a stream that just ends counts as cut off.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// One call to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub system: String,
    pub messages: Vec<ModelMessage>,
    pub tools: Vec<ToolSpec>,
    pub settings: ModelSettings,
    /// See [`Lineup::cache_key`]; empty for none.
    pub cache_key: String,
}

impl ModelRequest {
    fn without_images(mut self) -> Self {
        for message in &mut self.messages {
            if let ModelMessage::User(content) = message {
                content.images.clear();
            }
        }
        self
    }
}

/// The conversation as the model reads along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelMessage {
    User(Content),
    Assistant {
        text: String,
        tool_calls: Vec<ToolCall>,
    },
    ToolResult {
        call_id: String,
        content: String,
    },
}

impl ModelMessage {
    pub fn user(content: impl Into<Content>) -> Self {
        ModelMessage::User(content.into())
    }
}

/// A tool on offer to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// A JSON Schema object.
    pub parameters: Value,
}

/// A model's wish to run a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelEvent {
    /// The next piece of text.
    Text(String),
    /// The model is at work on unseen things: thoughts, or the arguments of a tool call.
    Working,
    /// There is no more. The calls come in the model's order.
    Done {
        tool_calls: Vec<ToolCall>,
        usage: Usage,
        /// Set when the model had more to say. A call with arguments that are no object was cut
        /// then.
        cut: Option<Cut>,
    },
}

/// Where a model had to stop in the middle of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// At the most tokens of an answer, thoughts included. The number is there if the config or the
    /// provider tells.
    AtTokens(Option<u64>),
    /// The model can read and write no more.
    WindowFull,
}

/// Follows "cut off".
impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::AtTokens(Some(tokens)) => write!(f, "at {tokens} tokens"),
            Cut::AtTokens(None) => write!(f, "at the longest answer my model gives"),
            Cut::WindowFull => write!(f, "because the conversation fills my model's window"),
        }
    }
}

/// Tokens as the provider counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Part of the input that the provider had in its cache.
    pub cached_tokens: u64,
}

impl Usage {
    pub fn add(&mut self, more: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(more.cached_tokens);
    }

    /// The rest when a part is taken away.
    pub fn without(self, part: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_sub(part.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(part.output_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(part.cached_tokens),
        }
    }
}

/// The reason of a failure, as far as callers act on the difference. Texts are safe to log: no
/// body, no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("the model provider limits us{}", match .retry_after { Some(delay) => format!("; free again in {} s", delay.as_secs()), None => String::new() })]
    RateLimited { retry_after: Option<Duration> },
    #[error("the model provider is overloaded")]
    Overloaded,
    #[error("the conversation is longer than the model can read")]
    ContextTooLong,
    /// The provider will not answer this request: content policy, or a part of the request that the
    /// model does not take.
    #[error("the model provider refused: {0}")]
    Refused(String),
    /// The provider will not answer any request to this model: wrong key, no credit, no such model.
    #[error("the model provider refused: {0}")]
    Unavailable(String),
    /// Not a byte came for long.
    #[error("the model server did not answer in time")]
    Stalled,
    /// More came than an answer may have.
    #[error("the model server sent {0}; it was stopped")]
    TooMuch(String),
    /// The answer stopped in the middle.
    #[error("the model's answer was cut off")]
    CutOff,
    #[error("the model call failed: {0}")]
    Broken(String),
}
