//! `file_read`: a text file, or a piece of a file.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Asker, Failure, PATHS, failed, find, run_reading};
use crate::agents::{FileError, FileView, Found, Want};
use crate::domain::{Labels, Source};
use crate::models::ToolSpec;
use crate::tools::{Outcome, Risk, Scope, Tool};

/// Bytes in a result: less than the limit for results of all tools, so that the note about a cut is
/// not cut itself.
const MAX_SHOWN_BYTES: usize = 24 * 1024;
/// How far into a file lines are counted. A piece further on is reached with `offset`.
const MAX_SCANNED_BYTES: u64 = 64 * 1024 * 1024;

pub(super) struct FileRead;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    /// From 1.
    start_line: Option<u64>,
    lines: Option<u64>,
    /// In bytes, from 0.
    offset: Option<u64>,
    length: Option<u64>,
}

#[async_trait]
impl Tool for FileRead {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "file_read".into(),
            description: format!(
                "Reads a text file, up to 24 KB in one call. Choose a piece by lines (start_line, lines) or by bytes (offset, \
                 length). {PATHS}"
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "start_line": { "type": "integer", "minimum": 1, "description": "The first line, from 1." },
                    "lines": { "type": "integer", "minimum": 1, "description": "How many lines." },
                    "offset": { "type": "integer", "minimum": 0, "description": "The first byte, from 0, instead of lines." },
                    "length": { "type": "integer", "minimum": 1, "description": "How many bytes." },
                },
                "required": ["path"],
                "additionalProperties": false,
            }).into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        run_reading(scope, arguments, read).await
    }
}

fn read(
    files: &FileView,
    arguments: Arguments,
    asker: &Asker,
) -> Result<(Outcome, Labels), Failure> {
    let found = find(files, &arguments.path, Want::Read)?;
    let labels = asker.labels(&found, &found.path);
    text_of(&found, &arguments).map(|read| (read, labels))
}

fn text_of(found: &Found, arguments: &Arguments) -> Result<Outcome, Failure> {
    let (file, _) = found
        .workspace
        .open(&found.path)
        .map_err(|error| failed(&arguments.path, &error))?;
    let piece = match (arguments.offset, arguments.length) {
        (None, None) => by_lines(
            BufReader::new(file),
            arguments.start_line.unwrap_or(1),
            arguments.lines.unwrap_or(u64::MAX),
        ),
        (offset, length) => by_bytes(file, offset.unwrap_or(0), length.unwrap_or(u64::MAX)),
    };
    let Piece { bytes, note } =
        piece.map_err(|error| failed(&arguments.path, &FileError::from(error)))?;
    if bytes.contains(&0) {
        let advice = "It has zero bytes in it. `file_send` can send it to the people here.";
        return Err(Failure::Said(format!(
            "`{}` is no text. {advice}",
            arguments.path
        )));
    }
    let text = String::from_utf8_lossy(&bytes);
    let is_broken = matches!(text, std::borrow::Cow::Owned(_));
    if text.is_empty() && note.is_none() {
        return Ok(Outcome::say(format!("`{}` is empty.", arguments.path)));
    }
    let broken = is_broken.then(|| "some bytes are not UTF-8 and are shown as �".to_owned());
    let read = Outcome::of(Source::File(arguments.path.clone()), text.into_owned());
    Ok(read.noting(note).noting(broken))
}

/// A piece of a file, and a note about the rest.
struct Piece {
    bytes: Vec<u8>,
    note: Option<String>,
}

fn by_lines(file: impl BufRead, start: u64, lines: u64) -> std::io::Result<Piece> {
    let mut file = file.take(MAX_SCANNED_BYTES);
    let start = start.max(1);
    for skipped in 1..start {
        if skip_line(&mut file)? == 0 {
            let note = if file.limit() == 0 {
                too_far()
            } else {
                format!("there are only {} lines", skipped - 1)
            };
            return Ok(Piece {
                bytes: Vec::new(),
                note: Some(note),
            });
        }
    }
    let mut bytes = Vec::new();
    let mut number = start;
    while number - start < lines {
        let before = bytes.len();
        let room = (MAX_SHOWN_BYTES - before) as u64;
        (&mut file).take(room).read_until(b'\n', &mut bytes)?;
        if bytes.len() == before {
            return Ok(Piece {
                bytes,
                note: (file.limit() == 0).then(too_far),
            });
        }
        let is_cut = bytes.len() == MAX_SHOWN_BYTES && bytes.last() != Some(&b'\n');
        if is_cut && before == 0 {
            trim_end(&mut bytes);
            let note = format!(
                "cut inside line {number}, which is very long; read on with offset and length"
            );
            return Ok(Piece {
                bytes,
                note: Some(note),
            });
        }
        if is_cut || bytes.len() == MAX_SHOWN_BYTES {
            bytes.truncate(if is_cut { before } else { bytes.len() });
            let next = if is_cut { number } else { number + 1 };
            return Ok(Piece {
                bytes,
                note: Some(format!(
                    "cut before line {next}; read on with start_line = {next}"
                )),
            });
        }
        number += 1;
    }
    let has_more = !file.fill_buf()?.is_empty();
    Ok(Piece {
        bytes,
        note: has_more.then(|| format!("more follows from line {number}")),
    })
}

