//! Rows that are cleaned away leave their ids behind: nothing new is ever called what something old
//! was called.

use serde_json::json;

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB};

const OPEN: &str = "[access]\nowners = [\"telegram:111\", \"telegram:222\"]\n";

fn spawn(task: &str) -> Script {
    Script::ToolCalls(vec![("spawn".to_owned(), json!({ "task": task }))])
}

/// Two weeks later the inbox is empty, and the subagents of back then are still kept.
#[tokio::test]
async fn the_result_of_an_old_subagent_is_not_given_to_somebody_else() {
    let house = House::new(OPEN).await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    let gateway = house.open().await;
    house.model.enqueue(spawn("count the money"));
    house
        .model
        .enqueue_when("count the money", Script::text("Alice has 7 coins."));
    house.model.enqueue(Script::text("Counted."));
    alice.says("how rich am I").await;
    house.close(gateway).await;
    let newest: i64 = house
        .ask("SELECT max(id) FROM inbox")
        .parse()
        .expect("a number");
    house.tell("DELETE FROM inbox");

    let gateway = house.open().await;
    house.model.enqueue(spawn("count the apples"));
    house
        .model
        .enqueue_when("count the apples", Script::text("There are 3 apples."));
    house.model.enqueue(Script::text("Counted, too."));
    bob.says("how many apples").await;
    house.settled(&gateway).await;
    let last = house.model.last_request();
    let results: Vec<&str> = last
        .messages
        .iter()
        .filter(|(role, _)| role == "tool")
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(results, ["There are 3 apples."]);
    assert_eq!(bob.texts(), ["Counted, too."]);
    let first: i64 = house
        .ask("SELECT min(id) FROM inbox")
        .parse()
        .expect("a number");
    assert!(first > newest, "{first} after {newest}");
    gateway.shutdown().await;
}
