//! Model providers: one request in, a stream of events out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::config::{self, ModelRef, ModelSettings, Price, Provider};
use crate::domain::nearest;

mod abilities;
mod content;
mod demo;
mod error;
mod fallback;
mod health;
pub(crate) mod listing;
mod quotes;
mod remote;

use demo::Demo;
use fallback::Resting;
use health::Health;
use remote::{Remote, SharedClient};

pub use abilities::estimate_tokens;
pub use content::{Content, Image, ImageKind};
pub use error::{CallError, ModelError, Unanswered, Unavailable, Unreachable};
pub use fallback::{Attempts, Failure, Lineup};
pub use health::{News, Trouble};
pub(crate) use remote::fuzz_stream;

/// Every model an agent can be given. Cheap to make: nothing is connected before the first call.
#[derive(Clone)]
pub struct Models {
    providers: Arc<BTreeMap<String, Arc<dyn ModelProvider>>>,
    demo: Arc<dyn ModelProvider>,
    /// Providers as the config has them.
    known: Arc<BTreeMap<String, Provider>>,
    resting: Resting,
    health: Health,
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
            demo: Arc::new(Demo),
            known,
            resting: Resting::default(),
            health: Health::default(),
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
    ) -> Result<ModelStream, CallError> {
        let request = if self.sees(model) {
            request
        } else {
            request.without_images()
        };
        match model {
            ModelRef::Demo => self.demo.stream("", request).await,
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

    /// Set while a model does not answer.
    pub fn trouble(&self, model: &ModelRef) -> Option<Trouble> {
        self.health.trouble(model)
    }

    /// Set when a model failed as last asked, in a way that passes by itself.
    pub fn passing_trouble(&self, model: &ModelRef) -> Option<Trouble> {
        self.health.passing(model)
    }

    fn config_of(&self, model: &ModelRef) -> Option<&Provider> {
        match model {
            ModelRef::Demo => None,
            ModelRef::Of { provider, .. } => self.known.get(provider),
        }
    }

    fn provider(&self, name: &str) -> Result<&dyn ModelProvider, ModelError> {
        let provider = self.providers.get(name).map(Arc::as_ref);
        provider.ok_or(ModelError::Unavailable(Unavailable::NoProvider))
    }

    /// The provider of a model, as the config has it.
    pub fn provider_of(&self, model: &ModelRef) -> Option<&Provider> {
        self.config_of(model)
    }

    /// Host and port of a model's server. An address may have a password in it, so only this part
    /// is shown.
    pub fn host(&self, model: &ModelRef) -> Option<String> {
        let address = reqwest::Url::parse(&self.config_of(model)?.base_url).ok()?;
        let host = address.host_str()?.to_owned();
        Some(match address.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        })
    }

    /// The known model of the same provider with the most similar name.
    pub fn similar(&self, model: &ModelRef) -> Option<String> {
        let ModelRef::Of { model: name, .. } = model else {
            return None;
        };
        let provider = self.config_of(model)?;
        let known = provider.models.iter().chain(provider.prices.keys());
        nearest(
            name,
            known.map(String::as_str).filter(|known| known != name),
        )
        .map(str::to_owned)
    }

    /// Whether people can choose another model than this one, as `/models` lists them.
    pub fn offers_another(&self, model: &ModelRef) -> bool {
        let is_other = |provider: &str, name: &String| match model {
            ModelRef::Of {
                provider: own,
                model,
            } => own != provider || model != name,
            ModelRef::Demo => true,
        };
        let mut known = self.known.iter();
        known.any(|(name, provider)| provider.models.iter().any(|model| is_other(name, model)))
    }

    /// Providers whose key cannot be read, with the reason.
    pub fn missing_keys(&self) -> impl Iterator<Item = (&str, &str)> {
        self.known
            .iter()
            .filter_map(|(name, provider)| Some((name.as_str(), provider.missing_key.as_deref()?)))
    }

    /// Counts providers without a key as refusing, before any call.
    pub fn note_missing_keys(&self) {
        for (provider, why) in self.missing_keys() {
            self.health.failed(&Unanswered {
                model: ModelRef::Of {
                    provider: provider.to_owned(),
                    model: String::new(),
                },
                error: ModelError::Unavailable(Unavailable::KeyMissing(why.to_owned())),
                detail: None,
            });
        }
    }

    /// Changes of providers that owners may have to be told.
    pub fn news(&self) -> Vec<News> {
        self.health.news()
    }

    pub fn told(&self, news: &News) {
        self.health.told(news);
    }
}

/// A model that answers. Dropping the stream cancels the call.
#[async_trait]
pub trait ModelProvider: Send + Sync + 'static {
    /// `model` is its name at the provider.
    async fn stream(&self, model: &str, request: ModelRequest) -> Result<ModelStream, CallError>;
}

/// Ends with exactly one `Done` or one error; a stream that just ends counts as cut off.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, CallError>>;

/// One call to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub system: Arc<str>,
    pub messages: Vec<ModelMessage>,
    pub tools: Vec<Arc<ToolSpec>>,
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
    pub parameters: Schema,
}

/// A JSON Schema, written out once: tools are part of every request.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Schema(Box<RawValue>);

impl Schema {
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl From<Value> for Schema {
    fn from(schema: Value) -> Self {
        let text = serde_json::value::to_raw_value(&schema);
        Schema(text.expect("a JSON value can be written"))
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
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
