//! The config that verbs look at: the file, or what a running gateway goes on with while the file
//! has a problem.

use std::sync::atomic::{AtomicBool, Ordering};

use super::operator::Line;
use super::{Failure, print};
use crate::config::settings::Settings;
use crate::config::{self, Secrets, Source};
use crate::home::{CheckedConfig, Home, check};
use crate::operations::{Reply, Request};

pub(super) async fn checked(home: &Home) -> Result<CheckedConfig, Failure> {
    let problem = match CheckedConfig::load(home, Secrets::WherePresent) {
        Ok(checked) => return Ok(checked),
        Err(problem) => problem,
    };
    let running = match running(home).await {
        Some(source) => CheckedConfig::of(source, home, Secrets::WherePresent).ok(),
        None => None,
    };
    running.inspect(|_| tell()).ok_or_else(|| problem.into())
}

/// The value of every setting, and where it comes from.
pub(super) async fn settings(home: &Home) -> Result<Settings, Failure> {
    let problem = match settings_on_disk(home) {
        Ok(settings) => return Ok(settings),
        Err(problem) => problem,
    };
    match (running(home).await).map(|source| settings_of(source, home)) {
        Some(Ok(settings)) => {
            tell();
            Ok(settings)
        }
        Some(Err(_)) | None => Err(problem),
    }
}

/// The same, of the file alone.
pub(super) fn settings_on_disk(home: &Home) -> Result<Settings, Failure> {
    settings_of(config::read_home(home.path())?, home)
}

fn settings_of(source: Source, home: &Home) -> Result<Settings, Failure> {
    let text = source.text.clone();
    let draft = config::draft(source, home.path(), Secrets::WherePresent);
    let (config, _) = check(draft, home.path())?;
    Ok(Settings::of(&config, &text, home.path()))
}

/// The text that a running gateway works with.
async fn running(home: &Home) -> Option<Source> {
    let mut line = Line::open(home).await.ok()??;
    let Ok(Ok(Reply::RunningConfig(text))) = line.ask(Request::RunningConfig).await else {
        return None;
    };
    Some(Source {
        path: home.path().join("config.toml"),
        text: text?,
    })
}

/// Once, however often the config is looked at.
fn tell() {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if !IS_TOLD.swap(true, Ordering::Relaxed) {
        print::note(format_args!(
            "config.toml has a problem, so this is about the config that the gateway runs with. `parlor config check` has the problem."
        ));
    }
}
