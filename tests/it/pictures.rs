//! Pictures that people send, as models get to see them or read about them.

use serde_json::{Value, json};

use crate::support::House;
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::{ALICE, Dm};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture";
const JPEG: &[u8] = b"\xFF\xD8\xFF\xE0\x00\x10JFIF and so on";
const OPEN: &str = "[access]\ndms = \"open\"\n";

/// `keys` stand under the provider.
async fn house(keys: &str, rest: &str) -> (House, Dm) {
    let house = House::new(&format!("{keys}\n{OPEN}{rest}")).await;
    let alice = house.telegram.dm(ALICE);
    (house, alice)
}

fn photo(file_id: &str) -> Value {
    json!([{ "file_id": file_id, "file_unique_id": file_id, "width": 4, "height": 3 }])
}

fn document(file_id: &str, name: &str) -> Value {
    json!({ "file_id": file_id, "file_unique_id": file_id, "file_name": name })
}

/// The addresses of all pictures in a request.
fn pictures(request: &Request) -> Vec<String> {
    let messages = request.raw["messages"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let parts = messages
        .iter()
        .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    parts
        .filter_map(|part| part.pointer("/image_url/url")?.as_str().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn a_model_that_sees_is_shown_the_picture_it_is_asked_about() {
    let (house, alice) = house("vision = true", "").await;
    let gateway = house.open().await;
    house.telegram.keeps_file("f", JPEG);
    alice
        .says("")
        .without("text")
        .with("photo", photo("f"))
        .with("caption", json!("what is this?"))
        .await;
    house.settled(&gateway).await;
    let request = house.model.last_request();
    let expected = "data:image/jpeg;base64,/9j/4AAQSkZJRiBhbmQgc28gb24=";
    assert_eq!(pictures(&request), [expected]);
    let words = request.last_text().to_owned();
    assert!(
        words.starts_with("[photo, 4×3, saved as inbox/")
            && words.ends_with("-photo.jpg] what is this?"),
        "{words}"
    );

    alice.says("and now?").await;
    house.settled(&gateway).await;
    let request = house.model.last_request();
    assert_eq!(
        pictures(&request),
        [] as [&str; 0],
        "history has words only"
    );
    assert_eq!(request.messages[0].1, words);
    gateway.shutdown().await;
}

#[tokio::test]
async fn files_are_known_by_what_is_in_them() {
    let (house, alice) = house("vision = [\"any\"]", "").await;
    let gateway = house.open().await;
    house.telegram.keeps_file("f", PNG);
    house.telegram.keeps_file("g", b"%PDF-1.7");
    alice
        .says("")
        .without("text")
        .with("document", document("f", "scan.dat"))
        .await;
    alice.wait_for_sent(1).await;
    assert!(
        pictures(&house.model.last_request())[0]
            .starts_with("data:image/png;base64,iVBORw0KGgpub3Q")
    );
    alice
        .says("")
        .without("text")
        .with("document", document("g", "photo.png"))
        .await;
    alice.wait_for_sent(2).await;
    assert_eq!(pictures(&house.model.last_request()), [] as [&str; 0]);
    house.close(gateway).await;
}

#[tokio::test]
async fn a_model_that_does_not_see_reads_where_the_picture_is() {
    // Nothing in the name `any` says that it sees.
    let (house, alice) = house("", "").await;
    let gateway = house.open().await;
    house.telegram.keeps_file("f", JPEG);
    alice
        .says("")
        .without("text")
        .with("photo", photo("f"))
        .await;
    house.settled(&gateway).await;
    let request = house.model.last_request();
    assert_eq!(pictures(&request), [] as [&str; 0]);
    assert!(
        request.last_text().ends_with("-photo.jpg]"),
        "{}",
        request.last_text()
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn what_is_too_large_or_too_many_is_told() {
    let (house, alice) = house("vision = true", "").await;
    let gateway = house.open().await;
    let mut large = PNG.to_vec();
    large.resize(3_500_001, 0);
    house.telegram.keeps_file("large", &large);
    alice
        .says("")
        .without("text")
        .with("document", document("large", "map.png"))
        .await;
    let told = alice.wait_for_sent(1).await.text;
    assert!(
        told.ends_with("-map.png, not shown: larger than 3.5 MB]"),
        "{told}"
    );
    assert_eq!(pictures(&house.model.last_request()).len(), 0);

    house.telegram.keeps_file("f", PNG);
    for _ in 0..11 {
        alice
            .says("")
            .without("text")
            .with("photo", photo("f"))
            .with("media_group_id", json!("77"))
            .await;
    }
    let told = alice.wait_for_sent(2).await.text;
    assert!(
        told.ends_with("-photo.jpg, not shown: more than 10 pictures]"),
        "{told}"
    );
    assert_eq!(pictures(&house.model.last_request()).len(), 10);
    house.close(gateway).await;
}

#[tokio::test]
async fn a_fallback_that_does_not_see_gets_the_words() {
    let (house, alice) = house(
        "vision = [\"any\"]",
        "[agents.main]\nfallback = [\"fake/blind\"]\n",
    )
    .await;
    let gateway = house.open().await;
    house.model.enqueue(Script::status(404, "{}"));
    house.telegram.keeps_file("f", JPEG);
    alice
        .says("")
        .without("text")
        .with("photo", photo("f"))
        .await;
    house.settled(&gateway).await;
    let asked = house.model.journal();
    let seen: Vec<(&str, usize)> = asked
        .iter()
        .map(|request| (request.model.as_str(), pictures(request).len()))
        .collect();
    assert_eq!(seen, [("any", 1), ("blind", 0)]);
    assert!(
        alice.texts()[0].starts_with("re: [photo, 4×3, saved as"),
        "{:?}",
        alice.texts()
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn the_demo_model_says_that_it_got_a_picture() {
    let (house, alice) = house("", "[agents.main]\nmodel = \"demo\"\n").await;
    let gateway = house.open().await;
    house.telegram.keeps_file("f", JPEG);
    alice
        .says("")
        .without("text")
        .with("photo", photo("f"))
        .await;
    house.settled(&gateway).await;
    assert!(
        alice.texts()[0].contains("and showed me a picture."),
        "{:?}",
        alice.texts()
    );
    gateway.shutdown().await;
}
