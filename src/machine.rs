//! The memory of this machine, or of the container that the process runs in.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// A turn with a long conversation: its prompt, the request and the answer.
const BYTES_PER_TURN: u64 = 256 * 1024;
/// Where the system does not tell its memory.
const TURNS_IF_UNKNOWN: u64 = 1024;
const FEWEST_TURNS: u64 = 64;
/// Beyond this, connections are scarcer than memory.
const MOST_TURNS: u64 = 16_384;

/// Turns that have room in half of the memory.
pub(crate) fn turns_that_fit() -> usize {
    static TURNS: OnceLock<u64> = OnceLock::new();
    let turns = *TURNS.get_or_init(|| turns_in(memory_bytes(Path::new("/"))));
    usize::try_from(turns).unwrap_or(usize::MAX)
}

fn turns_in(memory: Option<u64>) -> u64 {
    memory.map_or(TURNS_IF_UNKNOWN, |bytes| {
        (bytes / 2 / BYTES_PER_TURN).clamp(FEWEST_TURNS, MOST_TURNS)
    })
}

/// The memory of the machine, or the smallest limit of the control groups around the process.
fn memory_bytes(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo"))
        .ok()
        .and_then(|text| total(&text));
    let limits = fs::read_to_string(root.join("proc/self/cgroup"))
        .ok()
        .and_then(|text| own_group(&text).map(str::to_owned))
        .map(|group| limits_of(&root.join("sys/fs/cgroup"), &group))
        .unwrap_or_default();
    machine.into_iter().chain(limits).min()
}

/// `MemTotal:  24576000 kB`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kib * 1024)
}

/// `0::/system.slice/parlor.service`, of the second version of control groups.
fn own_group(cgroup: &str) -> Option<&str> {
    cgroup.lines().find_map(|line| line.strip_prefix("0::/"))
}

/// A limit of any group above counts too. `max` is none.
fn limits_of(groups: &Path, own: &str) -> Vec<u64> {
    Path::new(own)
        .ancestors()
        .filter_map(|group| fs::read_to_string(groups.join(group).join("memory.max")).ok())
        .filter_map(|limit| limit.trim().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        memory_bytes(root.path())
    }

    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:        2048 kB\nMemFree:          100 kB\n",
    );
    const CGROUP: (&str, &str) = ("proc/self/cgroup", "0::/house.slice/parlor.service\n");

    #[test]
    fn the_smallest_limit_counts() {
        assert_eq!(machine(&[]), None);
        assert_eq!(machine(&[MEMINFO]), Some(2 << 20));
        assert_eq!(machine(&[MEMINFO, CGROUP]), Some(2 << 20));
        let own = "sys/fs/cgroup/house.slice/parlor.service/memory.max";
        assert_eq!(
            machine(&[MEMINFO, CGROUP, (own, "max\n")]),
            Some(2 << 20),
            "no limit"
        );
        assert_eq!(
            machine(&[MEMINFO, CGROUP, (own, "1048576\n")]),
            Some(1 << 20)
        );
        let above = "sys/fs/cgroup/house.slice/memory.max";
        assert_eq!(
            machine(&[MEMINFO, CGROUP, (own, "1048576\n"), (above, "524288\n")]),
            Some(1 << 19)
        );
        let container = [
            MEMINFO,
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "4096\n"),
        ];
        assert_eq!(machine(&container), Some(4096));
    }

    #[test]
    fn turns_follow_the_memory() {
        const GIB: u64 = 1 << 30;
        assert_eq!(turns_in(None), 1024);
        assert_eq!(turns_in(Some(1 << 20)), 64);
        assert_eq!(turns_in(Some(GIB / 2)), 1024);
        assert_eq!(turns_in(Some(GIB)), 2048);
        assert_eq!(turns_in(Some(4 * GIB)), 8192);
        assert_eq!(turns_in(Some(64 * GIB)), 16_384);
    }
}
