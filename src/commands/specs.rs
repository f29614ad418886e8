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

impl Spec {
    /// A command without arguments, for everyone, with an effect on the place.
    const PLAIN: Spec = Spec {
        name: "",
        arguments: "",
        options: &[],
        summary: "",
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
        arguments: "[name] [once] | reset",
        options: &[
            Argument::optional(
                "name",
                "who shall answer here; leave it out to see who does",
                Offers::Agents(&["reset"]),
            ),
            Argument::optional(
                "once",
                "for your next message only",
                Offers::Words(&["once"]),
            ),
        ],
        summary: "who answers here, or let another do it",
        ..Spec::PLAIN
    },
    Spec {
        name: "agents",
        summary: "everyone who can answer",
        ..Spec::ASKS
    },
    Spec {
        name: "model",
        arguments: "[provider/model] | reset",
        options: &[Argument::optional(
            "model",
            "leave it out to see which one it is",
            Offers::Models(&["reset"]),
        )],
        summary: "the model used here, or choose another",
        ..Spec::PLAIN
    },
    Spec {
        name: "models",
        summary: "every model that can be chosen here",
        ..Spec::ASKS
    },
    Spec {
        name: "whoami",
        summary: "who you are, where this is, and why this agent answers",
        ..Spec::ASKS
    },
    Spec {
        name: "new",
        summary: "start a fresh conversation",
        ..Spec::PLAIN
    },
    Spec {
        name: "stop",
        arguments: "[all]",
        options: &[Argument::optional(
            "what",
            "everything that waits too",
            Offers::Words(&["all"]),
        )],
        summary: "stop what is being done here, or everything that waits too",
        ..Spec::PLAIN
    },
    Spec {
        name: "queue",
        arguments: "[clear]",
        options: &[Argument::optional(
            "what",
            "let go of what waits",
            Offers::Words(&["clear"]),
        )],
        summary: "what is being done here and what waits",
        ..Spec::ASKS
    },
    Spec {
        name: "status",
        summary: "what is going on here",
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
        summary: "what you have used; owners see it of everyone",
        ..Spec::ASKS
    },
    Spec {
        name: "skills",
        summary: "what the agent here has instructions for",
        ..Spec::ASKS
    },
    Spec {
        name: "memory",
        summary: "what the agent here remembers",
        ..Spec::ASKS
    },
    Spec {
        name: "remember",
        arguments: "[--person | --place | --private | --global] text",
        options: &[
            Argument::required("text", "what to remember", Offers::Nothing),
            Argument::optional(
                "who",
                "who may see it",
                Offers::Words(&["--person", "--place", "--private", "--global"]),
            ),
        ],
        summary: "have the agent here remember something",
        ..Spec::ASKS
    },
    Spec {
        name: "forget",
        arguments: "words | id",
        options: &[Argument::required(
            "what",
            "words of it, or its number",
            Offers::Nothing,
        )],
        summary: "find something the agent here remembers, and take it away",
        ..Spec::ASKS
    },
    Spec {
        name: "help",
        summary: "this list",
        ..Spec::ASKS
    },
    Spec {
        name: "retry",
        summary: "send again what could not be delivered here, or anywhere when asked in private",
        least: Role::Owner,
        ..Spec::ASKS
    },
    Spec {
        name: "pair",
        arguments: "[CODE] [yes]",
        options: &[
            Argument::optional(
                "code",
                "the code that the person was given; leave it out to see who waits",
                Offers::Nothing,
            ),
            Argument::optional(
                "sure",
                "let the person in without being shown who it is",
                Offers::Words(&["yes"]),
            ),
        ],
        summary: "who waits and who was let in, or let in the person with this code",
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
        least: Role::Admin,
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
