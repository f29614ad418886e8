use chrono::{FixedOffset, Utc};
use proptest::prelude::*;

use super::*;
use crate::access::Role;
use crate::agents::tests::agent_of;
use crate::config::{AgentLimits, ModelRef};
use crate::models::{Lineup, ModelMessage, Models, ToolCall};
use crate::tools::{Results, Scope, ToolBox};
use crate::turn::{Charge, Ran, Round, Run, Step, TurnError, TurnLimits, TurnRequest};

const NONE: Caps = Caps {
    tokens: None,
    cost: None,
};

/// S4.38
#[test]
fn a_day_is_over_at_its_limit_and_nearly_so_at_four_fifths() {
    let tokens = Caps {
        tokens: Some(1_000),
        ..NONE
    };
    let cost = Caps {
        cost: Some(Money(5_000_000)),
        ..NONE
    };
    let both = Caps {
        tokens: Some(1_000),
        cost: Some(Money(5_000_000)),
    };
    let check = |limits: Caps, tokens, micros, expected| {
        let spent = Spent {
            tokens,
            cost: Money(micros),
        };
        assert_eq!(
            verdict(Span::Day, &limits, spent),
            expected,
            "{limits:?} {spent:?}"
        );
    };
    check(NONE, u64::MAX, u64::MAX, Verdict::Fine);
    check(tokens, 0, 0, Verdict::Fine);
    check(tokens, 799, u64::MAX, Verdict::Fine);
    check(tokens, 800, 0, Verdict::Nearly(Limit::Tokens(Span::Day)));
    check(tokens, 999, 0, Verdict::Nearly(Limit::Tokens(Span::Day)));
    check(tokens, 1_000, 0, Verdict::Over(Limit::Tokens(Span::Day)));
    check(tokens, u64::MAX, 0, Verdict::Over(Limit::Tokens(Span::Day)));
    check(cost, u64::MAX, 3_999_999, Verdict::Fine);
    check(cost, 0, 4_000_000, Verdict::Nearly(Limit::Cost(Span::Day)));
    check(cost, 0, 5_000_000, Verdict::Over(Limit::Cost(Span::Day)));
    check(both, 900, 5_000_000, Verdict::Over(Limit::Cost(Span::Day)));
    check(
        both,
        1_000,
        4_500_000,
        Verdict::Over(Limit::Tokens(Span::Day)),
    );
    check(
        both,
        100,
        4_000_000,
        Verdict::Nearly(Limit::Cost(Span::Day)),
    );
}

#[test]
fn what_is_cached_has_its_own_price_and_is_not_paid_twice() {
    let price = Price {
        input: Money(2_500_000),
        output: Money(10_000_000),
        cached: Money(250_000),
    };
    let check = |input_tokens, cached_tokens, output_tokens, expected| {
        assert_eq!(
            cost(
                &price,
                Usage {
                    input_tokens,
                    output_tokens,
                    cached_tokens
                }
            ),
            Money(expected)
        );
    };
    check(0, 0, 0, 0);
    check(1_000_000, 0, 0, 2_500_000);
    check(1_000_000, 1_000_000, 0, 250_000);
    check(1_000_000, 400_000, 100_000, 1_500_000 + 100_000 + 1_000_000);
    check(1, 0, 0, 3);
    // A provider that reports nonsense costs no more than its output and what it calls cached
    // input.
    check(10, 20, 0, 3);
}

#[test]
fn a_day_is_the_day_on_the_wall() {
    let east = FixedOffset::east_opt(2 * 60 * 60).unwrap();
    let at = |text: &str| {
        DateTime::parse_from_rfc3339(text)
            .unwrap()
            .timestamp_millis()
    };
    let late = at("2026-03-01T23:30:00Z");
    assert_eq!(
        (day(&Utc, late).to_string(), day(&east, late).to_string()),
        ("2026-03-01".into(), "2026-03-02".into())
    );
    assert_eq!(Span::Day.end(&Utc, late), at("2026-03-02T00:00:00Z"));
    assert_eq!(Span::Day.end(&east, late), at("2026-03-02T22:00:00Z"));
}

/// A month is that of the calendar on the wall, whatever its length.
#[test]
fn a_month_ends_with_its_last_day() {
    let east = FixedOffset::east_opt(2 * 60 * 60).unwrap();
    let at = |text: &str| {
        DateTime::parse_from_rfc3339(text)
            .unwrap()
            .timestamp_millis()
    };
    let late = at("2026-02-28T23:30:00Z");
    let begin = |zone| Span::Month.begin(zone, late).to_string();
    assert_eq!(Span::Month.begin(&Utc, late).to_string(), "2026-02-01");
    assert_eq!(begin(&east), "2026-03-01");
    assert_eq!(Span::Month.end(&Utc, late), at("2026-03-01T00:00:00Z"));
    assert_eq!(Span::Month.end(&east, late), at("2026-03-31T22:00:00Z"));
    let december = at("2026-12-31T12:00:00Z");
    assert_eq!(Span::Month.end(&Utc, december), at("2027-01-01T00:00:00Z"));
}

