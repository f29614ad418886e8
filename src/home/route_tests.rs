//! Runs `[[route_tests]]`: the rules of a config must give each made-up message to the agent named
//! by the test. The tests ask the gateway's own function.

use crate::access::{self, Standing, Verdict};
use crate::channels::calls_the_bot;
use crate::channels::local::person_of;
use crate::config::{Config, Fault, NOBODY, Problem, RouteTest};
use crate::domain::{Addressed, Origin, SessionKey};
use crate::routing::{self, FromChat, Judgment, Question, Table, Visit};

/// A problem for each failing test. Pins and people let in by a code are not in a config, so they
/// count for nothing here.
pub(super) fn check(config: &Config, table: &Table) -> Vec<Problem> {
    let failing = |test: &RouteTest| {
        let judged = outcome(config, table, test);
        let is_right = judged.answered_by() == test.agent.value.as_ref();
        (!is_right).then(|| failed(test, &judged))
    };
    config.route_tests.iter().filter_map(failing).collect()
}

/// The judgment of the rules about the message of a test.
pub(crate) fn outcome(config: &Config, table: &Table, test: &RouteTest) -> Judgment {
    let person = test.person.clone();
    let origin = Origin {
        roles: test.roles.clone(),
        server: test.server,
        category: test.category,
        name: test.topic.clone(),
        tags: test.tags.clone(),
        ..Origin::new(
            test.place.clone(),
            person.unwrap_or_else(|| person_of(&test.place)),
        )
    };
    let standing = test.role.map_or_else(
        || Standing::of(&config.access, &origin.person, false),
        Standing::just,
    );
    routing::judge(Question {
        table,
        visit: Visit {
            access: &config.access,
            origin: &origin,
            standing: &standing,
        },
        from_chat: FromChat::default(),
        addressed: addressed(config, &test.place, &test.text, (test.mention, test.reply)),
        is_command: false,
    })
}

/// How a made-up message turns to the bot. A nickname in its text is a mention.
pub(crate) fn addressed(
    config: &Config,
    place: &SessionKey,
    text: &str,
    (mention, reply): (bool, bool),
) -> Addressed {
    let is_called = || {
        let platform = place.platform();
        platform.is_some_and(|platform| calls_the_bot(config, platform, text))
    };
    match (place.is_private(), reply, mention || is_called()) {
        (true, ..) => Addressed::Privately,
        (false, true, _) => Addressed::ByReply,
        (false, false, true) => Addressed::ByMention,
        (false, false, false) => Addressed::NotAtAll,
    }
}

fn failed(test: &RouteTest, judged: &Judgment) -> Problem {
    let wanted = test.agent.value.as_ref().map_or(NOBODY, |id| id.as_str());
    let place = &test.place;
    let message = match &test.name {
        Some(name) => format!(
            "the route test \"{name}\" fails: {}, not {wanted}",
            who(judged)
        ),
        None => format!(
            "the route test of {place} fails: {}, not {wanted}",
            who(judged)
        ),
    };
    Problem::new(test.agent.span.clone(), message)
        .label(why(judged))
        .help(format!(
            "change the rules so that {wanted} answers there, or the test"
        ))
        .fault(Fault::RouteTest)
}

/// `rose answers`.
fn who(judged: &Judgment) -> String {
    let agent = judged.answered_by();
    format!("{} answers", agent.map_or(NOBODY, |agent| agent.as_str()))
}

