//! The screen of `parlor chat`: answers in Markdown, drawn while they are written, and the chat's
//! own notes.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::live::{Live, Picture};
use super::{texts, topics};
use crate::channels::local::{Shown, Whole};
use crate::cli::color::Style;
use crate::cli::markdown::{self, Paper};
use crate::cli::print;
use crate::domain::{MessageId, SessionKey};
use crate::printable::{printable, printable_line};

/// How often the screen is drawn while an answer is written.
pub(super) const TICK: Duration = Duration::from_millis(80);
/// Replies to commands come at once, and need no sign of life.
const SIGN_AFTER: Duration = Duration::from_millis(250);
/// The same where nothing can be drawn twice.
const PLAIN_SIGN_AFTER: Duration = Duration::from_secs(1);
/// A person who waits this long is told the seconds and the way out.
const HINT_AFTER: Duration = Duration::from_secs(4);
/// Rows of an unfinished block on the screen, and of waiting lines.
const MOST_LIVE: usize = 12;
const MOST_WAITING: usize = 3;
/// A second Ctrl-C this soon after an answer was stopped is the same wish, and is not for the next
/// answer.
const ONE_PRESS: Duration = Duration::from_secs(1);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

pub(super) struct Screen {
    /// None where the terminal knows no escapes: nothing is drawn twice there.
    live: Option<Live>,
    style: Style,
    answer: Option<Answer>,
    /// Messages that came in the middle of an answer, held until its end.
    held: Vec<Whole>,
    /// Lines whose replies wait for the end of an answer: they change the conversation, or end the
    /// answer.
    patient: HashSet<MessageId>,
    /// The line with the person's wish to stop the answer.
    stopping: Option<MessageId>,
    /// Since when an answer is known to be stopped.
    stopped: Option<Instant>,
    /// The line `/help`: the terminal adds its own keys and commands to the reply.
    helping: Option<MessageId>,
    /// Lines typed ahead that are not on the screen.
    waiting: VecDeque<Waiting>,
    /// The agent that is at work.
    at_work: Option<AtWork>,
    /// The person leaves after the answer.
    is_leaving: bool,
    ticks: usize,
}

/// An answer being written.
struct Answer {
    place: SessionKey,
    /// Before the first words.
    lead: Option<String>,
    /// The same once more, after words of others in between.
    name: Option<String>,
    text: String,
    /// The beginning of the text that is on the screen for good.
    drawn: usize,
    is_begun: bool,
}

struct Waiting {
    message: MessageId,
    prompt: String,
    line: String,
}

struct AtWork {
    label: String,
    since: Instant,
    /// Where nothing can be drawn twice, the sign of life is a line of its own, once.
    is_told: bool,
}

impl Screen {
    pub(super) fn new(live: Option<Live>) -> Self {
        Screen {
            live,
            style: Style::for_stdout(),
            answer: None,
            held: Vec::new(),
            patient: HashSet::new(),
            stopping: None,
            stopped: None,
            helping: None,
            waiting: VecDeque::new(),
            at_work: None,
            is_leaving: false,
            ticks: 0,
        }
    }

    /// Prints a note of the chat itself, above an answer that is being written.
    pub(super) fn note(&mut self, text: &str) {
        let paper = self.paper();
        let dim = |line: String| self.style.dim(&line);
        let plain = Paper {
            style: Style::PLAIN,
            ..paper
        };
        let text = print::to_type(text);
        let lines: Vec<String> = plain.lines(&text).into_iter().map(dim).collect();
        self.interject(lines);
    }

    /// Prints a text in Markdown, above an answer that is being written.
    pub(super) fn tell(&mut self, text: &str) {
        let lines = self.paper().draw(text, None);
        self.interject(lines);
    }

    /// A line that an answer hides from the screen until its turn comes.
    pub(super) fn wait(&mut self, message: MessageId, prompt: &str, line: &str) {
        self.waiting.push_back(Waiting {
            message,
            prompt: prompt.to_owned(),
            line: line.to_owned(),
        });
    }

    /// Prints a hidden line at once, for the chat's own commands.
    pub(super) fn echo(&mut self, prompt: &str, line: &str) {
        self.interject(echoed(prompt, line));
    }

    /// The reply to this line comes behind the answer at hand.
    pub(super) fn be_patient(&mut self, line: MessageId) {
        self.patient.insert(line);
    }

