//! Keeps the platforms of the config connected: from the start, and through every change of the
//! config.
//!
//! A platform whose own settings change is connected anew, and the others do not notice. The rest of
//! the config reaches a connected platform as instructions.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{GatewayState, generated_secrets, known_people, slash};
use crate::access;
use crate::channels::discord::{self, DiscordChannel};
use crate::channels::telegram::{self, Menu, MenuEntry, TelegramChannel, WebhookSecrets};
use crate::channels::web::WebChannel;
use crate::channels::{Channel, Intake};
use crate::commands::SPECS;
use crate::config::{Config, Discord, GroupSessions, Groups, Telegram, Transport};
use crate::doctor::expectations;
use crate::domain::{PersonId, Platform, Role};
use crate::home::{Snapshot, Snapshots};
use crate::operations::Pulse;
use crate::routing::Router;
use crate::storage::{Db, StoreError};

/// The pause before a panicked channel is started again.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// The number of channels still listening, and the reason of the latest channel to give up.
#[derive(Debug, Clone, Default)]
pub(super) struct Listening {
    pub(super) channels: usize,
    pub(super) ended: Option<String>,
}

/// The services that a channel is made with.
pub(super) struct Makings {
    pub(super) db: Db,
    pub(super) router: Router,
    pub(super) snapshots: Snapshots,
    pub(super) pulse: Arc<Pulse>,
    /// One for the life of the process: browsers read it whether the web chat is on or off.
    pub(super) web: WebChannel,
}

/// The connected platforms.
pub(super) struct Platforms {
    makings: Makings,
    intake: Intake,
    stop: CancellationToken,
    tasks: TaskTracker,
    reports: watch::Sender<Listening>,
    connected: Mutex<HashMap<Platform, Connected>>,
    /// The settings of the latest snapshot. None: a channel that the config does not know is alone.
    wanted: std::sync::Mutex<Option<[Option<Settings>; 3]>>,
}

/// The platforms of the config.
const PLATFORMS: [Platform; 3] = [Platform::Telegram, Platform::Discord, Platform::Web];

/// A channel, and the settings it was made from.
pub(super) struct Made {
    pub(super) channel: Arc<dyn Channel>,
    settings: Option<Settings>,
    instructions: Instructions,
}

struct Connected {
    /// None for a channel that the config does not know, such as the terminal.
    settings: Option<Settings>,
    instructions: Instructions,
    stop: CancellationToken,
    ended: JoinHandle<()>,
    /// The platform has refused these settings for good.
    is_refused: Arc<AtomicBool>,
}

/// What a gateway does without a channel that its platform refuses for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    /// The channel ends, and with the last one the gateway.
    End,
    /// A gateway that has worked goes on, and waits for better settings.
    Wait,
}

/// Settings of a platform that count from the next connection on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Settings {
    Telegram(Box<Telegram>, GroupSessions),
    Discord(Box<Discord>, GroupSessions),
    Web,
}

/// The way to tell a connected channel about the rest of the config.
enum Instructions {
    Telegram(watch::Sender<telegram::Instructions>),
    Discord(watch::Sender<discord::Instructions>),
    None,
}

impl Made {
    pub(super) fn is_apart(&self) -> bool {
        self.settings.is_none()
    }

    /// A channel that the config does not know.
    pub(super) fn apart(channel: Arc<dyn Channel>) -> Self {
        Made {
            channel,
            settings: None,
            instructions: Instructions::None,
        }
    }
}

impl Platforms {
    pub(super) fn new(
        makings: Makings,
        intake: Intake,
        stop: CancellationToken,
        tasks: TaskTracker,
        is_alone: bool,
    ) -> Arc<Self> {
        let wanted = (!is_alone).then(|| all(&makings.snapshots.current().config));
        Arc::new(Platforms {
            makings,
            intake,
            stop,
            tasks,
            reports: watch::Sender::new(Listening::default()),
            connected: Mutex::default(),
            wanted: std::sync::Mutex::new(wanted),
        })
    }

    /// Whether a channel that the config does not know is alone, such as the terminal.
    pub(super) fn is_alone(&self) -> bool {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.is_none()
    }

    pub(super) fn listening(&self) -> watch::Receiver<Listening> {
        self.reports.subscribe()
    }

    /// Starts listening by a new channel.
    pub(super) async fn listen(self: &Arc<Self>, made: Made) {
        let platform = made.channel.abilities().platform;
        let connected = self.connect(made, Without::End);
        self.connected.lock().await.insert(platform, connected);
    }

