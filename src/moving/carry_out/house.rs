//! Secrets, bindings and people.

use std::collections::HashMap;
use std::fs;

use rusqlite::Transaction;
use secrecy::ExposeSecret;

use super::super::found::{Found, FoundPerson, FoundSecret};
use super::super::plan::{self, PlannedRule};
use super::super::report::{Item, Kind, Running, State};
use super::files::write_new;
use super::{Import, MovingError, failed};
use crate::access::people;
use crate::agents::agent_rows;
use crate::clock::now_ms;
use crate::config::edit::NewRule;
use crate::domain::AgentId;
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::imports::{self, Carried, Origin, Row};
use crate::tenants::{self, Additions, Trial};

impl Import<'_> {
    /// Writes tokens and keys, each with its section of the config.
    pub(super) async fn secrets(
        &mut self,
        secrets: &[FoundSecret],
        running: &[Running],
    ) -> Result<(), MovingError> {
        for secret in secrets {
            let section = secret.section.path.join(".");
            let target = format!("secrets/{}", secret.name);
            let item = Item::new(Kind::Secret, &secret.source, State::New).to(&target);
            let manual = |why: String| Item {
                target: None,
                ..Item::new(Kind::Secret, &secret.source, State::Manual).because(why)
            };
            let Some(value) = secret.value.as_ref().filter(|_| self.wish.with_secrets) else {
                let with = match secret.value {
                    Some(_) => ", or import with --with-secrets",
                    None => "",
                };
                self.items.push(manual(format!(
                    "set {} and name it in [{section}]{with}",
                    secret.variable
                )));
                continue;
            };
            let is_bot = secret.section.path.len() == 1;
            if let Some(program) = running.first().filter(|_| is_bot) {
                self.items.push(manual(format!(
                    "{} (pid {}) uses this bot; stop it and import again",
                    program.name, program.pid
                )));
                continue;
            }
            let additions = Additions {
                sections: vec![secret.section.clone()],
                ..Additions::default()
            };
            let path = self.site.home.join(&target);
            if fs::read_to_string(&path).is_ok_and(|ours| ours.trim() == value.expose_secret()) {
                self.items.push(Item {
                    state: State::Same,
                    ..item
                });
                continue;
            }
            if fs::symlink_metadata(&path).is_ok() {
                let item = item.because("another secret is in that file");
                self.items.push(Item {
                    state: State::Conflict,
                    ..item
                });
                continue;
            }
            let written = match self.wish.only_look {
                true => Ok(()),
                false => write_new(&path, value.expose_secret().as_bytes()),
            };
            if let Err(error) = written {
                self.items.push(failed(item, &error.to_string()));
                continue;
            }
            let tried = match self.wish.only_look {
                true => tenants::try_out(self.site, additions).await?,
                false => tenants::add_rules(self.site, additions).await?,
            };
            let item = Item {
                state: self.is_new(),
                ..item
            };
            self.items.push(match tried.sections.first() {
                Some(Err(why)) => item.because(format!("[{section}] was left as it is: {why}")),
                _ => item.because(format!("used by [{section}]")),
            });
        }
        Ok(())
    }

    /// Writes the fitting rules, and returns the config with them.
    pub(super) async fn rules(
        &mut self,
        found: &Found,
        planned: Vec<PlannedRule>,
        ids: &HashMap<String, AgentId>,
    ) -> Result<Trial, MovingError> {
        let rules = planned.iter().filter_map(|planned| planned.rule.clone());
        let additions = Additions {
            agents: ids.values().cloned().collect(),
            rules: rules.collect(),
            ..Additions::default()
        };
        let trial = match self.wish.only_look {
            true => tenants::try_out(self.site, additions).await?,
            false => tenants::add_rules(self.site, additions).await?,
        };
        let mut fits = trial.rules.iter();
        let mut written: Vec<(String, NewRule)> = Vec::new();
        for (planned, binding) in planned.into_iter().zip(&found.bindings) {
            let PlannedRule { mut item, rule } = planned;
            if let Some(rule) = rule {
                match fits.next() {
                    Some(Ok(())) => {
                        item.state = self.is_new();
                        written.push((plan::rule_id(binding), rule));
                    }
                    Some(Err(why)) => {
                        item.state = State::Conflict;
                        item = item.because(why);
                    }
                    None => {}
                }
            }
            self.items.push(item);
        }
        if !self.wish.only_look && !written.is_empty() {
            let (origin, by) = (self.origin.clone(), self.site.by.clone());
            let note = move |tx: &Transaction<'_>| note_rules(tx, &origin, &by, &written);
            self.site.db.write(note).await?;
        }
        Ok(trial)
    }

    pub(super) async fn person(&mut self, person: &FoundPerson) -> Result<(), MovingError> {
        let id = person.id.clone();
        let item = Item::new(Kind::Person, id.to_string(), State::New).to("member");
        let key = id.to_string();
        let was_carried = self
            .known
            .carried
            .contains_key(&(Carried::Person, key.clone()));
        let owner = person.was_owner && !self.known.members.contains(&id);
        if owner {
            let why = "an owner there; write the id into [access] owners if that is right here";
            let item = Item::new(Kind::Setting, id.to_string(), State::Manual);
            self.items.push(item.because(why));
        }
        if was_carried || self.known.members.contains(&id) {
            self.items.push(Item {
                state: State::Same,
                ..item
            });
            return Ok(());
        }
        if self.wish.only_look {
            self.items.push(item);
            return Ok(());
        }
        let (origin, by) = (self.origin.clone(), self.site.by.clone());
        let name = person.name.clone().unwrap_or_default();
        let write = move |tx: &Transaction<'_>| {
            let now = now_ms();
            let is_in = people::bring_in(tx, &id, &name, "import", now)?;
            if is_in {
                let change = Change::new(Action::Pair).about(&id).to("member");
                audit::note(tx, &by, &change, now)?;
                let row = Row {
                    agent: None,
                    target: id.to_string(),
                    stamp: String::new(),
                };
                imports::keep(tx, &origin, (Carried::Person, &key), &row, now)?;
            }
            Ok(is_in)
        };
        let is_in = self.site.db.write(write).await?;
        self.items.push(match is_in {
            true => Item {
                state: State::Done,
                ..item
            },
            false => Item {
                state: State::Skipped,
                ..item.because("this person was turned away here")
            },
        });
        self.known.members.insert(person.id.clone());
        Ok(())
    }
}

fn note_rules(
    tx: &Transaction<'_>,
    origin: &Origin,
    by: &Actor,
    rules: &[(String, NewRule)],
) -> rusqlite::Result<()> {
    let now = now_ms();
    for (id, rule) in rules {
        let change = Change::new(Action::Bind)
            .of(&rule.agent)
            .about(&rule.pattern);
        audit::note(tx, by, &change.to(&rule.agent), now)?;
        let row = Row {
            agent: agent_rows::uid_of(tx, &rule.agent)?,
            target: rule.pattern.clone(),
            stamp: String::new(),
        };
        imports::keep(tx, origin, (Carried::Rule, id), &row, now)?;
    }
    Ok(())
}
