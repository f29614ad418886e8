//! The place that an operator means: by its key, by its name, or by group and name, such as
//! `Family/Garden`.

use super::Failure;
use super::database;
use super::names::Names;
use super::operator::Line;
use super::running_config;
use crate::config::Config;
use crate::domain::SessionKey;
use crate::home::Home;
use crate::operations::finding_places::{self, NoPlace};
use crate::operations::{Reply, Request};

/// A place need not be in use.
pub(super) async fn place(home: &Home, word: &str) -> Result<SessionKey, Failure> {
    let key = word.parse::<SessionKey>();
    // Names are nice to have, also beside a config with problems.
    let config = running_config::checked(home).await.ok();
    let config = config.as_ref().map(|checked| &*checked.config);
    let bound = config.and_then(|config| bound_topic(config, word));
    if !home.database().exists() {
        let key = key.or_else(|error| bound.ok_or(error));
        return key.map_err(|error| Failure::WrongUse(error.to_string()));
    }
    let db = database::open(&home.database()).await?;
    let names = match key {
        Ok(_) => Names::default(),
        Err(_) => {
            let names = Names::load(&db, config);
            names.await?.with_places(ignored(home).await)
        }
    };
    let own = word.to_owned();
    let find =
        move |connection: &rusqlite::Connection| finding_places::meant(connection, &names, &own);
    let found = db.read(find).await?;
    let found = match (found, bound) {
        (Err(NoPlace::Unknown { .. }), Some(topic)) => Ok(topic),
        (found, _) => found,
    };
    found.map_err(not_meant)
}

/// Why no place is meant, with the way to name one.
pub(super) fn not_meant(error: NoPlace) -> Failure {
    let failure = Failure::WrongUse(error.to_string());
    match error {
        // The error says how a key looks.
        NoPlace::Malformed(_) => failure,
        NoPlace::Unused(_) | NoPlace::Unknown { .. } => failure.hint(HOW),
        NoPlace::Several {
            path: Some(path),
            example,
            ..
        } => failure.hint(format!(
            "name the group too, such as `{path}`, or write the key of the one you mean, such as {example}"
        )),
        NoPlace::Several { example, .. } | NoPlace::OfMembers { example, .. } => failure.hint(
            format!("write the key of the one you mean, such as {example}"),
        ),
    }
}

/// A topic of the terminal that a binding names, though nobody has written there yet.
fn bound_topic(config: &Config, word: &str) -> Option<SessionKey> {
    let keys = config.bindings.iter();
    let mut keys = keys.filter_map(|binding| binding.pattern.value.parse::<SessionKey>().ok());
    keys.find(|key| match key {
        SessionKey::Local { topic, .. } => topic
            .as_ref()
            .is_some_and(|topic| topic.as_str().eq_ignore_ascii_case(word)),
        _ => false,
    })
}

/// Names of places with ignored messages, which a running gateway has in mind.
pub(super) async fn ignored(home: &Home) -> Vec<(SessionKey, String)> {
    let Ok(Some(mut line)) = Line::open(home).await else {
        return Vec::new();
    };
    match line.ask(Request::IgnoredNames).await {
        Ok(Ok(Reply::IgnoredNames(names))) => names,
        _ => Vec::new(),
    }
}

/// The same where a place may be left out.
pub(super) async fn place_if_any(
    home: &Home,
    word: Option<&str>,
) -> Result<Option<SessionKey>, Failure> {
    match word {
        Some(word) => place(home, word).await.map(Some),
        None => Ok(None),
    }
}

const HOW: &str =
    "`parlor sessions` lists places, `parlor sessions list --ignored` those where nobody answers";
