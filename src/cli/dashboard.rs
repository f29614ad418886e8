//! `parlor dashboard`: a link that signs a browser in to the running gateway, opened where there is
//! a screen.

use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;

use super::{Outcome, data, data_json, note, print, token};
use crate::home::Home;
use crate::operations::http_keys::LINK_LASTS;

#[derive(Args)]
pub(super) struct Arguments {
    /// Only print the link
    #[arg(long)]
    no_open: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let url = token::link(&home).await?;
    if arguments.json {
        return data_json(&json!({ "url": url, "expires_in_seconds": LINK_LASTS.as_secs() }));
    }
    data(format_args!("{url}"));
    let is_opened = !arguments.no_open && print::is_seen() && opened(&url);
    note(format_args!("{}", told(is_opened)));
    Ok(())
}

fn told(is_opened: bool) -> String {
    let lasts = LINK_LASTS.as_secs();
    match is_opened {
        true => format!("It is opened in your browser. The link works once, for {lasts} seconds."),
        false => format!("The link works once, for {lasts} seconds."),
    }
}

/// Asks the desktop to open the link, where there is one.
fn opened(url: &str) -> bool {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false if has_screen => "xdg-open",
        false => return false,
    };
    let started = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.is_ok()
}
