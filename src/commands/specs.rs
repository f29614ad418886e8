//! The list of commands for people. Feeds `/help`, Telegram's menu, Discord's slash commands and
//! the book's reference.

use crate::domain::Role;

#[derive(Debug, Clone, Copy)]
pub struct Spec {
    pub name: &'static str,
    /// The arguments, as `/help` shows them.
    pub arguments: &'static str,
    /// The same in parts, for platforms with a field for each. Joined by spaces, the parts are a
    /// command line.
    pub options: &'static [Argument],
    pub summary: &'static str,
    /// The heading in `/help`.
    pub group: Group,
    /// The lowest role that may use the command.
    pub least: Role,
    /// The readers of the answer, for platforms with private replies.
    pub audience: Audience,
}

/// An argument of a command.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    pub name: &'static str,
    pub summary: &'static str,
    pub is_required: bool,
    pub offers: Offers,
}

/// The offered values of an argument.
#[derive(Debug, Clone, Copy)]
pub enum Offers {
    /// Free text.
    Nothing,
    /// These words alone.
    Words(&'static [&'static str]),
    /// An agent, or a word of the list.
    Agents(&'static [&'static str]),
    /// A model, or a word of the list.
    Models(&'static [&'static str]),
}

/// A heading in `/help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Agents,
    Conversation,
    Memory,
    About,
    Owners,
}

impl Group {
    pub(crate) const ALL: [Group; 5] = [
        Group::Agents,
        Group::Conversation,
        Group::Memory,
        Group::About,
        Group::Owners,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Group::Agents => "Who answers",
            Group::Conversation => "This conversation",
            Group::Memory => "What the agent knows",
            Group::About => "You and the bot",
            Group::Owners => "For owners and admins",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// All people of the place, because the command changes the place.
    Place,
    /// The person with the question.
    Asker,
}

impl Argument {
    const fn optional(name: &'static str, summary: &'static str, offers: Offers) -> Self {
        Argument {
            name,
            summary,
            is_required: false,
            offers,
        }
    }

