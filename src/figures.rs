//! Numbers and time zones for people, in one form each.

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    grouped_by(",", number)
}

/// The same with another sign between the groups.
pub(crate) fn grouped_by(sign: &str, number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push_str(sign);
        }
        text.push(digit);
    }
    text
}

/// A distance from UTC: `+00:00` as `UTC`, `+01:00` as `UTC+1`, `+05:30` as `UTC+5:30`.
pub(crate) fn zone_name(offset: &str) -> String {
    let (sign, rest) = offset.split_at(1);
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "00"));
    match (hours.trim_start_matches('0'), minutes) {
        ("", "00") => "UTC".to_owned(),
        ("", minutes) => format!("UTC{sign}0:{minutes}"),
        (hours, "00") => format!("UTC{sign}{hours}"),
        (hours, minutes) => format!("UTC{sign}{hours}:{minutes}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups_of_three() {
        let shown = [0, 999, 1_000, 12_345, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn zones_are_short() {
        let offsets = ["+00:00", "+01:00", "-10:00", "+05:30", "-00:30"];
        let expected = ["UTC", "UTC+1", "UTC-10", "UTC+5:30", "UTC-0:30"];
        assert_eq!(offsets.map(zone_name), expected);
    }
}
