//! People, roles and ids granted while the gateway runs, by the command line beside it and in chat.

use std::path::Path;

use serde_json::Value;

use crate::cli::run;
use crate::first_minute::code_in;
use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Dm, buttons};

/// Alice owns the house, Carol has a role in the file, Dan only ids; Rose is for admins.
const HOUSE: &str = r#"[access]
owners = ["telegram:111"]
[people.carol]
ids = ["telegram:333"]
role = "member"
agents = { main = "member" }
[people.dan]
ids = ["telegram:444"]
[agents.main]
[agents.rose]
name = "Rose"
who = "admin"
"#;

async fn ran(home: &Path, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ran = run(home, &words).await;
    assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
    ran.stdout.trim_end().to_owned()
}

async fn refused(home: &Path, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ran = run(home, &words).await;
    assert_ne!(ran.code, 0, "{line}: {}", ran.stdout);
    ran.stderr.trim_end().to_owned()
}

async fn last(house: &House, gateway: &parlor::gateway::Gateway, dm: &Dm, text: &str) -> String {
    dm.says(text).await;
    house.settled(gateway).await;
    dm.texts().pop().expect("a reply")
}

/// Waits for the answer to "let me in", which a person gets who is let in.
async fn first_answered(house: &House, gateway: &parlor::gateway::Gateway) {
    let answered = "SELECT count(*) FROM messages WHERE text = 're: let me in'";
    house.wait_until_stored(answered, "1").await;
    house.settled(gateway).await;
}

/// Whoever is put out of the house is told apart from whoever still has a role.
#[tokio::test]
async fn a_code_that_is_taken_back_leaves_a_granted_role_and_says_so() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (home, bob) = (house.home.path().to_owned(), house.telegram.dm(BOB));
    let code = code_in(&last(&house, &gateway, &bob, "let me in").await);
    ran(&home, &format!("pair {code} --yes")).await;
    ran(&home, "people role telegram:222 admin").await;
    let told = ran(&home, "pair revoke telegram:222").await;
    assert!(
        told.contains("but Bob is still an admin (granted by "),
        "{told}"
    );
    assert!(
        told.contains("`parlor people role telegram:222 guest` ends that"),
        "{told}"
    );
    let told = refused(&home, "pair revoke telegram:222").await;
    assert!(
        told.contains("was not let in with a code, but is an admin"),
        "{told}"
    );
    let alice = house.telegram.dm(ALICE);
    let told = last(&house, &gateway, &alice, "/unpair telegram:222").await;
    assert!(
        told.contains("/people role telegram:222 guest ends that"),
        "{told}"
    );
    let told = last(&house, &gateway, &bob, "/whoami").await;
    assert!(told.starts_with("You are Bob (admin)"), "{told}");
    house.close(gateway).await;
}

/// Codes and reports about config.toml are not for everybody who reads along.
#[tokio::test]
async fn codes_and_reports_are_shown_in_private_only() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let _owner = house.telegram.dm(ALICE);
    house.telegram.dm(BOB).says("let me in").await;
    topic.says(ALICE, "/pair").await;
    house.settled(&gateway).await;
    house.write("config.toml", &house.config().replace("who = ", "wh = "));
    topic.says(ALICE, "/reload").await;
    house.settled(&gateway).await;
    let texts = topic.texts();
    assert!(texts[0].starts_with("Others read along here"), "{texts:?}");
    assert!(
        texts[1].contains("only in a private chat with me"),
        "{texts:?}"
    );
    assert!(!texts[1].contains("wh ="), "{texts:?}");
    gateway.shutdown().await;
}

