//! The output of `parlor chat`: names of speakers, in colour for a person at a terminal, and text
//! as soon as there is some.

use std::io::{Write, stdout};
use std::path::Path;

use crate::channels::local::{Shown, Whole};
use crate::domain::SessionKey;

pub(super) struct Screen {
    interactive: bool,
    /// An answer is being printed piece by piece.
    speaking: bool,
    /// Messages from the middle of an answer, held until its end.
    held: Vec<Whole>,
    at_line_start: bool,
}

impl Screen {
    pub(super) fn new(interactive: bool) -> Self {
        Screen {
            interactive,
            speaking: false,
            held: Vec::new(),
            at_line_start: true,
        }
    }

    pub(super) fn welcome(&mut self, created: Option<&Path>) {
        if let Some(home) = created {
            self.note(&format!(
                "A home for your agents was made in {}.",
                home.display()
            ));
        }
        self.note("Just write. /topic writing and /topic code have other agents; /help tells the rest, /quit leaves.");
    }

    /// Prints a note of the chat itself.
    pub(super) fn note(&mut self, text: &str) {
        let (dim, plain) = if self.interactive {
            ("\x1b[2m", "\x1b[0m")
        } else {
            ("", "")
        };
        self.print(&format!("{dim}{text}{plain}\n"));
    }

    /// Prints a note beside the conversation: to stderr where a script reads the answers.
    pub(super) fn remark(&mut self, text: &str) {
        if self.interactive {
            self.note(text);
        } else {
            eprintln!("{text}");
        }
    }

    /// `here` is the place where the person writes.
    pub(super) fn show(&mut self, shown: Shown, here: &SessionKey) {
        match shown {
            Shown::Text { speaker, text } => {
                if !self.speaking {
                    self.speaking = true;
                    self.name(speaker.as_deref());
                }
                self.print(&printable(&text));
            }
            Shown::End => {
                self.end();
                let held = std::mem::take(&mut self.held);
                held.into_iter().for_each(|whole| self.whole(whole, here));
            }
            Shown::Whole(whole) if self.speaking => self.held.push(whole),
            Shown::Whole(whole) => self.whole(whole, here),
        }
    }

    /// A heading stands above a message from elsewhere or from before; the answer to the last line
    /// needs none.
    fn whole(
        &mut self,
        Whole {
            place,
            is_left,
            speaker,
            text,
        }: Whole,
        here: &SessionKey,
    ) {
        match (is_left, place == *here) {
            (true, true) => self.note("What was asked here before is answered now:"),
            (true, false) => self.note(&format!(
                "What was asked before in {place} is answered now:"
            )),
            (false, false) => self.note(&format!("In {place}:")),
            (false, true) => {}
        }
        self.name(speaker.as_deref());
        self.print(&printable(&text));
        self.end();
    }

    fn end(&mut self) {
        self.speaking = false;
        if !self.at_line_start {
            self.print("\n");
        }
    }

    fn name(&mut self, speaker: Option<&str>) {
        let (bold, plain) = if self.interactive {
            ("\x1b[1m", "\x1b[0m")
        } else {
            ("", "")
        };
        if let Some(speaker) = speaker {
            self.print(&format!("{bold}{}:{plain} ", printable(speaker)));
        }
    }

    fn print(&mut self, text: &str) {
        let mut out = stdout().lock();
        // Answers are stored even if the reader went away, as in `parlor chat | head`.
        drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
        if let Some(last) = text.chars().last() {
            self.at_line_start = last == '\n';
        }
    }
}

/// A model must not be able to drive the terminal with control sequences.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || *c == '\n' || *c == '\t')
        .collect()
}
