//! A person talks at the terminal: the prompt stays live while answers are printed above it.

use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::editor::{Entered, Prompt};
use super::host::Host;
use super::live::Typed;
use super::opening::Opening;
use super::screen::{Screen, TICK};
use super::texts::{self, LEAVE_HINT, NEXT_LINE, SUMMING_UP};
use super::topics::{self, prompt, welcome};
use super::words::{self, Manner};
use crate::channels::local::{Shown, Terminal, Voice, new_message};
use crate::cli::{Failure, Outcome, print};
use crate::domain::{MessageId, SessionKey};
use crate::operations::terminal::PlaceWish;

/// Lines on their way to the inbox.
const QUEUE: usize = 256;
/// The time between the last word of an answer and its end in the store.
const ENDS_SOON: Duration = Duration::from_millis(150);

pub(super) struct Talk {
    opening: Opening,
    host: Host,
    terminal: Terminal,
    screen: Screen,
    prompt: Prompt,
    place: SessionKey,
    /// The place of the last line to an agent.
    asked_in: SessionKey,
    lines: mpsc::Sender<Said>,
    /// What became of each: nothing, or the line that the gateway did not take.
    stored: mpsc::Receiver<Option<Said>>,
    /// Lines that are not in the inbox yet.
    on_their_way: usize,
    /// Lines that wait for the answers to earlier lines of their place.
    held: VecDeque<Said>,
    /// Places with lines to an agent that are not answered yet.
    asked: HashSet<SessionKey>,
    is_busy: bool,
    /// Ctrl-C was pressed at an empty prompt.
    is_leaving: bool,
    /// The chat ends with its gateway, and a prompt is still open.
    is_deserted: bool,
}

#[derive(Clone)]
struct Said {
    place: SessionKey,
    message: MessageId,
    text: String,
    manner: Manner,
}

/// How a chat ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// Everything is answered.
    Done,
    /// The person does not wait for the answer.
    AtOnce,
}

