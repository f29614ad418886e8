//! A person talks at the terminal: the prompt stays live while answers are printed above it.

use std::ops::ControlFlow;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::editor::{Entered, Prompt};
use super::host::Host;
use super::live::Typed;
use super::screen::{Screen, TICK};
use super::topics::{self, LEAVE_HINT, NEXT_LINE, SUMMING_UP, place, prompt, welcome};
use super::words::{self, Manner};
use crate::channels::local::{Terminal, Voice, new_message};
use crate::cli::{Failure, Outcome};
use crate::commands::{self, Parsed};
use crate::domain::{MessageId, SessionKey};

/// Lines on their way to the inbox.
const QUEUE: usize = 256;
/// The time between the last word of an answer and its end in the store.
const ENDS_SOON: Duration = Duration::from_millis(150);

pub(super) struct Talk {
    host: Host,
    terminal: Terminal,
    screen: Screen,
    prompt: Prompt,
    place: SessionKey,
    /// The place of the last line to an agent.
    asked_in: SessionKey,
    lines: mpsc::Sender<Said>,
    stored: mpsc::Receiver<bool>,
    /// Lines that are not in the inbox yet.
    on_their_way: usize,
    is_busy: bool,
    /// Ctrl-C was pressed at an empty prompt.
    is_leaving: bool,
}

struct Said {
    place: SessionKey,
    message: MessageId,
    text: String,
}

impl Talk {
    pub(super) fn new(
        host: Host,
        terminal: Terminal,
        screen: Screen,
        prompt: Prompt,
        place: SessionKey,
    ) -> Self {
        let (lines, said) = mpsc::channel(QUEUE);
        let (stored, is_stored) = mpsc::channel(QUEUE);
        tokio::spawn(pass_on(terminal.voice.clone(), said, stored));
        Talk {
            host,
            terminal,
            screen,
            prompt,
            asked_in: place.clone(),
            place,
            lines,
            stored: is_stored,
            on_their_way: 0,
            is_busy: false,
            is_leaving: false,
        }
    }

    pub(super) async fn run(mut self, created: Option<&std::path::Path>) -> Outcome {
        let greeting = welcome(&self.host, &self.place, created).await?;
        greeting.iter().for_each(|line| self.screen.note(line));
        self.screen.settle();
        let talked = self.talk().await;
        self.leave().await;
        talked
    }

