//! A log file that begins anew with each day or beyond a size: `parlor.log` is the newest,
//! `parlor.log.1` the file before.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::{DateTime, Local, NaiveDate};
use rustix::fs::OFlags;

use crate::config::{self, Rotate};

const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;
/// The pause before another try to open the file.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// The pause between two looks for the file under its name.
const LOOK_AFTER: Duration = Duration::from_secs(1);

pub(super) struct LogFile {
    path: PathBuf,
    rotate: Rotate,
    max_bytes: Option<u64>,
    keep: u32,
    open: Option<Open>,
    last_try: Instant,
    last_look: Instant,
}

struct Open {
    file: File,
    bytes: u64,
    day: NaiveDate,
}

impl LogFile {
    /// With the reason, if the file cannot be written now. Later lines try again.
    pub(super) fn open(home: &Path, settings: &config::LogFile) -> (Self, Option<String>) {
        let mut file = LogFile {
            path: home.join(&settings.path),
            rotate: settings.rotate,
            max_bytes: (settings.max_mb > 0).then(|| u64::from(settings.max_mb) * 1024 * 1024),
            keep: settings.keep,
            open: None,
            last_try: Instant::now(),
            last_look: Instant::now(),
        };
        let trouble = file.begin().err();
        let told = |error| {
            format!(
                "the log file {} cannot be written: {error}",
                file.path.display()
            )
        };
        let trouble = trouble.map(told);
        (file, trouble)
    }

    /// Opens the file, new or not, for its owner alone. A link is refused, because its target may
    /// be any file.
    fn begin(&mut self) -> io::Result<()> {
        self.last_try = Instant::now();
        if let Some(folder) = self.path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(PRIVATE_FOLDER)
                .create(folder)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(PRIVATE_FILE);
        // Without a wait, as for the reader of a pipe.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let file = options.custom_flags(flags).open(&self.path)?;
        let known = file.metadata()?;
        if !known.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        if known.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(PRIVATE_FILE))?;
        }
        let written = known.modified().map_or_else(|_| today(), day_of);
        let day = if known.len() == 0 { today() } else { written };
        self.open = Some(Open {
            file,
            bytes: known.len(),
            day,
        });
        Ok(())
    }

    /// Whether another program has moved or deleted the file, as logrotate does. Looked for now and
    /// then only.
    fn is_taken_away(&mut self) -> bool {
        let Some(open) = &self.open else { return false };
        if self.last_look.elapsed() < LOOK_AFTER {
            return false;
        }
        self.last_look = Instant::now();
        let identity = |known: &fs::Metadata| (known.dev(), known.ino());
        let ours = open.file.metadata().ok();
        let named = fs::symlink_metadata(&self.path).ok();
        named.as_ref().map(identity) != ours.as_ref().map(identity)
    }

    fn is_due(&self, open: &Open, line: usize) -> bool {
        let is_old = self.rotate == Rotate::Daily && open.day != today();
        let is_full = self
            .max_bytes
            .is_some_and(|most| open.bytes > 0 && open.bytes + line as u64 > most);
        is_old || is_full
    }

    /// Moves each file to the next number. After a kill in between, a number is missing, and
    /// nothing else.
    fn make_room(&mut self) -> io::Result<()> {
        self.open = None;
        for file in earlier(&self.path) {
            let next = file.number.saturating_add(1);
            if next > self.keep {
                fs::remove_file(&file.path)?;
            } else {
                fs::rename(&file.path, numbered(&self.path, next))?;
            }
        }
        match self.keep {
            0 => fs::remove_file(&self.path),
            _ => fs::rename(&self.path, numbered(&self.path, 1)),
        }
    }
}

impl Write for LogFile {
    /// Takes whole lines.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.is_taken_away() {
            self.begin()?;
        }
        if self
            .open
            .as_ref()
            .is_some_and(|open| self.is_due(open, line.len()))
        {
            // Lines go on in the same file if the file cannot be moved.
            drop(self.make_room());
            self.begin()?;
        }
        if self.open.is_none() {
            if self.last_try.elapsed() < TRY_AGAIN_AFTER {
                return Err(io::ErrorKind::NotFound.into());
            }
            self.begin()?;
        }
        let open = self.open.as_mut().ok_or(io::ErrorKind::NotFound)?;
        open.file.write_all(line)?;
        open.bytes += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An earlier log file.