    pub(super) fn help(&mut self, line: MessageId) {
        self.helping = Some(line);
    }

    /// The person has asked for an end of the answer. The sign of life tells so at once.
    pub(super) fn stop(&mut self, line: MessageId) {
        self.patient.insert(line.clone());
        self.stopping = Some(line);
        self.print(Vec::new());
    }

    /// The wish to stop was for nothing that is written here.
    pub(super) fn forget_stop(&mut self) {
        if let Some(line) = self.stopping.take() {
            self.patient.remove(&line);
        }
    }

    /// The agent that is at work.
    pub(super) fn at_work(&self) -> Option<&str> {
        self.at_work.as_ref().map(|at_work| at_work.label.as_str())
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Whether an answer was stopped a moment ago, and the next has not shown a word.
    pub(super) fn has_just_stopped(&self) -> bool {
        let is_new = |since: &Instant| since.elapsed() < ONE_PRESS;
        self.answer.is_none() && self.stopped.as_ref().is_some_and(is_new)
    }

    /// The place of the answer on the screen.
    pub(super) fn answers_in(&self) -> Option<&SessionKey> {
        self.answer.as_ref().map(|answer| &answer.place)
    }

    /// Where the line editor shows no prompt itself.
    pub(super) fn prompt(&mut self, prompt: &str) {
        if self.live.is_none() {
            print::piece(prompt);
        }
    }

    /// An agent has begun to work on a line.
    pub(super) fn work(&mut self, label: String) {
        let since = Instant::now();
        self.at_work.get_or_insert(AtWork {
            label,
            since,
            is_told: false,
        });
    }

    /// The person leaves after the answer: the sign of life tells the way out.
    pub(super) fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// A line that waited is dropped.
    pub(super) fn forget(&mut self, line: &MessageId) {
        self.waiting.retain(|waiting| waiting.message != *line);
        self.patient.remove(line);
    }

    /// Everything so far is answered, and further lines have their turn.
    pub(super) fn go_on(&mut self, here: &SessionKey) {
        self.at_work = None;
        self.end_and_go_on(here);
        self.stopping = None;
    }

    /// Everything is answered.
    pub(super) fn rest(&mut self, here: &SessionKey) {
        self.at_work = None;
        self.end_and_go_on(here);
        self.stopping = None;
        self.patient.clear();
        let waiting = std::mem::take(&mut self.waiting);
        let lines = waiting.iter().flat_map(Waiting::lines).collect();
        self.print(lines);
    }

    /// `here` is the place where the person writes.
    pub(super) fn show(&mut self, shown: Shown, here: &SessionKey) {
        match shown {
            Shown::Text {
                place,
                question,
                speaker,
                text,
            } => {
                if self.answer.is_none() {
                    self.begin(place, question.as_ref(), speaker.as_deref(), here);
                }
                self.piece(&text);
            }
            Shown::End => self.end_and_go_on(here),
            Shown::TakenUp { place, text } => {
                let elsewhere = (place != *here).then(|| topics::place_name(&place));
                self.note(&texts::taken_up(elsewhere.as_deref(), &text));
            }
            Shown::Whole(whole) if self.must_wait(&whole) => self.hold(whole),
            Shown::Whole(whole) => self.whole(whole, here),
        }
    }

    /// The word that the answer is stopped is the first behind it.
    fn hold(&mut self, whole: Whole) {
        let is_stop = whole.line.is_some() && whole.line == self.stopping;
        let at = if is_stop { 0 } else { self.held.len() };
        self.held.insert(at, whole);
    }

    /// Messages of other places and replies to commands come at once, unless they change the
    /// conversation at hand. Everything else has to wait for the end of the answer.
    fn must_wait(&self, whole: &Whole) -> bool {
        let Some(answer) = &self.answer else {
            return false;
        };
        if answer.place != whole.place {
            return false;
        }
        let is_reply = whole.speaker.is_none() && whole.question.is_none();
        match &whole.line {
            Some(line) if is_reply => self.patient.contains(line),
            _ => true,
        }
    }

    /// Draws what has changed.
    pub(super) fn tick(&mut self) {
        self.ticks += 1;
        let mut lines = self.finished_blocks();
        lines.extend(self.plain_sign_of_life());
        self.print(lines);
    }

    fn plain_sign_of_life(&mut self) -> Option<String> {
        let is_silent = self.live.is_none() && self.answer.is_none();
        let at_work = self.at_work.as_mut().filter(|_| is_silent)?;
        let is_due = !at_work.is_told && at_work.since.elapsed() >= PLAIN_SIGN_AFTER;
        at_work.is_told |= is_due;
        is_due.then(|| format!("{} is writing…", printable_line(&at_work.label)))
    }

    /// Returns when the notes so far are on the screen, before the first prompt.
    pub(super) fn settle(&self) {
        if let Some(live) = &self.live {
            live.settle();
        }
    }

    /// Returns when all is on the screen.
    pub(super) fn finish(mut self, here: &SessionKey) {
        self.rest(here);
        if let Some(live) = &mut self.live {
            live.finish();
        }
    }

    /// An answer begins. One from elsewhere has a heading.
    fn begin(
        &mut self,
        place: SessionKey,
        question: Option<&MessageId>,
        speaker: Option<&str>,
        here: &SessionKey,
    ) {
        self.echo_for(question, None);
        if place != *here {
            self.note(&texts::from_elsewhere(&topics::place_name(&place)));
        }
        let lead = self.lead(speaker);
        self.answer = Some(Answer {
            place,
            name: lead.clone(),
            lead,
            text: String::new(),
            drawn: 0,
            is_begun: false,
        });
        if let (Some(at_work), Some(speaker)) = (&mut self.at_work, speaker) {
            speaker.clone_into(&mut at_work.label);
        }
    }

    fn piece(&mut self, text: &str) {
        if let Some(answer) = &mut self.answer {
            answer.text += &printable(text);
        }
    }

    fn end_and_go_on(&mut self, here: &SessionKey) {
        self.end();
        for held in std::mem::take(&mut self.held) {
            self.whole(held, here);
        }
    }

    fn end(&mut self) {
        let Some(answer) = self.answer.take() else {
            return;
        };
        let lines = answer.rest(self.paper());
        if let Some(at_work) = &mut self.at_work {
            at_work.since = Instant::now();
        }
        self.print(lines);
    }

    /// A heading stands above a message from elsewhere or from before; the answer to the last line
    /// needs none.
    fn whole(&mut self, whole: Whole, here: &SessionKey) {
        self.echo_for(whole.question.as_ref(), whole.line.as_ref());
        let place = topics::place_name(&whole.place);
        match (whole.is_left, whole.place == *here) {
            (true, true) => self.note("What was asked here before is answered now:"),
            (true, false) => self.note(&format!(
                "What was asked before in {place} is answered now:"
            )),
            (false, false) => self.note(&texts::from_elsewhere(&place)),
            (false, true) => {}
        }
        let Whole {
            line,
            speaker,
            mut text,
            ..
        } = whole;
        let is_for = |own: &Option<MessageId>| line.is_some() && line == *own;
        if is_for(&self.helping) {
            text = format!("{text}\n\n{}", texts::here_too());
        }
        if is_for(&self.stopping) {
            self.stopping = None;
            self.stopped = Some(Instant::now());
        }
        let lead = self.lead(speaker.as_deref());
        let lines = self.paper().draw(&text, lead.as_deref());
        self.interject(lines);
    }

    /// Prints the lines that are answered now. An answer names the last line of several as its
    /// question.
    fn echo_for(&mut self, question: Option<&MessageId>, line: Option<&MessageId>) {
        let is_command = |waiting: &Waiting| waiting.line.starts_with('/');
        let found = |message: &MessageId| {
            let mut waiting = self.waiting.iter();
            waiting.position(|waiting| waiting.message == *message)
        };
        let answered: Vec<usize> = match question {
            Some(question) => {
                let upto = found(question).map_or(0, |last| last + 1);
                (0..upto)
                    .filter(|&at| !is_command(&self.waiting[at]))
                    .collect()
            }
            None => line.and_then(found).into_iter().collect(),
        };
        let mut lines = Vec::new();
        for at in answered.into_iter().rev() {
            let waiting = self.waiting.remove(at);
            lines.splice(0..0, waiting.iter().flat_map(Waiting::lines));
        }
        self.interject(lines);
    }

    /// Prints lines above the block that is being written. The answer goes on below them, with the
    /// speaker's name once more.
    fn interject(&mut self, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        let mut all = self.finished_blocks();
        all.extend(lines);
        if let Some(answer) = self.answer.as_mut().filter(|answer| answer.is_begun) {
            answer.lead.clone_from(&answer.name);
            answer.is_begun = false;
        }
        self.print(all);
    }

    fn lead(&self, speaker: Option<&str>) -> Option<String> {
        speaker.map(|speaker| self.style.bold(&format!("{}:", printable_line(speaker))))
    }

    /// Takes the blocks that no further word changes.
    fn finished_blocks(&mut self) -> Vec<String> {
        let paper = self.paper();
        let Some(answer) = &mut self.answer else {
            return Vec::new();
        };
        answer.finished_blocks(paper)
    }

    fn print(&mut self, lines: Vec<String>) {
        let live = self.live_lines();
        match &self.live {
            Some(drawing) => drawing.show(Picture { lines, live }),
            None if lines.is_empty() => {}
            None => print::piece(&format!("{}\n", lines.join("\n"))),
        }
    }

    /// The unfinished block, the sign of life and the lines that wait.
    fn live_lines(&self) -> Vec<String> {
        let mut lines = self.unfinished_block();
        lines.extend(self.sign_of_life());
        let shown = self.waiting.iter().take(MOST_WAITING);
        lines.extend(
            shown.map(|waiting| self.clipped(&format!("  {}{}", waiting.prompt, waiting.line))),
        );
        if self.waiting.len() > MOST_WAITING {
            let more = self.waiting.len() - MOST_WAITING;
            lines.push(self.clipped(&format!("  and {more} more")));
        }
        lines
    }

    fn unfinished_block(&self) -> Vec<String> {
        let Some(answer) = &self.answer else {
            return Vec::new();
        };
        let lines = answer.rest(self.paper());
        let room = MOST_LIVE.min(print::rows().saturating_sub(MOST_WAITING + 5));
        let hidden = lines.len().saturating_sub(room.max(1));
        lines.into_iter().skip(hidden).collect()
    }

    fn sign_of_life(&self) -> Option<String> {
        let AtWork { label, since, .. } = self.at_work.as_ref()?;
        let waited = since.elapsed();
        let spinner = SPINNER[self.ticks % SPINNER.len()];
        if self.is_stopping() {
            return Some(self.clipped(&format!("{spinner} Stopping…")));
        }
        if waited < SIGN_AFTER && self.answer.is_none() {
            return None;
        }
        let label = printable_line(label);
        let way_out = if self.is_leaving { "leaves" } else { "stops" };
        let hint = if waited >= HINT_AFTER {
            format!(" {} s, Ctrl-C {way_out}", waited.as_secs())
        } else {
            String::new()
        };
        Some(self.clipped(&format!("{spinner} {label} is writing…{hint}")))
    }

    /// A single dim row.
    fn clipped(&self, text: &str) -> String {
        let width = self.paper().width;
        let mut clipped = String::new();
        for c in printable_line(text).chars() {
            if markdown::columns(&clipped) + 2 > width {
                clipped.push('…');
                break;
            }
            clipped.push(c);
        }
        self.style.dim(&clipped)
    }

    fn paper(&self) -> Paper {
        Paper {
            style: self.style,
            width: print::columns().saturating_sub(1),
        }
    }
}

impl Answer {
    /// Takes the blocks that no further word changes.
    fn finished_blocks(&mut self, paper: Paper) -> Vec<String> {
        let rest = &self.text[self.drawn..];
        let finished = &rest[..markdown::unfinished(rest)];
        let mut lines = Vec::new();
        if !finished.trim().is_empty() {
            let lead = self.lead.take();
            lines = paper.block(finished, lead.as_deref(), self.is_begun);
            self.is_begun = true;
        }
        self.drawn += finished.len();
        lines
    }

    /// The blocks that are not on the screen for good.
    fn rest(&self, paper: Paper) -> Vec<String> {
        paper.block(
            &self.text[self.drawn..],
            self.lead.as_deref(),
            self.is_begun,
        )
    }
}

impl Waiting {
    fn lines(&self) -> Vec<String> {
        echoed(&self.prompt, &self.line)
    }
}

/// A typed line as the editor would have left it.
fn echoed(prompt: &str, line: &str) -> Vec<String> {
    let line = printable(&format!("{prompt}{line}"));
    line.split('\n').map(str::to_owned).collect()
}
