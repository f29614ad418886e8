//! Explains in plain words why a file is not TOML, with the line as it should be.
//!
//! The parser's own messages are for people who know TOML. Other people write forms they know from
//! elsewhere: YAML, JSON, the shell, a word processor.

use std::ops::Range;

use super::lookalikes::looks_like_variable;
use super::report::line_of;
use super::schema::{Key, PLACES};
use super::{Fault, Problem, brackets, numbers, odd_characters, odd_quotes};
use crate::domain::AgentId;

/// The parser's messages about a value without quotes, or without a value.
const NO_QUOTES: &str = "string values must be quoted";
const NO_BOOLEAN: &str = "invalid boolean";
const NO_FLOAT: &str = "invalid float";
const DUPLICATE: &str = "duplicate key";
const LEFT_OVER: &str = "unexpected key or value";

/// A file with errors of notation.
pub(super) struct Broken<'a> {
    pub(super) text: &'a str,
    /// The text with secrets covered. Messages repeat only this text.
    pub(super) covered: &'a str,
}

/// A problem for each wrong line.
pub(super) fn problems(errors: &[toml::de::Error], broken: &Broken<'_>) -> Vec<Problem> {
    if let Some(conflict) = broken.conflict() {
        return vec![conflict];
    }
    if let Some(text) = broken.open_text(errors) {
        return vec![text];
    }
    if let Some(table) = broken.open_table(errors) {
        return vec![table];
    }
    if let Some(list) = broken.open_list(errors) {
        return vec![list];
    }
    let mut told: Vec<(usize, Problem)> = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or_default();
        let line = broken.line_number(span.start);
        if told.iter().any(|(other, _)| *other == line) || broken.goes_on(&span, &told) {
            continue;
        }
        told.extend(broken.problem(error.message(), span).map(|problem| {
            let line = broken.line_number(problem.span.start);
            (line, problem.fault(Fault::Syntax))
        }));
    }
    let mut problems: Vec<Problem> = Vec::new();
    for (_, problem) in told {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    // A file with an error is never told to be fine.
    if let (true, Some(error)) = (problems.is_empty(), errors.first()) {
        let (what, expected) = in_parts(error.message());
        let problem = untold(what, expected, error.span().unwrap_or_default());
        problems.push(problem.fault(Fault::Syntax));
    }
    problems
}

/// What is wrong, and what was expected instead.
fn in_parts(message: &str) -> (&str, &str) {
    message.split_once(", expected ").unwrap_or((message, ""))
}

/// A problem without an explanation of its own.
fn untold(what: &str, expected: &str, span: Range<usize>) -> Problem {
    let label = match expected {
        "" => "here".to_owned(),
        expected => format!("expected {expected}"),
    };
    Problem::new(span, format!("this is not TOML: {what}"))
        .label(label)
        .help("the rules of TOML are at https://toml.io")
}

/// Whether tables are missing because of `[[agents]]`, so that mentions of them look wrong.
pub(super) fn hides_tables(problem: &Problem) -> bool {
    problem.message.starts_with("`[[")
}

/// Keys with words such as `off`.
fn is_word(key: &str) -> bool {
    key == "memory"
}

/// Whether the rest of the file was still read as meant.
pub(super) fn is_local(error: &toml::de::Error) -> bool {
    [DUPLICATE, NO_QUOTES, NO_BOOLEAN, NO_FLOAT]
        .iter()
        .any(|local| error.message().starts_with(local))
}

