//! Delivery switched off and on: `/deliver`, and the line about delivery in other answers.

use chrono::TimeZone;

use super::words::day;
use crate::routing::DeliveryOff;

pub(crate) const NEEDS_ADMIN: &str = "Only owners and admins can switch delivery off and on.";
pub(crate) const AT_THE_TERMINAL: &str =
    "This is the terminal, where answers are always shown. Write /deliver in a chat.";
pub(crate) const HOW: &str =
    "Write `/deliver off` to keep answers back here, and `/deliver on` to send them.";

pub(crate) fn off(this: &str) -> String {
    format!(
        "Delivery is off in {this} from now on. The agent still reads and answers, but its answers are kept, not sent. \
         Commands are answered as before. `/deliver on` sends what was kept."
    )
}

pub(crate) fn on(this: &str, kept: usize) -> String {
    let sent = match kept {
        0 => "Nothing was kept.".to_owned(),
        1 => "1 message that was kept is sent now.".to_owned(),
        kept => format!("{kept} messages that were kept are sent now, in their order."),
    };
    format!("Delivery is on again in {this}. {sent}")
}

pub(crate) fn is_on(this: &str) -> String {
    format!("Delivery is on in {this}: answers are sent. {HOW}")
}

/// `Delivery is off in this topic: Alice switched it off on 16 Nov 2026. Answers are kept until
/// /deliver on.`
pub(crate) fn is_off<Z: TimeZone>(off: &DeliveryOff, this: &str, until: &str, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    let who = off
        .by_name
        .clone()
        .unwrap_or_else(|| format!("`{}`", off.by));
    format!(
        "Delivery is off in {this}: {who} switched it off on {}. Answers are kept until {until}.",
        day(zone, off.at)
    )
}

/// For owners and admins, who can do it.
pub(crate) const UNTIL_SWITCHED: &str = "`/deliver on`";
pub(crate) const UNTIL_OTHERS_SWITCH: &str = "an owner or admin switches it on";

pub(crate) fn kept(messages: usize) -> String {
    match messages {
        0 => "None is kept so far.".to_owned(),
        1 => "1 message is kept so far.".to_owned(),
        kept => format!("{kept} messages are kept so far."),
    }
}

/// Messages that `/retry` leaves alone.
pub(crate) fn stay_kept(messages: usize) -> String {
    match messages {
        1 => "1 message stays kept, because delivery is off in its place; `/deliver on` there sends it.".to_owned(),
        messages => format!(
            "{messages} messages stay kept, because delivery is off in their places; `/deliver on` there sends them."
        ),
    }
}

#[cfg(test)]
mod tests {
    use chrono::FixedOffset;

    use super::*;

    #[test]
    fn delivery_is_told_in_a_sentence_or_two() {
        let off_since = DeliveryOff {
            by: "telegram:111".into(),
            by_name: Some("Alice".into()),
            at: 1_794_000_000_000,
        };
        let utc = FixedOffset::east_opt(0).unwrap();
        let told = [
            off("this topic"),
            is_off(&off_since, "this topic", UNTIL_SWITCHED, &utc),
            kept(0),
            kept(1),
            kept(2),
            on("this topic", 0),
            on("this topic", 1),
            on("this topic", 2),
            is_on("this topic"),
            stay_kept(1),
            stay_kept(2),
        ];
        insta::assert_snapshot!(told.join("\n"), @"
        Delivery is off in this topic from now on. The agent still reads and answers, but its answers are kept, not sent. Commands are answered as before. `/deliver on` sends what was kept.
        Delivery is off in this topic: Alice switched it off on 6 Nov 2026. Answers are kept until `/deliver on`.
        None is kept so far.
        1 message is kept so far.
        2 messages are kept so far.
        Delivery is on again in this topic. Nothing was kept.
        Delivery is on again in this topic. 1 message that was kept is sent now.
        Delivery is on again in this topic. 2 messages that were kept are sent now, in their order.
        Delivery is on in this topic: answers are sent. Write `/deliver off` to keep answers back here, and `/deliver on` to send them.
        1 message stays kept, because delivery is off in its place; `/deliver on` there sends it.
        2 messages stay kept, because delivery is off in their places; `/deliver on` there sends them.
        ");
    }
}
