//! Step 4: a unit of systemd that keeps the gateway running, or the gateway in this terminal.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::plan::Change;
use super::questions::{Answer, Stop};
use super::{Setup, texts};
use crate::config::ENVIRONMENT_FILE;

/// The service manager for the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceWish {
    User,
    System,
    None,
}

impl Setup<'_> {
    /// Returns whether the gateway is to run here.
    pub(super) async fn service(&mut self) -> Answer<bool> {
        let config = self.facts()?.config;
        let has_bot = config.telegram.is_some() || config.discord.is_some();
        let manager = match self.wishes.service {
            Some(ServiceWish::None) => return Ok(false),
            Some(wish) => wish,
            None if !self.asker.is_person() || !has_bot || self.home.is_running() => {
                return Ok(false);
            }
            None => match self.choose_service().await? {
                Chosen::Service(manager) => manager,
                Chosen::Here => return Ok(true),
                Chosen::NotNow => return Ok(false),
            },
        };
        self.install(manager).await?;
        Ok(false)
    }

    async fn choose_service(&mut self) -> Answer<Chosen> {
        self.asker.say(texts::FOUR);
        let is_root = nix::unistd::geteuid().is_root();
        let manager = if is_root {
            ServiceWish::System
        } else {
            ServiceWish::User
        };
        let has_systemd = answers(manager).await;
        let mut options = vec![(
            Chosen::Here,
            "run it in this terminal now; it stops with Ctrl-C".to_owned(),
        )];
        if has_systemd {
            let how = if is_root { "a system" } else { "a user" };
            let label =
                format!("as {how} service of systemd, which starts it again after a restart");
            options.push((Chosen::Service(manager), label));
        }
        options.push((Chosen::NotNow, "not now: `parlor run` starts it".to_owned()));
        let labels: Vec<String> = options.iter().map(|(_, label)| label.clone()).collect();
        let chosen = self.asker.choose("How shall it run?", &labels, 0)?;
        let chosen = options.get(chosen).map(|(chosen, _)| *chosen);
        Ok(chosen.unwrap_or(Chosen::NotNow))
    }

    async fn install(&mut self, manager: ServiceWish) -> Answer<()> {
        let path = unit_path(manager)?;
        let program = std::env::current_exe().map_err(Stop::failed)?;
        let home = std::path::absolute(self.home.path()).map_err(Stop::failed)?;
        let unit = unit(manager, &program, &home);
        let commands = commands(manager);
        let change = Change::Service {
            unit: path.display().to_string(),
            commands: commands.iter().map(|words| words.join(" ")).collect(),
        };
        let is_there = std::fs::read_to_string(&path).is_ok_and(|old| old == unit);
        if self.is_planning() {
            if !is_there {
                self.commit(vec![change], Vec::new()).await?;
            }
            return self.environment().await;
        }
        if is_there {
            self.asker
                .say(&format!("{} is there already.", path.display()));
        } else {
            self.asker.say(&unit);
            let question = format!("Write this to {} and start it?", path.display());
            if !self.asker.confirm(&question, true)? {
                return Ok(());
            }
            write_unit(&path, &unit)?;
            self.commit(vec![change], Vec::new()).await?;
        }
        self.environment().await?;
        for words in &commands {
            if let Err(problem) = run(words).await {
                self.asker
                    .say(&format!("`{}` failed: {problem}", words.join(" ")));
                return Ok(());
            }
        }
        let state = state(manager).await;
        self.asker.say(&format!("The service is {state}."));
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chosen {
    Here,
    Service(ServiceWish),
    NotNow,
}

fn unit_path(manager: ServiceWish) -> Answer<PathBuf> {
    if manager == ServiceWish::System {
        return Ok(PathBuf::from("/etc/systemd/system/parlor.service"));
    }
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(std::env::home_dir()?.join(".config")));
    let config = config.ok_or_else(|| Stop::Failed("this user has no home folder".into()))?;
    Ok(config.join("systemd/user/parlor.service"))
}

fn unit(manager: ServiceWish, program: &Path, home: &Path) -> String {
    let wanted_by = match manager {
        ServiceWish::System => "multi-user.target",
        ServiceWish::User | ServiceWish::None => "default.target",
    };
    // A file of variables is named without quotes.
    let variables = home.join(ENVIRONMENT_FILE);
    let variables = variables.display().to_string().replace('%', "%%");
    let (program, home) = (escaped(program), escaped(home));
    format!(
        "[Unit]\nDescription=Parlor\nAfter=network-online.target\nWants=network-online.target\n\n\
         [Service]\nEnvironment=\"PARLOR_HOME={home}\"\nEnvironmentFile=-{variables}\n\
         ExecStart=\"{program}\" run\nExecReload=\"{program}\" reload\nRestart=on-failure\nTimeoutStopSec=30\n\n\
         [Install]\nWantedBy={wanted_by}\n"
    )
}

/// A path in a unit: `%` begins a specifier there.
fn escaped(path: &Path) -> String {
    let text = path.display().to_string();
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%")
}

fn commands(manager: ServiceWish) -> Vec<Vec<&'static str>> {
    match manager {
        ServiceWish::System => vec![
            vec!["systemctl", "daemon-reload"],
            vec!["systemctl", "enable", "--now", "parlor"],
        ],
        ServiceWish::User | ServiceWish::None => vec![
            vec!["systemctl", "--user", "daemon-reload"],
            vec!["systemctl", "--user", "enable", "--now", "parlor"],
            // Without lingering, the service ends with the last login.
            vec!["loginctl", "enable-linger"],
        ],
    }
}

/// Whether systemd can be asked to keep a service running.
async fn answers(manager: ServiceWish) -> bool {
    let words: &[&str] = match manager {
        ServiceWish::System => &["systemctl", "show-environment"],
        ServiceWish::User | ServiceWish::None => &["systemctl", "--user", "show-environment"],
    };
    run(words).await.is_ok()
}

async fn run(words: &[&str]) -> Result<String, String> {
    let [program, arguments @ ..] = words else {
        return Ok(String::new());
    };
    let ran = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| error.to_string())?;
    match ran.status.success() {
        true => Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&ran.stderr).trim().to_owned()),
    }
}

async fn state(manager: ServiceWish) -> String {
    let words: &[&str] = match manager {
        ServiceWish::System => &["systemctl", "show", "-P", "ActiveState", "parlor"],
        ServiceWish::User | ServiceWish::None => {
            &["systemctl", "--user", "show", "-P", "ActiveState", "parlor"]
        }
    };
    run(words).await.unwrap_or_else(|problem| problem)
}

fn write_unit(path: &Path, unit: &str) -> Answer<()> {
    let written = path
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(path, unit));
    written.map_err(|error| Stop::Failed(format!("cannot write {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_user() {
        let unit = unit(
            ServiceWish::User,
            Path::new("/usr/local/bin/parlor"),
            Path::new("/home/ann/50% \"house\""),
        );
        insta::assert_snapshot!(unit, @r#"
        [Unit]
        Description=Parlor
        After=network-online.target
        Wants=network-online.target

        [Service]
        Environment="PARLOR_HOME=/home/ann/50%% \"house\""
        EnvironmentFile=-/home/ann/50%% "house"/environment
        ExecStart="/usr/local/bin/parlor" run
        ExecReload="/usr/local/bin/parlor" reload
        Restart=on-failure
        TimeoutStopSec=30

        [Install]
        WantedBy=default.target
        "#);
    }
}
