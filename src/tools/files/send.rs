//! `file_send`: a file of the workspace for the people of the place.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Failure, PATHS, failed, find, in_background};
use crate::agents::{FileError, Want};
use crate::channels::outgoing;
use crate::models::ToolSpec;
use crate::tools::{Effect, Outcome, Reach, Risk, Scope, Tool, read_arguments};

/// The longest caption. Telegram's limit is the lowest of all platforms.
const MAX_CAPTION_CHARS: usize = 1000;

pub(super) struct FileSend;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    caption: Option<String>,
}

#[async_trait]
impl Tool for FileSend {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "file_send".into(),
            description: format!(
                "Sends a file to the people in this chat, after your answer: pictures as pictures, everything else as a file. {PATHS}"
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "caption": { "type": "string", "description": "A line to stand under it." },
                },
                "required": ["path"],
                "additionalProperties": false,
            })
            .into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Reach
    }

    /// The people of the turn's place get the file.
    fn reach(&self, _scope: &Scope, _arguments: &Value) -> Option<Reach> {
        None
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        let Arguments { path, caption } = match read_arguments(arguments) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        let Some(max_bytes) = scope.place.platform().map(outgoing::max_bytes) else {
            return Outcome::say("Nobody is in this place to send a file to.");
        };
        let (agent, files, told) = (scope.agent.clone(), scope.files(), path.clone());
        let copied = in_background(scope, move || {
            let found = find(&files, &path, Want::Read)?;
            let (file, metadata) = found
                .workspace
                .open(&found.path)
                .map_err(|error| failed(&path, &error))?;
            let bytes = metadata.len();
            if bytes > max_bytes {
                return Err(failed(&path, &FileError::TooLarge { bytes, max_bytes }));
            }
            let original = found.workspace.root().join(&found.path);
            let copied = outgoing::store(&agent.home, file, &original, max_bytes);
            copied.map_err(|error| Failure::Said(format!("`{path}` was not sent: {error}.")))
        });
        match copied.await {
            Ok(mut file) => {
                file.caption = caption
                    .map(|caption| caption.trim().chars().take(MAX_CAPTION_CHARS).collect())
                    .filter(|caption: &String| !caption.is_empty());
                let text = format!(
                    "`{told}` ({} bytes) will be sent after your answer.",
                    file.bytes
                );
                Outcome {
                    effects: vec![Effect::SendFile(file)],
                    ..Outcome::say(text)
                }
            }
            Err(text) => Outcome::say(text),
        }
    }
}
