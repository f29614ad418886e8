//! Tells owners once, in private, when a provider begins to refuse and when it answers again.

use rusqlite::Transaction;

use super::texts::{began_to_refuse, works_again};
use crate::clock::now_ms;
use crate::delivery::outbox::Source;
use crate::delivery::{Delivery, outbox};
use crate::domain::SessionKey;
use crate::models::{ModelError, Models, News};
use crate::records::provider_notices::{self, Verdict};
use crate::storage::{Db, Durability, StoreError};

/// Tells owners about providers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ProviderNews {
    pub(super) db: Db,
    pub(super) delivery: Delivery,
}

impl ProviderNews {
    /// Tells what has changed. The place `seen_in` has just seen the change itself.
    pub(crate) async fn tell(&self, models: &Models, seen_in: Option<&SessionKey>) {
        for news in models.news() {
            let text = match &news.trouble {
                Some(failure) => began_to_refuse(failure, models),
                None => works_again(&news.subject),
            };
            let rows = self.delivery.draft_for_owners_elsewhere(&text, seen_in);
            match self.write(news.clone(), rows).await {
                Ok((Verdict::Later, _)) => {}
                Ok((_, rows)) => {
                    models.told(&news);
                    self.delivery.submit_drafted(&rows);
                }
                // The next turn tries again.
                Err(error) => {
                    tracing::warn!("owners were not told about {}: {error}", news.subject);
                }
            }
        }
    }

    async fn write(
        &self,
        news: News,
        rows: Vec<outbox::Draft>,
    ) -> Result<(Verdict, Vec<outbox::Draft>), StoreError> {
        let write = move |tx: &Transaction<'_>| {
            let now = now_ms();
            let trouble = news.trouble.as_ref().map(|failure| kind(&failure.error));
            let verdict = provider_notices::take(tx, &news.subject, trouble.as_deref(), now)?;
            let rows = match verdict {
                Verdict::Trouble | Verdict::WorksAgain => rows,
                Verdict::Nothing | Verdict::Later => Vec::new(),
            };
            outbox::insert(tx, &rows, Source::default(), now)?;
            Ok((verdict, rows))
        };
        self.db.write_as(Durability::Kill, write).await
    }
}

/// A server may be out of reach for several reasons in a row, and that is one trouble.
fn kind(error: &ModelError) -> String {
    match error {
        ModelError::Unreachable(_) => provider_notices::OUT_OF_REACH.to_owned(),
        error => error.to_string(),
    }
}
