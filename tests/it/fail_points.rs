//! The real binary is killed at every commit of the store and before and after every call to the
//! outside, with messages under way in many places. The next process answers all of them.
//!
//! `PARLOR_FAULTS_PLACES=25` has the full size, and `PARLOR_FAULTS_POINT=turn_end.before` tries one
//! point.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::support::checker::Promise;
use crate::support::crowd::Crowd;
use crate::support::fake_telegram::{ALICE, Fault};
use crate::support::house::{Process, parlor};

/// Places of each house, each with two messages.
const PLACES: usize = 10;
/// Houses at the same time.
const HOUSES: usize = 2;
/// Time for everything to be answered, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// Leaves a row behind that was being sent, for points that only a start after a crash passes.
const LEAVES_A_ROW: &str = "outbox_claim.after:3";
const ONLY_AFTER_A_CRASH: &str = "outbox_reopened";

fn places() -> usize {
    let wanted = std::env::var("PARLOR_FAULTS_PLACES").ok();
    wanted
        .and_then(|wanted| wanted.parse().ok())
        .unwrap_or(PLACES)
}

/// A house that has answered on both platforms before, so the gateway knows where it left off.
async fn lived_in() -> Crowd {
    let mut crowd = Crowd::new(places()).await;
    let with_job = format!("{}{}", crowd.house.config(), hourly_job());
    crowd.house.write("config.toml", &with_job);
    let process = crowd.house.spawn().await;
    crowd.discord.connected().await;
    crowd.says(0, "please").await;
    let on_discord = first_on_discord(&crowd);
    crowd.says(on_discord, "please").await;
    crowd.quiet(PATIENCE).await;
    assert_eq!(process.stop().await, 0);
    crowd
}

/// Not due while the test runs.
fn hourly_job() -> String {
    let minute = (chrono::Timelike::minute(&chrono::Utc::now()) + 30) % 60;
    format!(
        "\n[[agents.main.jobs]]\nname = \"plan\"\ncron = \"{minute} * * * *\"\ntime_zone = \"UTC\"\n\
         prompt = \"Plan the day.\"\nplace = \"telegram:topic:-1001:5\"\nmissed = \"once\"\n"
    )
}

fn first_on_discord(crowd: &Crowd) -> usize {
    let mut spots = crowd.spots.iter();
    spots
        .position(|spot| spot.is_discord())
        .expect("Discord is there")
}

/// Two messages in every place: questions, tasks with tools, a subagent, a slow answer, commands, a
/// switch of the agent, talk among people, an edited command, a job, and a limit of the platform.
async fn everybody_writes(crowd: &mut Crowd) {
    let house = &crowd.house;
    // The gateway was off for ten hours, and makes up for the missed runs by one.
    house.tell("UPDATE jobs SET handled_upto = handled_upto - 36000000");
    house
        .telegram
        .fail("sendMessage", Fault::RetryAfter(1))
        .once();
    let talk = house.telegram.supergroup(-1104);
    talk.says(ALICE, "nothing for the bot").await;
    let command = crowd.spots[4].says("/whoami").await;
    crowd.spots[4].edits(command, "/help").await;
    let half = first_on_discord(crowd);
    for spot in 0..crowd.spots.len() {
        match spot % half {
            0 => crowd.says(spot, "use a tool").await,
            1 => crowd.says(spot, "slowly").await,
            2 => {
                crowd.spots[spot].says("/agent rose").await;
                crowd.says(spot, "use a tool").await
            }
            3 => crowd.says(spot, "spawn").await,
            _ => crowd.says(spot, "please").await,
        };
        crowd.says(spot, "please").await;
    }
}

/// `armed` is a point with the number of its passing.
fn start(crowd: &Crowd, armed: Option<&str>, passed: Option<&Path>) -> Process {
    let home = crowd.house.home.path();
    let mut command = parlor(home);
    command.arg("run");
    if let Some(armed) = armed {
        command.env("PARLOR_FAIL_POINT", armed);
    }
    if let Some(passed) = passed {
        command.env("PARLOR_FAIL_POINTS_PASSED", passed);
    }
    Process::start_as(command, home)
}

fn job_has_run(crowd: &Crowd) -> bool {
    crowd
        .house
        .ask("SELECT count(*) FROM job_runs WHERE state = 'done'")
        == "1"
}

