//! The verbs that change agents: they read the arguments and print the result. The changes
//! themselves are in `tenants`.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use comfy_table::{Table, presets};

use super::super::{Failure, Outcome, data, data_json, note, question};
use crate::config::Report;
use crate::config::edit::NewAgent;
use crate::home::Home;
use crate::storage::Db;
use crate::tenants::{self, Adding, Archive, Imported, Rows, Site, Stake, TenantError, Wish};

#[derive(Args)]
pub(in crate::cli) struct Add {
    /// What people type: a-z, 0-9 and hyphens. Asked for in a terminal
    id: Option<String>,
    /// What people see; without it, the id with a capital letter
    #[arg(long)]
    name: Option<String>,
    /// Stands beside the name
    #[arg(long)]
    emoji: Option<String>,
    /// What it is like, in a sentence or more; becomes its SOUL.md. Asked for in a terminal
    #[arg(long)]
    personality: Option<String>,
    /// provider/model; without it, the default
    #[arg(long)]
    model: Option<String>,
    /// Names with commas between them, or "" for none; without it, the whole pool
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    skills: Option<Vec<String>>,
    /// A place that belongs to it, as /whoami prints it; may be given several times
    #[arg(long = "bind", value_name = "PLACE")]
    bindings: Vec<String>,
}

#[derive(Args)]
pub(in crate::cli) struct Restore {
    /// Its id, or the name that `agent archive list` shows
    which: String,
    /// Another id, if its own is taken
    #[arg(long = "as", value_name = "ID")]
    as_id: Option<String>,
}

#[derive(Args)]
pub(in crate::cli) struct Purge {
    /// Its id, or the name that `agent archive list` shows
    which: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Args)]
