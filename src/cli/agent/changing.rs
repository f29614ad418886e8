//! The verbs that change agents: they read the arguments and print the result. The changes
//! themselves are in `operations`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::super::json::{Named, paths, time};
use super::super::operator::{self, Operator, odd_reply};
use super::super::table::{Column, table};
use super::super::{Failure, Outcome, data, data_json, note, print, question};
use super::asking::{self, Add};
use super::importing;
use super::texts::{at_stake_text, belongings, counted, rows_text};
use crate::config::edit::NewAgent;
use crate::domain::AgentId;
use crate::home::Home;
use crate::operations::{self, AgentReply, AgentRequest, Reply, Request};
use crate::storage::Db;
use crate::tenants::{self, Adding, Archive, Rows, Site, Stake, Wish};

#[derive(Args)]
pub(in crate::cli) struct Restore {
    /// Id of the agent, or the name that `agent archive list` shows
    which: String,
    /// Another id, if its own is taken
    #[arg(long = "as", value_name = "ID")]
    as_id: Option<String>,
}

#[derive(Args)]
pub(in crate::cli) struct Purge {
    /// Id of the agent, or the name that `agent archive list` shows
    which: String,
    /// Delete without asking
    #[arg(long)]
    yes: bool,
}

#[derive(Args)]
pub(in crate::cli) struct Export {
    /// Id or name of the agent
    agent: String,
    /// File to write [default: ID.parlor-agent.tar.gz in this folder]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Args)]
pub(in crate::cli) struct Import {
    /// File that `agent export` wrote
    file: PathBuf,
    /// Another id than it had
    #[arg(long = "as", value_name = "ID")]
    as_id: Option<String>,
    /// Share the memories that were global at its old home with every agent
    /// here; without this, they become its own
    #[arg(long)]
    global: bool,
    /// Show what the file would bring, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Subcommand)]
pub(in crate::cli) enum ArchiveVerb {
    /// List archived agents
    #[command(visible_alias = "ls")]
    List,
}

/// The verbs of one home.
pub(super) struct Changes<'a> {
    pub(super) home: &'a Home,
    pub(super) json: bool,
}

impl Changes<'_> {
    /// For requests that add to the config.
    async fn operator(&self) -> Result<Operator, Failure> {
        Operator::open(self.home, true).await
    }

    async fn ask(&self, request: AgentRequest) -> Result<AgentReply, Failure> {
        match operator::ask(self.home, Request::Agent(request)).await? {
            Reply::Agent(reply) => Ok(*reply),
            _ => Err(odd_reply()),
        }
    }

    /// For verbs that only look at the home.
    async fn site(&self) -> Result<Site, Failure> {
        Ok(Site {
            home: self.home.path().to_owned(),
            db: Db::open(&self.home.database()).await?,
            by: operations::actor(nix::unistd::geteuid().as_raw()),
        })
    }

    /// The id with the name that config.toml has for it.
    fn named(&self, id: &AgentId) -> Named {
        let config = crate::config::load(self.home.path(), crate::config::Secrets::WherePresent);
        let config = config.ok().map(|draft| draft.config);
        let spec = config
            .iter()
            .flat_map(|config| &config.agents)
            .find(|spec| spec.id == *id);
        Named::new(id, spec.map(crate::agents::shown_name).as_deref())
    }

