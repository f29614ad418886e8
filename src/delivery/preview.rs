//! Shows the text of an unfinished answer, as often as the budgets have room.
//!
//! Only the previewer changes the screen before the answer is complete. Its calls follow each
//! other, and end with the text.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::Transaction;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::preview_messages;
use super::progress::{Scene, SoFar};
use crate::channels::{Medium, Part, Revision, SendError, Text, Ticket};
use crate::clock::now_ms;
use crate::domain::MessageId;

/// The least text of a first preview, because the notification to people shows nothing but this
/// text.
const FIRST_CHARS: usize = 40;
/// An answer complete by then is sent without a preview.
const FIRST_AFTER: Duration = Duration::from_secs(1);
/// Telegram shows a draft for 30 seconds.
const RENEW_AFTER: Duration = Duration::from_secs(15);
/// The pause before the next try while an earlier answer still goes out to the same place.
const AFTER_OTHERS: Duration = Duration::from_secs(1);

pub(super) struct Previewer<'a> {
    pub(super) scene: Scene<'a>,
    pub(super) medium: Medium,
    pub(super) every: Duration,
}

/// The present state of the preview on people's screens.
struct Screen {
    medium: Medium,
    draft: Option<Part>,
    /// In the order of the parts they show. After a restart the shown part is unknown.
    messages: Vec<(MessageId, Option<Part>)>,
    changed_at: Instant,
    /// Since when the outcome of a send is unknown: the next message may be there already.
    in_doubt_since: Option<Instant>,
}

/// The next call to bring the screen closer to the text.
enum Step {
    Draft(Part),
    Edit(usize, Part),
    Send(Part),
}

/// The outcome of a call, and whether previews of this answer go on.
enum Onward {
    Shown,
    NotShown,
    GiveUp,
}

