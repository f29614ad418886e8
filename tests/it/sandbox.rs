//! The child process for work on strangers' bytes: what it has, how it ends, and that it does end.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use insta::assert_snapshot;
use parlor::sandbox::{try_wall, use_program};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB};
use crate::support::house::Process;

const PARLOR: &str = env!("CARGO_BIN_EXE_parlor");
const OWNED: &str = "[access]\ndms = \"open\"\nowners = [\"telegram:111\"]\n[agents.main]\n[agents.ada]\n\
    [[bindings]]\nmatch = \"telegram:dm:111\"\nagent = \"ada\"\n";
/// Takes hours with a long line of `a`.
const HOSTILE: &str = "(a|aa|aaa){1,2500}[b-z]";

/// The verb by itself, with the test's whole environment.
fn work_on(words: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(PARLOR)
        .arg("work-on")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let (mut stdin, input) = (child.stdin.take().expect("a pipe"), input.to_vec());
    // A child that has had enough closes its end.
    let feeding = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("it ends");
    feeding.join().expect("no panic");
    output
}

#[tokio::test]
async fn a_child_finds_nothing_around_itself() {
    if !Path::new("/proc/self/status").exists() {
        return eprintln!("skipped: there is no /proc here");
    }
    use_program(PARLOR);
    // An open file that whoever started Parlor left open for it.
    let leaked = std::fs::File::open("/").expect("a folder");
    fcntl_setfd(&leaked, FdFlags::empty()).expect("it can be passed on");
    let (seen, end) = try_wall("look around").await;
    assert_eq!(end, "ended");
    let (own, of_others) = seen.split_at(seen.find("a thread").expect("it was tried"));
    assert_snapshot!(own, @r"
    environment: 0
    folder: /
    open files: 0 1 2
    a file: refused
    a connection: refused
    ");
    // The kernel counts no processes of root.
    if !rustix::process::getuid().is_root() {
        assert_eq!(of_others, "a thread: refused\na program: refused\n");
    }
}

#[tokio::test]
async fn a_child_that_takes_too_much_is_ended_and_the_reason_is_known() {
    if !Path::new("/proc/self/status").exists() {
        return eprintln!("skipped: there is no /proc here");
    }
    use_program(PARLOR);
    for (attempt, expected) in [
        ("take memory", "took too much memory"),
        ("go deeper", "took too much memory"),
        ("take time", "took longer than 2 s"),
        ("wait", "took longer than 2 s"),
        ("talk", "led to a result that is too long"),
        ("panic", "broke off"),
        ("nothing that is known", "broke off"),
    ] {
        let (seen, end) = try_wall(attempt).await;
        assert_eq!(end, expected, "{attempt}");
        assert!(seen.len() <= 64 * 1024, "{attempt}: {} bytes", seen.len());
        if attempt == "take memory" {
            let last = seen.trim_end().lines().last().expect("some was taken");
            let taken: u32 = last.trim_end_matches(" MB").parse().expect(last);
            assert!(taken < 128, "{taken} MB");
        }
    }
}

/// Input goes on for as long as somebody reads it.
#[tokio::test]
async fn a_child_gets_no_more_than_it_may_read() {
    use_program(PARLOR);
    let (seen, end) = try_wall(&"x".repeat(100_000)).await;
    assert_eq!(
        (seen.as_str(), end.as_str()),
        ("", "got more bytes than it may read")
    );
}

#[test]
fn the_verb_is_not_for_people() {
    let mut told = Vec::new();
    for (words, input) in [(vec![], ""), (vec!["page"], ""), (vec!["unknown"], "x")] {
        let output = work_on(&words, input.as_bytes());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        told.push(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    told.dedup();
    assert_snapshot!(told.join(""), @"error: `parlor work-on` is for Parlor itself, which starts it with input; there is nothing to type here");
    let help = Command::new(PARLOR)
        .arg("--help")
        .output()
        .expect("it runs");
    assert!(!String::from_utf8_lossy(&help.stdout).contains("work-on"));
}

/// Whatever a page is made of, its child ends, and gives a text within the limit or none.
#[test]
fn hostile_pages_end() {
    if !Path::new("/proc/self/status").exists() {
        return eprintln!("skipped: there is no /proc here");
    }
    const BYTES: usize = 2 * 1024 * 1024;
    let page = |unit: &str| {
        let body = unit.repeat(BYTES / unit.len());
        work_on(
            &["page"],
            format!("{{\"content_type\":\"text/html\"}}\n{body}").as_bytes(),
        )
    };
    assert_eq!(page("\0").stdout, b"\"NoText\"\n");
    for unit in ["<div>", "<b><i>", "<a href=x>y</a>", "e\u{301}\u{301}"] {
        let output = page(unit);
        assert!(output.status.success(), "{unit}: {}", output.status);
        assert!(
            output
                .stdout
                .starts_with(b"{\"Text\":{\"is_cut\":false}}\n"),
            "{unit}"
        );
    }
    let long = page("<table><tr><td>a");
    assert!(long.stdout.starts_with(b"{\"Text\":{\"is_cut\":true}}\n"));
    assert!(long.stdout.len() <= 4 * 1024 * 1024 + 100);
    // Hundreds of megabytes would be needed.
    assert_eq!(
        page("\u{1}").status.signal(),
        Some(6),
        "the child was out of memory"
    );
    assert_eq!(work_on(&["page"], b"no first line").status.code(), Some(1));
    assert_eq!(
        work_on(&["search"], b"{\"pattern\":\"a\"}\n\xff\xff\xff\xffa")
            .status
            .code(),
        Some(1)
    );
}

#[tokio::test]
async fn a_search_tells_what_it_found_before_it_took_too_long() {
    let house = House::new(OWNED).await;
    let gateway = house.open().await;
    house.write("agents/ada/workspace/a.txt", "an apple\naab\n");
    house.write("agents/ada/workspace/b.txt", &"a".repeat(600_000));
    let alice = house.telegram.dm(ALICE);
    for pattern in [HOSTILE, "apple(", "apple"] {
        house.model.enqueue(Script::tool_call(
            "file_search",
            json!({ "pattern": pattern }),
        ));
    }
    alice.says("look").await;
    alice.wait_for_sent(1).await;
    assert_snapshot!(house.model.last_request().results().join("\n--\n"), @"
    a.txt:1: an apple
    a.txt:2: aab
    [stopped early: it took 5 s; search more narrowly]
    --
    The pattern does not work: regex parse error:
        apple(
             ^
    error: unclosed group
    --
    a.txt:1: an apple
    ");
    house.close(gateway).await;
}

/// Children of a process that work on strangers' bytes.
fn workers_of(parent: u32) -> Vec<Worker> {
    let numbers = std::fs::read_dir("/proc").expect("a list of processes");
    numbers
        .flatten()
        .filter_map(|entry| Some(Worker(entry.file_name().to_str()?.parse().ok()?)))
        .filter(|worker| {
            worker
                .fact("status")
                .contains(&format!("PPid:\t{parent}\n"))
        })
        .filter(Worker::is_there)
        .collect()
}

/// A child, by its process id.
struct Worker(i32);

impl Worker {
    fn fact(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.0)).unwrap_or_default()
    }

    fn is_there(&self) -> bool {
        // A process that has ended and waits for its parent has no command line.
        self.fact("cmdline").contains("work-on\0search")
    }

    fn is_confined(&self) -> bool {
        self.fact("status").contains("NoNewPrivs:\t1")
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.0).expect("a process id");
        // The child may be gone.
        let _ = kill_process(pid, signal);
    }
}

/// Children that do nothing any more, so they do not end by themselves either.
struct Stopped(Vec<Worker>);

async fn stop_workers_of(parent: u32) -> Stopped {
    // A child that is not confined yet would not hear of the end of its parent.
    let is_at_work = || {
        let workers = workers_of(parent);
        !workers.is_empty() && workers.iter().all(Worker::is_confined)
    };
    wait_until("a child", is_at_work).await;
    let workers = workers_of(parent);
    workers
        .iter()
        .for_each(|worker| worker.signal(Signal::STOP));
    Stopped(workers)
}

impl Stopped {
    async fn are_gone(&self) {
        let is_gone = || !self.0.iter().any(Worker::is_there);
        wait_until("the end of the children", is_gone).await;
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let left = self.0.iter().filter(|worker| worker.is_there());
        left.for_each(|worker| worker.signal(Signal::KILL));
    }
}

async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let looking = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(20), looking).await;
    assert!(found.is_ok(), "{what} in 20 s");
}