/// Whether the process has died before there was nothing left to do.
async fn dies(crowd: &Crowd, process: &mut Process) -> bool {
    let began = Instant::now();
    while !process.is_over() {
        if crowd.is_quiet() && job_has_run(crowd) {
            // A point that comes last may be passed at this moment.
            tokio::time::sleep(Duration::from_millis(300)).await;
            return process.is_over();
        }
        assert!(
            began.elapsed() < PATIENCE,
            "it neither dies nor ends: {}\n{}",
            crowd.open_rows(),
            crowd.told()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}

/// Returns once everything is answered and the job has run.
async fn settles(crowd: &Crowd) {
    crowd.quiet(PATIENCE).await;
    let began = Instant::now();
    while !job_has_run(crowd) {
        assert!(began.elapsed() < PATIENCE, "the job did not run");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Everything is answered by a process that nobody kills, and every promise was kept.
async fn answers_everything(crowd: Crowd, process: Process) {
    settles(&crowd).await;
    assert_eq!(process.stop().await, 0);
    crowd.check();
    // A kill within the call that begins a slow answer leaves its first half.
    let halves = crowd.halves();
    assert!(halves <= 1, "{halves} halves\n{}", crowd.told());
    if halves == 1 {
        crowd.house.give_up(Promise::SentOnce);
    }
}

/// How often each point is passed until everything is answered, with a crash in between.
async fn passings() -> BTreeMap<String, u64> {
    let mut crowd = lived_in().await;
    everybody_writes(&mut crowd).await;
    let passed = crowd.house.home.path().join("passed");
    let mut first = start(&crowd, Some(LEAVES_A_ROW), Some(&passed));
    assert!(dies(&crowd, &mut first).await, "{LEAVES_A_ROW} is passed");
    let process = start(&crowd, None, Some(&passed));
    answers_everything_noting(crowd, process, &passed).await
}

async fn answers_everything_noting(
    crowd: Crowd,
    process: Process,
    passed: &Path,
) -> BTreeMap<String, u64> {
    settles(&crowd).await;
    let lines = std::fs::read_to_string(passed).expect("points were passed");
    let mut counts = BTreeMap::new();
    for line in lines.lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    answers_everything(crowd, process).await;
    counts
}

/// Kills at a point. False if the point was not passed so often.
async fn survives(point: &str, passing: u64) -> bool {
    let mut crowd = lived_in().await;
    everybody_writes(&mut crowd).await;
    if point.starts_with(ONLY_AFTER_A_CRASH) {
        let mut first = start(&crowd, Some(LEAVES_A_ROW), None);
        assert!(dies(&crowd, &mut first).await, "{LEAVES_A_ROW} is passed");
    }
    let mut process = start(&crowd, Some(&format!("{point}:{passing}")), None);
    let died = dies(&crowd, &mut process).await;
    let next = if died {
        start(&crowd, None, None)
    } else {
        process
    };
    answers_everything(crowd, next).await;
    died
}

/// A passing in the first half, which is another for every point. The counts of two runs differ a
/// little.
fn choose(point: &str, count: u64) -> u64 {
    let sum: u64 = point.bytes().map(u64::from).sum();
    1 + sum % (count / 2).max(1)
}

async fn try_point(point: String, count: u64) {
    if !survives(&point, choose(&point, count)).await {
        assert!(survives(&point, 1).await, "{point} was never passed");
    }
}

/// Nothing is lost and nothing is answered twice, wherever the process dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_any_point_loses_nothing_and_repeats_nothing() {
    let counts = passings().await;
    let only = std::env::var("PARLOR_FAULTS_POINT").ok();
    let names = parlor::fail_points::names();
    let never: Vec<&String> = names
        .iter()
        .filter(|name| !counts.contains_key(*name) && !is_elsewhere(name))
        .collect();
    assert!(
        never.is_empty(),
        "these points are listed and never passed: {never:?}"
    );
    let (slots, mut running) = (Arc::new(Semaphore::new(HOUSES)), JoinSet::new());
    for point in names
        .into_iter()
        .filter(|name| !is_elsewhere(name) && only.as_ref().is_none_or(|only| only == name))
    {
        let (slots, count) = (slots.clone(), counts[&point]);
        running.spawn(async move {
            let _slot = slots.acquire_owned().await.expect("never closed");
            let tried = tokio::spawn(try_point(point.clone(), count)).await;
            tried.err().map(|error| format!("{point}: {}", told(error)))
        });
    }
    let failures: Vec<String> = running.join_all().await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Nobody of the crowd approves calls. `approvals.rs` tries these points.
fn is_elsewhere(point: &str) -> bool {
    point.starts_with("approval_")
}

/// The words of a panic.
pub(crate) fn told(error: tokio::task::JoinError) -> String {
    let panic = error.into_panic();
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic without words".to_owned())
}
