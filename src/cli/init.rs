//! `parlor init`: writes the home folder's starting content and never overwrites.

use super::Outcome;
use crate::agents::write_home;
use crate::gateway::Home;

pub(super) fn run(home: &Home) -> Outcome {
    let written = write_home(home.path())?;
    for path in &written.created {
        println!("created {}", path.display());
    }
    for path in &written.kept {
        println!("kept    {}", path.display());
    }
    eprintln!("{} is ready. `parlor chat` talks to the agents here; config.toml has the way to Telegram.", home.path().display());
    Ok(())
}
