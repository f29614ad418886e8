//! The current agent of a place: the agent of the pin, if the pin still counts, else by the
//! bindings.

use std::sync::Arc;

use super::pins::Pins;
use super::{DeliveryOff, FromChat, Opened, Pin, Route, Table, Visit, route};
use crate::access::{Role, Standing};
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
    /// The place was opened from chat.
    pub opened: Option<Opened>,
    /// Answers are kept instead of sent.
    pub delivery_off: Option<DeliveryOff>,
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
        Ok(resolve(table, self.settings(visit).await?, visit))
    }

    /// The settings of a place made in chat.
    pub(crate) async fn settings(&self, visit: Visit<'_>) -> Result<FromChat, StoreError> {
        self.pins.get(&visit.origin.key).await
    }
}

/// Decides about a visit, for callers that have looked up the settings made in chat.
pub(crate) fn resolve(table: &Table, found: FromChat, visit: Visit<'_>) -> Resolved {
    let FromChat {
        pin: found,
        opened,
        delivery_off,
    } = found;
    let counts = found
        .as_ref()
        .is_some_and(|pin| table.knows(&pin.agent) && table.still_counts(pin, visit).is_ok());
    let (pin, stale_pin) = if counts { (found, None) } else { (None, found) };
    let mut route = route(table, pin.as_ref(), visit.origin);
    route.opens_place |= opened.is_some() || pin.as_ref().is_some_and(|pin| opens_once(pin, visit));
    Resolved {
        route,
        pin,
        stale_pin,
        opened,
        delivery_off,
    }
}

/// A pin for a single message opens the place for this message, if set by an owner or admin.
fn opens_once(pin: &Pin, visit: Visit<'_>) -> bool {
    pin.once && Standing::of(visit.access, &pin.set_by, false).role() >= Role::Admin
}