/// Returns the length of a line without keeping the line.
fn skip_line(file: &mut impl BufRead) -> std::io::Result<usize> {
    let mut length = 0;
    loop {
        let available = file.fill_buf()?;
        let (used, is_whole) = match available.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (available.len(), available.is_empty()),
        };
        file.consume(used);
        length += used;
        if is_whole {
            return Ok(length);
        }
    }
}

fn too_far() -> String {
    format!(
        "lines are counted up to {} MB; read further on with offset",
        MAX_SCANNED_BYTES / (1024 * 1024)
    )
}

fn by_bytes(mut file: impl Read + Seek, offset: u64, length: u64) -> std::io::Result<Piece> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.by_ref()
        .take(length.min(MAX_SHOWN_BYTES as u64))
        .read_to_end(&mut bytes)?;
    let has_more = file.read(&mut [0])? > 0;
    let end = offset.saturating_add(bytes.len() as u64);
    // A piece may begin and end inside a character.
    let inside = bytes
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000)
        .count();
    bytes.drain(..inside);
    trim_end(&mut bytes);
    let note = match (bytes.is_empty(), has_more) {
        (true, false) => Some("nothing is there".to_owned()),
        (_, true) => Some(format!("more follows from offset {end}")),
        (false, false) => None,
    };
    Ok(Piece { bytes, note })
}

/// Removes an incomplete character at the end.
fn trim_end(bytes: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn lines(text: &str, start: u64, count: u64) -> String {
        let Piece { bytes, note } = by_lines(Cursor::new(text), start, count).unwrap();
        format!(
            "{}{}",
            String::from_utf8(bytes).unwrap(),
            note.unwrap_or_default()
        )
    }

    #[test]
    fn lines_are_chosen_and_the_rest_is_told() {
        let text = "one\ntwo\nthree\n";
        assert_eq!(lines(text, 1, 99), text);
        assert_eq!(lines(text, 2, 1), "two\nmore follows from line 3");
        assert_eq!(lines(text, 3, 1), "three\n");
        assert_eq!(lines(text, 4, 1), "");
        assert_eq!(lines(text, 9, 1), "there are only 3 lines");
        assert_eq!(lines("no end", 1, 9), "no end");
    }

    #[test]
    fn a_long_file_is_cut_between_lines_and_can_be_read_on() {
        let text: String = (1..=3000)
            .map(|number| format!("line {number:>6} é\n"))
            .collect();
        let mut read = String::new();
        let mut start = 1;
        for _ in 0..9 {
            let Piece { bytes, note } = by_lines(Cursor::new(&text), start, u64::MAX).unwrap();
            read += &String::from_utf8(bytes).unwrap();
            let Some(note) = note else { break };
            start = note
                .rsplit("= ")
                .next()
                .unwrap()
                .trim_end_matches(']')
                .parse()
                .unwrap();
        }
        assert_eq!(read, text);
        let long = "é".repeat(MAX_SHOWN_BYTES);
        assert!(
            lines(&long, 1, 1).ends_with(
                "écut inside line 1, which is very long; read on with offset and length"
            )
        );
    }

    #[test]
    fn bytes_never_split_a_character() {
        for (offset, length, expected) in [
            (0, 3, "émore follows from offset 3"),
            (1, 2, "more follows from offset 3"),
            (3, 99, "é"),
            (99, 1, "nothing is there"),
        ] {
            let Piece { bytes, note } = by_bytes(Cursor::new("ééé"), offset, length).unwrap();
            assert_eq!(
                format!(
                    "{}{}",
                    String::from_utf8(bytes).unwrap(),
                    note.unwrap_or_default()
                ),
                expected,
                "{offset}+{length}"
            );
        }
    }
}