    async fn talk(&mut self) -> Outcome {
        if self.ask_again().await?.is_break() {
            return Ok(());
        }
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let all_stored = self.on_their_way == 0;
            tokio::select! {
                biased;
                reason = self.host.deserted() => return Err(Failure::Failed(reason)),
                entered = self.prompt.entered.recv() => {
                    if self.take(entered.unwrap_or(Entered::End)).await?.is_break() {
                        return Ok(());
                    }
                }
                Some(shown) = self.terminal.screen.recv() => self.screen.show(shown, &self.place),
                Some(is_stored) = self.stored.recv() => self.count_stored(is_stored),
                _ = ticks.tick(), if self.is_busy => self.screen.tick(),
                () = self.host.answered(), if self.is_busy && all_stored => self.rest(),
            }
        }
    }

    fn count_stored(&mut self, is_stored: bool) {
        self.on_their_way -= 1;
        if !is_stored {
            self.screen.note("The gateway takes no more messages.");
        }
    }

    /// Everything is answered.
    fn rest(&mut self) {
        while let Ok(shown) = self.terminal.screen.try_recv() {
            self.screen.show(shown, &self.place);
        }
        self.is_busy = false;
        self.terminal.rest();
        self.screen.rest(&self.place);
        self.screen.prompt(&prompt(&self.place));
    }

    /// Breaks when the person leaves.
    async fn take(&mut self, entered: Entered) -> Result<ControlFlow<()>, Failure> {
        let was_leaving = std::mem::take(&mut self.is_leaving);
        if matches!(entered, Entered::Interrupt { .. } | Entered::End) {
            self.screen.prompt("\n");
        }
        match entered {
            Entered::End => return Ok(ControlFlow::Break(())),
            Entered::Interrupt { had_words: true } => {}
            Entered::Interrupt { had_words: false } if self.is_still_busy().await => {
                self.stop().await;
            }
            Entered::Interrupt { had_words: false } if was_leaving => {
                return Ok(ControlFlow::Break(()));
            }
            Entered::Interrupt { had_words: false } => {
                self.screen.note(LEAVE_HINT);
                self.is_leaving = true;
            }
            Entered::Line { text, typed } => return self.take_line(text, typed).await,
        }
        self.ask_again().await
    }

    /// Ends the answer at hand, and no other. A second press meanwhile is the same wish.
    async fn stop(&mut self) {
        if self.screen.is_stopping() {
            return;
        }
        if self.screen.has_just_stopped() {
            self.screen.note(NEXT_LINE);
            return;
        }
        let place = self.screen.answers_in().unwrap_or(&self.asked_in).clone();
        let message = new_message();
        self.screen.stop(message.clone());
        self.say_in(place, message, "/stop this".into()).await;
    }

    /// Whether an answer is really under way: one that is whole on the screen ends any moment.
    async fn is_still_busy(&mut self) -> bool {
        let may_be_over = self.is_busy && self.screen.answers_in().is_none();
        if may_be_over && timeout(ENDS_SOON, self.host.answered()).await.is_ok() {
            self.rest();
        }
        self.is_busy
    }

    async fn ask_again(&mut self) -> Result<ControlFlow<()>, Failure> {
        if !self.is_busy {
            self.screen.prompt(&prompt(&self.place));
        }
        match self.prompt.ask(prompt(&self.place)) {
            true => Ok(ControlFlow::Continue(())),
            false => Ok(ControlFlow::Break(())),
        }
    }

    async fn take_line(&mut self, line: String, typed: Typed) -> Result<ControlFlow<()>, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let before = prompt(&self.place);
        match words.as_slice() {
            [] => return self.ask_again().await,
            [own, ..] if words::leaves(own) => return Ok(ControlFlow::Break(())),
            ["/topic" | "/topics", ..] => {
                if typed == Typed::Goes {
                    self.screen.echo(&before, &line);
                }
                match words[1..].join(" ").as_str() {
                    _ if words[0] == "/topics" => self.list_topics().await?,
                    "" => self.go(None).await?,
                    // Several words are no topic; the refusal names them all.
                    topic => self.go(Some(topic)).await?,
                }
                return self.ask_again().await;
            }
            _ => {}
        }
        if let Some(told) = words::meant_for_the_terminal(&line) {
            if typed == Typed::Goes {
                self.screen.echo(&before, &line);
            }
            self.screen.note(&told);
            return self.ask_again().await;
        }
        self.is_busy = true;
        let again = self.ask_again().await?;
        let message = new_message();
        match words::manner(&line) {
            Manner::Help => self.screen.help(message.clone()),
            Manner::Changes => self.screen.be_patient(message.clone()),
            Manner::Stops => self.screen.stop(message.clone()),
            Manner::Asks => {}
        }
        if typed == Typed::Goes {
            self.screen.wait(message.clone(), &before, &line);
        }
        self.say(message, line).await;
        Ok(again)
    }

    /// Walking to another topic is the terminal's own business: the gateway only sees where a line
    /// was written.
    async fn go(&mut self, topic: Option<&str>) -> Outcome {
        let SessionKey::Local { room, .. } = &self.place else {
            return Ok(());
        };
        match place(room.as_str(), topic) {
            Ok(place) => {
                self.place = place;
                let told = topics::arrived(&self.host, &self.place).await?;
                self.screen.note(&told);
            }
            Err(Failure::Failed(text) | Failure::WrongUse(text)) => {
                self.screen.note(&format!("{text}."));
            }
        }
        Ok(())
    }

    async fn list_topics(&mut self) -> Outcome {
        for line in topics::topic_list(&self.host, &self.place).await? {
            self.screen.note(&line);
        }
        Ok(())
    }

    async fn say(&mut self, message: MessageId, text: String) {
        self.say_in(self.place.clone(), message, text).await;
    }

    async fn say_in(&mut self, place: SessionKey, message: MessageId, text: String) {
        let is_talk = commands::parse(&text) == Parsed::Talk;
        if is_talk {
            self.asked_in = place.clone();
        }
        let said = Said {
            place,
            message,
            text,
        };
        self.on_their_way += 1;
        self.is_busy = true;
        if is_talk && let Ok(label) = self.host.who_answers(&self.place).await {
            self.screen.work(label);
        }
        if self.lines.send(said).await.is_err() {
            self.count_stored(false);
        }
    }

    /// Ends the gateway, and prints the last messages.
    async fn leave(mut self) {
        // A line typed right before the end is not lost.
        let storing = async {
            while self.on_their_way > 0 && self.stored.recv().await.is_some() {
                self.on_their_way -= 1;
            }
        };
        drop(timeout(STORED_WITHIN, storing).await);
        let Talk {
            host,
            mut terminal,
            mut screen,
            place,
            ..
        } = self;
        if host.is_summing_up() {
            screen.note(SUMMING_UP);
        }
        let mut ticks = interval(TICK);
        let mut ending = pin!(host.leave());
        loop {
            tokio::select! {
                biased;
                Some(shown) = terminal.screen.recv() => screen.show(shown, &place),
                () = &mut ending => break,
                _ = ticks.tick() => screen.tick(),
            }
        }
        while let Ok(shown) = terminal.screen.try_recv() {
            screen.show(shown, &place);
        }
        let drawn = tokio::task::spawn_blocking(move || screen.finish(&place));
        // A terminal that went away must not keep the process.
        drop(tokio::time::timeout(LAST_PICTURE_WITHIN, drawn).await);
    }
}

const STORED_WITHIN: Duration = Duration::from_secs(2);
const LAST_PICTURE_WITHIN: Duration = Duration::from_secs(2);

/// Takes lines to the inbox in their order, and tells of each whether it is stored.
async fn pass_on(voice: Voice, mut said: mpsc::Receiver<Said>, stored: mpsc::Sender<bool>) {
    while let Some(Said {
        place,
        message,
        text,
    }) = said.recv().await
    {
        let is_stored = voice.say(place, message, text).await;
        if stored.send(is_stored).await.is_err() {
            return;
        }
    }
}
