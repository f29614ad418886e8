//! Changes that owners make to the house while it runs, each in one place for the chat and the
//! command line: roles and ids of people, budgets.
//!
//! A change is planned with a look at the file and the store, and then written with its audit entry.

pub(crate) mod budgets;
pub(crate) mod known_people;
pub(crate) mod people;
