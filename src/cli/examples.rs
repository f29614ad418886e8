//! The examples at the end of each verb's help. Each is read by the tests as if a person had typed
//! it.

use clap::Command;

/// A verb with lines that a person could type.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "parlor setup                     connect a model and a bot, step by step",
            "parlor chat                      talk to the agents in this terminal",
            "parlor run                       connect to Telegram and Discord",
            "parlor help agent                the verbs for agents",
        ],
    ),
    (
        "run",
        &[
            "parlor run",
            "parlor run -v",
            "parlor run --home /srv/parlor",
        ],
    ),
    (
        "chat",
        &[
            "parlor chat",
            "parlor chat --topic writing",
            "parlor chat --agent rose",
            "echo 'What is on today?' | parlor chat",
        ],
    ),
    (
        "ask",
        &[
            "parlor ask 'What is on today?'",
            "parlor ask --agent rose --json 'A title for my talk?'",
            "cat notes.txt | parlor ask 'Sum this up'",
        ],
    ),
    ("init", &["parlor init", "parlor init --home /srv/parlor"]),
    (
        "setup",
        &[
            "parlor setup",
            "parlor setup --add agents",
            "parlor setup --add import",
            "parlor setup --yes --model demo --owner telegram:12345678",
            "parlor setup --plan --bind telegram:topic:-1001234567890:101=rose",
        ],
    ),
    (
        "config check",
        &["parlor config check", "parlor config check new.toml --json"],
    ),
    (
        "config show",
        &[
            "parlor config show",
            "parlor config show agents.rose",
            "parlor config show access.require_mention --json",
        ],
    ),
    (
        "config schema",
        &["parlor config schema", "parlor config schema --write"],
    ),
    (
        "route explain",
        &[
            "parlor route explain Writing",
            "parlor route explain telegram:topic:-1001234567890:101",
            "parlor route explain telegram:group:-1001234567890 --user telegram:11",
            "parlor route explain telegram:topic:-1001234567890:101 --as guest",
            "parlor route explain discord:channel:2001 --server 1001 --role 42",
        ],
    ),
    (
        "agent",
        &[
            "parlor agents",
            "parlor agent info rose",
            "parlor agent add dot --name Dot",
        ],
    ),
    (
        "import",
        &[
            "parlor import openclaw",
            "parlor import openclaw ~/old/.openclaw --yes --with-secrets",
            "parlor import openclaw backup.tar.gz",
            "parlor import hermes --as default=hermes --json",
        ],
    ),
    ("agent list", &["parlor agent list", "parlor agents --json"]),
    (
        "agent info",
        &["parlor agent info rose", "parlor agent show Rose --json"],
    ),
    ("agent prompt", &["parlor agent prompt rose"]),
    (
        "agent agents-md",
        &[
            "parlor agent agents-md rose",
            "parlor agent agents-md rose project/AGENTS.md",
        ],
    ),
    (
        "export openclaw",
        &[
            "parlor export openclaw",
            "parlor export openclaw openclaw.json --json",
            "parlor export openclaw -",
        ],
    ),
    (
        "agent add",
        &[
            "parlor agent add",
            "parlor agent add Dot --emoji 🦔 --personality 'Short and dry.'",
            "parlor agent add scribe --model openai/gpt-5.4 --skills minutes",
            "parlor agent add desk --bind telegram:topic:-1001234567890:101",
        ],
    ),
    (
        "status",
        &[
            "parlor status",
            "parlor status --watch",
            "parlor status --json",
        ],
    ),
    (
        "pin",
        &[
            "parlor pin Writing rose",
            "parlor pin telegram:topic:-1001234567890:101 rose",
            "parlor pin telegram:topic:-1001234567890:101 --reset",
        ],
    ),
    (
        "new",
        &[
            "parlor new Writing",
            "parlor new telegram:topic:-1001234567890:101",
        ],
    ),
    (
        "stop",
        &[
            "parlor stop",
            "parlor stop telegram:topic:-1001234567890:101",
        ],
    ),
    (
        "queue",
        &[
            "parlor queue",
            "parlor queue telegram:dm:11 --json",
            "parlor queue telegram:dm:11 --clear",
            "parlor queue --clear --all",
        ],
    ),
    ("forget", &["parlor forget 12", "parlor forget 12 -a rose"]),
    ("reload", &["parlor reload", "parlor reload --json"]),
    (
        "dashboard",
        &["parlor dashboard", "parlor dashboard --no-open"],
    ),
    ("token", &["parlor token", "parlor token create backup"]),
    (
        "token list",
        &["parlor token list", "parlor token list --json"],
    ),
    (
        "token create",
        &[
            "parlor token create grafana",
            "parlor token create deploy --scope admin --expires 90d",
        ],
    ),
    (
        "token revoke",
        &["parlor token revoke grafana", "parlor token revoke 3"],
    ),
    ("agent adopt", &["parlor agent adopt dot"]),
    ("agent clone", &["parlor agent clone rose night-rose"]),
    ("agent rename", &["parlor agent rename rose lily"]),
    ("agent default", &["parlor agent default rose"]),
    ("agent remove", &["parlor agent remove dot"]),
    ("agent pause", &["parlor agent pause rose"]),
    ("agent resume", &["parlor agent resume rose"]),
    ("agent restart", &["parlor agent restart rose"]),
    ("agent reset", &["parlor agent reset rose"]),
    (
        "agent restore",
        &[
            "parlor agent restore dot",
            "parlor agent restore dot --as dot2",
        ],
    ),
    ("agent purge", &["parlor agent purge dot"]),
    ("agent archive list", &["parlor agent archive list"]),
    ("agent export", &["parlor agent export rose -o rose.tar.gz"]),
    (
        "agent import",
        &[
            "parlor agent import rose.tar.gz --dry-run",
            "parlor agent import rose.tar.gz --as rose2",
        ],
    ),
    (
        "skill list",
        &["parlor skills", "parlor skill list -a rose"],
    ),
    (
        "skill check",
        &["parlor skill check", "parlor skill check skills/minutes"],
    ),
    (
        "remember",
        &[
            "parlor remember The standup is at nine",
            "parlor remember -a rose Titles have at most six words",
            "parlor remember --global The office is in Graz",
        ],
    ),
    (
        "recall",
        &[
            "parlor recall standup",
            "parlor recall -a rose titles --explain",
            "parlor recall -a rose --person telegram:12345678 birthday",
        ],
    ),
    (
        "memory list",
        &["parlor memory list -a rose", "parlor memory list --json"],
    ),
    (
        "memory export",
        &[
            "parlor memory export > memories.jsonl",
            "parlor memory export -a rose --format markdown",
        ],
    ),
    ("memory import", &["parlor memory import memories.jsonl"]),
    ("memory versions", &["parlor memory versions -a rose"]),
    (
        "memory restore",
        &["parlor memory restore -a rose 20261117T083000Z"],
    ),
    (
        "people list",
        &["parlor people list", "parlor people list --json"],
    ),
    (
        "people show",
        &[
            "parlor people show alice",
            "parlor people show telegram:12345678",
        ],
    ),
    (
        "people add",
        &[
            "parlor people add alice --id telegram:23456789 --id discord:76543210",
            "parlor people add bob --id telegram:34567890 --agent coding=member",
        ],
    ),
    (
        "people role",
        &[
            "parlor people role alice admin",
            "parlor people role telegram:12345678 member --agent rose",
        ],
    ),
    (
        "people link",
        &["parlor people link alice discord:76543210"],
    ),
    ("people remove", &["parlor people remove bob"]),
    (
        "allow",
        &[
            "parlor allow rose 2.00 today",
            "parlor allow rose 50000 tokens today",
            "parlor allow house 5 this month",
        ],
    ),
    ("pause", &["parlor pause background"]),
    ("resume", &["parlor resume background"]),
    ("pair approve", &["parlor pair approve ABCD2345"]),
    ("pair", &["parlor pair ABCD2345", "parlor pair list"]),
    ("pair revoke", &["parlor pair revoke telegram:12345678"]),
    (
        "sessions",
        &[
            "parlor sessions",
            "parlor sessions show Roses",
            "parlor sessions search budget",
        ],
    ),
    (
        "sessions list",
        &[
            "parlor sessions list --agent rose --since 7d",
            "parlor sessions list --person telegram:11 --json",
        ],
    ),
    (
        "sessions show",
        &[
            "parlor sessions show telegram:topic:-1001234567890:101",
            "parlor sessions show Roses --all --raw",
        ],
    ),
    (
        "sessions export",
        &[
            "parlor sessions export Roses --out roses.md",
            "parlor sessions export Roses --format jsonl --all",
        ],
    ),
    (
        "sessions search",
        &[
            "parlor sessions search quarterly budget",
            "parlor sessions search --agent rose budget",
        ],
    ),
    (
        "sessions fork",
        &[
            "parlor sessions fork Roses",
            "parlor sessions fork telegram:dm:11 --to local:home:draft",
        ],
    ),
    ("sessions new", &["parlor sessions new Roses"]),
    (
        "sessions move",
        &["parlor sessions move Roses telegram:topic:-1001234567890:102"],
    ),
    ("security check", &["parlor security check"]),
    (
        "failed retry",
        &[
            "parlor failed retry",
            "parlor failed retry telegram:topic:-1001234567890:101",
        ],
    ),
    (
        "failed drop",
        &["parlor failed drop 17", "parlor failed drop all"],
    ),
    (
        "approvals list",
        &[
            "parlor approvals",
            "parlor approvals --json",
            "parlor approvals list --all",
        ],
    ),
    ("approvals allow", &["parlor approvals allow 7"]),
    ("approvals refuse", &["parlor approvals refuse 7"]),
    (
        "audit",
        &[
            "parlor audit",
            "parlor audit --agent rose --since 14d",
            "parlor audit --place telegram:topic:-1001234567890:101 --json",
        ],
    ),
    (
        "job",
        &[
            "parlor job",
            "parlor job add plan 'Plan the day.' --cron '0 9 * * 1-5' --agent rose",
            "parlor job show rose/plan --json",
        ],
    ),
    (
        "job list",
        &["parlor job list", "parlor job list --agent rose --json"],
    ),
    ("job show", &["parlor job show rose/plan"]),
    ("job run", &["parlor job run rose/plan"]),
    ("job pause", &["parlor job pause rose/plan"]),
    ("job resume", &["parlor job resume rose/plan"]),
    (
        "job add",
        &[
            "parlor job add plan 'Plan the day.' --cron '0 9 * * 1-5'",
            "parlor job add mail 'Look at the mail.' --every 2h --agent rose",
            "parlor job add tree 'The tree!' --at '2026-12-24 18:00' --place telegram:dm:11",
        ],
    ),
    ("job remove", &["parlor job remove rose/plan"]),
    (
        "usage",
        &[
            "parlor usage",
            "parlor usage 30d --by person",
            "parlor usage --since 2026-11-01 --csv > usage.csv",
        ],
    ),
    (
        "logs",
        &[
            "parlor logs --agent rose --since 2h",
            "parlor logs --ref 12",
            "parlor logs --place telegram:topic:-1001234567890:101 --follow",
        ],
    ),
    (
        "doctor",
        &[
            "parlor doctor",
            "parlor doctor --fix",
            "parlor doctor --json",
            "parlor doctor --bundle report.tar.gz",
        ],
    ),
    (
        "backup",
        &[
            "parlor backup",
            "parlor backup --to /mnt/backups --keep 14",
            "parlor backup before-the-move.tar.gz",
        ],
    ),
    (
        "restore",
        &[
            "parlor restore parlor-2026-11-17T03-00-00Z.tar.gz --dry-run",
            "parlor restore before-the-move.tar.gz --home /srv/parlor",
        ],
    ),
    ("version", &["parlor version", "parlor version --json"]),
    (
        "completions",
        &[
            "parlor completions bash > ~/.local/share/bash-completion/completions/parlor",
            "parlor completions zsh > ~/.zfunc/_parlor",
            "parlor completions fish > ~/.config/fish/completions/parlor.fish",
        ],
    ),
    (
        "man",
        &[
            "parlor man | man -l -",
            "parlor man --out ~/.local/share/man/man1",
        ],
    ),
];

