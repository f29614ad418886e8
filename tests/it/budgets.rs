//! What agents and people may spend, what is counted of it, and what is told about it.

use serde_json::json;

use crate::support::House;
use crate::support::fake_model::{Script, Tokens};
use crate::support::fake_telegram::{ALICE, BOB};

const OPEN: &str = "[access]\nowners = [\"telegram:111\"]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n";
/// What every answer of the fake model costs.
const A_CALL: u64 = 105 + 7;

/// `limits` of main, after `[access]` and its keys.
fn limited(limits: &str) -> String {
    format!("{OPEN}[agents.main.limits]\n{limits}\n")
}

fn look_at_the_clock() -> Script {
    Script::tool_call("now", json!({}))
}

/// S4.38: one clear message at the cap, in each place, and the row says it each time.
#[tokio::test]
async fn at_the_daily_cap_a_place_is_told_once_and_the_owners_were_warned_before() {
    let house = House::new(&limited("tokens_per_day = 250")).await;
    let gateway = house.open().await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    for text in ["one", "two", "three", "four", "five"] {
        bob.says(text).await;
        house.settled(&gateway).await;
    }
    let told = "I've used up my tokens for today. Try again after 00:00 UTC.";
    assert_eq!(bob.texts(), ["re: one", "re: two", "re: three", told]);
    alice.says("and me").await;
    alice.says("and me").await;
    house.settled(&gateway).await;
    let texts = alice.texts();
    assert_eq!(texts[2..], [told], "an agent's limit is for owners too");
    insta::assert_snapshot!(texts[1], @"Main has used up today's tokens: 336 of 250, so it stops answering until tomorrow. /allow main 50000 tokens today gives more; the limit is in config.toml, under [agents.main.limits].");
    insta::assert_snapshot!(texts[0], @"Main has used 89 % of today's tokens: 224 of 250. At 100 % it stops answering until tomorrow. /usage shows who asked; the limit is in config.toml, under [agents.main.limits].");
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE outcome = 'over budget' AND state = 'refused'"),
        "4"
    );
    assert_eq!(house.ask("SELECT count(*) FROM turns"), "3");
    assert_eq!(house.model.journal().len(), 3);

    // Tomorrow it goes on, and whoever was told today may be told again.
    house.tell("UPDATE budgets SET day = '2020-01-01'");
    house.tell("UPDATE budget_notices SET until = 1");
    bob.says("six").await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts().last().map(String::as_str), Some("re: six"));
    gateway.shutdown().await;
}

/// A restart neither forgets what was spent nor what was told.
#[tokio::test]
async fn what_was_spent_counts_after_a_restart() {
    let house = House::new(&limited("tokens_per_day = 100")).await;
    let (bob, _owner) = (house.telegram.dm(BOB), house.telegram.dm(ALICE));
    for text in ["one", "two", "three"] {
        let gateway = house.open().await;
        bob.says(text).await;
        house.close(gateway).await;
    }
    assert_eq!(bob.texts().len(), 2);
    assert_eq!(house.model.journal().len(), 1);
}

#[tokio::test]
async fn money_is_counted_with_the_prices_of_the_model() {
    let prices = "prices = { any = { input = 2.5, output = 10, cached = 0.25 } }\n";
    let house = House::new(&format!("{prices}{}", limited("cost_per_day = 2"))).await;
    house.model.report_tokens(Tokens {
        input: 1_000_000,
        cached: 800_000,
        output: 50_000,
    });
    let gateway = house.open().await;
    let (bob, _owner) = (house.telegram.dm(BOB), house.telegram.dm(ALICE));
    for text in ["one", "two", "three", "four"] {
        bob.says(text).await;
        house.settled(&gateway).await;
    }
    assert_eq!(
        house.ask("SELECT tokens || ' ' || cost_micros FROM budgets WHERE spender LIKE 'agent:%'"),
        "2100000 2400000"
    );
    assert_eq!(
        bob.texts(),
        [
            "re: one",
            "re: two",
            "I've used up my money for today. Try again after 00:00 UTC."
        ]
    );
    gateway.shutdown().await;
}

