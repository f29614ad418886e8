//! The cookie of a browser that has signed in.
//!
//! Cookies of a machine are shared by all its ports, so the name has the port. Behind a proxy with
//! TLS it has the prefix `__Host-`, which browsers take from this very site only.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};

use super::hosts::host;

/// The cookie's value among those of a call.
pub(super) fn shown(head: &Parts) -> Option<&str> {
    let wanted = [name(head, true), name(head, false)];
    let lines = head.headers.get_all(header::COOKIE).into_iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| wanted.iter().any(|wanted| wanted == name))
        .map(|(_, value)| value)
        .filter(|value| !value.is_empty())
}

/// The header with which a browser keeps the secret until its end.
pub(in crate::admin) fn kept(
    head: &Parts,
    secret: &str,
    seconds: i64,
    is_encrypted: bool,
) -> HeaderValue {
    line(head, secret, seconds, is_encrypted)
}

/// The header with which a browser drops it.
pub(in crate::admin) fn taken_back(head: &Parts, is_encrypted: bool) -> HeaderValue {
    line(head, "", 0, is_encrypted)
}

fn line(head: &Parts, value: &str, seconds: i64, is_encrypted: bool) -> HeaderValue {
    let secure = if is_encrypted { "; Secure" } else { "" };
    let name = name(head, is_encrypted);
    let text =
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&text).expect("letters, digits and signs of a cookie")
}

fn name(head: &Parts, is_encrypted: bool) -> String {
    if is_encrypted {
        return "__Host-parlor".to_owned();
    }
    let port = port(&head.headers);
    format!("parlor-{port}")
}

fn port(headers: &HeaderMap) -> u16 {
    let port = host(headers).and_then(|host| host.rsplit(':').next()?.parse().ok());
    port.unwrap_or(80)
}
