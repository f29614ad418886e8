//! `/retry 161`, the button under a failed answer: has the message answered once more, for its
//! author.

use super::{CommandError, Context, Effect, Outcome};
use crate::access::people;
use crate::domain::{SessionKey, UserError};
use crate::records::inbox;

pub(super) async fn run(id: i64, context: &Context<'_>) -> Result<Outcome, CommandError> {
    let access = context.snapshot.config.access.clone();
    let read = move |connection: &rusqlite::Connection| {
        let rows = inbox::failed_turn(connection, id)?;
        let asker = rows
            .first()
            .map(|(_, inbound)| inbound.origin.person.clone());
        let standing = asker
            .as_ref()
            .map(|asker| people::standing(connection, &access, asker))
            .transpose()?;
        Ok((rows, asker.zip(standing)))
    };
    let (rows, asker) = context.services.db.read(read).await?;
    let is_here = |place: &SessionKey| is_same_chat(place, &context.inbound.origin.key);
    let Some((asker, standing)) =
        asker.filter(|_| rows.iter().all(|(_, inbound)| is_here(&inbound.origin.key)))
    else {
        return Err(UserError::new(NOTHING).into());
    };
    let people = &context.snapshot.config.access.people;
    let is_own = people.main_id(&asker) == people.main_id(&context.inbound.origin.person);
    if !is_own && context.standing.role() <= standing.role() {
        return Err(UserError::new(NOT_YOURS).into());
    }
    let ids = rows.into_iter().map(|(id, _)| id).collect();
    Ok(Outcome::of(TRYING, Effect::Again(ids)).after_press(context, Vec::new))
}

/// In a plain group every member has a place, and all see the same button.
fn is_same_chat(one: &SessionKey, other: &SessionKey) -> bool {
    one == other || (one.whole_group().is_some() && one.whole_group() == other.whole_group())
}

const TRYING: &str = "Trying again.";
const NOTHING: &str = "There is nothing to try again here. Please ask once more.";
const NOT_YOURS: &str =
    "Only the person who asked, or somebody with a higher role, can try this again.";
