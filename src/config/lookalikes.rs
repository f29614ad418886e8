//! Tells secrets from the names of places where secrets are kept, so that a secret in the wrong
//! field is not repeated. Pure.

/// Bot tokens have a colon and most keys a hyphen, so a secret written where its name belongs does
/// not pass as a name and is not repeated in messages.
pub(super) fn is_variable_name(text: &str) -> bool {
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    plain && !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a text is a variable's name in the usual notation: `TELEGRAM_BOT_TOKEN`. Some keys
/// consist of letters and digits alone, so other names are not repeated in messages.
pub(super) fn looks_like_variable(name: &str) -> bool {
    const MAX_WORD: usize = 14;
    const MAX_DIGITS: usize = 4;
    let is_plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let digits = name.chars().filter(char::is_ascii_digit).count();
    is_variable_name(name)
        && name.chars().all(is_plain)
        && digits <= MAX_DIGITS
        && name.split('_').all(|word| word.len() <= MAX_WORD)
}

/// The name in `$NAME` or `${NAME}`, as in a shell, if the name looks like a variable.
pub(super) fn variable_behind_dollar(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let name = name
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'))
        .unwrap_or(name);
    looks_like_variable(name).then_some(name)
}

/// Whether a text is a path in the usual notation: `secrets/telegram`. Anything with many capitals
/// and digits, or with other characters, may be a secret in the wrong field.
pub(super) fn looks_like_path(path: &str) -> bool {
    const MAX_PART: usize = 32;
    const MAX_MIXED: usize = 4;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/~ ".contains(c);
    let is_mixed = |c: &char| c.is_ascii_uppercase() || c.is_ascii_digit();
    path.chars().all(is_plain)
        && path.chars().filter(is_mixed).count() <= MAX_MIXED
        && path
            .split('/')
            .all(|part| part.len() <= MAX_PART && !has_key_prefix(part))
}

/// How keys of well-known servers begin.
pub(super) fn has_key_prefix(word: &str) -> bool {
    const PREFIXES: [&str; 10] = [
        "sk-", "sk_", "pk-", "xox", "ghp_", "gho_", "gsk_", "hf_", "AIza", "AKIA",
    ];
    PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

/// Whether a word is a secret in any place: a bot's token, or a key by its beginning.
pub(super) fn looks_like_secret(word: &str) -> bool {
    const MIN_KEY: usize = 12;
    const MIN_TAIL: usize = 16;
    let is_token = word.split_once(':').is_some_and(|(id, tail)| {
        let is_number = !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
        is_number && tail.len() >= MIN_TAIL
    });
    is_token || (has_key_prefix(word) && word.len() >= MIN_KEY)
}

/// A key that a person could have meant, such as `value` or `evn`.
pub(super) fn is_plain_key(key: &str) -> bool {
    const MAX_KEY: usize = 12;
    key.len() <= MAX_KEY && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_look_like_what_people_write() {
        for name in [
            "TELEGRAM_BOT_TOKEN",
            "OPENAI_API_KEY",
            "TOKEN_2",
            "T",
            "A1_B2",
        ] {
            assert!(looks_like_variable(name), "{name}");
        }
        for secret in [
            "AKIAIOSFODNN7EXAMPLE",
            "deadbeef0123456789",
            "hunter2",
            "123456:AAE",
            "gsk_abcdefghijklmnop",
            "",
        ] {
            assert!(!looks_like_variable(secret), "{secret}");
        }
        for path in [
            "secrets/telegram",
            "/run/secrets/bot_token",
            "~/keys/open-ai.txt",
            "bot",
        ] {
            assert!(looks_like_path(path), "{path}");
        }
        for secret in [
            "123456:AAEhBOweik9ai2o01",
            "sk-abcdefghijkl",
            "xoxb-1-2-abc",
            "aGVsbG8/d29ybGQ+IQ==",
            "deadbeef0123456789abcdef",
            "MTIzNDU2.Nzg5.abcdefg",
        ] {
            assert!(!looks_like_path(secret), "{secret}");
        }
    }
}