pub(crate) struct Earlier {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
}

/// The files before the newest, the oldest first.
pub(crate) fn earlier(path: &Path) -> Vec<Earlier> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let beginning = format!("{}.", name.to_string_lossy());
    let mut found: Vec<Earlier> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix(&beginning)?.parse().ok()?;
            Some(Earlier {
                number,
                path: entry.path(),
            })
        })
        .collect();
    found.sort_by_key(|file| std::cmp::Reverse(file.number));
    found
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

fn today() -> NaiveDate {
    Local::now().date_naive()
}

fn day_of(time: std::time::SystemTime) -> NaiveDate {
    DateTime::<Local>::from(time).date_naive()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn settings(rotate: Rotate, max_mb: u32, keep: u32) -> config::LogFile {
        config::LogFile {
            path: "logs/parlor.log".into(),
            rotate,
            max_mb,
            keep,
        }
    }

    fn names(home: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(home.join("logs"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_is_moved_or_deleted_is_begun_anew() {
        let home = tempfile::tempdir().unwrap();
        let (mut file, _) = LogFile::open(home.path(), &settings(Rotate::Size, 0, 2));
        let path = home.path().join("logs/parlor.log");
        let mut write = |line: &[u8], later: bool| {
            if later {
                file.last_look -= LOOK_AFTER;
            }
            assert_eq!(file.write(line).unwrap(), line.len());
        };
        write(b"one\n", false);
        fs::rename(&path, home.path().join("logs/parlor.log.old")).unwrap();
        write(b"two\n", true);
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        fs::remove_file(&path).unwrap();
        write(b"three\n", true);
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        write(b"four\n", true);
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\nfour\n");
    }

    #[test]
    fn a_full_file_makes_room_and_so_many_are_kept() {
        let home = tempfile::tempdir().unwrap();
        let (mut file, trouble) = LogFile::open(home.path(), &settings(Rotate::Size, 1, 2));
        assert_eq!(trouble, None);
        for number in 0..5 {
            let line = format!("{number}{}\n", "x".repeat(600 * 1024));
            assert_eq!(file.write(line.as_bytes()).unwrap(), line.len());
        }
        assert_eq!(
            names(home.path()),
            ["parlor.log", "parlor.log.1", "parlor.log.2"]
        );
        let first = |name: &str| fs::read(home.path().join("logs").join(name)).unwrap()[0];
        assert_eq!(
            ["parlor.log.2", "parlor.log.1", "parlor.log"].map(first),
            [b'2', b'3', b'4']
        );
        let path = home.path().join("logs/parlor.log");
        let numbers: Vec<u32> = earlier(&path).iter().map(|file| file.number).collect();
        assert_eq!(numbers, [2, 1]);
    }

    #[test]
    fn a_new_day_begins_a_new_file() {
        let home = tempfile::tempdir().unwrap();
        let yesterday = SystemTime::now() - Duration::from_secs(26 * 60 * 60);
        fs::create_dir(home.path().join("logs")).unwrap();
        let old = File::create(home.path().join("logs/parlor.log")).unwrap();
        (&old).write_all(b"yesterday\n").unwrap();
        old.set_modified(yesterday).unwrap();
        let (mut file, _) = LogFile::open(home.path(), &settings(Rotate::Daily, 0, 7));
        file.write_all(b"today\n").unwrap();
        let read = |name: &str| fs::read_to_string(home.path().join("logs").join(name)).unwrap();
        assert_eq!(read("parlor.log"), "today\n");
        assert_eq!(read("parlor.log.1"), "yesterday\n");
    }

    #[test]
    fn the_file_is_for_its_owner_alone_and_never_a_link() {
        let home = tempfile::tempdir().unwrap();
        let (_, trouble) = LogFile::open(home.path(), &settings(Rotate::Daily, 0, 7));
        assert_eq!(trouble, None);
        let path = home.path().join("logs/parlor.log");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&path), mode(&home.path().join("logs"))),
            (0o600, 0o700)
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        drop(LogFile::open(home.path(), &settings(Rotate::Daily, 0, 7)));
        assert_eq!(mode(&path), 0o600);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(home.path().join("elsewhere"), &path).unwrap();
        let (_, trouble) = LogFile::open(home.path(), &settings(Rotate::Daily, 0, 7));
        assert!(trouble.is_some());
        assert!(!home.path().join("elsewhere").exists());
    }
}
