//! `openclaw.json`: JSON5 with includes.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use crate::moving::report::Kind;
use crate::moving::source::Source;

/// The deepest chain of included files.
const MAX_INCLUDES: usize = 10;
/// Brackets inside brackets. The reader of JSON5 needs stack for each.
const MAX_NESTING: usize = 200;
/// Names of the file, the newest first.
const NAMES: [&str; 3] = ["openclaw.json", "moltbot.json", "clawdbot.json"];

/// The settings, with the settings of included files. None without a file; an unreadable file is
/// noted.
pub(super) fn load(source: &Source) -> Option<Value> {
    let tree = &source.tree;
    let mut names = NAMES.iter().map(Path::new);
    let path = names.find(|name| tree.what(name).is_ok_and(|what| what.is_some()))?;
    read(source, path, 0).or_else(|| Some(Value::Object(Map::new())))
}

fn read(source: &Source, path: &Path, depth: usize) -> Option<Value> {
    let text = source.text(&source.tree, path)?;
    match parse(&text) {
        Ok(value) => Some(include(source, value, path, depth)),
        Err(error) => {
            source.left(Kind::File, path.display().to_string(), error);
            None
        }
    }
}

pub(in crate::moving) fn parse(text: &str) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err("it is nested too deeply".to_owned());
        }
    }
    json5::from_str(text).map_err(|error| format!("it cannot be read: {error}"))
}

/// Puts included files in: `{ $include: "a.json5", … }`. Keys beside an include count more.
fn include(source: &Source, value: Value, path: &Path, depth: usize) -> Value {
    let Value::Object(mut object) = value else {
        return value;
    };
    let named = match object.remove("$include") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    };
    let mut whole = Value::Object(Map::new());
    for name in named {
        let within = path.parent().unwrap_or(Path::new("")).join(&name);
        let plain = plain(&within).filter(|_| depth < MAX_INCLUDES);
        match plain.and_then(|path| read(source, &path, depth + 1)) {
            Some(included) => merge(&mut whole, included),
            None => source.left(Kind::File, name, "this included file cannot be read"),
        }
    }
    for (key, inner) in object {
        let inner = include(source, inner, path, depth);
        let single = Value::Object(Map::from_iter([(key, inner)]));
        merge(&mut whole, single);
    }
    whole
}

/// A path without `..`, and so inside the folder.
fn plain(path: &Path) -> Option<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let parts: Vec<Component<'_>> = parts.collect();
    let is_plain = |part: &Component<'_>| matches!(part, Component::Normal(_));
    parts.iter().all(is_plain).then(|| parts.iter().collect())
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_deep_nesting() {
        let text = "{ // hi\n a: 'b', /* x */ list: [1, 2,], }";
        assert_eq!(parse(text).unwrap()["list"][1], 2);
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&"{a:".repeat(100_000)).is_err());
        assert!(parse("{ a: ").is_err());
    }
}
