//! Requests, answers and errors as they cross the wire.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::routes::Route;

/// A call of the bot, read and sorted.
pub(super) struct Request {
    pub(super) route: Route,
    /// The variable parts of the path, in order.
    pub(super) variables: Vec<String>,
    pub(super) query: HashMap<String, String>,
    /// The JSON body, or `payload_json` of a multipart body; `Null` without one.
    pub(super) body: Value,
    pub(super) files: Vec<UploadedFile>,
    pub(super) user_agent: String,
}

impl Request {
    /// A variable of the path as an id; one that is no number names nothing.
    pub(super) fn id(&self, position: usize) -> u64 {
        self.variables
            .get(position)
            .and_then(|part| part.parse().ok())
            .unwrap_or(0)
    }

    pub(super) fn variable(&self, position: usize) -> &str {
        self.variables.get(position).map_or("", String::as_str)
    }
}

/// A `files[n]` part.
#[derive(Clone)]
pub(super) struct UploadedFile {
    /// The `n`.
    pub(super) index: String,
    pub(super) filename: String,
    pub(super) content_type: Option<String>,
    pub(super) content: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum Answer {
    Json(Value),
    NoContent,
}

#[derive(Debug)]
pub(super) struct ApiError {
    pub(super) status: u16,
    code: u32,
    message: String,
    errors: Option<Value>,
}

impl ApiError {
    pub(super) fn new(status: u16, code: u32, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            errors: None,
        }
    }

    /// 50035 with the field that is wrong, such as `content`.
    pub(super) fn form(field: &str, code: &str, message: &str) -> Self {
        let mut errors = json!({ "_errors": [{ "code": code, "message": message }] });
        for part in field.rsplit('.') {
            errors = json!({ part: errors });
        }
        Self {
            status: 400,
            code: 50035,
            message: "Invalid Form Body".into(),
            errors: Some(errors),
        }
    }

    pub(super) fn json(&self) -> Value {
        let mut body = json!({ "message": self.message, "code": self.code });
        if let Some(errors) = &self.errors {
            body["errors"] = errors.clone();
        }
        body
    }
}

pub(super) type Result<T> = std::result::Result<T, ApiError>;

/// An id, written as text or as a number.
pub(super) fn id_in(value: &Value, name: &str) -> Option<u64> {
    let value = value.get(name)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(super) fn utf16_len(text: &str) -> usize {
    text.encode_utf16().count()
}
