//! Takes calls of other programs in: each becomes a turn, written down before the caller is told.

use rusqlite::Transaction;
use serde_json::Value;

use super::monitor::Monitor;
use crate::access::Standing;
use crate::clock::now_ms;
use crate::config::Hook;
use crate::domain::{
    Addressed, AgentId, Extras, Inbound, Internal, JobRun, Label, Labels, MessageId, Origin,
    PersonId, SessionKey,
};
use crate::home::Snapshot;
use crate::jobs::JobContext;
use crate::records::agent_pauses;
use crate::records::inbox::{self, Accepted};
use crate::records::pauses::{self, Work};
use crate::routing::{Router, Visit};
use crate::storage::StoreError;

/// The longest part of a body in a task, in bytes.
const MAX_SHOWN_BYTES: usize = 64 * 1024;

/// The outcome of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HookTaken {
    /// The inbox row of its turn.
    Queued(i64),
    /// An earlier call had this key.
    Known,
    /// The call is refused for now, for this reason.
    Refused(&'static str),
}

impl Monitor {
    /// The hook of this name.
    pub(crate) fn hook(&self, name: &str) -> Option<Hook> {
        let snapshot = self.state.services.snapshots.current();
        snapshot.config.hooks.get(name).cloned()
    }

    /// Queues the turn of a call. `key` names the call: a second call with the same key is known.
    pub(crate) async fn take_call(
        &self,
        hook: &Hook,
        key: &str,
        body: &str,
    ) -> Result<HookTaken, StoreError> {
        let snapshot = self.state.services.snapshots.current();
        let place = hook
            .place
            .as_ref()
            .map(|place| self.state.aliases.current(place));
        let id = match (&hook.agent, &place) {
            (Some(agent), _) => agent.clone(),
            (None, Some(place)) => self.agent_of(&snapshot, place).await?,
            (None, None) => snapshot.config.default_agent.clone(),
        };
        let Some(agent) = snapshot.registry.get(&id) else {
            return Ok(HookTaken::Refused("its agent is not there"));
        };
        if place
            .as_ref()
            .is_some_and(|place| !self.state.delivery.reaches(place))
        {
            return Ok(HookTaken::Refused("its platform is not connected"));
        }
        let now = now_ms();
        let session = match (&place, hook.context) {
            (Some(place), JobContext::Place) => place.clone(),
            _ => SessionKey::Cron {
                agent: agent.id.clone(),
                job: format!("hook-{}", hook.name)
                    .parse()
                    .unwrap_or_else(|()| hook.name.clone()),
            },
        };
        let run = JobRun {
            job: None,
            slot: now,
            name: hook.name.to_string(),
            agent: agent.uid,
            to: place,
            is_once: false,
            is_heartbeat: false,
            read: Labels::of(hook.role).with(Label::Web).bits(),
            most: Some(hook.role),
        };
        let inbound = Inbound {
            update_id: format!("hook-{}-{key}", hook.name),
            origin: Origin::new(session, caller()),
            person_name: format!("hook {}", hook.name),
            text: filled(&hook.prompt, body),
            addressed: Addressed::Privately,
            message: MessageId(String::new()),
            sent_at: now,
            extras: Extras {
                internal: Some(Internal::Job(run)),
                ..Extras::default()
            },
        };
        let (uid, role, stored) = (agent.uid, hook.role, inbound.clone());
        let write = move |tx: &Transaction<'_>| {
            if pauses::get(tx, Work::Background)?.is_some() {
                return Ok(Err("background work is paused"));
            }
            if agent_pauses::of(tx, uid)?.is_some() {
                return Ok(Err("the agent is paused"));
            }
            inbox::insert_internal(tx, &stored, now_ms()).map(Ok)
        };
        match self.state.services.db.write(write).await? {
            Err(why) => Ok(HookTaken::Refused(why)),
            Ok(None) => Ok(HookTaken::Known),
            Ok(Some(id)) => {
                let accepted = Accepted::with_role(id, inbound, role);
                self.state.services.sessions.queue_job(accepted);
                Ok(HookTaken::Queued(id))
            }
        }
    }
}

impl Monitor {
    /// The agent of a place, for any person.
    async fn agent_of(
        &self,
        snapshot: &Snapshot,
        place: &SessionKey,
    ) -> Result<AgentId, StoreError> {
        let origin = Origin::new(place.clone(), caller());
        let visit = Visit {
            access: &snapshot.config.access,
            origin: &origin,
            standing: &Standing::GUEST,
        };
        let router = Router::new(self.state.pins.clone());
        let resolved = router.resolve(&snapshot.table, visit).await?;
        Ok(resolved.route.agent)
    }
}

/// Stands for all callers of hooks.
fn caller() -> PersonId {
    PersonId::Local("hooks".parse().expect("a plain name"))
}

/// The task with the body in its places: `{{body}}` is the whole body, `{{body.a.0.b}}` a part of a
/// JSON body.
fn filled(template: &str, body: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((name, after)) = behind.split_once("}}") else {
            break;
        };
        text.push_str(before);
        text.push_str(&part(name.trim(), body, parsed.as_ref()));
        rest = after;
    }
    text.push_str(rest);
    text
}

fn part(name: &str, body: &str, parsed: Option<&Value>) -> String {
    let shown = match name.split_once('.') {
        None if name == "body" => body.to_owned(),
        Some(("body", path)) => {
            let pointer = format!("/{}", path.replace('.', "/"));
            match parsed.and_then(|value| value.pointer(&pointer)) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(value) => value.to_string(),
            }
        }
        _ => String::new(),
    };
    shown[..shown.floor_char_boundary(MAX_SHOWN_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_put_into_the_task() {
        let body =
            r#"{"action":"opened","issue":{"title":"It broke","labels":["bug","ui"]},"n":3}"#;
        let check = |template: &str, expected: &str| assert_eq!(filled(template, body), expected);
        check(
            "{{body.action}}: {{ body.issue.title }} ({{body.n}})",
            "opened: It broke (3)",
        );
        check("{{body.issue.labels.1}} {{body.nowhere}}|{{other}}", "ui |");
        check("{{body}}", body);
        check("{{body", "{{body");
        // Words of the body are not read as places.
        assert_eq!(filled("{{body.x}}", r#"{"x":"{{body}}"}"#), "{{body}}");
        assert_eq!(filled("said: {{body}}", "plain"), "said: plain");
    }
}
