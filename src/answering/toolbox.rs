//! The tools of every turn: those of the room `tools`, and those that need the store.

use std::sync::Arc;

use super::transcript_search::TranscriptSearch;
use crate::agents::Memories;
use crate::config::Switch;
use crate::storage::Db;
use crate::tools::{self, ToolBox};

/// All tools. The policy of an agent decides which of them the agent has.
pub(crate) fn toolbox(
    memories: &Memories,
    db: &Db,
    switch: Arc<dyn Fn() -> Switch + Send + Sync>,
) -> ToolBox {
    ToolBox::standard()
        .with(tools::memory_tools(memories))
        .with(vec![Box::new(TranscriptSearch {
            db: db.clone(),
            switch,
        })])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The config is checked against this list before there is a database to make the tools with.
    #[tokio::test]
    async fn the_list_of_known_tools_is_the_list_of_tools() {
        let home = tempfile::tempdir().expect("a folder");
        let db = Db::open(&home.path().join("parlor.db"))
            .await
            .expect("the store opens");
        let tools = toolbox(&Memories::new(db.clone()), &db, Arc::new(Switch::default));
        assert_eq!(tools.names().collect::<Vec<_>>(), tools::KNOWN);
    }
}