/// The reason for an answer or for silence.
pub(crate) fn why(judged: &Judgment) -> String {
    let rule = &judged.resolved.route.rule;
    match (judged.verdict, &judged.not_for_you) {
        (Verdict::Admit, None) => format!("because of {rule}"),
        (Verdict::Admit, Some(closed)) => closed.to_string(),
        (Verdict::Hint, _) => "a guest gets a pairing code in a private chat".to_owned(),
        (Verdict::TellUnbound, _) => access::PLACE_CLOSED.to_owned(),
        (Verdict::Observe, _) => access::NOT_ADDRESSED.to_owned(),
        (Verdict::Ignore(reason), _) => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Secrets, Source, draft};
    use crate::home::check as check_all;

    const RULES: &str = r#"
[access]
owners = ["telegram:11"]
[people.bob]
ids = ["telegram:12"]
role = "member"
[agents.rose]
[agents.staff]
who = "owner"
[[bindings]]
match = "telegram:topic:-100:7"
agent = "rose"
[[bindings]]
match = "telegram:topic:-100:*"
name = "release *"
agent = "staff"
[[bindings]]
match = "telegram:group:-200"
agent = "rose"
require_mention = false
[[bindings]]
match = "discord:guild:8"
roles = [9]
agent = "rose"
"#;

    /// The problems of the rules with this test.
    fn problems(test: &str) -> Vec<Problem> {
        let home = tempfile::tempdir().unwrap();
        let source = Source {
            path: "config.toml".into(),
            text: format!("{RULES}[[route_tests]]\n{}\n", test.replace("; ", "\n")),
        };
        let draft = draft(source, home.path(), Secrets::WherePresent);
        let checked = check_all(draft, home.path());
        checked
            .err()
            .map_or_else(Vec::new, |report| report.problems)
    }

    /// `test` expects the agent, and no other.
    fn check(test: &str, agent: &str) {
        let expecting = |agent: &str| problems(&format!("{test}; agent = \"{agent}\""));
        assert_eq!(expecting(agent), [], "{test}");
        for other in ["main", "rose", "staff", "nobody"] {
            if other != agent {
                let failed = expecting(other);
                let faults: Vec<Fault> = failed.iter().map(|problem| problem.fault).collect();
                assert_eq!(faults, [Fault::RouteTest], "{test}: {other}");
                let told = format!("{agent} answers, not {other}");
                assert!(failed[0].message.ends_with(&told), "{}", failed[0].message);
            }
        }
    }

    #[test]
    fn a_test_is_judged_as_the_gateway_judges_a_message() {
        check("place = \"telegram:topic:-100:7\"", "rose");
        check(
            "place = \"telegram:topic:-100:7\"; mention = false",
            "nobody",
        );
        check(
            "place = \"telegram:topic:-100:7\"; mention = false; reply = true",
            "rose",
        );
        check("place = \"telegram:topic:-100:8\"", "nobody");
        check(
            "place = \"telegram:topic:-100:8\"; topic = \"release 7\"",
            "staff",
        );
        check("place = \"telegram:group:-200\"; mention = false", "rose");
        check("place = \"telegram:dm:11\"", "main");
        check("place = \"telegram:dm:12\"", "main");
        check("place = \"telegram:dm:13\"", "nobody");
        check("place = \"telegram:dm:13\"; role = \"member\"", "main");
        check(
            "place = \"discord:channel:20\"; server = \"8\"; roles = [\"9\"]",
            "rose",
        );
        check(
            "place = \"discord:channel:20\"; server = 8; roles = [10]; person = \"discord:5\"",
            "nobody",
        );
        check("place = \"local:home\"", "main");
    }

    #[test]
    fn a_test_names_a_place_a_person_and_an_agent_that_are_there() {
        let told = |test: &str| {
            let problems = problems(test).into_iter();
            problems
                .map(|problem| problem.message)
                .collect::<Vec<_>>()
                .join("; ")
        };
        insta::assert_snapshot!(told("place = \"telegram:group\"; agent = \"main\""), @"`telegram:group` is not the key of a place");
        insta::assert_snapshot!(told("place = \"local:home\"; agent = \"ros\""), @"unknown agent `ros`");
        insta::assert_snapshot!(told("place = \"local:home\"; agent = \"main\"; person = \"eve\""), @"`eve` does not name a person");
        insta::assert_snapshot!(told("place = \"local:home\"; agent = \"main\"; text = \"/agent rose\""), @"a route test is about a message for an agent");
        assert_eq!(
            told("place = \"telegram:dm:12\"; agent = \"main\"; person = \"bob\""),
            ""
        );
    }

    /// Failing tests of rules with a problem would only repeat it.
    #[test]
    fn tests_are_not_run_on_rules_with_a_problem() {
        let problems = problems(
            "place = \"local:home\"; agent = \"rose\"; [[bindings]]; match = \"nowhere\"; agent = \"rose\"",
        );
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_ne!(problems[0].fault, Fault::RouteTest);
    }
}
