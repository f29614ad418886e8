//! `parlor work-on`: the child of a gateway that works on strangers' bytes. Not for people, so it
//! stands in no help, and no home is opened.

use std::process::ExitCode;

use crate::{sandbox, tools};

/// Does the work, if the command line asks for it. The other verbs are looked at later, because
/// reading a command line takes longer than most jobs.
pub(super) fn if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != sandbox::VERB {
        return None;
    }
    let name = words.next().unwrap_or_default();
    let worked = sandbox::work_on(&name.to_string_lossy(), &tools::jobs());
    Some(worked.map_or_else(
        |refusal| {
            super::note(format_args!("error: {refusal}"));
            ExitCode::from(refusal.exit_code())
        },
        |()| ExitCode::SUCCESS,
    ))
}
