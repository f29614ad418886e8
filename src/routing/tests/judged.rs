//! Routing, access and `who` together: whether a message is answered, and by which agent.

use std::path::Path;

use super::{Pin, Table, message, pin};
use crate::access::{Role, Standing, Verdict};
use crate::config::{self, Access, Secrets, Source};
use crate::routing::judging::{Judgment, Question, judge};
use crate::routing::{FromChat, Opened, Visit};

fn house(main_is_for: &str) -> (Table, Access) {
    let text = format!(
        "[access]\nowners = [\"telegram:1\"]\ndms = \"open\"\ngroups = \"bound\"\n\
         [agents.main]\nwho = \"{main_is_for}\"\n[agents.rose]\n[agents.ada]\nwho = \"guest\"\n"
    );
    let path = "config.toml".into();
    let draft = config::draft(
        Source { path, text },
        Path::new("/nowhere"),
        Secrets::WherePresent,
    );
    let config = draft.finish().expect("the config is right");
    let (table, problems) = Table::build(&config);
    assert_eq!(problems, []);
    (table, config.access)
}

/// The message of [`message`], to the bot.
fn judged((table, access): &(Table, Access), text: &str, from_chat: FromChat) -> Judgment {
    let origin = message(text);
    let standing = Standing::of(access, &origin.person, false);
    let visit = Visit {
        access,
        origin: &origin,
        standing: &standing,
    };
    judge(Question::said_to_the_bot(table, visit, from_chat))
}

fn answered_by(judgment: &Judgment) -> Option<&str> {
    judgment.answered_by().map(|agent| agent.as_str())
}

#[test]
fn an_agent_that_is_not_for_the_person_does_not_answer() {
    let house = house("member");
    let guest = judged(&house, "telegram:dm:5", FromChat::default());
    assert_eq!(guest.verdict, Verdict::Admit);
    assert_eq!(
        guest.not_for_you.as_ref().map(|it| it.least),
        Some(Some(Role::Member))
    );
    assert_eq!(answered_by(&guest), None);
    let owner = judged(&house, "telegram:dm:1 by=telegram:1", FromChat::default());
    assert_eq!(
        (owner.verdict, answered_by(&owner)),
        (Verdict::Admit, Some("main"))
    );
}

/// The switch of an owner opened the agent to the place, and nobody there is asked again.
#[test]
fn a_pin_in_force_answers_whoever_may_speak() {
    let from_chat = FromChat {
        pin: Some(Pin {
            set_by: "telegram:1".parse().unwrap(),
            ..pin("rose")
        }),
        ..FromChat::default()
    };
    let guest = judged(&house("member"), "telegram:dm:5", from_chat);
    assert_eq!(guest.not_for_you, None);
    assert_eq!(answered_by(&guest), Some("rose"));
}

#[test]
fn nobody_is_answered_in_a_closed_place_and_owners_are_told_so() {
    let house = house("guest");
    let guest = judged(&house, "telegram:topic:-100:7", FromChat::default());
    assert!(matches!(guest.verdict, Verdict::Ignore(_)), "{guest:?}");
    assert_eq!(answered_by(&guest), None);
    let owner = judged(
        &house,
        "telegram:topic:-100:7 by=telegram:1",
        FromChat::default(),
    );
    assert_eq!(owner.verdict, Verdict::TellUnbound);
    assert_eq!(answered_by(&owner), None);
}

/// What is set in chat opens a place: by itself, or with a pin for one message of somebody who may.
#[test]
fn a_place_is_opened_from_chat() {
    let house = house("guest");
    let is_answered = |from_chat: FromChat| {
        let judgment = judged(&house, "telegram:topic:-100:7", from_chat);
        assert_eq!(
            judgment.is_open,
            judgment.verdict == Verdict::Admit,
            "{judgment:?}"
        );
        judgment.is_open
    };
    let pinned = |once: bool, set_by: &str| {
        is_answered(FromChat {
            pin: Some(Pin {
                once,
                set_by: set_by.parse().unwrap(),
                ..pin("ada")
            }),
            ..FromChat::default()
        })
    };
    assert!(!is_answered(FromChat::default()));
    assert!(is_answered(FromChat {
        opened: Some(Opened {
            by: "telegram:1".parse().unwrap(),
            by_name: None,
            at: 0,
        }),
        ..FromChat::default()
    }));
    assert!(pinned(true, "telegram:1"));
    assert!(!pinned(true, "telegram:5"), "a guest opens nothing");
    assert!(
        !pinned(false, "telegram:1"),
        "a lasting pin has its opening beside it"
    );
}

#[test]
fn a_pin_of_an_agent_that_is_gone_counts_no_longer() {
    let from_chat = FromChat {
        pin: Some(Pin {
            set_by: "telegram:1".parse().unwrap(),
            ..pin("ghost")
        }),
        ..FromChat::default()
    };
    let judgment = judged(&house("guest"), "telegram:dm:5", from_chat);
    assert_eq!(answered_by(&judgment), Some("main"));
    assert!(judgment.resolved.pin.is_none() && judgment.resolved.stale_pin.is_some());
}