impl Broken<'_> {
    /// `None` for a consequence of a problem told elsewhere.
    fn problem(&self, message: &str, span: Range<usize>) -> Option<Problem> {
        let (what, expected) = in_parts(message);
        if what == DUPLICATE {
            return self.duplicate(span);
        }
        let known = self
            .pasted(&span)
            .or_else(|| self.odd_quotes(what, &span))
            .or_else(|| self.odd_character(&span))
            .or_else(|| self.other_language(&span))
            .or_else(|| self.inner_colon(&span))
            .or_else(|| self.late_comment(what, &span))
            .or_else(|| self.inner_comma(&span))
            .or_else(|| self.odd_number(&span))
            .or_else(|| self.value(what, &span))
            .or_else(|| self.string(what, expected, &span))
            .or_else(|| Self::number(what, &span))
            .or_else(|| self.line_form(what, &span));
        Some(known.unwrap_or_else(|| untold(what, expected, span)))
    }

    /// Whether a line belongs to a block of YAML or JSON that is told at its first line.
    fn goes_on(&self, span: &Range<usize>, told: &[(usize, Problem)]) -> bool {
        let line = &self.text[self.line(span.start)];
        let is_inside = line.starts_with([' ', '\t', '}', ']']) && !line.contains('=');
        is_inside && !told.is_empty()
    }

    fn odd_quotes(&self, what: &str, span: &Range<usize>) -> Option<Problem> {
        let line = self.line(span.start);
        let is_about_quotes =
            what.contains("string") || what.contains("quote") || what == NO_QUOTES;
        let inside = self.text.get(span.clone()).unwrap_or_default();
        let (at, quote, kind) = odd_quotes::first_in(inside)
            .map(|(at, quote, kind)| (span.start + at, quote, kind))
            .or_else(|| {
                let (at, quote, kind) = odd_quotes::first_in(&self.text[line.clone()])?;
                is_about_quotes.then_some((line.start + at, quote, kind))
            })?;
        let covered = &self.covered[line.clone()];
        let advice = match covered.split_once('=') {
            _ if covered.contains('*') => "write straight quotes: `\"…\"`".to_owned(),
            _ if covered.trim_start().starts_with('[') => {
                format!("write `{}`", odd_quotes::without(covered.trim()))
            }
            Some(_) if inside.chars().count() > 1 => format!(
                "write straight quotes: `{}`",
                self.assignment(span, odd_quotes::unquoted(inside))
            ),
            Some((key, value)) => format!(
                "write straight quotes: `{} = \"{}\"`",
                odd_quotes::without(key.trim()),
                odd_quotes::unquoted(value)
            ),
            None => "write straight quotes: `\"…\"`".to_owned(),
        };
        let span = if inside.chars().count() > 1 {
            span.clone()
        } else {
            at..at + quote.len_utf8()
        };
        Some(
            Problem::new(span, format!("{kind} quotes are not quotes in TOML"))
                .label(format!("`{quote}` is not `\"`"))
                .help(advice),
        )
    }

    /// An invisible character, or a character that only resembles the right character.
    fn odd_character(&self, span: &Range<usize>) -> Option<Problem> {
        let line = self.line(span.start);
        let odd = odd_characters::first_in(&self.text[line.clone()])?;
        let at = line.start + odd.at;
        Some(
            Problem::new(at..at + odd.letter.len_utf8(), odd.message)
                .label("here")
                .help(odd.advice),
        )
    }

    /// The lines between which git puts both sides of a conflict.
    fn conflict(&self) -> Option<Problem> {
        const SIGNS: [&str; 3] = ["<<<<<<<", "=======", ">>>>>>>"];
        let mut start = 0;
        for line in self.text.split_inclusive('\n') {
            if SIGNS.iter().any(|sign| line.starts_with(sign)) {
                let end = start + line.trim_end().len();
                let problem =
                    Problem::new(start..end, "git has left both sides of a conflict here");
                return Some(
                    problem
                        .label("one side begins or ends here")
                        .help("keep the lines of one side, and delete the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`")
                        .fault(Fault::Syntax),
                );
            }
            start += line.len();
        }
        None
    }

    /// `token = { env: "X" }`
    fn inner_colon(&self, span: &Range<usize>) -> Option<Problem> {
        let line = self.line(span.start);
        let shown = &self.text[line.clone()];
        let open = shown.find('{')?;
        let inside = &shown[open + 1..];
        let at = inside.find(':')?;
        let key = inside[..at].trim().trim_matches(['"', '\'']);
        if !matches!(key, "env" | "file") && !is_known(key) {
            return None;
        }
        let at = line.start + open + 1 + at;
        let name = inside[at - line.start - open..].trim();
        let name = name.trim_matches(|c: char| "\"'} ".contains(c));
        let advice = match (key, looks_like_variable(name)) {
            ("env", true) => format!("write `{{ env = \"{name}\" }}`"),
            ("env", false) => "write `{ env = \"NAME\" }`, with the variable's name".to_owned(),
            _ => format!("write `{{ {key} = … }}`"),
        };
        Some(
            Problem::new(
                at..at + 1,
                "a key and its value are joined by `=`, not by `:`",
            )
            .label("expected `=`")
            .help(advice),
        )
    }

    /// `max_running = 5 // a comment`, or a semicolon at the end.
    fn late_comment(&self, what: &str, span: &Range<usize>) -> Option<Problem> {
        let line = self.line(span.start);
        let start = span.start.min(line.end);
        let is_left_over = what == LEFT_OVER;
        let value = match is_left_over {
            true => &self.text[start..line.end],
            false => self.text.get(span.clone())?,
        };
        let begins = |sign: &str| match is_left_over {
            true => value.starts_with(sign).then_some(0),
            false => value.find(&format!(" {sign}")).map(|at| at + 1),
        };
        let signs = ["//", "--", "/*", ";"];
        let found = signs
            .into_iter()
            .find_map(|sign| Some((begins(sign)?, sign)));
        if let Some((at, sign)) =
            found.filter(|(at, sign)| !value[at + sign.len()..].trim().is_empty())
        {
            return Some(comment_sign(start + at..start + at + sign.len(), sign));
        }
        let plain = value.trim_end().strip_suffix(';')?;
        let at = start + plain.len();
        Some(
            Problem::new(at..at + 1, "a line ends without `;`")
                .label("one character too many")
                .help("delete it"),
        )
    }

    /// `agent = "ada"`, or only the value inside of a list.
    fn assignment(&self, span: &Range<usize>, value: &str) -> String {
        match self.key_before(span) {
            "" => format!("\"{value}\""),
            key => format!("{key} = \"{value}\""),
        }
    }

    /// The key of a value, if directly before the value.
    fn key_before(&self, span: &Range<usize>) -> &str {
        let line = self.line(span.start);
        let before = self.covered[line.start..span.start.max(line.start)].trim_end();
        let key = before.strip_suffix('=').unwrap_or_default().trim_end();
        let key = key.rsplit([' ', '{', ',']).next().unwrap_or_default();
        match key.chars().all(is_key_character) {
            true => key,
            false => "",
        }
    }

    /// What surrounds a file on a web page or in a terminal.
    fn pasted(&self, span: &Range<usize>) -> Option<Problem> {
        let line = self.line(span.start);
        let shown = &self.covered[line.clone()];
        let trimmed = shown.trim();
        let start = line.start + (shown.len() - shown.trim_start().len());
        let whole = |message: &str| Problem::new(start..start + trimmed.len(), message);
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            return Some(
                whole("this line is Markdown, not TOML")
                    .label("the beginning or the end of a block of code")
                    .help("delete this line, and the other one like it"),
            );
        }
        let is_command = trimmed.starts_with("$ ") || trimmed.starts_with("cat ");
        (is_command && !trimmed.contains('=')).then(|| {
            whole("this line is for the shell, not for this file")
                .label("a command, as typed in a terminal")
                .help("delete this line")
        })
    }

    /// Lines of YAML, JSON, the shell or another language.
    fn other_language(&self, span: &Range<usize>) -> Option<Problem> {
        let line = self.line(span.start);
        let shown = self.covered[line.clone()].trim_end();
        let trimmed = shown.trim_start();
        let start = line.start + (shown.len() - trimmed.len());
        let whole = start..line.start + shown.len();
        let comment = ["//", ";", "--", "/*"]
            .into_iter()
            .find(|sign| trimmed.starts_with(sign));
        if let Some(sign) = comment {
            return Some(comment_sign(start..start + sign.len(), sign));
        }
        if trimmed.starts_with("export ") {
            return Some(
                Problem::new(whole, "this line is for the shell, not for this file")
                    .label("`export` sets a variable of the environment")
                    .help("run it in the terminal before you start Parlor, or put it into the environment of the service"),
            );
        }
        if trimmed.starts_with("- ") {
            return Some(
                Problem::new(whole, "this is a list in YAML, not in TOML")
                    .label("`-` does not begin an item here")
                    .help("write a list in brackets: `owners = [\"telegram:12345678\"]`"),
            );
        }
        if trimmed.starts_with(['{', '}']) {
            return Some(
                Problem::new(whole, "this is JSON, not TOML")
                    .label("TOML has no brackets around the file")
                    .help("write a line for each key, such as `default_agent = \"main\"`, and a header for each section, such as `[agents.rose]`"),
            );
        }
        self.colon(trimmed, start)
    }

    /// `agent: ada`
    fn colon(&self, line: &str, start: usize) -> Option<Problem> {
        let (key, value) = line.split_once(':')?;
        let (name, value) = (
            key.trim_matches(['"', '\'', ' ']),
            value.trim().trim_end_matches(','),
        );
        if name.is_empty() || !name.chars().all(is_key_character) {
            return None;
        }
        let span = start + key.len()..start + key.len() + 1;
        let advice = match value.strip_prefix('=').unwrap_or(value).trim() {
            "" if is_known(name) => format!("write {}", example_of(name)),
            "" => format!("write a section as `[{name}]`, with its keys below"),
            value if is_secret(name) || value.contains('*') => {
                format!("write {}", example_of(name))
            }
            value => format!("write `{name} = {}`", as_value(without_comma(value))),
        };
        Some(
            Problem::new(span, "a key and its value are joined by `=`, not by `:`")
                .label("expected `=`")
                .help(advice),
        )
    }

    /// A missing value, or a value without quotes.
    fn value(&self, what: &str, span: &Range<usize>) -> Option<Problem> {
        let is_value = [
            NO_QUOTES,
            NO_BOOLEAN,
            NO_FLOAT,
            "invalid time",
            "invalid date",
        ]
        .iter()
        .any(|known| what.starts_with(known));
        if !is_value {
            return None;
        }
        let key = self.key_before(span);
        let value = self.covered.get(span.clone()).unwrap_or_default();
        let problem = |message: String| Problem::new(span.clone(), message);
        Some(match value {
            "" => problem("a value is missing".into())
                .label("expected a value after `=`")
                .help(format!("write {}, or delete the line", example_of(key))),
            "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" if !is_word(key) => {
                problem(format!("`{value}` is not a value in TOML"))
                    .label("expected `true`")
                    .help(format!("write `{key} = true`"))
            }
            "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" if !is_word(key) => {
                problem(format!("`{value}` is not a value in TOML"))
                    .label("expected `false`")
                    .help(format!("write `{key} = false`"))
            }
            "null" | "None" | "nil" | "Null" | "NULL" => problem(format!("TOML has no `{value}`"))
                .label("not a value")
                .help("delete the line: a key that is not in the file is not set"),
            value
                if value.starts_with(|c: char| c.is_ascii_digit())
                    && !value.contains([':', '*']) =>
            {
                problem("this is neither a number nor text".into())
                    .label("begins like a number")
                    .help(format!(
                        "write a plain number, or put quotes around text: `{}`",
                        self.assignment(span, value)
                    ))
            }
            value => problem("text needs quotes".into())
                .label("no quotes around this")
                .help(match is_secret(key) || value.contains('*') {
                    true => format!("write {}", example_of(key)),
                    false => format!("write `{}`", self.assignment(span, value)),
                }),
        })
    }

    /// A text without its closing quote, or with a wrong character.
    fn string(&self, what: &str, expected: &str, span: &Range<usize>) -> Option<Problem> {
        let shown = self.covered[self.line(span.start)].trim_end();
        let whole_line = |advice: String| match shown.contains('*') {
            true => BOTH_QUOTES.to_owned(),
            false => advice,
        };
        let quote = expected.trim_matches('`');
        let problem = |message: &str| Problem::new(span.clone(), message);
        match what {
            what if what.contains("escape") || what.contains("unicode value") => Some(
                problem("a `\\` inside \"…\" needs a second one")
                    .label("begins an escape, such as `\\n`")
                    .help("write `\\\\`, or put the text in single quotes: `'C:\\folder'`"),
            ),
            what if what.starts_with("invalid multi-line") => {
                let marks = quote.repeat(3);
                let opened = self.text[..span.start].rfind(&marks).unwrap_or(span.start);
                Some(
                    Problem::new(
                        opened..(opened + 3).min(self.text.len()),
                        "a text is never closed",
                    )
                    .label(format!("{marks} begins a text of several lines"))
                    .help(format!("put {marks} where the text ends")),
                )
            }
            "invalid basic string" | "invalid literal string" if matches!(quote, "\"" | "'") => {
                Some(self.missing_quote(&self.line(span.start), quote))
            }
            "missing opening quote" => Some(
                problem("the opening quote is missing")
                    .label(format!("expected {quote}"))
                    .help(whole_line(match shown.split_once('=') {
                        Some((key, value)) => {
                            format!("write `{} = {quote}{}`", key.trim(), value.trim())
                        }
                        None => format!("write {quote} before the text"),
                    })),
            ),
            "invalid basic string" | "invalid literal string" => Some(
                problem("a character that cannot be seen is in the text")
                    .label("here")
                    .help("delete the text and type it anew"),
            ),
            _ => None,
        }
    }

    /// `{ tokens_per_day = 1,000 }`
    fn inner_comma(&self, span: &Range<usize>) -> Option<Problem> {
        let line = self.line(span.start);
        let shown = &self.covered[line.clone()];
        let (before, _) = shown.split_once('{').filter(|_| !shown.contains('['))?;
        let is_grouped = |at: &usize| {
            let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
            shown[..*at].ends_with(|c: char| c.is_ascii_digit()) && digits(&shown[at + 1..]) == 3
        };
        let commas = shown.match_indices(',').map(|(at, _)| at);
        let grouped: Vec<usize> = commas
            .filter(|at| *at > before.len())
            .filter(is_grouped)
            .collect();
        let first = line.start + grouped.first()?;
        let fixed: String = shown
            .char_indices()
            .map(|(at, c)| if grouped.contains(&at) { '_' } else { c })
            .collect();
        Some(
            Problem::new(first..first + 1, "a number has no commas")
                .label("here")
                .help(format!("write `{}`", fixed.trim())),
        )
    }

    /// A number as written elsewhere: `1,000,000`, `2,50`, `$2.50` or `1M`.
    fn odd_number(&self, span: &Range<usize>) -> Option<Problem> {
        let line = self.line(span.start);
        let shown = &self.covered[line.clone()];
        let (key, value) = shown.split_once('=')?;
        let at = line.start + shown.len() - value.trim_start().len();
        let value = value.split('#').next().unwrap_or_default().trim();
        let is_one = !value.is_empty() && !value.contains(['{', '[', '"', '\'', '*', '=']);
        if !is_one || !(at..=at + value.len()).contains(&span.start) {
            return None;
        }
        let kind = known(key.trim()).and_then(Key::number);
        let meant = numbers::meant(kind, value)?;
        let (message, spot) = match value.find(',') {
            Some(comma) => ("a number has no commas", at + comma..at + comma + 1),
            None => ("this is not a number in TOML", at..at + value.len()),
        };
        Some(
            Problem::new(spot, message)
                .label("here")
                .help(format!("write {meant}")),
        )
    }

    fn number(what: &str, span: &Range<usize>) -> Option<Problem> {
        let problem = |message: &str| Problem::new(span.clone(), message);
        match what {
            "unexpected leading zero" => Some(
                problem("a number begins with a zero")
                    .label("one digit too many")
                    .help("delete the zero, or put quotes around text"),
            ),
            "invalid mantissa" | "invalid fraction" => Some(
                problem("a number needs a digit on both sides of its point")
                    .label("expected a digit")
                    .help("write a number such as `0.5` or `5.0`"),
            ),
            "`_` may only go between digits" => Some(
                problem("a `_` in a number needs a digit on both sides")
                    .label("not between two digits")
                    .help("write a number such as `200_000`"),
            ),
            _ => None,
        }
    }

    /// Lines of a wrong form.
    fn line_form(&self, what: &str, span: &Range<usize>) -> Option<Problem> {
        let shown = self.covered[self.line(span.start)].trim();
        let problem = |message: &str| Problem::new(span.clone(), message);
        match what {
            "unclosed table" | "unclosed array table" => Some(self.header(shown, span)),
            "unclosed inline table" => Some(
                problem("the closing `}` is missing")
                    .label("expected `}`")
                    .help(match shown.split_once('{') {
                        Some((_, inside)) if inside.contains('=') && !shown.contains('*') => {
                            format!("write `{} }}`", shown.trim_end_matches(','))
                        }
                        _ => "put `}` where the table ends".to_owned(),
                    }),
            ),
            "key with no value" if shown.ends_with(']') => Some(
                problem("the opening bracket of a section is missing")
                    .label("`]` without `[`")
                    .help(format!("write `[{}`", shown.trim_start_matches('['))),
            ),
            "key with no value" if shown.contains('=') => Some(
                problem("a key is a single word")
                    .label("expected `=`")
                    .help("write the key without spaces, such as `default_agent = \"main\"`"),
            ),
            "key with no value" if let Some(line) = with_equals(shown) => Some(
                problem("a key has no value")
                    .label("expected `=`")
                    .help(format!("write `{line}`")),
            ),
            "key with no value" => Some(
                problem("a key has no value")
                    .label("expected `=` and a value")
                    .help(format!("write {}, or delete the line", example_of(shown))),
            ),
            LEFT_OVER if shown.starts_with('[') && shown.ends_with("]]") => Some(
                problem("one bracket is too many")
                    .label("no `[` belongs to it")
                    .help(format!("write `[{}]`", shown.trim_matches(['[', ']']))),
            ),
            LEFT_OVER if shown.starts_with('[') => Some(
                problem("a section's header has a line of its own")
                    .label("expected the end of the line")
                    .help("write this in the next line"),
            ),
            LEFT_OVER => Some(
                problem("something is left over at the end of the line")
                    .label("expected the end of the line")
                    .help("write one key in each line, without a comma or a semicolon at its end; a quote inside a text is written as `\\\"`"),
            ),
            "extra `=`" => Some(
                problem("one `=` is enough").label("the second one").help("delete it"),
            ),
            "missing comma between array elements" => Some(
                problem("a comma is missing in the list")
                    .label("expected `,`")
                    .help("write a comma between two items: `[\"one\", \"two\"]`"),
            ),
            "invalid unquoted key" => Some(
                problem("a key has only letters, digits, `-` and `_`")
                    .label("none of these")
                    .help("put other names in quotes, such as `\"gpt-5.4\"`"),
            ),
            "unquoted keys cannot be empty" => Some(
                problem("a key is missing before `=`")
                    .label("expected a key")
                    .help("write a key, or delete the line"),
            ),
            _ => None,
        }
    }

    /// `[access` or `[agents.Night Desk]`
    fn header(&self, shown: &str, span: &Range<usize>) -> Problem {
        let brackets = if shown.starts_with("[[") { 2 } else { 1 };
        let inside = shown.trim_matches(['[', ']']);
        if shown.ends_with(']') && inside.contains(' ') {
            let slug = AgentId::parse(&inside.replace(' ', "-").to_lowercase().replace('.', "-"))
                .map(|_| inside.replace(' ', "-").to_lowercase());
            let name = slug.unwrap_or_else(|_| "agents.night-desk".to_owned());
            return Problem::new(span.clone(), "a section's name has no spaces")
                .label("expected `]`")
                .help(format!("write a name such as `[{name}]`"));
        }
        let (open, close) = ("[".repeat(brackets), "]".repeat(brackets));
        Problem::new(span.clone(), "the section's header is not closed")
            .label("expected `]`")
            .help(format!("write `{open}{}{close}`", inside.trim()))
    }

    /// A text without its end takes the next bracket along, so this is the only problem told.
    fn open_text(&self, errors: &[toml::de::Error]) -> Option<Problem> {
        let is_open = |error: &&toml::de::Error| {
            let message = error.message();
            message.starts_with("unclosed array,") || message.starts_with("unclosed inline table,")
        };
        errors.iter().find(is_open)?;
        let starts = errors.iter().filter_map(|error| Some(error.span()?.start));
        let line = self.line(starts.min()?);
        let text = &self.text[line.clone()];
        if text.matches('"').count().is_multiple_of(2) || text.contains("\"\"\"") {
            return None;
        }
        Some(self.missing_quote(&line, "\"").fault(Fault::Syntax))
    }

    fn missing_quote(&self, line: &Range<usize>, quote: &str) -> Problem {
        let shown = self.covered[line.clone()].trim_end();
        let (at, closed) = with_closing_quote(shown, quote);
        let at = line.start + at;
        let key = shown.split('=').next().unwrap_or_default().trim();
        let advice = match shown.contains('*') {
            true if is_known(key) => format!("write {}", example_of(key)),
            true => BOTH_QUOTES.to_owned(),
            false => format!("write `{}`", closed.trim_start()),
        };
        Problem::new(at..at, "the closing quote is missing")
            .label(format!("expected {quote}"))
            .help(advice)
    }

    /// A table in braces without its end takes the whole rest of the file along.
    fn open_table(&self, errors: &[toml::de::Error]) -> Option<Problem> {
        errors
            .iter()
            .find(|error| error.message().starts_with("unclosed inline table"))?;
        let (opened, _) = brackets::first_open(self.text).filter(|(_, bracket)| *bracket == '{')?;
        let shown = self.covered[self.line(opened)].trim();
        let is_whole = !shown.ends_with(['{', ',']) && !shown.contains(['#', '*']);
        let advice = match is_whole {
            true => format!("write `{shown} }}`"),
            false => "put `}` where the table ends".to_owned(),
        };
        Some(
            Problem::new(opened..opened + 1, "a table in braces is not closed")
                .label("this `{` has no `}`")
                .help(advice)
                .fault(Fault::Syntax),
        )
    }

    /// A list without its end takes the lines below for items, so this is the only problem told.
    fn open_list(&self, errors: &[toml::de::Error]) -> Option<Problem> {
        errors
            .iter()
            .find(|error| error.message().starts_with("unclosed array,"))?;
        let first = errors
            .iter()
            .filter_map(|error| Some(error.span()?.start))
            .min()?;
        let before = &self.text[..first];
        let opened = before.rmatch_indices("= [").next().map(|(at, _)| at + 2)?;
        Some(
            Problem::new(opened..opened + 1, "a list is not closed")
                .label("this `[` has no `]`")
                .help("put `]` where the list ends")
                .fault(Fault::Syntax),
        )
    }

    fn line(&self, at: usize) -> Range<usize> {
        let at = self.text.floor_char_boundary(at);
        let start = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[at..]
            .find('\n')
            .map_or(self.text.len(), |end| at + end);
        start..end
    }

    pub(super) fn line_number(&self, at: usize) -> usize {
        line_of(&self.text[..self.text.floor_char_boundary(at)])
    }
}

