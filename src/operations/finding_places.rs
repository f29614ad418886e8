//! Finds the place that an operator means: by its key, or by its name where only one is called so.

use rusqlite::Connection;

use super::names::Names;
use crate::domain::{Platform, SessionKey, nearest};
use crate::routing::aliases::{self, Aliases};
use crate::routing::places;

/// Places with the same name that an error lists.
const MOST_LISTED: usize = 8;

/// Why no place is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPlace {
    #[error("nothing was ever said in {0}")]
    Unused(SessionKey),
    /// A key with a mistake.
    #[error("{0}")]
    Malformed(String),
    #[error("no place is called `{word}`{}", near.as_ref().map(|near| format!(". Did you mean {near}?")).unwrap_or_default())]
    Unknown { word: String, near: Option<String> },
    #[error("several places are called `{word}`: {}", places.join(", "))]
    Several { word: String, places: Vec<String> },
}

/// The key of the place that a word means. The place has a row.
pub(crate) fn find(
    connection: &Connection,
    names: &Names,
    word: &str,
) -> rusqlite::Result<Result<SessionKey, NoPlace>> {
    let found = match meant(connection, names, word)? {
        Ok(key) => key,
        Err(none) => return Ok(Err(none)),
    };
    let is_there = places::id(connection, &found)?.is_some();
    Ok(match is_there {
        true => Ok(found),
        false => Err(NoPlace::Unused(found)),
    })
}

/// The same, also for a key that nobody has used yet.
pub(crate) fn meant(
    connection: &Connection,
    names: &Names,
    word: &str,
) -> rusqlite::Result<Result<SessionKey, NoPlace>> {
    match word.parse::<SessionKey>() {
        Ok(key) => return Ok(Ok(Aliases::new(aliases::load(connection)?).current(&key))),
        Err(error) if looks_like_a_key(word) => {
            return Ok(Err(NoPlace::Malformed(error.to_string())));
        }
        Err(_) => {}
    }
    let all = places::latest(connection, u32::MAX)?;
    let keys = all
        .iter()
        .filter_map(|(key, _)| key.parse::<SessionKey>().ok());
    let known: Vec<Known> = keys
        .filter_map(|key| {
            let name = names.place(&key).name?;
            let path = names.path(&key);
            Some(Known { key, name, path })
        })
        .collect();
    Ok(called(word, &known))
}

fn looks_like_a_key(word: &str) -> bool {
    let platform = word.split_once(':').map(|(platform, _)| platform);
    platform.is_some_and(|platform| platform.parse::<Platform>().is_ok())
}

/// A place with a name.
struct Known {
    key: SessionKey,
    /// `Garden`.
    name: String,
    /// `Family/Garden`.
    path: Option<String>,
}

impl Known {
    fn is_called(&self, wanted: &str) -> bool {
        let own = [Some(&self.name), self.path.as_ref()];
        own.into_iter()
            .flatten()
            .any(|name| name.to_lowercase() == wanted)
    }

    /// `Family/Garden (telegram:topic:-100:7)`.
    fn text(&self) -> String {
        format!(
            "{} ({})",
            self.path.as_ref().unwrap_or(&self.name),
            self.key
        )
    }
}

fn called(word: &str, known: &[Known]) -> Result<SessionKey, NoPlace> {
    let wanted = word.trim().to_lowercase();
    let found: Vec<&Known> = known
        .iter()
        .filter(|place| place.is_called(&wanted))
        .collect();
    match found.as_slice() {
        [place] => Ok(place.key.clone()),
        [] => {
            let near = nearest(word, known.iter().map(|place| place.name.as_str()));
            let near = known.iter().find(|place| Some(place.name.as_str()) == near);
            Err(NoPlace::Unknown {
                word: word.to_owned(),
                near: near.map(Known::text),
            })
        }
        several => Err(NoPlace::Several {
            word: word.to_owned(),
            places: several
                .iter()
                .take(MOST_LISTED)
                .map(|place| place.text())
                .collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_place_or_none() {
        let known = [
            ("telegram:topic:-100:7", "Roses", Some("Family/Roses")),
            ("telegram:topic:-100:8", "Release", Some("Family/Release")),
            ("discord:thread:5:6", "release", None),
        ]
        .map(|(key, name, path)| Known {
            key: key.parse().unwrap(),
            name: name.to_owned(),
            path: path.map(str::to_owned),
        });
        let check = |word, expected: &str| {
            let told = called(word, &known)
                .map(|key| key.to_string())
                .unwrap_or_else(|error| error.to_string());
            assert_eq!(told, expected);
        };
        check("family/release", "telegram:topic:-100:8");
        check("roses ", "telegram:topic:-100:7");
        check(
            "Release",
            "several places are called `Release`: Family/Release (telegram:topic:-100:8), release (discord:thread:5:6)",
        );
        check(
            "Rosse",
            "no place is called `Rosse`. Did you mean Family/Roses (telegram:topic:-100:7)?",
        );
        check("kitchen", "no place is called `kitchen`");
    }
}
