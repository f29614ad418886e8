//! The questions of `parlor agent add` in a terminal: one for each thing that was not given. Enter
//! alone leaves it out.

use std::io::{self, BufRead, IsTerminal};

use clap::Args;

use super::super::operator::{Operator, told};
use super::super::{Failure, note, question};
use crate::domain::AgentId;
use crate::home::Home;
use crate::operations::{AgentRequest, Refusal, RefusalKind, Reply, Request};

#[derive(Args, Clone)]
pub(in crate::cli) struct Add {
    /// Id that people type: a-z, 0-9 and hyphens. In a terminal, whatever is
    /// missing is asked for
    pub(super) id: Option<String>,
    /// Name that people see [default: the id with a capital letter]
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Emoji before the name
    #[arg(long, value_parser = emoji)]
    pub(super) emoji: Option<String>,
    /// What kind of creature the agent is, such as hedgehog
    #[arg(long)]
    pub(super) creature: Option<String>,
    /// The agent's manner in a few words, such as "warm, a little dry"
    #[arg(long)]
    pub(super) vibe: Option<String>,
    /// What the agent is like, in a sentence or more; becomes its SOUL.md
    #[arg(long, value_name = "TEXT")]
    pub(super) personality: Option<String>,
    /// Model, as provider/model [default: default_model of the config]
    #[arg(long)]
    pub(super) model: Option<String>,
    /// Skills with commas between them, "" for none [default: all of skills/]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(super) skills: Option<Vec<String>>,
    /// Place of its own, as /whoami shows it; may be given several times
    #[arg(long = "bind", value_name = "PLACE")]
    pub(super) bindings: Vec<String>,
}

/// A word would stand before the name and look like a part of it.
fn emoji(text: &str) -> Result<String, String> {
    match text.contains(|c: char| c.is_ascii_alphabetic()) {
        true => Err(format!("`{text}` is no emoji; words belong in --name")),
        false => Ok(text.to_owned()),
    }
}

/// Whether somebody can be asked.
pub(super) fn is_possible(json: bool) -> bool {
    io::stdin().is_terminal() && !json
}

/// Completes what the command line gave.
pub(super) async fn ask_for_the_rest(home: &Home, given: Add) -> Result<Add, Failure> {
    let given = match given.id {
        Some(_) => given,
        None => ask_for_id(home, given).await?,
    };
    let id = given.id.clone().unwrap_or_default();
    // The id is checked before the person is asked for the rest.
    may_add(home, &id).await?.map_err(told)?;
    let name = given.name.clone().unwrap_or_else(|| capitalized(&id));
    let mut given = Add {
        name: ask(&format!("Name for people [{name}]: "), given.name)?,
        emoji: ask("Emoji before the name, if any: ", given.emoji)?
            .map(|text| emoji(&text).map_err(Failure::WrongUse))
            .transpose()?,
        personality: ask(
            &format!("What is {name} like, in a sentence? "),
            given.personality,
        )?,
        model: ask("Model as provider/model [the default model]: ", given.model)?,
        ..given
    };
    if given.bindings.is_empty() {
        given.bindings.extend(ask(WHICH_PLACE, None)?);
    }
    Ok(given)
}

const WHICH_PLACE: &str = "A place of its own, as /whoami in a chat shows it, if any: ";

/// Asks again until an id can be used. The end of the input ends the asking.
async fn ask_for_id(home: &Home, given: Add) -> Result<Add, Failure> {
    note(format_args!(
        "A new agent. Enter alone leaves an answer out."
    ));
    loop {
        question(format_args!("Id, with a-z, 0-9 and hyphens: "));
        let given = Add {
            id: Some(read_line()?.ok_or_else(nothing_added)?),
            ..given.clone()
        }
        .with_plain_id();
        let id = given.id.clone().unwrap_or_default();
        match may_add(home, &id).await? {
            Ok(_) => return Ok(given),
            Err(refusal) if refusal.kind == RefusalKind::Failed => return Err(told(refusal)),
            Err(refusal) => note(format_args!("{}", refusal.text)),
        }
    }
}

async fn may_add(home: &Home, id: &str) -> Result<Result<Reply, Refusal>, Failure> {
    let id = id.to_owned();
    let request = Request::Agent(AgentRequest::MayAdd { id });
    Operator::open(home, request.shares_home())
        .await?
        .try_ask(request)
        .await
}

fn ask(text: &str, given: Option<String>) -> Result<Option<String>, Failure> {
    if given.is_some() {
        return Ok(given);
    }
    question(format_args!("{text}"));
    let line = read_line()?.ok_or_else(nothing_added)?;
    Ok(Some(line).filter(|line| !line.is_empty()))
}

fn nothing_added() -> Failure {
    Failure::Failed("nothing was added".into())
}

/// Nothing at the end of the input.
pub(super) fn read_line() -> Result<Option<String>, Failure> {
    let mut line = String::new();
    let is_end = io::stdin().lock().read_line(&mut line)? == 0;
    if is_end {
        // The cursor is still behind the question.
        note(format_args!(""));
    }
    Ok((!is_end).then(|| line.trim().to_owned()))
}

fn capitalized(id: &str) -> String {
    let mut letters = id.chars();
    let first = letters.next().map(|first| first.to_uppercase());
    first.into_iter().flatten().chain(letters).collect()
}

impl Add {
    /// `Night Desk` becomes the id `night-desk` with the name "Night Desk".
    pub(super) fn with_plain_id(self) -> Self {
        let plain = self.id.as_deref().and_then(plain_id);
        match plain {
            Some(id) => Add {
                name: self.name.or(self.id),
                id: Some(id),
                ..self
            },
            None => self,
        }
    }
}

/// None for a word that is an id already, or that no id can be made of.
fn plain_id(word: &str) -> Option<String> {
    if AgentId::parse(word).is_ok() {
        return None;
    }
    let words: Vec<String> = word
        .split(|c: char| c.is_whitespace() || c == '_')
        .filter(|part| !part.is_empty())
        .map(str::to_lowercase)
        .collect();
    let id = words.join("-");
    AgentId::parse(&id).is_ok().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_of_a_name() {
        let check = |word, expected: Option<&str>| assert_eq!(plain_id(word).as_deref(), expected);
        check("dot", None);
        check("Dot", Some("dot"));
        check("Night Desk", Some("night-desk"));
        check("night_desk", Some("night-desk"));
        check("Ärger", None);
        check("", None);
        check("../etc", None);
    }
}
