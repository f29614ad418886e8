//! Words of operations for the places they touch.

/// In a place whose turn ended with its agent.
pub(super) fn removed(label: &str) -> String {
    format!("{label} is no longer here, so this answer was stopped. /agent tells who answers now.")
}

pub(super) const STOPPED: &str = "The operator has stopped this answer.";

pub(super) const DROPPED: &str = "The operator has dropped the messages that waited here. Please send yours again if it still matters.";
