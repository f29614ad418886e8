//! A job that runs against its own walls, to see that they hold on this system.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use super::{Job, Limits, run};

pub(super) static WALLS: Job = Job {
    name: "walls",
    limits: Limits {
        memory_bytes: 128 * 1024 * 1024,
        time: Duration::from_secs(2),
        input_bytes: 1024,
        output_bytes: 64 * 1024,
    },
    work,
};

/// Has a child try something, and tells what came of it: the child's words, and its end.
pub async fn try_wall(attempt: &str) -> (String, String) {
    let attempt = attempt.to_owned();
    let ran = run(&WALLS, move |to| to.write_all(attempt.as_bytes())).await;
    let end = match ran.end {
        Ok(()) => "ended".to_owned(),
        Err(failure) => failure.to_string(),
    };
    (String::from_utf8_lossy(&ran.output).into_owned(), end)
}

fn work(input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<()> {
    let mut attempt = String::new();
    input.read_to_string(&mut attempt)?;
    match attempt.as_str() {
        "look around" => look_around(output),
        "take memory" => take_memory(output),
        "go deeper" => writeln!(output, "{}", depth(1)),
        "take time" => loop {
            std::hint::spin_loop();
        },
        "wait" => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        "talk" => loop {
            output.write_all(&[b'x'; 4096])?;
        },
        "panic" => panic!("as asked"),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The world as the child finds it. Nothing here needs an open file to look.
fn look_around(output: &mut dyn Write) -> io::Result<()> {
    let told = |is_refused: bool| if is_refused { "refused" } else { "allowed" };
    let open: Vec<String> = (0..256)
        .filter(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok())
        .map(|number| number.to_string())
        .collect();
    let folder = std::env::current_dir()?;
    let thread = std::thread::Builder::new().spawn(|| ());
    writeln!(output, "environment: {}", std::env::vars_os().count())?;
    writeln!(output, "folder: {}", folder.display())?;
    writeln!(output, "open files: {}", open.join(" "))?;
    let program = std::fs::File::open("/proc/self/exe");
    writeln!(output, "a file: {}", told(program.is_err()))?;
    let listener = std::net::TcpListener::bind("127.0.0.1:0");
    writeln!(output, "a connection: {}", told(listener.is_err()))?;
    writeln!(output, "a thread: {}", told(thread.is_err()))?;
    let program = std::process::Command::new("/proc/self/exe").spawn();
    writeln!(output, "a program: {}", told(program.is_err()))
}

fn take_memory(output: &mut dyn Write) -> io::Result<()> {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    loop {
        taken.push(vec![1; 1024 * 1024]);
        writeln!(output, "{} MB", taken.len())?;
    }
}

fn depth(level: u64) -> u64 {
    let below = std::hint::black_box([level; 512]);
    if below[0] == u64::MAX {
        return level;
    }
    depth(level + 1).wrapping_add(below[511])
}
