//! `parlor version`: what is needed to tell two builds apart, and whether one can read a home.

use clap::Args;
use serde::Serialize;

use super::{Outcome, print};
use crate::storage;

/// What `--version` prints behind the name.
pub(super) const SHORT: &str = if COMMIT.is_empty() {
    concat!(env!("CARGO_PKG_VERSION"), " (development build)")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("PARLOR_COMMIT"), ")")
};

/// Empty in a development build.
const COMMIT: &str = env!("PARLOR_COMMIT");

#[derive(Args)]
pub(super) struct Arguments {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
    commit: Option<&'static str>,
    /// The newest schema of a database that this program reads.
    schema: u32,
    platform: &'static str,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: Some(COMMIT).filter(|commit| !commit.is_empty()),
        schema: storage::schema(),
        platform: env!("PARLOR_TARGET"),
    };
    let text = format!(
        "parlor {}\ncommit: {}\ndatabase schema: {}\nplatform: {}",
        version.version,
        version.commit.unwrap_or("unknown (development build)"),
        version.schema,
        version.platform
    );
    print::result(arguments.json, &version, format_args!("{text}"))
}
