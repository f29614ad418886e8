//! The labels of a file's words, in an attribute of the file itself: the attribute moves with the
//! file, and a file that the operator writes anew has none. File systems without such attributes
//! keep no labels.

use std::os::fd::AsFd;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

use crate::domain::{Label, Labels};

const ATTRIBUTE: &str = "user.parlor.read";
/// Digits of the largest number.
const MAX_BYTES: usize = 10;

pub(super) fn set(file: impl AsFd, labels: Labels) {
    if labels.is_empty() {
        return;
    }
    let bits = labels.bits().to_string();
    if let Err(error) = fsetxattr(file, ATTRIBUTE, bits.as_bytes(), XattrFlags::empty()) {
        tracing::debug!("a file keeps no labels: {error}");
    }
}

/// None for a file without the attribute. An attribute in another form counts as a guest's words.
pub(super) fn of(file: impl AsFd) -> Labels {
    let mut buffer = [0_u8; MAX_BYTES];
    let Ok(length) = fgetxattr(file, ATTRIBUTE, &mut buffer[..]) else {
        return Labels::NONE;
    };
    let bits = buffer
        .get(..length)
        .and_then(|text| std::str::from_utf8(text).ok())
        .and_then(|text| text.parse().ok());
    bits.map_or(Label::Guest.into(), Labels::from_bits)
}
