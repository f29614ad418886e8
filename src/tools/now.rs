//! The date and time.

use async_trait::async_trait;
use chrono::Local;
use serde_json::{Value, json};

use super::{Outcome, Risk, Scope, Tool};
use crate::models::ToolSpec;

pub(super) struct Now;

#[async_trait]
impl Tool for Now {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "now".into(),
            description: "The current date, weekday, time and UTC offset on the gateway's machine."
                .into(),
            parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    async fn call(&self, _scope: &Scope, _arguments: Value) -> Outcome {
        Outcome::say(Local::now().format("%Y-%m-%d %A %H:%M:%S %:z").to_string())
    }
}
