//! The newest lines of the log file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use super::{Operations, Refusal};

/// How far back a look goes.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// Which lines are wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sought {
    /// Lines about this agent.
    pub(crate) agent: Option<String>,
    /// Lines with these letters.
    pub(crate) contains: Option<String>,
}

impl Sought {
    fn fits(&self, line: &str) -> bool {
        let contains = self.contains.as_deref();
        let agent = self.agent.as_deref();
        contains.is_none_or(|words| line.contains(words))
            && agent.is_none_or(|agent| agent_of(line).as_deref() == Some(agent))
    }
}

/// The agent of a line: behind time and level, or a key of the JSON form.
fn agent_of(line: &str) -> Option<String> {
    if line.starts_with('{') {
        let read: serde_json::Value = serde_json::from_str(line).ok()?;
        return Some(read["agent"].as_str()?.to_owned());
    }
    let agent = line.split_whitespace().nth(2)?;
    let agent = agent.strip_prefix('[')?.strip_suffix(']')?;
    Some(agent.to_owned())
}

/// The newest lines, oldest first.
pub(crate) async fn newest(
    operations: &Operations,
    sought: Sought,
    limit: usize,
) -> Result<Vec<String>, Refusal> {
    let snapshot = operations.snapshot().await?;
    let Some(file) = &snapshot.config.log.file else {
        return Err(Refusal::failed("there is no log file")
            .hint("add a line such as `file = \"logs/parlor.log\"` to [log] in config.toml"));
    };
    let path = operations.home.join(&file.path);
    let read = tokio::task::spawn_blocking(move || -> io::Result<Vec<String>> {
        let mut file = File::open(&path)?;
        let length = file.metadata()?.len();
        let start = length.saturating_sub(MOST_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut reader = BufReader::new(file.take(MOST_BYTES));
        if start > 0 {
            // The rest of a line that begins earlier.
            reader.skip_until(b'\n')?;
        }
        let mut lines = VecDeque::with_capacity(limit);
        for line in reader.split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            if !line.is_empty() && sought.fits(&line) {
                if lines.len() == limit {
                    lines.pop_front();
                }
                lines.push_back(line);
            }
        }
        Ok(lines.into())
    });
    let read = read
        .await
        .map_err(|error| Refusal::failed(error.to_string()))?;
    read.map_err(|error| Refusal::failed(format!("the log file cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_agent_and_words() {
        let check = |line: &str, agent: &str, words: Option<&str>, expected| {
            let sought = Sought {
                agent: Some(agent.to_owned()),
                contains: words.map(str::to_owned),
            };
            assert_eq!(sought.fits(line), expected, "{line}");
        };
        let text = "2026-11-17T09:00:00+01:00  INFO [rose] answered to main session=x";
        check(text, "rose", None, true);
        check(text, "rose", Some("answered"), true);
        check(text, "rose", Some("refused"), false);
        check(text, "main", None, false);
        let json = r#"{"time":"2026-11-17T09:00:00+01:00","level":"info","agent":"rose","message":"answered"}"#;
        check(json, "rose", None, true);
        check(json, "answered", None, false);
        check("half a line", "rose", None, false);
    }
}
