//! `/agent pause`, `resume`, `restart` and `clear`: an owner steers an agent in all its places.

use rusqlite::Connection;

use super::parse::SteerWish;
use super::texts::steering as texts;
use super::{CommandError, Context, Effect, Outcome, agent};
use crate::access::Role;
use crate::channels::Choice;
use crate::domain::UserError;
use crate::records::transcript;
use crate::tenants::Steering;

pub(super) async fn run(
    wish: SteerWish,
    word: &str,
    context: &Context<'_>,
) -> Result<Outcome, CommandError> {
    if context.standing.role() != Role::Owner {
        return Err(UserError::new(texts::OWNERS_ONLY).into());
    }
    if word.is_empty() {
        return Err(UserError::new(texts::STEER).into());
    }
    let known = context.snapshot.registry.find(word);
    let agent = known.ok_or_else(|| agent::unknown(context, word))?;
    let (sessions, label) = (&context.services.sessions, agent.label());
    let steering = match wish {
        SteerWish::Pause => Steering::Pause,
        SteerWish::Resume => Steering::Resume,
        SteerWish::Restart => Steering::Restart,
        SteerWish::Clear { is_sure } => {
            let uid = agent.uid;
            let places = move |connection: &Connection| transcript::places_with(connection, uid);
            let places = context.services.db.read(places).await?.len();
            if places == 0 {
                return Ok(Outcome::say(texts::nothing_to_clear(&label)));
            }
            if !is_sure {
                let sure = Choice {
                    label: texts::CLEAR.to_owned(),
                    command: format!("/agent clear {} yes", agent.id),
                };
                let asked = texts::clear(&label, &agent.id, places);
                return Ok(Outcome::say(asked).offering(vec![sure]));
            }
            Steering::Reset
        }
    };
    let (pause, running) = (
        sessions.pause_of(agent.uid),
        sessions
            .under_way()
            .get(&agent.uid)
            .copied()
            .unwrap_or_default(),
    );
    let reply = match (steering, &pause) {
        (Steering::Pause, Some(pause)) => texts::paused_already(&label, pause.who()),
        (Steering::Pause, None) => texts::paused(&label, &agent.id, running),
        (Steering::Resume, None) => texts::not_paused(&label),
        (Steering::Resume, Some(_)) => texts::resumed(&label),
        (Steering::Restart, _) => texts::restarted(&label, running),
        (Steering::Reset, _) => texts::cleared(&label),
    };
    let effect = Effect::Steer {
        steering,
        agent: agent.uid,
        id: agent.id.clone(),
    };
    Ok(Outcome::of(reply, effect).in_place())
}
