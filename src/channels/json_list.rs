//! Cuts a JSON list into its items, so that a broken item costs only itself. Pure.
//!
//! Strings and brackets tell where an item ends. A broken item may lie about both, so the list goes
//! on at the next place where an item surely begins: quotes inside strings have a backslash, so no
//! message text looks like the beginning of an item.

use serde::de::IgnoredAny;
use serde_json::Value;

/// An item as received and as parsed.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub(super) raw: &'a [u8],
    /// The reason never quotes the item.
    pub(super) read: Result<Value, String>,
}

/// A list in its items.
#[derive(Debug, Default)]
pub(super) struct List<'a> {
    pub(super) items: Vec<Item<'a>>,
    /// The beginning of an item, where the list breaks off.
    pub(super) cut_off: Option<&'a [u8]>,
}

/// Cuts `list`, from its bracket on; behind the list, the end of an object around it may follow.
/// After a broken item, `begins_item` is asked about bytes from a brace on.
pub(super) fn cut(list: &[u8], begins_item: fn(&[u8]) -> bool) -> List<'_> {
    let mut found = List::default();
    let mut at = skip_space(list, 1);
    while at < list.len() && !is_end_of_list(list, at) {
        if list[at] == b',' {
            at = skip_space(list, at + 1);
            continue;
        }
        let Some((item, end)) = whole_item(list, at).or_else(|| broken_item(list, at, begins_item))
        else {
            found.cut_off = Some(&list[at..]);
            break;
        };
        found.items.push(item);
        at = skip_space(list, end);
    }
    found
}

/// The item at `at`, if the item is JSON and a comma or the end follows.
fn whole_item(list: &[u8], at: usize) -> Option<(Item<'_>, usize)> {
    let end = value_end(list, at).filter(|end| ends_well(list, *end))?;
    let raw = &list[at..end];
    let read = serde_json::from_slice(raw).ok()?;
    Some((
        Item {
            raw,
            read: Ok(read),
        },
        end,
    ))
}

/// A broken item reaches to the end of its brackets or to the next item, the earlier of the two.
/// None when neither is there.
fn broken_item(
    list: &[u8],
    at: usize,
    begins_item: fn(&[u8]) -> bool,
) -> Option<(Item<'_>, usize)> {
    let closes = value_end(list, at).filter(|end| *end > at && ends_well(list, *end));
    let next = next_item(list, at + 1, closes.unwrap_or(list.len()), begins_item);
    let end = next
        .or(closes)
        .or_else(|| closing_brackets(list).filter(|end| *end > at))?;
    let raw = &list[at..end];
    let reason = serde_json::from_slice::<Value>(raw)
        .err()
        .map_or("not an item of a list".to_owned(), |error| {
            error.to_string()
        });
    Some((
        Item {
            raw,
            read: Err(reason),
        },
        end,
    ))
}

/// The comma before the next place where an item begins.
fn next_item(
    list: &[u8],
    from: usize,
    until: usize,
    begins_item: fn(&[u8]) -> bool,
) -> Option<usize> {
    (from..until).filter(|at| list[*at] == b',').find(|at| {
        let start = skip_space(list, at + 1);
        list.get(start) == Some(&b'{') && begins_item(&list[start..])
    })
}

fn ends_well(list: &[u8], end: usize) -> bool {
    let next = skip_space(list, end);
    list.get(next) == Some(&b',') || is_end_of_list(list, next)
}

/// Whether the list ends here: only the rest of an object around the list follows.
fn is_end_of_list(list: &[u8], at: usize) -> bool {
    let rest = list[at.min(list.len())..].trim_ascii_end();
    match rest.strip_prefix(b"]").map(<[u8]>::trim_ascii_start) {
        Some(b"" | b"}") => true,
        Some([b',', keys @ ..]) => {
            serde_json::from_slice::<IgnoredAny>(&[b"{", keys].concat()).is_ok()
        }
        Some(_) | None => false,
    }
}

/// The end of a list behind a broken last item: before the bracket with only the end of an object
/// behind.
fn closing_brackets(list: &[u8]) -> Option<usize> {
    let rest = list.trim_ascii_end();
    let rest = rest.strip_suffix(b"}").unwrap_or(rest).trim_ascii_end();
    rest.strip_suffix(b"]").map(<[u8]>::len)
}

