//! Step 1: a model. Keys and local servers found here are offered, and the chosen model is asked a
//! question as the agent.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use uuid::Uuid;

use super::plan::{Change, Keeper, NewProvider};
use super::questions::{Answer, Stop};
use super::write::NewSecret;
use super::{Facts, Setup, texts};
use crate::agents::{Identity, Registry};
use crate::config::{
    Config, ModelRef, ModelServer, ModelSettings, Provider, ProviderKind, ProviderLines, Secret,
    Vision, model_servers,
};
use crate::domain::AgentUid;
use crate::models::listing::available;
use crate::models::{ModelEvent, ModelMessage, ModelRequest, Models};
use crate::turn::prompt::{Audience, assemble};

/// A server on this machine answers at once.
const LOCAL: Duration = Duration::from_millis(700);
const REMOTE: Duration = Duration::from_secs(5);
/// A model without an answer for so long is told as silent. Local models are loaded first.
const ANSWER: Duration = Duration::from_secs(120);

/// A server to choose.
struct Candidate {
    label: String,
    provider: NewProvider,
    secret: Option<Secret>,
    models: Vec<String>,
    /// The suggested model of a server without a list.
    suggested: Option<&'static str>,
}

/// A chosen model, with the provider and key to be written.
struct Choice {
    model: ModelRef,
    provider: Option<(NewProvider, Option<Secret>)>,
    /// A pasted key.
    paste: Option<NewSecret>,
}

