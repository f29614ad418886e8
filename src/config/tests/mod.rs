//! Reports about a wrong config file: the whole text for each kind of problem.

mod editors;
mod example;
mod form;
mod jobs;
mod mended;
mod newcomers;
mod peers;
mod personality;
mod secrets;
mod shipped;
mod values;
mod walked;

use std::path::Path;

use super::{Config, Draft, Secrets, Source, draft};

/// A draft on a machine without any of the secrets.
fn drafted(text: &str) -> Draft {
    let source = Source {
        path: "config.toml".into(),
        text: text.to_owned(),
    };
    draft(source, Path::new("home"), Secrets::WherePresent)
}

fn report(text: &str) -> String {
    drafted(text)
        .finish()
        .expect_err("the text has a problem")
        .to_string()
}

pub(super) fn config(text: &str) -> Config {
    drafted(text)
        .finish()
        .unwrap_or_else(|report| panic!("{report}"))
}
