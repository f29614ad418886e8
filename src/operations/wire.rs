//! Frames of `parlor.sock`: a line of JSON each, in both directions.
//!
//! The gateway greets first. A client asks with a number of its own choice, and every frame of the
//! answer carries that number: one `reply` or `refused`, or any number of `event`s and an `end`. A
//! client may ask further things meanwhile, and ends a stream of events with `stop`.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Event, Refusal, Reply, Request};

/// Raised when an older client could misread a frame.
pub(crate) const PROTOCOL: u32 = 1;
/// The longest frame of a client.
pub(crate) const MOST_ASKED_BYTES: usize = 1024 * 1024;
/// The longest frame of a gateway. Lists of files can be long.
pub(crate) const MOST_ANSWERED_BYTES: usize = 32 * 1024 * 1024;

/// The first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// The version of the program.
    pub(crate) parlor: String,
    pub(crate) protocol: u32,
    pub(crate) pid: u32,
}

impl Greeting {
    pub(crate) fn of_this_process() -> Self {
        Greeting {
            parlor: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            pid: std::process::id(),
        }
    }
}

/// A frame of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    Ask {
        id: u64,
        request: Box<Request>,
    },
    /// Ends a stream of events.
    Stop {
        id: u64,
    },
}

/// A frame of the gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answered {
    Reply {
        id: u64,
        reply: Reply,
    },
    Refused {
        id: u64,
        refusal: Refusal,
    },
    Event {
        id: u64,
        event: Event,
    },
    /// No further events.
    End {
        id: u64,
    },
    /// The connection ends, for a reason that is not about a single request.
    Bye {
        reason: String,
    },
}

/// Why a frame could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("a frame has more than {0} bytes")]
    TooLong(usize),
    #[error("a frame cannot be read: {0}")]
    Odd(#[from] serde_json::Error),
    #[error("the connection ended in the middle of a frame")]
    Cut,
}

/// The next frame of at most so many bytes. None at the end of the connection.
pub(crate) async fn read<T, R>(from: &mut R, most: usize) -> Result<Option<T>, FrameError>
where
    T: DeserializeOwned,
    R: AsyncBufRead + Unpin,
{
    let mut line = Vec::new();
    let bound = u64::try_from(most).unwrap_or(u64::MAX);
    from.take(bound + 1).read_until(b'\n', &mut line).await?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(serde_json::from_slice(&line)?)),
        Some(_) if line.len() >= most => Err(FrameError::TooLong(most)),
        Some(_) => Err(FrameError::Cut),
    }
}

/// JSON has no line break of its own, so a line is a frame.
pub(crate) async fn write<T, W>(to: &mut W, frame: &T) -> io::Result<()>
where
    T: Serialize,
    W: AsyncWrite + Unpin,
{
    let mut line = serde_json::to_vec(frame)?;
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_are_lines_of_a_bounded_length() {
        let check = async |bytes: &str, expected: &str| {
            let mut from = bytes.as_bytes();
            let mut read_all = Vec::new();
            loop {
                match read::<u32, _>(&mut from, 6).await {
                    Ok(Some(number)) => read_all.push(number.to_string()),
                    Ok(None) => break,
                    Err(error) => {
                        read_all.push(error.to_string());
                        break;
                    }
                }
            }
            assert_eq!(read_all.join(", "), expected, "{bytes:?}");
        };
        check("", "").await;
        check("1\n22\n", "1, 22").await;
        check("123456\n", "123456").await;
        check("1234567\n", "a frame has more than 6 bytes").await;
        check("1\n22", "1, the connection ended in the middle of a frame").await;
        check(
            "\n",
            "a frame cannot be read: EOF while parsing a value at line 1 column 0",
        )
        .await;
    }
}
