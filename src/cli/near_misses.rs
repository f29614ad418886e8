//! Verbs that are misspelt, or that stand below another verb.

use clap::Command;

/// `did you mean …?`, for a word that is no verb behind `noun`.
pub(super) fn hint(parlor: &Command, noun: Option<&str>, word: &str) -> Option<String> {
    let level = match noun {
        Some(noun) => parlor.find_subcommand(noun)?,
        None => parlor,
    };
    let line = |verb: &str| match noun {
        Some(noun) => format!("`parlor {noun} {verb}`"),
        None => format!("`parlor {verb}`"),
    };
    let meant = match (near(level, word), noun) {
        (Some(verb), _) => line(&verb),
        (None, None) => below(parlor, word)?,
        (None, Some(_)) => return None,
    };
    Some(format!("did you mean {meant}?"))
}

/// Verbs of this name below other verbs, as in `parlor agent pause`.
fn below(parlor: &Command, word: &str) -> Option<String> {
    const MOST: usize = 3;
    let found: Vec<String> = parlor
        .get_subcommands()
        .filter(|noun| noun.get_name() != "help")
        .filter_map(|noun| Some((noun.get_name(), near(noun, word)?)))
        .map(|(noun, verb)| format!("`parlor {noun} {verb}`"))
        .take(MOST)
        .collect();
    match found.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [before @ .., last] => Some(format!("{} or {last}", before.join(", "))),
    }
}

/// The verb that is nearest in spelling, under its own name.
fn near(level: &Command, word: &str) -> Option<String> {
    let slips = |verb: &Command| {
        let names = std::iter::once(verb.get_name()).chain(verb.get_all_aliases());
        names.filter_map(|name| slips(word, name)).min()
    };
    let verbs = level.get_subcommands().filter(|verb| !verb.is_hide_set());
    verbs
        .filter_map(|verb| Some((slips(verb)?, verb.get_name())))
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, name)| name.to_owned())
}

/// Letters that are wrong, missing, too many or swapped. None where these are too many for a slip:
/// `shell` is no misspelt `skill`.
fn slips(word: &str, name: &str) -> Option<usize> {
    let slips = strsim::damerau_levenshtein(&word.to_lowercase(), name);
    let most = match name.chars().count() {
        0..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    (slips <= most && slips < name.chars().count().min(word.chars().count())).then_some(slips)
}

#[cfg(test)]
mod tests {
    #[test]
    fn misspelt_verbs_are_known() {
        let told = |noun, word| super::hint(&super::super::command(), noun, word);
        let check = |noun, word, expected: &str| {
            assert_eq!(told(noun, word).as_deref(), Some(expected), "{word}");
        };
        check(None, "agnet", "did you mean `parlor agent`?");
        check(None, "sesions", "did you mean `parlor sessions`?");
        check(None, "statsu", "did you mean `parlor status`?");
        check(None, "pasue", "did you mean `parlor pause`?");
        check(Some("agent"), "lst", "did you mean `parlor agent list`?");
        check(
            Some("sessions"),
            "shwo",
            "did you mean `parlor sessions show`?",
        );
        for word in ["frobnicate", "x", "unheard-of", "shell", "cron", "bash"] {
            assert_eq!(told(None, word), None, "{word}");
        }
    }
}