/// A guest's search runs in a child, with no other beside it, and ends with the turn, or with the
/// gateway.
#[tokio::test]
async fn a_child_ends_with_its_turn_and_with_its_gateway() {
    if !Path::new("/proc/self/status").exists() {
        return eprintln!("skipped: there is no /proc here");
    }
    let mut house = House::new(OWNED).await;
    house.write("agents/main/workspace/long.txt", &"a".repeat(600_000));
    house.write("agents/ada/workspace/list.txt", "x");
    let process = house.spawn().await;
    let searches = vec![("file_search".to_owned(), json!({ "pattern": HOSTILE })); 64];
    house
        .model
        .enqueue_when("look", Script::ToolCalls(searches.clone()));
    house
        .model
        .enqueue_when("list", Script::tool_call("file_list", json!({})));
    house
        .model
        .enqueue_when("again", Script::ToolCalls(searches));
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    bob.says("look").await;
    let stopped = stop_workers_of(process.pid()).await;
    alice.says("list").await;
    alice.wait_for_sent(1).await;
    assert_eq!(bob.texts().len(), 0, "the guest's searches go on");
    assert!(workers_of(process.pid()).len() <= 1, "one at a time");
    bob.says("/stop").await;
    stopped.are_gone().await;
    bob.wait_for_sent(1).await;

    bob.says("again").await;
    let stopped = stop_workers_of(process.pid()).await;
    process.kill().await;
    stopped.are_gone().await;
    house.leave_leftovers();
}

/// An update of the program replaces the file that is running.
#[tokio::test]
async fn a_program_that_was_replaced_on_disk_still_has_children() {
    let house = House::new(OWNED).await;
    house.write("agents/ada/workspace/a.txt", "an apple\n");
    let copy = Path::new(PARLOR).with_file_name(format!("parlor-{}", std::process::id()));
    std::fs::hard_link(PARLOR, &copy).expect("another name");
    let polls = house.telegram.calls("getUpdates").len();
    let mut command = tokio::process::Command::new(&copy);
    command
        .env_clear()
        .env("PARLOR_HOME", house.home.path())
        .stdin(Stdio::null())
        .arg("run");
    let process = Process::start_as(command, house.home.path());
    house.telegram.wait_for_calls("getUpdates", polls + 1).await;
    std::fs::remove_file(&copy).expect("it is there");
    std::fs::write(&copy, "not a program").expect("it can be replaced");
    house.model.enqueue(Script::tool_call(
        "file_search",
        json!({ "pattern": "appl[e]" }),
    ));
    house.telegram.dm(ALICE).says("look").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    std::fs::remove_file(&copy).expect("it is there");
    assert_eq!(house.model.last_request().results(), ["a.txt:1: an apple"]);
    process.stop().await;
}
