//! A tester from outside calls the API with made-up values, and looks for answers that the OpenAPI
//! document does not have.

use std::process::Stdio;

use tokio::process::Command;

use crate::admin_door::Site;
use crate::support::fake_telegram::ALICE;
use crate::support::tell_skipped;

/// The program schemathesis; `scripts/check` installs it and sets this.
const SCHEMATHESIS: &str = "PARLOR_SCHEMATHESIS";

/// No server error, no undocumented status, media type, header or body, and no wrong value that is
/// taken for right.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,unsupported_method";

#[tokio::test]
async fn made_up_values_find_nothing_undocumented() {
    let Some(schemathesis) = std::env::var_os(SCHEMATHESIS) else {
        tell_skipped(&format!(
            "schemathesis does not look at the API, because {SCHEMATHESIS} is not set; scripts/check sets it"
        ));
        return;
    };
    let site = Site::open("[web]").await;
    let token = site.token("admin").await;
    let topic = site.house.telegram.forum(-1001).topic(101, "Garden");
    topic.says(ALICE, "hello").await;
    topic.wait_for_sent(1).await;
    let ran = Command::new(schemathesis)
        .arg("run")
        .arg(format!("http://{}/api/v1/openapi.json", site.address))
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args(["--checks", CHECKS, "--max-examples", "6", "--seed", "1"])
        // One worker: Python 3.11 counts the depth of parsed lambdas for all threads together, and
        // ends with an error of its own when two of them parse at once.
        .args(["--phases", "examples,coverage,fuzzing", "--workers", "1"])
        // The tester's own token, streams without an end, and a file for each call.
        .args(["--exclude-path", "/tokens/{which}"])
        .args(["--exclude-path", "/events"])
        .args(["--exclude-path", "/chat/events"])
        .args(["--exclude-path", "/backup"])
        .args(["--no-color", "--continue-on-failure"])
        .current_dir(site.home())
        .stdin(Stdio::null())
        .output()
        .await
        .expect("schemathesis starts");
    let (said, complained) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert!(ran.status.success(), "{said}\n{complained}");
    assert!(said.contains("passed"), "{said}");
    site.house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    site.stop().await;
}
