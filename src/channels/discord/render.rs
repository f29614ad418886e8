//! Turns an agent's Markdown into Discord's, cut into messages.
//!
//! Discord shows most Markdown itself, so the text stays as written. Rewritten are tables, code in
//! other fences or indented, small headings, rules and reference links.
//! <https://support.discord.com/hc/en-us/articles/210298617>

mod blocks;
mod split;

#[cfg(test)]
mod tests;

use blocks::blocks;
use split::split;

/// Discord's limit for a message. Discord counts characters; UTF-16 units are never fewer.
pub(super) const MAX_UNITS: usize = 2000;

/// The messages for an answer; none for an invisible text.
pub(super) fn render(markdown: &str) -> Vec<String> {
    split(&blocks(markdown), MAX_UNITS)
}