impl Talk {
    pub(super) fn new(
        opening: Opening,
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
            opening,
            host,
            terminal,
            screen,
            prompt,
            asked_in: place.clone(),
            place,
            lines,
            stored: is_stored,
            on_their_way: 0,
            held: VecDeque::new(),
            asked: HashSet::new(),
            is_busy: false,
            is_leaving: false,
            is_deserted: false,
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
                reason = self.host.deserted() => {
                    if self.take_over(reason).await?.is_break() {
                        return Ok(());
                    }
                }
                entered = self.prompt.entered.recv() => {
                    if self.take(entered.unwrap_or(Entered::End)).await?.is_break() {
                        return Ok(());
                    }
                }
                Some(shown) = self.terminal.screen.recv() => self.show(shown).await,
                Some(refused) = self.stored.recv() => self.count_stored(refused),
                _ = ticks.tick(), if self.is_busy => self.screen.tick(),
                () = self.host.answered(), if self.is_busy && all_stored => self.go_on().await,
            }
        }
    }

    /// Shows an event, and waits for the answer to a line of an earlier chat as for one of its own.
    async fn show(&mut self, shown: Shown) {
        let taken_up = match &shown {
            Shown::TakenUp { place, .. } => Some(place.clone()),
            _ => None,
        };
        self.screen.show(shown, &self.place);
        if let Some(place) = taken_up {
            self.expect_answer(&place).await;
        }
    }

    /// An agent has a line of this place now.
    async fn expect_answer(&mut self, place: &SessionKey) {
        self.is_busy = true;
        self.asked_in = place.clone();
        self.asked.insert(place.clone());
        if let Ok(who) = self.host.who_answers(place).await
            && !who.is_paused
        {
            self.screen.work(who.label);
        }
    }

    /// Goes on in a gateway of this process, or in that of another chat, when the chat that had the
    /// gateway has ended. Breaks where the gateway was nobody's chat: a home without its gateway is
    /// left to the next one.
    async fn take_over(&mut self, reason: String) -> Result<ControlFlow<()>, Failure> {
        let is_answered = timeout(Duration::ZERO, self.host.answered()).await.is_ok();
        self.take_in_shown();
        self.take_back_unsent().await;
        if !self.host.is_joined() {
            return Err(Failure::Failed(reason));
        }
        if !self.host.ends_with_a_chat() {
            return self.end_with_gateway(is_answered);
        }
        let wish = PlaceWish::This(self.place.clone());
        let (host, terminal, _) = self.opening.open(&wish, true).await?;
        let (lines, said) = mpsc::channel(QUEUE);
        let (stored, is_stored) = mpsc::channel(QUEUE);
        tokio::spawn(pass_on(terminal.voice.clone(), said, stored));
        (self.host, self.terminal) = (host, terminal);
        (self.lines, self.stored, self.on_their_way) = (lines, is_stored, 0);
        self.screen.note(texts::TAKEN_OVER);
        // The gateway takes up what the other one has left.
        self.is_busy = true;
        Ok(ControlFlow::Continue(()))
    }

    /// Lines on their way to a gateway that is gone come back.
    async fn take_back_unsent(&mut self) {
        let coming_back = async {
            while self.on_their_way > 0 {
                let Some(refused) = self.stored.recv().await else {
                    return;
                };
                self.count_stored(refused);
            }
        };
        drop(timeout(STORED_WITHIN, coming_back).await);
    }

    /// The last words of a chat whose gateway has stopped.
    fn end_with_gateway(&mut self, is_answered: bool) -> Result<ControlFlow<()>, Failure> {
        self.screen.rest(&self.place);
        let unsent: Vec<&str> = self.held.iter().map(|said| said.text.as_str()).collect();
        let stopped = texts::gateway_stopped(is_answered, &unsent);
        self.screen.note(&print::to_type(&stopped));
        self.held.clear();
        self.is_busy = false;
        self.is_deserted = true;
        match is_answered {
            true => Ok(ControlFlow::Break(())),
            false => Err(Failure::told()),
        }
    }

    /// A line that a stopping gateway does not take is sent to the next one, unless it was for the
    /// moment only.
    fn count_stored(&mut self, refused: Option<Said>) {
        self.on_their_way -= 1;
        let Some(refused) = refused else { return };
        let is_kept =
            self.host.is_joined() && matches!(refused.manner, Manner::Talks | Manner::Changes);
        self.screen
            .note(match (is_kept, self.host.ends_with_a_chat()) {
                (false, _) => texts::TAKES_NO_MORE,
                (true, true) => texts::SENT_LATER,
                (true, false) => texts::STOPPING,
            });
        if is_kept {
            self.held.push_back(refused);
        }
    }

    /// Everything in the inbox is answered: the lines that were held have their turn now.
    async fn go_on(&mut self) {
        self.asked.clear();
        if self.held.is_empty() {
            return self.rest();
        }
        self.take_in_shown();
        self.screen.go_on(&self.place);
        for said in std::mem::take(&mut self.held) {
            self.say_in_turn(said).await;
        }
    }

    fn take_in_shown(&mut self) {
        while let Ok(shown) = self.terminal.screen.try_recv() {
            self.screen.show(shown, &self.place);
        }
    }

    /// Everything is answered, and no line is held.
    fn rest(&mut self) {
        self.take_in_shown();
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
        let stop = Said {
            place,
            message,
            text: "/stop this".into(),
            manner: Manner::Stops,
        };
        self.say(stop).await;
    }

    /// Whether an answer is really under way: one that is whole on the screen ends any moment.
    async fn is_still_busy(&mut self) -> bool {
        let may_be_over = self.is_busy && self.screen.answers_in().is_none();
        if may_be_over && timeout(ENDS_SOON, self.host.answered()).await.is_ok() {
            self.go_on().await;
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
        let meant = words::as_elsewhere(&line).unwrap_or(&line).to_owned();
        let words: Vec<&str> = meant.split_whitespace().collect();
        let before = prompt(&self.place);
        match words.as_slice() {
            [] => return self.ask_again().await,
            [own, ..] if words::leaves(own) => return Ok(ControlFlow::Break(())),
            ["/help"] => {
                if typed == Typed::Goes {
                    self.screen.echo(&before, &line);
                }
                self.screen.tell(texts::HELP);
                return self.ask_again().await;
            }
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
        let (message, manner) = (new_message(), words::manner(&line));
        match manner {
            Manner::Help => self.screen.help(message.clone()),
            Manner::Changes | Manner::Drops => self.screen.be_patient(message.clone()),
            Manner::Stops => self.screen.stop(message.clone()),
            Manner::Asks | Manner::Talks => {}
        }
        if words::drops_what_waits(&line) {
            self.drop_held();
        }
        if let Some(told) = self.written_elsewhere(manner) {
            if typed == Typed::Goes {
                self.screen.echo(&before, &line);
            }
            self.screen.forget_stop();
            self.screen.note(&told);
            return Ok(again);
        }
        if typed == Typed::Goes {
            self.screen.wait(message.clone(), &before, &line);
        }
        let said = Said {
            place: self.place.clone(),
            message,
            text: line,
            manner,
        };
        self.say_in_turn(said).await;
        Ok(again)
    }

    /// Lines of a place take effect in the order they were typed: one that changes the conversation
    /// waits for the answers to those before, and the lines behind it wait too. Questions to the
    /// gateway, and a stop, are for the moment.
    async fn say_in_turn(&mut self, said: Said) {
        let is_behind = self.held.iter().any(|held| held.place == said.place);
        let must_wait = match said.manner {
            Manner::Talks => is_behind,
            Manner::Changes => is_behind || self.asked.contains(&said.place),
            Manner::Asks | Manner::Help | Manner::Stops | Manner::Drops => false,
        };
        if must_wait {
            self.held.push_back(said);
        } else {
            self.say(said).await;
        }
    }

    /// The words for a person who stops here what is written in another topic. None where the
    /// gateway knows better.
    fn written_elsewhere(&self, manner: Manner) -> Option<String> {
        if manner != Manner::Stops || self.asked.contains(&self.place) {
            return None;
        }
        let place = self.screen.answers_in().unwrap_or(&self.asked_in);
        let agent = self.screen.at_work()?;
        (*place != self.place).then(|| texts::written_elsewhere(agent, &topics::place_name(place)))
    }

    /// Drops the held lines of the place, which the gateway does not know.
    fn drop_held(&mut self) {
        let held = std::mem::take(&mut self.held).into_iter();
        let (dropped, held): (VecDeque<_>, VecDeque<_>) =
            held.partition(|held| held.place == self.place);
        self.held = held;
        for line in &dropped {
            self.screen.forget(&line.message);
        }
        if let Some(told) = texts::dropped(dropped.len()) {
            self.screen.note(&told);
        }
    }

    /// Walking to another topic is the terminal's own business: the gateway only sees where a line
    /// was written.
    async fn go(&mut self, topic: Option<&str>) -> Outcome {
        match topics::beside(&self.place, topic) {
            Ok(place) => {
                self.place = place;
                let told = topics::arrived(&self.host, &self.place).await?;
                self.screen.note(&told);
            }
            Err(told) => self.screen.note(&told),
        }
        Ok(())
    }

    async fn list_topics(&mut self) -> Outcome {
        for line in topics::topic_list(&self.host, &self.place).await? {
            self.screen.note(&line);
        }
        Ok(())
    }

    async fn say(&mut self, said: Said) {
        self.on_their_way += 1;
        self.is_busy = true;
        if said.manner == Manner::Talks {
            self.expect_answer(&said.place).await;
        }
        if let Err(unsent) = self.lines.send(said).await {
            self.count_stored(Some(unsent.0));
        }
    }

    /// Waits for the answers under way, unless the person will not.
    async fn wait_for_answers(&mut self) -> Leaving {
        // A gateway that goes on has the lines; lines that are held here it does not have.
        let waits = !self.host.is_joined() || !self.held.is_empty();
        if !waits || !self.is_still_busy().await {
            return Leaving::Done;
        }
        self.screen.leave();
        self.screen.note(texts::WAITING);
        self.prompt.ask_for_a_way_out();
        let mut ticks = interval(TICK);
        while self.is_busy {
            let all_stored = self.on_their_way == 0;
            tokio::select! {
                biased;
                _ = self.host.deserted() => return Leaving::Done,
                entered = self.prompt.entered.recv() => match entered {
                    Some(Entered::Line { .. }) => self.prompt.ask_for_a_way_out(),
                    Some(Entered::Interrupt { .. } | Entered::End) | None => {
                        return Leaving::AtOnce;
                    }
                },
                Some(shown) = self.terminal.screen.recv() => self.screen.show(shown, &self.place),
                Some(refused) = self.stored.recv() => self.count_stored(refused),
                _ = ticks.tick() => self.screen.tick(),
                () = self.host.answered(), if all_stored => self.go_on().await,
            }
        }
        Leaving::Done
    }

    /// Ends the gateway, and prints the last messages.
    async fn leave(mut self) {
        let leaving = self.wait_for_answers().await;
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
            mut prompt,
            place,
            held,
            is_deserted,
            ..
        } = self;
        let is_summing_up = host.is_summing_up() && leaving == Leaving::Done;
        if is_summing_up {
            screen.note(SUMMING_UP);
            prompt.ask_for_a_way_out();
        }
        let has_answers = !host.is_joined();
        let mut ticks = interval(TICK);
        let mut ending = pin!(async {
            match leaving {
                Leaving::Done => host.leave().await,
                Leaving::AtOnce => host.leave_at_once().await,
            }
        });
        loop {
            tokio::select! {
                biased;
                Some(shown) = terminal.screen.recv() => screen.show(shown, &place),
                () = &mut ending => break,
                // A summary is not worth a wait to everybody.
                Some(Entered::Interrupt { .. } | Entered::End) = prompt.entered.recv(), if is_summing_up => break,
                _ = ticks.tick() => screen.tick(),
            }
        }
        while let Ok(shown) = terminal.screen.try_recv() {
            screen.show(shown, &place);
        }
        if leaving == Leaving::AtOnce {
            screen.rest(&place);
            let unsent: Vec<&str> = held.iter().map(|said| said.text.as_str()).collect();
            screen.note(&texts::left(has_answers, &unsent));
        }
        let drawn = tokio::task::spawn_blocking(move || {
            screen.finish(&place);
            if is_deserted {
                std::thread::sleep(PROMPT_SETTLES);
                print::erase_prompt();
            }
        });
        // A terminal that went away must not keep the process.
        drop(tokio::time::timeout(LAST_PICTURE_WITHIN, drawn).await);
    }
}

const STORED_WITHIN: Duration = Duration::from_secs(2);
const LAST_PICTURE_WITHIN: Duration = Duration::from_secs(2);
/// The line editor draws its open prompt once more below the last words.
const PROMPT_SETTLES: Duration = Duration::from_millis(30);

/// Takes lines to the inbox in their order. A line that is not stored comes back.
async fn pass_on(
    voice: Voice,
    mut lines: mpsc::Receiver<Said>,
    stored: mpsc::Sender<Option<Said>>,
) {
    while let Some(said) = lines.recv().await {
        let Said {
            place,
            message,
            text,
            ..
        } = said.clone();
        let is_stored = voice.say(place, message, text).await;
        if stored.send((!is_stored).then_some(said)).await.is_err() {
            return;
        }
    }
}