#[test]
fn limits_read_well() {
    let zone = FixedOffset::east_opt(60 * 60).unwrap();
    let free_at = DateTime::parse_from_rfc3339("2026-02-28T23:00:00Z")
        .unwrap()
        .timestamp_millis();
    let told = |whose, limit| {
        Over {
            whose,
            limit,
            free_at,
        }
        .told(&zone, free_at - 19_500)
    };
    insta::assert_snapshot!(told(Whose::Agents, Limit::Tokens(Span::Day)), @"I've used up my tokens for today. Try again after 00:00 UTC+1.");
    insta::assert_snapshot!(told(Whose::Agents, Limit::Cost(Span::Day)), @"I've used up my money for today. Try again after 00:00 UTC+1.");
    insta::assert_snapshot!(told(Whose::Persons, Limit::Tokens(Span::Day)), @"You've used up your tokens for today. Try again after 00:00 UTC+1.");
    insta::assert_snapshot!(told(Whose::Persons, Limit::Cost(Span::Month)), @"You've used up your money for this month. Try again after 1 March, 00:00 UTC+1.");
    insta::assert_snapshot!(told(Whose::House, Limit::Cost(Span::Day)), @"All of us here have used up our money for today. Try again after 00:00 UTC+1.");
    insta::assert_snapshot!(told(Whose::Agents, Limit::TurnsPerMinute(1)), @"I've reached my limit of 1 answer a minute. Try again in 20 seconds.");
    insta::assert_snapshot!(told(Whose::Persons, Limit::TurnsPerMinute(2)), @"You've reached your limit of 2 answers a minute. Try again in 20 seconds.");
}

#[test]
fn a_wait_is_told_in_the_unit_people_would_use() {
    let check = |seconds, expected: &str| {
        assert_eq!(in_words(std::time::Duration::from_secs(seconds)), expected);
    };
    check(0, "1 second");
    check(1, "1 second");
    check(90, "90 seconds");
    check(91, "2 minutes");
    check(3_600, "60 minutes");
    check(7_200, "2 hours");
    check(200_000, "3 days");
}

/// A turn of the demo model, which wants a tool first.
fn run(limits: AgentLimits) -> Run {
    let scope = Scope {
        agent: std::sync::Arc::new(agent_of(std::path::Path::new("home"), "main")),
        place: "local:home".parse().unwrap(),
        former_place: None,
        person: "telegram:1".parse().unwrap(),
        ids: Vec::new(),
        role: Role::Guest,
        owns_house: false,
        parent: None,
        told_in: None,
        is_job: false,
        people: Default::default(),
        results: std::sync::Arc::new(Results::new(std::path::Path::new("home"))),
        read: Default::default(),
    };
    let messages = vec![ModelMessage::user("use now {}")];
    let lineup = Lineup {
        models: vec![ModelRef::Demo],
        settings: Default::default(),
        cache_key: String::new(),
    };
    let tools = ToolBox::standard().view(&scope.agent, scope.role);
    let limits = TurnLimits::of(&limits);
    Run::new(TurnRequest {
        lineup,
        system: "".into(),
        outline: Default::default(),
        messages,
        tools,
        scope,
        limits,
    })
}

#[tokio::test]
async fn a_guest_has_fewer_calls_in_a_round() {
    use futures_util::StreamExt;
    let run = run(AgentLimits::default());
    let call = |number: usize| ToolCall {
        id: number.to_string(),
        name: "now".into(),
        arguments: serde_json::json!({}),
    };
    let round = Round {
        text: String::new(),
        calls: (0..64).map(call).collect(),
        usage: Usage::default(),
        cut: None,
    };
    let ran: Vec<Ran> = run.call(&round).collect().await;
    let said = |ran: &Ran| ran.outcome.as_ref().expect("no panic").text.clone();
    let refused = ran.iter().filter(|ran| said(ran).contains("was not run"));
    let mut refused: Vec<usize> = refused.map(|ran| ran.number).collect();
    refused.sort_unstable();
    assert_eq!(ran.len(), 64, "each call has a result");
    assert_eq!(refused, (16..64).collect::<Vec<_>>());
}

/// S3.16: what another agent spends for a turn counts against it and stops it.
#[tokio::test]
async fn a_turn_stops_when_others_have_spent_its_tokens() {
    let models = Models::new(&Default::default());
    let (events, _listens) = tokio::sync::mpsc::channel(8);
    let mut run = run(AgentLimits {
        tokens_per_turn: Some(1_000),
        ..AgentLimits::default()
    });
    assert!(matches!(
        run.ask(&models, &events).await,
        Ok(Step::Wants(_))
    ));
    let own = run.usage();
    assert!(tokens(own) > 0, "a call counts before its tools have run");
    run.charge(Charge {
        steps: 0,
        usage: Usage {
            input_tokens: 990,
            output_tokens: 10,
            cached_tokens: 0,
        },
    });
    assert_eq!(
        run.ask(&models, &events).await.unwrap_err(),
        TurnError::TooManyTokens(1_000)
    );
    assert_eq!(run.usage(), own, "whoever spent it has written it down");
}

#[tokio::test(start_paused = true)]
async fn time_counts_but_for_the_time_aside() {
    let minute = std::time::Duration::from_secs(60);
    let mut run = run(AgentLimits {
        max_minutes: 3,
        ..AgentLimits::default()
    });
    tokio::time::advance(minute).await;
    run.put_aside();
    tokio::time::advance(10 * minute).await;
    run.take_up();
    assert_eq!(run.time_left(), 2 * minute);
    tokio::time::advance(5 * minute).await;
    assert!(run.time_left().is_zero());
}

proptest! {
    /// More spending never helps.
    #[test]
    fn verdicts_only_get_worse(most in 1..u64::MAX, one in any::<u64>(), other in any::<u64>()) {
        let rank = |tokens| match verdict(Span::Day, &Caps { tokens: Some(most), ..NONE }, Spent { tokens, ..Spent::default() }) {
            Verdict::Fine => 0,
            Verdict::Nearly(_) => 1,
            Verdict::Over(_) => 2,
        };
        prop_assert!(rank(one.min(other)) <= rank(one.max(other)));
        prop_assert_eq!(rank(one) == 2, one >= most);
    }
}
