//! Stored data of sessions, with a file for each table or family of tables. SQL only: no async, no
//! services.

pub(crate) mod agent_pauses;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod config_history;
pub(crate) mod decisions;
pub(crate) mod declined;
pub(crate) mod deletions;
pub(crate) mod group_migration;
pub(crate) mod guest_notices;
pub(crate) mod http_keys;
pub(crate) mod imports;
pub mod inbox;
pub(crate) mod jobs;
pub(crate) mod journal;
pub(crate) mod ledger;
pub(crate) mod mini_app_entries;
pub(crate) mod model_overrides;
pub(crate) mod pauses;
pub(crate) mod provider_notices;
pub(crate) mod recent;
pub(crate) mod resuming;
pub(crate) mod sessions;
pub(crate) mod speakers;
pub(crate) mod subagents;
pub(crate) mod summaries;
pub(crate) mod transcript;
pub(crate) mod turn_log;
pub(crate) mod turn_notes;
pub(crate) mod turn_story;
pub(crate) mod view;
