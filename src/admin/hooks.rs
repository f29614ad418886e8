//! `POST /hooks/<name>`: calls of other programs. Each hook has its own token or signature, so the
//! token of `[admin]` is not asked for.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use dashmap::DashMap;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use ring::{digest, hmac};

use super::state::AdminState;
use crate::clock::now_ms;
use crate::config::{Hook, HookSignature};
use crate::gateway::{HookTaken, Monitor};
use crate::signing::same_text;

/// A signature with a time is good for so long.
const STRIPE_TOLERANCE_MS: i64 = 5 * 60 * 1000;
/// The longest key of a call.
const MAX_KEY_CHARS: usize = 200;

#[derive(Clone)]
struct Desk {
    monitor: Monitor,
    /// Calls in a minute, by hook and limit.
    paces: Arc<DashMap<(String, u32), DefaultDirectRateLimiter>>,
}

pub(super) fn router(monitor: Monitor) -> Router<AdminState> {
    let desk = Desk {
        monitor,
        paces: Arc::default(),
    };
    Router::new().route(
        "/hooks/{name}",
        post(move |name, headers, body| receive(desk.clone(), name, headers, body)),
    )
}

async fn receive(desk: Desk, Path(name): Path<String>, headers: HeaderMap, body: Body) -> Response {
    // A caller without the token does not learn which hooks there are.
    let Some(hook) = desk
        .monitor
        .hook(&name)
        .filter(|hook| !hook.token.expose().is_empty())
    else {
        return told(StatusCode::UNAUTHORIZED, UNKNOWN);
    };
    let most = usize::try_from(hook.max_kb).unwrap_or(0) * 1024;
    let Ok(body) = to_bytes(body, most).await else {
        return told(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE);
    };
    if !is_proven(&hook, &headers, &body, now_ms()) {
        return told(StatusCode::UNAUTHORIZED, UNKNOWN);
    }
    if !desk.has_room(&hook) {
        let headers = [(header::RETRY_AFTER, "60")];
        return (StatusCode::TOO_MANY_REQUESTS, headers, TOO_MANY).into_response();
    }
    let Ok(text) = std::str::from_utf8(&body) else {
        return told(StatusCode::BAD_REQUEST, NOT_TEXT);
    };
    match desk
        .monitor
        .take_call(&hook, &key(&headers, &body), text)
        .await
    {
        Ok(HookTaken::Queued(id)) => told(
            StatusCode::ACCEPTED,
            &format!("{{\"accepted\":true,\"ref\":{id}}}\n"),
        ),
        Ok(HookTaken::Known) => told(StatusCode::OK, "{\"accepted\":false,\"known\":true}\n"),
        Ok(HookTaken::Refused(why)) => told(StatusCode::SERVICE_UNAVAILABLE, &format!("{why}\n")),
        Err(error) => {
            tracing::warn!(hook = %hook.name, "a call could not be stored: {error}");
            told(StatusCode::SERVICE_UNAVAILABLE, NOT_STORED)
        }
    }
}

impl Desk {
    fn has_room(&self, hook: &Hook) -> bool {
        let Some(limit) = NonZeroU32::new(hook.per_minute) else {
            return true;
        };
        let pace = self
            .paces
            .entry((hook.name.to_string(), hook.per_minute))
            .or_insert_with(|| RateLimiter::direct(Quota::per_minute(limit)));
        pace.check().is_ok()
    }
}

/// Whether the caller knows the token.
fn is_proven(hook: &Hook, headers: &HeaderMap, body: &[u8], now: i64) -> bool {
    let token = hook.token.expose();
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match hook.signature {
        HookSignature::Token => {
            let bearer = text("authorization").and_then(|value| {
                let (scheme, token) = value.split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
            });
            let shown = bearer.or_else(|| text("x-parlor-token"));
            shown.is_some_and(|shown| same_text(shown, token))
        }
        HookSignature::Github => {
            let shown = text("x-hub-signature-256").and_then(|value| value.strip_prefix("sha256="));
            shown.is_some_and(|shown| is_tag(token, body, shown))
        }
        HookSignature::Stripe => {
            text("stripe-signature").is_some_and(|shown| is_of_stripe(token, body, shown, now))
        }
    }
}

/// `t=1700000000,v1=…`, perhaps with several `v1`.
fn is_of_stripe(token: &str, body: &[u8], shown: &str, now: i64) -> bool {
    let parts = || {
        shown
            .split(',')
            .filter_map(|part| part.trim().split_once('='))
    };
    let Some(at) = parts().find(|(name, _)| *name == "t").map(|(_, at)| at) else {
        return false;
    };
    let Some(seconds) = at.parse::<i64>().ok() else {
        return false;
    };
    let age = now.saturating_sub(seconds.saturating_mul(1000));
    if age.saturating_abs() > STRIPE_TOLERANCE_MS {
        return false;
    }
    let signed = [at.as_bytes(), b".", body].concat();
    parts()
        .filter(|(name, _)| *name == "v1")
        .any(|(_, tag)| is_tag(token, &signed, tag))
}

