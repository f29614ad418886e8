use super::*;
use crate::storage::Db;

fn subagent(run: &str) -> Subagent {
    let uid: AgentUid = "00000000-0000-0000-0000-000000000001".parse().unwrap();
    Subagent {
        run: run.into(),
        relation: Relation::Subagent,
        session: format!("child:{run}").parse().unwrap(),
        agent: uid,
        parent: "telegram:dm:111".parse().unwrap(),
        parent_inbox_id: 7,
        parent_agent: uid,
        person: "telegram:111".parse().unwrap(),
        role: Role::Member,
        task: "count".into(),
        labels: Labels::of(Role::Guest),
        addresses: Addresses::default(),
        tools: Some(vec!["now".into()]),
        label: Some("Counting".into()),
        tags: vec!["numbers".into()],
        max_steps: 12,
        then: OnFinish::Report,
        hop: 1,
        trace: "inbox-7".into(),
        started_at: 1000,
    }
}

/// S2.27, S2.42: a subagent is read back as written, and written only once.
#[tokio::test]
async fn a_run_is_written_once_and_ends_once() {
    let home = tempfile::tempdir().unwrap();
    let db = Db::open(&home.path().join("parlor.db")).await.unwrap();
    let checked = db.write(|tx| {
        tx.execute("INSERT INTO agents (uid, slug, created_at) VALUES ('00000000-0000-0000-0000-000000000001', 'rose', 0)", [])?;
        assert!(insert(tx, &subagent("7-0-0"), 8)?);
        assert!(!insert(tx, &subagent("7-0-0"), 9)?, "the same run");
        let used = Charge { steps: 2, usage: Usage { input_tokens: 5, output_tokens: 6, cached_tokens: 1 } };
        let end = End { state: State::Finished, result: "three".into(), used, read: Labels::of(Role::Guest), artifacts: vec!["sums/total.md".into()] };
        assert!(finish(tx, "7-0-0", &end, 3000)?);
        assert!(!finish(tx, "7-0-0", &End { state: State::Failed, ..end.clone() }, 4000)?, "it has ended");
        let known = get(tx, "7-0-0")?.expect("it is there");
        assert_eq!((&known.subagent, known.inbox_id, &known.end, known.ended_at), (&subagent("7-0-0"), 8, &end, Some(3000)));
        assert_eq!(known.line(), "[@agent:rose] finished");
        insta::assert_snapshot!(known.meta(), @r#"{"v":1,"kind":"run","status":"finished","label":"Counting","tags":["numbers"],"task":"count","result":"three","artifacts":["sums/total.md"],"source":{"agent":"rose","session":"child:7-0-0"},"stats":{"steps":2,"input_tokens":5,"output_tokens":6,"cached_tokens":1,"ms":2000},"idempotency_key":"7-0-0","trace_id":"inbox-7","hop":1}"#);
        let unseen_runs = |tx: &Transaction<'_>| unseen(tx, &subagent("x").parent, subagent("x").agent, 4000).map(|runs| runs.len());
        assert_eq!(unseen_runs(tx)?, 1);
        seen(tx, &["7-0-0".into()])?;
        assert_eq!(unseen_runs(tx)?, 0);
        Ok(())
    });
    checked.await.unwrap();
}
