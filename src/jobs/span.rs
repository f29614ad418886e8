//! Lengths of time as people write them: `30m`, `2h`, `1h30m`, `7d`.

const UNITS: [(&str, i64); 5] = [
    ("w", 7 * 24 * 3_600_000),
    ("d", 24 * 3_600_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
];

/// Milliseconds of a text such as `30m`. A number and a unit, perhaps several times, the longest
/// unit first.
pub fn parse_span(text: &str) -> Option<i64> {
    let mut rest = text.trim();
    let (mut total, mut units) = (0_i64, UNITS.iter());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: i64 = rest[..digits].parse().ok()?;
        let (unit, ms) = units.find(|(unit, _)| rest[digits..].starts_with(unit))?;
        total = total.checked_add(count.checked_mul(*ms)?)?;
        rest = rest[digits + unit.len()..].trim_start();
    }
    Some(total)
}

/// A span in words, as [`parse_span`] reads them: `1h 30m`.
pub fn in_words(ms: i64) -> String {
    let mut left = ms;
    let mut words = Vec::new();
    // Weeks are not told, because people count days.
    for (unit, length) in UNITS.iter().skip(1) {
        if left >= *length {
            words.push(format!("{}{unit}", left / length));
            left %= length;
        }
    }
    match words.is_empty() {
        true => "0s".to_owned(),
        false => words.join(" "),
    }
}
