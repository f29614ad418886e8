//! Servers of other ages: what they leave out of their answers, and where they say null.

use serde_json::{Map, Value, json};

use super::FakeTelegram;

/// How much a server says in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answers {
    #[default]
    Documented,
    /// Only what an answer would make no sense without.
    Minimal,
    /// Null for everything that may be left out.
    Nulls,
}

impl Answers {
    pub(super) fn envelope(self, method: &str, result: Value) -> Vec<u8> {
        let envelope = match self {
            Answers::Documented => json!({ "ok": true, "result": result }),
            Answers::Minimal => json!({ "ok": true, "result": self.thinned(method, result) }),
            Answers::Nulls => {
                let result = self.thinned(method, result);
                json!({ "description": null, "error_code": null, "parameters": null, "ok": true, "result": result })
            }
        };
        envelope.to_string().into_bytes()
    }

    fn thinned(self, method: &str, result: Value) -> Value {
        let Value::Object(fields) = result else {
            return result;
        };
        let needed: &[&str] = match method {
            "getMe" => &["id", "is_bot", "first_name", "username"],
            "getChat" => &["id", "type"],
            "getChatMember" => &["status", "user"],
            "getFile" => &["file_id", "file_path"],
            _ => &["message_id"],
        };
        let keep = |(name, value): (String, Value)| {
            let is_needed = needed.contains(&name.as_str());
            match self {
                _ if is_needed => Some((name, value)),
                Answers::Nulls => Some((name, Value::Null)),
                _ => None,
            }
        };
        Value::Object(fields.into_iter().filter_map(keep).collect::<Map<_, _>>())
    }
}

impl FakeTelegram {
    pub(crate) fn answer_like(&self, answers: Answers) {
        self.world().answers = answers;
    }
}
