//! Keys to the HTTP door: API tokens for programs, sign-ins of browsers, and links that become a
//! sign-in.
//!
//! A running gateway holds all keys in memory ([`Entrance`]), so that the head of a call is enough
//! to know its caller, and keeps links nowhere else.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use rusqlite::Transaction;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::{Operations, Refusal, RefusalKind};
use crate::clock::now_ms;
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::http_keys::{self, Digest, Key, Kind, NewKey, Scope};
use crate::storage::Durability;

/// A link becomes a sign-in within this time.
pub(crate) const LINK_LASTS: Duration = Duration::from_secs(60);
/// Between two looks at the time of a key.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// A browser signs in anew after this time.
const SIGN_IN_LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Links at once. A further link ends the oldest.
const MOST_LINKS: usize = 16;
const MOST_TOKENS: u32 = 100;
/// A further sign-in ends the oldest.
const MOST_SIGN_INS: u32 = 100;
const LONGEST_NAME: usize = 64;
/// How exactly the last use of a key is known.
const USE_NOTED_EVERY_MS: i64 = 10 * 60 * 1000;
/// A listener is up within this time after it was wanted.
const UP_WITHIN: Duration = Duration::from_secs(5);
/// Begins each token, so that people and scanners for lost secrets know what it is.
const PREFIX: &str = "parlor_";

/// A wish about keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyRequest {
    Create {
        name: String,
        scope: Scope,
        /// In milliseconds; without it, until revoked.
        lasts: Option<i64>,
    },
    List,
    /// Ends a token by its name, or any key by its number.
    Revoke {
        which: String,
    },
    /// A link that becomes a sign-in.
    Link,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyReply {
    /// The only time that the secret is told.
    Created {
        key: Key,
        secret: String,
    },
    Listed(Vec<Key>),
    Revoked(Key),
    Link {
        url: String,
    },
}

pub(super) async fn run(
    operations: &Operations,
    actor: &Actor,
    request: KeyRequest,
) -> Result<KeyReply, Refusal> {
    match request {
        KeyRequest::Create { name, scope, lasts } => {
            let (key, secret) = create(operations, actor, name, scope, lasts).await?;
            Ok(KeyReply::Created { key, secret })
        }
        KeyRequest::List => list(operations).await.map(KeyReply::Listed),
        KeyRequest::Revoke { which } => revoke(operations, actor, which)
            .await
            .map(KeyReply::Revoked),
        KeyRequest::Link => link(operations, actor).await,
    }
}

/// Makes a token, and returns it with its secret.
pub(crate) async fn create(
    operations: &Operations,
    actor: &Actor,
    name: String,
    scope: Scope,
    lasts: Option<i64>,
) -> Result<(Key, String), Refusal> {
    check_name(&name)?;
    let secret = format!("{PREFIX}{}", random());
    let new = NewKey {
        kind: Kind::Token,
        digest: digest_of(&secret),
        name,
        person: None,
        scope,
        created_by: words(actor),
        expires_at: lasts.map(|lasts| now_ms().saturating_add(lasts)),
    };
    let by = actor.clone();
    let written = operations.db.write(move |tx| {
        if http_keys::all(tx)?
            .iter()
            .any(|(_, key)| key.kind == Kind::Token && key.name == new.name)
        {
            return Ok(Err(taken(&new.name)));
        }
        if http_keys::count(tx, Kind::Token)? >= MOST_TOKENS {
            return Ok(Err(too_many()));
        }
        let key = http_keys::add(tx, &new, now_ms())?;
        note(tx, &by, Action::TokenCreate, &key)?;
        Ok(Ok(key))
    });
    let key = written.await??;
    operations.keys_changed().await?;
    Ok((key, secret))
}

pub(crate) async fn list(operations: &Operations) -> Result<Vec<Key>, Refusal> {
    let keys = operations.db.read(http_keys::all).await?;
    Ok(keys.into_iter().map(|(_, key)| key).collect())
}

