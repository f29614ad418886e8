//! The file of variables for a service: a unit of systemd does not see the shell of its setup.

use std::fs;
use std::path::Path;

use super::Setup;
use super::plan::Change;
use super::questions::{Answer, Stop};
use super::write::private_file;
use crate::config::{ENVIRONMENT_FILE, Keeper, kept_secrets, sets_variable};

impl Setup<'_> {
    /// Writes the variables named by the config and known to this process, after a yes, and tells
    /// of the others.
    pub(super) async fn environment(&mut self) -> Answer<()> {
        let home = std::path::absolute(self.home.path()).map_err(Stop::failed)?;
        let names = variables(&self.facts()?.text, &home);
        let path = home.join(ENVIRONMENT_FILE);
        let old = fs::read_to_string(&path).unwrap_or_default();
        let missing = names.into_iter().filter(|name| !sets_variable(&old, name));
        let (here, elsewhere): (Vec<String>, Vec<String>) =
            missing.partition(|name| value(name).is_some());
        if !here.is_empty() {
            self.write_variables(&path, &old, here).await?;
        }
        if !elsewhere.is_empty() {
            self.asker.say(&format!(
                "{} is not set here. Write it as a line NAME=value into {} before the service starts.",
                elsewhere.join(", "),
                path.display()
            ));
        }
        Ok(())
    }

    async fn write_variables(&mut self, path: &Path, old: &str, names: Vec<String>) -> Answer<()> {
        let change = Change::Environment {
            file: path.display().to_string(),
            names: names.clone(),
        };
        if self.is_planning() {
            return self.commit(vec![change], Vec::new()).await;
        }
        self.asker.say(&format!(
            "The service does not see the environment of this shell, which has {}.",
            names.join(", ")
        ));
        let question = format!("Write it to {}, for you alone?", path.display());
        if !self.asker.confirm(&question, true)? {
            return Ok(());
        }
        let mut text = old.to_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        for name in &names {
            if let Some(value) = value(name) {
                text.push_str(&format!("{name}={}\n", quoted(&value)));
            }
        }
        private_file(path, text.as_bytes())
            .map_err(|error| Stop::Failed(format!("cannot write {}: {error}", path.display())))?;
        self.changes.push(change);
        Ok(())
    }
}

/// A variable of this process, if its value fits into a line.
fn value(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    let fits = !value.is_empty() && !value.contains(['\n', '\r', '\0']);
    fits.then_some(value)
}

/// The value in the double quotes of systemd, where these characters need a backslash.
fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '`' | '$') {
            text.push('\\');
        }
        text.push(c);
    }
    text + "\""
}

/// Environment variables named by the config.
fn variables(text: &str, home: &Path) -> Vec<String> {
    let secrets = kept_secrets(text, home).into_iter();
    let names = secrets.filter_map(|secret| match secret.keeper {
        Keeper::Variable(name) => Some(name),
        Keeper::File(_) => None,
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_config_are_found() {
        let text = "[telegram]\ntoken = { env = \"A\" }\n[providers.x]\napi_key = { env = \"B\" }\n[providers.y]\napi_key = { env = \"B\" }\n[discord]\ntoken = { file = \"c\" }\n";
        assert_eq!(variables(text, Path::new("/home")), ["A", "B"]);
    }

    #[test]
    fn values_keep_their_characters() {
        assert_eq!(quoted("1:a"), "\"1:a\"");
        assert_eq!(quoted(r#"a"b\c$d`e f#g"#), r#""a\"b\\c\$d\`e f#g""#);
    }
}
