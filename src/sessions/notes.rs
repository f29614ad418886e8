//! What is kept in the transcript and not answered, such as an edit that came after the answer.

use super::Inner;
use super::inbox::{self, Accepted, Closing};
use super::parts;
use super::transcript::{self, Spot};
use crate::clock::now_ms;
use crate::storage::StoreError;

/// In the place's lane, so that it stands behind the message it is about.
pub(super) async fn keep(inner: &Inner, accepted: &Accepted) -> Result<(), StoreError> {
    let accepted = accepted.clone();
    let write = move |tx: &rusqlite::Transaction<'_>| {
        let (now, place) = (now_ms(), &accepted.inbound.origin.key);
        transcript::touch(tx, place, now)?;
        let part = accepted.inbound.besides.note.map_or(Ok(None), |note| parts::of_note(tx, &accepted.inbound, note))?;
        let spot = Spot { conversation: transcript::conversation(tx, place)?, part };
        transcript::append_person(tx, &accepted, spot, now)?;
        inbox::close(tx, accepted.id, Closing::Done, "noted", now)
    };
    inner.parts.db.write(write).await
}
