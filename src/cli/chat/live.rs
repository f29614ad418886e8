//! The part of the screen above the prompt that changes: the answer being written, the sign of life
//! and the lines that wait. A thread of its own draws, because the line editor may keep it waiting.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustyline::ExternalPrinter;

use crate::cli::print;

/// Lines that stay, and lines below them that the next picture replaces.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) lines: Vec<String>,
    pub(super) live: Vec<String>,
}

impl Picture {
    /// The newer picture replaces the live lines.
    fn followed_by(mut self, newer: Picture) -> Self {
        self.lines.extend(newer.lines);
        self.live = newer.live;
        self
    }
}

/// The rows of the screen above the prompt that a new picture may write over. Cheap to clone.
#[derive(Debug, Default, Clone)]
pub(super) struct Rows(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    live: usize,
    /// Prompts with their lines, ended below the live rows.
    ended: usize,
}

/// What became of a line that was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    /// The line stays on the screen.
    Stays,
    /// The next picture writes over the line, so the line must be printed when its turn comes.
    Goes,
}

impl Rows {
    /// Counts the rows of a prompt that ended.
    pub(super) fn prompt_ended(&self, rows: usize) -> Typed {
        let mut counted = self.lock();
        if counted.live == 0 {
            return Typed::Stays;
        }
        counted.ended += rows;
        Typed::Goes
    }

    /// How many rows up the next picture begins.
    fn turn_over(&self, live: usize) -> usize {
        let mut counted = self.lock();
        let up = counted.live + counted.ended;
        *counted = Counted { live, ended: 0 };
        up
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle of the drawing thread.
pub(super) struct Live {
    slot: Arc<Slot>,
    thread: Option<JoinHandle<()>>,
}

/// The next picture. Pictures that come while one is being drawn are joined.
#[derive(Default)]
struct Slot {
    next: Mutex<Next>,
    changed: Condvar,
    drawn: Condvar,
}

#[derive(Default)]
struct Next {
    picture: Option<Picture>,
    is_drawing: bool,
    is_over: bool,
}

impl Live {
    pub(super) fn new(printer: impl ExternalPrinter + Send + 'static, rows: Rows) -> Self {
        let slot = Arc::new(Slot::default());
        let own = slot.clone();
        let thread = std::thread::spawn(move || draw(&own, printer, &rows));
        Live {
            slot,
            thread: Some(thread),
        }
    }

    pub(super) fn show(&self, picture: Picture) {
        let mut next = self.slot.lock();
        next.picture = Some(match next.picture.take() {
            Some(older) => older.followed_by(picture),
            None => picture,
        });
        self.slot.changed.notify_one();
    }

    /// Returns when everything shown so far is drawn. For the time before the first prompt: a line
    /// editor at work draws when it likes.
    pub(super) fn settle(&self) {
        let mut next = self.slot.lock();
        while next.picture.is_some() || next.is_drawing {
            next = self
                .slot
                .drawn
                .wait(next)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns when all is drawn, above an open prompt too.
    pub(super) fn finish(&mut self) {
        self.slot.lock().is_over = true;
        self.slot.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A drawing thread that panicked has logged it.
            drop(thread.join());
        }
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next picture; none at the end.
    fn take(&self) -> Option<Picture> {
        let mut next = self.lock();
        next.is_drawing = false;
        loop {
            if let Some(picture) = next.picture.take() {
                next.is_drawing = true;
                return Some(picture);
            }
            self.drawn.notify_all();
            if next.is_over {
                return None;
            }
            next = self
                .changed
                .wait(next)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn draw(slot: &Slot, mut printer: impl ExternalPrinter, rows: &Rows) {
    let mut shown = Vec::new();
    while let Some(Picture { lines, live }) = slot.take() {
        if lines.is_empty() && live == shown {
            continue;
        }
        let up = rows.turn_over(live.len());
        let all: Vec<String> = lines.into_iter().chain(live.iter().cloned()).collect();
        shown = live;
        // A terminal that went away reads nothing more.
        drop(printer.print(print::picture(up, &all)));
    }
    // The editor of an open prompt has room for one picture that waits, and takes the next when the
    // last is drawn: the second of these is taken from here when the last picture is on the screen.
    for _ in 0..2 {
        drop(printer.print(print::picture(0, &[])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_typed_under_a_picture_is_drawn_over() {
        let rows = Rows::default();
        assert_eq!(rows.prompt_ended(1), Typed::Stays);
        assert_eq!(rows.turn_over(2), 0);
        assert_eq!(rows.prompt_ended(3), Typed::Goes);
        assert_eq!(rows.turn_over(0), 5);
        assert_eq!(rows.prompt_ended(1), Typed::Stays);
        assert_eq!(rows.turn_over(1), 0);
    }

    #[test]
    fn pictures_that_wait_are_joined() {
        let picture = |lines: &[&str], live: &str| Picture {
            lines: lines.iter().map(|&line| line.into()).collect(),
            live: vec![live.into()],
        };
        let joined = picture(&["a"], "b").followed_by(picture(&["b", "c"], "d"));
        assert_eq!(joined, picture(&["a", "b", "c"], "d"));
    }
}
