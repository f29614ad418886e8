//! The home folder and its disk: owner, modes, room, speed, leftovers; and the machine's clock.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::statvfs;

use crate::backups;
use crate::clock::now_ms;
use crate::figures::grouped;
use crate::home::Home;
use crate::operations::diagnosis::{Finding, Remedy};

/// Less room than this is told.
const LITTLE: u64 = 512 * 1024 * 1024;
const NONE: u64 = 64 * 1024 * 1024;
/// A disk with slower durable writes slows every message.
const SLOW: Duration = Duration::from_millis(100);
/// The beginning of 2025: this program is younger.
const EARLIEST_MS: i64 = 1_735_689_600_000;

pub(super) fn check(home: &Home) -> Vec<Finding> {
    let path = home.path();
    let mut findings = vec![owner(path), modes(path), room(path), speed(path, SLOW)];
    findings.extend(backups::leftovers(path).into_iter().map(leftover));
    if now_ms() < EARLIEST_MS {
        let found = Finding::bad("clock", "The clock of this machine is years behind.");
        findings.push(found.fix("timedatectl set-ntp true"));
    }
    findings
}

fn owner(home: &Path) -> Finding {
    let user = nix::unistd::geteuid().as_raw();
    match fs::metadata(home) {
        Ok(metadata) if metadata.uid() == user => Finding::ok(
            "home.owner",
            format!("The home folder is {}.", home.display()),
        ),
        Ok(metadata) => Finding::warn(
            "home.owner",
            format!("{} belongs to another user.", home.display()),
        )
        .cause(format!(
            "it belongs to user {}, and this is {user}",
            metadata.uid()
        ))
        .fix("Run Parlor as the owner of the home folder."),
        Err(error) => Finding::bad(
            "home.owner",
            format!("{} cannot be looked at.", home.display()),
        )
        .cause(error.to_string()),
    }
}

/// The folder, and Parlor's own files in the folder. Secrets have a check of their own.
fn modes(home: &Path) -> Finding {
    let mode = fs::metadata(home).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o077 == 0 {
        return Finding::ok("home.modes", "Other users of this machine cannot enter it.");
    }
    Finding::bad(
        "home.modes",
        "Other users of this machine can enter the home folder.",
    )
    .cause(format!("its mode is {:03o}", mode & 0o777))
    .fix(format!("chmod 700 {}", home.display()))
    .remedy(Remedy::CloseToOthers(home.to_owned()))
}

fn room(home: &Path) -> Finding {
    let Ok(disk) = statvfs(home) else {
        return Finding::note("home.disk", "The disk does not tell how much room it has.");
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let room = match free / 1_000_000 {
        megabytes @ 10_000.. => format!("{} GB", grouped(megabytes / 1_000)),
        megabytes => format!("{} MB", grouped(megabytes)),
    };
    let text = format!("The disk has {room} free.");
    let free_some = "Free some space: messages that cannot be stored are not accepted.";
    match free {
        ..NONE => Finding::bad("home.disk", text).fix(free_some),
        NONE..LITTLE => Finding::warn("home.disk", text).fix(free_some),
        _ => Finding::ok("home.disk", text),
    }
}

fn speed(home: &Path, slow: Duration) -> Finding {
    match sync_time(home) {
        Ok(time) if time > slow => Finding::warn(
            "home.sync",
            format!("The disk is slow: a write takes {} ms.", time.as_millis()),
        )
        .fix("Put the home folder on a local disk; network mounts and SD cards are slow."),
        Ok(time) => Finding::ok(
            "home.sync",
            format!("A write to the disk takes {} ms.", time.as_millis()),
        ),
        Err(error) => Finding::bad("home.sync", "Nothing can be written in the home folder.")
            .cause(error.to_string())
            .fix(to_write_again(error.kind())),
    }
}

fn to_write_again(trouble: io::ErrorKind) -> &'static str {
    match trouble {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "Free some space on the disk of the home folder."
        }
        _ => "Give the user who runs Parlor write access to the home folder.",
    }
}

/// The time of a small write that survives a power cut; the median of three.
fn sync_time(home: &Path) -> io::Result<Duration> {
    let path = home.join(format!(".doctor-{}", std::process::id()));
    let timed = (|| {
        let mut file = File::create(&path)?;
        let mut times = Vec::new();
        for _ in 0..3 {
            let began = Instant::now();
            file.write_all(&[0; 4096])?;
            file.sync_all()?;
            times.push(began.elapsed());
        }
        times.sort();
        Ok(times[1])
    })();
    drop(fs::remove_file(&path));
    timed
}

fn leftover(path: PathBuf) -> Finding {
    let name = path.file_name().unwrap_or_default().display().to_string();
    Finding::note(
        "home.leftovers",
        format!("{name} is the rest of a restore that was cut short."),
    )
    .fix(format!("rm -r {}", path.display()))
    .remedy(Remedy::Remove(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::diagnosis::State;

    #[test]
    fn a_disk_slower_than_the_limit_is_told() {
        let home = tempfile::tempdir().unwrap();
        let text = |slow| {
            let found = speed(home.path(), slow);
            (found.id, found.state, found.text)
        };
        let (id, state, told) = text(Duration::ZERO);
        assert_eq!((id.as_str(), state), ("home.sync", State::Warn));
        assert!(
            told.starts_with("The disk is slow: a write takes "),
            "{told}"
        );
        let (_, state, _) = text(Duration::from_secs(3600));
        assert_eq!(state, State::Ok);
        assert_eq!(
            fs::read_dir(home.path()).unwrap().count(),
            0,
            "nothing stays"
        );
        let gone = speed(&home.path().join("none"), SLOW);
        assert_eq!(gone.state, State::Bad);
    }

    #[test]
    fn a_full_disk_needs_room_and_no_rights() {
        assert_eq!(
            to_write_again(io::ErrorKind::StorageFull),
            "Free some space on the disk of the home folder."
        );
        assert_eq!(
            to_write_again(io::ErrorKind::PermissionDenied),
            "Give the user who runs Parlor write access to the home folder."
        );
    }
}