    pub(super) async fn add(&self, arguments: Add) -> Outcome {
        let given = arguments.with_plain_id();
        let given = match (&given.id, asking::is_possible(self.json)) {
            (_, true) => asking::ask_for_the_rest(self.home, given).await?,
            (Some(_), false) => given,
            (None, false) => {
                return Err(
                    Failure::WrongUse("the id of the new agent is missing".into())
                        .hint("write it like `parlor agent add night-desk`"),
                );
            }
        };
        let mut operator = self.operator().await?;
        let request = AgentRequest::Add(adding(given));
        let AgentReply::Added(added) = ask(&mut operator, request).await? else {
            return Err(odd_reply());
        };
        let (agent, running) = (self.named(&added.id), operator.is_gateway());
        if self.json {
            return data_json(&json!({
                "agent": agent,
                "created": paths(&added.files.created),
                "kept": paths(&added.files.kept),
                "earlier": added.earlier,
                "gateway_runs": running,
            }));
        }
        for path in &added.files.created {
            data(format_args!("created {}", path.display()));
        }
        for path in &added.files.kept {
            data(format_args!("kept    {}", path.display()));
        }
        data(format_args!("{} is in config.toml.", agent.text()));
        if added.earlier != Rows::default() {
            data(format_args!(
                "An earlier {} left data behind: {}. They belong to this one now.",
                added.id,
                rows_text(&added.earlier)
            ));
        }
        if running {
            note(format_args!(
                "It can be used at once. /agent {} in a chat gives the place to it.",
                added.id
            ));
        } else {
            note(format_args!(
                "Next: `parlor chat --agent {}` talks to it.",
                added.id
            ));
        }
        Ok(())
    }

    pub(super) async fn adopt(&self, id: &str) -> Outcome {
        let mut operator = self.operator().await?;
        let request = AgentRequest::Adopt { id: id.to_owned() };
        let AgentReply::Adopted(id) = ask(&mut operator, request).await? else {
            return Err(odd_reply());
        };
        let has_files = self.home.path().join("agents").join(id.as_str()).is_dir();
        if self.json {
            return data_json(&json!({
                "agent": self.named(&id),
                "has_files": has_files,
                "gateway_runs": operator.is_gateway(),
            }));
        }
        let files = if has_files {
            format!(", with the files of agents/{id}")
        } else {
            ", with what the database has of it".into()
        };
        data(format_args!("{id} is in config.toml{files}."));
        note_running(&operator);
        Ok(())
    }

