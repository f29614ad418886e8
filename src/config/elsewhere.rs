//! Finds the right place of a key unknown in its table.

use super::known_servers;
use super::reader::suggest;
use super::schema::{self, Key, PLACES, Shape};
use super::synonyms;
use crate::domain::nearest;

/// The advice about a key unknown in its table. `below` is the first key below, if the key is a
/// table itself.
pub(super) fn advice(shape: &Shape, key: &str, below: Option<&str>) -> String {
    if let Some(advice) = synonyms::advice(shape, key, below) {
        return match belongs(key).filter(|_| below.is_none()) {
            Some(place) => format!("{advice} `{key}` {place}"),
            None => advice,
        };
    }
    let here: Vec<&str> = shape.names().collect();
    let near = nearest(key, here.iter().copied());
    match (near, belongs(key)) {
        (Some(near), Some(place)) if near.starts_with(key) || key.starts_with(near) => {
            match is_only_below(shape, key) {
                // In [access], `owner` is a slip of `owners`, and not a key of [access.tools].
                true => format!("did you mean `{near}`?"),
                false => format!("did you mean `{near}`? `{key}` {place}"),
            }
        }
        (_, Some(place)) => format!("`{key}` {place}"),
        (Some(near), None) if is_slip(key, near) => format!("did you mean `{near}`?"),
        _ => slip(key)
            .or_else(|| section(shape, key, below.is_some()))
            .unwrap_or_else(|| suggest(key, &here)),
    }
}

/// Whether a key is surely a slip of another, and not only alike.
fn is_slip(key: &str, near: &str) -> bool {
    const SURE: f64 = 0.88;
    strsim::jaro_winkler(key, near) >= SURE
}

/// The word that was surely meant by a misspelt word.
pub(super) fn nearest_slip<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    nearest(word, known).filter(|near| is_slip(word, near))
}

/// The key of this table that was surely meant by a misspelt key.
pub(super) fn slip_of(shape: &Shape, key: &str) -> Option<&'static str> {
    nearest_slip(key, shape.names())
}

/// A slip of a key of another table.
fn slip(key: &str) -> Option<String> {
    let every = PLACES.iter().flat_map(|(_, shape)| shape.names());
    let near = nearest(key, every).filter(|near| is_slip(key, near))?;
    Some(format!("did you mean `{near}`? It {}", belongs(near)?))
}

/// A section that lacks the first part of its name.
fn section(shape: &Shape, key: &str, has_keys: bool) -> Option<String> {
    if shape.name != schema::TOP.name {
        return None;
    }
    if known_servers::setup(key).is_some() {
        return Some(format!("a provider is written as [providers.{key}]"));
    }
    has_keys
        .then(|| format!("an agent is written as [agents.{key}], a provider as [providers.{key}]"))
}

/// "belongs under `[telegram]` or `[discord]`", for a key that some table has.
fn belongs(key: &str) -> Option<String> {
    let owners = PLACES
        .iter()
        .filter(|(_, shape)| shape.name != schema::SECRET.name)
        .filter_map(|(place, shape)| Some((*place, shape.key(key)?)));
    let mut tables = Vec::new();
    for (place, known) in owners {
        if !place.is_empty() {
            tables.push(title(place));
        } else if known.is_table() {
            return Some(format!("is a section of its own: `{}`", known.usage()));
        } else {
            return Some("belongs at the top of the file, above the first [section]".to_owned());
        }
    }
    (!tables.is_empty()).then(|| format!("belongs under {}", tables.join(" or ")))
}

/// Whether only sections inside this table have the key.
fn is_only_below(shape: &Shape, key: &str) -> bool {
    let own = PLACES.iter().find(|(_, other)| other.name == shape.name);
    let Some((own, _)) = own.filter(|(own, _)| !own.is_empty()) else {
        return false;
    };
    let mut others = PLACES.iter().filter(|(_, other)| other.key(key).is_some());
    others.all(|(place, _)| place.starts_with(&format!("{own}.")))
}

/// A place in people's notation: `[agents.<id>.limits]`.
fn title(place: &str) -> String {
    let is_list =
        schema::TOP.key(place).is_some_and(Key::is_list_of_tables) || place == "agents.*.jobs";
    let id = if place.starts_with("agents.") {
        "<id>"
    } else {
        "<name>"
    };
    let named = place.replace('*', id);
    match is_list {
        true => format!("[[{named}]]"),
        false => format!("[{named}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_wrong_place_is_told_where_it_belongs() {
        let check = |shape: &Shape, key: &str, expected: &str| {
            assert_eq!(advice(shape, key, None), expected);
        };
        check(
            &schema::ACCESS,
            "default_model",
            "`default_model` belongs at the top of the file, above the first [section]",
        );
        check(
            &schema::ACCESS,
            "defualt_model",
            "did you mean `default_model`? It belongs at the top of the file, above the first [section]",
        );
        check(
            &schema::DISCORD,
            "proxy",
            "`proxy` belongs under [telegram] or [providers.<name>]",
        );
        check(
            &schema::AGENT,
            "models",
            "did you mean `model`? `models` belongs under [providers.<name>]",
        );
        check(&schema::ACCESS, "owner", "did you mean `owners`?");
        check(
            &schema::TELEGRAM,
            "owners",
            "`owners` belongs under [access]",
        );
        check(
            &schema::TELEGRAM,
            "bindings",
            "`bindings` is a section of its own: `[[bindings]]`",
        );
        check(
            &schema::AGENT,
            "match",
            "`match` belongs under [[bindings]]",
        );
        check(
            &schema::AGENT,
            "max_steps",
            "`max_steps` belongs under [agents.<id>.limits]",
        );
        check(
            &schema::TOP,
            "openrouter",
            "a provider is written as [providers.openrouter]",
        );
    }

    /// Whatever key is written in whatever table: the advice names a table that has the key.
    #[test]
    fn every_key_is_found_from_every_table() {
        for (_, shape) in PLACES {
            for (place, other) in PLACES.iter().filter(|(place, _)| !place.contains('|')) {
                for key in other.names().filter(|key| shape.key(key).is_none()) {
                    let told = advice(shape, key, None);
                    let top = "belongs at the top of the file";
                    let is_slip = is_only_below(shape, key) && told.starts_with("did you mean");
                    let is_told = is_slip
                        || told.contains(&title(place))
                        || told.contains(top)
                        || told.contains("is a section of its own");
                    assert!(is_told, "`{key}` in {}: {told}", shape.name);
                    assert_eq!(
                        told.contains(top),
                        schema::TOP.key(key).is_some_and(|key| !key.is_table())
                    );
                }
            }
        }
    }
}