impl Previewer<'_> {
    /// Returns when the text is complete and the last call has been answered, and tells how often
    /// something was shown.
    pub(super) async fn run(self, mut text: watch::Receiver<SoFar>) -> u32 {
        let mut shown = 0;
        let is_worth_a_look =
            |so_far: &SoFar| so_far.is_slow || so_far.text.chars().nth(FIRST_CHARS - 1).is_some();
        let Ok(is_slow) = text
            .wait_for(is_worth_a_look)
            .await
            .map(|so_far| so_far.is_slow)
        else {
            return shown;
        };
        let mut due = if is_slow {
            Instant::now()
        } else {
            Instant::now() + FIRST_AFTER
        };
        // A quick answer ends here, without a preview to wait for.
        if !is_still_written(&text, due).await || !self.scene.is_wanted().await {
            return shown;
        }
        let Some(mut screen) = self.screen().await else {
            return shown;
        };
        while is_still_written(&text, due).await {
            let so_far = text.borrow_and_update().clone();
            due = match self.next(&screen, &so_far) {
                None => match self.something_new(&screen, &mut text).await {
                    Some(due) => due,
                    None => return shown,
                },
                Some(step) => match self.may_show() {
                    Err(later) => later,
                    Ok(()) => {
                        match self.show(&mut screen, step).await {
                            Onward::Shown => {
                                shown += 1;
                                let has_text = !so_far.text.is_empty();
                                self.scene.is_visible.fetch_or(has_text, Ordering::Relaxed);
                            }
                            Onward::NotShown => {}
                            Onward::GiveUp => return shown,
                        }
                        Instant::now() + self.every
                    }
                },
            };
        }
        shown
    }

    /// Reuses the preview messages of an earlier process.
    async fn screen(&self) -> Option<Screen> {
        let inbox_id = self.scene.answer.inbox_id;
        let known = self
            .scene
            .inner
            .db
            .read(move |connection| preview_messages::of(connection, inbox_id))
            .await;
        let known = known
            .inspect_err(|error| tracing::warn!("no previews: {error}"))
            .ok()?;
        let medium = if known.is_empty() {
            self.medium
        } else {
            Medium::Message
        };
        let messages = known.into_iter().map(|message| (message, None)).collect();
        Some(Screen {
            medium,
            draft: None,
            messages,
            changed_at: Instant::now(),
            in_doubt_since: None,
        })
    }

    fn next(&self, screen: &Screen, so_far: &SoFar) -> Option<Step> {
        let answer = self.scene.answer;
        let (speaker, markdown) = (Some(answer.speaker.as_str()), so_far.markdown());
        let text = Text {
            speaker,
            answers: answer.question.as_ref(),
            is_unfinished: true,
            ..Text::plain(&markdown)
        };
        let parts = self.scene.outlet.channel.render(&answer.to, &text);
        if screen.medium == Medium::Draft {
            let is_fading = screen.changed_at.elapsed() >= RENEW_AFTER;
            // A place has a single draft, so a text of several messages shows its end there.
            return parts
                .into_iter()
                .next_back()
                .filter(|part| is_fading || screen.draft.as_ref() != Some(part))
                .map(Step::Draft);
        }
        parts
            .into_iter()
            .enumerate()
            .find_map(|(number, part)| match screen.messages.get(number) {
                Some((_, shown)) if shown.as_ref() == Some(&part) => None,
                Some(_) => Some(Step::Edit(number, part)),
                None => Some(Step::Send(part)),
            })
    }

    /// The time of the next try, once there is more text or a draft needs renewing. None when the
    /// text is complete.
    async fn something_new(
        &self,
        screen: &Screen,
        text: &mut watch::Receiver<SoFar>,
    ) -> Option<Instant> {
        let fades_at = screen.changed_at + RENEW_AFTER;
        tokio::select! {
            more = text.changed() => more.ok().map(|()| screen.changed_at + self.every),
            () = sleep_until(fades_at), if screen.medium == Medium::Draft => Some(fades_at),
        }
    }

    /// Takes the call from the budgets if they have room now; else returns the time of the next
    /// try.
    fn may_show(&self) -> Result<(), Instant> {
        if self
            .scene
            .inner
            .places
            .contains_key(self.scene.answer.to.place())
        {
            return Err(Instant::now() + AFTER_OTHERS);
        }
        let pace = self
            .scene
            .outlet
            .channel
            .abilities()
            .pace(&self.scene.answer.to);
        pace.map_or(Ok(()), |pace| {
            self.scene.outlet.pacing.take_for_preview(pace, self.every)
        })
    }

    async fn show(&self, screen: &mut Screen, step: Step) -> Onward {
        let (channel, to) = (&self.scene.outlet.channel, &self.scene.answer.to);
        screen.changed_at = Instant::now();
        let outcome = match step {
            Step::Draft(part) => {
                let shown = channel
                    .revise(
                        to,
                        Revision::Draft {
                            number: self.draft_number(),
                            part: &part,
                        },
                    )
                    .await;
                if let Err(SendError::Refused(reason)) = &shown {
                    tracing::debug!(session = %to.place(), "no drafts here, so a message is edited instead: {reason}");
                    screen.medium = Medium::Message;
                    return Onward::NotShown;
                }
                shown.map(|()| screen.draft = Some(part))
            }
            Step::Edit(number, part) => {
                let (message, shown) = &mut screen.messages[number];
                channel
                    .revise(
                        to,
                        Revision::Edit {
                            message,
                            part: &part,
                        },
                    )
                    .await
                    .map(|()| *shown = Some(part))
            }
            Step::Send(part) => self.show_more(screen, part).await,
        };
        self.judge(outcome).await
    }

    /// Sends a further preview message. After a send with unknown outcome, another try is made only
    /// while the platform detects repetitions.
    async fn show_more(&self, screen: &mut Screen, part: Part) -> Result<(), SendError> {
        let (channel, to, number) = (
            &self.scene.outlet.channel,
            &self.scene.answer.to,
            screen.messages.len(),
        );
        let is_too_late = |since: Instant| since.elapsed() >= channel.tells_repeats_for(&part);
        if screen.in_doubt_since.is_some_and(is_too_late) {
            return Err(SendError::Refused("it may be there already".into()));
        }
        match channel.send(to, &part, &self.ticket(number)).await {
            Ok(message) => {
                self.note(u32::try_from(number).unwrap_or(u32::MAX), &message)
                    .await;
                // After a doubtful send, the message may show the part of the earlier try.
                let shown = screen.in_doubt_since.take().is_none().then_some(part);
                screen.messages.push((message, shown));
                Ok(())
            }
            Err(SendError::Unknown(reason)) => {
                let since = *screen.in_doubt_since.get_or_insert(screen.changed_at);
                Err(if is_too_late(since) {
                    SendError::Refused(reason)
                } else {
                    SendError::Unknown(reason)
                })
            }
            Err(error) => Err(error),
        }
    }

    async fn judge(&self, outcome: Result<(), SendError>) -> Onward {
        let Err(error) = outcome else {
            return Onward::Shown;
        };
        self.scene.not_shown(&error).await;
        match error {
            SendError::RetryAfter(_) | SendError::NotSent(_) | SendError::Unknown(_) => {
                Onward::NotShown
            }
            SendError::Refused(_)
            | SendError::PlaceLost(_)
            | SendError::Moved(_)
            | SendError::Gone => Onward::GiveUp,
        }
    }

    /// Stores the preview message, so the answer is finished there, even by another process.
    async fn note(&self, number: u32, message: &MessageId) {
        let (inbox_id, place) = (
            self.scene.answer.inbox_id,
            self.scene.answer.to.place().clone(),
        );
        let shown = preview_messages::Shown {
            inbox_id,
            number,
            place,
            message: message.clone(),
        };
        let write = || {
            let shown = shown.clone();
            move |tx: &Transaction<'_>| preview_messages::note(tx, &shown, now_ms())
        };
        if let Err(error) = self
            .scene
            .inner
            .db
            .write_urgently(&self.scene.inner.stop, write)
            .await
        {
            tracing::error!(session = %self.scene.answer.to.place(), "a message that shows half an answer was not noted: {error}");
        }
    }

    fn ticket(&self, number: usize) -> Ticket {
        Ticket(format!("p{:x}-{number:x}", self.scene.answer.inbox_id))
    }

    /// The draft id: the same for the whole answer, also after a restart. Telegram refuses zero.
    fn draft_number(&self) -> i64 {
        (self.scene.answer.inbox_id % i64::from(i32::MAX)).max(1)
    }
}

/// Waits until `then`; false when the text is complete earlier.
async fn is_still_written(text: &watch::Receiver<SoFar>, then: Instant) -> bool {
    let mut text = text.clone();
    let complete = async { while text.changed().await.is_ok() {} };
    tokio::select! {
        biased;
        () = complete => false,
        () = sleep_until(then) => true,
    }
}
