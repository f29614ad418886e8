//! Has the running gateway read its config anew.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Link, Live, Operations, Refusal, status};
use crate::clock::now_ms;
use crate::domain::Platform;
use crate::home::Reload;
use crate::records::audit::{self, Action, Actor, Change};

/// The sections that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reloaded {
    pub(crate) changed: Vec<String>,
    /// Platforms that are connected anew, those included that had refused the bot.
    pub(crate) reconnected: Vec<Platform>,
    /// Platforms that refuse the bot, with the reason: new settings, or the old ones once more.
    pub(crate) refused: Vec<(Platform, String)>,
}

/// A platform answers a new connection within this time, or the asker is told without its answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(super) async fn run(operations: &Operations, actor: &Actor) -> Result<Reloaded, Refusal> {
    let Some(live) = &operations.live else {
        return Err(Refusal::failed(format!(
            "no gateway runs on {}, so there is nothing to reload",
            operations.home.display()
        ))
        .hint("the next start reads config.toml; `parlor config check` looks at it now"));
    };
    // A reload tries these again, also where their settings are the same.
    let were_off = |platform: &Platform| live.pulse.refusal(*platform).is_some();
    let were_off: Vec<Platform> = Platform::ALL.into_iter().filter(were_off).collect();
    let before = |platform| live.pulse.connections(platform);
    let before = Platform::ALL.map(|platform| (platform, before(platform)));
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
            refused: Vec::new(),
        }),
        Some(Reload::Done { changed, renewed }) => {
            let (by, after) = (actor.clone(), changed.join(" "));
            let note = move |tx: &rusqlite::Transaction<'_>| {
                let change = Change::new(Action::Reload).to(after);
                audit::note(tx, &by, &change, now_ms())
            };
            operations.db.write(note).await?;
            // A message that asks may hold up the very connection that it would wait for.
            let again = were_off.into_iter().filter(|it| !renewed.contains(it));
            let again: Vec<Platform> = again.collect();
            let tried = [renewed.as_slice(), &again].concat();
            let refused = match actor {
                Actor::Cli { .. } => refusals(operations, live, &tried, &before).await,
                _ => Vec::new(),
            };
            let refuses = |platform: &Platform| refused.iter().any(|(it, _)| it == platform);
            let back = again.into_iter().filter(|platform| !refuses(platform));
            Ok(Reloaded {
                changed,
                reconnected: renewed.into_iter().chain(back).collect(),
                refused,
            })
        }
    }
}

/// Waits until each platform is connected, or refuses the bot.
async fn refusals(
    operations: &Operations,
    live: &Live,
    renewed: &[Platform],
    before: &[(Platform, u64)],
) -> Vec<(Platform, String)> {
    let is_settled = |platform: &Platform| {
        let is_new = |(of, count): &(Platform, u64)| {
            of == platform && live.pulse.connections(*platform) > *count
        };
        let state = status::gateway(operations, live);
        let mut known = state.platforms.iter();
        match known.find(|known| known.platform == *platform) {
            // A connection without messages may still become a refusal.
            Some(known) => {
                let is_over =
                    known.state == Link::Connected || live.pulse.refusal(*platform).is_some();
                is_over && before.iter().any(is_new)
            }
            // The config names it no more.
            None => true,
        }
    };
    let settled = async {
        while !renewed.iter().all(is_settled) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    drop(tokio::time::timeout(ANSWERS_WITHIN, settled).await);
    let refused = renewed.iter().filter_map(|platform| {
        let reason = live.pulse.refusal(*platform)?;
        Some((*platform, reason))
    });
    refused.collect()
}

/// For the log.
fn cause(actor: &Actor) -> String {
    match actor {
        Actor::Cli { login } => format!("parlor reload by {login}"),
        Actor::Person { id, .. } => format!("/reload by {id}"),
        _ => "parlor reload".to_owned(),
    }
}
