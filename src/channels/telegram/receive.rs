//! Takes updates in, from polls or from the webhook: answers pressed buttons, reads, and hands over
//! to the gateway.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use super::api::{Api, ApiError};
use super::buttons::{AnswerCallbackQuery, Press};
use super::me::{GetMe, Me};
use super::memberships::Memberships;
use super::parse;
use super::presses::Presses;
use super::send::{self, Newest};
use super::updates::Update;
use crate::channels::button_owner::NOT_YOURS;
use crate::channels::nicknames::Nicknames;
use crate::channels::{Batch, Health, Intake, ListenError};
use crate::config::GroupSessions;
use crate::console::{self, Connected};
use crate::domain::Platform;
use crate::signing::Signer;

/// The kinds of updates for either transport.
pub(super) const ALLOWED_UPDATES: &[&str] = &[
    "message",
    "edited_message",
    "message_reaction",
    "callback_query",
    "my_chat_member",
];

pub(super) struct Receiver {
    pub(super) api: Arc<Api>,
    group_sessions: GroupSessions,
    nicknames: Nicknames,
    /// How long to wait for further messages of a person, to join them.
    gather: Duration,
    signer: Signer,
    newest: Arc<Newest>,
    presses: Arc<Presses>,
    pub(super) memberships: Arc<Memberships>,
    /// How many agents there are, for the operator.
    agents: usize,
    me: OnceCell<Me>,
    /// Answers to pressed buttons. No turn waits for them.
    answers: TaskTracker,
}

/// Whether updates are on disk. Telegram keeps updates that are not; the reason is logged where
/// they were refused.
pub(super) enum Stored {
    Yes,
    No,
}

impl Receiver {
    pub(super) fn new(
        api: Arc<Api>,
        group_sessions: GroupSessions,
        nicknames: Nicknames,
        gather: Duration,
        signer: Signer,
        newest: Arc<Newest>,
    ) -> Self {
        Receiver {
            api,
            group_sessions,
            nicknames,
            gather,
            signer,
            newest,
            presses: Arc::default(),
            memberships: Arc::default(),
            agents: 0,
            me: OnceCell::new(),
            answers: TaskTracker::new(),
        }
    }

    /// Tells the operator of so many agents.
    pub(super) fn for_agents(self, agents: usize) -> Self {
        Receiver { agents, ..self }
    }

    /// Leaves the answers to presses to the channel that shares this list.
    pub(super) fn noting(self, presses: Arc<Presses>) -> Self {
        Receiver { presses, ..self }
    }

    /// Shares its knowledge about groups with the channel.
    pub(super) fn knowing(self, memberships: Arc<Memberships>) -> Self {
        Receiver {
            memberships,
            ..self
        }
    }

    pub(super) async fn store(
        &self,
        intake: &Intake,
        updates: &[Update],
    ) -> Result<Stored, ListenError> {
        if updates.is_empty() {
            return Ok(Stored::Yes);
        }
        let Some(me) = self.me().await else {
            return Err(refused());
        };
        let reader = parse::Reader {
            bot_id: self.api.bot_id(),
            me,
            group_sessions: self.group_sessions,
            nicknames: &self.nicknames,
            signer: &self.signer,
            gather: self.gather,
        };
        self.answer_presses(&reader, updates);
        let readable = updates
            .iter()
            .filter_map(|update| update.content.as_ref().ok());
        readable.for_each(|update| {
            send::note_newest(&self.newest, update);
            self.memberships.read_topic(update);
        });
        let mut arrivals = reader.read_all(updates);
        let readable = updates
            .iter()
            .filter_map(|update| update.content.as_ref().ok());
        arrivals.extend(readable.filter_map(|update| self.memberships.read(update)));
        if arrivals.is_empty() {
            return Ok(Stored::Yes);
        }
        let accepted = intake
            .accept(Batch {
                platform: Platform::Telegram,
                arrivals,
            })
            .await;
        Ok(if accepted.is_ok() {
            Stored::Yes
        } else {
            Stored::No
        })
    }

    /// Answers beside everything else, once the command is carried out: the person sees a clock on
    /// the button until then. A refusal is the answer itself.
    fn answer_presses(&self, reader: &parse::Reader<'_>, updates: &[Update]) {
        for press in updates
            .iter()
            .filter_map(|update| reader.read_press(update))
        {
            let (api, presses) = (self.api.clone(), self.presses.clone());
            let noted = match press.refusal {
                Some(_) => None,
                None => presses.note(&press.query_id),
            };
            self.answers.spawn(async move {
                let Press { query_id, refusal } = press;
                let is_plain = match noted {
                    Some(settled) => presses.is_plain(&query_id, settled).await,
                    None => true,
                };
                let answer = match refusal {
                    Some(NOT_YOURS) => AnswerCallbackQuery::pop_up(query_id, NOT_YOURS),
                    refusal => AnswerCallbackQuery::new(query_id, refusal),
                };
                if is_plain {
                    answer.send(&api).await;
                }
            });
        }
    }

    /// Says that Telegram has accepted the bot, and how messages come.
    pub(super) async fn say_connected(&self, by: &str) -> Result<(), ListenError> {
        let me = self.me().await.ok_or_else(refused)?;
        let username = me.username.as_deref();
        console::connected(&Connected {
            name: &username.map_or_else(|| "the bot".to_owned(), |name| format!("@{name}")),
            by,
            servers: None,
            agents: self.agents,
            link: username.map(|name| format!("https://t.me/{name}")),
        });
        Ok(())
    }

    /// The bot's account, asked for until Telegram answers. `None` when Telegram does not accept
    /// the token.
    pub(super) async fn me(&self) -> Option<&Me> {
        let mut backoff = Health::backoff();
        loop {
            match self
                .me
                .get_or_try_init(async || self.api.call(&GetMe {}).await)
                .await
            {
                Ok(me) => return Some(me),
                Err(ApiError::Answered {
                    code: 401 | 404, ..
                }) => return None,
                Err(error) => {
                    tracing::warn!("asking Telegram who we are: {error}");
                    self.api.health().pause(&mut backoff).await;
                }
            }
        }
    }
}

pub(super) fn refused() -> ListenError {
    ListenError("Telegram does not accept the bot token. Get a valid one from @BotFather and store it where [telegram] token points. `parlor reload` has a running gateway read it; a new environment variable needs a new start".into())
}
