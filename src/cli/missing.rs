//! Command lines that end too early: a sentence with the words that are missing, and an example.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Failure, examples};

/// The failure for a line without its arguments. None for other mistakes.
pub(super) fn failure(
    mut parlor: Command,
    told: &clap::Error,
    words: &[String],
) -> Option<Failure> {
    // Options have a text form only after this.
    parlor.build();
    let (verb, path) = verb(&parlor, words);
    let line = format!("parlor {path}");
    let missing = match told.kind() {
        ErrorKind::MissingRequiredArgument => arguments(verb, told)?,
        ErrorKind::InvalidValue => return without_value(told, &path),
        _ => return None,
    };
    let text = format!("`{}` needs {}", line.trim_end(), listed(&missing));
    Some(with_example(Failure::WrongUse(text), &path))
}

/// The last verb of the line, with the words that lead to it.
fn verb<'a>(parlor: &'a Command, words: &[String]) -> (&'a Command, String) {
    let (mut verb, mut path) = (parlor, Vec::new());
    for word in words {
        if let Some(found) = verb.find_subcommand(word) {
            verb = found;
            path.push(found.get_name());
        }
    }
    (verb, path.join(" "))
}

/// `PLACE (key of the place)`, as the help of the verb explains each.
fn arguments(verb: &Command, told: &clap::Error) -> Option<Vec<String>> {
    let Some(ContextValue::Strings(names)) = told.get(ContextKind::InvalidArg) else {
        return None;
    };
    let plain = |shown: &str| shown.replace(['<', '>', '[', ']'], "");
    let explained = |shown: &String| {
        let name = plain(shown);
        let mut known = verb.get_arguments();
        let known = known.find(|known| plain(&known.to_string()) == name);
        match known.and_then(clap::Arg::get_help) {
            Some(help) => format!("{name} ({})", in_a_sentence(&help.to_string())),
            None => name,
        }
    };
    Some(names.iter().map(explained).collect())
}

/// `Key of the place, as /whoami shows it` as `key of the place`; names such as `OpenClaw` keep their
/// capital.
fn in_a_sentence(help: &str) -> String {
    const DETAILS: [&str; 4] = [", as ", ", such as ", " (", " [default"];
    let ends = DETAILS.iter().filter_map(|detail| help.find(detail));
    let help = ends.min().map_or(help, |end| &help[..end]);
    let first = help.split(' ').next().unwrap_or_default();
    let is_plain = first.chars().skip(1).all(char::is_lowercase);
    match help.chars().next() {
        Some(letter) if is_plain => {
            format!("{}{}", letter.to_lowercase(), &help[letter.len_utf8()..])
        }
        _ => help.to_owned(),
    }
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "more words".to_owned(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

/// An option without its value.
fn without_value(told: &clap::Error, path: &str) -> Option<Failure> {
    let (Some(ContextValue::String(value)), Some(ContextValue::String(option))) = (
        told.get(ContextKind::InvalidValue),
        told.get(ContextKind::InvalidArg),
    ) else {
        return None;
    };
    let (name, wanted) = option.split_once(' ')?;
    if !value.is_empty() || !name.starts_with('-') {
        return None;
    }
    let wanted = wanted.replace(['<', '>'], "");
    let failure = Failure::WrongUse(format!("`{name}` needs {wanted} behind it"));
    Some(hinted(failure, examples::with(path, name), path))
}

fn with_example(failure: Failure, path: &str) -> Failure {
    hinted(failure, examples::first(path), path)
}

fn hinted(failure: Failure, example: Option<&str>, path: &str) -> Failure {
    let help = format!("`{}` tells more", format!("parlor help {path}").trim_end());
    match example {
        Some(example) => failure.hint(format_args!("for example `{example}`; {help}")),
        None => failure.hint(help),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::{Arguments, command};
    use super::*;

    fn told(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let read = Arguments::command().try_get_matches_from(&words);
        let error = read.expect_err("something is missing");
        match failure(command(), &error, &words[1..]) {
            Some(Failure::WrongUse(text) | Failure::Failed(text)) => text,
            None => format!("clap: {error}"),
        }
    }

    #[test]
    fn a_line_without_its_arguments_is_answered_with_an_example() {
        let check = |line: &str, expected: &str| assert_eq!(told(line), expected);
        check(
            "parlor pin",
            "`parlor pin` needs PLACE (name or key of the place) and AGENT (id or name of the agent)\nhint: for example `parlor pin Writing rose`; `parlor help pin` tells more",
        );
        check(
            "parlor route explain",
            "`parlor route explain` needs PLACE (name or key of the place)\nhint: for example `parlor route explain Writing`; `parlor help route explain` tells more",
        );
        check(
            "parlor people role alice",
            "`parlor people role` needs ROLE (guest, member, admin or owner)\nhint: for example `parlor people role alice admin`; `parlor help people role` tells more",
        );
        check(
            "parlor usage --since",
            "`--since` needs DAY behind it\nhint: for example `parlor usage --since 2026-11-01 --csv > usage.csv`; `parlor help usage` tells more",
        );
    }

    /// Every verb with required arguments is told in one sentence, with an example that works.
    #[test]
    fn no_verb_shows_the_raw_error_of_a_missing_argument() {
        fn each(verb: &Command, line: &str) {
            let is_bare = verb.get_arguments().any(clap::Arg::is_required_set);
            if is_bare && !verb.is_hide_set() {
                let text = told(line);
                assert!(
                    text.contains(" needs ") && text.contains("for example `parlor "),
                    "{text}"
                );
            }
            let verbs = verb
                .get_subcommands()
                .filter(|verb| verb.get_name() != "help");
            verbs.for_each(|verb| each(verb, &format!("{line} {}", verb.get_name())));
        }
        each(&command(), "parlor");
    }
}
