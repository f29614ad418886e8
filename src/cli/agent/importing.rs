//! The words of `parlor agent import`: what came, what stayed behind, what became stricter.

use std::path::PathBuf;

use serde_json::json;

use super::super::data;
use super::super::json::Named;
use super::texts::counted;
use crate::tenants::{Imported, Wish};

/// The result for programs.
pub(super) fn json(imported: &Imported, wish: &Wish<'_>) -> serde_json::Value {
    let file = |(path, bytes): &(PathBuf, u64)| json!({ "path": path.display().to_string(), "bytes": bytes });
    json!({
        "agent": Named::new(&imported.id, None),
        "changed": !wish.only_look,
        "table": imported.table,
        "files": imported.files.iter().map(file).collect::<Vec<_>>(),
        "memories": imported.memories,
        "memories_global_at_home": imported.global,
        "messages": imported.messages,
        "places": imported.places,
        "left_out": imported.left_out,
        "tightened": imported.tightened,
    })
}

/// The result for people.
pub(super) fn tell(imported: &Imported, wish: &Wish<'_>) {
    let (is, brought) = (
        if wish.only_look { "would be" } else { "is" },
        import_counts(imported),
    );
    data(format_args!(
        "{} {is} in config.toml, with {brought}.",
        imported.id
    ));
    if wish.only_look {
        tell_content(imported);
    }
    tell_global(imported, wish.keep_global);
    tell_conversations(imported);
    tell_left_out(imported);
    if wish.only_look {
        data(format_args!("Nothing was changed."));
    }
}

fn import_counts(imported: &Imported) -> String {
    let counts = [
        counted(imported.files.len(), "file", "files"),
        counted(imported.memories, "memory", "memories"),
        counted(imported.messages, "message", "messages"),
    ];
    counts.join(", ")
}

/// Files listed by a look at a package.
const MOST_FILES_SHOWN: usize = 200;

/// The table and the files. Their words come from the package, so they are made fit for a terminal.
fn tell_content(imported: &Imported) {
    data(format_args!("\n{}\n", imported.table.trim_end()));
    for (file, bytes) in imported.files.iter().take(MOST_FILES_SHOWN) {
        let name = file.to_string_lossy().replace(char::is_control, "\u{fffd}");
        data(format_args!("{bytes:>12} bytes  {name}"));
    }
    let more = imported.files.len().saturating_sub(MOST_FILES_SHOWN);
    if more > 0 {
        let all: u64 = imported.files.iter().map(|(_, bytes)| bytes).sum();
        data(format_args!(
            "and {}; {all} bytes in all",
            counted(more, "file more", "files more")
        ));
    }
    if !imported.files.is_empty() {
        data(format_args!(""));
    }
}

fn tell_global(imported: &Imported, keep_global: bool) {
    let (id, memories) = (&imported.id, counted(imported.global, "memory", "memories"));
    let (were, are, them) = match imported.global {
        0 => return,
        1 => ("was", "is", "it"),
        _ => ("were", "are", "them"),
    };
    if keep_global {
        data(format_args!(
            "{memories} of {id} came as global: every agent here finds {them}."
        ));
    } else {
        data(format_args!(
            "{memories} {were} global at home and {are} private to {id} here. `--global` lets every agent find {them}."
        ));
    }
}

fn tell_conversations(imported: &Imported) {
    if imported.messages > 0 {
        data(format_args!(
            "The messages, from {}, are kept for the next export. No place and no agent shows them.",
            counted(imported.places, "place", "places")
        ));
    }
    if imported.lines_of_gateway > 0 {
        data(format_args!(
            "left out of the conversations: {}.",
            counted(
                imported.lines_of_gateway,
                "line of the gateway",
                "lines of the gateway"
            )
        ));
    }
}

fn tell_left_out(imported: &Imported) {
    let id = &imported.id;
    if !imported.left_out.is_empty() {
        let keys = imported.left_out.join(", ");
        data(format_args!(
            "not taken over into [agents.{id}]: {keys}. Set them there if you need them."
        ));
    }
    if !imported.tightened.is_empty() {
        let limits = imported.tightened.join(", ");
        data(format_args!(
            "{id} has max_risk = \"look\", because a limit it had at home cannot be kept as it was: {limits}. Write your own limit in its place."
        ));
    }
}
