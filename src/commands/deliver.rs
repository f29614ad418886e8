//! `/deliver`: owners and admins switch the delivery of a place off and on.

use super::parse::DeliverWish;
use super::texts::deliver as texts;
use super::{CommandError, Context, Effect, Outcome, truth};
use crate::clock::now_ms;
use crate::delivery::undelivered::{self, Which};
use crate::domain::{SessionKey, UserError};
use crate::routing::DeliveryOff;
use crate::storage::StoreError;

pub(super) async fn run(wish: DeliverWish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    if !truth::may_open(context) {
        return Err(UserError::new(texts::NEEDS_ADMIN).into());
    }
    // A verb of the command line waits for its answer.
    if matches!(context.inbound.origin.key, SessionKey::Local { .. }) {
        return Err(UserError::new(texts::AT_THE_TERMINAL).into());
    }
    let this = truth::this(context);
    Ok(match (wish, context.delivery_off) {
        (DeliverWish::Off, None) => {
            Outcome::of(texts::off(&this), Effect::DeliveryOff(off(context)))
        }
        (DeliverWish::On, Some(_)) => {
            let kept = kept(context).await?;
            Outcome::of(texts::on(&this, kept), Effect::DeliveryOn)
        }
        (DeliverWish::Show | DeliverWish::On, None) => Outcome::say(texts::is_on(&this)),
        (DeliverWish::Show | DeliverWish::Off, Some(off)) => {
            let since = texts::is_off(off, &this, texts::UNTIL_SWITCHED, &chrono::Local);
            Outcome::say(format!("{since} {}", texts::kept(kept(context).await?)))
        }
    })
}

fn off(context: &Context<'_>) -> DeliveryOff {
    DeliveryOff {
        by: context.inbound.origin.person.to_string(),
        by_name: Some(context.inbound.person_name.clone()),
        at: now_ms(),
    }
}

/// The number of messages kept for this very place.
async fn kept(context: &Context<'_>) -> Result<usize, StoreError> {
    let place = context.inbound.origin.key.clone();
    let read = move |connection: &rusqlite::Connection| {
        let rows = undelivered::list(connection, &Which::Place(place.clone()))?;
        let here = rows.iter().filter(|row| row.is_kept && row.place == place);
        Ok(here.count())
    };
    context.services.db.read(read).await
}
