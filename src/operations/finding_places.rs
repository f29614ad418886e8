//! Finds the place that an operator means: by its key, or by its name where only one is called so.

use std::collections::HashSet;

use rusqlite::Connection;

use super::named::Named;
use super::names::Names;
use crate::domain::{Platform, SessionKey, nearest};
use crate::records::sessions;
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
    Several {
        word: String,
        places: Vec<String>,
        /// Group and name of one of them, where these mean this place alone: `Family/Garden`.
        path: Option<String>,
        /// The key of one of them.
        example: SessionKey,
    },
    /// A group that has no conversation of its own.
    #[error("each person has a conversation of their own in {group}: {}", places.join(", "))]
    OfMembers {
        group: String,
        places: Vec<String>,
        /// The key of one of them.
        example: SessionKey,
    },
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
    let row = sessions::of(connection, &found)?;
    let is_used = row.as_ref().is_some_and(|row| row.active_at.is_some());
    let members = match is_used {
        true => Vec::new(),
        false => members(connection, &found)?,
    };
    Ok(match (members.first(), row) {
        (Some(example), _) => Err(NoPlace::OfMembers {
            group: names.place(&found).text(),
            places: members
                .iter()
                .take(MOST_LISTED)
                .map(|key| names.path_text(key))
                .collect(),
            example: example.clone(),
        }),
        (None, Some(_)) => Ok(found),
        (None, None) => Err(NoPlace::Unused(found)),
    })
}

/// The conversations of single people in a group, the latest first.
fn members(connection: &Connection, group: &SessionKey) -> rusqlite::Result<Vec<SessionKey>> {
    let all = sessions::all(connection, i64::MIN)?;
    let keys = all.into_iter().map(|place| place.key);
    let is_member = |key: &SessionKey| key.only_person().is_some() && key != group;
    Ok(keys
        .filter(|key| is_member(key) && key.is_in(group))
        .collect())
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
    let mut keys: Vec<SessionKey> = all.iter().filter_map(|(key, _)| key.parse().ok()).collect();
    // A group may be known by the conversations of its members alone.
    let groups: Vec<SessionKey> = keys.iter().filter_map(SessionKey::whole_group).collect();
    let mut seen: HashSet<SessionKey> = keys.iter().cloned().collect();
    keys.extend(
        groups
            .into_iter()
            .filter(|group| seen.insert(group.clone())),
    );
    let known: Vec<Known> = keys
        .into_iter()
        .filter_map(|key| {
            let place = names.place(&key);
            // A member without a name is shown by the group's alone, which means the group.
            let group = key.whole_group().filter(|group| *group != key);
            let group = group.map(|group| names.place(&group));
            let of_group = group.as_ref().and_then(Named::words);
            let shown = place.words().filter(|words| of_group != Some(words));
            let shown = shown.map(str::to_owned);
            let name = place.name.or_else(|| shown.clone())?;
            let path = names.path(&key);
            Some(Known {
                key,
                name,
                path,
                shown,
            })
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
    /// As lists show it: `Alice's private chat`.
    shown: Option<String>,
}

impl Known {
    fn is_called(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        let own = [
            Some(self.name.as_str()),
            self.path.as_deref(),
            self.shown.as_deref(),
            self.last(),
        ];
        own.into_iter().flatten().any(is_wanted)
    }

    /// A channel of Discord is known as `Garden/roses`, and people call it `roses`.
    fn last(&self) -> Option<&str> {
        let is_channel = matches!(self.key, SessionKey::DiscordChannel { member: None, .. });
        let (_, last) = self.name.rsplit_once('/').filter(|_| is_channel)?;
        Some(last)
    }

    /// `Family/Garden (telegram:topic:-100:7)`.
    fn text(&self) -> String {
        let name = self.path.as_deref().unwrap_or(&self.name);
        Named::new(&self.key, Some(name)).text()
    }
}

fn called(word: &str, known: &[Known]) -> Result<SessionKey, NoPlace> {
    match named(word, known).as_slice() {
        [place] => Ok(place.key.clone()),
        [] => {
            let near = nearest(word, known.iter().map(|place| place.name.as_str()));
            let near = known.iter().find(|place| Some(place.name.as_str()) == near);
            Err(NoPlace::Unknown {
                word: word.to_owned(),
                near: near.map(Known::text),
            })
        }
        several @ [first, ..] => Err(NoPlace::Several {
            word: word.to_owned(),
            path: several
                .iter()
                .filter_map(|place| place.path.as_deref())
                .find(|path| named(path, known).len() == 1)
                .map(str::to_owned),
            example: first.key.clone(),
            places: several
                .iter()
                .take(MOST_LISTED)
                .map(|place| place.text())
                .collect(),
        }),
    }
}

/// The places with this name. Those with its very letters come before those that differ in upper
/// and lower case.
fn named<'a>(word: &str, known: &'a [Known]) -> Vec<&'a Known> {
    let (exact, lower) = (word.trim(), word.trim().to_lowercase());
    let alike: Vec<&Known> = known
        .iter()
        .filter(|place| place.is_called(|name| name.to_lowercase() == lower))
        .collect();
    let same: Vec<&Known> = alike
        .iter()
        .copied()
        .filter(|place| place.is_called(|name| name == exact))
        .collect();
    match same.is_empty() {
        true => alike,
        false => same,
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
            ("discord:channel:5", "Garden/plants", None),
        ]
        .map(|(key, name, path)| Known {
            key: key.parse().unwrap(),
            name: name.to_owned(),
            path: path.map(str::to_owned),
            shown: (key == "discord:channel:5").then(|| "Ann's private chat".to_owned()),
        });
        let check = |word, expected: &str| {
            let told = called(word, &known)
                .map(|key| key.to_string())
                .unwrap_or_else(|error| error.to_string());
            assert_eq!(told, expected);
        };
        check("family/release", "telegram:topic:-100:8");
        check("roses ", "telegram:topic:-100:7");
        check("garden/plants", "discord:channel:5");
        check("plants", "discord:channel:5");
        check("ann's private chat", "discord:channel:5");
        check("Release", "telegram:topic:-100:8");
        check("release", "discord:thread:5:6");
        check(
            "RELEASE",
            "several places are called `RELEASE`: Family/Release (telegram:topic:-100:8), release (discord:thread:5:6)",
        );
        check(
            "Rosse",
            "no place is called `Rosse`. Did you mean Family/Roses (telegram:topic:-100:7)?",
        );
        check("kitchen", "no place is called `kitchen`");
        let Err(NoPlace::Several { path, example, .. }) = called("RELEASE", &known) else {
            panic!("two places are called so");
        };
        assert_eq!(path.as_deref(), Some("Family/Release"));
        assert_eq!(example.to_string(), "telegram:topic:-100:8");
    }
}
