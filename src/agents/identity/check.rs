//! Checks on the disk whether the config's `personality` files exist.

use std::fs;
use std::path::Path;

use super::read_start;
use crate::config::{AgentSpec, Config, Problem, Spanned};

/// A file that goes missing later is told by `parlor agent info`, and the agent answers without a
/// soul.
pub fn check_personalities(config: &Config, home: &Path) -> Vec<Problem> {
    config
        .agents
        .iter()
        .filter_map(|spec| unreadable(spec, spec.personality.as_ref()?, home))
        .collect()
}

fn unreadable(spec: &AgentSpec, personality: &Spanned<String>, home: &Path) -> Option<Problem> {
    let shown = format!("agents/{}/{}", spec.id, personality.value);
    let path = home.join(&shown);
    let read = fs::metadata(&path).and_then(|metadata| read_start(&path, &metadata));
    let error = read.err()?;
    let (message, label) = match error.kind() {
        std::io::ErrorKind::NotFound => (
            format!("the file {shown} does not exist"),
            "no such file in the agent's folder".to_owned(),
        ),
        _ => (format!("{shown} cannot be read"), error.to_string()),
    };
    let problem = Problem::new(personality.span.clone(), message).label(label);
    Some(problem.help("write the file, or delete the line to use SOUL.md"))
}
