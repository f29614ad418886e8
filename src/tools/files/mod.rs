//! Files in the agent's workspace, and in other folders opened to the agent by the config.

mod call;
mod delete;
mod edit;
mod list;
mod matching;
mod read;
mod search;
mod send;
mod stream;
mod write;

#[cfg(test)]
mod tests;

use super::Tool;

pub(super) use matching::SEARCH;

pub(super) fn all() -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(read::FileRead),
        Box::new(write::FileWrite),
        Box::new(edit::FileEdit),
        Box::new(list::FileList),
        Box::new(search::FileSearch),
        Box::new(delete::FileDelete),
        Box::new(send::FileSend),
    ]
}