/// A turn that has gone over its agent's day is stopped between two rounds.
#[tokio::test]
async fn a_long_turn_counts_while_it_runs_and_is_stopped_at_the_cap() {
    let house = House::new(&limited("tokens_per_day = 200")).await;
    house.model.answer_with(|_| look_at_the_clock());
    let gateway = house.open().await;
    let (bob, _owner) = (house.telegram.dm(BOB), house.telegram.dm(ALICE));
    bob.says("go on for ever").await;
    house.settled(&gateway).await;
    insta::assert_snapshot!(bob.texts().join("\n"), @"I had to stop in the middle. I've used up my tokens for today. Try again after 00:00 UTC.");
    assert_eq!(
        house.ask("SELECT outcome || ' ' || steps FROM turns"),
        "over budget 2"
    );
    assert_eq!(
        house.ask("SELECT tokens FROM budgets WHERE spender LIKE 'agent:%'"),
        (2 * A_CALL).to_string()
    );
    gateway.shutdown().await;
}

/// S2.15: every turn has one row with start, end and outcome, and the ledger has exactly what the
/// rows have.
#[tokio::test]
async fn every_turn_has_one_row_however_it_ends() {
    let house = House::new(&limited("max_steps = 2\ntokens_per_turn = 10_000")).await;
    let gateway = house.open().await;
    let (alice, group) = (house.telegram.dm(ALICE), house.telegram.supergroup(-1001));
    house
        .model
        .enqueue_when("refuse", Script::status(400, "{}"));
    for text in ["plain", "refuse"] {
        alice.says(text).await;
        house.settled(&gateway).await;
    }
    house.model.enqueue(look_at_the_clock());
    house.model.enqueue(look_at_the_clock());
    alice.says("two rounds").await;
    house.settled(&gateway).await;
    let text = "This answer takes its time, so that one can see it being written, piece by piece, and never ends";
    house.model.enqueue(Script::Pause {
        text: text.into(),
        after: 12,
    });
    group.says(ALICE, "tell me").await;
    group.wait_for_sent(1).await;
    group.says(ALICE, "/stop").await;
    house.settled(&gateway).await;
    let outcomes = house
        .ask("SELECT group_concat(outcome, '; ') FROM (SELECT outcome FROM turns ORDER BY id)");
    insta::assert_snapshot!(outcomes, @"answered; the model provider refused: the request was not accepted (400); stopped after 2 steps without an answer; stopped");
    assert_eq!(
        house.ask("SELECT count(DISTINCT inbox_id) FROM turns WHERE started_at <= ended_at"),
        "4"
    );
    let same =
        "SELECT (SELECT sum(input_tokens + output_tokens) FROM turns) = (SELECT sum(input_tokens + output_tokens) FROM spending)
                   AND (SELECT count(*) FROM turns) = (SELECT sum(turns) FROM spending)";
    assert_eq!(house.ask(same), "1");
    assert_ne!(
        house.ask("SELECT output_tokens FROM turns ORDER BY id DESC LIMIT 1"),
        "0",
        "what was stopped has cost something"
    );
    gateway.shutdown().await;
}

/// What is stopped while its round is being written was counted with that round, if it was written
/// at all.
#[tokio::test]
async fn a_stop_while_a_round_is_written_does_not_count_it_twice() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    // The store takes its time over the stop and over the round, so that the round still waits when
    // the stop is done.
    house.tell(
        "CREATE VIEW slow AS WITH RECURSIVE numbers(number) AS
             (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 3000000) SELECT count(*) AS count FROM numbers",
    );
    house.tell(
        "CREATE TRIGGER slow_stop AFTER INSERT ON decisions BEGIN SELECT count FROM slow; END",
    );
    house
        .tell("CREATE TRIGGER slow_round AFTER INSERT ON rounds BEGIN SELECT count FROM slow; END");
    house.model.enqueue(look_at_the_clock().held());
    alice.says("the time").await;
    house.model.wait_for_requests(1).await;
    alice.says("/stop").await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox", "2")
        .await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        house.ask("SELECT group_concat(outcome) FROM turns"),
        "stopped"
    );
    let spent = "SELECT tokens FROM budgets WHERE spender = 'person:telegram:111'";
    assert_eq!(house.ask(spent), A_CALL.to_string());
    assert_eq!(
        house.ask("SELECT count(*) FROM open_turns"),
        "0",
        "nothing is left of it"
    );
    gateway.shutdown().await;
}

