//! The real binary at a terminal: keys go in, and a screen shows what a person would see.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::sync::watch;

/// Long enough for a loaded machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) struct Pty {
    child: Child,
    keys: File,
    printed: Arc<Mutex<Printed>>,
    /// Counts what came.
    changed: watch::Receiver<usize>,
    presses: usize,
}

struct Printed {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

impl Pty {
    /// Starts `parlor` with these arguments in a terminal of so many columns.
    pub(crate) fn start(
        home: &Path,
        arguments: &[&str],
        columns: u16,
        environment: &[(&str, &str)],
    ) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_parlor"));
        Self::run(command, home, arguments, columns, environment)
    }

    /// The same in a session of its own, so that keys become signals. util-linux has `setsid`.
    pub(crate) fn in_control(
        home: &Path,
        arguments: &[&str],
        columns: u16,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = Command::new("/usr/bin/setsid");
        command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_parlor")]);
        Self::run(command, home, arguments, columns, environment)
    }

    fn run(
        mut command: Command,
        home: &Path,
        arguments: &[&str],
        columns: u16,
        environment: &[(&str, &str)],
    ) -> Self {
        const ROWS: u16 = 40;
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("unlocked");
        let size = Winsize {
            ws_row: ROWS,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).expect("a size");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let side: OwnedFd = rustix::fs::open(&name, flags, Mode::empty()).expect("the other side");
        let end = || Stdio::from(side.try_clone().expect("a copy"));
        let child = command
            .env_clear()
            .env("PARLOR_HOME", home)
            .env("USER", "ann")
            .env("TERM", "xterm-256color")
            .envs(environment.iter().copied())
            .args(arguments)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("it starts");
        let (told, changed) = watch::channel(0);
        let printed = Arc::new(Mutex::new(Printed {
            screen: vt100::Parser::new(ROWS, columns, 0),
            bytes: Vec::new(),
        }));
        let copy = master.as_fd().try_clone_to_owned().expect("a copy");
        let shared = printed.clone();
        std::thread::spawn(move || take_in(File::from(copy), &shared, &told));
        Pty {
            child,
            keys: File::from(master),
            printed,
            changed,
            presses: 0,
        }
    }

    /// Presses keys. Enter is `\r`, Ctrl-C `\x03`.
    pub(crate) fn types(&mut self, keys: &str) {
        self.presses += presses(keys);
        self.keys.write_all(keys.as_bytes()).expect("it reads");
    }

    /// How often a person would have pressed a key so far. A paste is one press.
    pub(crate) fn presses(&self) -> usize {
        self.presses
    }

    /// SIGINT, as a terminal sends it to a program that does not read keys one by one.
    pub(crate) fn interrupts(&self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// The screen without empty lines at its end.
    pub(crate) fn screen(&self) -> String {
        let contents = self
            .printed
            .lock()
            .expect("no panic")
            .screen
            .screen()
            .contents();
        contents.trim_end().to_owned()
    }

    /// Everything that was written to the terminal.
    pub(crate) fn bytes(&self) -> String {
        let bytes = self.printed.lock().expect("no panic").bytes.clone();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the screen is as wanted, and returns it.
    pub(crate) async fn sees(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let waiting = async {
            loop {
                self.changed.mark_unchanged();
                let screen = self.screen();
                if wanted(&screen) || self.changed.changed().await.is_err() {
                    return screen;
                }
            }
        };
        let seen = tokio::time::timeout(PATIENCE, waiting).await;
        match seen {
            Ok(screen) if wanted(&screen) => screen,
            _ => panic!("never saw {what}:\n{}", self.screen()),
        }
    }

    pub(crate) async fn shows(&mut self, text: &str) -> String {
        self.sees(text, |screen| screen.contains(text)).await
    }

    /// Waits for the end, and returns everything that was written to the terminal.
    pub(crate) async fn everything(&mut self) -> String {
        let over = async { while self.changed.changed().await.is_ok() {} };
        let over = tokio::time::timeout(PATIENCE, over).await;
        assert!(over.is_ok(), "it goes on:\n{}", self.screen());
        self.bytes()
    }

    /// Waits for the end, and returns the exit code.
    pub(crate) async fn ends(mut self) -> i32 {
        let mut child = self.child;
        let waiting = tokio::task::spawn_blocking(move || child.wait());
        let ended = tokio::time::timeout(PATIENCE, waiting).await;
        self.changed.mark_unchanged();
        let status = ended.expect("it ends").expect("no panic").expect("it ran");
        status.code().unwrap_or(-1)
    }
}

fn presses(keys: &str) -> usize {
    const SHORTEST_PASTE: usize = 12;
    let arrows = keys.matches("\x1b[").count();
    let plain = keys.chars().filter(|c| !c.is_control()).count() - arrows * 2;
    let typed = if plain >= SHORTEST_PASTE { 1 } else { plain };
    let controls = keys.chars().filter(|c| c.is_control()).count();
    typed + controls
}

fn take_in(mut from: File, printed: &Mutex<Printed>, told: &watch::Sender<usize>) {
    let mut buffer = [0; 4096];
    // The end of a terminal is an error on Linux.
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        {
            let mut printed = printed.lock().expect("no panic");
            printed.screen.process(&buffer[..count]);
            printed.bytes.extend_from_slice(&buffer[..count]);
        }
        told.send_modify(|came| *came += count);
    }
}
