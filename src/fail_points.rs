//! Points at which a test has the process killed, so that the promises about crashes are tried at
//! every commit and every call. In release builds the functions are empty.
//!
//! `PARLOR_FAIL_POINT=turn_end.before:3` ends the process by SIGKILL at the third passing of a point.
//! `PARLOR_FAIL_POINTS_PASSED=FILE` writes each passed point into a file.

/// Makes an enum of kinds with their names.
macro_rules! kinds {
    ($(#[$about:meta])* $kind:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $kind { $($(#[$doc])* $variant,)* }

        #[cfg(debug_assertions)]
        impl $kind {
            const ALL: &[($kind, &str)] = &[$(($kind::$variant, $name),)*];

            fn name(self) -> &'static str {
                match self { $($kind::$variant => $name,)* }
            }
        }
    };
}

kinds! {
    /// A kind of write to the database. Writes that share a commit pass the points of all their kinds.
    Write {
        InboxBatch = "inbox_batch",
        /// A message that needs no reply.
        InboxClosed = "inbox_closed",
        CommandEffect = "command_effect",
        Pin = "pin",
        TalkKept = "talk_kept",
        ToolRound = "tool_round",
        ToolResult = "tool_result",
        SubagentBegin = "subagent_begin",
        SubagentEnd = "subagent_end",
        ApprovalAsked = "approval_asked",
        ApprovalDecided = "approval_decided",
        ApprovalBegun = "approval_begun",
        TurnParked = "turn_parked",
        TurnResumed = "turn_resumed",
        TurnEnd = "turn_end",
        OutboxClaim = "outbox_claim",
        OutboxOutcome = "outbox_outcome",
        /// At a start: rows that another process left behind.
        OutboxReopened = "outbox_reopened",
        Preview = "preview",
        RetryAfter = "retry_after",
        JobSlot = "job_slot",
        JobEnd = "job_end",
        ReadPosition = "read_position",
        /// Every commit without one of the kinds above.
        #[cfg(debug_assertions)]
        Other = "other_write",
    }
}

kinds! {
    /// A kind of action outside the database.
    Call {
        TelegramPoll = "telegram_poll",
        TelegramSend = "telegram_send",
        TelegramEdit = "telegram_edit",
        TelegramOther = "telegram_other",
        DiscordSend = "discord_send",
        DiscordEdit = "discord_edit",
        DiscordOther = "discord_other",
        Model = "model",
        Tool = "tool",
    }
}

impl Call {
    pub(crate) fn of_telegram(method: &str) -> Self {
        match method {
            "getUpdates" => Call::TelegramPoll,
            "sendMessage" => Call::TelegramSend,
            "editMessageText" => Call::TelegramEdit,
            _ => Call::TelegramOther,
        }
    }

    pub(crate) fn of_discord(method: &str, path: &str) -> Self {
        match method {
            "POST" if path.ends_with("/messages") => Call::DiscordSend,
            "PATCH" if path.contains("/messages/") => Call::DiscordEdit,
            _ => Call::DiscordOther,
        }
    }
}

/// The names of all points, for tests.
#[cfg(debug_assertions)]
pub fn names() -> Vec<String> {
    let writes = Write::ALL.iter().map(|(_, name)| name);
    let calls = Call::ALL.iter().map(|(_, name)| name);
    let both = |name: &&str| [format!("{name}.before"), format!("{name}.after")];
    writes.chain(calls).flat_map(both).collect()
}

#[cfg(debug_assertions)]
pub(crate) use debug::{Passing, commits, commits_nothing, job, writes};
#[cfg(not(debug_assertions))]
pub(crate) use release::{Passing, commits, commits_nothing, job, writes};

/// Passes the point before a call at once, and the point after the call at [`Passing::ended`].
pub(crate) fn calls(call: Call) -> Passing {
    Passing::begin(call)
}