/// A turn that is killed has spent what its rounds have spent, once.
#[tokio::test]
async fn a_kill_neither_loses_nor_doubles_what_was_spent() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(look_at_the_clock());
    house.model.enqueue(Script::text("never seen").held());
    alice.says("the time").await;
    house.model.wait_for_requests(2).await;
    process.kill().await;
    let spent = "SELECT tokens FROM budgets WHERE spender = 'person:telegram:111'";
    assert_eq!(house.ask(spent), A_CALL.to_string());
    let process = house.spawn().await;
    alice.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(house.ask(spent), (2 * A_CALL).to_string());
    assert_eq!(
        house.ask("SELECT input_tokens + output_tokens FROM turns"),
        (2 * A_CALL).to_string()
    );
    process.stop().await;
}

#[tokio::test]
async fn a_turn_that_uses_too_many_tokens_is_stopped() {
    let house = House::new(&limited("tokens_per_turn = 300")).await;
    house.model.answer_with(|_| look_at_the_clock());
    let gateway = house.open().await;
    let bob = house.telegram.dm(BOB);
    bob.says("go on for ever").await;
    house.settled(&gateway).await;
    insta::assert_snapshot!(bob.texts().join("\n"), @"This took more tokens than one answer may use, so I stopped. A smaller question may help.");
    assert_eq!(house.model.journal().len(), 3);
    gateway.shutdown().await;
}

