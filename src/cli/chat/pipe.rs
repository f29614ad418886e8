//! Lines from a pipe or a file: each is answered before the next is read. Answers go to stdout as
//! they were written, everything else to stderr.

use std::pin::pin;

use tokio::io::{AsyncBufReadExt, BufReader};

use super::host::Host;
use super::texts::{self, SUMMING_UP};
use super::topics;
use super::words;
use crate::channels::local::{Shown, Terminal, Whole, new_message};
use crate::cli::interrupts::Interrupts;
use crate::cli::{Failure, Outcome, note, print};
use crate::commands::{self, Parsed};
use crate::domain::{MessageId, SessionKey};
use crate::printable::printable;

pub(super) async fn run(
    host: Host,
    terminal: Terminal,
    place: SessionKey,
    mut interrupts: Interrupts,
) -> Outcome {
    let mut chat = Piped {
        host,
        terminal,
        place,
        page: Page::default(),
        asked: Vec::new(),
        under_way: None,
        failures: 0,
    };
    let read = tokio::select! {
        read = chat.read() => read,
        code = interrupts.next() => {
            tokio::select! {
                () = chat.take_back() => {}
                _ = interrupts.next() => {}
            }
            std::process::exit(code);
        }
    };
    let counted = chat.count_unanswered().await;
    let failures = chat.failures;
    tokio::select! {
        () = chat.leave() => {}
        code = interrupts.next() => std::process::exit(code),
    }
    read.and(counted)?;
    match failures {
        0 => Ok(()),
        1 => Err(Failure::Failed("a line was not answered".into())),
        lines => Err(Failure::Failed(format!("{lines} lines were not answered"))),
    }
}

struct Piped {
    host: Host,
    terminal: Terminal,
    place: SessionKey,
    page: Page,
    /// Lines to an agent.
    asked: Vec<MessageId>,
    /// The line that is being answered.
    under_way: Option<MessageId>,
    failures: usize,
}

impl Piped {
    async fn read(&mut self) -> Outcome {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Some(line) = lines.next_line().await? {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                [own, ..] if words::leaves(own) => break,
                ["/topics", ..] => {
                    let listed = topics::topic_list(&self.host, &self.place).await?;
                    listed.iter().for_each(|line| self.page.line(line));
                }
                ["/topic"] => self.go(None).await?,
                ["/topic", words @ ..] => self.go(Some(&words.join(" "))).await?,
                ["/help"] => self.page.line(texts::HELP),
                ["/help", ..] => {
                    self.say(line).await?;
                    self.page.line(&format!("\n{}", texts::here_too()));
                }
                _ => match words::meant_for_the_terminal(&line) {
                    Some(told) => self.page.line(&told),
                    None => self.say(line).await?,
                },
            }
        }
        Ok(())
    }

    async fn go(&mut self, topic: Option<&str>) -> Outcome {
        match topics::beside(&self.place, topic) {
            Ok(place) => {
                self.place = place;
                let told = topics::arrived(&self.host, &self.place).await?;
                note(format_args!("{told}"));
            }
            Err(told) => {
                note(format_args!("{told}"));
                self.failures += 1;
            }
        }
        Ok(())
    }

    /// Prints messages until the line is answered. Summaries are made meanwhile and keep no line
    /// waiting.
    async fn say(&mut self, line: String) -> Outcome {
        let parsed = commands::parse(&line);
        let is_talk = parsed == Parsed::Talk;
        let is_mistaken = matches!(parsed, Parsed::Misused { .. } | Parsed::Mistaken(_));
        self.page.is_talk = is_talk;
        let message = new_message();
        self.under_way = Some(message.clone());
        let voice = self.terminal.voice.clone();
        if !voice.say(self.place.clone(), message.clone(), line).await {
            return Err(Failure::Failed(self.host.refusal()));
        }
        loop {
            tokio::select! {
                biased;
                Some(shown) = self.terminal.screen.recv() => self.page.show(shown, &self.place),
                () = self.host.answered() => break,
                reason = self.host.deserted() => return Err(Failure::Failed(reason)),
            }
        }
        while let Ok(shown) = self.terminal.screen.try_recv() {
            self.page.show(shown, &self.place);
        }
        self.terminal.rest();
        self.under_way = None;
        if is_talk {
            self.asked.push(message);
        }
        self.failures += usize::from(is_mistaken);
        Ok(())
    }

    /// Cancels the line at hand for good: nobody reads its answer.
    async fn take_back(self) {
        if let Some(line) = &self.under_way {
            drop(self.host.cancel(line).await);
        }
        self.host.leave_at_once().await;
    }

    /// Counts the lines without an answer. Asked at the end, because a line may wait for a paused
    /// agent and be answered later.
    async fn count_unanswered(&mut self) -> Outcome {
        for message in std::mem::take(&mut self.asked) {
            let turn = self.host.turn_of(&message).await?;
            self.failures += usize::from(turn.is_none_or(|turn| !turn.is_answered));
        }
        Ok(())
    }

    /// Ends the gateway, and prints the last messages.
    async fn leave(self) {
        let Piped {
            host,
            mut terminal,
            mut page,
            place,
            ..
        } = self;
        if host.is_summing_up() {
            note(format_args!("{SUMMING_UP}"));
        }
        let mut ending = pin!(host.leave());
        loop {
            tokio::select! {
                biased;
                Some(shown) = terminal.screen.recv() => page.show(shown, &place),
                () = &mut ending => break,
            }
        }
        while let Ok(shown) = terminal.screen.try_recv() {
            page.show(shown, &place);
        }
    }
}

/// The output: pieces as they come, and never half a line at its end.
#[derive(Default)]
struct Page {
    /// The line at hand is no command, so the gateway's own words tell why nobody answers.
    is_talk: bool,
    /// Messages from the middle of an answer, held until its end.
    held: Vec<Whole>,
    is_speaking: bool,
    is_in_line: bool,
}

impl Page {
    fn show(&mut self, shown: Shown, here: &SessionKey) {
        match shown {
            Shown::Text { text, .. } => {
                self.is_speaking = true;
                self.print(&text);
            }
            Shown::End => {
                self.is_speaking = false;
                self.end_line();
                let held = std::mem::take(&mut self.held);
                held.iter().for_each(|whole| self.whole(whole, here));
            }
            // Scripts are shown such answers whole.
            Shown::TakenUp { .. } => {}
            Shown::Whole(whole) if self.is_speaking => self.held.push(whole),
            Shown::Whole(whole) => self.whole(&whole, here),
        }
    }

    /// Messages from elsewhere or from before answer no line of this pipe.
    fn whole(&mut self, whole: &Whole, here: &SessionKey) {
        let (place, text) = (topics::place_name(&whole.place), &whole.text);
        let explains = self.is_talk && whole.speaker.is_none();
        match (whole.is_left, whole.place == *here) {
            (true, true) => note(format_args!(
                "What was asked here before is answered now:\n{text}"
            )),
            (true, false) => note(format_args!(
                "What was asked before in {place} is answered now:\n{text}"
            )),
            (false, false) => note(format_args!("In {place}:\n{text}")),
            (false, true) if whole.is_failure() || explains => note(format_args!("{text}")),
            (false, true) => self.line(text),
        }
    }

    fn line(&mut self, text: &str) {
        self.print(text);
        self.end_line();
    }

    fn end_line(&mut self) {
        if self.is_in_line {
            self.print("\n");
        }
    }

    fn print(&mut self, text: &str) {
        let text = printable(text);
        print::piece(&text);
        if let Some(last) = text.chars().last() {
            self.is_in_line = last != '\n';
        }
    }
}
