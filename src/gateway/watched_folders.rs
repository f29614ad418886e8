//! Folders whose changes the system reports: saved, moved, created and deleted files.
//!
//! Files that are only read or written to are not reported. Else every commit of the database,
//! which lies in a watched folder, would wake the gateway.

use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub(super) use inotify_folders::WatchedFolders;
#[cfg(not(target_os = "linux"))]
pub(super) use polled_config::WatchedFolders;

/// A path that has changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Changed {
    Path(PathBuf),
    /// The system has dropped reports.
    Anything,
}

#[cfg(target_os = "linux")]
mod inotify_folders {
    use std::collections::HashMap;
    use std::io;
    use std::path::{Path, PathBuf};

    use futures_util::StreamExt;
    use inotify::{EventMask, EventStream, Inotify, WatchDescriptor, WatchMask, Watches};

    use super::Changed;

    /// Some dozens of reports.
    const BUFFER_BYTES: usize = 4096;

    pub(in crate::gateway) struct WatchedFolders {
        reports: EventStream<[u8; BUFFER_BYTES]>,
        watches: Watches,
        folders: HashMap<WatchDescriptor, PathBuf>,
    }

    impl WatchedFolders {
        pub(in crate::gateway) fn new() -> io::Result<Self> {
            let inotify = Inotify::init()?;
            let watches = inotify.watches();
            Ok(WatchedFolders {
                reports: inotify.into_event_stream([0; BUFFER_BYTES])?,
                watches,
                folders: HashMap::new(),
            })
        }

        /// Watches a folder, but no folder in it. A watched folder may be named again.
        pub(in crate::gateway) fn follow(&mut self, folder: &Path) -> io::Result<()> {
            let mask = WatchMask::CLOSE_WRITE
                | WatchMask::MOVED_TO
                | WatchMask::MOVED_FROM
                | WatchMask::CREATE
                | WatchMask::DELETE
                | WatchMask::ONLYDIR;
            let watch = self.watches.add(folder, mask)?;
            self.folders.insert(watch, folder.to_owned());
            Ok(())
        }

        /// The next report. None when the system reports nothing more.
        pub(in crate::gateway) async fn next(&mut self) -> Option<Changed> {
            loop {
                let report = self.reports.next().await?.ok()?;
                if report.mask.contains(EventMask::Q_OVERFLOW) {
                    return Some(Changed::Anything);
                }
                if report.mask.contains(EventMask::IGNORED) {
                    self.folders.remove(&report.wd);
                    continue;
                }
                if let (Some(folder), Some(name)) = (self.folders.get(&report.wd), report.name) {
                    return Some(Changed::Path(folder.join(name)));
                }
            }
        }
    }
}

/// Other systems are asked once a second about the config alone. Identity files and skills are read
/// for every turn anyway.
#[cfg(not(target_os = "linux"))]
mod polled_config {
    use std::io;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, SystemTime};

    use super::Changed;

    const LOOK_EVERY: Duration = Duration::from_secs(1);

    #[derive(Default)]
    pub(in crate::gateway) struct WatchedFolders {
        /// The config of the first folder, and when it was saved.
        config: Option<(PathBuf, Option<SystemTime>)>,
    }

    impl WatchedFolders {
        pub(in crate::gateway) fn new() -> io::Result<Self> {
            Ok(WatchedFolders::default())
        }

        pub(in crate::gateway) fn follow(&mut self, folder: &Path) -> io::Result<()> {
            let config = folder.join("config.toml");
            if self.config.is_none() {
                let saved_at = saved_at(&config);
                self.config = Some((config, saved_at));
            }
            Ok(())
        }

        pub(in crate::gateway) async fn next(&mut self) -> Option<Changed> {
            let (config, known) = self.config.as_mut()?;
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let now = saved_at(config);
                if now.is_some() && now != *known {
                    *known = now;
                    return Some(Changed::Path(config.clone()));
                }
            }
        }
    }

    fn saved_at(path: &Path) -> Option<SystemTime> {
        path.metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
    }
}
