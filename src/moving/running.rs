//! Programs at work in a source right now, found by their open files.

use std::fs;
use std::path::Path;

use super::report::Running;

/// Programs named in a report.
const MOST: usize = 8;

/// Programs of this user with an open file below the folder. Empty where the system does not tell.
/// Blocks.
pub(super) fn programs(folder: &Path) -> Vec<Running> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let using = ids.filter(|pid| *pid != own && has_open(*pid, folder));
    let named = using.map(|pid| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let name = name.trim().replace(char::is_control, " ");
        Running { pid, name }
    });
    named.take(MOST).collect()
}

fn has_open(pid: u32, folder: &Path) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    let mut files = files.into_iter().flatten().flatten();
    // A shell in the folder has the folder open, and no file in it.
    files.any(|entry| {
        let file = fs::read_link(entry.path()).ok();
        file.is_some_and(|file| file != folder && file.starts_with(folder))
    })
}
