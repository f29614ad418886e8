//! Every method of the API with every scope, and with every role of the person whose key it is. A
//! route without a row here fails the tests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use ring::digest::{SHA256, digest};

use crate::admin_door::Site;
use crate::support::http::{Answer, Call};

/// The least scope of each call.
const ROWS: &[(&str, &str, &str)] = &[
    ("GET", "/agents", "read"),
    ("POST", "/agents", "admin"),
    ("PUT", "/agents/default", "admin"),
    ("GET", "/agents/{id}", "read"),
    ("PATCH", "/agents/{id}", "admin"),
    ("DELETE", "/agents/{id}", "admin"),
    ("POST", "/agents/{id}/preview", "admin"),
    ("POST", "/agents/{id}/restore", "admin"),
    ("POST", "/agents/{id}/adopt", "admin"),
    ("POST", "/agents/{id}/clone", "admin"),
    ("POST", "/agents/{id}/rename", "admin"),
    ("POST", "/agents/{id}/pause", "operate"),
    ("POST", "/agents/{id}/resume", "operate"),
    ("GET", "/agents/{id}/files", "read"),
    ("GET", "/agents/{id}/files/{name}", "read"),
    ("PUT", "/agents/{id}/files/{name}", "admin"),
    ("DELETE", "/agents/{id}/files/{name}", "admin"),
    ("GET", "/agents/{id}/memory/versions", "read"),
    ("GET", "/agents/{id}/memory/versions/{version}", "read"),
    ("POST", "/agents/{id}/memory/restore", "admin"),
    ("GET", "/memories", "read"),
    ("POST", "/memories", "operate"),
    ("GET", "/memories/search", "read"),
    ("GET", "/memories/recall", "read"),
    ("DELETE", "/memories/{id}", "operate"),
    ("GET", "/sessions", "read"),
    ("GET", "/sessions/search", "read"),
    ("GET", "/sessions/{key}", "read"),
    ("GET", "/sessions/{key}/messages", "read"),
    ("PUT", "/sessions/{key}/agent", "operate"),
    ("DELETE", "/sessions/{key}/agent", "operate"),
    ("GET", "/sessions/{key}/identity", "read"),
    ("PUT", "/sessions/{key}/identity", "admin"),
    ("POST", "/sessions/{key}/new", "operate"),
    ("POST", "/sessions/{key}/fork", "operate"),
    ("POST", "/sessions/{key}/move", "admin"),
    ("POST", "/sessions/{key}/stop", "operate"),
    ("GET", "/queue", "read"),
    ("DELETE", "/queue", "operate"),
    ("GET", "/routes/tree", "read"),
    ("GET", "/routes/explain", "read"),
    ("GET", "/routes/messages", "read"),
    ("POST", "/routes/what-if", "operate"),
    ("POST", "/routes/tests", "admin"),
    ("PUT", "/routes/bindings", "admin"),
    ("DELETE", "/routes/bindings", "admin"),
    ("GET", "/people", "read"),
    ("POST", "/people", "admin"),
    ("GET", "/people/{who}", "read"),
    ("DELETE", "/people/{who}", "admin"),
    ("PUT", "/people/{who}/role", "admin"),
    ("GET", "/pairing", "operate"),
    ("POST", "/pairing/{code}", "operate"),
    ("DELETE", "/pairing/people/{id}", "operate"),
    ("GET", "/jobs", "read"),
    ("POST", "/jobs", "admin"),
    ("GET", "/jobs/{id}", "read"),
    ("DELETE", "/jobs/{id}", "admin"),
    ("POST", "/jobs/{id}/run", "operate"),
    ("POST", "/jobs/{id}/pause", "operate"),
    ("POST", "/jobs/{id}/resume", "operate"),
    ("GET", "/approvals", "read"),
    ("GET", "/approvals/{id}", "read"),
    ("POST", "/approvals/{id}/allow", "operate"),
    ("POST", "/approvals/{id}/refuse", "operate"),
    ("GET", "/delivery/budgets", "read"),
    ("GET", "/undelivered", "read"),
    ("POST", "/undelivered/retry", "operate"),
    ("POST", "/undelivered/drop", "operate"),
    ("GET", "/turns", "read"),
    ("GET", "/turns/{id}", "read"),
    ("GET", "/usage", "read"),
    ("GET", "/config", "admin"),
    ("PUT", "/config", "admin"),
    ("POST", "/config/check", "operate"),
    ("POST", "/config/diff", "admin"),
    ("POST", "/config/edit", "operate"),
    ("GET", "/config/history", "read"),
    ("GET", "/config/history/{id}", "admin"),
    ("POST", "/config/history/{id}/restore", "admin"),
    ("GET", "/status", "read"),
    ("GET", "/doctor", "read"),
    ("POST", "/reload", "operate"),
    ("POST", "/backup", "admin"),
    ("GET", "/logs", "read"),
    ("GET", "/audit", "read"),
    ("GET", "/tokens", "admin"),
    ("POST", "/tokens", "admin"),
    ("DELETE", "/tokens/{which}", "admin"),
    ("GET", "/whoami", "read"),
    ("GET", "/events", "read"),
    ("PUT", "/house/places/{key}", "admin"),
    ("GET", "/chat/places", "read"),
    ("GET", "/chat/messages", "read"),
    ("POST", "/chat/messages", "admin"),
    ("POST", "/chat/files", "admin"),
    ("GET", "/chat/files/{id}", "read"),
    ("GET", "/chat/events", "read"),
];

