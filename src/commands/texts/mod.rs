//! Everything the commands say to people, a file for each area. Pure: facts go in, a text comes
//! out. The snapshot at the end of each file shows the area's texts side by side.

pub(crate) mod agent;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod deliver;
pub(crate) mod doctor;
pub(crate) mod help;
pub(crate) mod jobs;
pub(crate) mod memory;
pub(crate) mod people;
pub(crate) mod place;
pub(crate) mod steering;
pub(crate) mod trace;
pub(crate) mod usage;
pub(crate) mod words;
pub(crate) mod work;
