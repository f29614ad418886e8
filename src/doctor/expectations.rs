//! Expectations of the config about the bots in groups and on servers, for the checks at the start.

use crate::channels::discord::{Expected, ExpectedPlace};
use crate::channels::telegram::{Expectations, ExpectedGroup};
use crate::config::{Access, Groups};
use crate::routing::{DiscordPlace, Table};

pub(crate) fn expectations(access: &Access, table: &Table) -> Expectations {
    let mut groups: Vec<ExpectedGroup> = Vec::new();
    for bound in table.telegram_groups() {
        let hears_everything = !bound.require_mention.unwrap_or(access.require_mention);
        match groups.iter_mut().find(|group| group.chat == bound.chat) {
            Some(known) if hears_everything && !known.hears_everything => {
                *known = ExpectedGroup {
                    chat: bound.chat,
                    binding: bound.text.to_owned(),
                    hears_everything,
                };
            }
            Some(_) => {}
            None => groups.push(ExpectedGroup {
                chat: bound.chat,
                binding: bound.text.to_owned(),
                hears_everything,
            }),
        }
    }
    // Where only bound groups are answered, the checks of these groups say enough.
    let has_others = access.groups == Groups::Open || groups.is_empty();
    Expectations {
        hears_everything_elsewhere: has_others && !access.require_mention,
        groups,
    }
}

pub(crate) fn on_discord(table: &Table) -> Vec<ExpectedPlace> {
    let mut places: Vec<ExpectedPlace> = Vec::new();
    for bound in table.discord_places() {
        let what = match bound.place {
            DiscordPlace::Server(id) => Expected::Server(id),
            DiscordPlace::Category(id) => Expected::Category(id),
            DiscordPlace::Channel(id) => Expected::Channel(id),
        };
        if places.iter().all(|known| known.what != what) {
            places.push(ExpectedPlace {
                binding: bound.text.to_owned(),
                what,
            });
        }
    }
    places
}
