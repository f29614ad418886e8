//! The lines of a text in a package: checked singly on the way in, and kept in a file until they
//! are taken over, so that no package fills the memory.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Limits of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The text's name in the package.
    pub(super) name: &'static str,
    pub(super) line_bytes: u64,
    pub(super) lines: usize,
    pub(super) bytes: u64,
}

/// Whether a line is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    No,
}

/// Checked lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// None if there was no such text.
    path: Option<PathBuf>,
    pub(super) count: usize,
}

impl Lines {
    /// Reads a text up to its limits into a new file. The error names the text and the line.
    pub(super) fn take_in(
        text: impl Read,
        bounds: Bounds,
        path: &Path,
        mut check: impl FnMut(&str) -> Result<Taken, String>,
    ) -> Result<Self, String> {
        let Bounds { name, .. } = bounds;
        let failed = |error: io::Error| format!("{name}: {}", super::package::unreadable(&error));
        let mut kept = BufWriter::new(create(path).map_err(failed)?);
        let (mut reader, mut line, mut count) = (BufReader::new(text), Vec::new(), 0);
        let (mut number, mut bytes) = (0_usize, 0_u64);
        while next(&mut reader, bounds.line_bytes, &mut line).map_err(failed)? {
            number += 1;
            bytes += line.len() as u64;
            let wrong = |reason: &str| format!("{name}, line {number}: {reason}");
            if line.len() as u64 > bounds.line_bytes {
                return Err(wrong(&format!(
                    "it is longer than {} KiB",
                    bounds.line_bytes / 1024
                )));
            }
            if bytes > bounds.bytes {
                return Err(wrong(&format!(
                    "up to here there is more than {} MiB",
                    bounds.bytes / 1024 / 1024
                )));
            }
            let text = str::from_utf8(&line).map_err(|_| wrong("it is not UTF-8"))?;
            if text.trim().is_empty() {
                continue;
            }
            if check(text).map_err(|reason| wrong(&reason))? == Taken::Yes {
                kept.write_all(&line)
                    .and_then(|()| kept.write_all(b"\n"))
                    .map_err(failed)?;
                count += 1;
            }
            if count > bounds.lines {
                return Err(wrong(&format!("there are more than {}", bounds.lines)));
            }
        }
        kept.flush().map_err(failed)?;
        let path = Some(path.to_owned());
        Ok(Lines { path, count })
    }

    /// Reads the lines again, line by line.
    pub(super) fn each<E: From<io::Error>>(
        &self,
        mut take: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        for line in BufReader::new(File::open(path)?).lines() {
            take(&line?)?;
        }
        Ok(())
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// The next line without its end; false at the end of the text. An overlong line comes with a byte
/// more than allowed.
fn next(reader: &mut impl BufRead, most: u64, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if reader.take(most + 1).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.ends_with(b"\n") {
        line.pop();
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const BOUNDS: Bounds = Bounds {
        name: "words.jsonl",
        line_bytes: 1024,
        lines: 3,
        bytes: 1024 * 1024,
    };

    fn taken(text: &str, bounds: Bounds) -> Result<Vec<String>, String> {
        let folder = TempDir::new().unwrap();
        let lines = Lines::take_in(
            text.as_bytes(),
            bounds,
            &folder.path().join("kept"),
            |line| match line {
                "no" => Ok(Taken::No),
                "bad" => Err("bad".into()),
                _ => Ok(Taken::Yes),
            },
        )?;
        let mut all = Vec::new();
        lines
            .each::<io::Error>(|line| {
                all.push(line.to_owned());
                Ok(())
            })
            .unwrap();
        assert_eq!(all.len(), lines.count);
        Ok(all)
    }

    #[test]
    fn lines_within_their_limits_come_back() {
        assert_eq!(taken("", BOUNDS).unwrap(), [] as [&str; 0]);
        assert_eq!(taken("a\n\n  \nno\nb", BOUNDS).unwrap(), ["a", "b"]);
        let long = "x".repeat(1024);
        assert_eq!(taken(&format!("{long}\n"), BOUNDS).unwrap(), [long]);
    }

    #[test]
    fn lines_outside_their_limits_are_refused_by_number() {
        let refused = |text: &str| taken(text, BOUNDS).unwrap_err();
        insta::assert_snapshot!(refused("a\nbad"), @"words.jsonl, line 2: bad");
        insta::assert_snapshot!(refused(&format!("a\n{}", "x".repeat(1025))), @"words.jsonl, line 2: it is longer than 1 KiB");
        insta::assert_snapshot!(refused("a\nb\nc\nd\n"), @"words.jsonl, line 4: there are more than 3");
        let small = Bounds { bytes: 1, ..BOUNDS };
        insta::assert_snapshot!(taken("a\nb", small).unwrap_err(), @"words.jsonl, line 2: up to here there is more than 0 MiB");
    }

    /// Memory holds one line at a time, however long the text claims to be.
    #[test]
    fn a_line_without_an_end_is_not_read_to_its_end() {
        struct Endless(u64);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += buffer.len() as u64;
                assert!(self.0 < 1024 * 1024, "read on");
                buffer.fill(b'x');
                Ok(buffer.len())
            }
        }
        let folder = TempDir::new().unwrap();
        let told = Lines::take_in(Endless(0), BOUNDS, &folder.path().join("kept"), |_| {
            Ok(Taken::Yes)
        });
        assert_eq!(
            told.unwrap_err(),
            "words.jsonl, line 1: it is longer than 1 KiB"
        );
    }
}