/// A verb beside the running gateway counts with the next message, and so does taking it back.
#[tokio::test]
async fn a_role_given_on_the_command_line_counts_at_once() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (home, bob) = (house.home.path().to_owned(), house.telegram.dm(BOB));
    let told = last(&house, &gateway, &bob, "let me in").await;
    assert!(told.starts_with("Hi Bob. This bot is private."), "{told}");
    insta::assert_snapshot!(ran(&home, "people role telegram:222 member").await, @"Bob (telegram:222) is a member now, and was a guest.");
    first_answered(&house, &gateway).await;
    assert_eq!(last(&house, &gateway, &bob, "hello").await, "re: hello");
    // The model has no price in the config, and is not told as free.
    let listed = ran(&home, "people").await;
    let mut lines = listed.lines();
    let line = lines.find(|line| line.contains("telegram:222"));
    assert!(
        line.is_some_and(|line| line.ends_with("price unknown")),
        "{listed}"
    );
    let told = last(&house, &gateway, &bob, "/agent rose").await;
    assert!(told.contains("Rose is for admins and owners"), "{told}");
    ran(&home, "people role telegram:222 admin --agent rose").await;
    let told = last(&house, &gateway, &bob, "/agent rose").await;
    assert!(told.contains("Rose"), "{told}");
    let told = last(&house, &gateway, &bob, "hi rose").await;
    assert!(told.ends_with("hi rose"), "{told}");
    let told = last(&house, &gateway, &bob, "/people").await;
    assert!(
        told.starts_with("Only owners and admins"),
        "an admin with one agent only: {told}"
    );
    ran(&home, "people role telegram:222 admin").await;
    // The same once more is no change, and leaves no row in the audit.
    let told = ran(&home, "people role telegram:222 admin").await;
    assert!(told.contains("stays an admin"), "{told}");
    let told = last(&house, &gateway, &bob, "/people").await;
    assert!(told.contains("telegram:222"), "{told}");
    insta::assert_snapshot!(ran(&home, "people remove telegram:222").await, @"Everything granted to Bob (telegram:222) is taken back. What was said stays.");
    let asked = house.model.journal().len();
    let told = last(&house, &gateway, &bob, "and now?").await;
    assert_ne!(told, "re: and now?");
    assert_eq!(house.model.journal().len(), asked, "no model reads a guest");
    let audit = "SELECT group_concat(action || ' ' || coalesce(agent, '') || ' ' || coalesce(before, '') || '>' || coalesce(after, ''), '; ')
        FROM audit WHERE actor = 'cli' AND subject = 'telegram:222'";
    insta::assert_snapshot!(house.ask(audit), @"role  guest>member; role rose member>admin; role  member>admin; person remove  admin>");
    house.close(gateway).await;
}

#[tokio::test]
async fn making_a_guest_says_what_guests_may() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let home = house.home.path().to_owned();
    house.telegram.dm(BOB).says("let me in").await;
    house.settled(&gateway).await;
    ran(&home, "people role telegram:222 member").await;
    first_answered(&house, &gateway).await;
    let told = ran(&home, "people role telegram:222 guest").await;
    assert!(
        told.contains("A guest can no longer write to the bot in private"),
        "{told}"
    );
    house.close(gateway).await;
}