pub(crate) async fn revoke(
    operations: &Operations,
    actor: &Actor,
    which: String,
) -> Result<Key, Refusal> {
    let (by, word) = (actor.clone(), which.clone());
    let written = operations.db.write(move |tx| {
        let Some(key) = http_keys::find(tx, &word)? else {
            return Ok(None);
        };
        http_keys::remove(tx, key.id)?;
        note(tx, &by, Action::TokenRevoke, &key)?;
        Ok(Some(key))
    });
    let key = written.await?.ok_or_else(|| unknown(&which))?;
    operations.keys_changed().await?;
    Ok(key)
}

/// Turns a used link into a sign-in, whose secret is the browser's cookie.
pub(crate) async fn sign_in(
    operations: &Operations,
    visitor: &Visitor,
) -> Result<(Key, String), Refusal> {
    let secret = random();
    let new = NewKey {
        kind: Kind::SignIn,
        digest: digest_of(&secret),
        name: visitor.name.clone(),
        person: visitor.person.clone(),
        scope: visitor.scope,
        created_by: visitor.name.clone(),
        expires_at: Some(now_ms().saturating_add(millis(SIGN_IN_LASTS))),
    };
    let by = match visitor.person.as_deref().map(str::parse) {
        Some(Ok(id)) => Actor::Person {
            id,
            name: visitor.name.clone(),
        },
        _ => Actor::Dashboard {
            name: visitor.name.clone(),
        },
    };
    let written = operations.db.write(move |tx| {
        let key = http_keys::add(tx, &new, now_ms())?;
        http_keys::keep_newest(tx, Kind::SignIn, MOST_SIGN_INS)?;
        note(tx, &by, Action::SignIn, &key)?;
        Ok(key)
    });
    let key = written.await?;
    operations.keys_changed().await?;
    Ok((key, secret))
}

/// Has the gateway open its door, and makes a link through it.
async fn link(operations: &Operations, actor: &Actor) -> Result<KeyReply, Refusal> {
    let Some(live) = &operations.live else {
        return Err(Refusal::failed(format!(
            "no gateway runs on {}, so there is no dashboard",
            operations.home.display()
        ))
        .hint("`parlor run` starts it"));
    };
    let base = live.entrance.base().await.ok_or_else(|| {
        Refusal::failed("the dashboard cannot be reached: nothing listens for it")
            .hint("the log of the gateway says why; [admin] in config.toml names the address")
    })?;
    let base = base?;
    let visitor = Visitor {
        name: words(actor),
        person: None,
        scope: Scope::Admin,
    };
    let code = live.entrance.make_link(visitor);
    Ok(KeyReply::Link {
        url: format!("{base}/enter?code={code}"),
    })
}

/// The one who follows a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Visitor {
    pub(crate) name: String,
    pub(crate) person: Option<String>,
    pub(crate) scope: Scope,
}

/// The HTTP door of a running gateway: its keys, its open links, and its address. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Entrance(Arc<Doorway>);

#[derive(Default)]
struct Doorway {
    keys: RwLock<HashMap<Digest, Key>>,
    links: Mutex<Vec<Link>>,
    site: watch::Sender<Site>,
    is_wanted: watch::Sender<bool>,
    /// Told whenever the keys are replaced.
    replaced: watch::Sender<()>,
}

/// Where the door is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Site {
    #[default]
    Closed,
    /// Nothing can be listened on, for this reason.
    Off(String),
    /// The beginning of each address: `http://127.0.0.1:7717`.
    At(String),
    /// Other machines reach the listener in plain HTTP, so it only serves watchers.
    Unsafe(SocketAddr),
}

struct Link {
    digest: Digest,
    visitor: Visitor,
    until: Instant,
}

impl Entrance {
    /// Has a listener opened on this machine, also where the config names none.
    pub(crate) fn want(&self) {
        self.0.is_wanted.send_replace(true);
    }

    pub(crate) fn wishes(&self) -> watch::Receiver<bool> {
        self.0.is_wanted.subscribe()
    }

    /// Told by the listener.
    pub(crate) fn moved_to(&self, site: Site) {
        self.0.site.send_replace(site);
    }

