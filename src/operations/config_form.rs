//! config.toml as a form: its settings with their meaning, and a text with one of them changed.

use serde_json::Value;

use super::{Operations, Refusal};
use crate::config::edit;
use crate::config::settings::{Setting, Settings};
use crate::config::store;

/// Settings below one header.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// `agents.rose`; empty for the top level.
    pub(crate) name: String,
    pub(crate) settings: Vec<Setting>,
}

/// The settings that a form can change, in the order of the schema. Secrets, and lists of tables such
/// as bindings, are edited as text.
pub(crate) async fn sections(operations: &Operations) -> Result<Vec<Section>, Refusal> {
    let (snapshot, home) = (operations.snapshot().await?, operations.home.clone());
    let read = tokio::task::spawn_blocking(move || {
        let text = store::read(&home).map_err(|error| Refusal::failed(error.to_string()))?;
        Ok(grouped(&Settings::of(&snapshot.config, &text, &home)))
    });
    read.await
        .map_err(|error| Refusal::failed(error.to_string()))?
}

fn grouped(settings: &Settings) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for setting in settings.all().iter().filter(|setting| fits(setting)) {
        let name = setting.key.rsplit_once('.').map_or("", |(name, _)| name);
        match sections.iter_mut().find(|section| section.name == name) {
            Some(section) => section.settings.push(setting.clone()),
            None => sections.push(Section {
                name: name.to_owned(),
                settings: vec![setting.clone()],
            }),
        }
    }
    sections
}

fn fits(setting: &Setting) -> bool {
    let is_plain = |value: &Value| !value.is_object() && !value.is_array();
    let is_field = match &setting.value {
        Some(Value::Array(items)) => items.iter().all(is_plain),
        Some(value) => is_plain(value),
        None => true,
    };
    is_field && !setting.is_secret && is_key(&setting.key)
}

/// The text with a setting, or without it. Nothing is checked and nothing is saved.
pub(crate) fn edited(text: &str, key: &str, value: Option<&Value>) -> Result<String, Refusal> {
    if !is_key(key) {
        return Err(Refusal::wrong_use(format!(
            "`{key}` is no key of config.toml"
        )));
    }
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let value = value.map(toml).transpose()?;
    let edited = match (value, section) {
        (None, section) => edit::unset(text, section, name),
        (Some(value), "") => edit::set_top(text, name, &value),
        (Some(value), section) => edit::set_section(text, section, &[(name, value)]),
    };
    edited.map_err(|error| Refusal::failed(error.to_string()))
}

/// Plain names with dots between them.
fn is_key(key: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    key.split('.')
        .all(|name| !name.is_empty() && name.chars().all(is_plain))
}

/// A value as config.toml has it.
fn toml(value: &Value) -> Result<String, Refusal> {
    let wrong =
        || Refusal::wrong_use("a value is a text, a number, true, false or a list of texts");
    Ok(match value {
        Value::String(text) => toml_edit::Value::from(text).to_string(),
        Value::Bool(is) => is.to_string(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, Some(number)) => toml_edit::Value::from(number).to_string(),
            (None, None) => return Err(wrong()),
        },
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            toml_edit::Array::from_iter(texts.ok_or_else(wrong)?).to_string()
        }
        Value::Null | Value::Object(_) => return Err(wrong()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_setting_is_changed_in_the_text_and_comments_stay() {
        let text =
            "default_agent = \"main\" # ours\n\n[agents.rose]\n# she is kind\nname = \"Rose\"\n";
        let check = |key: &str, value: Value, expected: &str| {
            let value = Some(value).filter(|value| !value.is_null());
            let edited = edited(text, key, value.as_ref());
            assert_eq!(edited.unwrap_or_else(|refusal| refusal.text), expected);
        };
        check(
            "default_agent",
            json!("rose"),
            "default_agent = \"rose\" # ours\n\n[agents.rose]\n# she is kind\nname = \"Rose\"\n",
        );
        check(
            "agents.rose.name",
            json!(null),
            "default_agent = \"main\" # ours\n\n[agents.rose]\n# she is kind\n",
        );
        check(
            "default_agent",
            json!(null),
            "\n[agents.rose]\n# she is kind\nname = \"Rose\"\n",
        );
        check(
            "log.max_mb",
            json!(5),
            &format!("{text}\n[log]\nmax_mb = 5\n"),
        );
        check(
            "agents.rose.skills",
            json!(["a", "b"]),
            "default_agent = \"main\" # ours\n\n[agents.rose]\nskills = [\"a\", \"b\"]\n# she is kind\nname = \"Rose\"\n",
        );
        check("a b", json!(1), "`a b` is no key of config.toml");
        check(
            "log.level",
            json!({}),
            "a value is a text, a number, true, false or a list of texts",
        );
    }
}
