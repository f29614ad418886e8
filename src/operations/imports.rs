//! Brings agents of other systems in. A running gateway uses them at once.

use super::{Operations, Refusal, agents};
use crate::moving::{self, MovingError, Report, Wish};
use crate::records::audit::Actor;
use crate::tenants::Site;

pub(super) async fn run(
    operations: &Operations,
    actor: &Actor,
    wish: Wish,
) -> Result<Report, Refusal> {
    let site = Site {
        home: operations.home.clone(),
        db: operations.db.clone(),
        by: actor.clone(),
    };
    let only_look = wish.only_look;
    let report = moving::import(&site, wish).await?;
    if !only_look {
        agents::take_in(operations, "import").await;
    }
    Ok(report)
}

impl From<MovingError> for Refusal {
    fn from(error: MovingError) -> Self {
        match error {
            MovingError::NoSource(text) => Refusal::wrong_use(text),
            MovingError::Tenant(error) => error.into(),
            other => Refusal::failed(other.to_string()),
        }
    }
}
