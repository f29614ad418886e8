//! Words that people type out of habit, from other programs, with what does it here.

/// A word, the word before it if that matters, and the hint.
const HABITS: &[(Option<&str>, &[&str], &str)] = &[
    (
        None,
        &["start", "serve", "up", "gateway", "daemon", "server"],
        "`parlor run` starts the gateway",
    ),
    (
        None,
        &["down", "kill", "quit"],
        "Ctrl-C in the terminal of `parlor run` stops the gateway, and so does SIGTERM",
    ),
    (
        None,
        &["restart"],
        "stop `parlor run` with Ctrl-C and start it again; no message is lost meanwhile",
    ),
    (
        None,
        &["log", "tail"],
        "`parlor logs` shows the log file, `parlor logs --follow` further lines as they come",
    ),
    (
        None,
        &["health", "ps", "top"],
        "`parlor status` tells how the gateway is doing, and `parlor status --watch` goes on telling",
    ),
    (
        None,
        &["check", "lint", "validate", "test"],
        "`parlor doctor` looks at everything, `parlor config check` at the config, `parlor security check` at what is open, `parlor skill check` at skills",
    ),
    (
        None,
        &["onboard", "install", "quickstart", "configure", "wizard"],
        "`parlor setup` connects a model and a bot, step by step; `parlor chat` talks to the agents here",
    ),
    (
        None,
        &["shell", "terminal", "exec", "bash"],
        "`parlor chat` talks to agents here; the tool `shell` of agents is allowed in config.toml",
    ),
    (
        None,
        &["cron", "crontab", "schedule", "schedules", "reminders"],
        "`parlor job` lists what agents do at set times, `parlor job add` adds to it",
    ),
    (
        None,
        &["dump"],
        "`parlor backup` writes everything into one file. `parlor agent export` and `parlor memory export` write single parts",
    ),
    (
        None,
        &["migrate", "claw"],
        "`parlor import openclaw` brings agents of OpenClaw in, and so for hermes, zeroclaw, moltis and signet",
    ),
    (
        None,
        &["web", "ui", "tui"],
        "`parlor dashboard` opens the house in a browser, and `parlor chat` talks to agents here",
    ),
    (
        None,
        &["users", "user", "members", "owners", "roles"],
        "`parlor people` lists everybody with their roles",
    ),
    (
        None,
        &["places", "topics", "channels", "bindings", "routes"],
        "`parlor sessions` lists places with their agents, `parlor route explain PLACE` tells who answers in a place",
    ),
    (
        None,
        &["history", "conversations"],
        "`parlor sessions` lists conversations, `parlor sessions show PLACE` shows one, `parlor sessions search WORDS` searches all",
    ),
    (
        None,
        &["models", "model"],
        "models are in config.toml: default_model and [providers.…]; /models in a chat lists them",
    ),
    (
        None,
        &["login", "auth", "key", "keys"],
        "tokens and API keys stay out of the config: write `token = { env = \"TELEGRAM_BOT_TOKEN\" }` in config.toml and export the variable",
    ),
    (
        None,
        &["update", "upgrade", "self-update"],
        "replace the program and start it again; the database is brought up to date by itself",
    ),
    (
        None,
        &["add", "create", "clone", "rename"],
        "`parlor agent add` makes an agent; `parlor help agent` has the other verbs",
    ),
    (
        None,
        &["list", "ls"],
        "say of what: `parlor agent list`, `parlor skill list`, `parlor memory list`, `parlor pair list`",
    ),
    (
        None,
        &["completion", "generate-shell-completion"],
        "`parlor completions bash` prints them, also for zsh and fish",
    ),
    (
        None,
        &["service", "systemd", "unit", "autostart", "enable"],
        "`parlor setup` offers a service that starts with the machine; the book has the unit file too",
    ),
    (
        None,
        &["bind", "assign", "route-add"],
        "`parlor pin PLACE AGENT` gives a place to an agent, as /agent does in a chat; a binding in config.toml does it too",
    ),
    (
        None,
        &["unpin", "unbind"],
        "`parlor pin PLACE --reset` takes a pin back; a binding is taken out of config.toml",
    ),
    (
        None,
        &["whoami", "id", "me"],
        "/whoami in a chat with the bot shows your id and the place's key; `parlor people` lists everybody it knows",
    ),
    (
        None,
        &["uninstall", "purge", "reset"],
        "stop the gateway, then delete the program and the home folder; `parlor backup` keeps a copy before",
    ),
    (
        Some("config"),
        &["get", "set", "edit", "path", "list", "ls", "view", "print"],
        "`parlor config show` shows every setting; to change one, edit CONFIG, then run `parlor config check`",
    ),
    (
        Some("agent"),
        &["edit", "set", "update"],
        "edit its table in config.toml, or its files in agents/ of the home folder",
    ),
    (
        Some("agent"),
        &["bind", "pin"],
        "`parlor pin PLACE AGENT` gives a place to an agent, as /agent does in a chat; a binding in config.toml does it too",
    ),
    (
        Some("memory"),
        &["add", "new", "save"],
        "`parlor remember` adds a memory",
    ),
    (
        Some("memory"),
        &["search", "find", "get", "show"],
        "`parlor recall` finds memories",
    ),
    (
        Some("memory"),
        &["forget", "delete", "remove", "rm"],
        "`parlor forget ID` deletes a memory, and /forget in a chat finds it first",
    ),
    (
        Some("skill"),
        &["add", "new", "create", "install"],
        "a skill is a folder with a SKILL.md in skills/ of the home folder; `parlor skill check` looks whether it is right",
    ),
    (
        Some("people"),
        &["grant", "set", "edit", "promote", "demote"],
        "`parlor people role WHO ROLE` gives a person a role",
    ),
    (
        Some("pair"),
        &["accept", "allow", "add"],
        "write the code alone: `parlor pair ABCD2345`",
    ),
];