/// The command with examples at the end of each help.
pub(super) fn with_examples(command: Command) -> Command {
    below(command, "")
}

/// A line that a person could type for this verb, without its explanation.
pub(super) fn first(path: &str) -> Option<&'static str> {
    let (_, lines) = EXAMPLES.iter().find(|(verb, _)| *verb == path)?;
    let line = lines.first()?;
    Some(line.split("  ").next().unwrap_or(line))
}

/// The first line for this verb that has a word in it.
pub(super) fn with(path: &str, word: &str) -> Option<&'static str> {
    let (_, lines) = EXAMPLES.iter().find(|(verb, _)| *verb == path)?;
    let mut lines = lines.iter();
    lines
        .find(|line| line.split(' ').any(|part| part == word))
        .copied()
}

fn below(command: Command, path: &str) -> Command {
    let command = match examples(path) {
        Some(text) => command.after_help(text),
        None => command,
    };
    let path = path.to_owned();
    command.mut_subcommands(move |verb| {
        let path = format!("{path} {}", verb.get_name());
        below(verb, path.trim_start())
    })
}

fn examples(path: &str) -> Option<String> {
    let (_, lines) = EXAMPLES.iter().find(|(verb, _)| *verb == path)?;
    Some(format!("Examples:\n  {}", lines.join("\n  ")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Arguments;
    use super::*;

    /// The words of a line, without what the shell takes away.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" | parlor").last().unwrap_or(line);
        let line = match line.strip_prefix("parlor") {
            Some(rest) => rest,
            None => line,
        };
        let line = line
            .split([' '])
            .fold(String::new(), |line, word| line + " " + word);
        let line = line.split(" > ").next().unwrap_or_default();
        let line = line.split(" | ").next().unwrap_or_default();
        // Two spaces stand before a remark.
        let line = line.trim_start().split("   ").next().unwrap_or_default();
        let mut words = vec!["parlor".to_owned()];
        for (index, part) in line.split('\'').enumerate() {
            match index % 2 {
                1 => words.push(part.to_owned()),
                _ => words.extend(part.split_whitespace().map(str::to_owned)),
            }
        }
        words
    }

    #[test]
    fn every_example_can_be_typed() {
        for (verb, lines) in EXAMPLES {
            for line in *lines {
                let words = words(line);
                if words[1..].first().is_some_and(|word| word == "help") {
                    continue;
                }
                let read = Arguments::try_parse_from(&words);
                assert!(
                    read.is_ok(),
                    "{line}: {}",
                    read.err()
                        .map(|error| error.to_string())
                        .unwrap_or_default()
                );
                assert!(line.chars().count() <= 78, "{line} is long");
                let noun = verb.split(' ').next().unwrap_or_default();
                assert!(line.contains(noun), "{line} is no example of {verb}");
            }
        }
    }

    #[test]
    fn every_verb_without_parts_has_an_example() {
        fn missing(command: &Command, path: &str, found: &mut Vec<String>) {
            for verb in command.get_subcommands() {
                let path = format!("{path} {}", verb.get_name()).trim().to_owned();
                if verb.has_subcommands() {
                    missing(verb, &path, found);
                } else if examples(&path).is_none() {
                    found.push(path);
                }
            }
        }
        let mut found = Vec::new();
        let command = <Arguments as clap::CommandFactory>::command();
        missing(&command, "", &mut found);
        // Lists that need no words.
        found.retain(|path| !path.ends_with(" list"));
        assert!(found.is_empty(), "no example: {found:?}");
    }
}