    /// The beginning of each address, while the listener is up.
    pub(crate) fn address(&self) -> Option<String> {
        match &*self.0.site.borrow() {
            Site::At(base) => Some(base.clone()),
            Site::Unsafe(_) | Site::Off(_) | Site::Closed => None,
        }
    }

    /// Why the listener cannot come up.
    pub(crate) fn trouble(&self) -> Option<String> {
        match &*self.0.site.borrow() {
            Site::Off(reason) => Some(reason.clone()),
            Site::At(_) | Site::Unsafe(_) | Site::Closed => None,
        }
    }

    /// The beginning of each address, once the listener is up. None where it does not come up.
    pub(crate) async fn base(&self) -> Option<Result<String, Refusal>> {
        self.want();
        let mut site = self.0.site.subscribe();
        let up = site.wait_for(|site| *site != Site::Closed);
        let up = timeout(UP_WITHIN, up).await.ok()?.ok()?;
        Some(match &*up {
            Site::Unsafe(address) => Err(Refusal::failed(format!(
                "other machines reach {address} in plain HTTP, so there is no dashboard there"
            ))
            .hint("listen on 127.0.0.1, or put a web server with TLS in front and set `behind_proxy` under [admin]")),
            Site::Off(reason) => Err(Refusal::failed(format!(
                "the dashboard cannot be reached: {reason}"
            ))
            .hint("stop the program that has the address, or set another `listen` under [admin] in config.toml")),
            Site::At(base) => Ok(base.clone()),
            Site::Closed => return None,
        })
    }

    /// The key with this secret, if it counts now.
    pub(crate) fn find(&self, secret: &str, now: i64) -> Option<Key> {
        let keys = self.0.keys.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.get(&digest_of(secret))?;
        (!key.is_over(now)).then(|| key.clone())
    }

    /// Whether the key with this number still counts.
    pub(crate) fn has(&self, id: i64) -> bool {
        let keys = self.0.keys.read().unwrap_or_else(PoisonError::into_inner);
        let now = now_ms();
        keys.values().any(|key| key.id == id && !key.is_over(now))
    }

    /// Replaces all keys.
    pub(crate) fn set(&self, keys: Vec<(Digest, Key)>) {
        let mut known = self.0.keys.write().unwrap_or_else(PoisonError::into_inner);
        *known = keys.into_iter().collect();
        drop(known);
        self.0.replaced.send_replace(());
    }

    /// Returns once the key with this number does not count any more.
    pub(crate) async fn ended(&self, id: i64) {
        let mut replaced = self.0.replaced.subscribe();
        while self.has(id) {
            // A key also ends by its own time, which nobody tells.
            drop(timeout(LOOK_AGAIN, replaced.changed()).await);
        }
    }

    /// Whether a use of the key is worth a row now.
    fn is_news(&self, id: i64, now: i64) -> bool {
        let mut keys = self.0.keys.write().unwrap_or_else(PoisonError::into_inner);
        let Some(key) = keys.values_mut().find(|key| key.id == id) else {
            return false;
        };
        let is_news = key
            .last_used_at
            .is_none_or(|last| now - last >= USE_NOTED_EVERY_MS);
        if is_news {
            key.last_used_at = Some(now);
        }
        is_news
    }

    fn links(&self) -> MutexGuard<'_, Vec<Link>> {
        self.0.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The code of a link.
    pub(crate) fn make_link(&self, visitor: Visitor) -> String {
        let code = random();
        let mut links = self.links();
        links.retain(|link| link.until > Instant::now());
        if links.len() >= MOST_LINKS {
            links.remove(0);
        }
        links.push(Link {
            digest: digest_of(&code),
            visitor,
            until: Instant::now() + LINK_LASTS,
        });
        code
    }

    /// Uses a link up.
    pub(crate) fn take_link(&self, code: &str) -> Option<Visitor> {
        let mut links = self.links();
        let wanted = digest_of(code);
        let at = links.iter().position(|link| link.digest == wanted)?;
        let link = links.remove(at);
        (link.until > Instant::now()).then_some(link.visitor)
    }
}

