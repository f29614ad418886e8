//! A call with a file in it, written as `multipart/form-data`.
//!
//! <https://core.telegram.org/bots/api#sending-files>

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// A file to send. Its name is ours, so that it needs no escaping.
pub(super) struct File<'a> {
    /// The parameter it is given as.
    pub(super) field: &'static str,
    pub(super) name: &'static str,
    pub(super) content: &'a str,
}

pub(super) struct Form {
    pub(super) content_type: String,
    pub(super) body: String,
}

impl Form {
    /// Parameters that are no text are written as JSON, as the Bot API wants them outside of JSON.
    pub(super) fn new(parameters: &impl Serialize, file: &File<'_>) -> Self {
        // Random, so that no text can contain it.
        let boundary = Uuid::new_v4().simple().to_string();
        let mut body = String::new();
        if let Value::Object(parameters) = serde_json::to_value(parameters).expect("text and numbers are JSON") {
            for (name, value) in parameters {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                body += &format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n");
            }
        }
        let File { field, name, content } = file;
        body += &format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
             Content-Type: text/markdown; charset=utf-8\r\n\r\n{content}\r\n--{boundary}--\r\n"
        );
        Form { content_type: format!("multipart/form-data; boundary={boundary}"), body }
    }
}
