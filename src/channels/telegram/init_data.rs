//! Who opened a Mini App: the text `initData`, which Telegram signs with the bot's token.
//! <https://core.telegram.org/bots/webapps#validating-data-received-via-the-mini-app>

use std::collections::BTreeMap;

use ring::hmac;
use serde::Deserialize;

use crate::domain::{PersonId, TelegramUserId};

/// A text counts for this long. The page sends it the moment it is opened.
pub(crate) const LASTS_MS: i64 = 5 * 60 * 1000;
/// How far Telegram's clock may be ahead of ours.
const MOST_AHEAD_MS: i64 = 60 * 1000;
const MOST_BYTES: usize = 8 * 1024;

/// A person whom Telegram vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) person: PersonId,
    pub(crate) name: String,
    /// The same for the same text, and for no other.
    pub(crate) hash: String,
    /// From then on the text does not count, in Unix milliseconds.
    pub(crate) until: i64,
}

/// Why a text does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOpened {
    /// Not in Telegram's form.
    Unreadable,
    /// Not signed with this bot's token.
    NotSigned,
    /// Signed too long ago, or in the future.
    TooOld,
}

#[derive(Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    is_bot: bool,
}

/// Checks the text. The signature comes first: nothing else in an unsigned text is looked at.
pub(crate) fn opened(text: &str, token: &str, now: i64) -> Result<Opened, NotOpened> {
    let mut fields = fields(text).ok_or(NotOpened::Unreadable)?;
    let hash = fields.remove("hash").ok_or(NotOpened::Unreadable)?;
    let signed = bytes_of(&hash).ok_or(NotOpened::Unreadable)?;
    hmac::verify(&key(token), checked(&fields).as_bytes(), &signed)
        .map_err(|_| NotOpened::NotSigned)?;
    let seconds = fields.get("auth_date").and_then(|date| date.parse().ok());
    let at = seconds.and_then(|seconds: i64| seconds.checked_mul(1000));
    let at = at.ok_or(NotOpened::Unreadable)?;
    if at > now.saturating_add(MOST_AHEAD_MS) || now >= at.saturating_add(LASTS_MS) {
        return Err(NotOpened::TooOld);
    }
    let user = fields.get("user").map(|user| serde_json::from_str(user));
    let user: User = user
        .and_then(Result::ok)
        .filter(|user: &User| user.id > 0 && !user.is_bot)
        .ok_or(NotOpened::Unreadable)?;
    Ok(Opened {
        person: PersonId::Telegram(TelegramUserId(user.id)),
        name: user.first_name,
        hash: hash.to_ascii_lowercase(),
        until: at.saturating_add(LASTS_MS).saturating_add(MOST_AHEAD_MS),
    })
}

/// The fields by name. None where a name is there twice: it would not be clear which one was signed.
fn fields(text: &str) -> Option<BTreeMap<String, String>> {
    if text.is_empty() || text.len() > MOST_BYTES || text.contains('#') {
        return None;
    }
    let address = reqwest::Url::parse(&format!("https://telegram.invalid/?{text}")).ok()?;
    let mut fields = BTreeMap::new();
    for (name, value) in address.query_pairs() {
        let is_new = fields
            .insert(name.into_owned(), value.into_owned())
            .is_none();
        is_new.then_some(())?;
    }
    Some(fields)
}

/// Every field but the hash, in the order of their names.
fn checked(fields: &BTreeMap<String, String>) -> String {
    let lines = fields.iter().map(|(name, value)| format!("{name}={value}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn key(token: &str) -> hmac::Key {
    let outer = hmac::Key::new(hmac::HMAC_SHA256, b"WebAppData");
    let secret = hmac::sign(&outer, token.as_bytes());
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref())
}

/// The bytes of a number in hexadecimal.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let is_hex = text.len() == 64 && text.bytes().all(|letter| letter.is_ascii_hexdigit());
    let pair = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    is_hex.then(|| (0..64).step_by(2).map(pair).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "123456:AA-fake_token";
    const SIGNED_AT: i64 = 1_700_000_000_000;
    /// Made by another program, by the rules of Telegram's page.
    const TEXT: &str = "query_id=AAHdF6IQAAAAAN0XohDhrOrc&user=%7B%22id%22%3A111%2C%22first_name%22%3A%22Alice%22%2C%22last_name%22%3A%22%22%2C%22username%22%3A%22alice%22%2C%22language_code%22%3A%22en%22%2C%22allows_write_to_pm%22%3Atrue%2C%22photo_url%22%3A%22https%3A%2F%2Ft.me%2Fi%2Fuserpic%2F320%2Fa.svg%22%7D&auth_date=1700000000&signature=c2ln&hash=9dce14a1f7fba3805a910e69b33dacea1dbc963d9599bf514297fa7c0d024c27";

    #[test]
    fn only_telegrams_own_words_count() {
        use NotOpened::*;
        let check = |text: &str, token: &str, now: i64, expected: Result<&str, NotOpened>| {
            let found = opened(text, token, now).map(|opened| opened.person.to_string());
            assert_eq!(found, expected.map(str::to_owned), "{now} {text}");
        };
        let alice = Ok("telegram:111");
        check(TEXT, TOKEN, SIGNED_AT, alice);
        check(TEXT, TOKEN, SIGNED_AT + LASTS_MS - 1, alice);
        check(TEXT, TOKEN, SIGNED_AT - MOST_AHEAD_MS, alice);
        check(TEXT, TOKEN, SIGNED_AT + LASTS_MS, Err(TooOld));
        check(TEXT, TOKEN, SIGNED_AT - MOST_AHEAD_MS - 1, Err(TooOld));
        check(TEXT, "123456:AA-other_token", SIGNED_AT, Err(NotSigned));
        let in_other_order: Vec<&str> = TEXT.split('&').rev().collect();
        check(&in_other_order.join("&"), TOKEN, SIGNED_AT, alice);
        for (from, to) in [
            ("%3A111%2C", "%3A112%2C"),
            ("1700000000", "1700000200"),
            ("signature=c2ln", "signature=c2lm"),
            ("&signature=c2ln", ""),
            ("query_id=", "query_ie="),
            ("hash=9d", "hash=9e"),
            ("&auth_date", "&more=1&auth_date"),
        ] {
            check(&TEXT.replace(from, to), TOKEN, SIGNED_AT, Err(NotSigned));
        }
        for broken in [
            "",
            "hash",
            "user=1",
            &TEXT.replace("&hash=9d", "&hash="),
            &TEXT.replace("&hash=9d", "&hash=zz"),
            &format!("{TEXT}&auth_date=1700000300"),
            &format!("{TEXT}#"),
            &format!("{TEXT}&a={}", "a".repeat(MOST_BYTES)),
        ] {
            check(broken, TOKEN, SIGNED_AT, Err(Unreadable));
        }
    }
}