/// The file counts first: verbs refuse to change what it says, and name the line.
#[tokio::test]
async fn what_the_file_fixes_is_not_changed_by_a_verb() {
    let house = House::new(HOUSE).await;
    house.open().await.shutdown().await;
    let home = house.home.path();
    let lines = [
        "people role telegram:111 member",
        "people role carol owner",
        "people role carol admin --agent main",
        "people remove carol",
        "people link dan telegram:333",
        "people link dan telegram:111",
        "people add carl --id telegram:333",
        "people add carol --id telegram:9",
        "people role caroll admin",
        "people role nobody-at-all admin",
        "people role local:home admin",
        "people role dan admin --agent roze",
        "people link telegram:5 telegram:5",
    ];
    let mut told = Vec::new();
    for line in lines {
        told.push(format!("{line}\n  {}", refused(home, line).await));
    }
    insta::assert_snapshot!(told.join("\n"), @"
    people role telegram:111 member
      error: telegram:111 is an owner: line 11 of config.toml says so, and the file counts before anything granted here. Change [access] owners.
    people role carol owner
      error: carol (telegram:333) is a member: line 14 of config.toml says so, and the file counts before anything granted here. Change that line.
    people role carol admin --agent main
      error: carol (telegram:333) is a member: line 15 of config.toml says so, and the file counts before anything granted here. Change that line.
    people remove carol
      error: carol (telegram:333) is a member: line 14 of config.toml says so, and the file counts before anything granted here. Change that line.
    people link dan telegram:333
      error: carol (telegram:333) is a person of their own: line 13 of config.toml says so, and the file counts before anything granted here. Change that line.
    people link dan telegram:111
      error: telegram:111 is an owner: line 11 of config.toml says so, and the file counts before anything granted here. Change [access] owners.
    people add carl --id telegram:333
      error: carol (telegram:333) is a person there: line 13 of config.toml says so, and the file counts before anything granted here. Change that line.
    people add carol --id telegram:9
      error: Somebody is called carol already.
    people role caroll admin
      error: Nobody is called caroll. Did you mean carol?
    people role nobody-at-all admin
      error: Nobody is called nobody-at-all. An id works too, such as telegram:12345678.
    people role local:home admin
      error: local:home is nobody's id.
    people role dan admin --agent roze
      error: No agent is called roze. Did you mean rose?
    people link telegram:5 telegram:5
      error: telegram:5 belongs to telegram:5 already.
    ");
    // What the file leaves open can be granted.
    insta::assert_snapshot!(ran(home, "people role dan admin").await, @"dan (telegram:444) is an admin now, and was a guest.");
    insta::assert_snapshot!(ran(home, "people role carol admin --agent rose").await, @"carol (telegram:333) is an admin now with rose, and was a member.");
    assert_eq!(house.ask("SELECT count(*) FROM person_roles"), "2");
    assert_eq!(house.ask("SELECT count(*) FROM audit"), "2");
}

/// A name on a platform can be anybody's: it shows a person, and gives nobody a role.
#[tokio::test]
async fn people_are_listed_and_shown_with_where_everything_comes_from() {
    let house = House::new(&HOUSE.replace("owners =", "dms = \"open\"\nowners =")).await;
    let gateway = house.open().await;
    house.telegram.dm(BOB).says("hello").await;
    house.settled(&gateway).await;
    let home = house.home.path();
    insta::assert_snapshot!(refused(home, "people role Bob admin").await, @"error: Names on a platform can be anybody's, so write the id of Bob: telegram:222.");
    insta::assert_snapshot!(refused(home, "people show Bobb").await, @"error: Nobody is called Bobb. Did you mean Bob?");
    ran(
        home,
        "people add bobby --id telegram:222 --id discord:22 --role admin --agent rose=member",
    )
    .await;
    let json: Value = serde_json::from_str(&ran(home, "people list --json").await).expect("JSON");
    let brief: Vec<String> = json
        .as_array()
        .expect("a list")
        .iter()
        .map(|person| {
            format!(
                "{} {} {} {} {} {}",
                person["id"],
                person["name"],
                person["called"],
                person["role"],
                person["from"]["kind"],
                person["tokens_today"]
            )
        })
        .collect();
    insta::assert_snapshot!(brief.join("\n"), @r#"
    "telegram:333" "carol" null "member" "config" 0
    "telegram:444" "dan" null "guest" "seen" 0
    "telegram:222" "bobby" "Bob" "admin" "granted" 112
    "telegram:111" null null "owner" "owners" 0
    "#);
    let bob: Value =
        serde_json::from_str(&ran(home, "people show telegram:222 --json").await).expect("JSON");
    assert_eq!(bob["ids"][1]["id"], "discord:22");
    assert_eq!(bob["ids"][1]["from"]["by"], "cli");
    assert_eq!(bob["agents"][0]["agent"], "rose");
    assert!(bob["last_seen"].is_string(), "{bob}");
    let carol = ran(home, "people show carol").await;
    insta::assert_snapshot!(carol, @"
    carol (telegram:333)
    - member: line 15 of config.toml
    - member with main: line 16 of config.toml
    - telegram:333: line 14 of config.toml
    - last seen: never
    - today: nothing used
    ");
    let table = ran(home, "people ls").await;
    assert!(
        table.starts_with("NAME") && table.contains("telegram:222 discord:22"),
        "{table}"
    );
    house.close(gateway).await;
}

/// One person: the role, the budget and the memory of the main id count for the linked one.
#[tokio::test]
async fn a_linked_id_is_the_same_person() {
    let config = HOUSE.replace("owners =", "dms = \"open\"\nowners =")
        + "[access.limits.guest]\ntokens_per_day = 150\n";
    let house = House::new(&config).await;
    let discord = house.add_discord("").await;
    let gateway = house.open_with(&discord).await;
    let home = house.home.path();
    let bob = house.telegram.dm(BOB);
    bob.says("/remember The gate code is 4711").await;
    bob.says("one").await;
    house.settled(&gateway).await;
    ran(home, "people link telegram:222 telegram:333000").await;
    insta::assert_snapshot!(refused(home, "people link telegram:222 telegram:333000").await, @"error: telegram:333000 belongs to Bob (telegram:222) already.");
    let spent = "SELECT group_concat(spender) FROM budgets WHERE spender LIKE 'person:%'";
    assert_eq!(house.ask(spent), "person:telegram:222");
    // The other id has spent before it is linked, and that counts too.
    let carl = house
        .telegram
        .dm(crate::support::fake_telegram::User::person(777, "Carl"));
    carl.says("one").await;
    house.settled(&gateway).await;
    ran(home, "people link telegram:222 telegram:777").await;
    assert_eq!(house.ask(spent), "person:telegram:222");
    assert_eq!(
        house.ask("SELECT tokens FROM budgets WHERE spender = 'person:telegram:222'"),
        "224"
    );
    let told = last(&house, &gateway, &carl, "two").await;
    assert!(
        told.starts_with("You've used up your tokens for today."),
        "{told}"
    );
    let memory = last(&house, &gateway, &carl, "/memory").await;
    assert!(memory.contains("4711"), "{memory}");
    house.close(gateway).await;
}

/// In chat: owners change roles, admins look, and the config's word stays.
#[tokio::test]
async fn an_owner_gives_roles_in_chat() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    last(&house, &gateway, &bob, "let me in").await;
    let mut told = Vec::new();
    told.push(last(&house, &gateway, &alice, "/people role telegram:222 admin").await);
    // The role lets Bob in, who is told so, and his first message is answered.
    first_answered(&house, &gateway).await;
    for line in [
        "/people role telegram:222 admin",
        "/people role telegram:222 member rose",
        "/people role carol admin",
        "/people role telegram:111 guest",
        "/people role Bob owner",
        "/unpair Bob",
        "/unpair Dora",
        "/unpair",
        "/people role telegram:222 boss",
        "/people show Bob",
        "/people",
    ] {
        told.push(last(&house, &gateway, &alice, line).await);
    }
    let today = chrono::Local::now().format("%-d %b %Y").to_string();
    let told = told.join("\n").replace(&today, "TODAY");
    insta::assert_snapshot!(told, @"
    Bob (telegram:222) is an admin now, and was a guest.
    Bob (telegram:222) stays an admin.
    Bob (telegram:222) is a member now with rose, and was an admin.
    carol (telegram:333) is a member: line 14 of config.toml says so, and the file counts before anything granted here. Change that line.
    Alice (telegram:111) is an owner: line 11 of config.toml says so, and the file counts before anything granted here. Change [access] owners.
    Names on a platform can be anybody's, so write the id of Bob: telegram:222.
    Names on a platform can be anybody's, so write the id of Bob: telegram:222.
    Nobody is called Dora. An id works too, such as telegram:12345678.
    Who should lose access? Write the id, such as /unpair telegram:12345678; /pair lists everyone who was let in.
    Write /people to see everybody, /people show WHO for one person, or /people role WHO ROLE [agent]. Roles are guest, member, admin and owner.
    Bob (telegram:222)
    • admin: granted by Alice (telegram:111) on TODAY
    • member with rose: granted by Alice (telegram:111) on TODAY
    • telegram:222: only seen
    • last seen: TODAY
    • today: 112 tokens
    4 people are known:
    • carol (telegram:333): member, member with main
    • dan (telegram:444): guest
    • Bob (telegram:222): admin, member with rose, 112 tokens today
    • Alice (telegram:111): owner
    ");
    let seen = last(&house, &gateway, &bob, "/people show carol").await;
    assert!(seen.starts_with("carol"), "an admin sees: {seen}");
    let refused = last(&house, &gateway, &bob, "/people role telegram:222 owner").await;
    assert_eq!(refused, "Only owners can change roles.");
    // A restart keeps it.
    gateway.shutdown().await;
    let gateway = house.open().await;
    let seen = last(&house, &gateway, &bob, "/people show carol").await;
    assert!(seen.starts_with("carol"), "{seen}");
    house.close(gateway).await;
}

/// A reload of the file and a grant do not undo each other.
#[tokio::test]
async fn a_saved_config_keeps_what_was_granted_and_counts_before_it() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let bob = house.telegram.dm(BOB);
    ran(house.home.path(), "people role telegram:222 admin").await;
    assert!(
        last(&house, &gateway, &bob, "/people")
            .await
            .contains("known")
    );
    house.configure("", &format!("{HOUSE}[agents.dot]\n"));
    gateway.reload("a test").await;
    assert!(
        last(&house, &gateway, &bob, "/people")
            .await
            .contains("known")
    );
    house.configure(
        "",
        &format!("{HOUSE}[people.bob]\nids = [\"telegram:222\"]\nrole = \"member\"\n"),
    );
    gateway.reload("a test").await;
    let told = last(&house, &gateway, &bob, "/people").await;
    assert!(told.starts_with("Only owners and admins"), "{told}");
    house.close(gateway).await;
}

/// The question goes to an admin of run time too, and their button counts after a restart.
#[tokio::test]
async fn an_admin_of_run_time_lets_a_person_in_by_a_button_from_before_the_restart() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let home = house.home.path().to_owned();
    ran(&home, "people role telegram:222 admin").await;
    let (bob, stranger) = (house.telegram.dm(BOB), house.telegram.dm(CAROL_TWO));
    last(&house, &gateway, &bob, "/start").await;
    stranger.says("hello, it's me").await;
    house.settled(&gateway).await;
    let sent = house.telegram.sent();
    let notice = sent
        .iter()
        .find(|sent| sent.chat_id == BOB.id && !buttons(&sent.reply_markup).is_empty())
        .expect("the admin is asked")
        .clone();
    house.close(gateway).await;
    let gateway = house.open().await;
    let data = buttons(&notice.reply_markup)
        .into_iter()
        .find(|(label, _)| label == "Let in")
        .expect("a button")
        .1;
    bob.presses(notice.message_id, &data).await;
    house.settled(&gateway).await;
    assert_eq!(
        stranger.texts().last().map(String::as_str),
        Some("re: hello, it's me")
    );
    let audit = "SELECT action || ' ' || actor || ' ' || subject FROM audit WHERE action = 'pair'";
    assert_eq!(house.ask(audit), "pair telegram:222 telegram:888");
    insta::assert_snapshot!(ran(&home, "pair revoke telegram:888").await, @"Cora (telegram:888) is a guest again. What was said stays; a new code lets the person in again.");
    house.close(gateway).await;
}

const CAROL_TWO: crate::support::fake_telegram::User =
    crate::support::fake_telegram::User::person(888, "Cora");

#[tokio::test]
async fn a_code_is_approved_by_its_long_form_too() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let bob = house.telegram.dm(BOB);
    last(&house, &gateway, &bob, "let me in").await;
    let code = house.ask("SELECT code FROM people WHERE code IS NOT NULL");
    let told = ran(house.home.path(), &format!("pair approve {code} --yes")).await;
    assert!(
        told.starts_with("Bob (telegram:222) may now write to the bot."),
        "{told}"
    );
    first_answered(&house, &gateway).await;
    assert_eq!(last(&house, &gateway, &bob, "hello").await, "re: hello");
    let listed = ran(house.home.path(), "pair ls").await;
    assert!(listed.contains("telegram:222"), "{listed}");
    assert_eq!(house.ask("SELECT action FROM audit"), "pair");
    // Carol is in the file.
    let told = last(&house, &gateway, &house.telegram.dm(CAROL), "hi").await;
    assert_eq!(told, "re: hi");
    house.close(gateway).await;
}