    pub(super) async fn clone(&self, from: &str, to: &str) -> Outcome {
        let mut operator = self.operator().await?;
        let request = AgentRequest::Clone {
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let AgentReply::Cloned(id) = ask(&mut operator, request).await? else {
            return Err(odd_reply());
        };
        if self.json {
            return data_json(&json!({
                "agent": self.named(&id),
                "copied_from": from,
                "gateway_runs": operator.is_gateway(),
            }));
        }
        data(format_args!(
            "{id} is a copy of {from}: the same settings, identity files and skills, and no memories."
        ));
        note_running(&operator);
        Ok(())
    }

    pub(super) async fn default(&self, agent: &str) -> Outcome {
        let mut operator = self.operator().await?;
        let request = AgentRequest::SetDefault {
            agent: agent.to_owned(),
        };
        let AgentReply::Default { agent: id, is_new } = ask(&mut operator, request).await? else {
            return Err(odd_reply());
        };
        if self.json {
            return data_json(&json!({
                "agent": self.named(&id),
                "changed": is_new,
                "gateway_runs": is_new && operator.is_gateway(),
            }));
        }
        if is_new {
            data(format_args!("{id} is the default agent."));
            note_running(&operator);
        } else {
            data(format_args!("{id} is the default agent already."));
        }
        Ok(())
    }

    pub(super) async fn rename(&self, from: &str, to: &str) -> Outcome {
        let request = AgentRequest::Rename {
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let AgentReply::Renamed { from, to } = self.ask(request).await? else {
            return Err(odd_reply());
        };
        let days = tenants::KEEPS_OLD_ID.as_secs() / 86_400;
        print::result(
            self.json,
            &json!({ "agent": self.named(&to), "old_id": from, "old_id_works_for_days": days }),
            format_args!("{from} is now {to}. `/agent {from}` works for {days} more days."),
        )
    }

    pub(super) async fn remove(&self, agent: &str) -> Outcome {
        let request = AgentRequest::Remove {
            agent: agent.to_owned(),
        };
        let AgentReply::Removed(removed) = self.ask(request).await? else {
            return Err(odd_reply());
        };
        let Archive { name, id, .. } = &removed.archive;
        if self.json {
            return data_json(&json!({
                "agent": Named::new(id, None),
                "archive": name,
                "rows": removed.rows,
                "unbound": removed.bindings,
                "taken_out_of": removed.mentions,
            }));
        }
        data(format_args!(
            "{id} is archived. Its files are in archive/{name}; {} are kept, out of sight.",
            rows_text(&removed.rows)
        ));
        for binding in &removed.bindings {
            data(format_args!("no longer bound: {binding}"));
        }
        for list in &removed.mentions {
            data(format_args!("no longer named in: {list}"));
        }
        print::told(format_args!("`parlor agent restore {name}` undoes this."));
        Ok(())
    }

    pub(super) async fn restore(&self, arguments: Restore) -> Outcome {
        let Restore { which, as_id } = arguments;
        let request = AgentRequest::Restore { which, as_id };
        let AgentReply::Restored(restored) = self.ask(request).await? else {
            return Err(odd_reply());
        };
        if self.json {
            return data_json(&json!({
                "agent": self.named(&restored.id),
                "rows": restored.rows,
                "not_bound_again": restored.lost_bindings,
                "not_named_again": restored.lost_mentions,
            }));
        }
        data(format_args!(
            "{} is back, with {}.",
            restored.id,
            rows_text(&restored.rows)
        ));
        for binding in &restored.lost_bindings {
            data(format_args!(
                "not bound again, because another agent has the place now: {binding}"
            ));
        }
        for list in &restored.lost_mentions {
            data(format_args!(
                "not named again, because it does not fit any more: {list}"
            ));
        }
        Ok(())
    }

    pub(super) async fn purge(&self, arguments: Purge) -> Outcome {
        let Purge { which, yes } = arguments;
        if !yes {
            let request = AgentRequest::AtStake {
                which: which.clone(),
            };
            let AgentReply::Stake(stake) = self.ask(request).await? else {
                return Err(odd_reply());
            };
            confirm(&stake)?;
        }
        let AgentReply::Purged(purged) = self.ask(AgentRequest::Purge { which }).await? else {
            return Err(odd_reply());
        };
        if self.json {
            return data_json(&json!({
                "agent": Named::new(&purged.archive.id, None),
                "files": purged.files,
                "rows": purged.rows,
                "copies_may_be_left": purged.left,
            }));
        }
        data(format_args!(
            "{} is deleted: {}.",
            purged.archive.id,
            belongings(purged.files, &purged.rows)
        ));
        if let Some(reason) = purged.left {
            note(format_args!(
                "Copies of its words may be left in the free space of parlor.db: {reason}. The next purge takes them away, or an SQLite shell with `VACUUM`."
            ));
        }
        Ok(())
    }

    /// By this process also while a gateway runs: nothing of the home changes, and the file is this
    /// user's.
    pub(super) async fn export(&self, arguments: Export) -> Outcome {
        let path = arguments
            .output
            .unwrap_or_else(|| PathBuf::from(format!("{}.parlor-agent.tar.gz", arguments.agent)));
        let exported = tenants::export(&self.site().await?, &arguments.agent, &path)
            .await
            .map_err(|error| operator::told(error.into()))?;
        if self.json {
            return data_json(&json!({
                "agent": self.named(&exported.id),
                "file": exported.path.display().to_string(),
                "files": exported.files,
                "memories": exported.memories,
                "messages": exported.messages,
                "left_out": paths(&exported.left_out),
            }));
        }
        let (files, memories) = (
            counted(exported.files, "file", "files"),
            counted(exported.memories, "memory", "memories"),
        );
        let messages = counted(exported.messages, "message", "messages");
        data(format_args!(
            "{} is in {}: {files}, {memories}, {messages}.",
            exported.id,
            exported.path.display()
        ));
        for path in &exported.left_out {
            data(format_args!(
                "left out, because it is a link or no plain file: {}",
                path.display()
            ));
        }
        note(format_args!(
            "The file has everything that people wrote to it. Keep it as safe as the home folder."
        ));
        Ok(())
    }

    pub(super) async fn import(&self, arguments: Import) -> Outcome {
        let Import {
            file,
            as_id,
            global,
            dry_run,
        } = arguments;
        // The gateway has a working folder of its own.
        let file = std::path::absolute(&file).unwrap_or(file);
        let request = AgentRequest::Import {
            file,
            as_id: as_id.clone(),
            keep_global: global,
            only_look: dry_run,
        };
        let AgentReply::Imported(imported) = self.ask(request).await? else {
            return Err(odd_reply());
        };
        let wish = Wish {
            as_id: as_id.as_deref(),
            keep_global: global,
            only_look: dry_run,
        };
        if self.json {
            return data_json(&importing::json(&imported, &wish));
        }
        importing::tell(&imported, &wish);
        Ok(())
    }

    pub(super) async fn archives(&self, ArchiveVerb::List: ArchiveVerb) -> Outcome {
        let site = self.site().await?;
        let mut archives = Vec::new();
        for archive in tenants::archives(self.home.path()) {
            let uid = archive.uid;
            let rows = site
                .db
                .read(move |connection| tenants::rows_of(connection, uid))
                .await?;
            archives.push((archive, rows));
        }
        if self.json {
            return data_json(&archives.iter().map(archive_json).collect::<Vec<_>>());
        }
        if archives.is_empty() {
            note(format_args!("No agent is archived."));
            return Ok(());
        }
        let columns = [
            Column::Whole("ARCHIVE"),
            Column::Whole("ID"),
            Column::Words("HAS"),
        ];
        let rows = archives
            .into_iter()
            .map(|(archive, rows)| [archive.name, archive.id.to_string(), rows_text(&rows)]);
        data(format_args!("{}", table(columns, rows.collect())));
        Ok(())
    }
}

async fn ask(operator: &mut Operator, request: AgentRequest) -> Result<AgentReply, Failure> {
    match operator.ask(Request::Agent(request)).await? {
        Reply::Agent(reply) => Ok(*reply),
        _ => Err(odd_reply()),
    }
}

/// Tells that a running gateway knows the change.
fn note_running(operator: &Operator) {
    if operator.is_gateway() {
        note(format_args!("It counts from now on."));
    }
}

fn archive_json((archive, rows): &(Archive, Rows)) -> serde_json::Value {
    json!({
        "archive": archive.name,
        "agent": Named::new(&archive.id, None),
        "removed_at": time(archive.removed_at),
        "rows": rows,
        "taken_out_of": archive.mentions,
    })
}

fn adding(given: Add) -> Adding {
    let skills = given.skills.map(|names| {
        names
            .into_iter()
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect()
    });
    let entry = NewAgent {
        name: given.name,
        emoji: given.emoji,
        creature: given.creature,
        vibe: given.vibe,
        model: given.model,
        skills,
    };
    let personality = given.personality.filter(|text| !text.trim().is_empty());
    Adding {
        id: given.id.unwrap_or_default(),
        entry,
        personality,
        bindings: given.bindings,
    }
}

fn confirm(stake: &Stake) -> Outcome {
    let id = &stake.id;
    let which = stake.archive.as_ref().map_or_else(
        || id.to_string(),
        |archive| format!("{id} of archive/{}", archive.name),
    );
    question(format_args!(
        "This deletes {which} for good: {}. Type {id} to go on: ",
        at_stake_text(stake)
    ));
    match asking::read_line()? {
        Some(word) if word == id.as_str() => Ok(()),
        _ => Err(Failure::Failed(format!(
            "that is not {id}; nothing was deleted"
        ))),
    }
}
