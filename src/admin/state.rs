//! What every handler of the admin listener can reach.

use std::sync::Arc;

use super::auth::{Failures, Hosts};
use crate::config;
use crate::gateway::Monitor;
use crate::operations::Operations;
use crate::operations::http_keys::Entrance;

/// Shared by all handlers of one listener. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AdminState {
    /// Everything an operator can ask or change.
    pub(crate) operations: Operations,
    pub(crate) monitor: Monitor,
    /// Keys and links.
    pub(crate) entrance: Entrance,
    pub(crate) settings: Arc<config::Admin>,
    pub(super) hosts: Arc<Hosts>,
    pub(super) failures: Arc<Failures>,
}

impl AdminState {
    pub(super) fn new(monitor: Monitor, entrance: Entrance, settings: config::Admin) -> Self {
        AdminState {
            operations: monitor.operations().clone(),
            hosts: Arc::new(Hosts::new(&settings)),
            failures: Arc::default(),
            monitor,
            entrance,
            settings: Arc::new(settings),
        }
    }
}
