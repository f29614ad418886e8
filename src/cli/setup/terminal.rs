//! Questions to a person at the terminal.

use std::io::IsTerminal;
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use inquire::ui::{RenderConfig, Styled};
use inquire::{Confirm, InquireError, Password, PasswordDisplayMode, Select, Text};
use tokio::task::block_in_place;

use crate::cli::color::Style;
use crate::cli::fitting::hanging;
use crate::cli::note;
use crate::cli::print::{columns, to_type};
use crate::printable::printable_line;
use crate::setup::{Answer, Asker, Stop};

/// Lines of a list at a time.
const PAGE: usize = 12;
/// Columns beside a question: its mark before it, and a space behind.
const FOR_PROMPT: usize = 4;
/// The same with `(Y/n)`.
const FOR_YES_OR_NO: usize = 10;

/// The terminal. While it waits, keys are read one by one.
#[derive(Default)]
pub(super) struct AtTerminal {
    reads_keys: bool,
}

impl AtTerminal {
    /// Back to lines, before anything is shown.
    fn show(&mut self) {
        if std::mem::take(&mut self.reads_keys) {
            // A terminal that is gone is told about by the next question.
            let _ = disable_raw_mode();
        }
    }

    /// Tells a long question up to its last line, which is left to ask. A prompt is cut by the
    /// terminal in the middle of words.
    fn prompt(&mut self, question: &str, beside: usize) -> Prompt {
        self.show();
        let look = match Style::for_stderr().is_coloured() {
            true => RenderConfig::default_colored(),
            false => RenderConfig::empty(),
        };
        let room = columns().saturating_sub(beside);
        let question = printable_line(&to_type(question));
        let lines = hanging(&question, 2, room);
        match lines.rsplit_once('\n') {
            Some((before, last)) => {
                let mark = look.prompt_prefix.content;
                note(format_args!("{mark} {before}"));
                // The mark of the question is before its first line.
                let indent = Styled::new(" ");
                Prompt {
                    line: last.trim_start().to_owned(),
                    look: look
                        .with_prompt_prefix(indent)
                        .with_answered_prompt_prefix(indent),
                }
            }
            None => Prompt { line: lines, look },
        }
    }
}

/// The last line of a question, and how it is shown.
struct Prompt {
    line: String,
    look: RenderConfig<'static>,
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        self.show();
    }
}

impl Asker for AtTerminal {
    fn say(&mut self, line: &str) {
        let reads_keys = self.reads_keys;
        self.show();
        note(format_args!("{line}"));
        self.reads_keys = reads_keys && enable_raw_mode().is_ok();
    }

    fn confirm(&mut self, question: &str, default: bool) -> Answer<bool> {
        let Prompt { line, look } = self.prompt(question, FOR_YES_OR_NO);
        let prompt = Confirm::new(&line)
            .with_default(default)
            .with_render_config(look);
        block_in_place(|| prompt.prompt()).map_err(stopped)
    }

    fn choose(&mut self, question: &str, options: &[String], default: usize) -> Answer<usize> {
        let Prompt { line, look } = self.prompt(question, FOR_PROMPT);
        let options = options
            .iter()
            .map(|option| printable_line(&to_type(option)))
            .collect();
        let prompt = Select::new(&line, options)
            .with_starting_cursor(default)
            .with_page_size(PAGE)
            .with_help_message("arrow keys choose, Enter takes")
            .with_render_config(look);
        let chosen = block_in_place(|| prompt.raw_prompt()).map_err(stopped)?;
        Ok(chosen.index)
    }

    fn text(&mut self, question: &str, default: &str) -> Answer<String> {
        let Prompt { line, look } = self.prompt(question, FOR_PROMPT);
        let mut prompt = Text::new(&line).with_render_config(look);
        if !default.is_empty() {
            prompt = prompt.with_default(default);
        }
        block_in_place(|| prompt.prompt()).map_err(stopped)
    }

    fn secret(&mut self, question: &str) -> Answer<String> {
        let Prompt { line, look } = self.prompt(question, FOR_PROMPT);
        let prompt = Password::new(&line)
            .without_confirmation()
            .with_display_mode(PasswordDisplayMode::Hidden)
            .with_formatter(&covered)
            .with_render_config(look);
        block_in_place(|| prompt.prompt()).map_err(stopped)
    }

    fn pressed(&mut self) -> Answer<bool> {
        if !self.reads_keys {
            enable_raw_mode().map_err(Stop::failed)?;
            self.reads_keys = true;
        }
        while event::poll(Duration::ZERO).map_err(Stop::failed)? {
            let Event::Key(KeyEvent {
                code,
                modifiers,
                kind: KeyEventKind::Press,
                ..
            }) = event::read().map_err(Stop::failed)?
            else {
                continue;
            };
            let is_control = modifiers.contains(KeyModifiers::CONTROL);
            match code {
                KeyCode::Char('c' | 'd') if is_control => return Err(Stop::Interrupted),
                // Enter that was pressed before keys were read one by one.
                KeyCode::Char('j') if is_control => return Ok(true),
                KeyCode::Enter => return Ok(true),
                KeyCode::Esc => return Err(Stop::Interrupted),
                _ => {}
            }
        }
        Ok(false)
    }

    fn is_person(&self) -> bool {
        std::io::stdin().is_terminal()
    }
}

/// A secret as it is shown once it is entered.
fn covered(secret: &str) -> String {
    match secret.is_empty() {
        true => "(none)".to_owned(),
        false => "********".to_owned(),
    }
}

fn stopped(error: InquireError) -> Stop {
    match error {
        InquireError::OperationCanceled | InquireError::OperationInterrupted => Stop::Interrupted,
        other => Stop::Failed(other.to_string()),
    }
}
