//! The current agent of a place: the agent of the pin, if the agent still exists, else by the
//! bindings.

use std::sync::Arc;

use super::pins::Pins;
use super::{Pin, Route, Table, route};
use crate::domain::Origin;
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
    /// A pin to a removed agent. Such a pin does not count; the place is told, and the pin is
    /// dropped.
    pub stale_pin: Option<Pin>,
}

impl Router {
    pub fn new(pins: Arc<Pins>) -> Self {
        Router { pins }
    }

    pub async fn resolve(&self, table: &Table, origin: &Origin) -> Result<Resolved, StoreError> {
        Ok(resolve(table, self.pins.get(&origin.key).await?, origin))
    }
}

/// The same for callers that have looked up the pin.
pub fn resolve(table: &Table, found: Option<Pin>, origin: &Origin) -> Resolved {
    let is_known = found.as_ref().is_some_and(|pin| table.knows(&pin.agent));
    let (pin, stale_pin) = if is_known {
        (found, None)
    } else {
        (None, found)
    };
    Resolved {
        route: route(table, pin.as_ref(), origin),
        pin,
        stale_pin,
    }
}
