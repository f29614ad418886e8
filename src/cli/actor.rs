//! The command line as the author of a change, for the audit.

use nix::unistd::{Uid, User};

use crate::records::audit::Actor;

/// The login of the process on this machine.
pub(super) fn actor() -> Actor {
    let uid = Uid::current();
    let user = User::from_uid(uid).ok().flatten();
    Actor::Cli {
        login: user.map_or_else(|| uid.to_string(), |user| user.name),
    }
}
