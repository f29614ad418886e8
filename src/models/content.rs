//! Words and pictures of a person.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Words, and the pictures with them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    pub text: String,
    pub images: Vec<Image>,
}

impl<T: Into<String>> From<T> for Content {
    fn from(text: T) -> Self {
        Content {
            text: text.into(),
            images: Vec::new(),
        }
    }
}

/// A picture for models.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    pub kind: ImageKind,
    /// In base64, as every provider wants pictures. Encoded once, not with each step of a turn.
    pub(super) data: Arc<str>,
}

/// The kinds of pictures all providers take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageKind {
    Jpeg,
    Png,
    Gif,
    WebP,
}

impl Image {
    /// As many bytes become less than 5 MB of base64, the limit of the strictest provider.
    pub const MAX_BYTES: u64 = 3_500_000;
    /// Pictures in a message.
    pub const MOST: usize = 10;

    pub fn new(kind: ImageKind, bytes: &[u8]) -> Self {
        Image {
            kind,
            data: STANDARD.encode(bytes).into(),
        }
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Image({}, {} bytes of base64)",
            self.kind.media_type(),
            self.data.len()
        )
    }
}

impl ImageKind {
    /// Bytes at the beginning of a file that tell its kind.
    pub const TELLING_BYTES: usize = 12;

    /// Told by the beginning of the file: its name and the sender's word can be wrong, and
    /// providers look for themselves.
    pub fn of(beginning: &[u8]) -> Option<Self> {
        match beginning {
            [0xFF, 0xD8, 0xFF, ..] => Some(ImageKind::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(ImageKind::Png),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(ImageKind::Gif),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some(ImageKind::WebP),
            _ => None,
        }
    }

    pub(super) fn media_type(self) -> &'static str {
        match self {
            ImageKind::Jpeg => "image/jpeg",
            ImageKind::Png => "image/png",
            ImageKind::Gif => "image/gif",
            ImageKind::WebP => "image/webp",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_beginning() {
        let check = |beginning: &[u8], expected| {
            assert_eq!(ImageKind::of(beginning), expected, "{beginning:?}");
        };
        check(b"\xFF\xD8\xFF\xE0\x00\x10JFIF", Some(ImageKind::Jpeg));
        check(b"\x89PNG\r\n\x1a\n\0\0\0\r", Some(ImageKind::Png));
        check(b"GIF89a......", Some(ImageKind::Gif));
        check(b"RIFF\x10\0\0\0WEBP", Some(ImageKind::WebP));
        check(b"RIFF\x10\0\0\0WAVE", None);
        check(b"%PDF-1.7", None);
        check(b"<svg", None);
        check(b"", None);
    }

    #[test]
    fn the_largest_picture_fits_the_strictest_provider() {
        assert!(Image::MAX_BYTES.div_ceil(3) * 4 < 5_000_000);
    }
}
