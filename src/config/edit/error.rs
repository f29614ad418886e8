//! Files outside the reach of edits by program.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("config.toml is not TOML, so it was not changed. `parlor config check` shows where")]
    NotToml,
    #[error(
        "{0} is written in a way that cannot be edited by program. Write it as {1}, or make this change by hand"
    )]
    Form(String, &'static str),
}

impl EditError {
    pub(super) fn agent(name: &str) -> Self {
        EditError::Form(format!("agent {name}"), "a table [agents.<id>]")
    }

    pub(super) fn bindings() -> Self {
        EditError::Form("`bindings`".into(), "[[bindings]] tables")
    }

    pub(super) fn route_tests() -> Self {
        EditError::Form("`route_tests`".into(), "[[route_tests]] tables")
    }
}
