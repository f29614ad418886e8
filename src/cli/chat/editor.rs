//! The prompt of `parlor chat`: line editing, history and completion, in a thread of its own,
//! because the editor blocks. A prompt goes in, a line comes out.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event,
    EventContext, EventHandler, Helper, KeyEvent, RepeatCount,
};
use tokio::sync::mpsc::{self, error::TrySendError};

use super::live::{Live, Rows, Typed};
use super::words::Words;
use crate::cli::{Failure, markdown, print};

/// The lines of earlier chats, in the home folder.
const HISTORY: &str = "chat_history";
const MOST_HISTORY: usize = 1000;
/// The person's keys are a little ahead of the chat at most.
const QUEUE: usize = 64;

/// What the person did at the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entered {
    Line {
        text: String,
        typed: Typed,
    },
    /// Ctrl-C, with or without words at the prompt.
    Interrupt {
        had_words: bool,
    },
    /// Ctrl-D on an empty line, or the end of the terminal.
    End,
}

/// What the chat wants from the editor.
enum Ask {
    /// A line, behind this prompt.
    Line(String),
    /// Ctrl-C or Ctrl-D from a person who is about to leave. The screen stays as it is.
    WayOut,
}

/// The chat's side of the editor.
pub(super) struct Prompt {
    prompts: mpsc::Sender<Ask>,
    pub(super) entered: mpsc::Receiver<Entered>,
}

impl Prompt {
    /// Shows a prompt for the next line. False when the editor has ended. A prompt that still waits
    /// is enough, as after a signal.
    pub(super) fn ask(&self, prompt: String) -> bool {
        let asked = self.prompts.try_send(Ask::Line(prompt));
        !matches!(asked, Err(TrySendError::Closed(_)))
    }

    /// Has the editor tell of Ctrl-C and Ctrl-D, and of nothing else.
    pub(super) fn ask_for_a_way_out(&self) {
        // An editor that has ended, or still waits for a line, tells of both keys too.
        drop(self.prompts.try_send(Ask::WayOut));
    }
}

/// Starts the editor. None where the terminal knows no escapes.
pub(super) fn start(home: &Path, words: Words) -> Result<Option<(Prompt, Live)>, Failure> {
    let config = Config::builder()
        .max_history_size(MOST_HISTORY)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .color_mode(ColorMode::Disabled)
        .build();
    let mut editor: Editor<AtPrompt, FileHistory> = Editor::with_config(config)?;
    let Ok(printer) = editor.create_external_printer() else {
        return Ok(None);
    };
    editor.set_helper(Some(AtPrompt { words }));
    let interrupted = Arc::new(AtomicBool::new(false));
    editor.bind_sequence(
        KeyEvent::ctrl('C'),
        EventHandler::Conditional(Box::new(CtrlC(interrupted.clone()))),
    );
    let history = home.join(HISTORY);
    // The first chat has no history.
    drop(editor.load_history(&history));
    let rows = Rows::default();
    let (prompts, asked) = mpsc::channel(1);
    let (entered, lines) = mpsc::channel(QUEUE);
    let reader = Reader {
        editor,
        history,
        interrupted,
        rows: rows.clone(),
    };
    std::thread::spawn(move || reader.read(asked, &entered));
    let prompt = Prompt {
        prompts,
        entered: lines,
    };
    Ok(Some((prompt, Live::new(printer, rows))))
}

/// Lines from a terminal without escapes, where the system edits the line and keeps what is typed
/// ahead. Ctrl-C is a signal there.
pub(super) fn start_plain() -> Prompt {
    let (prompts, mut asked) = mpsc::channel::<Ask>(1);
    let (entered, lines) = mpsc::channel(QUEUE);
    let interrupted = entered.clone();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            let interrupt = Entered::Interrupt { had_words: false };
            if interrupted.send(interrupt).await.is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        let mut typed = std::io::stdin().lines();
        while asked.blocking_recv().is_some() {
            let event = match typed.next() {
                Some(Ok(text)) => Entered::Line {
                    text,
                    typed: Typed::Stays,
                },
                Some(Err(_)) | None => Entered::End,
            };
            if entered.blocking_send(event).is_err() {
                return;
            }
        }
    });
    Prompt {
        prompts,
        entered: lines,
    }
}

struct Reader {
    editor: Editor<AtPrompt, FileHistory>,
    history: PathBuf,
    interrupted: Arc<AtomicBool>,
    rows: Rows,
}

impl Reader {
    fn read(mut self, mut asked: mpsc::Receiver<Ask>, entered: &mpsc::Sender<Entered>) {
        while let Some(ask) = asked.blocking_recv() {
            let event = match ask {
                Ask::Line(prompt) => self.next(&prompt),
                Ask::WayOut => way_out(),
            };
            if entered.blocking_send(event).is_err() {
                return;
            }
        }
    }

    fn next(&mut self, prompt: &str) -> Entered {
        match self.editor.readline(prompt) {
            Ok(text) if self.interrupted.swap(false, Ordering::Relaxed) => {
                self.ended(prompt, &text);
                Entered::Interrupt {
                    had_words: !text.is_empty(),
                }
            }
            Ok(text) => {
                let typed = self.ended(prompt, &text);
                self.remember(&text);
                Entered::Line { text, typed }
            }
            Err(_) => {
                // The editor leaves an empty prompt behind.
                self.ended(prompt, "");
                Entered::End
            }
        }
    }

    fn ended(&self, prompt: &str, text: &str) -> Typed {
        let rows = rows_of(&format!("{prompt}{text}"), print::columns());
        self.rows.prompt_ended(rows)
    }

    /// A line is sent even if the history cannot take it.
    fn remember(&mut self, text: &str) {
        if self.editor.add_history_entry(text).unwrap_or(false) {
            drop(self.editor.append_history(&self.history));
        }
    }
}

/// Waits for Ctrl-C or Ctrl-D. Between two prompts both come as plain bytes.
fn way_out() -> Entered {
    let mut key = [0];
    loop {
        match std::io::stdin().lock().read(&mut key) {
            Ok(1..) if key[0] == CTRL_C => return Entered::Interrupt { had_words: false },
            Ok(1..) if key[0] != CTRL_D => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return Entered::End,
        }
    }
}

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;

/// The rows that a text takes on the screen, counted as the editor does.
fn rows_of(text: &str, columns: usize) -> usize {
    text.split('\n')
        .map(|line| markdown::columns(line) / columns.max(1) + 1)
        .sum()
}

/// Ctrl-C ends the line like Enter, with a mark: the editor's own way would throw away the keys
/// typed behind it.
struct CtrlC(Arc<AtomicBool>);

impl ConditionalEventHandler for CtrlC {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext) -> Option<Cmd> {
        self.0.store(true, Ordering::Relaxed);
        Some(Cmd::AcceptLine)
    }
}

/// The editor's helper, which offers words.
struct AtPrompt {
    words: Words,
}

impl Helper for AtPrompt {}
impl Highlighter for AtPrompt {}
impl Validator for AtPrompt {}

impl Hinter for AtPrompt {
    type Hint = String;
}

impl Completer for AtPrompt {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.words.offer(&line[..pos]);
        let pair = |word: String| Pair {
            display: word.trim_end().to_owned(),
            replacement: word,
        };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_as_the_editor_draws_them() {
        let check = |text: &str, expected| assert_eq!(rows_of(text, 10), expected, "{text}");
        check("› ", 1);
        check("› 1234567", 1);
        check("› 12345678", 2);
        check("› a\nb", 2);
        check("› 日本語日本", 2);
    }
}
