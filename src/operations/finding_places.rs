//! Finds the place that an operator means: by its key, or by its name where only one is called so.

use rusqlite::Connection;

use super::names::Names;
use crate::domain::{SessionKey, nearest};
use crate::routing::aliases::{self, Aliases};
use crate::routing::places;

/// Places with the same name that an error lists.
const MOST_LISTED: usize = 8;

/// Why no place is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPlace {
    #[error("nothing was ever said in {0}")]
    Unused(SessionKey),
    #[error("no place is called `{word}`{}", near.as_ref().map(|near| format!(". Did you mean {near}?")).unwrap_or_default())]
    Unknown { word: String, near: Option<String> },
    #[error("several places are called `{word}`: {}", keys.join(", "))]
    Several { word: String, keys: Vec<String> },
}

/// The key of the place that a word means. The place has a row.
pub(crate) fn find(
    connection: &Connection,
    names: &Names,
    word: &str,
) -> rusqlite::Result<Result<SessionKey, NoPlace>> {
    if let Ok(key) = word.parse::<SessionKey>() {
        let key = Aliases::new(aliases::load(connection)?).current(&key);
        let is_there = places::id(connection, &key)?.is_some();
        return Ok(is_there.then_some(key.clone()).ok_or(NoPlace::Unused(key)));
    }
    let all = places::latest(connection, u32::MAX)?;
    let keys = all
        .iter()
        .filter_map(|(key, _)| key.parse::<SessionKey>().ok());
    let named: Vec<(SessionKey, String)> = keys
        .filter_map(|key| {
            let name = names.place(&key).name?;
            Some((key, name))
        })
        .collect();
    Ok(called(word, &named))
}

fn called(word: &str, named: &[(SessionKey, String)]) -> Result<SessionKey, NoPlace> {
    let wanted = word.trim().to_lowercase();
    let mut found = named
        .iter()
        .filter(|(_, name)| name.to_lowercase() == wanted)
        .map(|(key, _)| key);
    match (found.next(), found.next()) {
        (Some(key), None) => Ok(key.clone()),
        (Some(first), Some(second)) => Err(NoPlace::Several {
            word: word.to_owned(),
            keys: [first, second]
                .into_iter()
                .chain(found)
                .take(MOST_LISTED)
                .map(ToString::to_string)
                .collect(),
        }),
        _ => {
            let near = nearest(word, named.iter().map(|(_, name)| name.as_str()));
            let key = |near: &str| named.iter().find(|(_, name)| name == near);
            Err(NoPlace::Unknown {
                word: word.to_owned(),
                near: near
                    .and_then(key)
                    .map(|(key, name)| format!("{name} ({key})")),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_place_or_none() {
        let named: Vec<(SessionKey, String)> = [
            ("telegram:topic:-100:7", "Roses"),
            ("telegram:topic:-100:8", "Release"),
            ("discord:thread:5:6", "release"),
        ]
        .map(|(key, name)| (key.parse().unwrap(), name.to_owned()))
        .to_vec();
        let check = |word, expected: &str| {
            let told = called(word, &named)
                .map(|key| key.to_string())
                .unwrap_or_else(|error| error.to_string());
            assert_eq!(told, expected);
        };
        check("roses ", "telegram:topic:-100:7");
        check(
            "Release",
            "several places are called `Release`: telegram:topic:-100:8, discord:thread:5:6",
        );
        check(
            "Rosse",
            "no place is called `Rosse`. Did you mean Roses (telegram:topic:-100:7)?",
        );
        check("kitchen", "no place is called `kitchen`");
    }
}
