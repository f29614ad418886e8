//! Parameters and errors as they cross the wire.

use std::fmt::Display;

use serde_json::{Value, json};

pub(super) struct ApiError {
    pub(super) status: u16,
    description: String,
    parameters: Option<Value>,
}

impl ApiError {
    pub(super) fn new(status: u16, description: impl Into<String>) -> Self {
        Self {
            status,
            description: description.into(),
            parameters: None,
        }
    }

    pub(super) fn with_parameters(self, parameters: Value) -> Self {
        Self {
            parameters: Some(parameters),
            ..self
        }
    }

    pub(super) fn json(&self) -> Value {
        let mut body =
            json!({ "ok": false, "error_code": self.status, "description": self.description });
        if let Some(parameters) = &self.parameters {
            body["parameters"] = parameters.clone();
        }
        body
    }
}

pub(super) fn bad_request<T>(what: impl Display) -> Result<T, ApiError> {
    Err(ApiError::new(400, format!("Bad Request: {what}")))
}

/// A whole number, also one written as text.
pub(super) fn int(params: &Value, name: &str) -> Option<i64> {
    let value = params.get(name)?;
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

pub(super) fn text<'a>(params: &'a Value, name: &str) -> &'a str {
    params.get(name).and_then(Value::as_str).unwrap_or("")
}

pub(super) fn list(params: &Value, name: &str) -> Vec<Value> {
    params
        .get(name)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}
