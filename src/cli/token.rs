//! `parlor token …`: keys for programs that call the HTTP API, and the browsers that are signed in.

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::json;

use super::json::{moment, time};
use super::operator::{self, odd_reply};
use super::table::{Column, table};
use super::{Failure, Outcome, data, data_json, note, print};
use crate::clock::now_ms;
use crate::home::Home;
use crate::operations::http_keys::{KeyReply, KeyRequest};
use crate::operations::{Reply, Request};
use crate::records::http_keys::{Key, Kind, Scope};

/// Without a verb, keys are listed.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// List tokens, and browsers that are signed in
    #[command(visible_alias = "ls")]
    List,
    /// Make a token and print it, this once
    #[command(visible_alias = "add")]
    Create {
        /// Name of the token, such as the program that will use it
        name: String,
        /// What it may do: read (look), operate (switch, stop, retry, let
        /// people in) or admin (change agents, config, roles and tokens)
        #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
        scope: ScopeWord,
        /// When it ends, such as 12h or 90d [default: when it is revoked]
        #[arg(long, value_name = "TIME", value_parser = while_of)]
        expires: Option<i64>,
    },
    /// End a token by its name, or a token or sign-in by its number
    #[command(visible_alias = "rm")]
    Revoke {
        /// Name or number that `parlor token` shows
        #[arg(value_name = "NAME|NUMBER")]
        which: String,
    },
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum ScopeWord {
    #[default]
    Read,
    Operate,
    Admin,
}

impl From<ScopeWord> for Scope {
    fn from(word: ScopeWord) -> Self {
        match word {
            ScopeWord::Read => Scope::Read,
            ScopeWord::Operate => Scope::Operate,
            ScopeWord::Admin => Scope::Admin,
        }
    }
}

pub(super) async fn run(home: Home, Arguments { verb, json }: Arguments) -> Outcome {
    let request = match verb.unwrap_or(Verb::List) {
        Verb::List => KeyRequest::List,
        Verb::Create {
            name,
            scope,
            expires,
        } => KeyRequest::Create {
            name,
            scope: scope.into(),
            lasts: expires,
        },
        Verb::Revoke { which } => KeyRequest::Revoke { which },
    };
    let Reply::Key(reply) = operator::ask(&home, Request::Key(request)).await? else {
        return Err(odd_reply());
    };
    match reply {
        KeyReply::Created { key, secret } => created(&key, &secret, json),
        KeyReply::Listed(keys) => list(&keys, json),
        KeyReply::Revoked(key) => print::result(
            json,
            &json!({ "revoked": key.id, "name": key.name }),
            format_args!("{}", revoked(&key)),
        ),
        KeyReply::Link { .. } => Err(odd_reply()),
    }
}

/// A key for programs.
#[derive(Serialize)]
struct Listed<'a> {
    id: i64,
    kind: Kind,
    name: &'a str,
    scope: Scope,
    created_at: String,
    created_by: &'a str,
    expires_at: Option<String>,
    last_used_at: Option<String>,
}

impl<'a> Listed<'a> {
    fn of(key: &'a Key) -> Self {
        Listed {
            id: key.id,
            kind: key.kind,
            name: &key.name,
            scope: key.scope,
            created_at: time(key.created_at),
            created_by: &key.created_by,
            expires_at: key.expires_at.map(time),
            last_used_at: key.last_used_at.map(time),
        }
    }
}

/// The token alone goes to stdout, so that `$(parlor token create …)` is the token.
fn created(key: &Key, secret: &str, json: bool) -> Outcome {
    if json {
        let mut value = serde_json::to_value(Listed::of(key))?;
        value["token"] = secret.into();
        return data_json(&value);
    }
    data(format_args!("{secret}"));
    note(format_args!(
        "This is the only time that it is shown. `parlor token revoke {}` ends it.",
        key.name
    ));
    Ok(())
}

fn list(keys: &[Key], json: bool) -> Outcome {
    if json {
        let listed: Vec<_> = keys.iter().map(Listed::of).collect();
        return data_json(&listed);
    }
    if keys.is_empty() {
        note(format_args!(
            "No tokens, and no browser is signed in. `parlor token create` makes a token, `parlor dashboard` signs a browser in."
        ));
        return Ok(());
    }
    let columns = [
        Column::Number("ID"),
        Column::Whole("KIND"),
        Column::Words("NAME"),
        Column::Whole("SCOPE"),
        Column::Words("MADE"),
        Column::Words("USED"),
        Column::Words("ENDS"),
    ];
    let rows = keys.iter().map(|key| {
        [
            key.id.to_string(),
            kind(key.kind).to_owned(),
            key.name.clone(),
            key.scope.as_str().to_owned(),
            moment(key.created_at),
            key.last_used_at.map_or_else(|| "never".to_owned(), moment),
            ends(key),
        ]
    });
    data(format_args!("{}", table(columns, rows.collect())));
    Ok(())
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Token => "token",
        Kind::SignIn => "sign-in",
    }
}

fn ends(key: &Key) -> String {
    match key.expires_at {
        None => String::new(),
        Some(_) if key.is_over(now_ms()) => "over".to_owned(),
        Some(end) => moment(end),
    }
}

fn revoked(key: &Key) -> String {
    match key.kind {
        Kind::Token => format!("The token {} does not count any more.", key.name),
        Kind::SignIn => format!("The browser of {} is signed out.", key.name),
    }
}

/// A while in milliseconds.
fn while_of(text: &str) -> Result<i64, String> {
    let units = [('m', 60_000), ('h', 3_600_000), ('d', 86_400_000)];
    let found = units.into_iter().find_map(|(unit, ms): (char, i64)| {
        let number: i64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(ms).filter(|lasts| *lasts > 0)
    });
    found.ok_or_else(|| "write a while such as 30m, 12h or 90d".to_owned())
}

/// For `parlor dashboard`.
pub(super) async fn link(home: &Home) -> Result<String, Failure> {
    match operator::ask(home, Request::Key(KeyRequest::Link)).await? {
        Reply::Key(KeyReply::Link { url }) => Ok(url),
        _ => Err(odd_reply()),
    }
}
