//! Turns an agent's Markdown into Discord's, cut into messages.
//!
//! Discord shows most of it by itself, so the text stays as it was written. Only what Discord does not know is put another
//! way: tables, code in other fences or without, small headings, rules, links by reference.
//! <https://support.discord.com/hc/en-us/articles/210298617>

mod blocks;
mod split;

#[cfg(test)]
mod tests;

use blocks::blocks;
use split::split;

/// Discord's limit for one message. It counts characters; UTF-16 units are never fewer.
const MAX_UNITS: usize = 2000;

/// Makes the messages for an answer. None, when there is nothing to see in it.
pub(super) fn render(markdown: &str) -> Vec<String> {
    split(&blocks(markdown), MAX_UNITS)
}
