//! Follows a group into its supergroup, and tells the owners what to change in config.toml.

use std::sync::Arc;

use rusqlite::Transaction;
use tokio::sync::mpsc;

use super::GatewayState;
use crate::clock::now_ms;
use crate::delivery::outbox::Source;
use crate::delivery::{MovedAway, outbox};
use crate::domain::{Arrival, Moved};
use crate::records::group_migration::{self, Followed};
use crate::storage::StoreError;

/// A move to be stored, with the notice for the owners if the move is news.
pub(super) struct Move {
    moved: Moved,
    lines: Vec<usize>,
    notice: Vec<outbox::Draft>,
}

/// Follows moves reported by sends, until delivery stops.
pub(super) async fn watch(state: Arc<GatewayState>, mut moves: mpsc::Receiver<MovedAway>) {
    loop {
        let MovedAway { moved, done } = tokio::select! {
            Some(told) = moves.recv() => told,
            () = state.delivery.stopped() => return,
        };
        match follow(&state, moved).await {
            // The sender may have stopped waiting.
            Ok(()) => drop(done.send(())),
            Err(error) => tracing::error!("a group's move could not be stored: {error}"),
        }
    }
}

async fn follow(state: &GatewayState, moved: Moved) -> Result<(), StoreError> {
    let known = Arc::new(prepare(state, moved).await);
    let own = known.clone();
    let followed = state.services.db.write(move |tx| own.write(tx)).await?;
    known.go_on(state, &followed);
    Ok(())
}

/// The moves among the arrivals.
pub(super) async fn among(state: &GatewayState, arrivals: &[Arrival]) -> Vec<Move> {
    let mut moves = Vec::new();
    for arrival in arrivals {
        if let Arrival::Moved(moved) = arrival {
            moves.push(prepare(state, *moved).await);
        }
    }
    moves
}

async fn prepare(state: &GatewayState, moved: Moved) -> Move {
    let config = tokio::fs::read_to_string(state.home.join("config.toml"))
        .await
        .unwrap_or_default();
    let lines = lines_with(&config, &moved.old.to_string());
    let notice = state.delivery.draft_for_owners(&became(moved, &lines));
    Move {
        moved,
        lines,
        notice,
    }
}

impl Move {
    /// The owners' notice is written with the move, so there is a single notice.
    pub(super) fn write(&self, tx: &Transaction<'_>) -> rusqlite::Result<Followed> {
        let followed = group_migration::follow(tx, self.moved, now_ms())?;
        if followed.is_news {
            outbox::insert(tx, &self.notice, Source::default(), now_ms())?;
        }
        Ok(followed)
    }

    pub(super) fn moved(&self) -> Moved {
        self.moved
    }

    /// Call after the move is committed.
    pub(super) fn go_on(&self, state: &GatewayState, followed: &Followed) {
        state.aliases.learn(self.moved);
        state.pins.all_changed();
        state.services.sessions.moved();
        followed
            .open
            .iter()
            .for_each(|(place, rows)| state.delivery.submit(place, *rows));
        if followed.is_news {
            tracing::warn!(config.lines = ?self.lines, "the group {} is now the supergroup {}", self.moved.old, self.moved.new);
            state.delivery.submit_drafted(&self.notice);
        }
    }
}

/// Line numbers from 1. Comment lines do not count.
fn lines_with(config: &str, chat: &str) -> Vec<usize> {
    let names_it = |line: &str| {
        line.match_indices(chat)
            .any(|(at, _)| !line[at + chat.len()..].starts_with(|c: char| c.is_ascii_digit()))
    };
    let lines = config
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with('#') && names_it(line));
    lines.map(|(index, _)| index + 1).collect()
}

fn became(Moved { old, new }: Moved, lines: &[usize]) -> String {
    let told = format!(
        "The group `telegram:group:{old}` is now the supergroup `telegram:group:{new}`. Everything here goes on in it"
    );
    match lines {
        [] => format!("{told}."),
        lines => {
            let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
            let noun = if lines.len() == 1 { "line" } else { "lines" };
            format!(
                "{told}, and bindings still count. Please write `{new}` for `{old}` in config.toml, {noun} {}.",
                lines.join(", ")
            )
        }
    }
}

/// For the owners, if a move cannot be stored.
pub(super) fn not_followed(Moved { old, new }: Moved) -> String {
    format!(
        "The group `telegram:group:{old}` is now the supergroup `telegram:group:{new}`, but its conversations could not be taken along; \
         the log says why. Bind `telegram:group:{new}` in config.toml to go on there with a fresh conversation."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_the_old_group_are_found() {
        let config = "[[bindings]]\nmatch = \"telegram:group:-5\"\n# telegram:group:-5\nmatch = \"telegram:group:-5:222\"\nmatch = \"telegram:group:-55\"\n";
        assert_eq!(lines_with(config, "-5"), [2, 4]);
    }
}