/// A code lets in a person who was set to guest before: nobody is told "you're in" and asked again.
#[tokio::test]
async fn being_let_in_ends_the_role_of_a_guest() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (home, bob) = (house.home.path().to_owned(), house.telegram.dm(BOB));
    last(&house, &gateway, &bob, "let me in").await;
    ran(&home, "people role telegram:222 guest").await;
    let code = house.ask("SELECT code FROM people WHERE code IS NOT NULL");
    ran(&home, &format!("pair approve {code} --yes")).await;
    first_answered(&house, &gateway).await;
    assert_eq!(last(&house, &gateway, &bob, "hello").await, "re: hello");
    house.close(gateway).await;
}

/// A role lets in a person who waits: the person is told, and the first message is answered.
#[tokio::test]
async fn a_role_lets_in_a_person_who_waits() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (home, bob) = (house.home.path().to_owned(), house.telegram.dm(BOB));
    last(&house, &gateway, &bob, "let me in").await;
    ran(&home, "people role telegram:222 member").await;
    first_answered(&house, &gateway).await;
    assert_eq!(last(&house, &gateway, &bob, "hello").await, "re: hello");
    // The code, the word that Bob is in, the answer to what he wrote first, and the next one.
    bob.wait_for_sent(4).await;
    assert!(
        bob.texts().contains(&"re: let me in".to_owned()),
        "{:?}",
        bob.texts()
    );
    let listed = ran(&home, "pair list").await;
    assert!(!listed.contains("waiting"), "{listed}");
    house.close(gateway).await;
}

