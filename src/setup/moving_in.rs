//! Another system's agents: found on this machine and offered first, or by a flag.

use std::path::{Path, PathBuf};

use super::plan::Change;
use super::questions::{Answer, Stop};
use super::{Part, Setup, texts, write};
use crate::moving::{self, Report, State, System, Wish};
use crate::records::declined;
use crate::records::imports::{self, Origin};
use crate::storage::Db;

/// An import by flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportWish {
    pub(crate) system: System,
    /// A folder or an archive. None for the usual folder.
    pub(crate) from: Option<PathBuf>,
    pub(crate) with_secrets: bool,
}

/// An installation on this machine.
struct Installed {
    system: System,
    folder: PathBuf,
    has: moving::Glance,
}

impl Setup<'_> {
    /// Imports the installation named by a flag; else offers each installation found, once.
    pub(super) async fn move_in(&mut self) -> Answer<()> {
        if let Some(wish) = self.wishes.import.clone() {
            let folder = wish.from.or_else(|| wish.system.usual_folder());
            let folder = folder.ok_or_else(|| Stop::Failed("name its folder".to_owned()))?;
            return self.import(wish.system, folder, wish.with_secrets).await;
        }
        if !self.asker.is_person() || self.is_planning() {
            return match self.wishes.part {
                Some(Part::Import) => Err(Stop::Failed(texts::IMPORT_BY_FLAGS.to_owned())),
                _ => Ok(()),
            };
        }
        match self.wishes.part {
            Some(Part::Import) => self.choose_import().await,
            _ => self.offer_imports().await,
        }
    }

    async fn offer_imports(&mut self) -> Answer<()> {
        for (system, folder) in usual_folders() {
            if self.is_settled(system, &folder).await? {
                continue;
            }
            let Some(found) = self.look_at(system, folder).await else {
                continue;
            };
            let found_here = format!("Found {}.", self.told(&found));
            self.asker.say(&found_here);
            match self.asker.confirm(texts::BRING, true)? {
                true => self.import_found(found).await?,
                false => self.decline(&found).await?,
            }
        }
        Ok(())
    }

    async fn choose_import(&mut self) -> Answer<()> {
        let mut found = Vec::new();
        for (system, folder) in usual_folders() {
            found.extend(self.look_at(system, folder).await);
        }
        let mut options: Vec<String> = found.iter().map(|found| self.told(found)).collect();
        options.push("another folder, or an archive of one".to_owned());
        let chosen = self.asker.choose("From where?", &options, 0)?;
        if let Some(found) = found.into_iter().nth(chosen) {
            return self.import_found(found).await;
        }
        let systems: Vec<String> = System::ALL.map(|system| system.name().to_owned()).to_vec();
        let system = self.asker.choose("Which system is it of?", &systems, 0)?;
        let Some(system) = System::ALL.get(system).copied() else {
            return Ok(());
        };
        let folder = self.asker.text("Its folder, or an archive of it:", "")?;
        match folder.trim() {
            "" => Ok(()),
            folder => {
                let secrets = self.asker.confirm(texts::WITH_SECRETS, false)?;
                self.import(system, whole(folder), secrets).await
            }
        }
    }

    async fn import_found(&mut self, found: Installed) -> Answer<()> {
        let secrets = self.asker.confirm(texts::WITH_SECRETS, false)?;
        self.import(found.system, found.folder, secrets).await
    }

    /// Shows the plan, and carries the plan out after a yes.
    async fn import(&mut self, system: System, folder: PathBuf, secrets: bool) -> Answer<()> {
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let change = Change::Import {
            system: system.as_str(),
            folder: folder.display().to_string(),
        };
        if self.is_planning() {
            return self.commit(vec![change], Vec::new()).await;
        }
        let is_usual = system.usual_folder().as_ref() == Some(&folder);
        let apart = system.usual_config_folder().filter(|_| is_usual);
        let mut wish = Wish {
            with_secrets: secrets,
            config_folder: apart,
            ..Wish::look(system, folder)
        };
        // Nothing is made for an empty folder.
        if self.facts()?.is_new {
            self.glance(wish.clone()).await.map_err(Stop::Failed)?;
        }
        self.commit(Vec::new(), Vec::new()).await?;
        let plan = self.carry(wish.clone()).await?;
        let has_work = plan.count(State::New) + plan.count(State::Conflict) > 0;
        self.asker.say(&moving::told(&plan));
        if !has_work {
            self.asker.say(texts::ALL_HERE);
            return Ok(());
        }
        if !self.asker.confirm("Carry this out?", true)? {
            return Ok(());
        }
        wish.only_look = false;
        let done = self.carry(wish).await?;
        self.asker.say(&format!("\n{}", texts::carried(&done)));
        self.changes.push(change);
        match done.count(State::Failed) {
            0 => Ok(()),
            _ => Err(Stop::Failed(texts::NOT_ALL_CARRIED.to_owned())),
        }
    }

    async fn carry(&mut self, wish: Wish) -> Answer<Report> {
        let site = write::site(self.home).await?;
        moving::import(&site, wish).await.map_err(Stop::failed)
    }

    async fn glance(&mut self, wish: Wish) -> Result<moving::Glance, String> {
        let looked = moving::glance(self.home.path(), wish).await;
        looked.map_err(|error| error.to_string())
    }

    /// None for a folder without an agent: a folder of this name need not belong to the system.
    async fn look_at(&mut self, system: System, folder: PathBuf) -> Option<Installed> {
        let wish = Wish {
            config_folder: system.usual_config_folder(),
            ..Wish::look(system, folder.clone())
        };
        self.asker.say(&texts::looking(&folder));
        let has = self.glance(wish).await.ok();
        let has = has.filter(|has| has.agents > 0)?;
        Some(Installed {
            system,
            folder,
            has,
        })
    }

    fn told(&self, found: &Installed) -> String {
        texts::installation(found.system.name(), &found.folder, found.has)
    }

    /// Whether the installation was imported, or declined.
    async fn is_settled(&self, system: System, folder: &Path) -> Answer<bool> {
        let path = self.home.database();
        if !path.exists() {
            return Ok(false);
        }
        let origin = Origin {
            system: system.as_str(),
            folder: real(folder).display().to_string(),
        };
        let what = offer(system, folder);
        let db = Db::open(&path).await.map_err(Stop::failed)?;
        let read = db.read(move |connection| {
            let is_brought = imports::is_any(connection, &origin)?;
            Ok(is_brought || declined::is_declined(connection, &what)?)
        });
        read.await.map_err(Stop::failed)
    }

    /// Remembers a no: at once, or together with a new home.
    async fn decline(&mut self, found: &Installed) -> Answer<()> {
        self.asker.say(texts::DECLINED);
        self.declined.push(offer(found.system, &found.folder));
        match self.facts()?.is_new {
            true => Ok(()),
            false => self.remember_declined().await,
        }
    }

    pub(super) async fn remember_declined(&mut self) -> Answer<()> {
        match self.declined.is_empty() {
            true => Ok(()),
            false => write::decline(self.home, std::mem::take(&mut self.declined)).await,
        }
    }
}

/// The usual folder of each system, as far as the folder exists.
fn usual_folders() -> Vec<(System, PathBuf)> {
    let folders = System::ALL.map(|system| Some((system, system.usual_folder()?)));
    let there = folders.into_iter().flatten();
    there.filter(|(_, folder)| folder.is_dir()).collect()
}

/// The stored form of an offer.
fn offer(system: System, folder: &Path) -> String {
    format!("import {} {}", system.as_str(), real(folder).display())
}

fn real(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// A path as typed: `~` is the user's own folder.
fn whole(text: &str) -> PathBuf {
    let home = || Some(std::env::home_dir()?.join(text.strip_prefix("~/")?));
    home().unwrap_or_else(|| PathBuf::from(text))
}
