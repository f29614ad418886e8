//! Facts behind the names of Anthropic's models: the longest answer, and the way to ask for
//! thoughts.

/// A Claude by its family and version; others have neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claude {
    family: Family,
    version: (u32, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Opus,
    Sonnet,
    Haiku,
    /// Fable and Mythos.
    Story,
    Unknown,
}

impl Claude {
    /// `claude-opus-4-5-20251101`, `claude-3-5-sonnet-latest`, and `anthropic/claude-opus-4.5` at
    /// routers.
    pub(super) fn of(model: &str) -> Self {
        let own = model.split_once("claude-").map_or("", |(_, own)| own);
        let words = || own.split(['-', '.', '@', ':']);
        let family = words().find_map(Family::of).unwrap_or(Family::Unknown);
        // Numbers of more than two digits are dates.
        let is_version = |word: &&str| (1..=2).contains(&word.len());
        let mut numbers = words()
            .filter(is_version)
            .filter_map(|word| word.parse().ok());
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Claude { family, version }
    }

    /// Anthropic answers no request without a limit, so requests ask for the most of the model.
    pub(super) fn longest_answer(self) -> u32 {
        match (self.family, self.version) {
            (Family::Unknown, _) => 64_000,
            (Family::Story, _) => 128_000,
            (Family::Opus, version) if version >= (4, 8) => 128_000,
            (Family::Haiku, version) if version >= (5, 0) => 128_000,
            (Family::Opus, version) if ((4, 0)..(4, 5)).contains(&version) => 32_000,
            (_, (3, 7)) => 64_000,
            (_, (3, 5)) => 8_192,
            (Family::Opus | Family::Haiku, (3, _)) => 4_096,
            _ => 64_000,
        }
    }

    /// Whether effort is asked for by a word. Others get a number of tokens to think with.
    pub(super) fn knows_effort(self) -> bool {
        self.chooses_when_to_think() || self.family == Family::Opus && self.version == (4, 5)
    }

    pub(super) fn chooses_when_to_think(self) -> bool {
        match self.family {
            Family::Opus | Family::Sonnet => self.version >= (4, 6),
            Family::Haiku => self.version >= (5, 0),
            Family::Story => true,
            Family::Unknown => false,
        }
    }

    /// Whether a model thinks by default.
    pub(super) fn thinks_unasked(self) -> bool {
        matches!(self.family, Family::Opus | Family::Sonnet | Family::Haiku)
            && self.version >= (5, 0)
    }
}

impl Family {
    fn of(word: &str) -> Option<Self> {
        match word {
            "opus" => Some(Family::Opus),
            "sonnet" => Some(Family::Sonnet),
            "haiku" => Some(Family::Haiku),
            "fable" | "mythos" => Some(Family::Story),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_all_their_forms() {
        let check = |name: &str, family, version| {
            assert_eq!(Claude::of(name), Claude { family, version }, "{name}");
        };
        check("claude-opus-4-5-20251101", Family::Opus, (4, 5));
        check("claude-opus-4-20250514", Family::Opus, (4, 0));
        check("claude-3-5-sonnet-latest", Family::Sonnet, (3, 5));
        check("claude-3-haiku-20240307", Family::Haiku, (3, 0));
        check("anthropic/claude-opus-4.6", Family::Opus, (4, 6));
        check("claude-fable", Family::Story, (0, 0));
        check("some-model", Family::Unknown, (0, 0));
        check("claude-2.1", Family::Unknown, (2, 1));
    }
}
