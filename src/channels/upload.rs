//! A call with a file in it, written as `multipart/form-data`.
//!
//! <https://core.telegram.org/bots/api#sending-files>

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt};
use reqwest::Body;
use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use uuid::Uuid;

/// The longest a call with a small file may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// A line that is slower than this is none.
const BYTES_PER_SECOND: u64 = 50_000;
/// How much of a stored file is in memory at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A file to send.
pub(super) struct File<'a> {
    /// The parameter it is given as.
    pub(super) field: &'static str,
    pub(super) name: &'a str,
    pub(super) media_type: &'a str,
    pub(super) content: Content,
}

pub(super) enum Content {
    Text(String),
    /// Sent as it is read.
    Stored {
        file: tokio::fs::File,
        bytes: u64,
    },
}

impl Content {
    /// An empty file is as good as none.
    pub(super) async fn open(path: &Path) -> std::io::Result<Self> {
        let file = tokio::fs::File::open(path).await?;
        let bytes = file.metadata().await?.len();
        if bytes == 0 { Err(std::io::ErrorKind::UnexpectedEof.into()) } else { Ok(Content::Stored { file, bytes }) }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Content::Text(text) => text.len() as u64,
            Content::Stored { bytes, .. } => *bytes,
        }
    }
}

pub(super) struct Form {
    pub(super) content_type: String,
    pub(super) bytes: u64,
    pub(super) body: Body,
}

impl Form {
    /// Parameters that are no text are written as JSON, as the Bot API wants them outside of JSON.
    pub(super) fn new(parameters: &impl Serialize, file: File<'_>) -> Self {
        // Random, so that no text can contain it.
        let boundary = Uuid::new_v4().simple().to_string();
        let head = head(parameters, &file, &boundary);
        let tail = format!("\r\n--{boundary}--\r\n");
        let bytes = (head.len() + tail.len()) as u64 + file.content.bytes();
        let body = match file.content {
            Content::Text(text) => Body::from(head + &text + &tail),
            Content::Stored { file, bytes } => Body::wrap_stream(
                stream::once(async { Ok(head.into_bytes()) })
                    .chain(pieces(file, bytes))
                    .chain(stream::once(async { Ok(tail.into_bytes()) })),
            ),
        };
        Form { content_type: format!("multipart/form-data; boundary={boundary}"), bytes, body }
    }
}

impl Form {
    /// The larger, the longer it may take.
    pub(super) fn timeout(&self) -> Duration {
        TIMEOUT + Duration::from_secs(self.bytes / BYTES_PER_SECOND)
    }
}

fn head(parameters: &impl Serialize, file: &File<'_>, boundary: &str) -> String {
    let mut head = String::new();
    if let Value::Object(parameters) = serde_json::to_value(parameters).expect("text and numbers are JSON") {
        for (name, value) in parameters {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            head += &format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n");
        }
    }
    let File { field, name, media_type, .. } = file;
    head + &format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{}\"\r\nContent-Type: {media_type}\r\n\r\n",
        quotable(name)
    )
}

/// As browsers write it. <https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data>
fn quotable(name: &str) -> String {
    let mut quotable = String::new();
    for letter in name.chars() {
        match letter {
            '"' | '\\' => drop(write!(quotable, "%{:02X}", u32::from(letter))),
            letter if letter.is_control() => drop(write!(quotable, "%{:02X}", u32::from(letter))),
            letter => quotable.push(letter),
        }
    }
    quotable
}

/// Exactly as many bytes as were announced: a file that has fewer by now breaks the call off.
fn pieces(file: tokio::fs::File, bytes: u64) -> impl Stream<Item = std::io::Result<Vec<u8>>> {
    stream::try_unfold((file, bytes), |(mut file, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(left).unwrap_or(PIECE_BYTES))];
        let read = file.read(&mut piece).await?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        piece.truncate(read);
        Ok(Some((piece, (file, left - read as u64))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_its_quotes() {
        assert_eq!(quotable("Über uns.pdf"), "Über uns.pdf");
        assert_eq!(quotable("a\"; name=\"chat_id\r\n\\"), "a%22; name=%22chat_id%0D%0A%5C");
    }
}