fn is_tag(token: &str, signed: &[u8], hex: &str) -> bool {
    let Some(tag) = bytes(hex) else {
        return false;
    };
    let key = hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
    hmac::verify(&key, signed, &tag).is_ok()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let is_hex = hex.len().is_multiple_of(2) && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then_some(())?;
    let pairs = (0..hex.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok())
        .collect()
}

/// The name of a call: the caller's key, else the number of GitHub's delivery or of Stripe's event,
/// else none that comes twice.
fn key(headers: &HeaderMap, body: &[u8]) -> String {
    let named = ["idempotency-key", "x-github-delivery"]
        .iter()
        .find_map(|name| {
            let value = headers.get(*name)?.to_str().ok()?;
            Some(value.to_owned())
        });
    let event = || {
        headers.get("stripe-signature")?;
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        body["id"].as_str().map(str::to_owned)
    };
    match named.or_else(event).filter(|key| !key.is_empty()) {
        // A long key stands for itself by its digest.
        Some(key) if key.chars().count() > MAX_KEY_CHARS => {
            let digest = digest::digest(&digest::SHA256, key.as_bytes());
            digest
                .as_ref()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        }
        Some(key) => key,
        None => uuid::Uuid::now_v7().to_string(),
    }
}

fn told(status: StatusCode, text: &str) -> Response {
    (status, text.to_owned()).into_response()
}

const UNKNOWN: &str = "There is no such hook, or the token or signature is wrong.\n";
const TOO_LARGE: &str = "The body is too large for this hook.\n";
const TOO_MANY: &str = "Too many calls of this hook. Try again in a minute.\n";
const NOT_TEXT: &str = "The body is not text.\n";
const NOT_STORED: &str = "The call could not be stored. Try again.\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;
    use crate::domain::Role;
    use crate::jobs::JobContext;

    fn hook(signature: HookSignature) -> Hook {
        Hook {
            name: "builds".parse().unwrap(),
            agent: None,
            prompt: "{{body}}".into(),
            place: None,
            context: JobContext::Own,
            token: Secret::new("It's a Secret to Everybody"),
            signature,
            role: Role::Member,
            per_minute: 30,
            max_kb: 256,
        }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        headers
    }

    /// The example of GitHub's documentation.
    #[test]
    fn github_signs_the_body() {
        let good = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let check = |shown: &str, body: &[u8], expected| {
            let headers = headers(&[("x-hub-signature-256", shown)]);
            let hook = hook(HookSignature::Github);
            assert_eq!(is_proven(&hook, &headers, body, 0), expected, "{shown}");
        };
        check(good, b"Hello, World!", true);
        check(good, b"Hello, World?", false);
        check("sha256=75", b"Hello, World!", false);
        check("sha1=757107", b"Hello, World!", false);
        check("", b"Hello, World!", false);
    }

    #[test]
    fn stripe_signs_time_and_body() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"It's a Secret to Everybody");
        let tag = hmac::sign(&key, b"1700000000.{}");
        let tag: String = tag
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let check = |shown: &str, now, expected| {
            let headers = headers(&[("stripe-signature", shown)]);
            let hook = hook(HookSignature::Stripe);
            assert_eq!(is_proven(&hook, &headers, b"{}", now), expected, "{shown}");
        };
        let now = 1_700_000_000_000;
        check(&format!("t=1700000000,v1={tag}"), now, true);
        check(
            &format!("t=1700000000,v1=00,v1={tag},v0=1"),
            now + 200_000,
            true,
        );
        check(&format!("t=1700000000,v1={tag}"), now + 400_000, false);
        check(&format!("t=1700000001,v1={tag}"), now, false);
        check(&format!("v1={tag}"), now, false);
    }

    #[test]
    fn a_token_is_sent_as_it_is() {
        let check = |pairs: &[(&'static str, &str)], expected| {
            let hook = hook(HookSignature::Token);
            assert_eq!(
                is_proven(&hook, &headers(pairs), b"", 0),
                expected,
                "{pairs:?}"
            );
        };
        check(
            &[("authorization", "Bearer It's a Secret to Everybody")],
            true,
        );
        check(&[("x-parlor-token", "It's a Secret to Everybody")], true);
        check(&[("authorization", "Bearer another")], false);
        check(
            &[("authorization", "Basic It's a Secret to Everybody")],
            false,
        );
        check(&[], false);
    }

    #[test]
    fn a_call_is_named_by_its_key() {
        assert_eq!(key(&headers(&[("idempotency-key", "a1")]), b""), "a1");
        assert_eq!(key(&headers(&[("x-github-delivery", "d-2")]), b""), "d-2");
        assert_eq!(
            key(
                &headers(&[("stripe-signature", "t=1")]),
                br#"{"id":"evt_1"}"#
            ),
            "evt_1"
        );
        assert_eq!(
            key(&headers(&[("idempotency-key", &"x".repeat(300))]), b"").len(),
            64
        );
        assert_ne!(key(&headers(&[]), b""), key(&headers(&[]), b""));
    }
}
