//! Sentences of the HTTP door, and its few pages without a dashboard.

use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::problem::Problem;

pub(super) const NEEDS_KEY: &str = "This needs an API token or a signed-in browser.";
pub(super) const NEEDS_KEY_HINT: &str = "`parlor dashboard` gives a link that signs a browser in. `parlor token create` makes a token, sent as `Authorization: Bearer TOKEN`.";
pub(super) const WRONG_KEY: &str = "This token or sign-in does not count, or no longer.";
pub(super) const TOO_MANY_FAILURES: &str =
    "Too many wrong tokens, cookies and links came within a minute. Try again a little later.";
pub(super) const WRONG_NAME: &str =
    "This listener is not known by that name. Call it as 127.0.0.1 or localhost.";
pub(super) const WRONG_PAGE: &str = "This call does not come from a page of this listener.";
pub(super) const UNSAFE_LISTENER: &str = "Other machines reach this listener in plain HTTP, so it only serves /healthz, /readyz and /metrics. Listen on 127.0.0.1, or put TLS in front and set `behind_proxy`.";
pub(super) const LINK_IS_OVER: &str =
    "This link was used before, or is over. `parlor dashboard` gives a new one.";
pub(super) const NO_TELEGRAM: &str = "This house has no Telegram bot.";
pub(super) const NOT_FROM_TELEGRAM: &str =
    "Telegram has not signed this for this bot. Write /dashboard to the bot, in your private chat.";
pub(super) const ENTRY_IS_OVER: &str =
    "This was used before, or is over. Close the page, and open it with the button again.";
pub(super) const ENTRY_NEEDS_OWNER: &str = "Only owners can open the dashboard.";
pub(super) const SOMETHING_BROKE: &str = "Something broke. The log of the gateway says what.";
pub(super) const WRONG_METHOD: &str = "This address does not take that method.";
pub(super) const ABOUT_API: &str = "Everything that an operator can ask and change. Calls need a token of `parlor token create`, sent as `Authorization: Bearer TOKEN`. Errors are problem details (RFC 9457).";
pub(super) const NO_JSON: &str = "This call takes a body with `Content-Type: application/json`.";
pub(super) const TOO_LARGE: &str = "The body is too large.";
pub(super) const UNREAD: &str = "The body could not be read.";
pub(super) const CHANGED_MEANWHILE: &str =
    "This was changed meanwhile. Read it again, and make the change from there.";
pub(super) const NEEDS_TAG: &str =
    "This change needs `If-Match` with the `ETag` of the text it was made from.";
pub(super) const COMMAND_WALKS: &str =
    "This is a command. Parlor itself answers it, whoever has the place.";
pub(super) const NO_SUCH_CALL: &str =
    "There is no such call. /api/v1/openapi.json lists all of them.";

pub(super) fn needs_scope(scope: &str) -> String {
    format!("This needs a token with the scope `{scope}`.")
}

/// A problem as a page for a person.
pub(super) fn page_of(problem: &Problem) -> Response {
    let status = problem.status();
    let title = status.canonical_reason().unwrap_or("Error");
    let mut page = (status, page(title, &problem.told())).into_response();
    if status == axum::http::StatusCode::UNAUTHORIZED {
        let headers = page.headers_mut();
        let bearer = axum::http::HeaderValue::from_static("Bearer");
        headers.insert(header::WWW_AUTHENTICATE, bearer);
    }
    page
}

/// Leads on to the dashboard. A redirect would not carry the cookie where the link was followed from
/// a page of another site.
pub(super) fn entered() -> Response {
    let html = frame(
        "Parlor",
        "<meta http-equiv=\"refresh\" content=\"0;url=/\">",
        "<p>You are signed in. <a href=\"/\">Go on</a></p>",
    );
    html_response(html)
}

fn page(title: &str, text: &str) -> Response {
    let text = format!("<h1>{}</h1><p>{}</p>", escaped(title), marked(text));
    html_response(frame(title, "", &text))
}

fn frame(title: &str, head: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{}</title>{head}</head><body><main>{body}</main></body></html>\n",
        escaped(title)
    )
}

fn html_response(html: String) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// Words in backticks become code.
fn marked(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| match at % 2 {
        1 => format!("<code>{}</code>", escaped(part)),
        _ => escaped(part),
    });
    parts.collect()
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
