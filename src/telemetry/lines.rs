//! A queue of log lines. A stalled reader never blocks the writers.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::sinks;

/// Bytes waiting for the reader, about a thousand lines.
const MOST_WAITING: usize = 256 * 1024;
/// The pause before the next try after a full reader, where the write does not block.
const FULL_PAUSE: Duration = Duration::from_millis(20);
/// With writes closer together than this, lines wait this long for each other: a busy program has a
/// line every millisecond, and each would wake the thread. A killed program loses these lines.
const TOGETHER: Duration = Duration::from_millis(10);

/// The lines to stderr. Their thread starts with the first line.
pub(super) fn stderr() -> &'static Lines {
    static STDERR: LazyLock<Lines> = LazyLock::new(|| {
        // A handle of its own: a thread stuck in a write holds no lock others need.
        let handle = system_stderr().as_fd().try_clone_to_owned().map(File::from);
        match handle {
            Ok(handle) => Lines::to(handle, MOST_WAITING, sinks::dropped),
            Err(_) => Lines::to(system_stderr(), MOST_WAITING, sinks::dropped),
        }
    });
    &STDERR
}

/// Whether a person sees the lines.
pub(super) fn is_seen() -> bool {
    system_stderr().is_terminal()
}

#[expect(clippy::disallowed_methods, reason = "the log's way to stderr")]
fn system_stderr() -> io::Stderr {
    io::stderr()
}

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Lines {
    shared: Arc<Shared>,
}

struct Shared {
    most: usize,
    /// The line in place of so many dropped lines.
    note: fn(u64) -> Vec<u8>,
    state: Mutex<State>,
    /// Notified when a line comes for a thread that is not writing.
    more: Condvar,
    /// Notified when everything is written.
    empty: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines without room, all newer than the waiting lines.
    dropped: u64,
    /// Writing, or waiting for further lines before it writes.
    is_writing: bool,
    /// Somebody waits for the lines.
    is_hurried: bool,
    /// The thread ends after the waiting lines.
    is_closed: bool,
}

impl Lines {
    pub(super) fn to(
        mut reader: impl Write + Send + 'static,
        most: usize,
        note: fn(u64) -> Vec<u8>,
    ) -> Self {
        let lines = Lines {
            shared: Arc::new(Shared {
                most,
                note,
                state: Mutex::default(),
                more: Condvar::new(),
                empty: Condvar::new(),
            }),
        };
        let own = lines.clone();
        let started = std::thread::Builder::new()
            .name("log".into())
            .spawn(move || {
                let mut before = None::<Instant>;
                while let Some(lines) = own.shared.next() {
                    write_all(&mut reader, &lines);
                    let now = Instant::now();
                    if before.is_some_and(|before| now - before < TOGETHER) {
                        own.shared.rest();
                    }
                    before = Some(now);
                }
            });
        started.expect("the process can start a thread");
        lines
    }

    /// Never waits.
    pub(super) fn push(&self, line: Vec<u8>) {
        let mut state = self.shared.lock();
        if state.bytes + line.len() > self.shared.most {
            state.dropped += 1;
            crate::metrics::dropped_line();
            return;
        }
        state.put_after_note(line, self.shared.note);
        // A writing thread looks again by itself.
        if !state.is_writing {
            self.shared.more.notify_one();
        }
    }

    /// Takes no more lines once all waiting lines are written.
    pub(super) fn close(&self) {
        self.shared.lock().is_closed = true;
        self.shared.more.notify_one();
    }

    /// Like [`Lines::push`], for the last line of the program: always has room.
    pub(super) fn push_last(&self, line: Vec<u8>) {
        let mut state = self.shared.lock();
        state.put_after_note(line, self.shared.note);
        state.is_hurried = true;
        self.shared.more.notify_one();
    }

