use std::collections::BTreeMap;
use std::time::Duration;

use insta::assert_snapshot;

use super::*;
use crate::config::{Provider, ProviderLines, Secret, Vision};
use crate::models::Unreachable;

fn provider(kind: ProviderKind, base_url: &str) -> Provider {
    Provider {
        kind,
        base_url: base_url.to_owned(),
        api_key: Some(Secret::new("k")),
        proxy: None,
        prices: BTreeMap::new(),
        models: vec!["gpt-5.4".to_owned()],
        vision: Vision::ByName,
        context_tokens: None,
        missing_key: None,
        lines: ProviderLines {
            section: Some(62),
            api_key: Some(64),
            base_url: None,
        },
    }
}

fn models() -> Models {
    let openai = provider(ProviderKind::OpenAi, "https://user:pw@api.openai.com/v1/");
    let ollama = provider(ProviderKind::Ollama, "http://localhost:11434/");
    Models::new(&BTreeMap::from([
        ("openai".to_owned(), openai),
        ("ollama".to_owned(), ollama),
    ]))
}

fn failure(model: &str, error: ModelError, detail: Option<&str>) -> TurnError {
    TurnError::Model(Unanswered {
        model: model.parse().expect("a model"),
        error,
        detail: detail.map(str::to_owned),
    })
}

fn told(reader: Reader, error: &TurnError) -> String {
    apology(error, &models(), reader, 161)
}

#[test]
fn people_learn_what_failed() {
    let person = |error| {
        told(
            Reader::Person,
            &failure("openai/gpt-5", error, Some("psst")),
        )
    };
    let unavailable = |why| person(ModelError::Unavailable(why));
    assert_snapshot!(unavailable(Unavailable::KeyRejected(401)), @"I can't answer: the API key for `openai` was rejected (401). [ref 161]");
    assert_snapshot!(unavailable(Unavailable::KeyMissing("the environment variable X is not set".into())), @"I can't answer: the API key for `openai` is missing. [ref 161]");
    assert_snapshot!(unavailable(Unavailable::NotAllowed(403)), @"I can't answer: the API key for `openai` may not use `gpt-5` (403). [ref 161]");
    assert_snapshot!(unavailable(Unavailable::NoCredit(0)), @"I can't answer: the account at `openai` has no credit left. [ref 161]");
    assert_snapshot!(unavailable(Unavailable::NoSuchModel(404)), @"I can't answer: `openai` has no model `gpt-5` (404). [ref 161]");
    assert_snapshot!(unavailable(Unavailable::Moved(302)), @"I can't answer: the address of `openai` leads elsewhere (302). [ref 161]");
    assert_snapshot!(unavailable(Unavailable::WebPage), @"I can't answer: at the address of `openai` is a web page and no model server. [ref 161]");
    assert_snapshot!(unavailable(Unavailable::NoProvider), @"I can't answer: there is no provider `openai` any more. [ref 161]");
    assert_snapshot!(person(ModelError::Unreachable(Unreachable::NoSuchHost)), @"I can't answer: `openai` can't be reached (its name was not found). [ref 161]");
    assert_snapshot!(person(ModelError::RateLimited { retry_after: Some(Duration::from_secs(40)) }), @"`openai` asks for a pause. Please try again in 40 seconds. [ref 161]");
    assert_snapshot!(person(ModelError::RateLimited { retry_after: None }), @"`openai` gets too many requests right now. Please try again in a minute. [ref 161]");
    assert_snapshot!(person(ModelError::Overloaded), @"`openai` is overloaded right now. Please try again in a minute. [ref 161]");
    assert_snapshot!(person(ModelError::ContextTooLong), @"This conversation is longer than my model can read. /new starts a fresh one. [ref 161]");
    assert_snapshot!(person(ModelError::Refused("the provider's content policy forbids it".into())), @"`openai` refused this: the provider's content policy forbids it. [ref 161]");
    assert_snapshot!(person(ModelError::Stalled), @"I can't answer: `openai` didn't answer in time. Please try again. [ref 161]");
    assert_snapshot!(person(ModelError::CutOff), @"My answer was cut off on the way. Please try again. [ref 161]");
    assert_snapshot!(person(ModelError::Broken("the model server failed (500)".into())), @"I can't answer: `openai` failed (500). Please try again. [ref 161]");
    assert_snapshot!(person(ModelError::TooMuch("more than 512 KB of text".into())), @"My model sent more than 512 KB of text, which is more than I take in, so I stopped it. Please ask for something smaller. [ref 161]");
}

