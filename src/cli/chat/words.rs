//! The words that Tab offers, and the commands of the terminal itself.

use crate::commands::{self, Offers, Parsed, SPECS};
use crate::domain::nearest;

/// Commands that the terminal carries out itself, with their arguments.
pub(super) const OWN: [(&str, &str); 4] = [
    ("topic", "[name]"),
    ("topics", ""),
    ("quit", ""),
    ("exit", ""),
];

/// How a line gets along with an answer that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// An agent answers.
    Talks,
    /// The reply stands for itself and comes at once.
    Asks,
    /// The reply is the gateway's list, and the terminal adds its own part.
    Help,
    /// The conversation goes on differently after the line, so the line waits for the answers to the
    /// lines before.
    Changes,
    /// Waiting lines go. The reply comes behind the answer.
    Drops,
    /// The answer ends.
    Stops,
}

pub(super) fn manner(line: &str) -> Manner {
    use commands::{AgentWish, Command, ModelWish, QueueWish};
    let command = match commands::parse(line) {
        Parsed::Talk => return Manner::Talks,
        Parsed::Misused { .. } | Parsed::Mistaken(_) => return Manner::Asks,
        Parsed::Command(command) => command,
    };
    match command {
        Command::Help(_) => Manner::Help,
        // The agent itself is steered, in all its places.
        Command::Agent(AgentWish::Show | AgentWish::Why | AgentWish::Steer { .. })
        | Command::Model(ModelWish::Show)
        | Command::Queue(QueueWish::Show) => Manner::Asks,
        Command::Queue(QueueWish::Clear) => Manner::Drops,
        Command::Agent(_)
        | Command::Model(_)
        | Command::New
        | Command::Again(_)
        | Command::Bind(_)
        | Command::Unbind => Manner::Changes,
        Command::Stop(_) => Manner::Stops,
        _ => Manner::Asks,
    }
}

/// Whether a line drops the lines that wait: `/queue clear` and `/stop all`.
pub(super) fn drops_what_waits(line: &str) -> bool {
    use commands::{Command, QueueWish, Which};
    matches!(
        commands::parse(line),
        Parsed::Command(Command::Queue(QueueWish::Clear) | Command::Stop(Which::All))
    )
}

/// Whether the first word of a line ends the chat. Words behind it change nothing.
pub(super) fn leaves(first: &str) -> bool {
    ["/quit", "/exit"]
        .iter()
        .any(|own| own.eq_ignore_ascii_case(first))
}

/// Bare words that other prompts take for commands, typed as a whole line.
pub(super) fn as_elsewhere(line: &str) -> Option<&'static str> {
    match line.trim() {
        "quit" | "exit" => Some("/quit"),
        "help" | "?" => Some("/help"),
        _ => None,
    }
}

/// Names in the config. Topics come and go while people talk.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    pub(super) agents: Vec<String>,
    pub(super) topics: Vec<String>,
}

impl Words {
    /// Words that can stand at the end of the line, and where they begin.
    pub(super) fn offer(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let (before, begun) = line.split_at(start);
        let mut before = before.split_whitespace();
        let offered = match (before.next(), before.count()) {
            (None, _) if begun.starts_with('/') => all_commands(),
            (Some("/topic"), 0) => self.topics.clone(),
            (Some(command), position) => self.of_argument(command, position),
            (None, _) => Vec::new(),
        };
        let fitting = offered.into_iter().filter(|word| word.starts_with(begun));
        (start, fitting.collect())
    }

    fn of_argument(&self, command: &str, position: usize) -> Vec<String> {
        let name = command.strip_prefix('/').unwrap_or_default();
        let spec = SPECS.iter().find(|spec| spec.name == name);
        let argument = spec.and_then(|spec| spec.options.get(position));
        let listed = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        match argument.map(|argument| &argument.offers) {
            Some(Offers::Agents(words)) => {
                let mut offered = self.agents.clone();
                offered.extend::<Vec<String>>(listed(words));
                offered
            }
            Some(Offers::Words(words) | Offers::Models(words)) => listed(words),
            Some(Offers::Nothing) | None => Vec::new(),
        }
    }
}

