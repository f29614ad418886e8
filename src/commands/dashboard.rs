//! `/dashboard`: opens the dashboard, for owners in a private chat.

use super::texts::trace as texts;
use super::{CommandError, Context, Outcome};
use crate::access::Role;
use crate::channels::AppButton;
use crate::domain::{Platform, UserError};

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.standing.role() != Role::Owner {
        return Err(UserError::new(texts::DASHBOARD_NEEDS_OWNER).into());
    }
    let place = &context.inbound.origin.key;
    if !place.is_private() {
        return Err(UserError::new(texts::DASHBOARD_IN_PRIVATE).into());
    }
    let admin = context.snapshot.config.admin.as_ref();
    let url = admin.and_then(|admin| admin.url.as_deref());
    Ok(match (place.platform(), url) {
        (Some(Platform::Telegram), Some(url)) => Outcome {
            app: Some(AppButton {
                label: texts::OPEN_DASHBOARD.to_owned(),
                url: format!("{url}/mini-app"),
            }),
            ..Outcome::say(texts::DASHBOARD)
        },
        (_, Some(url)) => Outcome::say(texts::dashboard_at(url)),
        (_, None) => Outcome::say(texts::DASHBOARD_ON_MACHINE),
    })
}
