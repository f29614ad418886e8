//! Which name a caller used for this listener, and which page the call comes from.
//!
//! A page of the internet can have a name of its own lead to this machine, and can send forms to
//! any address. Both are kept out: the name has to be ours, and so has the page.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use crate::admin::problem::Problem;
use crate::config;

/// The names under which the API and the dashboard are served.
pub(in crate::admin) struct Hosts {
    is_local: bool,
    /// `https://parlor.example`: the address of the proxy with TLS.
    url: Option<String>,
}

/// The page that a call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The browser says that it is ours.
    OurPage,
    /// Nothing is said: a program, or a page that was opened by hand.
    Unsaid,
}

impl From {
    /// Changes with a cookie come from our own pages only.
    pub(super) fn is_of_our_page(self) -> Result<(), Problem> {
        match self {
            From::OurPage => Ok(()),
            From::Unsaid => Err(Problem::wrong_page()),
        }
    }
}

impl Hosts {
    pub(in crate::admin) fn new(settings: &config::Admin) -> Self {
        Hosts {
            is_local: settings.is_local(),
            url: settings.url.clone(),
        }
    }

    /// Whether the API and the dashboard are served at all: not in plain HTTP to other machines.
    pub(in crate::admin) fn is_safe(&self) -> bool {
        self.is_local || self.url.is_some()
    }

    /// Whether the call came through the proxy with TLS.
    pub(in crate::admin) fn is_encrypted(&self, head: &Parts) -> bool {
        let name = host(&head.headers);
        let ours = self.url.as_deref().and_then(|url| url.split("://").nth(1));
        ours.is_some() && name.map(str::to_ascii_lowercase).as_deref() == ours
    }

    /// Whether the call comes from a page of ours, under one of our names.
    pub(in crate::admin) fn check_own_page(&self, head: &Parts) -> Result<(), Problem> {
        self.check(head)?.is_of_our_page()
    }

    pub(super) fn check(&self, head: &Parts) -> Result<From, Problem> {
        self.check_name(head)?;
        self.page(head)
    }

    /// Whether the caller used one of our names.
    pub(in crate::admin) fn check_name(&self, head: &Parts) -> Result<(), Problem> {
        if !self.is_safe() {
            return Err(Problem::unsafe_listener());
        }
        let is_ours =
            self.is_encrypted(head) || (self.is_local && names_this_machine(&head.headers));
        // A request line with a whole address counts before `Host`, so it must not differ.
        let line = head.uri.authority().map(|authority| authority.as_str());
        let agrees = line.is_none_or(|line| host(&head.headers) == Some(line));
        match is_ours && agrees {
            true => Ok(()),
            false => Err(Problem::wrong_name()),
        }
    }

    fn page(&self, head: &Parts) -> Result<From, Problem> {
        let site = head.headers.get("sec-fetch-site");
        let site = site.map(|site| site.to_str().unwrap_or("cross-site"));
        if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return Err(Problem::wrong_page());
        }
        let Some(origin) = head.headers.get(header::ORIGIN) else {
            return Ok(From::Unsaid);
        };
        let own = match self.is_encrypted(head) {
            true => self.url.clone(),
            false => host(&head.headers).map(|host| format!("http://{host}")),
        };
        match own.is_some_and(|own| origin.as_bytes().eq_ignore_ascii_case(own.as_bytes())) {
            true => Ok(From::OurPage),
            false => Err(Problem::wrong_page()),
        }
    }
}

pub(super) fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST)?.to_str().ok()
}

/// Whether a call names this machine by a number or as `localhost`.
pub(in crate::admin) fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = host(headers) else {
        return false;
    };
    let name = match host.strip_prefix('[') {
        Some(inside) => inside.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_this_machine_by_number_or_as_localhost() {
        let check = |host: &str, expected| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            assert_eq!(names_this_machine(&headers), expected, "{host}");
        };
        for ours in [
            "127.0.0.1:7717",
            "127.0.0.1",
            "localhost:7717",
            "LOCALHOST",
            "[::1]:7717",
        ] {
            check(ours, true);
        }
        for others in [
            "evil.example:7717",
            "127.0.0.1.evil.example",
            "10.0.0.1:7717",
            "localhost.evil.example",
            "",
        ] {
            check(others, false);
        }
        assert!(!names_this_machine(&HeaderMap::new()));
    }
}