    fn connect(self: &Arc<Self>, made: Made, without: Without) -> Connected {
        let (stop, is_refused) = (self.stop.child_token(), Arc::<AtomicBool>::default());
        self.count(|channels| channels + 1);
        let platform = made.channel.abilities().platform;
        self.makings.pulse.begun(platform);
        let listening = supervise(
            self.clone(),
            made.channel,
            stop.clone(),
            is_refused.clone(),
            without,
        );
        Connected {
            settings: made.settings,
            instructions: made.instructions,
            ended: self.tasks.spawn(listening),
            stop,
            is_refused,
        }
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        self.reports
            .send_modify(|listening| listening.channels = change(listening.channels));
    }

    /// Follows the current snapshot in the background, and tells which platforms are connected anew.
    ///
    /// Not awaited by the asker: a channel that ends may wait for intake, and the asker may be intake.
    pub(super) fn follow(self: &Arc<Self>, state: &Arc<GatewayState>) -> Vec<Platform> {
        let snapshot = self.makings.snapshots.current();
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = wanted.as_mut() else {
            return Vec::new();
        };
        let now = all(&snapshot.config);
        let changed = PLATFORMS.into_iter().zip(before.iter().zip(&now));
        let renewed = changed
            .filter(|(_, (before, now))| before != now && now.is_some())
            .map(|(platform, _)| platform)
            .collect();
        *before = now;
        drop(wanted);
        let (platforms, state) = (self.clone(), state.clone());
        self.tasks.spawn(async move {
            let mut connected = platforms.connected.lock().await;
            for platform in PLATFORMS {
                if let Err(error) = platforms.renew(&state, &mut connected, platform).await {
                    tracing::error!(%platform, "{platform} keeps its old settings: {error}");
                }
            }
        });
        renewed
    }

    /// Brings a platform to the settings of the current snapshot.
    async fn renew(
        self: &Arc<Self>,
        state: &GatewayState,
        connected: &mut HashMap<Platform, Connected>,
        platform: Platform,
    ) -> Result<(), StoreError> {
        let snapshot = self.makings.snapshots.current();
        let wanted = settings(&snapshot.config, platform);
        // A platform that refused the bot may take it now, with the same settings.
        let known = connected
            .get(&platform)
            .filter(|known| !known.has_refused());
        if wanted.as_ref() == known.and_then(|known| known.settings.as_ref()) {
            if let Some(known) = known {
                known.instructions.give(&snapshot);
            }
            return Ok(());
        }
        let made = match wanted {
            Some(settings) => Some(make(&self.makings, &snapshot, settings).await?),
            None => None,
        };
        // Counted as listening meanwhile, so that the gateway is never deserted.
        self.count(|channels| channels + 1);
        if let Some(old) = connected.remove(&platform) {
            old.stop.cancel();
            if let Err(error) = old.ended.await {
                tracing::error!(%platform, "{platform} ended badly: {error}");
            }
        }
        match made {
            Some(made) => {
                if let Err(error) = state.delivery.connect(made.channel.clone()).await {
                    tracing::error!(%platform, "messages that wait for {platform} are sent after the next start: {error}");
                }
                state.passed_over.platform_connected();
                connected.insert(platform, self.connect(made, Without::Wait));
            }
            None => {
                state.delivery.disconnect(platform);
                tracing::info!(%platform, "{platform} is disconnected: config.toml does not name it any more");
            }
        }
        self.count(|channels| channels - 1);
        Ok(())
    }
}

impl Connected {
    fn has_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }
}

impl Instructions {
    fn give(&self, snapshot: &Snapshot) {
        match self {
            Instructions::Telegram(told) => {
                let now = for_telegram(snapshot);
                told.send_if_modified(|before| replace(before, now));
            }
            Instructions::Discord(told) => {
                let now = for_discord(snapshot);
                told.send_if_modified(|before| replace(before, now));
            }
            Instructions::None => {}
        }
    }
}

/// Whether the value changed.
fn replace<T: PartialEq>(before: &mut T, now: T) -> bool {
    let is_new = *before != now;
    *before = now;
    is_new
}

fn all(config: &Config) -> [Option<Settings>; 3] {
    PLATFORMS.map(|platform| settings(config, platform))
}

fn settings(config: &Config, platform: Platform) -> Option<Settings> {
    let sessions = config.group_sessions;
    match platform {
        Platform::Telegram => {
            let telegram = config.telegram.clone()?;
            Some(Settings::Telegram(Box::new(telegram), sessions))
        }
        Platform::Discord => {
            let discord = config.discord.clone()?;
            Some(Settings::Discord(Box::new(discord), sessions))
        }
        Platform::Web => config.has_web().then_some(Settings::Web),
        Platform::Local => None,
    }
}

