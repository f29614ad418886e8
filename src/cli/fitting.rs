//! Breaks text for people between words, so that the terminal does not cut words at its edge.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text in lines of at most so many columns. A word that is longer stays whole, and so does a
/// line of a drawing.
pub(super) fn fit(text: &str, width: usize) -> String {
    let lines = text.split('\n').map(|line| {
        if is_drawn(line) {
            line.to_owned()
        } else {
            hanging(line, hang(line), width)
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A line whose rest stands below it, `hang` columns from the left.
pub(super) fn hanging(line: &str, hang: usize, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let (mut broken, mut used) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let needed = columns(word.trim_end());
        let is_begun = broken.chars().next_back().is_some_and(|last| last != '\n');
        if used > hang && is_begun && needed > 0 && used + needed > width {
            broken.truncate(broken.trim_end().len());
            broken.push('\n');
            broken.extend(std::iter::repeat_n(' ', hang));
            used = hang;
        }
        broken.push_str(word);
        used += columns(word);
    }
    broken
}

/// Where the rest of a line begins: below the text of a help or of an item, else below the line
/// itself.
fn hang(line: &str) -> usize {
    const MARKS: [&str; 3] = ["= help: ", "- ", "• "];
    let plain = without_colours(line);
    let indent = plain.len() - plain.trim_start_matches(' ').len();
    let mark = MARKS
        .iter()
        .find(|mark| plain.trim_start().starts_with(**mark));
    indent + mark.map_or(0, |mark| mark.width())
}

/// A line of the config that a report shows, or its frame.
fn is_drawn(line: &str) -> bool {
    let plain = without_colours(line);
    let plain = plain.trim_start();
    let behind_number = plain.trim_start_matches(|c: char| c.is_ascii_digit());
    plain.starts_with("-->")
        || plain.starts_with("...")
        || behind_number.trim_start().starts_with('|')
}

/// The columns of a line that may be in colour.
fn columns(text: &str) -> usize {
    match text.contains(ESCAPE) {
        true => without_colours(text).width(),
        false => text.width(),
    }
}

const ESCAPE: char = '\u{1b}';

/// The text without sequences such as `ESC[1m`.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut is_inside = false;
    for c in text.chars() {
        match (is_inside, c) {
            (_, ESCAPE) => is_inside = true,
            (true, 'm') => is_inside = false,
            (true, _) => {}
            (false, c) if c.width().is_some() => plain.push(c),
            (false, _) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words() {
        let check = |text: &str, width, expected: &str| assert_eq!(fit(text, width), expected);
        check("one two three", 7, "one two\nthree");
        check("one two three", 80, "one two three");
        check("  one two three", 9, "  one two\n  three");
        check("- one two three", 9, "- one two\n  three");
        check("one\n\ntwo three", 5, "one\n\ntwo\nthree");
        check("incomprehensible it is", 8, "incomprehensible\nit is");
        check("", 8, "");
        check(
            "\u{1b}[1mone\u{1b}[0m two three",
            7,
            "\u{1b}[1mone\u{1b}[0m two\nthree",
        );
        assert_eq!(
            hanging("tools: one, two, three", 2, 12),
            "tools: one,\n  two, three"
        );
        assert_eq!(hanging("a  b", 2, 80), "a  b");
    }

    /// The file is shown as it is, and the rest of a help stands below the help.
    #[test]
    fn a_report_keeps_its_drawing() {
        let report = "error: unknown key `default_model`\n --> config.toml:4:1\n  |\n4 | default_model = \"demo\"\n  | ^^^^^^^^^^^^^ not a key of [access]\n  |\n  = help: `default_model` belongs at the top of the file";
        insta::assert_snapshot!(fit(report, 30), @r#"
        error: unknown key
        `default_model`
         --> config.toml:4:1
          |
        4 | default_model = "demo"
          | ^^^^^^^^^^^^^ not a key of [access]
          |
          = help: `default_model`
                  belongs at the top
                  of the file
        "#);
    }
}
