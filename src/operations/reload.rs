//! Has the running gateway read its config anew.

use serde::{Deserialize, Serialize};

use super::{Operations, Refusal};
use crate::clock::now_ms;
use crate::domain::Platform;
use crate::home::Reload;
use crate::records::audit::{self, Action, Actor, Change};

/// The sections that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reloaded {
    pub(crate) changed: Vec<String>,
    /// Platforms that are connected anew.
    pub(crate) reconnected: Vec<Platform>,
}

pub(super) async fn run(operations: &Operations, actor: &Actor) -> Result<Reloaded, Refusal> {
    let Some(live) = &operations.live else {
        return Err(Refusal::failed(format!(
            "no gateway runs on {}, so there is nothing to reload",
            operations.home.display()
        ))
        .hint("the next start reads config.toml; `parlor config check` looks at it now"));
    };
    match live.reload.ask(cause(actor)).await {
        None => Err(Refusal::failed(
            "the gateway is stopping; its next start reads config.toml",
        )),
        Some(Reload::Refused(problem)) => Err(Refusal::failed(format!(
            "the running config stays as it was:\n{}",
            problem.trim_end()
        ))),
        Some(Reload::Same) => Ok(Reloaded {
            changed: Vec::new(),
            reconnected: Vec::new(),
        }),
        Some(Reload::Done { changed, renewed }) => {
            let (by, after) = (actor.clone(), changed.join(" "));
            let note = move |tx: &rusqlite::Transaction<'_>| {
                let change = Change::new(Action::Reload).to(after);
                audit::note(tx, &by, &change, now_ms())
            };
            operations.db.write(note).await?;
            Ok(Reloaded {
                changed,
                reconnected: renewed,
            })
        }
    }
}

/// For the log.
fn cause(actor: &Actor) -> String {
    match actor {
        Actor::Cli { login } => format!("parlor reload by {login}"),
        Actor::Person { id, .. } => format!("/reload by {id}"),
        _ => "parlor reload".to_owned(),
    }
}
