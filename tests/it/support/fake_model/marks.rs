//! Makes the marks of a prompt short, so that tests read as people do: `[Alice] hello` where
//! several people write, `hello` in private. Tests about the marks themselves look at
//! [`super::Request::raw`].

/// Whether the request is from a place where several people write, or for a summary.
pub(super) fn is_shared(system: &str) -> bool {
    let several = ["where several people write", "You write a summary"];
    several.iter().any(|told| system.contains(told))
}

/// The text with short marks. `named` shows the names of people.
pub(super) fn shortened(text: &str, named: bool) -> String {
    let Some((before, marked)) = text.split_once('⟦') else {
        return text.to_owned();
    };
    let mut shown = unescaped(before);
    let mut rest = Some(marked);
    while let Some(marked) = rest {
        let (mark, behind) = marked.split_once('⟧').expect("a mark has an end");
        let (_, mark) = mark.split_once(' ').expect("a mark has a word");
        let (words, next) = match behind.split_once('⟦') {
            Some((words, next)) => (words, Some(next)),
            None => (behind, None),
        };
        let words = words.strip_prefix(' ').unwrap_or(words);
        let (words, end) = match words.strip_suffix("\n\n") {
            Some(words) if next.is_some() => (words, "\n\n"),
            _ => (words, ""),
        };
        let is_before_memory = next.is_some_and(|next| next.contains(" memory "));
        shown.push_str(&piece(mark, &unescaped(words), named));
        shown.push_str(match mark {
            "gateway" if is_before_memory || words.starts_with("Backlog") => "\n",
            "gateway" if words.starts_with("You were working on this") => "\n",
            mark if mark.starts_with("memory ") && is_before_memory => "\n",
            _ => end,
        });
        rest = next;
    }
    shown.trim_end_matches(' ').to_owned()
}

/// Shows the rest of a mark and the words behind it.
type Show = fn(&str, &str) -> String;

fn piece(mark: &str, words: &str, named: bool) -> String {
    let kinds: [(&str, Show); 7] = [
        ("handed over by ", |by, words| {
            format!("[{} handed this place {words}]", name(by))
        }),
        ("memory ", memory),
        ("page ", |url, words| format!("{url}\n\n{words}")),
        ("with ", |what, words| format!("[{what}] {words}")),
        ("reacted to: ", |quote, emoji| {
            format!("[reacted {emoji} to “{quote}”]")
        }),
        ("replying to ", |to, words| {
            format!("[replying to {}] {words}", quoted(to))
        }),
        ("forwarded from ", |from, words| {
            format!("[forwarded from {}] {words}", author(from))
        }),
    ];
    for (kind, show) in kinds {
        if let Some(rest) = mark.strip_prefix(kind) {
            return show(&unescaped(rest), words);
        }
    }
    match mark {
        "gateway" if words.starts_with('[') => words.to_owned(),
        "gateway" => format!("[{words}]"),
        "summary" => format!("[A summary of what was said here before:]\n{words}"),
        mark if mark.starts_with('#') && named => format!("[{}] {words}", name(mark)),
        mark if mark.starts_with(['#', 'f', 't', 'r']) && !["forwarded"].contains(&mark) => {
            words.to_owned()
        }
        mark => format!("[{mark}] {words}"),
    }
}

/// `#1 owner 2026-11-17 +00:00 08:12 Alice`, without the day where it is the same as before.
fn name(mark: &str) -> String {
    let fields = if mark.split(' ').nth(2).is_some_and(|day| day.contains('-')) {
        6
    } else {
        4
    };
    unescaped(mark.splitn(fields, ' ').last().unwrap_or_default())
}

fn memory(mark: &str, words: &str) -> String {
    let (mut whose, mut file) = (String::new(), String::new());
    let mut fields = mark.split(' ');
    let day = fields.next().unwrap_or_default();
    while let Some(field) = fields.next() {
        let value = fields.next().unwrap_or_default();
        match field {
            "of" => whose = format!("[{}] ", value.trim_start_matches('@')),
            "in" => file = format!(" {value}"),
            _ => {}
        }
    }
    format!("- {whose}{day}{file}: {}", words.replace('\n', "\n  "))
}

fn quoted(to: &str) -> String {
    match to.split_once(": ") {
        Some((to, quote)) => format!("{}: “{quote}”", author(to)),
        None => author(to),
    }
}

fn author(text: &str) -> String {
    match text.strip_prefix('#').and_then(|text| text.split_once(' ')) {
        Some((_, name)) => name.to_owned(),
        None => text.trim_matches(['“', '”']).to_owned(),
    }
}

fn unescaped(text: &str) -> String {
    [
        ("⁅(", "⟦"),
        ("⁅)", "⟧"),
        ("⁅.", ""),
        ("⁅:", ":"),
        ("⁅⁅", "⁅"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (escaped, plain)| {
        text.replace(escaped, plain)
    })
}
