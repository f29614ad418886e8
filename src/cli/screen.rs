//! What `parlor chat` prints: who speaks, in colour where a person reads it, and the text as it comes.

use std::io::{Write, stdout};
use std::path::Path;

use crate::channels::local::Shown;

pub(super) struct Screen {
    interactive: bool,
    /// Somebody is in the middle of saying something.
    speaking: bool,
    at_line_start: bool,
}

impl Screen {
    pub(super) fn new(interactive: bool) -> Self {
        Screen { interactive, speaking: false, at_line_start: true }
    }

    pub(super) fn welcome(&mut self, created: Option<&Path>) {
        if let Some(home) = created {
            self.note(&format!("A home for your agents was made in {}.", home.display()));
        }
        self.note("Just write. /topic writing and /topic code have other agents; /help tells the rest, /quit leaves.");
    }

    /// Something the chat itself has to say.
    pub(super) fn note(&mut self, text: &str) {
        let (dim, plain) = if self.interactive { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        self.print(&format!("{dim}{text}{plain}\n"));
    }

    pub(super) fn show(&mut self, shown: Shown) {
        match shown {
            Shown::Text { speaker, text } => {
                if !self.speaking {
                    self.speaking = true;
                    self.name(speaker.as_deref());
                }
                self.print(&printable(&text));
            }
            Shown::End => {
                self.speaking = false;
                if !self.at_line_start {
                    self.print("\n");
                }
            }
        }
    }

    fn name(&mut self, speaker: Option<&str>) {
        let (bold, plain) = if self.interactive { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        if let Some(speaker) = speaker {
            self.print(&format!("{bold}{}:{plain} ", printable(speaker)));
        }
    }

    fn print(&mut self, text: &str) {
        let mut out = stdout().lock();
        // A reader that went away, as in `parlor chat | head`, is no reason to stop storing answers.
        drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
        if let Some(last) = text.chars().last() {
            self.at_line_start = last == '\n';
        }
    }
}

/// A model must not be able to drive the terminal with control sequences.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || *c == '\n' || *c == '\t').collect()
}
