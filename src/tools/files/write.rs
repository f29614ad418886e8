//! `file_write`: a whole file, new or in place of another.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Failure, MAX_FILE_BYTES, PATHS, failed, find, reach, run};
use crate::agents::{FileError, FileView, Want};
use crate::models::ToolSpec;
use crate::tools::{Outcome, Reach, Risk, Scope, Tool};

pub(super) struct FileWrite;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

#[async_trait]
impl Tool for FileWrite {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "file_write".into(),
            description: format!(
                "Writes a text file, in place of what was there. Folders are made as needed. {PATHS}"
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "content": { "type": "string", "description": "The whole new content." },
                },
                "required": ["path", "content"],
                "additionalProperties": false,
            })
            .into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Change
    }

    fn reach(&self, _scope: &Scope, arguments: &Value) -> Option<Reach> {
        reach(arguments)
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        run(scope, arguments, write).await
    }
}

fn write(files: &FileView, Arguments { path, content }: Arguments) -> Result<Outcome, Failure> {
    let found = find(files, &path, Want::Write)?;
    let bytes = content.len() as u64;
    if bytes > MAX_FILE_BYTES {
        return Err(failed(
            &path,
            &FileError::TooLarge {
                bytes,
                max_bytes: MAX_FILE_BYTES,
            },
        ));
    }
    found
        .workspace
        .write(&found.path, content.as_bytes())
        .map_err(|error| failed(&path, &error))?;
    let told = format!("Wrote {bytes} bytes to `{path}`.");
    Ok(Outcome::say(told).wrote(path))
}