/// The channels of the platforms named in the config.
pub(super) async fn made(makings: &Makings, snapshot: &Snapshot) -> Result<Vec<Made>, StoreError> {
    let mut channels = Vec::new();
    for platform in PLATFORMS {
        if let Some(settings) = settings(&snapshot.config, platform) {
            channels.push(make(makings, snapshot, settings).await?);
        }
    }
    Ok(channels)
}

async fn make(
    makings: &Makings,
    snapshot: &Snapshot,
    settings: Settings,
) -> Result<Made, StoreError> {
    let db = &makings.db;
    let signer = generated_secrets::buttons(db).await?;
    let (channel, instructions): (Arc<dyn Channel>, _) = match &settings {
        Settings::Telegram(telegram, sessions) => {
            let (told, instructions) = watch::channel(for_telegram(snapshot));
            let deps = telegram::ChannelDeps {
                signer,
                webhook_secrets: match telegram.transport {
                    Transport::Webhook(_) => generated_secrets::webhook(db).await?,
                    Transport::Polling => WebhookSecrets::default(),
                },
                instructions,
                agents: snapshot.config.agents.len(),
                db: db.clone(),
            };
            let channel = TelegramChannel::new(telegram, *sessions, deps);
            (Arc::new(channel), Instructions::Telegram(told))
        }
        Settings::Discord(discord, sessions) => {
            let (told, instructions) = watch::channel(for_discord(snapshot));
            let deps = discord::ChannelDeps {
                signer,
                instructions,
                may_ask: slash::may_ask(&makings.snapshots, &makings.router, db),
                known_people: known_people::on_discord(&makings.snapshots, db),
                agents: snapshot.config.agents.len(),
                db: db.clone(),
            };
            let channel = DiscordChannel::new(discord, *sessions, deps);
            (Arc::new(channel), Instructions::Discord(told))
        }
        Settings::Web => (Arc::new(makings.web.clone()), Instructions::None),
    };
    Ok(Made {
        channel,
        settings: Some(settings),
        instructions,
    })
}

fn for_telegram(snapshot: &Snapshot) -> telegram::Instructions {
    telegram::Instructions {
        menu: menu(&snapshot.config),
        expectations: expectations::expectations(&snapshot.config.access, &snapshot.table),
    }
}

fn for_discord(snapshot: &Snapshot) -> discord::Instructions {
    discord::Instructions {
        menu: slash::menu(&snapshot.config),
        expected: expectations::on_discord(&snapshot.table),
        is_open: snapshot.config.access.groups == Groups::Open,
    }
}

/// The command list for Telegram's menu.
fn menu(config: &Config) -> Menu {
    let entries = |for_owners: bool| {
        let shown = SPECS
            .iter()
            .filter(move |spec| for_owners || spec.least == Role::Guest);
        shown
            .map(|spec| MenuEntry {
                command: spec.name.into(),
                description: spec.summary.into(),
            })
            .collect()
    };
    let owners = access::owners(&config.access);
    let owners = owners.iter().filter_map(|owner| match owner {
        PersonId::Telegram(user) => Some(*user),
        _ => None,
    });
    Menu {
        for_everyone: entries(false),
        for_owners: entries(true),
        owners: owners.collect(),
    }
}

/// Keeps a channel listening. A channel refused for good ends alone; the others go on.
async fn supervise(
    platforms: Arc<Platforms>,
    channel: Arc<dyn Channel>,
    stop: CancellationToken,
    is_refused: Arc<AtomicBool>,
    without: Without,
) {
    let platform = channel.abilities().platform;
    while !stop.is_cancelled() {
        let listened = AssertUnwindSafe(channel.listen(platforms.intake.clone(), stop.clone()))
            .catch_unwind()
            .await;
        match listened {
            Ok(Ok(())) => break,
            Ok(Err(reason)) => {
                tracing::error!(%platform, "{platform} is off: {reason}");
                if let Some(health) = channel.health() {
                    health.is_deaf(reason.to_string());
                }
                platforms
                    .makings
                    .pulse
                    .refused(platform, &reason.to_string());
                platforms
                    .reports
                    .send_modify(|listening| listening.ended = Some(reason.to_string()));
                is_refused.store(true, Ordering::Relaxed);
                if without == Without::Wait {
                    stop.cancelled().await;
                }
                break;
            }
            Err(_) => {
                tracing::error!(%platform, "{platform} panicked while listening; starting it again");
                tokio::time::sleep(RESTART_AFTER).await;
            }
        }
    }
    platforms.count(|channels| channels - 1);
}