/// With a space behind, where an argument follows.
fn all_commands() -> Vec<String> {
    let own = OWN.iter().map(|(name, arguments)| (*name, *arguments));
    let shared = SPECS.iter().map(|spec| (spec.name, spec.arguments));
    let mut all: Vec<String> = shared
        .chain(own)
        .map(|(name, arguments)| match arguments {
            "" => format!("/{name}"),
            _ => format!("/{name} "),
        })
        .collect();
    all.sort();
    all
}

/// Takes a mistyped command of the terminal itself, which the gateway does not know.
pub(super) fn meant_for_the_terminal(line: &str) -> Option<String> {
    if !matches!(commands::parse(line), Parsed::Mistaken(_)) {
        return None;
    }
    let name = line.trim().strip_prefix('/')?;
    let name = name.split_whitespace().next()?;
    let shared = || SPECS.iter().map(|spec| spec.name);
    if shared().any(|known| known == name) {
        return None;
    }
    let own = OWN.iter().map(|(name, _)| *name);
    let meant = nearest(name, shared().chain(own.clone()))?;
    own.into_iter().find(|name| *name == meant).map(|meant| {
        format!("There is no command /{name}. Did you mean /{meant}? /help all lists them.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tab_knows_commands_agents_and_topics() {
        let words = Words {
            agents: vec!["main".into(), "rose".into()],
            topics: vec!["writing".into(), "work".into(), "code".into()],
        };
        let check = |line: &str, start, expected: &[&str]| {
            let expected = expected.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(words.offer(line), (start, expected), "{line}");
        };
        check("/top", 0, &["/topic ", "/topics"]);
        check("/sto", 0, &["/stop "]);
        check("/agent r", 7, &["rose", "reset"]);
        check("/agent rose o", 12, &["once"]);
        check("/topic w", 7, &["writing", "work"]);
        check("/topic writing c", 15, &[]);
        check("hello /to", 6, &[]);
        check("hel", 0, &[]);
    }

    #[test]
    fn replies_come_at_once_unless_they_change_the_conversation() {
        let check = |expected, lines: &[&str]| {
            for line in lines {
                assert_eq!(manner(line), expected, "{line}");
            }
        };
        check(
            Manner::Asks,
            &[
                "/agents",
                "/agent",
                "/queue",
                "/status",
                "/whoami",
                "/nonsense",
                "/agent why",
                "/agent pause rose",
            ],
        );
        check(Manner::Talks, &["hello", "/etc/hosts"]);
        check(Manner::Drops, &["/queue clear"]);
        check(Manner::Help, &["/help", "/HELP me"]);
        check(
            Manner::Changes,
            &["/new", "/agent rose", "/agent reset", "/model a/b"],
        );
        check(Manner::Stops, &["/stop", "/stop all", "/stop this"]);
    }

    #[test]
    fn words_behind_quit_change_nothing() {
        for line in ["/quit", "/quit now", "/exit x", "/QUIT please"] {
            assert!(leaves(line.split(' ').next().unwrap_or_default()), "{line}");
        }
        assert!(!leaves("/quite"));
        assert!(!leaves("quit"));
        assert_eq!(as_elsewhere(" exit "), Some("/quit"));
        assert_eq!(as_elsewhere("?"), Some("/help"));
        assert_eq!(as_elsewhere("exit the room"), None);
    }

    #[test]
    fn mistyped_commands_of_the_terminal_are_known() {
        let meant = |line| meant_for_the_terminal(line);
        assert_eq!(
            meant("/topc writing").as_deref(),
            Some("There is no command /topc. Did you mean /topic? /help all lists them.")
        );
        assert_eq!(
            meant("/qiut").as_deref(),
            Some("There is no command /qiut. Did you mean /quit? /help all lists them.")
        );
        for other in ["/agnet", "/stop", "/stop it", "hello", "/etc/hosts"] {
            assert_eq!(meant(other), None, "{other}");
        }
    }
}
