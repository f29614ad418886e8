//! `parlor completions`: prints the lines that make a shell complete verbs, options, agents and
//! places. The shell asks the program itself at each Tab, so the candidates are always those of
//! the home.

use clap::{Args, Command};
use clap_complete::CompleteEnv;
use clap_complete::env::{EnvCompleter, Shells};

use super::{Failure, Outcome, candidates, print};

/// Set by the shell when it asks for candidates.
const ASKED_BY: &str = "PARLOR_COMPLETE";

#[derive(Args)]
pub(super) struct Arguments {
    /// The shell to complete in
    #[arg(value_parser = ["bash", "zsh", "fish", "elvish", "powershell"])]
    shell: String,
}

/// Answers the shell and ends the program, if a shell asks.
pub(super) fn if_asked() {
    if std::env::var_os(ASKED_BY).is_some() {
        CompleteEnv::with_factory(completable)
            .var(ASKED_BY)
            .bin("parlor")
            .complete();
    }
}

fn completable() -> Command {
    candidates::with_candidates(super::command())
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let shells = Shells::builtins();
    let shell = shells
        .completer(&arguments.shell)
        .ok_or_else(|| Failure::WrongUse(format!("{} is not known", arguments.shell)))?;
    print::document(&registration(shell)?);
    Ok(())
}

fn registration(shell: &dyn EnvCompleter) -> Result<String, Failure> {
    let mut script = Vec::new();
    if shell.name() == "bash" {
        script.extend_from_slice(KEYS_ARE_WORDS.as_bytes());
    }
    shell.write_registration(ASKED_BY, "parlor", "parlor", "parlor", &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Without it, bash hands over the pieces of a key, such as `telegram`, `:` and `topic`.
const KEYS_ARE_WORDS: &str = "\
# Places such as telegram:topic:-100:7 are one word.
COMP_WORDBREAKS=${COMP_WORDBREAKS//:}

";
