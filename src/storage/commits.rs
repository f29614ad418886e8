//! Counts commits in the header of the file, to tell a database from an older copy of the same
//! database.
//!
//! SQLite does not: its own change counter stands still while a single connection writes, and any
//! log beside a database is taken for the database's own. The count is kept as `application_id`,
//! four bytes of the header for the application's use. They are on the first page, so every commit
//! has this page in the log, and the log tells the state of the database at its beginning.

use rusqlite::Connection;

/// Counts this transaction.
pub(super) fn count(transaction: &Connection) -> rusqlite::Result<()> {
    let count = Count::read(transaction)?;
    transaction.pragma_update(None, "application_id", count.next().0.cast_signed())
}

/// The number of commits of a database, from a random number on: two databases hardly ever have the
/// same count. Zero stands for a database without a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(super) u32);

/// Counts go round, without the zero.
const ROUND: u64 = u32::MAX as u64;

impl Count {
    pub(super) const NONE: Count = Count(0);

    /// The count of the last commit that the connection sees.
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare_cached("PRAGMA application_id")?;
        let count: i32 = statement.query_row([], |row| row.get(0))?;
        Ok(Count(count.cast_unsigned()))
    }

    fn next(self) -> Count {
        match self {
            Count::NONE => Count(
                getrandom::u32()
                    .expect("the system has random numbers")
                    .max(1),
            ),
            Count(u32::MAX) => Count(1),
            Count(count) => Count(count + 1),
        }
    }

    /// The number of commits from here to `other`. Counts go round, so a slightly earlier count is
    /// very far ahead.
    fn until(self, other: Count) -> u64 {
        (u64::from(other.0) + ROUND - u64::from(self.0)) % ROUND
    }

    pub(super) fn is_before(self, other: Count) -> bool {
        let steps = self.until(other);
        steps > 0 && steps < ROUND / 2
    }
}

/// The counts of the first and the last commit in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) first: Count,
    pub(super) last: Count,
}

impl Counts {
    /// Whether the log continues a database at this count: the log began there, or some of its
    /// commits are in the database already.
    pub(super) fn go_on_from(self, database: Count) -> bool {
        let counted = database != Count::NONE && self.first != Count::NONE;
        // Plus one, so the state before the first commit is in the range.
        let until = |count: Count| (self.first.until(count) + 1) % ROUND;
        !counted || until(database) <= until(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(first: u32, last: u32, database: u32, expected: bool) {
        let log = Counts {
            first: Count(first),
            last: Count(last),
        };
        assert_eq!(
            log.go_on_from(Count(database)),
            expected,
            "{log:?} beside {database}"
        );
    }

    #[test]
    fn a_log_goes_on_from_where_it_was_begun_and_from_what_it_has() {
        check(11, 15, 10, true);
        check(11, 15, 13, true);
        check(11, 15, 15, true);
        check(11, 15, 9, false);
        check(11, 15, 16, false);
        check(11, 15, 3_000_000_000, false);
    }

    #[test]
    fn counts_go_round_without_the_zero() {
        const LAST: u32 = u32::MAX;
        assert_eq!(Count(LAST).next(), Count(1));
        check(1, 4, LAST, true);
        check(1, 4, LAST - 1, false);
        check(LAST, 2, LAST - 1, true);
        check(LAST, 2, 1, true);
        check(LAST, 2, 3, false);
        assert!(Count(LAST).is_before(Count(1)) && !Count(1).is_before(Count(LAST)));
    }

    /// Databases of earlier versions have no count, so any log may be theirs.
    #[test]
    fn without_a_count_every_log_fits() {
        check(7, 9, 0, true);
        check(0, 0, 0, true);
        check(0, 5, 3, true);
        assert_ne!(Count::NONE.next(), Count::NONE);
    }
}