/// S4.38: per person, and owners are not kept by it.
#[tokio::test]
async fn people_have_limits_of_their_own_and_owners_have_none() {
    let house = House::new(&format!(
        "{OPEN}[access.limits]\nturns_per_minute = 2\ntokens_per_day = 100_000\n"
    ))
    .await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    for number in 1..=4 {
        topic.says(BOB, &format!("bob {number}")).await;
        house.settled(&gateway).await;
        topic.says(ALICE, &format!("alice {number}")).await;
        house.settled(&gateway).await;
    }
    let texts = topic.texts();
    let answered = |who: &str| {
        texts
            .iter()
            .filter(|text| text.contains(&format!("] {who} ")))
            .count()
    };
    assert_eq!((answered("bob"), answered("alice")), (2, 4), "{texts:?}");
    let told: Vec<_> = texts
        .iter()
        .filter(|text| text.starts_with("You've reached your limit of 2 answers a minute."))
        .collect();
    assert_eq!(told.len(), 1, "{texts:?}");
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE outcome = 'over budget'"),
        "2"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn an_agent_may_answer_so_many_in_a_minute() {
    let house = House::new(&limited("turns_per_minute = 1")).await;
    let gateway = house.open().await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    for person in [&alice, &bob, &alice] {
        person.says("hello").await;
        house.settled(&gateway).await;
    }
    assert_eq!(house.model.journal().len(), 1);
    assert!(
        bob.texts()[0].starts_with("I've reached my limit of 1 answer a minute. Try again in ")
    );
    assert_eq!(alice.texts().len(), 2);
    gateway.shutdown().await;
}

/// Where people have budgets, what one of them asks is not answered at the cost of another.
#[tokio::test]
async fn people_with_budgets_are_not_answered_as_one() {
    let house = House::new(&format!(
        "{OPEN}[access.limits]\ntokens_per_day = 100_000\n"
    ))
    .await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let carol = crate::support::fake_telegram::CAROL;
    house.model.hold();
    topic.says(BOB, "begin").await;
    house.model.wait_for_open(1).await;
    topic.says(BOB, "one").await;
    topic.says(carol, "two").await;
    house.all_in_their_lanes().await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(topic.texts().len(), 3);
    assert_eq!(
        house.ask("SELECT tokens FROM budgets WHERE spender = 'person:telegram:222'"),
        (2 * A_CALL).to_string()
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn usage_tells_owners_everything_and_others_their_own() {
    let prices = "prices = { any = { input = 2.5, output = 10, cached = 0.25 } }\n";
    let house = House::new(&format!(
        "{prices}{OPEN}[access.limits]\ntokens_per_day = 1000\n[agents.rose]\nwho = \"guest\"\n"
    ))
    .await;
    let gateway = house.open().await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    bob.says("/agent rose").await;
    for place in [&alice, &bob] {
        place.says("hello").await;
        house.settled(&gateway).await;
    }
    bob.says("again").await;
    house.settled(&gateway).await;
    for place in [&alice, &bob] {
        place.says("/usage").await;
    }
    bob.says("/usage 30d").await;
    topic.says(ALICE, "/usage 7d").await;
    house.settled(&gateway).await;
    insta::assert_snapshot!(alice.texts().pop().unwrap_or_default(), @"
    Today: 3 turns, 336 tokens (270 cached), 0.0004 USD.

    By agent:
    • Rose: 2 turns, 224 tokens (180 cached), 0.0003 USD
    • Main: 1 turn, 112 tokens (90 cached), 0.0001 USD

    By place:
    • Bob's private chat (telegram:dm:222): 2 turns, 224 tokens (180 cached), 0.0003 USD
    • Alice's private chat (telegram:dm:111): 1 turn, 112 tokens (90 cached), 0.0001 USD

    By person:
    • Bob (telegram:222): 2 turns, 224 tokens (180 cached), 0.0003 USD
    • Alice (telegram:111): 1 turn, 112 tokens (90 cached), 0.0001 USD

    By model:
    • fake/any: 3 turns, 336 tokens (270 cached), 0.0004 USD
    ");
    insta::assert_snapshot!(bob.texts()[3..].join("\n---\n"), @"
    Today: 2 turns, 224 tokens (180 cached), 0.0003 USD.

    Limits:
    • you, today: 224 of 1,000 tokens

    By agent:
    • Rose: 2 turns, 224 tokens (180 cached), 0.0003 USD
    ---
    The last 30 days: 2 turns, 224 tokens (180 cached), 0.0003 USD.

    Limits:
    • you, today: 224 of 1,000 tokens

    By agent:
    • Rose: 2 turns, 224 tokens (180 cached), 0.0003 USD
    ");
    insta::assert_snapshot!(topic.texts().pop().unwrap_or_default(), @"
    The last 7 days: 3 turns, 336 tokens (270 cached), 0.0004 USD.

    By agent:
    • Rose: 2 turns, 224 tokens (180 cached), 0.0003 USD
    • Main: 1 turn, 112 tokens (90 cached), 0.0001 USD

    By model:
    • fake/any: 3 turns, 336 tokens (270 cached), 0.0004 USD

    In a private chat I also show it by place and by person.
    ");
    gateway.shutdown().await;

    let usage = async |arguments: &[&str]| {
        let output = crate::support::house::parlor(house.home.path())
            .args(arguments)
            .output()
            .await
            .expect("it runs");
        let today = chrono::Local::now().date_naive().to_string();
        let text = String::from_utf8(output.stdout).expect("text");
        text.replace(&today, "DAY")
    };
    insta::assert_snapshot!(usage(&["usage"]).await, @"
    Today (DAY): 3 turns, 336 tokens, 0.0004 USD

    AGENT        TURNS  INPUT  CACHED  OUTPUT        COST
    Rose (rose)      2    210     180      14  0.0003 USD
    Main (main)      1    105      90       7  0.0001 USD

    PLACE                                   TURNS  INPUT  CACHED  OUTPUT        COST
    Bob's private chat (telegram:dm:222)        2    210     180      14  0.0003 USD
    Alice's private chat (telegram:dm:111)      1    105      90       7  0.0001 USD

    PERSON                TURNS  INPUT  CACHED  OUTPUT        COST
    Bob (telegram:222)        2    210     180      14  0.0003 USD
    Alice (telegram:111)      1    105      90       7  0.0001 USD

    MODEL     TURNS  INPUT  CACHED  OUTPUT        COST
    fake/any      3    315     270      21  0.0004 USD
    ");
    insta::assert_snapshot!(usage(&["usage", "--by", "agent", "--json"]).await, @r#"
    {
      "period": "today",
      "since": "DAY",
      "total": {
        "turns": 3,
        "input_tokens": 315,
        "cached_tokens": 270,
        "output_tokens": 21,
        "cost": {
          "amount": "0.00039",
          "currency": "USD"
        },
        "unpriced_tokens": 0
      },
      "by": {
        "agent": [
          {
            "id": "rose",
            "name": "Rose",
            "turns": 2,
            "input_tokens": 210,
            "cached_tokens": 180,
            "output_tokens": 14,
            "cost": {
              "amount": "0.00026",
              "currency": "USD"
            },
            "unpriced_tokens": 0
          },
          {
            "id": "main",
            "name": "Main",
            "turns": 1,
            "input_tokens": 105,
            "cached_tokens": 90,
            "output_tokens": 7,
            "cost": {
              "amount": "0.00013",
              "currency": "USD"
            },
            "unpriced_tokens": 0
          }
        ]
      },
      "limits": []
    }
    "#);
    insta::assert_snapshot!(usage(&["usage", "--since", "3d", "--by", "person", "--csv"]).await, @"
    by,id,name,turns,input_tokens,cached_tokens,output_tokens,cost,currency,unpriced_tokens
    person,telegram:222,Bob,2,210,180,14,0.00026,USD,0
    person,telegram:111,Alice,1,105,90,7,0.00013,USD,0
    ");
    house.tell("DELETE FROM spending");
    assert_eq!(usage(&["usage"]).await, "Today (DAY): nothing was used.\n");
}

/// A month is counted over days, and told as a month.
#[tokio::test]
async fn a_monthly_cap_counts_all_days_of_the_month_and_survives_a_restart() {
    let house = House::new(&limited("tokens_per_month = 300")).await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    for text in ["one", "two", "three", "four"] {
        let gateway = house.open().await;
        bob.says(text).await;
        house.close(gateway).await;
        // The day is another one, and the month the same.
        house.tell("DELETE FROM budgets");
    }
    assert_eq!(house.model.journal().len(), 3);
    let told = bob.texts().pop().expect("a reply");
    assert!(
        told.starts_with("I've used up my tokens for this month. Try again after 1 "),
        "{told}"
    );
    insta::assert_snapshot!(alice.texts().join("\n"), @"Main has used up this month's tokens: 336 of 300, so it stops answering until next month. /allow main 50000 tokens this month gives more; the limit is in config.toml, under [agents.main.limits].");
    house.tell("UPDATE month_budgets SET month = '2020-01'");
    house.tell("UPDATE budget_notices SET until = 1");
    let gateway = house.open().await;
    bob.says("five").await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts().last().map(String::as_str), Some("re: five"));
    gateway.shutdown().await;
}

/// S4.38: turns of different agents and people at the same time stay at the cap of the house, by
/// day and by month.
#[tokio::test]
async fn parallel_turns_cannot_pass_a_cap_of_the_house_or_of_a_month() {
    for limits in [
        "[limits]\ntokens_per_day = 1000\n",
        "[limits]\ntokens_per_month = 1000\n",
        "[agents.main.limits]\ntokens_per_month = 1000\n[agents.rose.limits]\ntokens_per_day = 1\n",
    ] {
        let config = format!(
            "{OPEN}[agents.rose]\nwho = \"guest\"\n{limits}[[bindings]]\nmatch = \"telegram:topic:-1001:2\"\nagent = \"rose\"\n"
        );
        let config = if limits.contains("agents.rose") {
            config.replace("[agents.rose]\nwho = \"guest\"\n", "")
        } else {
            config
        };
        let house = House::new(&config).await;
        house.model.report_tokens(Tokens {
            input: 983,
            cached: 0,
            output: 7,
        });
        let gateway = house.open().await;
        let forum = house.telegram.forum(-1001);
        // Rose has nothing to do in the third case.
        let first = if limits.contains("agents.rose") { 3 } else { 2 };
        let topics: Vec<_> = (first..14)
            .map(|id| forum.topic(id, &format!("Topic {id}")))
            .collect();
        house.model.hold();
        for topic in &topics {
            topic.says(ALICE, "a question").await;
        }
        house.all_in_their_lanes().await;
        house.model.wait_for_open(1).await;
        house.model.release();
        house.settled(&gateway).await;
        assert_eq!(house.model.journal().len(), 2, "{limits}");
        let spent = house.ask("SELECT tokens FROM month_budgets WHERE spender = 'house'");
        assert_eq!(
            spent,
            (2 * 990).to_string(),
            "the call that goes over is the last"
        );
        gateway.shutdown().await;
    }
}

/// A killed turn has counted once for the house and the month.
#[tokio::test]
async fn a_kill_neither_loses_nor_doubles_for_the_month_and_the_house() {
    let house = House::new(&format!("{OPEN}[limits]\ntokens_per_month = 100_000\n")).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(look_at_the_clock());
    house.model.enqueue(Script::text("never seen").held());
    alice.says("the time").await;
    house.model.wait_for_requests(2).await;
    process.kill().await;
    let spent = "SELECT (SELECT tokens FROM month_budgets WHERE spender = 'house') || ' ' ||
        (SELECT tokens FROM budgets WHERE spender = 'house') || ' ' ||
        (SELECT tokens FROM month_budgets WHERE spender = 'person:telegram:111')";
    assert_eq!(house.ask(spent), format!("{A_CALL} {A_CALL} {A_CALL}"));
    let process = house.spawn().await;
    alice.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    let twice = 2 * A_CALL;
    assert_eq!(house.ask(spent), format!("{twice} {twice} {twice}"));
    process.stop().await;
}

/// `/allow` counts with the next message, is shown and audited, and only where there is a limit.
#[tokio::test]
async fn an_owner_allows_more_for_today_or_this_month() {
    let house = House::new(&format!(
        "{}[limits]\ntokens_per_month = 100_000\n[access.limits.guest]\ntokens_per_day = 1_000\n",
        limited("tokens_per_day = 100")
    ))
    .await;
    let gateway = house.open().await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    let says = async |text: &str| {
        alice.says(text).await;
        house.settled(&gateway).await;
        alice.texts().pop().expect("a reply")
    };
    for text in ["one", "two"] {
        bob.says(text).await;
        house.settled(&gateway).await;
    }
    assert!(
        bob.texts()[1].starts_with("I've used up my tokens"),
        "{:?}",
        bob.texts()
    );
    let mut told = Vec::new();
    for line in [
        "/allow main 2.00 today",
        "/allow main 50000",
        "/allow mainn 50 tokens",
        "/allow main lots",
        "/allow telegram:111 50 tokens today",
        "/allow telegram:222 50 tokens today",
        "/allow house 5000 tokens this month",
        "/allow main 50 tokens today",
    ] {
        told.push(says(line).await);
    }
    insta::assert_snapshot!(told.join("\n"), @"
    main has no limit on money today that could be raised. There are limits on tokens today: /allow main 50000 tokens today.
    main has no limit on money today that could be raised. There are limits on tokens today: /allow main 50000 tokens today.
    No agent and no person is called mainn. A person is named by an id, such as telegram:12345678; house is everybody.
    Write who gets how much: /allow rose 2.00 today, /allow rose 50000 tokens today or /allow house 5 this month.
    telegram:111 is an owner, and owners have no limits of their own.
    Bob (telegram:222) may spend 50 tokens more today: 112 of 1,050 tokens so far. Tomorrow the limit of config.toml counts again.
    The house may spend 5,000 tokens more this month: 112 of 105,000 tokens so far. Next month the limit of config.toml counts again.
    main may spend 50 tokens more today: 112 of 150 tokens so far. Tomorrow the limit of config.toml counts again.
    ");
    assert_eq!(bob.texts().len(), 2, "nobody is answered by itself");
    bob.says("three").await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts().last().map(String::as_str), Some("re: three"));
    bob.says("four").await;
    house.settled(&gateway).await;
    assert!(
        bob.texts()[3].starts_with("I've used up my tokens"),
        "told anew"
    );
    let usage = says("/usage").await;
    let limits = usage.split("Limits:\n").nth(1).expect("limits");
    insta::assert_snapshot!(limits.split("\n\n").next().expect("lines"), @"
    • the house, this month: 224 of 105,000 tokens (5,000 tokens more allowed)
    • Main, today: 224 of 150 tokens (50 tokens more allowed)
    ");
    // The same on the command line, beside the gateway.
    let home = house.home.path();
    let ran = crate::cli::run(home, &["allow", "main", "200", "tokens", "today"]).await;
    insta::assert_snapshot!(ran.stdout, @"main may spend 200 tokens more today: 224 of 350 tokens so far. Tomorrow the limit of config.toml counts again.");
    bob.says("five").await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts().last().map(String::as_str), Some("re: five"));
    let usage = crate::cli::run(home, &["usage", "--by", "agent"])
        .await
        .stdout;
    insta::assert_snapshot!(usage.split("Limits:\n").nth(1).expect("limits"), @"
    - house, this month: 336 of 105,000 tokens (5,000 tokens more allowed)
    - main, today: 336 of 350 tokens (250 tokens more allowed)

    Models without a price in config.toml were used, so costs leave them out. Prices go to [providers.<name>.prices], per million tokens.
    ");
    let audit = "SELECT group_concat(actor || ' ' || coalesce(agent, subject) || ': ' || before || ' > ' || after, '; ') FROM audit WHERE action = 'allow'";
    insta::assert_snapshot!(house.ask(audit), @"telegram:111 telegram:222: 1000 tokens today > 1050 tokens today; telegram:111 house: 100000 tokens this month > 105000 tokens this month; telegram:111 main: 100 tokens today > 150 tokens today; cli main: 150 tokens today > 350 tokens today");
    gateway.shutdown().await;
}

/// Nothing is begun that nobody waits for; people are answered, also after a restart.
#[tokio::test]
async fn paused_background_work_waits_and_people_do_not() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let says = async |gateway: &parlor::gateway::Gateway, text: &str| {
        alice.says(text).await;
        house.settled(gateway).await;
        alice.texts().pop().expect("a reply")
    };
    insta::assert_snapshot!(says(&gateway, "/pause background").await, @"Background work is paused: no summaries are made, agents begin no subagents that nobody waits for, and jobs rest. Jobs that come once, such as reminders, run after the pause; others skip their times. People are answered as before, and what has begun is finished. /resume background goes on with it.");
    insta::assert_snapshot!(says(&gateway, "/pause background").await, @"Background work is paused already. /resume background goes on with it.");
    gateway.shutdown().await;
    let gateway = house.open().await;
    let status = says(&gateway, "/status").await;
    assert!(
        status.contains("Background work is paused, since"),
        "{status}"
    );
    let spawn = |wait| Script::tool_call("spawn", json!({ "task": "read the news", "wait": wait }));
    house.model.enqueue(spawn(false));
    says(&gateway, "keep me posted").await;
    let result = house.model.last_request();
    insta::assert_snapshot!(result.results()[0], @"Nothing was started: an owner has paused background work. Do it yourself now, or wait for the result (`wait` true).");
    assert_eq!(house.ask("SELECT count(*) FROM subagents"), "0");
    house.model.enqueue(spawn(true));
    says(&gateway, "and now").await;
    assert_eq!(
        house.ask("SELECT count(*) FROM subagents"),
        "1",
        "a person waits for it"
    );
    let home = house.home.path();
    let ran = crate::cli::run(home, &["resume", "background"]).await;
    assert!(
        ran.stdout.starts_with("Background work goes on"),
        "{}",
        ran.stdout
    );
    house.model.enqueue(spawn(false));
    says(&gateway, "keep me posted").await;
    assert_eq!(house.ask("SELECT count(*) FROM subagents"), "2");
    insta::assert_snapshot!(says(&gateway, "/resume background").await, @"Background work is not paused.");
    assert_eq!(
        house.ask("SELECT group_concat(action || ' ' || actor || ' ' || subject) FROM audit"),
        "pause telegram:111 background,resume cli background"
    );
    gateway.shutdown().await;
}
