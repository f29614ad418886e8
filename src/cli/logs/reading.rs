//! The lines of a log file: those before it was begun anew, those in it, and those still to come.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::telemetry::earlier_files;

/// Between two looks for further lines.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Reads all files, the oldest first. A follower goes on behind the last line read here.
pub(super) fn each_line(
    path: &Path,
    follower: Option<&Follower>,
    mut take: impl FnMut(&str),
) -> io::Result<()> {
    let earlier = earlier_files(path);
    for file in &earlier {
        // A file may be moved on at this very moment.
        if let Ok(file) = File::open(&file.path) {
            lines_of(BufReader::new(file), &mut take)?;
        }
    }
    match follower {
        Some(follower) => {
            follower.read_on(&mut take);
            Ok(())
        }
        None => match File::open(path) {
            Ok(file) => lines_of(BufReader::new(file), &mut take),
            // Between the move of a file and the beginning of the next.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !earlier.is_empty() => Ok(()),
            Err(error) => Err(error),
        },
    }
}

fn lines_of(mut file: impl BufRead, take: &mut impl FnMut(&str)) -> io::Result<()> {
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        hand_over(&line, take);
        line.clear();
    }
    Ok(())
}

fn hand_over(line: &[u8], take: &mut impl FnMut(&str)) {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches('\n');
    if !line.is_empty() {
        take(line);
    }
}

/// Follows a file, also when it is begun anew.
pub(super) struct Follower {
    path: PathBuf,
    state: RefCell<State>,
}

struct State {
    /// None while there is no file.
    file: Option<File>,
    /// The beginning of a line whose end is still to come.
    rest: Vec<u8>,
}

impl Follower {
    pub(super) fn new(path: &Path) -> Self {
        Follower {
            path: path.to_owned(),
            state: RefCell::new(State {
                file: File::open(path).ok(),
                rest: Vec::new(),
            }),
        }
    }

    /// Waits a moment, then reads what has come.
    pub(super) fn wait_for_more(&mut self, mut take: impl FnMut(&str)) {
        std::thread::sleep(LOOK_AGAIN_AFTER);
        // Looked at first: lines of the old file come before it is left.
        let is_another = self.is_another();
        self.read_on(&mut take);
        if is_another {
            let state = self.state.get_mut();
            state.file = File::open(&self.path).ok();
            state.rest.clear();
            self.read_on(&mut take);
        }
    }

    /// Whether the path leads to another file by now.
    fn is_another(&self) -> bool {
        let state = self.state.borrow();
        let open = state.file.as_ref().and_then(|file| file.metadata().ok());
        let now = std::fs::metadata(&self.path).ok();
        match (open, now) {
            (Some(open), Some(now)) => (open.dev(), open.ino()) != (now.dev(), now.ino()),
            (None, Some(_)) => true,
            (_, None) => false,
        }
    }

    fn read_on(&self, take: &mut impl FnMut(&str)) {
        let mut state = self.state.borrow_mut();
        let State { file, rest } = &mut *state;
        let Some(file) = file else { return };
        // What could not be read is tried with the next look.
        drop(file.read_to_end(rest));
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else {
            return;
        };
        let whole: Vec<u8> = rest.drain(..=end).collect();
        for line in whole.split(|byte| *byte == b'\n') {
            hand_over(line, take);
        }
    }
}
