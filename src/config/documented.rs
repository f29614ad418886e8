//! The meaning of each key in words, read from `config.example.toml`. Tests keep that file complete
//! and true, so the book and the schema for editors say the same as the file.

use super::schema::PLACES;

/// The file that shows every key, with comments.
const EXAMPLE: &str = include_str!("../../config.example.toml");

/// Keys inside of a line in the example file, where comments have no room.
const INLINE: [(&str, &str); 5] = [
    ("input", "Money for a million tokens that the model reads."),
    (
        "output",
        "Money for a million tokens that the model writes.",
    ),
    (
        "cached",
        "Money for a million tokens that the provider had in its cache. Without the key, they cost as much as `input`.",
    ),
    ("env", "The environment variable that has the secret."),
    (
        "file",
        "The file that has the secret. A relative path begins in the home folder.",
    ),
];

/// A key in the example file.
pub struct Shown {
    /// The table of the key, with a star for each name that the operator chooses.
    place: String,
    key: String,
    /// The value in TOML.
    pub value: String,
    comment: String,
}

impl Shown {
    fn comment(&self) -> &str {
        &self.comment
    }
}

/// The example file, read line by line.
#[derive(Default)]
pub struct Documented {
    keys: Vec<Shown>,
    /// The comment above a table, by the table's place.
    tables: Vec<(String, String)>,
}

impl Documented {
    pub fn read() -> Self {
        let (mut documented, mut place, mut comment) =
            (Documented::default(), String::new(), Vec::new());
        for line in EXAMPLE.lines().filter(|line| !is_for_programs(line)) {
            if let Some(words) = line.strip_prefix('#') {
                comment.push(words.trim());
            } else if line.starts_with('[') {
                place = starred(line.trim_matches(['[', ']']));
                documented.tables.push((place.clone(), comment.join(" ")));
                comment.clear();
            } else if let Some((key, value)) = line.split_once(" = ") {
                let comment = std::mem::take(&mut comment).join(" ");
                documented.keys.push(Shown {
                    place: place.clone(),
                    key: key.to_owned(),
                    value: value.to_owned(),
                    comment,
                });
            } else {
                comment.clear();
            }
        }
        documented
    }

    pub fn key(&self, place: &str, key: &str) -> Option<&Shown> {
        self.keys
            .iter()
            .find(|shown| shown.place == place && shown.key == key)
    }

    /// The comment about a key: at the key, at a key of the same name elsewhere, or at a key
    /// above in the same table.
    pub fn meaning(&self, place: &str, key: &str) -> Option<&str> {
        let told = |shown: &&Shown| !shown.comment.is_empty();
        let own = self.key(place, key).filter(told);
        let namesake = || self.keys.iter().filter(told).find(|shown| shown.key == key);
        let above = || {
            let at = self
                .keys
                .iter()
                .position(|shown| shown.place == place && shown.key == key)?;
            let above = self.keys[..at].iter().rev();
            above.take_while(|shown| shown.place == place).find(told)
        };
        let inline = INLINE
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, meaning)| *meaning);
        let elsewhere = || namesake().or_else(above).map(Shown::comment);
        own.map(Shown::comment).or(inline).or_else(elsewhere)
    }

    /// The comment above a table, or an empty text.
    pub fn about(&self, place: &str) -> &str {
        let at = |place: &str| self.tables.iter().find(|(name, _)| name == place);
        // Prices stand in a single table, with a line for each model.
        let table = at(place).or_else(|| at(place.trim_end_matches(".*")));
        table.map_or("", |(_, comment)| comment)
    }
}

/// `#:schema …` is a line for editors.
fn is_for_programs(line: &str) -> bool {
    line.starts_with("#:")
}

/// The table with `*` in place of a name chosen by the operator.
fn starred(table: &str) -> String {
    let named = PLACES
        .iter()
        .filter_map(|(place, _)| place.split_once(".*").map(|(group, _)| group));
    let steps: Vec<&str> = table.split('.').collect();
    match named.into_iter().find(|group| *group == steps[0]) {
        Some(group) => [&[group, "*"], &steps[2..]].concat().join("."),
        None => table.to_owned(),
    }
}
