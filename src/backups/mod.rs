//! A home in one file: written while the gateway runs or not, verified, rotated, and restored.
//!
//! An archive is a gzipped tar: [`archive::HEAD`] first, then the home's files below `home/`, then
//! [`archive::SUMS`] with the checksum of each. The archive's database is a copy of one moment.

mod archive;
mod contents;
mod error;
mod names;
mod reading;
mod restoring;
mod rotation;
mod swapping;
mod writing;

pub(crate) use contents::KeepSecrets;
pub(crate) use names::BACKUPS;
pub(crate) use restoring::{Restored, check, restore};
pub(crate) use rotation::{newest, rotate};
pub(crate) use swapping::{leftovers, settle};
pub(crate) use writing::{Written, write};
