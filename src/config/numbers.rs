//! Numbers as people write them elsewhere, and the same numbers in TOML.

use super::schema::Number;

/// Letters behind a number, and the zeros they stand for.
const LETTERS: [(&str, usize); 5] = [("k", 3), ("m", 6), ("mio", 6), ("b", 9), ("bn", 9)];
const CURRENCIES: [&str; 8] = ["$", "€", "£", "¥", "usd", "eur", "gbp", "chf"];
/// Digits between two separators of thousands.
const GROUP: usize = 3;

/// The number in TOML, in backticks. `kind` is the kind that the key takes; for an unknown key,
/// both readings of `2,500` are told.
pub(super) fn meant(kind: Option<Number>, text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let bare = CURRENCIES.iter().find_map(|sign| {
        let rest = text.strip_prefix(sign).or(text.strip_suffix(sign));
        rest.map(str::trim)
    });
    let text = match bare {
        Some(bare) if kind == Some(Number::Money) => bare,
        Some(_) => return None,
        None => text.as_str(),
    };
    let letters_at = text.find(char::is_alphabetic).unwrap_or(text.len());
    let (number, letters) = (text[..letters_at].trim(), text[letters_at..].trim());
    let is_digit = |c: char| c.is_ascii_digit();
    let is_part = |c: char| is_digit(c) || c.is_whitespace() || matches!(c, ',' | '.' | '_' | '\'');
    let has_needless_zero = number.starts_with('0') && number[1..].starts_with(is_digit);
    let is_number = !has_needless_zero
        && number.starts_with(is_digit)
        && number.ends_with(is_digit)
        && number.chars().all(is_part);
    if !is_number {
        return None;
    }
    if !letters.is_empty() {
        let (_, zeros) = LETTERS.iter().find(|(known, _)| *known == letters)?;
        kind?;
        return multiplied(number, *zeros);
    }
    match kind {
        Some(Number::Whole) => whole(number).map(|digits| format!("`{}`", grouped(&digits))),
        Some(Number::Fraction | Number::Money) => fraction(number).map(|text| format!("`{text}`")),
        None => either(number),
    }
}

/// Both readings of a number with commas.
fn either(number: &str) -> Option<String> {
    let commas = number.matches(',').count();
    if commas == 0 {
        return None;
    }
    let whole = whole(number).map(|digits| format!("`{}`", grouped(&digits)));
    let is_plain = commas == 1 && !number.contains('.');
    let fraction = is_plain.then(|| format!("`{}`", number.replace(',', ".")));
    match (whole, fraction) {
        (Some(whole), Some(fraction)) => {
            Some(format!("{whole}, or a point before a fraction: {fraction}"))
        }
        (whole, fraction) => whole.or(fraction),
    }
}

/// The digits of a whole number, with separators of thousands only.
fn whole(number: &str) -> Option<String> {
    let groups: Vec<&str> = number.split(|c: char| !c.is_ascii_digit()).collect();
    let (first, others) = groups.split_first()?;
    let is_grouped = others.iter().all(|group| group.len() == GROUP);
    let is_whole = is_grouped && (others.is_empty() || first.len() <= GROUP);
    is_whole.then(|| groups.concat())
}

/// A comma before three digits separates thousands; every other last comma or point is before a
/// fraction.
fn fraction(number: &str) -> Option<String> {
    let Some(last) = number.rfind([',', '.']) else {
        return whole(number);
    };
    let (before, after) = (&number[..last], &number[last + 1..]);
    let sign = &number[last..=last];
    if before.contains(sign) || sign == "," && after.len() == GROUP {
        return whole(number);
    }
    let before = whole(before)?;
    let is_digits = !after.is_empty() && after.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| format!("{before}.{after}"))
}

/// `1.5M`
fn multiplied(number: &str, zeros: usize) -> Option<String> {
    let number = number.replace(',', ".");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = is_digits(whole) && is_digits(fraction) && fraction.len() <= zeros;
    fits.then(|| format!("`{}`", grouped(&format!("{whole}{fraction:0<zeros$}"))))
}

/// `1_000_000`
fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(GROUP) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_understood_as_people_write_them() {
        let check = |kind, text: &str, expected: Option<&str>| {
            assert_eq!(meant(kind, text).as_deref(), expected, "{text}");
        };
        let (whole, money) = (Some(Number::Whole), Some(Number::Money));
        check(whole, "1.000.000", Some("`1_000_000`"));
        check(whole, "1,000,000", Some("`1_000_000`"));
        check(whole, "1 000 000", Some("`1_000_000`"));
        check(whole, "1,000", Some("`1_000`"));
        check(whole, "1M", Some("`1_000_000`"));
        check(whole, "1.5 M", Some("`1_500_000`"));
        check(whole, "500k", Some("`500_000`"));
        check(whole, "2,5", None);
        check(whole, "$5", None);
        check(whole, "5 apples", None);
        check(money, "2,50", Some("`2.50`"));
        check(money, "$2.50", Some("`2.50`"));
        check(money, "2,50 €", Some("`2.50`"));
        check(money, "1.000,50", Some("`1000.50`"));
        check(money, "1,000.50", Some("`1000.50`"));
        check(money, "1,000", Some("`1000`"));
        check(money, "USD 10", Some("`10`"));
        check(Some(Number::Fraction), "0,7", Some("`0.7`"));
        check(
            None,
            "1,000",
            Some("`1_000`, or a point before a fraction: `1.000`"),
        );
        check(None, "1M", None);
    }
}