/// The end of the value at `start`, by its quotes and brackets alone.
pub(super) fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut depth, mut is_in_string, mut at) = (0_usize, false, start);
    while let Some(byte) = bytes.get(at) {
        match (is_in_string, byte) {
            (true, b'\\') => at += 1,
            (true, b'"') if depth == 0 => return Some(at + 1),
            (_, b'"') => is_in_string = !is_in_string,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') if depth == 1 => return Some(at + 1),
            (false, b'}' | b']' | b',') if depth == 0 => return Some(at),
            (false, b'}' | b']') => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The members of an object as far as its quotes and brackets hold: each key with its quotes, and
/// its value.
pub(super) fn members(object: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut at = skip_space(object, 0);
    std::iter::from_fn(move || {
        // A brace before the first member, a comma before each other.
        let key = matches!(object.get(at)?, b'{' | b',').then(|| skip_space(object, at + 1))?;
        let key_end = value_end(object, key).filter(|_| object[key] == b'"')?;
        let colon = skip_space(object, key_end);
        let value = skip_space(
            object,
            (object.get(colon) == Some(&b':')).then_some(colon + 1)?,
        );
        let end = value_end(object, value)?;
        at = skip_space(object, end);
        Some((&object[key..key_end], object[value..end].trim_ascii_end()))
    })
}

pub(super) fn skip_space(bytes: &[u8], from: usize) -> usize {
    let space = bytes
        .get(from..)
        .unwrap_or_default()
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    from + space
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins_item(bytes: &[u8]) -> bool {
        bytes.starts_with(b"{\"n\":")
    }

    /// Items that were read, with `!` before those that were not, and `…` for a beginning.
    fn show(list: &[u8]) -> String {
        let List { items, cut_off } = cut(list, begins_item);
        let item = |item: &Item<'_>| match &item.read {
            Ok(value) => value.to_string(),
            Err(_) => format!("!{}", String::from_utf8_lossy(item.raw)),
        };
        let mut shown: Vec<String> = items.iter().map(item).collect();
        shown.extend(cut_off.map(|raw| format!("{}…", String::from_utf8_lossy(raw))));
        shown.join(" ")
    }

    #[test]
    fn a_broken_item_costs_only_itself() {
        let check =
            |list: &str, expected: &str| assert_eq!(show(list.as_bytes()), expected, "{list}");
        check("[]", "");
        check(" [ ] ".trim_start(), "");
        check(r#"[{"n":1}, {"n":2}]}"#, r#"{"n":1} {"n":2}"#);
        check(r#"[{"n":1},{"n":2}],"ok":true}"#, r#"{"n":1} {"n":2}"#);
        check(r#"[1,"a,]",null]"#, r#"1 "a,]" null"#);
        // A lone surrogate, an escape cut short, a number out of range: the brackets still hold.
        check(r#"[{"t":"\ud800"},{"n":2}]"#, r#"!{"t":"\ud800"} {"n":2}"#);
        check(r#"[{"t":"\u12"},{"n":2}]"#, r#"!{"t":"\u12"} {"n":2}"#);
        check(r#"[{"t":1e400},{"n":2}]"#, r#"!{"t":1e400} {"n":2}"#);
        // A quote that is eaten, brackets too few and too many: the next item tells where it ends.
        check(r#"[{"t":"a\"},{"n":2}]"#, r#"!{"t":"a\"} {"n":2}"#);
        check(
            r#"[{"t":[1},{"n":2},{"n":3}]"#,
            r#"!{"t":[1} {"n":2} {"n":3}"#,
        );
        check(r#"[{"t":1}},{"n":2}]"#, r#"!{"t":1}} {"n":2}"#);
        check(r#"[{"t":1}]},{"n":2}]"#, r#"!{"t":1}]} {"n":2}"#);
        check(r#"[{"t":1,{"n":2}]"#, r#"!{"t":1 {"n":2}"#);
        // The last one may be broken too.
        check(r#"[{"n":1},{"t":"a\"}]}"#, r#"{"n":1} !{"t":"a\"}"#);
        check(r#"[{"n":1},{"t":[1}]"#, r#"{"n":1} !{"t":[1}"#);
        // Without the end of the list, an item may only be cut off.
        check(r#"[{"n":1},{"t":"abc"#, r#"{"n":1} {"t":"abc…"#);
        check(r#"[{"n":1},"#, r#"{"n":1}"#);
        check("[", "");
    }

    #[test]
    fn members_are_found_up_to_where_an_object_breaks() {
        let check = |object: &str, expected: &str| {
            let shown = members(object.as_bytes()).map(|(key, value)| [key, b":", value].concat());
            let shown: Vec<String> = shown
                .map(|member| String::from_utf8(member).unwrap())
                .collect();
            assert_eq!(shown.join(" "), expected, "{object}");
        };
        check(
            r#" { "a" : 1 , "b":{"c":[2]},"d":"\"}" } , {"e":3}"#,
            r#""a":1 "b":{"c":[2]} "d":"\"}""#,
        );
        check(
            r#"{"a":1e400,"b":"\ud800","c":"cut\","d":4}"#,
            r#""a":1e400 "b":"\ud800" "c":"cut\",""#,
        );
        check(r#"{"a":[1,"b":2"#, "");
        check("{}", "");
        check("[1]", "");
        check("", "");
    }

    #[test]
    fn what_somebody_wrote_begins_no_item() {
        let written = r#"},{"n":7}"#;
        let list = format!(
            "[{{\"t\":{},\"bad\":1e400}},{{\"n\":2}}]",
            Value::from(written)
        );
        assert!(
            show(list.as_bytes()).ends_with(r#" {"n":2}"#)
                && !show(list.as_bytes()).contains(r#" {"n":7}"#)
        );
    }
}