const SCOPES: [&str; 3] = ["read", "operate", "admin"];

fn rank(scope: &str) -> usize {
    SCOPES
        .iter()
        .position(|known| *known == scope)
        .expect("a scope")
}

/// Something that is there for nobody, so that an allowed call changes nothing.
fn filled(path: &str) -> String {
    let path = path
        .replace("{key}", "telegram:topic:-9:9")
        .replace("{name}", "SOUL.md");
    let path = path
        .replace("{code}", "AAAA2222")
        .replace("{who}", "nobody")
        .replace("{which}", "nothing");
    match path.as_str() {
        path if path.starts_with("/pairing/people") => path.replace("{id}", "telegram:404"),
        path if ["/memories", "/config", "/jobs", "/approvals"]
            .iter()
            .any(|start| path.starts_with(start)) =>
        {
            path.replace("{id}", "999")
        }
        path => path.replace("{id}", "nobody"),
    }
}

/// A call that changes nothing where it is allowed.
fn call(method: &str, path: &str) -> Call {
    let call = Call::new(method, &format!("/api/v1{}", filled(path)));
    match method {
        "POST" | "PUT" | "PATCH" => call.json(&serde_json::json!({})),
        _ => call,
    }
}

/// What is allowed would be done, or would never end.
fn is_left_out(path: &str) -> bool {
    matches!(path, "/backup" | "/events" | "/chat/events")
}

/// The answer to a caller of this scope: let through or not.
fn check(answer: &Answer, least: &str, scope: &str, told: &str) {
    match rank(scope) >= rank(least) {
        true => assert!(
            !matches!(answer.status, 401 | 403 | 500..),
            "{told}: {answer:?}"
        ),
        false => {
            assert_eq!(answer.status, 403, "{told}: {answer:?}");
            assert_eq!(answer.json()["type"], "urn:parlor:scope", "{told}");
        }
    }
}

/// S1.40
#[tokio::test]
async fn every_method_asks_for_its_scope() {
    let site = Site::open("").await;
    let mut tokens = BTreeMap::new();
    for scope in SCOPES {
        tokens.insert(scope, site.token(scope).await);
    }
    let document = Call::get("/api/v1/openapi.json").token(&tokens["read"]);
    let document: Value = site.send(document).await.json();
    let mut routes = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("methods").keys() {
            routes.insert((method.to_uppercase(), path.clone()));
        }
    }
    let rows: BTreeSet<(String, String)> = ROWS
        .iter()
        .map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    assert_eq!(routes, rows, "each route has a row");
    for (method, path, least) in ROWS {
        let call = call(method, path);
        assert_eq!(
            site.send(call.clone()).await.status,
            401,
            "{method} {path} without a token"
        );
        for scope in SCOPES {
            if rank(scope) >= rank(least) && is_left_out(path) {
                continue;
            }
            let answer = site.send(call.clone().token(&tokens[scope])).await;
            check(
                &answer,
                least,
                scope,
                &format!("{method} {path} as {scope}"),
            );
        }
    }
    site.stop().await;
}

/// People who may have a sign-in, by their role.
const PEOPLE: [(&str, &str); 4] = [
    ("telegram:111", "owner"),
    ("telegram:501", "admin"),
    ("telegram:502", "member"),
    ("telegram:503", "guest"),
];

/// A person's sign-in opens what its scope opens, while the person owns the house. With any other
/// role it opens nothing, whatever its scope.
#[tokio::test]
async fn every_method_asks_for_the_role_behind_a_sign_in() {
    let site = Site::open("").await;
    site.house.tell(
        "INSERT INTO people (id, name, paired_at, paired_by, created_at) VALUES ('telegram:502', 'Dan', 1, 'cli', 1)",
    );
    crate::admin_door::fine(site.home(), &["people", "role", "telegram:501", "admin"]).await;
    for (person, role) in PEOPLE {
        for scope in SCOPES {
            let hash = digest(&SHA256, secret(role, scope).as_bytes());
            let hash: String = hash
                .as_ref()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            site.house.tell(&format!(
                "INSERT INTO http_keys (kind, digest, name, person, scope, created_at, created_by)
                 VALUES ('sign-in', x'{hash}', '{role}', '{person}', '{scope}', 1, 'test')"
            ));
        }
    }
    // The gateway reads its keys anew.
    site.token("read").await;
    let (origin, port) = (
        format!("http://{}", site.address),
        site.address.rsplit(':').next().expect("a port"),
    );
    for (method, path, least) in ROWS {
        for (_, role) in PEOPLE {
            for scope in SCOPES {
                let is_owner = role == "owner";
                if is_owner && rank(scope) >= rank(least) && is_left_out(path) {
                    continue;
                }
                let cookie = format!("parlor-{port}={}", secret(role, scope));
                let call = call(method, path).header("Cookie", &cookie);
                let answer = site.send(call.header("Origin", &origin)).await;
                let told = format!("{method} {path} as {role} with {scope}");
                match is_owner {
                    true => check(&answer, least, scope, &told),
                    // Changes are refused for the scope first.
                    false => assert!(matches!(answer.status, 401 | 403), "{told}: {answer:?}"),
                }
            }
        }
    }
    site.stop().await;
}

fn secret(role: &str, scope: &str) -> String {
    format!("{role}-{scope}-{}", "x".repeat(32))
}
