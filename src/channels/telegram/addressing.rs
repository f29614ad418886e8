//! Tells whether a message is for the bot, and removes the bot's name from its text.

use super::parse::Reader;
use super::types::Message;
use crate::domain::Addressed;

impl Reader<'_> {
    /// The text without the bot's name, and how the text addresses the bot. `None` for a command to
    /// another bot.
    pub(super) fn addressed(
        &self,
        message: &Message<'_>,
        text: String,
    ) -> Option<(String, Addressed)> {
        let (text, commanded) = self.take_name_off_command(text)?;
        let addressed = if message.chat.is_private() {
            Addressed::Privately
        } else if commanded || self.is_mentioned(message) || self.is_called(message) {
            Addressed::ByMention
        } else if self.is_answered(message) {
            Addressed::ByReply
        } else {
            Addressed::NotAtAll
        };
        Some((self.take_mention_off(&text), addressed))
    }

    /// `/agent@parlor_bot rose` is ours, `/agent@other_bot` is not.
    fn take_name_off_command(&self, text: String) -> Option<(String, bool)> {
        let word = text.split_whitespace().next().unwrap_or_default();
        match word
            .strip_prefix('/')
            .and_then(|command| command.split_once('@'))
        {
            Some((command, bot)) if self.is_our_name(bot) => Some((
                format!(
                    "/{command}{}",
                    text.trim_start().strip_prefix(word).unwrap_or_default()
                ),
                true,
            )),
            Some((command, bot)) if is_plain_word(command) && is_plain_word(bot) => None,
            // A path such as /home/me@nas:/srv.
            Some(_) | None => Some((text, false)),
        }
    }

    fn is_mentioned(&self, message: &Message<'_>) -> bool {
        let text = message.text().unwrap_or_default();
        message.entities().any(|entity| match entity.kind {
            "mention" => {
                let name = utf16_part(text, entity.offset, entity.length)
                    .and_then(|part| part.strip_prefix('@'));
                name.is_some_and(|name| self.is_our_name(name))
            }
            "text_mention" => entity
                .user
                .as_ref()
                .is_some_and(|user| user.has_id(self.bot_id)),
            _ => false,
        })
    }

    fn is_called(&self, message: &Message<'_>) -> bool {
        message
            .text()
            .is_some_and(|text| self.nicknames.are_in(text))
    }

    fn is_answered(&self, message: &Message<'_>) -> bool {
        let from = message.replied().and_then(|replied| replied.from.as_ref());
        from.is_some_and(|from| from.has_id(self.bot_id))
    }

    fn take_mention_off(&self, text: &str) -> String {
        let first = text.split_whitespace().next().unwrap_or_default();
        let name = first
            .strip_prefix('@')
            .map(|name| name.trim_end_matches([',', ':', '.', '!', '?']));
        let rest = text
            .trim_start()
            .strip_prefix(first)
            .unwrap_or(text)
            .trim_start();
        match name.filter(|name| self.is_our_name(name)) {
            // A name alone stays in the text, because models refuse an empty message.
            Some(_) if rest.is_empty() => text.to_owned(),
            Some(_) => rest.to_owned(),
            None => text.to_owned(),
        }
    }

    fn is_our_name(&self, name: &str) -> bool {
        self.me
            .username
            .as_deref()
            .is_some_and(|ours| ours.eq_ignore_ascii_case(name))
    }
}

/// The letters of commands and of bots' names.
fn is_plain_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// None for an entity that points outside of its text, or into a character.
fn utf16_part(text: &str, offset: usize, length: usize) -> Option<&str> {
    let mut units = 0;
    let mut boundaries = text.char_indices().map(|(at, c)| {
        let boundary = (units, at);
        units += c.len_utf16();
        boundary
    });
    let start = boundaries.by_ref().find(|(units, _)| *units == offset)?.1;
    let last = offset.checked_add(length)?;
    let end = boundaries
        .find(|(units, _)| *units == last)
        .map_or(text.len(), |(_, at)| at);
    text.get(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_by_utf16_units() {
        let text = "👋 @parlor_bot é";
        assert_eq!(utf16_part(text, 3, 11), Some("@parlor_bot"));
        assert_eq!(utf16_part(text, 15, 1), Some("é"));
        assert_eq!(utf16_part(text, 15, 9), Some("é"));
        assert_eq!(utf16_part(text, 1, 2), None, "inside the wave");
        assert_eq!(utf16_part(text, 99, 2), None);
    }
}
