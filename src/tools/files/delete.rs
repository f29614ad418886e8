//! `file_delete`: deletes a file or an empty folder, because an agent must be able to tidy a full
//! workspace.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Failure, PATHS, failed, find, reach, run};
use crate::agents::{FileView, Want};
use crate::models::ToolSpec;
use crate::tools::{Outcome, Reach, Risk, Scope, Tool};

pub(super) struct FileDelete;

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

#[async_trait]
impl Tool for FileDelete {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "file_delete".into(),
            description: format!("Deletes a file or an empty folder, for good. {PATHS}"),
            parameters: json!({
                "type": "object",
                "properties": { "path": { "type": "string" } },
                "required": ["path"],
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
        run(scope, arguments, delete).await
    }
}

fn delete(files: &FileView, Arguments { path }: Arguments) -> Result<String, Failure> {
    let found = find(files, &path, Want::Write)?;
    found
        .workspace
        .remove(&found.path)
        .map_err(|error| failed(&path, &error))?;
    Ok(format!("Deleted `{path}`."))
}
