//! `file_search` in its child process: lines that fit a pattern, in files that are streamed in.
//!
//! A pattern from a model can keep a processor busy for minutes with a single line. The child is
//! ended then, and the lines found until then are told.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use super::stream::FileStream;
use crate::sandbox::{Job, Limits};

pub(in crate::tools) static SEARCH: Job = Job {
    name: "search",
    limits: Limits {
        memory_bytes: 192 * 1024 * 1024,
        // Time for a last look at the clock.
        time: Duration::from_secs(MAX_TIME.as_secs() + 1),
        // The child stops at its own limit before.
        input_bytes: 2 * MAX_BYTES,
        output_bytes: 1024 * 1024,
    },
    work,
};

/// Limits of a search: the first to be reached ends the search, and the result tells so.
pub(super) const MAX_BYTES: u64 = 64 * 1024 * 1024;
pub(super) const MAX_TIME: Duration = Duration::from_secs(5);
pub(super) const MAX_RESULTS: usize = 100;
/// Bytes of a line that are searched together. A longer line is searched in pieces of this length, and
/// a match over the end of a piece is not found.
const MAX_LINE_BYTES: u64 = 64 * 1024;
pub(super) const MAX_SHOWN_CHARS: usize = 200;
/// The text of a pattern, and the memory of a compiled pattern.
pub(super) const MAX_PATTERN_BYTES: usize = 16 * 1024;
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

/// The first line of the input. Files follow, see [`FileStream`].
#[derive(Serialize, Deserialize)]
pub(super) struct Wanted {
    pub(super) pattern: String,
}

/// A line of the output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// A line that fits.
    Line {
        /// The position of the file in the input, from 0.
        file: usize,
        /// From 1.
        number: u64,
        text: String,
    },
    Stopped(Limit),
    /// The pattern does not work.
    Refused(String),
}

/// A limit of a search that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Limit {
    Bytes,
    Time,
    Results,
}

fn work(mut input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<()> {
    let mut first = String::new();
    // A pattern may be longer as JSON than it is.
    let most = 8 * MAX_PATTERN_BYTES as u64;
    (&mut input).take(most).read_line(&mut first)?;
    let wanted: Wanted = serde_json::from_str(&first)?;
    let pattern = match compiled(&wanted.pattern) {
        Ok(pattern) => pattern,
        Err(refusal) => return tell(output, &Told::Refused(refusal)),
    };
    let mut search = Search {
        pattern,
        output,
        told: 0,
        bytes_left: MAX_BYTES,
        until: Instant::now() + MAX_TIME,
    };
    for file in 0.. {
        let Some(mut stream) = FileStream::next(input)? else {
            break;
        };
        if let ControlFlow::Break(limit) = search.lines_of(file, &mut stream)? {
            return tell(search.output, &Told::Stopped(limit));
        }
        stream.skip_rest()?;
    }
    Ok(())
}

fn compiled(pattern: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(pattern)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .build();
    built.map_err(|error| error.to_string())
}

/// Where a piece of a line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Begin,
    /// In a line of several pieces.
    Inside,
    /// The same, and the line was told.
    Told,
}

struct Search<'a> {
    pattern: Regex,
    output: &'a mut dyn Write,
    told: usize,
    bytes_left: u64,
    until: Instant,
}

impl Search<'_> {
    /// The rest of a file without text is left out.
    fn lines_of(&mut self, file: usize, stream: &mut impl Read) -> io::Result<ControlFlow<Limit>> {
        let mut reader = BufReader::new(stream);
        let (mut line, mut number, mut place) = (Vec::new(), 0, Place::Begin);
        loop {
            line.clear();
            let read = reader
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line)?;
            if read == 0 || line.contains(&0) {
                return Ok(ControlFlow::Continue(()));
            }
            number += u64::from(place == Place::Begin);
            if let Some(limit) = self.spend(read as u64) {
                return Ok(ControlFlow::Break(limit));
            }
            let is_new = place != Place::Told && self.pattern.is_match(line.trim_ascii_end());
            if is_new {
                if self.told == MAX_RESULTS {
                    return Ok(ControlFlow::Break(Limit::Results));
                }
                self.told += 1;
                let text = shown(&line);
                tell(self.output, &Told::Line { file, number, text })?;
            }
            place = match place {
                _ if line.ends_with(b"\n") => Place::Begin,
                _ if is_new => Place::Told,
                Place::Begin => Place::Inside,
                place => place,
            };
        }
    }

    fn spend(&mut self, bytes: u64) -> Option<Limit> {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if self.bytes_left == 0 {
            return Some(Limit::Bytes);
        }
        (Instant::now() > self.until).then_some(Limit::Time)
    }
}

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line)
        .trim()
        .chars()
        .take(MAX_SHOWN_CHARS)
        .collect()
}

/// Each line is written at once, so that none is lost when the child is ended.
fn tell(output: &mut dyn Write, told: &Told) -> io::Result<()> {
    let mut line = serde_json::to_vec(told)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}
