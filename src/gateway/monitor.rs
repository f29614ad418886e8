//! A look at the running gateway from outside: is it ready, and how much is there to do?

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::time::timeout;

use super::{Gateway, GatewayState};
use crate::channels::Hearing;
use crate::channels::web::WebChannel;
use crate::clock::now_ms;
use crate::delivery::outbox;
use crate::home::Snapshot;
use crate::metrics::Gauges;
use crate::operations::Operations;
use crate::storage::Durability;

/// How long the database may take to answer a look. It is busy for longer only in trouble.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Looks at a gateway. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Monitor {
    pub(super) state: Arc<GatewayState>,
    /// Held by the look at the database. A stuck database is looked at once, however often it is
    /// asked for.
    look: Arc<Mutex<()>>,
}

impl Gateway {
    pub(crate) fn monitor(&self) -> Monitor {
        Monitor {
            state: self.state.clone(),
            look: Arc::default(),
        }
    }
}

impl Monitor {
    /// The current snapshot, and each later one.
    pub(crate) fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.state.services.snapshots.changes()
    }

    /// The web chat, also while it is off.
    pub(crate) fn web(&self) -> &WebChannel {
        &self.state.web
    }

    pub(crate) fn operations(&self) -> &Operations {
        &self.state.operations
    }

    /// Returns when the gateway begins to stop.
    pub(crate) async fn stopped(&self) {
        self.state.stop.cancelled().await;
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.state.stop.is_cancelled()
    }

    /// Why messages may not be answered now. Empty for a gateway that is ready.
    pub(crate) async fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        if self.state.stop.is_cancelled() {
            troubles.push("the gateway is stopping".to_owned());
        }
        if !self.store_answers().await {
            troubles.push(self.trouble_of_store());
        }
        troubles.extend(self.silent_platforms());
        troubles
    }

    /// Platforms that refuse the bot, that do not take our calls, or whose messages do not reach us: on
    /// Discord the last two are two connections.
    fn silent_platforms(&self) -> Vec<String> {
        let channels = self.state.delivery.channels();
        let silent = channels.iter().filter_map(|channel| {
            let (platform, health) = (channel.abilities().platform, channel.health()?);
            if let Some(reason) = self.state.pulse.refusal(platform) {
                return Some(reason);
            }
            let is_deaf = matches!(health.hearing(), Hearing::Deaf { .. });
            (is_deaf || !health.answers()).then(|| format!("{platform} does not answer"))
        });
        silent.collect()
    }

    fn trouble_of_store(&self) -> String {
        if self.state.services.db.is_harmed() {
            return "the database files were taken away or changed".to_owned();
        }
        if let Some(trouble) = self.state.services.db.trouble() {
            return trouble.to_string();
        }
        format!(
            "the database has not stored anything for {} s",
            ANSWERS_WITHIN.as_secs()
        )
    }

    /// Whether the database stores something within a second.
    async fn store_answers(&self) -> bool {
        let db = &self.state.services.db;
        if db.is_harmed() || db.trouble().is_some() {
            return false;
        }
        let Ok(looking) = self.look.clone().try_lock_owned() else {
            // Somebody else looks; the end of that look tells.
            return timeout(ANSWERS_WITHIN, self.look.lock()).await.is_ok();
        };
        let db = self.state.services.db.clone();
        let look = tokio::spawn(async move {
            let _looking: OwnedMutexGuard<()> = looking;
            db.write_as(Durability::Kill, |_| Ok(())).await.is_ok()
        });
        let looked = timeout(ANSWERS_WITHIN, look).await;
        matches!(looked, Ok(Ok(true)))
    }

    /// The numbers of this moment.
    pub(crate) async fn gauges(&self) -> Gauges {
        let services = &self.state.services;
        let load = services.sessions.load();
        let (outbox, store_answers) = tokio::join!(
            timeout(ANSWERS_WITHIN, services.db.read(outbox::by_state)),
            self.store_answers()
        );
        let uptime = u64::try_from(now_ms() - services.started_at).unwrap_or_default();
        Gauges {
            version: env!("CARGO_PKG_VERSION"),
            uptime: Duration::from_millis(uptime),
            turns: load.turns,
            waiting: load.waiting,
            oldest: load.oldest,
            approvals: services.sessions.approvals().open(),
            outbox: outbox.ok().and_then(Result::ok),
            platforms: self.state.delivery.health(),
            store_answers,
        }
    }
}