fn comment_sign(span: Range<usize>, sign: &str) -> Problem {
    Problem::new(span, format!("`{sign}` does not begin a comment in TOML"))
        .label("not a comment")
        .help("begin comments with `#`")
}

const BOTH_QUOTES: &str = "put a quote at both ends of the text";

/// Whether a `#` begins a comment, and is no part of a name such as `Desk #1`.
fn is_comment(before: &str, behind: &str) -> bool {
    before.ends_with(char::is_whitespace) && !behind.starts_with(|c: char| c.is_ascii_digit())
}

/// The line with the missing quote of its text, and the place of the quote: before a comment, and
/// before the brackets that end a list or a table.
fn with_closing_quote(line: &str, quote: &str) -> (usize, String) {
    let opened = line.rfind(quote).map_or(0, |at| at + quote.len());
    let text = &line[opened..];
    let comment = text
        .char_indices()
        .find(|(at, c)| *c == '#' && is_comment(&text[..*at], &text[at + 1..]));
    let text = &text[..comment.map_or(text.len(), |(at, _)| at)];
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || "]},".contains(c));
    let at = opened + text.len();
    (at, format!("{}{quote}{}", &line[..at], &line[at..]))
}

fn is_key_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// A value in TOML: numbers, switches and lists unchanged, everything else in quotes.
/// The value without a comma behind it; a comment may follow the comma.
fn without_comma(text: &str) -> &str {
    let value = text.split_once('#').map_or(text, |(value, _)| value);
    match value.trim_end().strip_suffix(',') {
        Some(value) if !value.contains(['"', '\'']) || value.ends_with(['"', '\'']) => {
            value.trim_end()
        }
        _ => text,
    }
}

