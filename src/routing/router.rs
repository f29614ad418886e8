//! The current agent of a place: the agent of the pin, if the pin still counts, else by the
//! bindings.

use std::sync::Arc;

use super::pins::Pins;
use super::{Pin, Route, Table, Visit, route};
use crate::storage::StoreError;

/// Looks up pins for [`route`]. Cheap to clone.
#[derive(Clone)]
pub struct Router {
    pins: Arc<Pins>,
}

/// The route of a message, with the pin of its place.
#[derive(Debug)]
pub struct Resolved {
    pub route: Route,
    /// The pin in force.
    pub pin: Option<Pin>,
    /// A pin that does not count: its agent is gone, or not open to the people of the place any
    /// more. The place is told, and the pin is dropped.
    pub stale_pin: Option<Pin>,
}

impl Router {
    pub fn new(pins: Arc<Pins>) -> Self {
        Router { pins }
    }

    pub(crate) async fn resolve(
        &self,
        table: &Table,
        visit: Visit<'_>,
    ) -> Result<Resolved, StoreError> {
        Ok(resolve(
            table,
            self.pins.get(&visit.origin.key).await?,
            visit,
        ))
    }
}

/// The same for callers that have looked up the pin.
pub(crate) fn resolve(table: &Table, found: Option<Pin>, visit: Visit<'_>) -> Resolved {
    let counts = found
        .as_ref()
        .is_some_and(|pin| table.knows(&pin.agent) && table.still_counts(pin, visit).is_ok());
    let (pin, stale_pin) = if counts { (found, None) } else { (None, found) };
    Resolved {
        route: route(table, pin.as_ref(), visit.origin),
        pin,
        stale_pin,
    }
}
