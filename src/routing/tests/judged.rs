//! Routing, access and `who` together: whether a message is answered, and by which agent.

use std::path::Path;

use super::{Table, message, pin};
use crate::access::{Role, Standing, Verdict};
use crate::config::{self, Access, Secrets, Source};
use crate::routing::judging::{Judgment, Question, judge};
use crate::routing::{FromChat, Visit};

fn house(main_is_for: &str) -> (Table, Access) {
    let text = format!(
        "[access]\nowners = [\"telegram:1\"]\ndms = \"open\"\ngroups = \"bound\"\n\
         [agents.main]\nwho = \"{main_is_for}\"\n[agents.rose]\n"
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
        pin: Some(crate::routing::Pin {
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
