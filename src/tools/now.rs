//! The date and time.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Outcome, Risk, Scope, Tool};
use crate::clock::now_ms;
use crate::models::ToolSpec;

pub(super) struct Now;

#[async_trait]
impl Tool for Now {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "now".into(),
            description: "The current date, weekday, time and UTC offset where you are.".into(),
            parameters:
                json!({ "type": "object", "properties": {}, "additionalProperties": false }).into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    async fn call(&self, scope: &Scope, _arguments: Value) -> Outcome {
        let now = scope.agent.zone.at(now_ms());
        Outcome::say(now.format("%Y-%m-%d %A %H:%M:%S %:z").to_string())
    }
}
