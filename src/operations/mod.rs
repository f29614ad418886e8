//! What an operator can look at and change, a function for each. The command line, the chat and
//! every other door call the same functions, which give back values and print nothing.

pub(crate) mod abilities;
pub(crate) mod finding_places;
pub(crate) mod house;
pub(crate) mod named;
pub(crate) mod names;
pub(crate) mod session_changes;
pub(crate) mod session_list;
pub(crate) mod session_state;
pub(crate) mod transcripts;
