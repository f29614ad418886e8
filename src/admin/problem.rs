//! Problem details (RFC 9457): the form of every error of the HTTP API.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::texts;
use crate::operations::{Refusal, RefusalKind};
use crate::records::http_keys::Scope;
use crate::storage::StoreError;

/// An error, with a sentence that helps.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// What kind of problem it is; stays the same when the words change.
    #[serde(rename = "type")]
    #[schema(example = "urn:parlor:not-found")]
    kind: String,
    #[schema(example = "Not Found")]
    title: String,
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What happened, for a person.
    #[schema(example = "no agent is called rsoe. Did you mean rose?")]
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Facts for programs, such as both versions of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<serde_json::Value>,
    #[serde(skip)]
    retry_after: Option<Duration>,
}

impl Problem {
    fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Self {
        Problem {
            kind: format!("urn:parlor:{kind}"),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            hint: None,
            facts: None,
            retry_after: None,
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Problem {
            hint: Some(hint.into()),
            ..self
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// What happened and what to do, for a page.
    pub(super) fn told(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} {hint}", self.detail),
            None => self.detail.clone(),
        }
    }

    pub(super) fn needs_key() -> Self {
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", texts::NEEDS_KEY)
            .hint(texts::NEEDS_KEY_HINT)
    }

    pub(super) fn wrong_key() -> Self {
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", texts::WRONG_KEY)
            .hint(texts::NEEDS_KEY_HINT)
    }

    pub(super) fn too_many_failures(wait: Duration) -> Self {
        Problem {
            retry_after: Some(wait),
            ..Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too-many-failures",
                texts::TOO_MANY_FAILURES,
            )
        }
    }

    pub(super) fn needs_scope(scope: Scope) -> Self {
        Problem::new(
            StatusCode::FORBIDDEN,
            "scope",
            texts::needs_scope(scope.as_str()),
        )
    }

    pub(super) fn wrong_name() -> Self {
        Problem::new(StatusCode::FORBIDDEN, "host", texts::WRONG_NAME)
    }

    pub(super) fn wrong_page() -> Self {
        Problem::new(StatusCode::FORBIDDEN, "origin", texts::WRONG_PAGE)
    }

    pub(super) fn unsafe_listener() -> Self {
        Problem::new(StatusCode::FORBIDDEN, "plain-http", texts::UNSAFE_LISTENER)
    }

    /// A Mini App that is not let in.
    pub(super) fn entry(detail: &'static str) -> Self {
        Problem::new(StatusCode::FORBIDDEN, "mini-app", detail)
    }

    pub(super) fn link_is_over() -> Self {
        Problem::new(StatusCode::FORBIDDEN, "link", texts::LINK_IS_OVER)
    }

    /// A decision that takes more rights.
    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::FORBIDDEN, "rights", detail)
    }

    pub(super) fn broken() -> Self {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "broken",
            texts::SOMETHING_BROKE,
        )
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, "wrong-use", detail)
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::CONFLICT, "conflict", detail)
    }

    pub(super) fn no_json() -> Self {
        Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media-type",
            texts::NO_JSON,
        )
    }

    /// A body that did not come, or is too large.
    pub(super) fn unread(status: StatusCode) -> Self {
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => Problem::new(status, "too-large", texts::TOO_LARGE),
            _ => Problem::bad_request(texts::UNREAD),
        }
    }

    pub(super) fn changed_meanwhile() -> Self {
        Problem::new(
            StatusCode::PRECONDITION_FAILED,
            "changed-meanwhile",
            texts::CHANGED_MEANWHILE,
        )
    }

    /// A change that has to name the state it was made from.
    pub(super) fn needs_tag() -> Self {
        Problem::new(
            StatusCode::PRECONDITION_REQUIRED,
            "if-match",
            texts::NEEDS_TAG,
        )
    }

    pub(super) fn facts(self, facts: serde_json::Value) -> Self {
        Problem {
            facts: Some(facts),
            ..self
        }
    }

    pub(super) fn wrong_method() -> Self {
        Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method",
            texts::WRONG_METHOD,
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, wait) = (self.status(), self.retry_after);
        let mut response = (status, Json(&self)).into_response();
        // A page of the dashboard tells it in its own form.
        response.extensions_mut().insert(self);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = wait {
            headers.insert(header::RETRY_AFTER, (wait.as_secs() + 1).into());
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (status, kind) = match refusal.kind {
            RefusalKind::WrongUse => (StatusCode::BAD_REQUEST, "wrong-use"),
            RefusalKind::Conflict => (StatusCode::CONFLICT, "conflict"),
            RefusalKind::Failed => (StatusCode::CONFLICT, "refused"),
        };
        Problem {
            hint: refusal.hint,
            ..Problem::new(status, kind, refusal.text)
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::warn!("a call to the HTTP API failed: {error}");
        Problem::broken()
    }
}
