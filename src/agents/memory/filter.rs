//! Narrows a search of memories by visibility, age and kind. A filter only takes rows away; `scope`
//! decides about visible rows.

use crate::config::{MemoryKind, RecallFilter, Visibility};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The default lets everything through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Empty: all.
    pub visibility: Vec<Visibility>,
    /// Empty: all.
    pub kinds: Vec<MemoryKind>,
    /// Unix milliseconds. Pieces of files have the time of their file's change.
    pub since: Option<i64>,
}

impl Filter {
    /// An agent's own filter for automatic recall.
    pub(super) fn of_recall(recall: &RecallFilter, now: i64) -> Self {
        Filter {
            visibility: recall.visibility.clone(),
            kinds: recall.kinds.clone(),
            since: recall.max_age_days.map(|days| days_ago(days, now)),
        }
    }

    /// This filter with a largest age.
    #[must_use]
    pub fn within_days(self, days: Option<u32>, now: i64) -> Self {
        let since = days.map(|days| days_ago(days, now));
        Filter { since, ..self }
    }

    /// Conditions on `memories AS m`, made of words of closed lists and numbers only.
    pub(super) fn sql(&self) -> String {
        let mut sql = String::new();
        if !self.visibility.is_empty() {
            let words = self.visibility.iter().map(|word| format!("'{word}'"));
            let words = words.collect::<Vec<_>>().join(", ");
            sql.push_str(&format!(" AND m.visibility IN ({words})"));
        }
        if !self.kinds.is_empty() {
            let kinds = self.kinds.iter().map(|kind| is_of(*kind));
            let kinds = kinds.collect::<Vec<_>>().join(" OR ");
            sql.push_str(&format!(" AND ({kinds})"));
        }
        if let Some(since) = self.since {
            sql.push_str(&format!(" AND m.created_at >= {since}"));
        }
        sql
    }
}

fn days_ago(days: u32, now: i64) -> i64 {
    now.saturating_sub(i64::from(days) * DAY_MS)
}

fn is_of(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Memory => "m.path IS NULL",
        MemoryKind::Note => "m.path LIKE 'memory/%'",
        MemoryKind::File => "m.path = 'MEMORY.md'",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::memory::index::{MEMORY_FILE, NOTES_FOLDER};

    #[test]
    fn kinds_name_the_files_of_the_index() {
        assert_eq!(is_of(MemoryKind::File), format!("m.path = '{MEMORY_FILE}'"));
        assert_eq!(
            is_of(MemoryKind::Note),
            format!("m.path LIKE '{NOTES_FOLDER}/%'")
        );
    }
}
