//! `/trace`: the way to an answer, for owners and admins. As a reply to an answer the command tells
//! about this answer, else about the last in this place.

use rusqlite::Connection;

use super::texts::trace as texts;
use super::{CommandError, Context, Outcome};
use crate::access::Role;
use crate::clock::now_ms;
use crate::domain::UserError;
use crate::operations::house::House;
use crate::operations::turns::{self, Sight};
use crate::records::turn_story;

pub(super) async fn run(context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.standing.role() < Role::Admin {
        return Err(UserError::new(texts::NEEDS_ADMIN).into());
    }
    let (db, snapshot) = (&context.services.db, context.snapshot);
    let house = House::load(db, snapshot.config.clone(), snapshot.table.clone()).await?;
    let (place, replied) = (
        context.inbound.origin.key.clone(),
        context.inbound.extras.replies_to.clone(),
    );
    let is_reply = replied.is_some();
    let names = house.names.clone();
    let read = move |connection: &Connection| {
        let id = match &replied {
            Some(message) => turn_story::answered_by(connection, &place, message, now_ms())?,
            None => turn_story::last_in(connection, &place)?,
        };
        // Others may read along, so no words are shown.
        id.map_or(Ok(None), |id| {
            turns::one(connection, &house, id, Sight::Sizes)
        })
    };
    let Some(turn) = db.read(read).await? else {
        let why = match is_reply {
            true => texts::NOT_AN_ANSWER,
            false => texts::NO_ANSWER_YET,
        };
        return Err(UserError::new(why).into());
    };
    let entrance = context.services.operations.entrance();
    let base = entrance.and_then(|entrance| entrance.address());
    let link = base.map(|base| format!("{base}/turns/{}", turn.id));
    let called = |id: &str| texts::called(&names, id);
    Ok(Outcome::say(texts::told(&turn, link.as_deref(), &called)))
}
