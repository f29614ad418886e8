//! The person at the command line, for the audit.

use crate::records::audit::Actor;

/// The login name on this machine, as the shell tells it.
pub(super) fn actor() -> Actor {
    let told = |name| {
        std::env::var(name)
            .ok()
            .filter(|login: &String| !login.is_empty())
    };
    Actor::Cli {
        login: told("USER").or_else(|| told("LOGNAME")).unwrap_or_default(),
    }
}
