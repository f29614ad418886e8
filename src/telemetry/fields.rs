//! The fields of events and spans, gathered for a line.

use std::fmt;

use serde_json::{Number, Value};
use tracing::field::{Field, Visit};

/// The fields of an event or a span.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    pub(super) agent: Option<String>,
    pub(super) message: String,
    /// The other fields by their names in a line, in the order of the code.
    pub(super) others: Vec<(&'static str, Value)>,
}

/// The name of a field in a line, if different from the name in the code.
fn shown_as(name: &'static str) -> &'static str {
    match name {
        "inbox.id" => "ref",
        "parent.agent" => "parent",
        "route.rule" => "rule",
        name => name,
    }
}

impl Fields {
    /// A later value takes the place of an earlier value.
    pub(super) fn put(&mut self, name: &'static str, value: Value) {
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        match name {
            "message" => self.message = text(value),
            "agent.id" => self.agent = Some(text(value)),
            name => {
                let name = shown_as(name);
                match self.others.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => *known = value,
                    None => self.others.push((name, value)),
                }
            }
        }
    }

    /// Takes over the fields of the span around, as far as they are missing here.
    pub(super) fn inherit(&mut self, around: &Fields) {
        if self.agent.is_none() {
            self.agent.clone_from(&around.agent);
        }
        for (name, value) in &around.others {
            if !self.others.iter().any(|(known, _)| known == name) {
                self.others.push((name, value.clone()));
            }
        }
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        let number = Number::from_f64(value).map_or(Value::Null, Value::Number);
        self.put(field.name(), number);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format!("{value:?}").into());
    }
}
