//! The form of a call with a file, streamed from disk.
//!
//! <https://core.telegram.org/bots/api#sending-files>

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use futures_util::stream::{self, Stream};
use reqwest::Body;
use reqwest::multipart::{self, Part};
use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncReadExt;

/// The longest a call with a small file may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// A slower connection counts as broken.
const BYTES_PER_SECOND: u64 = 50_000;
/// How much of a stored file is in memory at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A file to send.
pub(super) struct File<'a> {
    /// The parameter for the file.
    pub(super) field: &'static str,
    pub(super) name: &'a str,
    pub(super) media_type: &'a str,
    pub(super) content: Content,
}

pub(super) enum Content {
    Text(String),
    /// Sent while being read.
    Stored {
        file: tokio::fs::File,
        bytes: u64,
    },
}

impl Content {
    /// Refuses an empty file: the platforms take none.
    pub(super) async fn open(path: &Path) -> std::io::Result<Self> {
        let file = tokio::fs::File::open(path).await?;
        let bytes = file.metadata().await?.len();
        if bytes == 0 {
            Err(std::io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(Content::Stored { file, bytes })
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Content::Text(text) => text.len() as u64,
            Content::Stored { bytes, .. } => *bytes,
        }
    }
}

pub(super) struct Form {
    pub(super) parts: multipart::Form,
    file_bytes: u64,
}

impl Form {
    /// Parameters other than text are written as JSON, because the Bot API wants them so outside of
    /// JSON.
    pub(super) fn new(parameters: &impl Serialize, file: File<'_>) -> Self {
        let file_bytes = file.content.bytes();
        // Neither platform reads percent-encoded names of fields.
        let mut parts = multipart::Form::new().percent_encode_noop();
        if let Value::Object(parameters) =
            serde_json::to_value(parameters).expect("text and numbers are JSON")
        {
            for (name, value) in parameters {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                parts = parts.text(name, text);
            }
        }
        let field = file.field;
        Form {
            parts: parts.part(field, part(file)),
            file_bytes,
        }
    }

    /// A larger file may take longer.
    pub(super) fn timeout(&self) -> Duration {
        TIMEOUT + Duration::from_secs(self.file_bytes / BYTES_PER_SECOND)
    }
}

fn part(file: File<'_>) -> Part {
    let part = match file.content {
        Content::Text(text) => Part::text(text),
        Content::Stored { file, bytes } => {
            Part::stream_with_length(Body::wrap_stream(pieces(file, bytes)), bytes)
        }
    };
    let part = part.file_name(quotable(file.name));
    part.mime_str(media_type(file.media_type))
        .expect("the media type was tried before")
}

/// A stored row may hold any text, and an unreadable media type must not cost the file.
fn media_type(told: &str) -> &str {
    if Part::text("").mime_str(told).is_ok() {
        told
    } else {
        "application/octet-stream"
    }
}

/// A file name as browsers write it: reqwest puts a backslash before special characters, line ends
/// included, and the platforms do not read that.
/// <https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data>
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

/// The announced number of bytes. A file with fewer bytes by now breaks the call off.
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
    fn names_and_types_cannot_leave_their_lines() {
        assert_eq!(quotable("Über uns.pdf"), "Über uns.pdf");
        assert_eq!(
            media_type("text/plain; charset=utf-8"),
            "text/plain; charset=utf-8"
        );
        assert_eq!(media_type("a\r\nb: c"), "application/octet-stream");
        assert_eq!(
            quotable("a\"; name=\"chat_id\r\n\\"),
            "a%22; name=%22chat_id%0D%0A%5C"
        );
    }
}