#[test]
fn owners_learn_what_to_do() {
    let owner = |model, error| told(Reader::Owner, &failure(model, error, Some("psst")));
    let unavailable = |why| owner("openai/gpt-5", ModelError::Unavailable(why));
    assert_snapshot!(unavailable(Unavailable::KeyRejected(401)), @"I can't answer: the API key for `openai` was rejected (401). Put a valid key where `api_key` in [providers.openai], line 64 of config.toml points. /reload reads a file again; a new environment variable needs a new start. [ref 161]");
    assert_snapshot!(unavailable(Unavailable::KeyMissing("the environment variable OPENAI_API_KEY is not set".into())), @"I can't answer: the API key for `openai` is missing. The environment variable OPENAI_API_KEY is not set (`api_key` in [providers.openai], line 64 of config.toml). Set it where Parlor is started, then start Parlor again: a reload brings no new variables. [ref 161]");
    assert_snapshot!(unavailable(Unavailable::NoSuchModel(404)), @"I can't answer: `openai` has no model `gpt-5` (404). Did you mean `gpt-5.4`? [ref 161]");
    assert_snapshot!(unavailable(Unavailable::NoCredit(402)), @"I can't answer: the account at `openai` has no credit left (402). Add credit at the provider, or choose another model with `/model`. [ref 161]");
    assert_snapshot!(unavailable(Unavailable::WebPage), @"I can't answer: at the address of `openai` is a web page and no model server. Check `base_url` in [providers.openai], line 62 of config.toml. [ref 161]");
    assert_snapshot!(owner("ollama/llava", ModelError::Unavailable(Unavailable::NoSuchModel(404))), @"I can't answer: `ollama` has no model `llava` (404). `ollama pull llava` fetches it. [ref 161]");
    assert_snapshot!(owner("ollama/llava", ModelError::Unreachable(Unreachable::ConnectionRefused)), @"I can't answer: `ollama` can't be reached (the connection was refused). Is Ollama running? `ollama serve` starts it. Its address is `base_url` in [providers.ollama], line 62 of config.toml. [ref 161]");
    assert_snapshot!(owner("openai/gpt-5", ModelError::Overloaded), @"`openai` is overloaded right now. Please try again in a minute. [ref 161]");
}

#[test]
fn owners_learn_the_cause_where_nobody_reads_along() {
    let rejected = ModelError::Unavailable(Unavailable::KeyRejected(401));
    let error = failure("openai/gpt-5", rejected, Some("Incorrect API key `***`."));
    assert_snapshot!(told(Reader::OwnerAlone, &error), @"
    I can't answer: the API key for `openai` was rejected (401). Put a valid key where `api_key` in [providers.openai], line 64 of config.toml points. /reload reads a file again; a new environment variable needs a new start. [ref 161]
    api.openai.com says: `Incorrect API key '***'.`
    ");
    assert!(!told(Reader::Owner, &error).contains("Incorrect"));
}

#[test]
fn owners_are_told_about_a_provider_in_one_message() {
    let TurnError::Model(refused) = failure(
        "openai/gpt-5",
        ModelError::Unavailable(Unavailable::KeyRejected(401)),
        Some("Incorrect API key provided: ***."),
    ) else {
        panic!("a failure of a model")
    };
    assert_snapshot!(began_to_refuse(&refused, &models()), @"
    ⚠️ My agents can't use `openai`: the API key for `openai` was rejected (401). Put a valid key where `api_key` in [providers.openai], line 64 of config.toml points. /reload reads a file again; a new environment variable needs a new start.
    api.openai.com says: `Incorrect API key provided: ***.`
    ");
    assert_snapshot!(works_again("openai"), @"✅ `openai` answers again.");
}

#[test]
fn a_turn_that_went_on_too_long_is_told_with_its_limit() {
    let person = |error: &TurnError| told(Reader::Person, error);
    assert_snapshot!(person(&TurnError::TooSlow(Duration::from_secs(30 * 60))), @"This took longer than 30 minutes, so I stopped. A smaller question may help.");
    assert_snapshot!(person(&TurnError::TooManySteps(40)), @"I didn't get to an answer in 40 steps, so I stopped. A smaller question may help.");
    assert_snapshot!(person(&TurnError::TooManyTokens(9)), @"This took more tokens than one answer may use, so I stopped. A smaller question may help.");
    assert_snapshot!(panicked(161), @"Something broke while I was working on this, so there is no answer. Please try again. [ref 161]");
    assert_snapshot!(tools_broke(&["shell".into(), "now".into()], 161), @"While I worked on this, `shell`, `now` broke, so I went on without it. [ref 161]");
}