    const fn required(name: &'static str, summary: &'static str, offers: Offers) -> Self {
        Argument {
            name,
            summary,
            is_required: true,
            offers,
        }
    }
}

impl PartialEq for Spec {
    /// A name is in the list once.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Spec {}

impl Spec {
    /// A command without arguments, for everyone, with an effect on the place.
    const PLAIN: Spec = Spec {
        name: "",
        arguments: "",
        options: &[],
        summary: "",
        group: Group::Agents,
        least: Role::Guest,
        audience: Audience::Place,
    };
    /// A command without an effect.
    const ASKS: Spec = Spec {
        audience: Audience::Asker,
        ..Spec::PLAIN
    };
}

pub const SPECS: &[Spec] = &[
    Spec {
        name: "agent",
        arguments: "[name] [once | for 2h] | why | reset | close",
        options: &[
            Argument::optional(
                "name",
                "the agent that should answer here; leave it out to see who does",
                Offers::Agents(&["why", "reset", "close"]),
            ),
            Argument::optional(
                "once",
                "for your next message or for a while only; for owners, what to do with the agent",
                Offers::Words(&[
                    "once", "for 1h", "for 8h", "for 1d", "pause", "resume", "restart", "clear",
                ]),
            ),
        ],
        summary: "who answers here, or switch",
        group: Group::Agents,
        ..Spec::PLAIN
    },
    Spec {
        name: "agents",
        summary: "all agents you can talk to",
        group: Group::Agents,
        ..Spec::ASKS
    },
    Spec {
        name: "model",
        arguments: "[provider/model] | reset",
        options: &[Argument::optional(
            "model",
            "a model; leave it out to see which one is used",
            Offers::Models(&["reset"]),
        )],
        summary: "the model used here, or switch",
        group: Group::Agents,
        ..Spec::PLAIN
    },
    Spec {
        name: "models",
        summary: "all models you can choose here",
        group: Group::Agents,
        ..Spec::ASKS
    },
    Spec {
        name: "whoami",
        summary: "who you are, where you are, and why this agent answers",
        group: Group::About,
        ..Spec::ASKS
    },
    Spec {
        name: "new",
        summary: "start a fresh conversation",
        group: Group::Conversation,
        ..Spec::PLAIN
    },
    Spec {
        name: "stop",
        arguments: "[all]",
        options: &[Argument::optional(
            "what",
            "the waiting messages too",
            Offers::Words(&["all"]),
        )],
        summary: "cancel the current answer, or the waiting messages too",
        group: Group::Conversation,
        ..Spec::PLAIN
    },
    Spec {
        name: "queue",
        arguments: "[clear]",
        options: &[Argument::optional(
            "what",
            "drop the waiting messages",
            Offers::Words(&["clear"]),
        )],
        summary: "the current answer and the waiting messages",
        group: Group::Conversation,
        ..Spec::ASKS
    },
    Spec {
        name: "status",
        summary: "what is going on here",
        group: Group::Conversation,
        ..Spec::ASKS
    },
    Spec {
        name: "usage",
        arguments: "[today | 7d | 30d]",
        options: &[Argument::optional(
            "period",
            "how far back",
            Offers::Words(&["today", "7d", "30d"]),
        )],
        summary: "your tokens and cost (owners: everyone's)",
        group: Group::About,
        ..Spec::ASKS
    },
    Spec {
        name: "skills",
        summary: "the skills of the agent here",
        group: Group::Memory,
        ..Spec::ASKS
    },
    Spec {
        name: "memory",
        summary: "what the agent here remembers",
        group: Group::Memory,
        ..Spec::ASKS
    },
    Spec {
        name: "remember",
        arguments: "[--person | --place | --agent | --global] text",
        options: &[
            Argument::required("text", "the text to remember", Offers::Nothing),
            Argument::optional(
                "who",
                "who may see it",
                Offers::Words(&["--person", "--place", "--agent", "--global"]),
            ),
        ],
        summary: "save a memory",
        group: Group::Memory,
        ..Spec::ASKS
    },
    Spec {
        name: "forget",
        arguments: "words | id",
        options: &[Argument::required(
            "what",
            "words of the memory, or its number",
            Offers::Nothing,
        )],
        summary: "find a memory and delete it",
        group: Group::Memory,
        ..Spec::ASKS
    },
    Spec {
        name: "jobs",
        arguments: "[pause | resume | remove] [number]",
        options: &[
            Argument::optional(
                "what",
                "what to do with a job; leave it out to see all of them",
                Offers::Words(&["pause", "resume", "remove"]),
            ),
            Argument::optional("number", "the number of the job", Offers::Nothing),
        ],
        summary: "what the agent here does by itself, and when",
        group: Group::Conversation,
        least: Role::Member,
        ..Spec::ASKS
    },
    Spec {
        name: "approvals",
        summary: "calls of tools that wait for a yes or no (admins in private: in all chats)",
        group: Group::Conversation,
        least: Role::Member,
        ..Spec::ASKS
    },
    Spec {
        name: "approve",
        arguments: "number",
        options: &[Argument::required(
            "number",
            "the number of the approval",
            Offers::Nothing,
        )],
        summary: "allow a call of a tool, once",
        group: Group::Conversation,
        least: Role::Member,
        ..Spec::PLAIN
    },
    Spec {
        name: "refuse",
        arguments: "number",
        options: &[Argument::required(
            "number",
            "the number of the approval",
            Offers::Nothing,
        )],
        summary: "refuse a call of a tool",
        group: Group::Conversation,
        least: Role::Member,
        ..Spec::PLAIN
    },
    Spec {
        name: "help",
        arguments: "[all]",
        options: &[Argument::optional(
            "all",
            "every command, instead of the most useful ones",
            Offers::Words(&["all"]),
        )],
        summary: "the most useful commands, or all",
        group: Group::About,
        ..Spec::ASKS
    },
    Spec {
        name: "retry",
        summary: "resend failed messages (in private: from all chats)",
        group: Group::Owners,
        least: Role::Owner,
        ..Spec::ASKS
    },
    Spec {
        name: "deliver",
        arguments: "[off | on]",
        options: &[Argument::optional(
            "what",
            "keep answers back, or send them again",
            Offers::Words(&["off", "on"]),
        )],
        summary: "keep answers back here, or send them again",
        group: Group::Owners,
        least: Role::Admin,
        ..Spec::PLAIN
    },
    Spec {
        name: "reload",
        summary: "read config.toml again",
        group: Group::Owners,
        least: Role::Owner,
        ..Spec::ASKS
    },
    Spec {
        name: "doctor",
        summary: "what is wrong here, and what to do about it",
        group: Group::Owners,
        least: Role::Owner,
        ..Spec::ASKS
    },
    Spec {
        name: "trace",
        summary: "how an answer came about: reply to it, or leave that out for the last one here",
        group: Group::Owners,
        least: Role::Admin,
        ..Spec::ASKS
    },
    Spec {
        name: "dashboard",
        summary: "open the dashboard (in private)",
        group: Group::Owners,
        least: Role::Owner,
        ..Spec::ASKS
    },
    Spec {
        name: "bind",
        arguments: "name",
        options: &[Argument::required(
            "name",
            "the agent that answers here for good",
            Offers::Agents(&[]),
        )],
        summary: "give this place to an agent in config.toml",
        group: Group::Owners,
        least: Role::Owner,
        ..Spec::PLAIN
    },
    Spec {
        name: "unbind",
        summary: "take the binding of this place out of config.toml",
        group: Group::Owners,
        least: Role::Owner,
        ..Spec::PLAIN
    },
    Spec {
        name: "audit",
        arguments: "[number]",
        options: &[Argument::optional(
            "number",
            "how many changes to show",
            Offers::Nothing,
        )],
        summary: "who changed what (in private: in all chats)",
        group: Group::Owners,
        least: Role::Admin,
        ..Spec::ASKS
    },
    Spec {
        name: "pair",
        arguments: "[CODE] [yes | no]",
        options: &[
            Argument::optional(
                "code",
                "the code that the person was given; leave it out to see who waits",
                Offers::Nothing,
            ),
            Argument::optional(
                "sure",
                "let the person in, or turn them away, without being shown who it is",
                Offers::Words(&["yes", "no"]),
            ),
        ],
        summary: "who waits and who was let in, or let in the person with this code",
        group: Group::Owners,
        least: Role::Admin,
        ..Spec::ASKS
    },
    Spec {
        name: "unpair",
        arguments: "ID",
        options: &[Argument::required(
            "id",
            "the person's id, such as telegram:12345678",
            Offers::Nothing,
        )],
        summary: "take back that a person was let in",
        group: Group::Owners,
        least: Role::Admin,
        ..Spec::ASKS
    },
    Spec {
        name: "people",
        arguments: "[show WHO | role WHO ROLE [agent]]",
        options: &[
            Argument::optional(
                "what",
                "show a person, or give them a role; leave it out to see everybody",
                Offers::Words(&["show", "role"]),
            ),
            Argument::optional(
                "who",
                "an id, such as telegram:12345678, or a name",
                Offers::Nothing,
            ),
            Argument::optional(
                "role",
                "the new role",
                Offers::Words(&["guest", "member", "admin", "owner"]),
            ),
            Argument::optional("agent", "with this agent only", Offers::Agents(&[])),
        ],
        summary: "everybody and their roles (owners: change a role)",
        group: Group::Owners,
        least: Role::Admin,
        ..Spec::ASKS
    },
    Spec {
        name: "allow",
        arguments: "WHO AMOUNT [tokens] [today | this month]",
        options: &[
            Argument::required(
                "who",
                "an agent, a person's id, or house",
                Offers::Agents(&["house"]),
            ),
            Argument::required("amount", "money, such as 2.00", Offers::Nothing),
            Argument::optional(
                "unit",
                "tokens instead of money",
                Offers::Words(&["tokens"]),
            ),
            Argument::optional(
                "span",
                "how long it counts",
                Offers::Words(&["today", "this month"]),
            ),
        ],
        summary: "raise a limit for today or this month",
        group: Group::Owners,
        least: Role::Owner,
        ..Spec::ASKS
    },
    Spec {
        name: "pause",
        arguments: "background",
        options: &[Argument::required(
            "what",
            "the work to pause",
            Offers::Words(&["background"]),
        )],
        summary: "pause work that nobody waits for",
        group: Group::Owners,
        least: Role::Owner,
        ..Spec::ASKS
    },
    Spec {
        name: "resume",
        arguments: "background",
        options: &[Argument::required(
            "what",
            "the work to go on with",
            Offers::Words(&["background"]),
        )],
        summary: "go on with paused work",
        group: Group::Owners,
        least: Role::Owner,
        ..Spec::ASKS
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A command that takes something can be given it everywhere.
    #[test]
    fn what_help_shows_can_also_be_chosen() {
        for spec in SPECS {
            assert_eq!(
                spec.arguments.is_empty(),
                spec.options.is_empty(),
                "/{}: arguments and options",
                spec.name
            );
        }
    }
}
