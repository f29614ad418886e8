//! The house as a whole: status, doctor, reload, backup, log, audit and keys.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{Page, ask, ask_about, before, house, limit};
use super::extract::{ApiJson, ApiPath, ApiQuery};
use crate::admin::auth::{Administers, Operates, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::backups::{self, BACKUPS, KeepSecrets};
use crate::doctor::{self, Depth};
use crate::domain::SessionKey;
use crate::home::Home;
use crate::operations::http_keys::{KeyReply, KeyRequest};
use crate::operations::log_lines::{self, Sought};
use crate::operations::named::{Moment, Named};
use crate::operations::{Reply, Request};
use crate::records::audit::{self, Wanted};
use crate::records::http_keys::{Key, Scope};

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(status))
        .routes(routes!(examine))
        .routes(routes!(reload))
        .routes(routes!(backup))
        .routes(routes!(logs))
        .routes(routes!(changes))
        .routes(routes!(keys, create_token))
        .routes(routes!(revoke))
        .routes(routes!(who_am_i))
}

/// Platforms, agents, work, money, config and the newest errors.
#[utoipa::path(get, path = "/status", tag = "system", responses((status = 200, body = Object)))]
async fn status(
    Reads(caller): Reads,
    State(state): State<AdminState>,
) -> Result<Json<Value>, Problem> {
    match ask(&state, &caller, Request::Status).await? {
        Reply::Status(status) => value(&*status),
        _ => Err(Problem::broken()),
    }
}

fn value(of: &impl Serialize) -> Result<Json<Value>, Problem> {
    let value = serde_json::to_value(of);
    value.map(Json).map_err(|_| Problem::broken())
}

/// How far a look goes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct DoctorQuery {
    /// Also asks every model and every platform, which takes some seconds.
    #[serde(default)]
    full: bool,
}

/// What is wrong, and the fix for each.
#[utoipa::path(get, path = "/doctor", tag = "system", params(DoctorQuery), responses((status = 200, body = Object)))]
async fn examine(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<DoctorQuery>,
) -> Result<Json<Value>, Problem> {
    let depth = match query.full {
        true => Depth::Full,
        false => Depth::Quick,
    };
    value(&doctor::in_gateway(&state.operations, depth).await?)
}

