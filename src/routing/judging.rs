//! Whether a message is answered, and by which agent, as the config and the settings made in chat
//! say: routing, access and `who` together. Pure.
//!
//! The gateway, the commands, `route explain`, route tests and the replay of old messages all ask
//! [`judge`].

use super::{FromChat, Resolved, Table, Visit, resolve};
use crate::access::{self, Asking, NotForYou, Role, Verdict};
use crate::domain::{Addressed, AgentId};

/// A message that a person writes or could write.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) table: &'a Table,
    pub(crate) visit: Visit<'a>,
    pub(crate) from_chat: FromChat,
    pub(crate) addressed: Addressed,
    pub(crate) is_command: bool,
}

impl<'a> Question<'a> {
    /// The plainest message: words to the bot, no command.
    pub(crate) fn said_to_the_bot(table: &'a Table, visit: Visit<'a>, from_chat: FromChat) -> Self {
        let addressed = if visit.origin.key.is_private() {
            Addressed::Privately
        } else {
            Addressed::ByMention
        };
        Question {
            table,
            visit,
            from_chat,
            addressed,
            is_command: false,
        }
    }
}

/// The decision about a message.
#[derive(Debug)]
pub(crate) struct Judgment {
    pub(crate) resolved: Resolved,
    /// The bot answers in this place at all.
    pub(crate) is_open: bool,
    /// A message must mention the bot or reply to the bot.
    pub(crate) needs_mention: bool,
    pub(crate) verdict: Verdict,
    /// The agent is not open to the person.
    pub(crate) not_for_you: Option<NotForYou>,
}

impl Judgment {
    /// The agent that answers, if any.
    pub(crate) fn answered_by(&self) -> Option<&AgentId> {
        let is_answered = self.verdict == Verdict::Admit && self.not_for_you.is_none();
        is_answered.then_some(&self.resolved.route.agent)
    }
}

pub(crate) fn judge(question: Question<'_>) -> Judgment {
    let Question {
        table,
        visit,
        from_chat,
        addressed,
        is_command,
    } = question;
    let resolved = resolve(table, from_chat, visit);
    let asking = Asking {
        key: &visit.origin.key,
        role: visit.standing.highest(),
        may_open: visit.standing.role() >= Role::Admin,
        addressed,
        is_command,
        place_is_bound: resolved.route.opens_place,
        require_mention: resolved.route.require_mention,
    };
    let verdict = access::decide(visit.access, &asking);
    let not_for_you = match verdict {
        // A pin in force was checked for all people of its place.
        Verdict::Admit if resolved.pin.is_none() => {
            table.may_use(&resolved.route.agent, visit).err()
        }
        _ => None,
    };
    Judgment {
        is_open: access::is_open(visit.access, &asking),
        needs_mention: access::needs_mention(visit.access, &asking),
        resolved,
        verdict,
        not_for_you,
    }
}