impl Setup<'_> {
    pub(super) async fn model(&mut self) -> Answer<()> {
        let facts = self.facts()?;
        let is_wanted = self.wishes.model.is_some() || self.wishes.part.is_some();
        if facts.has_model() && !is_wanted {
            let model = facts.config.default_model.to_string();
            self.asker.say(&format!("{}: {model}", texts::ONE));
            return Ok(());
        }
        // Flags about other things leave the model of a home alone.
        if !is_wanted && !facts.is_new && !self.asker.is_person() {
            return Ok(());
        }
        self.asker.say(texts::ONE);
        loop {
            let choice = match self.wishes.model.clone() {
                Some(model) => self.wished(&facts, &model)?,
                None => match self.choose_model(&facts).await? {
                    Some(choice) => choice,
                    None => continue,
                },
            };
            let is_good = self.is_planning() || self.try_out(&facts, &choice).await?;
            let question = format!("Use {}?", choice.model);
            if is_good && self.asker.confirm(&question, true)? {
                let change = Change::Model {
                    model: choice.model.to_string(),
                    provider: choice.provider.map(|(new, _)| new),
                };
                return self
                    .commit(vec![change], choice.paste.into_iter().collect())
                    .await;
            }
            if !self.asker.is_person() {
                return Err(Stop::Failed(format!(
                    "{} did not answer, so nothing was written",
                    choice.model
                )));
            }
            self.wishes.model = None;
        }
    }

    /// A model by flags: of a provider in the config, or of a known server.
    fn wished(&self, facts: &Facts, wish: &str) -> Answer<Choice> {
        let model: ModelRef = wish.parse().map_err(|()| {
            Stop::Failed(format!(
                "`{wish}` does not name a model. Write it like `openai/gpt-5.4`, or `demo`"
            ))
        })?;
        let ModelRef::Of { provider: name, .. } = &model else {
            return Ok(Choice {
                model,
                provider: None,
                paste: None,
            });
        };
        let has_flags = self.wishes.model_url.is_some() || self.wishes.model_key.is_some();
        if facts.config.providers.contains_key(name) && !has_flags {
            return Ok(Choice {
                model,
                provider: None,
                paste: None,
            });
        }
        let known = model_servers()
            .into_iter()
            .find(|server| server.name == name);
        let kind = known
            .as_ref()
            .map_or(ProviderKind::OpenAi, |server| server.kind);
        let usual_url = known.as_ref().and_then(|server| server.base_url);
        let url = self
            .wishes
            .model_url
            .clone()
            .or_else(|| usual_url.map(str::to_owned));
        if known.is_none() && url.is_none() {
            return Err(Stop::Failed(format!(
                "no server called `{name}` is known. Give its address with --model-url"
            )));
        }
        let usual_key = known.as_ref().and_then(|server| server.variable);
        let usual_key = usual_key.filter(|_| self.wishes.model_url.is_none());
        let key = self.wishes.model_key.clone();
        let key = key.or_else(|| usual_key.map(|name| Keeper::Env(name.to_owned())));
        let secret = key.as_ref().and_then(|key| self.secret(key));
        let provider = NewProvider {
            name: name.clone(),
            kind: kind.to_string(),
            base_url: url,
            api_key: key,
        };
        Ok(Choice {
            model,
            provider: Some((provider, secret)),
            paste: None,
        })
    }

    /// None to ask again.
    async fn choose_model(&mut self, facts: &Facts) -> Answer<Option<Choice>> {
        let candidates = match self.is_planning() {
            true => self.with_keys(),
            false => self.found().await,
        };
        let mut labels: Vec<String> = candidates
            .iter()
            .map(|candidate| candidate.label.clone())
            .collect();
        labels.push(texts::DEMO.to_owned());
        if self.asker.is_person() {
            labels.push(texts::OTHER_MODEL.to_owned());
        }
        let chosen = self.asker.choose("Which model?", &labels, 0)?;
        match candidates.into_iter().nth(chosen) {
            Some(candidate) => self.model_of(candidate).map(Some),
            None if chosen + 1 == labels.len() && self.asker.is_person() => {
                self.other_model(facts).await
            }
            None => Ok(Some(Choice {
                model: ModelRef::Demo,
                provider: None,
                paste: None,
            })),
        }
    }

    fn model_of(&mut self, candidate: Candidate) -> Answer<Choice> {
        let name = self.model_name(&candidate.models, candidate.suggested)?;
        let model = ModelRef::Of {
            provider: candidate.provider.name.clone(),
            model: name,
        };
        Ok(Choice {
            model,
            provider: Some((candidate.provider, candidate.secret)),
            paste: None,
        })
    }

    fn model_name(&mut self, models: &[String], suggested: Option<&str>) -> Answer<String> {
        match models {
            [] => self.asker.text(
                "The model's name at this server:",
                suggested.unwrap_or_default(),
            ),
            [only] => Ok(only.clone()),
            models => {
                let at = models
                    .iter()
                    .position(|name| Some(name.as_str()) == suggested);
                let chosen = self
                    .asker
                    .choose("Which of its models?", models, at.unwrap_or(0))?;
                Ok(models.get(chosen).cloned().unwrap_or_default())
            }
        }
    }

    /// A known service with a pasted key, or the address of any server.
    async fn other_model(&mut self, facts: &Facts) -> Answer<Option<Choice>> {
        let known: Vec<ModelServer> = model_servers()
            .into_iter()
            .filter(|server| server.variable.is_some())
            .collect();
        let mut titles: Vec<String> = known.iter().map(|server| server.title.to_owned()).collect();
        titles.push("a server of mine that speaks like OpenAI".to_owned());
        let chosen = self.asker.choose("Whose model?", &titles, 0)?;
        let server = known.into_iter().nth(chosen);
        let (name, kind, base_url) = match &server {
            Some(server) => (
                server.name.to_owned(),
                server.kind,
                server.base_url.map(str::to_owned),
            ),
            None => {
                let url = self
                    .asker
                    .text("Its address:", "http://127.0.0.1:8000/v1/")?;
                let url = with_scheme(url.trim());
                ("mine".to_owned(), ProviderKind::OpenAi, Some(url))
            }
        };
        let secret = self
            .asker
            .secret("Its key, pasted (it is not shown; Enter alone for none):")?;
        let path = format!("secrets/{name}");
        let secret = Some(secret.trim().to_owned()).filter(|secret| !secret.is_empty());
        let secret = secret.map(Secret::new);
        let provider = NewProvider {
            name: name.clone(),
            kind: kind.to_string(),
            base_url,
            api_key: secret.as_ref().map(|_| Keeper::File(path.clone())),
        };
        let reachable = provider_of(&provider, secret.as_ref(), &facts.config);
        let models = available(&reachable, REMOTE).await.unwrap_or_default();
        let suggested = server.and_then(|server| server.model);
        let model = self.model_name(&models, suggested)?;
        if model.is_empty() {
            return Ok(None);
        }
        Ok(Some(Choice {
            model: ModelRef::Of {
                provider: name,
                model,
            },
            paste: secret.clone().map(|secret| NewSecret { path, secret }),
            provider: Some((provider, secret)),
        }))
    }

    /// Keys in the environment, with the models of each server.
    fn with_keys(&self) -> Vec<Candidate> {
        let with_key = |server: ModelServer| {
            let variable = server.variable?;
            let secret = self.secret(&Keeper::Env(variable.to_owned()))?;
            Some(Candidate {
                label: format!("{}, with the key in {variable}", server.title),
                provider: new_provider(&server, Some(Keeper::Env(variable.to_owned()))),
                secret: Some(secret),
                models: Vec::new(),
                suggested: server.model,
            })
        };
        model_servers().into_iter().filter_map(with_key).collect()
    }

    /// Keys in the environment, and answering servers of this machine.
    async fn found(&mut self) -> Vec<Candidate> {
        let keys = self.with_keys();
        let keys = keys.into_iter().map(async |candidate| {
            let provider = provider_of(
                &candidate.provider,
                candidate.secret.as_ref(),
                &Config::embedded(),
            );
            let models = available(&provider, REMOTE).await.unwrap_or_default();
            Candidate {
                models,
                ..candidate
            }
        });
        let local = model_servers()
            .into_iter()
            .filter(|server| server.variable.is_none())
            .map(async |server| {
                let mut new = new_provider(&server, None);
                if server.kind == ProviderKind::Ollama {
                    new.base_url = ollama_host(std::env::var("OLLAMA_HOST").ok().as_deref());
                }
                let provider = provider_of(&new, None, &Config::embedded());
                let models = available(&provider, LOCAL).await?;
                (!models.is_empty()).then(|| Candidate {
                    label: format!("{} on this machine", server.title),
                    provider: new,
                    secret: None,
                    models,
                    suggested: None,
                })
            });
        let (keys, local) = tokio::join!(join_all(keys), join_all(local));
        keys.into_iter()
            .chain(local.into_iter().flatten())
            .collect()
    }

    /// Asks the model a question as the agent, and shows its answer.
    async fn try_out(&mut self, facts: &Facts, choice: &Choice) -> Answer<bool> {
        self.asker.say(&format!("Asking {} …", choice.model));
        let mut providers = facts.config.providers.clone();
        if let Some((new, secret)) = &choice.provider {
            let provider = provider_of(new, secret.as_ref(), &facts.config);
            providers.insert(new.name.clone(), provider);
        }
        let agent = speaker(&facts.config, self.home.path());
        let asked = tokio::time::timeout(ANSWER, ask(&providers, &choice.model, &agent)).await;
        let asked = asked.unwrap_or_else(|_| Err("it said nothing for two minutes".to_owned()));
        match asked {
            Ok(said) => {
                self.asker
                    .say(&format!("  {}: {}", agent.label(), said.trim()));
                Ok(true)
            }
            Err(problem) => {
                self.asker.say(&format!("  No answer: {problem}."));
                Ok(false)
            }
        }
    }
}

