//! `parlor init`: writes the home folder's starting content and never overwrites.

use super::{Outcome, data, note};
use crate::agents::write_home;
use crate::home::Home;

pub(super) fn run(home: &Home) -> Outcome {
    let written = write_home(home.path())?;
    home.keep_private()?;
    for path in &written.created {
        data(format_args!("created {}", path.display()));
    }
    for path in &written.kept {
        data(format_args!("kept    {}", path.display()));
    }
    note(format_args!(
        "{} is ready. `parlor chat` talks to the agents here; config.toml has the way to Telegram and Discord.",
        home.path().display()
    ));
    Ok(())
}