fn as_value(text: &str) -> String {
    let is_plain = matches!(text, "true" | "false")
        || text.starts_with(['"', '\'', '[', '{'])
        || text.chars().all(|c| c.is_ascii_digit());
    match is_plain {
        true => text.to_owned(),
        false => format!("\"{text}\""),
    }
}

fn is_secret(key: &str) -> bool {
    matches!(key, "token" | "api_key" | "proxy")
}

fn known(key: &str) -> Option<&'static Key> {
    PLACES.iter().find_map(|(_, shape)| shape.key(key))
}

fn is_known(key: &str) -> bool {
    known(key).is_some()
}

/// The key with a value of its own kind, for a key that some table has.
/// `emoji = "🌹"` for a line such as `emoji "🌹"`.
fn with_equals(line: &str) -> Option<String> {
    let (key, value) = line.split_once(char::is_whitespace)?;
    let (key, value) = (key.trim_end_matches(':'), value.trim_start());
    let is_word = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let is_value = value.starts_with(['"', '\'', '[', '{'])
        || value.starts_with(|c: char| c.is_ascii_digit())
        || ["true", "false"].contains(&value);
    (is_word && is_value).then(|| format!("{key} = {value}"))
}

fn example_of(key: &str) -> String {
    match known(key) {
        Some(key) if key.is_table() => format!("a section, such as `{}`", key.usage()),
        Some(key) => format!("a value, such as `{}`", key.usage()),
        None => "a value, such as `key = \"text\"`".to_owned(),
    }
}
