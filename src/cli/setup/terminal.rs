//! Questions to a person at the terminal.

use std::io::IsTerminal;
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use inquire::ui::RenderConfig;
use inquire::{Confirm, InquireError, Password, PasswordDisplayMode, Select, Text};
use tokio::task::block_in_place;

use crate::cli::color::Style;
use crate::cli::note;
use crate::printable::printable_line;
use crate::setup::{Answer, Asker, Stop};

/// Lines of a list at a time.
const PAGE: usize = 12;

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

    fn look(&self) -> RenderConfig<'static> {
        match Style::for_stderr().is_coloured() {
            true => RenderConfig::default_colored(),
            false => RenderConfig::empty(),
        }
    }
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
        self.show();
        let question = printable_line(question);
        let prompt = Confirm::new(&question)
            .with_default(default)
            .with_render_config(self.look());
        block_in_place(|| prompt.prompt()).map_err(stopped)
    }

    fn choose(&mut self, question: &str, options: &[String], default: usize) -> Answer<usize> {
        self.show();
        let question = printable_line(question);
        let options = options
            .iter()
            .map(|option| printable_line(option))
            .collect();
        let prompt = Select::new(&question, options)
            .with_starting_cursor(default)
            .with_page_size(PAGE)
            .with_help_message("arrow keys choose, Enter takes")
            .with_render_config(self.look());
        let chosen = block_in_place(|| prompt.raw_prompt()).map_err(stopped)?;
        Ok(chosen.index)
    }

    fn text(&mut self, question: &str, default: &str) -> Answer<String> {
        self.show();
        let question = printable_line(question);
        let mut prompt = Text::new(&question).with_render_config(self.look());
        if !default.is_empty() {
            prompt = prompt.with_default(default);
        }
        block_in_place(|| prompt.prompt()).map_err(stopped)
    }

    fn secret(&mut self, question: &str) -> Answer<String> {
        self.show();
        let prompt = Password::new(question)
            .without_confirmation()
            .with_display_mode(PasswordDisplayMode::Hidden)
            .with_render_config(self.look());
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

fn stopped(error: InquireError) -> Stop {
    match error {
        InquireError::OperationCanceled | InquireError::OperationInterrupted => Stop::Interrupted,
        other => Stop::Failed(other.to_string()),
    }
}