pub(in crate::cli) struct Export {
    /// Its id or name
    agent: String,
    /// Where to; without it, ID.parlor-agent.tar.gz in this folder
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Args)]
pub(in crate::cli) struct Import {
    /// What `agent export` wrote
    file: PathBuf,
    /// Another id than it had
    #[arg(long = "as", value_name = "ID")]
    as_id: Option<String>,
    /// Let every agent here find the memories that were global at its home; without it, they are its own
    #[arg(long)]
    global: bool,
    /// Tell what the package would bring, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Subcommand)]
pub(in crate::cli) enum ArchiveVerb {
    /// List removed agents
    List {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
}

fn told(error: TenantError) -> Failure {
    match error {
        TenantError::Unknown(error) => Failure::WrongUse(error.to_string()),
        TenantError::Problems(report) => Failure::Failed(with_end(
            &report,
            "config.toml was not changed: this is how it would have become.",
        )),
        TenantError::Broken(report) => Failure::Failed(with_end(
            &report,
            "config.toml was not changed: put this right first.",
        )),
        other => Failure::Failed(other.to_string()),
    }
}

/// A report without its last line: no gateway was to be started, so the verb's own words end the
/// report.
fn with_end(report: &Report, end: &str) -> String {
    let text = report.to_string();
    let problems = text
        .rsplit_once("\n\n")
        .map_or(text.as_str(), |(problems, _)| problems);
    format!("{problems}\n\n{end}")
}

async fn site(home: &Home) -> Result<Site, Failure> {
    Ok(Site {
        home: home.path().to_owned(),
        db: Db::open(&home.database()).await?,
    })
}

pub(super) async fn add(home: &Home, arguments: Add) -> Outcome {
    let site = site(home).await?;
    let id = match arguments.id {
        None if io::stdin().is_terminal() => ask_for_id(&site).await?,
        None => {
            return Err(Failure::WrongUse(
                "which one? `parlor agent add ID` wants an id, such as `night-desk`".into(),
            ));
        }
        Some(id) => id,
    };
    let personality = match arguments.personality {
        None if io::stdin().is_terminal() => {
            // The id is checked before the person is asked for a character.
            tenants::may_add(&site, &id).await.map_err(told)?;
            ask_for_personality(&id)?
        }
        given => given,
    };
    let skills = arguments.skills.map(|names| {
        names
            .into_iter()
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect()
    });
    let entry = NewAgent {
        name: arguments.name,
        emoji: arguments.emoji,
        model: arguments.model,
        skills,
    };
    let personality = personality.filter(|text| !text.trim().is_empty());
    let adding = Adding {
        id,
        entry,
        personality,
        bindings: arguments.bindings,
    };
    let added = tenants::add(&site, adding).await.map_err(told)?;
    for path in &added.files.created {
        data(format_args!("created {}", path.display()));
    }
    for path in &added.files.kept {
        data(format_args!("kept    {}", path.display()));
    }
    data(format_args!("{} is in config.toml.", added.id));
    if added.earlier != Rows::default() {
        data(format_args!(
            "The store still has what an earlier {} left: {}. It is this one's now.",
            added.id,
            rows_text(&added.earlier)
        ));
    }
    note_next_start();
    Ok(())
}

/// Asks again until an id can be used. The end of the input ends the asking.
async fn ask_for_id(site: &Site) -> Result<String, Failure> {
    loop {
        question(format_args!("Which id, with a-z, 0-9 and hyphens? "));
        let Some(id) = read_line()? else {
            return Err(Failure::Failed("nothing was added".into()));
        };
        match tenants::may_add(site, &id).await {
            Ok(_) => return Ok(id),
            Err(error @ (TenantError::Unknown(_) | TenantError::Conflict(_))) => {
                note(format_args!("{error}"));
            }
            Err(error) => return Err(told(error)),
        }
    }
}

fn ask_for_personality(id: &str) -> Result<Option<String>, Failure> {
    question(format_args!(
        "What is {id} like, in a sentence? Enter alone for a plain one: "
    ));
    match read_line()? {
        Some(line) => Ok(Some(line)),
        None => Err(Failure::Failed("nothing was added".into())),
    }
}

/// Nothing at the end of the input.
fn read_line() -> Result<Option<String>, Failure> {
    let mut line = String::new();
    let is_end = io::stdin().lock().read_line(&mut line)? == 0;
    if is_end {
        // The cursor is still behind the question.
        note(format_args!(""));
    }
    Ok((!is_end).then(|| line.trim().to_owned()))
}

fn note_next_start() {
    note(format_args!(
        "A gateway that runs takes this in at its next start."
    ));
}

pub(super) async fn adopt(home: &Home, id: &str) -> Outcome {
    let id = tenants::adopt(&site(home).await?, id).await.map_err(told)?;
    let has_files = home.path().join("agents").join(id.as_str()).is_dir();
    let files = if has_files {
        format!(", with the files of agents/{id}")
    } else {
        ", with what the store has of it".into()
    };
    data(format_args!("{id} is in config.toml{files}."));
    note_next_start();
    Ok(())
}

pub(super) async fn clone(home: &Home, from: &str, to: &str) -> Outcome {
    let id = tenants::clone(&site(home).await?, from, to)
        .await
        .map_err(told)?;
    data(format_args!(
        "{id} is made like {from}: the same settings, identity files and skills. It remembers nothing."
    ));
    note_next_start();
    Ok(())
}

pub(super) async fn default(home: &Home, agent: &str) -> Outcome {
    match tenants::set_default(&site(home).await?, agent)
        .await
        .map_err(told)?
    {
        (id, false) => data(format_args!("{id} is the default agent already.")),
        (id, true) => {
            data(format_args!("{id} is the default agent."));
            note_next_start();
        }
    }
    Ok(())
}

pub(super) async fn rename(home: &Home, from: &str, to: &str) -> Outcome {
    let _lock = home.lock()?;
    let (from, to) = tenants::rename(&site(home).await?, from, to)
        .await
        .map_err(told)?;
    let days = tenants::KEEPS_OLD_ID.as_secs() / 86_400;
    data(format_args!(
        "{from} is now {to}. People can go on writing `/agent {from}` for {days} days."
    ));
    Ok(())
}

pub(super) async fn remove(home: &Home, agent: &str) -> Outcome {
    let _lock = home.lock()?;
    let removed = tenants::remove(&site(home).await?, agent)
        .await
        .map_err(told)?;
    let Archive { name, id, .. } = &removed.archive;
    data(format_args!(
        "{id} is removed. Its files are in archive/{name}; {} are kept, out of sight.",
        rows_text(&removed.rows)
    ));
    for binding in &removed.bindings {
        data(format_args!("no longer bound: {binding}"));
    }
    for list in &removed.mentions {
        data(format_args!("no longer named in: {list}"));
    }
    data(format_args!(
        "`parlor agent restore {name}` brings it back."
    ));
    Ok(())
}

pub(super) async fn restore(home: &Home, arguments: Restore) -> Outcome {
    let _lock = home.lock()?;
    let restored = tenants::restore(
        &site(home).await?,
        &arguments.which,
        arguments.as_id.as_deref(),
    )
    .await
    .map_err(told)?;
    data(format_args!(
        "{} is back, with {}.",
        restored.id,
        rows_text(&restored.rows)
    ));
    for binding in &restored.lost_bindings {
        data(format_args!(
            "not bound again, because it would not fit any more: {binding}"
        ));
    }
    for list in &restored.lost_mentions {
        data(format_args!(
            "not named again, because it would not fit any more: {list}"
        ));
    }
    Ok(())
}

pub(super) async fn purge(home: &Home, arguments: Purge) -> Outcome {
    let _lock = home.lock()?;
    let site = site(home).await?;
    let stake = tenants::at_stake(&site, &arguments.which)
        .await
        .map_err(told)?;
    if !arguments.yes {
        confirm(&stake)?;
    }
    let name = match stake.archive {
        None => {
            tenants::remove(&site, stake.id.as_str())
                .await
                .map_err(told)?
                .archive
                .name
        }
        Some(archive) => archive.name,
    };
    let purged = tenants::purge(&site, &name).await.map_err(told)?;
    data(format_args!(
        "{} is gone: {}.",
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

fn confirm(stake: &Stake) -> Outcome {
    let id = &stake.id;
    let which = stake.archive.as_ref().map_or_else(
        || id.to_string(),
        |archive| format!("{id} of archive/{}", archive.name),
    );
    question(format_args!(
        "This destroys {which} for good: {}. Type {id} to go on: ",
        at_stake_text(stake)
    ));
    match read_line()? {
        Some(word) if word == id.as_str() => Ok(()),
        _ => Err(Failure::Failed(format!(
            "that is not {id}; nothing was destroyed"
        ))),
    }
}

/// Conversations with this agent alone are destroyed too, so the question names them.
fn at_stake_text(stake: &Stake) -> String {
    let Rows {
        memories,
        messages,
        sessions,
        pins,
        ..
    } = stake.rows;
    let own = [
        counted(stake.files, "file", "files"),
        counted(memories, "memory", "memories"),
        counted(messages, "message of its own", "messages of its own"),
        counted(
            sessions,
            "conversation that only it answered in",
            "conversations that only it answered in",
        ),
        counted(pins, "pin", "pins"),
    ];
    own.join(", ")
}

fn belongings(files: usize, rows: &Rows) -> String {
    format!("{}, {}", counted(files, "file", "files"), rows_text(rows))
}

pub(super) async fn export(home: &Home, arguments: Export) -> Outcome {
    let path = arguments
        .output
        .unwrap_or_else(|| PathBuf::from(format!("{}.parlor-agent.tar.gz", arguments.agent)));
    let exported = tenants::export(&site(home).await?, &arguments.agent, &path)
        .await
        .map_err(told)?;
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
        "What people wrote is in that file. Keep it as safe as the home folder."
    ));
    Ok(())
}

pub(super) async fn import(home: &Home, arguments: Import) -> Outcome {
    let _lock = home.lock()?;
    let wish = Wish {
        as_id: arguments.as_id.as_deref(),
        keep_global: arguments.global,
        only_look: arguments.dry_run,
    };
    let imported = tenants::import(&site(home).await?, &arguments.file, wish)
        .await
        .map_err(told)?;
    let (is, brought) = (
        if wish.only_look { "would be" } else { "is" },
        import_counts(&imported),
    );
    data(format_args!(
        "{} {is} in config.toml, with {brought}.",
        imported.id
    ));
    if wish.only_look {
        tell_content(&imported);
    }
    tell_global(&imported, wish.keep_global);
    tell_conversations(&imported);
    tell_left_out(&imported);
    if wish.only_look {
        data(format_args!("Nothing was changed."));
    }
    Ok(())
}

fn import_counts(imported: &Imported) -> String {
    let counts = [
        counted(imported.files.len(), "file", "files"),
        counted(imported.memories, "memory", "memories"),
        counted(imported.messages, "message", "messages"),
    ];
    counts.join(", ")
}

/// Files listed by a look at a package.
const MOST_FILES_SHOWN: usize = 200;

/// The table and the files. Their words come from the package, so they are made fit for a terminal.
fn tell_content(imported: &Imported) {
    data(format_args!("\n{}\n", imported.table.trim_end()));
    for (file, bytes) in imported.files.iter().take(MOST_FILES_SHOWN) {
        let name = file.to_string_lossy().replace(char::is_control, "\u{fffd}");
        data(format_args!("{bytes:>12} bytes  {name}"));
    }
    let more = imported.files.len().saturating_sub(MOST_FILES_SHOWN);
    if more > 0 {
        let all: u64 = imported.files.iter().map(|(_, bytes)| bytes).sum();
        data(format_args!(
            "and {}; {all} bytes in all",
            counted(more, "file more", "files more")
        ));
    }
    if !imported.files.is_empty() {
        data(format_args!(""));
    }
}

fn tell_global(imported: &Imported, keep_global: bool) {
    let (id, memories) = (&imported.id, counted(imported.global, "memory", "memories"));
    let (were, are, them) = match imported.global {
        0 => return,
        1 => ("was", "is", "it"),
        _ => ("were", "are", "them"),
    };
    if keep_global {
        data(format_args!(
            "{memories} of {id} came as global: every agent here finds {them}."
        ));
    } else {
        data(format_args!(
            "{memories} {were} global at home and {are} private to {id} here. `--global` lets every agent find {them}."
        ));
    }
}

fn tell_conversations(imported: &Imported) {
    if imported.messages > 0 {
        data(format_args!(
            "The messages, from {}, are kept for the next export. No place and no agent shows them.",
            counted(imported.places, "place", "places")
        ));
    }
    if imported.lines_of_gateway > 0 {
        data(format_args!(
            "left out of the conversations: {}.",
            counted(
                imported.lines_of_gateway,
                "line of the gateway",
                "lines of the gateway"
            )
        ));
    }
}

fn tell_left_out(imported: &Imported) {
    let id = &imported.id;
    if !imported.left_out.is_empty() {
        let keys = imported.left_out.join(", ");
        data(format_args!(
            "not taken over into [agents.{id}]: {keys}. Write there what fits this house."
        ));
    }
    if !imported.tightened.is_empty() {
        let limits = imported.tightened.join(", ");
        data(format_args!(
            "{id} has max_risk = \"look\", because a limit it had at home cannot be kept as it was: {limits}. Write your own limit in its place."
        ));
    }
}

pub(super) async fn archives(home: &Home, ArchiveVerb::List { json }: ArchiveVerb) -> Outcome {
    let archives = tenants::archives(home.path());
    if json {
        data_json(&archives)?;
        return Ok(());
    }
    if archives.is_empty() {
        note(format_args!("No agent was removed."));
        return Ok(());
    }
    let site = site(home).await?;
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["ARCHIVE", "ID", "HAS"]);
    for archive in archives {
        let uid = archive.uid;
        let rows = site
            .db
            .read(move |connection| tenants::rows_of(connection, uid))
            .await?;
        table.add_row([archive.name, archive.id.to_string(), rows_text(&rows)]);
    }
    data(format_args!("{}", table.trim_fmt()));
    Ok(())
}

fn rows_text(rows: &Rows) -> String {
    let memories = counted(rows.memories, "memory", "memories");
    let (messages, pins) = (
        counted(rows.messages, "message", "messages"),
        counted(rows.pins, "pin", "pins"),
    );
    format!("{memories}, {messages}, {pins}")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {many}")
    }
}