/// `127.0.0.1:8000/v1` as people type it is an address without encryption.
fn with_scheme(address: &str) -> String {
    match address.contains("://") {
        true => address.to_owned(),
        false => format!("http://{address}"),
    }
}

fn new_provider(server: &ModelServer, api_key: Option<Keeper>) -> NewProvider {
    NewProvider {
        name: server.name.to_owned(),
        kind: server.kind.to_string(),
        base_url: server.base_url.map(str::to_owned),
        api_key,
    }
}

/// The address in `OLLAMA_HOST`, set by users of Ollama on another address than the usual. None for
/// the usual address.
fn ollama_host(variable: Option<&str>) -> Option<String> {
    let host = variable.map(str::trim).filter(|host| !host.is_empty())?;
    match host.contains("://") {
        true => Some(host.to_owned()),
        false if host.contains(':') => Some(format!("http://{host}/")),
        false => Some(format!("http://{host}:11434/")),
    }
}

/// The provider of the future config. An existing section keeps its other keys.
fn provider_of(new: &NewProvider, secret: Option<&Secret>, config: &Config) -> Provider {
    let kind: ProviderKind = new.kind.parse().unwrap_or(ProviderKind::OpenAi);
    let usual = || kind.default_base_url().to_owned();
    let old = config.providers.get(&new.name).cloned();
    let base = old.unwrap_or_else(|| Provider {
        kind,
        base_url: usual(),
        api_key: None,
        proxy: None,
        prices: BTreeMap::new(),
        models: Vec::new(),
        vision: Vision::ByName,
        context_tokens: None,
        missing_key: None,
        lines: ProviderLines::default(),
    });
    Provider {
        kind,
        base_url: new.base_url.clone().unwrap_or_else(usual),
        api_key: secret.cloned(),
        missing_key: None,
        ..base
    }
}

/// The default agent, for a trial answer.
fn speaker(config: &Config, home: &std::path::Path) -> std::sync::Arc<crate::agents::Agent> {
    let uids: HashMap<_, _> = config
        .agents
        .iter()
        .map(|agent| (agent.id.clone(), AgentUid(Uuid::now_v7())))
        .collect();
    Registry::new(config, home, &uids).default_agent().clone()
}

async fn ask(
    providers: &BTreeMap<String, Provider>,
    model: &ModelRef,
    agent: &crate::agents::Agent,
) -> Result<String, String> {
    let identity = Identity::load(agent, false);
    let request = ModelRequest {
        system: assemble(agent, &identity, Audience::Private).into(),
        messages: vec![ModelMessage::user(texts::HELLO.to_owned())],
        tools: Vec::new(),
        settings: ModelSettings::default(),
        cache_key: String::new(),
    };
    let models = Models::new(providers);
    let mut stream = models
        .stream(model, request)
        .await
        .map_err(|failed| failed.error.to_string())?;
    let mut said = String::new();
    while let Some(event) = stream.next().await {
        match event.map_err(|failed| failed.error.to_string())? {
            ModelEvent::Text(text) => said.push_str(&text),
            ModelEvent::Working => {}
            ModelEvent::Done { .. } => break,
        }
    }
    match said.trim() {
        "" => Err("the model answered without a word".to_owned()),
        _ => Ok(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_is_looked_for_where_its_variable_says() {
        let check = |variable: Option<&str>, expected: Option<&str>| {
            assert_eq!(ollama_host(variable).as_deref(), expected);
        };
        check(None, None);
        check(Some(" "), None);
        check(Some("http://box:1/"), Some("http://box:1/"));
        check(Some("127.0.0.1:4000"), Some("http://127.0.0.1:4000/"));
        check(Some("box"), Some("http://box:11434/"));
    }

    #[test]
    fn an_address_without_its_beginning_is_understood() {
        let check = |typed: &str, expected: &str| assert_eq!(with_scheme(typed), expected);
        check("127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1");
        check("https://box/v1/", "https://box/v1/");
    }
}
