//! Transport compression of the gateway: none, or one zlib stream over the whole connection.
//!
//! <https://discord.com/developers/docs/events/gateway#transport-compression>

use axum::extract::ws::Message;
use flate2::{Compress, Compression, FlushCompress};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    ZlibStream,
}

impl Encoding {
    pub(super) fn from_query(query: &str) -> Self {
        if query.contains("compress=zlib-stream") {
            Self::ZlibStream
        } else {
            Self::Plain
        }
    }

    pub(super) fn encoder(self) -> Encoder {
        Encoder((self == Self::ZlibStream).then(|| Compress::new(Compression::default(), true)))
    }
}

pub(super) struct Encoder(Option<Compress>);

impl Encoder {
    pub(super) fn encode(&mut self, text: &str) -> Message {
        match &mut self.0 {
            None => Message::Text(text.into()),
            Some(stream) => Message::Binary(flushed(stream, text.as_bytes()).into()),
        }
    }
}

fn flushed(stream: &mut Compress, bytes: &[u8]) -> Vec<u8> {
    // Room for what does not shrink, and for the empty block that ends each message.
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 100 + 64);
    stream
        .compress_vec(bytes, &mut out, FlushCompress::Sync)
        .expect("a zlib stream takes anything");
    out
}