impl Operations {
    /// Has the running gateway know the keys of now.
    pub(crate) async fn keys_changed(&self) -> Result<(), Refusal> {
        if let Some(live) = &self.live {
            live.entrance.set(self.db.read(http_keys::all).await?);
        }
        Ok(())
    }

    pub(crate) fn entrance(&self) -> Option<&Entrance> {
        self.live.as_ref().map(|live| &live.entrance)
    }

    /// Writes down that a key was used, now and then.
    pub(crate) async fn key_used(&self, key: &Key) {
        let (now, id) = (now_ms(), key.id);
        let is_news = self
            .entrance()
            .is_some_and(|entrance| entrance.is_news(id, now));
        if is_news {
            let write = move |tx: &Transaction<'_>| http_keys::used(tx, id, now);
            if let Err(error) = self.db.write_as(Durability::Kill, write).await {
                tracing::debug!("the use of a key was not written down: {error}");
            }
        }
    }
}

/// A secret of 256 random bits.
fn random() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn digest_of(secret: &str) -> Digest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    bytes
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// The actor in a word or two.
fn words(actor: &Actor) -> String {
    match actor {
        Actor::Person { name, .. } | Actor::Dashboard { name } | Actor::Token { name } => {
            name.clone()
        }
        Actor::Cli { login } => login.clone(),
        Actor::Config => "config".to_owned(),
        Actor::Gateway => "gateway".to_owned(),
    }
}

fn note(tx: &Transaction<'_>, by: &Actor, action: Action, key: &Key) -> rusqlite::Result<()> {
    let change = Change::new(action).about(&key.name).to(key.scope.as_str());
    audit::note(tx, by, &change, now_ms())
}

/// Names are typed, and told apart from numbers.
fn check_name(name: &str) -> Result<(), Refusal> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let is_number = name.chars().all(|letter| letter.is_ascii_digit());
    if name.is_empty() || name.len() > LONGEST_NAME || is_number || !name.chars().all(is_plain) {
        return Err(Refusal::wrong_use(format!(
            "`{name}` cannot be the name of a token: it has 1 to {LONGEST_NAME} letters, digits, `-`, `_` and `.`, and not digits alone"
        )));
    }
    Ok(())
}

fn taken(name: &str) -> Refusal {
    Refusal {
        kind: RefusalKind::Conflict,
        ..Refusal::failed(format!("there is a token {name} already"))
    }
    .hint(format!("`parlor token revoke {name}` ends it"))
}

fn too_many() -> Refusal {
    Refusal {
        kind: RefusalKind::Conflict,
        ..Refusal::failed(format!("there are {MOST_TOKENS} tokens already"))
    }
    .hint("`parlor token list` shows them, `parlor token revoke` ends one")
}

fn unknown(which: &str) -> Refusal {
    Refusal::wrong_use(format!("there is no token or sign-in {which}"))
        .hint("`parlor token list` shows names and numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor() -> Visitor {
        Visitor {
            name: "ada".to_owned(),
            person: None,
            scope: Scope::Admin,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_works_once_and_for_a_minute() {
        let entrance = Entrance::default();
        let code = entrance.make_link(visitor());
        assert_eq!(entrance.take_link("something else"), None);
        assert_eq!(entrance.take_link(&code), Some(visitor()));
        assert_eq!(entrance.take_link(&code), None, "used up");
        let late = entrance.make_link(visitor());
        tokio::time::advance(LINK_LASTS).await;
        assert_eq!(entrance.take_link(&late), None, "over");
    }

    #[tokio::test(start_paused = true)]
    async fn a_further_link_ends_the_oldest() {
        let entrance = Entrance::default();
        let codes: Vec<String> = (0..=MOST_LINKS)
            .map(|_| entrance.make_link(visitor()))
            .collect();
        assert_eq!(entrance.take_link(&codes[0]), None);
        assert_eq!(entrance.take_link(&codes[1]), Some(visitor()));
    }
}