#[cfg(debug_assertions)]
mod debug {
    use std::cell::RefCell;
    use std::fs::{File, OpenOptions};
    use std::io::Write as _;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    use super::{Call, Write};

    thread_local! {
        /// The kinds of the transaction on this thread.
        static KINDS: RefCell<Vec<Write>> = const { RefCell::new(Vec::new()) };
    }

    /// A point and the number of the passing that kills.
    struct Armed {
        point: String,
        passing: u64,
    }

    static ARMED: LazyLock<Option<Armed>> = LazyLock::new(|| {
        let text = std::env::var("PARLOR_FAIL_POINT").ok()?;
        let (point, passing) = text.split_once(':')?;
        let passing = passing.parse().ok()?;
        let point = point.to_owned();
        Some(Armed { point, passing })
    });
    static PASSED: LazyLock<Option<File>> = LazyLock::new(|| {
        let path = std::env::var_os("PARLOR_FAIL_POINTS_PASSED")?;
        OpenOptions::new().create(true).append(true).open(path).ok()
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);

    /// Notes the kind of the write that runs in this transaction.
    pub(crate) fn writes(kind: Write) {
        KINDS.with_borrow_mut(|kinds| {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        });
    }

    /// A job of a transaction. One that notes no kind is of the kind for all others, also where it
    /// shares its commit.
    pub(crate) fn job<T>(work: impl FnOnce() -> T) -> T {
        let before = KINDS.with_borrow(Vec::len);
        let done = work();
        if KINDS.with_borrow(Vec::len) == before {
            writes(Write::Other);
        }
        done
    }

    /// Commits, with the points of all kinds in the transaction around the commit.
    pub(crate) fn commits<T>(commit: impl FnOnce() -> T) -> T {
        let mut kinds = KINDS.take();
        if kinds.is_empty() {
            kinds.push(Write::Other);
        }
        kinds.iter().for_each(|kind| pass(kind.name(), "before"));
        let committed = commit();
        kinds.iter().for_each(|kind| pass(kind.name(), "after"));
        committed
    }

    /// The transaction changes nothing, or is rolled back.
    pub(crate) fn commits_nothing() {
        KINDS.take();
    }

    /// A call under way.
    #[must_use = "the point after the call is passed by `ended`"]
    pub(crate) struct Passing(Call);

    impl Passing {
        pub(super) fn begin(call: Call) -> Self {
            pass(call.name(), "before");
            Passing(call)
        }

        pub(crate) fn ended(self) {
            pass(self.0.name(), "after");
        }
    }

    fn pass(kind: &str, side: &str) {
        if let Some(mut file) = PASSED.as_ref() {
            // A line is one write, so lines of several threads stay whole.
            drop(file.write_all(format!("{kind}.{side}\n").as_bytes()));
        }
        let Some(armed) = ARMED.as_ref() else {
            return;
        };
        let is_armed = armed
            .point
            .strip_prefix(kind)
            .and_then(|rest| rest.strip_prefix('.'))
            == Some(side);
        if is_armed && COUNT.fetch_add(1, Ordering::SeqCst) + 1 == armed.passing {
            let _ = kill_process(getpid(), Signal::KILL);
            // The signal arrives at any moment, and the point is never left.
            std::thread::park();
        }
    }
}

#[cfg(not(debug_assertions))]
mod release {
    use super::{Call, Write};

    #[inline(always)]
    pub(crate) fn writes(_kind: Write) {}

    #[inline(always)]
    pub(crate) fn job<T>(work: impl FnOnce() -> T) -> T {
        work()
    }

    #[inline(always)]
    pub(crate) fn commits<T>(commit: impl FnOnce() -> T) -> T {
        commit()
    }

    #[inline(always)]
    pub(crate) fn commits_nothing() {}

    pub(crate) struct Passing;

    impl Passing {
        #[inline(always)]
        pub(super) fn begin(_call: Call) -> Self {
            Passing
        }

        #[inline(always)]
        pub(crate) fn ended(self) {}
    }
}