    pub(super) fn flush_within(&self, most: Duration) {
        let until = Instant::now() + most;
        let mut state = self.shared.lock();
        while state.is_writing || !state.waiting.is_empty() || state.dropped > 0 {
            state.is_hurried = true;
            self.shared.more.notify_one();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self
                .shared
                .empty
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for lines, and takes all that wait. None after the last.
    fn next(&self) -> Option<Vec<u8>> {
        let mut state = self.lock();
        loop {
            if let Some(lines) = state.take_all(self.note) {
                state.is_writing = true;
                return Some(lines);
            }
            state.is_writing = false;
            state.is_hurried = false;
            self.empty.notify_all();
            if state.is_closed {
                return None;
            }
            state = self
                .more
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for further lines.
    fn rest(&self) {
        let is_calm = |state: &mut State| !state.is_hurried && !state.is_closed;
        let state = self.lock();
        drop(self.more.wait_timeout_while(state, TOGETHER, is_calm));
    }
}

impl State {
    fn put_after_note(&mut self, line: Vec<u8>, note: fn(u64) -> Vec<u8>) {
        if let Some(note) = self.note_of_dropped(note) {
            self.put(note);
        }
        self.put(line);
    }

    fn put(&mut self, line: Vec<u8>) {
        self.bytes += line.len();
        self.waiting.push_back(line);
    }

    /// One write for many lines.
    fn take_all(&mut self, note: fn(u64) -> Vec<u8>) -> Option<Vec<u8>> {
        let Some(mut lines) = self.waiting.pop_front() else {
            return self.note_of_dropped(note);
        };
        for line in self.waiting.drain(..) {
            lines.extend(line);
        }
        lines.extend(self.note_of_dropped(note).unwrap_or_default());
        self.bytes = 0;
        Some(lines)
    }

    /// Takes the place of the dropped lines.
    fn note_of_dropped(&mut self, note: fn(u64) -> Vec<u8>) -> Option<Vec<u8>> {
        let dropped = std::mem::take(&mut self.dropped);
        (dropped > 0).then(|| note(dropped))
    }
}

/// Lines for a reader gone away are dropped.
fn write_all(reader: &mut impl Write, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match reader.write(bytes) {
            Ok(0) => return,
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(FULL_PAUSE),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    /// A reader with a permit for each line. Goes away when no further permit can come.
    struct Slow {
        may_read: mpsc::Receiver<()>,
        read: Arc<Mutex<String>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.may_read.recv().map_err(|_| ErrorKind::BrokenPipe)?;
            self.read
                .lock()
                .unwrap()
                .push_str(&String::from_utf8_lossy(bytes));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow(most: usize) -> (Lines, mpsc::Sender<()>, Arc<Mutex<String>>) {
        let (lets_read, may_read) = mpsc::channel();
        let read = Arc::<Mutex<String>>::default();
        (
            Lines::to(
                Slow {
                    may_read,
                    read: read.clone(),
                },
                most,
                |dropped| format!("({dropped} lines were dropped here)\n").into_bytes(),
            ),
            lets_read,
            read,
        )
    }

    fn push(lines: &Lines, text: &str) {
        lines.push(format!("{text}\n").into_bytes());
    }

    #[test]
    fn lines_that_find_no_room_are_dropped_and_counted_where_they_would_stand() {
        let (lines, lets_read, read) = slow(7);
        push(&lines, "first");
        while !lines.shared.lock().is_writing {
            std::thread::yield_now();
        }
        ["second", "third", "fourth"]
            .iter()
            .for_each(|text| push(&lines, text));
        // A permit for each line, and another for the note.
        (0..4).for_each(|_| lets_read.send(()).unwrap());
        lines.flush_within(LONG);
        push(&lines, "fifth");
        lines.flush_within(LONG);
        insta::assert_snapshot!(read.lock().unwrap(), @"
        first
        second
        (2 lines were dropped here)
        fifth
        ");
    }

    #[test]
    fn lines_that_wait_together_are_one_write() {
        let (lines, lets_read, read) = slow(100);
        push(&lines, "first");
        while !lines.shared.lock().is_writing {
            std::thread::yield_now();
        }
        ["second", "third", "fourth"]
            .iter()
            .for_each(|text| push(&lines, text));
        (0..2).for_each(|_| lets_read.send(()).unwrap());
        lines.flush_within(LONG);
        assert_eq!(
            read.lock().unwrap().as_str(),
            "first\nsecond\nthird\nfourth\n"
        );
    }

    #[test]
    fn the_last_line_always_has_room() {
        let (lines, lets_read, read) = slow(7);
        ["first", "second", "third"]
            .iter()
            .for_each(|text| push(&lines, text));
        lines.push_last(b"error: the end\n".to_vec());
        (0..5).for_each(|_| lets_read.send(()).unwrap());
        lines.flush_within(LONG);
        assert!(read.lock().unwrap().ends_with("error: the end\n"));
    }

    #[test]
    fn a_closed_file_gets_the_lines_that_wait() {
        let (lines, lets_read, read) = slow(7);
        push(&lines, "first");
        lines.close();
        lets_read.send(()).unwrap();
        lines.flush_within(LONG);
        assert_eq!(read.lock().unwrap().as_str(), "first\n");
    }

    #[test]
    fn the_end_waits_for_a_reader_only_so_long() {
        let (lines, lets_read, read) = slow(7);
        push(&lines, "first");
        lines.flush_within(Duration::from_millis(1));
        assert_eq!(read.lock().unwrap().as_str(), "");
        drop(lets_read);
        lines.flush_within(LONG);
        assert!(
            !lines.shared.lock().is_writing,
            "a reader that is gone holds up nothing"
        );
    }
}
