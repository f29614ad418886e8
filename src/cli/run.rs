//! `parlor run`: the gateway, until a signal.

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Failure, Outcome, note, print};
use crate::admin::Admin;
use crate::agents::ensure_home;
use crate::figures::zone_name;
use crate::gateway::{DRAIN, Gateway, Monitor};
use crate::home::Home;
use crate::operations::http_keys::{KeyReply, KeyRequest, LINK_LASTS};
use crate::operations::{self, Reply, Request};
use crate::{console, open_files, telemetry};

/// The exit code after a second Ctrl-C, as of a program that the signal has ended.
const AT_ONCE: i32 = 130;

#[derive(Args, Default)]
pub(super) struct Arguments {
    /// Begin with an empty database where there was one that is gone; never touches one that is
    /// there
    #[arg(long)]
    new_database: bool,
}

/// Signals to the gateway.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal window was closed. Without a terminal: a request to read the config anew.
    hangup: Signal,
}

/// Why the gateway stops.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Why {
    CtrlC,
    Terminated,
    HungUp,
    Deserted(String),
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    // First, because a signal nobody listens to ends the process.
    let mut signals = Signals::new()?;
    console::open();
    let is_new = ensure_home(home.path())?.is_some();
    if is_new {
        note(format_args!("{}", made(&home)));
    }
    if arguments.new_database {
        home.begin_anew()?;
    }
    open_files::warn_if_few();
    // Asked now: a closed terminal is none any more.
    let has_terminal = telemetry::is_seen();
    let gateway = Gateway::start(home.clone()).await?;
    let monitor = gateway.monitor();
    let admin = Admin::start(monitor.clone());
    console::say(&up());
    // A link is a key for a minute, so no log gets one, but for the first start of a home.
    if (has_terminal || is_new) && monitor.snapshots().borrow().config.has_web() {
        // The commands in it are typed in another terminal.
        let invitation = print::to_type_on(&home, &invitation(&monitor).await);
        match has_terminal {
            true => console::show(&invitation),
            false => console::say(&invitation),
        }
    }
    let why = loop {
        let why = tokio::select! {
            why = signals.next() => why,
            reason = gateway.deserted() => Why::Deserted(reason),
        };
        if why == Why::HungUp && !has_terminal {
            drop(gateway.reload("SIGHUP").await);
        } else {
            break why;
        }
    };
    console::say(&stopping(&why, gateway.under_way()));
    let stopped = async {
        gateway.shutdown().await;
        admin.stop().await;
    };
    tokio::select! {
        () = stopped => console::say("Stopped."),
        _ = signals.next() => {
            telemetry::say(STOPPED_AT_ONCE);
            std::process::exit(AT_ONCE);
        }
    }
    match why {
        Why::Deserted(reason) => Err(Failure::Failed(reason)),
        Why::CtrlC | Why::Terminated | Why::HungUp => Ok(()),
    }
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Why {
        tokio::select! {
            _ = self.interrupt.recv() => Why::CtrlC,
            _ = self.terminate.recv() => Why::Terminated,
            _ = self.hangup.recv() => Why::HungUp,
        }
    }
}

fn made(home: &Home) -> String {
    format!(
        "A home for your agents was made in {}.",
        home.path().display()
    )
}

fn up() -> String {
    format!(
        "Parlor {} is up. Times are local ({}); Ctrl-C stops.",
        env!("CARGO_PKG_VERSION"),
        zone_name(&telemetry::zone())
    )
}

/// The way into the web chat.
async fn invitation(monitor: &Monitor) -> String {
    let actor = operations::actor(nix::unistd::geteuid().as_raw());
    let asked = Request::Key(KeyRequest::Link);
    match monitor.operations().run(&actor, asked).await {
        Ok(Reply::Key(KeyReply::Link { url })) => invited(&url),
        Ok(_) => NO_LINK.to_owned(),
        Err(refusal) => format!("{NO_LINK} {}", refusal.text),
    }
}

fn invited(url: &str) -> String {
    format!(
        "Talk to your agents in the browser:\n  {url}\nThe link works once, for {} seconds; `parlor dashboard` gives another. `parlor chat` talks here.",
        LINK_LASTS.as_secs()
    )
}

const NO_LINK: &str = "The web chat cannot be opened yet; `parlor dashboard` tries again.";

fn stopping(why: &Why, under_way: usize) -> String {
    let because = match why {
        Why::HungUp => " because the terminal was closed",
        Why::CtrlC | Why::Terminated | Why::Deserted(_) => "",
    };
    if under_way == 0 {
        return format!("Stopping{because}.");
    }
    let again = if *why == Why::CtrlC {
        " Ctrl-C again stops now."
    } else {
        ""
    };
    format!(
        "Stopping{because}: finishing {}, up to {} s.{again}",
        console::counted(under_way, "answer"),
        DRAIN.as_secs()
    )
}

const STOPPED_AT_ONCE: &str = "Stopped at once. The next start goes on with the rest.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopping_says_what_it_waits_for() {
        let all = [
            stopping(&Why::CtrlC, 0),
            stopping(&Why::CtrlC, 2),
            stopping(&Why::Terminated, 1),
            stopping(&Why::HungUp, 0),
            stopping(&Why::HungUp, 2),
        ];
        insta::assert_snapshot!(all.join("\n"), @r"
        Stopping.
        Stopping: finishing 2 answers, up to 10 s. Ctrl-C again stops now.
        Stopping: finishing 1 answer, up to 10 s.
        Stopping because the terminal was closed.
        Stopping because the terminal was closed: finishing 2 answers, up to 10 s.
        ");
    }
}
