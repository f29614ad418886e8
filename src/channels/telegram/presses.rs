//! Pressed buttons that Telegram waits for an answer to. A press is answered once: with a pop-up
//! that only its person sees, or with nothing.

use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::oneshot;

/// How long the person sees a clock on the button, if nothing is decided. Telegram takes no answer
/// after about fifteen seconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// When full, further presses are answered at once.
const MOST_OPEN: usize = 10_000;

/// Presses without an answer, by the id of the query.
#[derive(Default)]
pub(super) struct Presses {
    open: DashMap<String, oneshot::Sender<()>>,
}

impl Presses {
    /// Notes a press before its command is read. None: the press must be answered at once.
    pub(super) fn note(&self, query: &str) -> Option<oneshot::Receiver<()>> {
        if self.open.len() >= MOST_OPEN {
            return None;
        }
        let (sender, settled) = oneshot::channel();
        self.open.insert(query.to_owned(), sender);
        Some(settled)
    }

    /// Waits until the press can be answered with nothing. False if a pop-up answers it.
    pub(super) async fn is_plain(&self, query: &str, settled: oneshot::Receiver<()>) -> bool {
        match tokio::time::timeout(PATIENCE, settled).await {
            Ok(settled) => settled.is_ok(),
            Err(_) => self.take(query),
        }
    }

    /// The command of the press is carried out.
    pub(super) fn settle(&self, query: &str) {
        if let Some((_, sender)) = self.open.remove(query) {
            // A press that ran out of patience is answered already.
            let _ = sender.send(());
        }
    }

    /// Takes over the answer. False if the press has its answer, or came to an earlier process.
    pub(super) fn take(&self, query: &str) -> bool {
        self.open.remove(query).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_press_is_answered_once() {
        let presses = Presses::default();
        let note = |query| presses.note(query).expect("there is room");
        let pop_up = note("a");
        assert!(presses.take("a"), "the pop-up answers");
        assert!(!presses.is_plain("a", pop_up).await);
        let done = note("b");
        presses.settle("b");
        assert!(presses.is_plain("b", done).await && !presses.take("b"));
        let slow = note("c");
        assert!(presses.is_plain("c", slow).await, "patience ran out");
        assert!(!presses.take("c"));
    }
}