/// Stands for the path of config.toml.
pub(super) const CONFIG: &str = "CONFIG";

/// The hint for a word that is no verb.
pub(super) fn hint(before: Option<&str>, word: &str) -> Option<&'static str> {
    let fitting = |(noun, words, _): &&(Option<&str>, &[&str], &str)| {
        words.contains(&word) && noun.is_none_or(|noun| before.map(singular) == Some(noun))
    };
    // A hint about this noun is better than one about the word alone.
    let exact = HABITS.iter().filter(|habit| habit.0.is_some());
    let general = HABITS
        .iter()
        .filter(|habit| habit.0.is_none() && before.is_none());
    exact.chain(general).find(fitting).map(|habit| habit.2)
}

fn singular(noun: &str) -> &str {
    match noun {
        "agents" => "agent",
        "skills" => "skill",
        "memories" => "memory",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn habits_of_other_programs_get_a_hint() {
        let check = |before, word, expected: &str| {
            let found = hint(before, word).unwrap_or_default();
            assert!(found.contains(expected), "{before:?} {word}: {found}");
        };
        check(None, "start", "parlor run");
        check(None, "lint", "parlor doctor");
        check(None, "shell", "parlor chat");
        check(None, "cron", "parlor job");
        check(Some("config"), "set", CONFIG);
        check(None, "service", "parlor setup");
        check(None, "bind", "parlor pin PLACE AGENT");
        check(None, "unpin", "parlor pin PLACE --reset");
        check(None, "whoami", "/whoami");
        check(None, "uninstall", "parlor backup");
        check(Some("memories"), "add", "parlor remember");
        assert_eq!(hint(Some("agent"), "start"), None);
        assert_eq!(hint(None, "frobnicate"), None);
    }

    /// A hint is true only if the verbs in it are there, and its word is none.
    #[test]
    fn hints_name_verbs_that_exist() {
        for (_, words, hint) in HABITS {
            for quoted in hint.split('`').skip(1).step_by(2) {
                let Some(line) = quoted.strip_prefix("parlor ") else {
                    continue;
                };
                assert!(has_verb(line), "{hint}");
            }
            assert!(!words.is_empty());
        }
        for (before, words, _) in HABITS {
            for word in *words {
                let line =
                    before.map_or_else(|| (*word).to_owned(), |noun| format!("{noun} {word}"));
                assert!(!has_verb(&line), "`parlor {line}` is a verb");
            }
        }
    }

    fn has_verb(line: &str) -> bool {
        let mut command = super::super::Arguments::command();
        for word in line.trim_start_matches("help ").split(' ') {
            match command.find_subcommand(word) {
                Some(found) => command = found.clone(),
                None => return !command.has_subcommands() || word.starts_with(['-', 'A', 'P']),
            }
        }
        true
    }
}
