//! Makes text of a page in a child process, because laying out a page can take any amount of memory.

use std::io::{self, BufRead, Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fetch::MAX_BYTES;
use super::readable::{MAX_TEXT_BYTES, Readable, readable};
use crate::sandbox::{Failure, Job, Limits};
use crate::tools::background::HeavySlot;

pub(in crate::tools) static PAGE: Job = Job {
    name: "page",
    limits: Limits {
        memory_bytes: 256 * 1024 * 1024,
        time: Duration::from_secs(10),
        input_bytes: (MAX_BYTES + MAX_HEAD_BYTES) as u64,
        output_bytes: MAX_TEXT_BYTES + MAX_HEAD_BYTES,
    },
    work,
};

/// The first line of input and output.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The longest content type that is looked at.
const MAX_TYPE_BYTES: usize = 1024;

/// The first line of the input. The body of the page follows.
#[derive(Serialize, Deserialize)]
struct Sent {
    content_type: String,
}

/// The first line of the output. The text follows.
#[derive(Serialize, Deserialize)]
enum Told {
    Text { is_cut: bool },
    NoText,
}

/// The text of a page; none for a page without text.
pub(super) async fn read(
    slot: &HeavySlot,
    mut content_type: String,
    body: Vec<u8>,
) -> Result<Option<Readable>, Failure> {
    content_type.truncate(content_type.floor_char_boundary(MAX_TYPE_BYTES));
    let send = move |to: &mut dyn Write| {
        serde_json::to_writer(&mut *to, &Sent { content_type })?;
        to.write_all(b"\n")?;
        to.write_all(&body)
    };
    let ran = slot.run_in_child(&PAGE, send).await;
    ran.end?;
    received(ran.output).ok_or(Failure::Broke)
}

/// None if this is no output of the job.
fn received(mut output: Vec<u8>) -> Option<Option<Readable>> {
    let end = output.iter().position(|byte| *byte == b'\n')?;
    let told: Told = serde_json::from_slice(&output[..end]).ok()?;
    let Told::Text { is_cut } = told else {
        return Some(None);
    };
    output.drain(..=end);
    let text = String::from_utf8(output).ok()?;
    Some(Some(Readable { text, is_cut }))
}

fn work(mut input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<()> {
    let mut first = String::new();
    (&mut input)
        .take(MAX_HEAD_BYTES as u64)
        .read_line(&mut first)?;
    let Sent { content_type } = serde_json::from_str(&first)?;
    let mut body = Vec::new();
    input.read_to_end(&mut body)?;
    let page = readable(&content_type, &body);
    let told = match &page {
        Some(page) => Told::Text {
            is_cut: page.is_cut,
        },
        None => Told::NoText,
    };
    serde_json::to_writer(&mut *output, &told)?;
    output.write_all(b"\n")?;
    output.write_all(page.unwrap_or_default().text.as_bytes())
}
