//! The passing part of a browser's view while a turn runs: the agent at work, and its words so far.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

use crate::domain::SessionKey;

/// Changes in the queue of a browser. A slow browser may miss some changes: each has all words so
/// far.
const QUEUE: usize = 256;

/// A change of the view of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) place: SessionKey,
    /// None: nothing runs here any more.
    pub(crate) preview: Option<Preview>,
}

/// A running turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Preview {
    /// The label of the agent, from its first words on.
    pub(crate) speaker: Option<String>,
    /// The words so far.
    pub(crate) text: String,
    /// Why there is nothing to read yet.
    pub(crate) remark: Option<String>,
}

/// A plain lock: every section is a look at a single entry, and none awaits.
pub(super) struct Live {
    running: Mutex<HashMap<SessionKey, Preview>>,
    changes: broadcast::Sender<Sight>,
}

impl Default for Live {
    fn default() -> Self {
        Live {
            running: Mutex::default(),
            changes: broadcast::Sender::new(QUEUE),
        }
    }
}

impl Live {
    pub(super) fn watch(&self) -> (Vec<Sight>, broadcast::Receiver<Sight>) {
        let running = self.running();
        let changes = self.changes.subscribe();
        let now = running.iter().map(|(place, preview)| Sight {
            place: place.clone(),
            preview: Some(preview.clone()),
        });
        (now.collect(), changes)
    }

    pub(super) fn begin(&self, place: &SessionKey) {
        self.change(place, |preview| *preview = Preview::default());
    }

    pub(super) fn add(&self, place: &SessionKey, speaker: &str, text: &str) {
        self.change(place, |preview| {
            preview.speaker = Some(speaker.to_owned());
            preview.text.push_str(text);
            preview.remark = None;
        });
    }

    pub(super) fn remark(&self, place: &SessionKey, text: &str) {
        self.change(place, |preview| preview.remark = Some(text.to_owned()));
    }

    pub(super) fn clear(&self, place: &SessionKey) {
        if self.running().remove(place).is_some() {
            self.tell(place, None);
        }
    }

    fn change(&self, place: &SessionKey, change: impl FnOnce(&mut Preview)) {
        let preview = {
            let mut running = self.running();
            let preview = running.entry(place.clone()).or_default();
            change(preview);
            preview.clone()
        };
        self.tell(place, Some(preview));
    }

    fn tell(&self, place: &SessionKey, preview: Option<Preview>) {
        let place = place.clone();
        // There may be no browser.
        drop(self.changes.send(Sight { place, preview }));
    }

    fn running(&self) -> MutexGuard<'_, HashMap<SessionKey, Preview>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