/// Has the gateway read config.toml, tokens and keys anew.
#[utoipa::path(post, path = "/reload", tag = "system",
    responses((status = 200, body = Object), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn reload(
    Operates(caller): Operates,
    State(state): State<AdminState>,
) -> Result<Json<Value>, Problem> {
    match ask(&state, &caller, Request::Reload).await? {
        Reply::Reloaded(done) => value(&done),
        _ => Err(Problem::broken()),
    }
}

/// Writes everything into one file of the folder `backups`, without secrets.
#[utoipa::path(post, path = "/backup", tag = "system",
    responses((status = 201, body = Object), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn backup(
    _: Administers,
    State(state): State<AdminState>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let home = state.operations.home().to_owned();
    let written = tokio::task::spawn_blocking(move || {
        backups::write(
            &Home::new(&home),
            None,
            &home.join(BACKUPS),
            KeepSecrets::No,
        )
    });
    let written = written.await.map_err(|_| Problem::broken())?;
    let written = written.map_err(|error| Problem::conflict(error.to_string()))?;
    let name = written.path.file_name().map(|name| name.to_string_lossy());
    let body = json!({
        "file": name,
        "bytes": written.bytes,
        "files": written.files,
        "schema": written.schema,
        "secrets_elsewhere": written.secrets_elsewhere,
    });
    Ok((StatusCode::CREATED, Json(body)))
}

/// Which lines.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct LogQuery {
    /// Only lines about the agent with this id.
    agent: Option<String>,
    /// Only lines with these letters in them.
    contains: Option<String>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// The newest lines of the log file, oldest first.
#[utoipa::path(get, path = "/logs", tag = "system", params(LogQuery),
    responses((status = 200, body = Page<String>), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn logs(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<LogQuery>,
) -> Result<Json<Page<String>>, Problem> {
    let limit = limit(query.limit)? as usize;
    let sought = Sought {
        agent: query.agent,
        contains: query.contains,
    };
    let lines = log_lines::newest(&state.operations, sought, limit).await?;
    Ok(Json(Page::whole(lines)))
}

/// Which changes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    /// Only changes of this agent, and switches from or to it.
    agent: Option<String>,
    /// Only changes of this place, by its key.
    place: Option<String>,
    /// A person's id, or cli, token, dashboard, config or gateway.
    by: Option<String>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// The `next` of the part before.
    cursor: Option<String>,
}

/// A change.
#[derive(Debug, Serialize, ToSchema)]
struct ChangeLine {
    id: i64,
    at: Moment,
    by: Named,
    action: String,
    agent: Option<String>,
    place: Option<Named>,
    subject: Option<String>,
    before: Option<String>,
    after: Option<String>,
}

/// Who changed what, the newest first.
#[utoipa::path(get, path = "/audit", tag = "system", params(AuditQuery), responses((status = 200, body = Page<ChangeLine>)))]
async fn changes(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<AuditQuery>,
) -> Result<Json<Page<ChangeLine>>, Problem> {
    let limit = limit(query.limit)?;
    let wanted = Wanted {
        agent: query.agent,
        place: query.place,
        by: query.by,
        since: None,
        before: Some(before(query.cursor.as_deref())?),
    };
    let read = move |connection: &Connection| audit::latest(connection, &wanted, limit);
    let entries = state.operations.db().read(read).await?;
    let house = house(&state).await?;
    let named = |key: String| match key.parse::<SessionKey>() {
        Ok(key) => house.names.place(&key),
        Err(_) => Named::new(key, None),
    };
    let lines = entries.into_iter().map(|entry| ChangeLine {
        id: entry.id,
        at: Moment(entry.at),
        by: Named::new(&entry.actor, entry.name.as_deref()),
        action: entry.action,
        agent: entry.agent,
        place: entry.place.map(named),
        subject: entry.subject,
        before: entry.before,
        after: entry.after,
    });
    let lines: Vec<ChangeLine> = lines.collect();
    let has_more = lines.len() == limit as usize;
    Ok(Json(Page::new(lines, has_more, |line| line.id.to_string())))
}

/// A token or a sign-in, without its secret.
#[derive(Debug, Serialize, ToSchema)]
struct KeyLine {
    id: i64,
    /// token or sign-in.
    #[schema(value_type = String)]
    kind: crate::records::http_keys::Kind,
    name: String,
    /// read, operate or admin.
    #[schema(value_type = String)]
    scope: Scope,
    created_at: Moment,
    created_by: String,
    expires_at: Option<Moment>,
    last_used_at: Option<Moment>,
    /// The token itself, told only when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl KeyLine {
    fn of(key: Key, token: Option<String>) -> Self {
        KeyLine {
            id: key.id,
            kind: key.kind,
            name: key.name,
            scope: key.scope,
            created_at: Moment(key.created_at),
            created_by: key.created_by,
            expires_at: key.expires_at.map(Moment),
            last_used_at: key.last_used_at.map(Moment),
            token,
        }
    }
}

/// Tokens, and browsers that are signed in.
#[utoipa::path(get, path = "/tokens", tag = "system", responses((status = 200, body = Page<KeyLine>)))]
async fn keys(
    Administers(caller): Administers,
    State(state): State<AdminState>,
) -> Result<Json<Page<KeyLine>>, Problem> {
    match ask(&state, &caller, Request::Key(KeyRequest::List)).await? {
        Reply::Key(KeyReply::Listed(keys)) => {
            let lines = keys.into_iter().map(|key| KeyLine::of(key, None));
            Ok(Json(Page::whole(lines.collect())))
        }
        _ => Err(Problem::broken()),
    }
}

/// A new token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TokenBody {
    /// Letters, digits, `-`, `_` and `.`, and not digits alone.
    name: String,
    /// read, operate or admin.
    scope: String,
    /// Ends by itself after so many seconds.
    #[schema(minimum = 1)]
    expires_in_seconds: Option<u32>,
}

/// Makes a token, and tells it this once.
#[utoipa::path(post, path = "/tokens", tag = "system", request_body = TokenBody,
    responses((status = 201, body = KeyLine), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn create_token(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<TokenBody>,
) -> Result<(StatusCode, Json<KeyLine>), Problem> {
    let scope = Scope::named(&body.scope);
    let scope = scope.ok_or_else(|| Problem::bad_request("scope is read, operate or admin"))?;
    if body.expires_in_seconds == Some(0) {
        return Err(Problem::bad_request("expires_in_seconds is at least 1"));
    }
    let request = KeyRequest::Create {
        name: body.name,
        scope,
        lasts: body
            .expires_in_seconds
            .map(|seconds| i64::from(seconds) * 1000),
    };
    match ask(&state, &caller, Request::Key(request)).await? {
        Reply::Key(KeyReply::Created { key, secret }) => {
            Ok((StatusCode::CREATED, Json(KeyLine::of(key, Some(secret)))))
        }
        _ => Err(Problem::broken()),
    }
}

/// Ends a token by its name, or a token or sign-in by its number.
#[utoipa::path(delete, path = "/tokens/{which}", tag = "system",
    params(("which" = String, Path, description = "Name or number")),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn revoke(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(which): ApiPath<String>,
) -> Result<StatusCode, Problem> {
    let request = Request::Key(KeyRequest::Revoke { which });
    ask_about(&state, &caller, request).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The caller.
#[derive(Debug, Serialize, ToSchema)]
struct Whoami {
    /// token or sign-in.
    #[schema(value_type = String)]
    kind: crate::records::http_keys::Kind,
    /// read, operate or admin.
    #[schema(value_type = String)]
    scope: Scope,
    /// The number of the token or sign-in.
    id: i64,
}

/// Who calls, and with which scope.
#[utoipa::path(get, path = "/whoami", tag = "system", responses((status = 200, body = Whoami)))]
async fn who_am_i(Reads(caller): Reads) -> Json<Whoami> {
    Json(Whoami {
        kind: caller.kind,
        scope: caller.scope,
        id: caller.key,
    })
}
