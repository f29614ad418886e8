use super::*;
use crate::channels::{IntakeReceiver, Question};

async fn channel() -> (tempfile::TempDir, WebChannel) {
    let home = tempfile::tempdir().unwrap();
    let db = Db::open(&home.path().join("parlor.db")).await.unwrap();
    let channel = WebChannel::new(db, home.path().to_owned());
    (home, channel)
}

fn line(id: &str, text: &str) -> Line {
    Line {
        place: "web:home:work".parse().unwrap(),
        id: id.into(),
        text: text.into(),
        files: Vec::new(),
        topic_name: None,
    }
}

fn to() -> Destination {
    Destination::stored("web:home:work".parse().unwrap())
}

fn listen(channel: &WebChannel) -> (IntakeReceiver, CancellationToken) {
    let (intake, received) = Intake::new();
    let (channel, stop) = (channel.clone(), CancellationToken::new());
    let stopped = stop.clone();
    tokio::spawn(async move { channel.listen(intake, stopped).await });
    (received, stop)
}

fn texts(batch: &Batch) -> Vec<String> {
    let text = |arrival: &Arrival| match arrival {
        Arrival::Message(inbound) => inbound.text.clone(),
        other => panic!("{other:?}"),
    };
    batch.arrivals.iter().map(text).collect()
}

/// The process may be killed between the acknowledgement and the inbox.
#[tokio::test]
async fn an_acknowledged_line_is_handed_over_until_the_inbox_has_it() {
    let (_home, channel) = channel().await;
    channel.say(line("a", "hello")).await.unwrap();
    let (mut received, stop) = listen(&channel);
    let (batch, stored) = received.recv().await.unwrap();
    assert_eq!(texts(&batch), ["hello"]);
    drop(stored);
    stop.cancel();
    let (mut received, stop) = listen(&channel);
    let (batch, stored) = received.recv().await.unwrap();
    assert_eq!(texts(&batch), ["hello"], "not stored, so once more");
    stored.send(()).unwrap();
    channel.say(line("b", "again")).await.unwrap();
    let (batch, _) = received.recv().await.unwrap();
    assert_eq!(texts(&batch), ["again"], "and no more after that");
    stop.cancel();
}

#[tokio::test]
async fn a_line_or_a_delivery_that_comes_twice_is_one_row() {
    let (_home, channel) = channel().await;
    channel.say(line("a", "hello")).await.unwrap();
    channel.say(line("a", "hello")).await.unwrap();
    let part = channel.render(&to(), &Text::plain("hi")).remove(0);
    for _ in 0..2 {
        let ticket = Ticket("t1".into());
        channel.send(&to(), &part, &ticket).await.unwrap();
    }
    let rows = channel.rows_after(0, 10).await.unwrap();
    let shown: Vec<&str> = rows.iter().map(|row| row.body.text.as_str()).collect();
    assert_eq!(shown, ["hello", "hi"]);
    let later = channel.rows_after(rows[0].id, 10).await.unwrap();
    assert_eq!(later, rows[1..], "a browser goes on after the last id");
}

#[tokio::test]
async fn words_so_far_are_seen_until_the_answer_is_there() {
    let (_home, channel) = channel().await;
    let question = MessageId("a".into());
    let piece = |text| Progress::Text {
        speaker: "🌹 Rose",
        question: None,
        text,
    };
    channel
        .progress(&to(), Progress::Begun(&question))
        .await
        .unwrap();
    channel.progress(&to(), piece("Once ")).await.unwrap();
    let (now, mut changes) = channel.sights();
    assert_eq!(now[0].preview.as_ref().unwrap().text, "Once ");
    channel.progress(&to(), piece("upon")).await.unwrap();
    let change = changes.recv().await.unwrap();
    assert_eq!(change.preview.unwrap().text, "Once upon");
    let asked = Question {
        message: question.clone(),
        upto: question,
        others_wrote: false,
    };
    let text = Text {
        answers: Some(&asked),
        ..Text::plain("Once upon a time")
    };
    let part = channel.render(&to(), &text).remove(0);
    channel
        .send(&to(), &part, &Ticket("t".into()))
        .await
        .unwrap();
    assert_eq!(changes.recv().await.unwrap().preview, None);
    assert!(channel.sights().0.is_empty());
}

#[tokio::test]
async fn lines_that_cannot_be_answered_are_refused() {
    let (_home, channel) = channel().await;
    let bad = [
        Line {
            place: "telegram:dm:5".parse().unwrap(),
            ..line("a", "hi")
        },
        line("a", "  "),
        line("a b", "hi"),
        line("a", &"x".repeat(MAX_LINE_CHARS + 1)),
        Line {
            files: vec!["../parlor.db".into()],
            ..line("a", "hi")
        },
    ];
    for line in bad {
        let id = line.id.clone();
        assert!(channel.say(line).await.is_err(), "{id}");
    }
    assert!(channel.rows_after(0, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn files_of_a_line_come_as_messages_that_belong_together() {
    let (home, channel) = channel().await;
    let one = channel.store_file("../a\nb.txt", b"one").await.unwrap();
    assert_eq!(one.name, "ab.txt");
    let two = channel.store_file("b.png", b"\x89PNG....").await.unwrap();
    let files = vec![one.id, two.id];
    let said = Line {
        files,
        ..line("a", "look")
    };
    channel.say(said).await.unwrap();
    let (mut received, stop) = listen(&channel);
    let (batch, _stored) = received.recv().await.unwrap();
    assert_eq!(texts(&batch), ["look", ""]);
    let Arrival::Message(first) = &batch.arrivals[0] else {
        panic!()
    };
    let file = first.extras.attachment.clone().unwrap().file.unwrap();
    let to = home.path().join("fetched");
    channel.fetch(&file, &to).await.unwrap();
    assert_eq!(std::fs::read(to).unwrap(), b"one");
    stop.cancel();
}

#[tokio::test]
async fn words_of_a_purged_agent_leave_the_screen() {
    let (_home, channel) = channel().await;
    let fill = "INSERT INTO agents (uid, slug, created_at) VALUES
            ('0190f000-0000-7000-8000-000000000001', 'rose', 0), ('0190f000-0000-7000-8000-000000000002', 'ada', 0);
        INSERT INTO places (id, key, created_at) VALUES (1, 'web:home:own', 0), (2, 'web:home:both', 0);
        INSERT INTO messages (place_id, conversation, kind, agent_uid, text, created_at) VALUES
            (1, 1, 'agent', '0190f000-0000-7000-8000-000000000001', 'own', 0),
            (2, 1, 'agent', '0190f000-0000-7000-8000-000000000001', 'of rose', 0),
            (2, 1, 'agent', '0190f000-0000-7000-8000-000000000002', 'of ada', 0);";
    channel
        .0
        .db
        .write(|tx| tx.execute_batch(fill))
        .await
        .unwrap();
    for (place, text) in [
        ("own", "asked"),
        ("own", "own"),
        ("both", "of rose"),
        ("both", "of ada"),
    ] {
        let to = Destination::stored(format!("web:home:{place}").parse().unwrap());
        let part = channel.render(&to, &Text::plain(text)).remove(0);
        let ticket = Ticket(format!("{place}-{text}"));
        channel.send(&to, &part, &ticket).await.unwrap();
    }
    let rose = "0190f000-0000-7000-8000-000000000001".parse().unwrap();
    channel.0.db.write(move |tx| purge(tx, rose)).await.unwrap();
    let rows = channel.rows_after(0, 10).await.unwrap();
    let left: Vec<&str> = rows.iter().map(|row| row.body.text.as_str()).collect();
    assert_eq!(left, ["of ada"]);
}