/// People who only ever use commands are people too.
#[tokio::test]
async fn a_person_who_only_wrote_commands_has_a_name_and_a_time() {
    let house = House::new(HOUSE).await;
    house.configure("", &format!("{HOUSE}{TOPIC}"));
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(101, "Code");
    topic.says(BOB, "/whoami").await;
    house.settled(&gateway).await;
    let listed = ran(house.home.path(), "people").await;
    let bob = listed.lines().find(|line| line.contains("telegram:222"));
    let bob = bob.expect("a line").split_whitespace().collect::<Vec<_>>();
    assert_eq!(bob[..5], ["Bob", "telegram:222", "guest", "only", "seen"]);
    let today = chrono::Local::now().format("%Y-%m-%d").to_string();
    assert_eq!(bob[5], today, "{listed}");
    let told = ran(house.home.path(), "route explain Code --as Bob").await;
    assert!(told.contains("Asked for Bob (telegram:222)"), "{told}");
    house.close(gateway).await;
}

const TOPIC: &str = r#"
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "main"
"#;

/// The table of codes begins at the left like all others, and tells how long a code counts.
#[tokio::test]
async fn the_list_of_codes_tells_how_long_they_count() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let bob = house.telegram.dm(BOB);
    let code = code_in(&last(&house, &gateway, &bob, "let me in").await);
    let listed = ran(house.home.path(), "pair list").await;
    // As long as a code.
    let listed = listed.replace(&code, "CODECODE");
    insta::assert_snapshot!(listed, @"
    ID            NAME  STATE    CODE      COUNTS
    telegram:222  Bob   waiting  CODECODE  for 1 hour more
    ");
    house.close(gateway).await;
}
