//! The place that an operator means: by its key, by its name, or by group and name, such as
//! `Family/Garden`.

use super::Failure;
use super::names::Names;
use crate::config::Secrets;
use crate::domain::SessionKey;
use crate::home::{CheckedConfig, Home};
use crate::operations::finding_places::{self, NoPlace};
use crate::storage::Db;

/// A place need not be in use.
pub(super) async fn place(home: &Home, word: &str) -> Result<SessionKey, Failure> {
    let key = word.parse::<SessionKey>();
    if !home.database().exists() {
        return key.map_err(|error| Failure::WrongUse(error.to_string()));
    }
    let db = Db::open(&home.database()).await?;
    let names = match key {
        Ok(_) => Names::default(),
        // Names are nice to have, also beside a config with problems.
        Err(_) => {
            let config = CheckedConfig::load(home, Secrets::WherePresent).ok();
            Names::load(&db, config.as_ref().map(|checked| &*checked.config)).await?
        }
    };
    let own = word.to_owned();
    let find =
        move |connection: &rusqlite::Connection| finding_places::meant(connection, &names, &own);
    let found = db.read(find).await?;
    found.map_err(|error| {
        let failure = Failure::WrongUse(error.to_string());
        match error {
            // The error says how a key looks.
            NoPlace::Malformed(_) => failure,
            NoPlace::Unused(_) | NoPlace::Unknown { .. } | NoPlace::Several { .. } => {
                failure.hint(HOW)
            }
        }
    })
}

/// The same where a place may be left out.
pub(super) async fn place_if_any(
    home: &Home,
    word: Option<&str>,
) -> Result<Option<SessionKey>, Failure> {
    match word {
        Some(word) => place(home, word).await.map(Some),
        None => Ok(None),
    }
}

pub(super) const HOW: &str =
    "`parlor sessions` lists places; where nobody answers, /whoami and the log have the key";
