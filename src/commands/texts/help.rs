//! `/help`, and texts about a command with mistakes.

use super::super::specs::{Group, SPECS, Spec};
use crate::domain::Role;

/// What a person may do in a place. Help lists nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) role: Role,
    /// The agent of the place is open to the person.
    pub(crate) has_agent: bool,
    /// `/agent NAME`
    pub(crate) may_switch: bool,
    /// `/agent NAME once`
    pub(crate) may_fetch: bool,
    /// `/model NAME`
    pub(crate) may_choose_model: bool,
    /// `/forget`
    pub(crate) may_forget: bool,
}

impl Asker {
    fn may_use(&self, spec: &Spec) -> bool {
        self.role >= spec.least
            && (self.has_agent || !ABOUT_THE_AGENT.contains(&spec.name))
            && (self.may_forget || spec.name != "forget")
    }
}

/// Refused to people the agent is not open to.
const ABOUT_THE_AGENT: [&str; 11] = [
    "model", "models", "new", "stop", "queue", "status", "skills", "jobs", "memory", "remember",
    "forget",
];

/// What a person needs first.
pub(crate) fn in_short(asker: &Asker) -> String {
    let for_admins = match asker.role {
        Role::Owner => FIRST_OF_OWNERS,
        Role::Admin => FIRST_OF_ADMINS,
        Role::Member | Role::Guest => "",
    };
    let forget = if asker.may_forget {
        ", /forget `WORDS`"
    } else {
        ""
    };
    let memory = format!("/memory, /remember `TEXT`{forget}: what the agent knows");
    let lines = [
        (true, "/agents: everyone, and who answers here"),
        (
            asker.may_switch,
            "/agent `NAME`: switch to another agent; /agent `reset` undoes that",
        ),
        (
            !asker.may_switch && asker.may_fetch,
            "/agent `NAME` once: ask another agent one thing",
        ),
        (asker.has_agent, "/new: start a fresh conversation"),
        (asker.has_agent, "/stop: cancel the answer"),
        (asker.has_agent, "/status: what is going on here"),
        (asker.has_agent, &memory),
        (
            true,
            "/whoami: who you are here, and why this agent answers",
        ),
    ];
    let shown = lines
        .into_iter()
        .filter_map(|(may, line)| may.then_some(line));
    let first = shown.collect::<Vec<_>>().join("\n");
    format!("{JUST_WRITE}\n\n{first}{for_admins}\n\n{ALL}")
}

const FIRST_OF_ADMINS: &str = "\n/people: everybody and their roles\n/audit: who changed what";
const FIRST_OF_OWNERS: &str = "\n/bind `NAME`: give this place to an agent for good\n/pair: who waits to be let in\n/doctor: what is wrong, and what to do about it";
const ALL: &str = "/help `all` lists every command.";

/// The commands that a person may use, by group.
pub(crate) fn all(asker: &Asker) -> String {
    let groups = Group::ALL.into_iter().filter_map(|group| {
        let lines: Vec<String> = SPECS
            .iter()
            .filter(|spec| spec.group == group && asker.may_use(spec))
            .map(|spec| line(spec, asker))
            .collect();
        (!lines.is_empty()).then(|| format!("**{}**\n{}", group.title(), lines.join("\n")))
    });
    let mut groups: Vec<String> = groups.collect();
    if asker.role == Role::Owner
        && let Some(last) = groups.last_mut()
    {
        last.push_str(STEERING);
    }
    format!("{JUST_WRITE}\n\n{}", groups.join("\n\n"))
}

fn line(spec: &Spec, asker: &Asker) -> String {
    let shown = |text: &str| match asker.role {
        Role::Guest => NOT_FOR_GUESTS
            .iter()
            .fold(text.to_owned(), |text, part| text.replace(part, "")),
        _ => text.to_owned(),
    };
    let (arguments, summary) = match spec.name {
        "agent" if !asker.may_switch && asker.may_fetch => (
            "[name] once | why",
            "who answers here, or ask another one thing",
        ),
        "agent" if !asker.may_switch => ("why", "who answers here"),
        "model" if !asker.may_choose_model => ("", "the model used here"),
        _ => (spec.arguments, spec.summary),
    };
    let summary = shown(summary);
    match shown(arguments).as_str() {
        "" => format!("/{}: {summary}", spec.name),
        arguments => format!("/{} `{arguments}`: {summary}", spec.name),
    }
}

/// The parts of a command's help that are not for guests.
const NOT_FOR_GUESTS: [&str; 3] = [" | close", " | --agent | --global", " (owners: everyone's)"];

/// Words of `/agent` for owners, in all places of an agent.
const STEERING: &str = "\n/agent `pause | resume | restart NAME`: hold an agent, let it go on, or begin its answers again\n/agent `clear NAME`: a fresh conversation in all places of an agent";

const JUST_WRITE: &str =
    "Just write, and the agent of this place answers. In a group, mention the bot or reply to it.";

pub(crate) const DID_YOU_MEAN: &str = "Did you mean";

pub(crate) fn no_such_command(name: &str, near: Option<&str>) -> String {
    match near {
        Some(near) => {
            format!(
                "There is no command /{name}. {DID_YOU_MEAN} /{near}? /help shows what there is."
            )
        }
        None => format!("There is no command /{name}. /help shows what there is."),
    }
}

/// A command with wrong arguments, by a person without the role for the command.
pub(crate) fn not_your_command(name: &str, least: Role) -> String {
    match least {
        Role::Owner => format!("Only owners can use /{name}."),
        _ => format!("Only owners and admins can use /{name}."),
    }
}

pub(crate) const TOPIC: &str = "`/topic NAME` goes to another topic in a chat at the terminal. In other chats, open the topic itself.";
pub(crate) const STOP: &str = "Write `/stop` to cancel the current answer, `/stop this` to leave answers that were set aside, or `/stop all` to drop the waiting messages too.";
pub(crate) const QUEUE: &str =
    "Write `/queue` to see the waiting messages, or `/queue clear` to drop them.";
pub(crate) const USAGE: &str =
    "Write `/usage` for today, `/usage 7d` for a week or `/usage 30d` for a month.";
pub(crate) const PEOPLE: &str = "Write `/people` to see everybody, `/people show WHO` for one person, or `/people role WHO ROLE [agent]`. Roles are guest, member, admin and owner.";
pub(crate) const ALLOW: &str = "Write who gets how much: `/allow rose 2.00 today`, `/allow rose 50000 tokens today` or `/allow house 5 this month`.";
pub(crate) const PAUSE: &str = "Write `/pause background` to pause work that nobody waits for: summaries, late subagents and jobs. /resume goes on with it.";
pub(crate) const RESUME: &str = "Write `/resume background` to go on with paused work.";
pub(crate) const REMEMBER: &str =
    "Write the text to remember behind the command: `/remember Ann likes tea`.";
pub(crate) const NOT_PRIVATE: &str = "Nothing is saved. `--person` saves it for you alone; `--agent` for everybody who talks to this agent, which `--private` meant before.";

pub(crate) fn unknown_remember_flag(flag: &str) -> String {
    format!(
        "Nothing is saved: there is no `--{flag}`. The flags are `--person`, `--place`, `--agent` and `--global`."
    )
}
pub(crate) const FORGET: &str = "Write some words of the memory, such as `/forget tea`, or its number, such as `/forget 12`. /memory shows the newest.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::parse::Parsed;

    fn unhindered(role: Role) -> Asker {
        Asker {
            role,
            has_agent: true,
            may_switch: true,
            may_fetch: true,
            may_choose_model: true,
            may_forget: true,
        }
    }

    #[test]
    fn help_tells_the_most_useful_commands_without_their_whole_syntax() {
        insta::assert_snapshot!(in_short(&unhindered(Role::Guest)), @"
        Just write, and the agent of this place answers. In a group, mention the bot or reply to it.

        /agents: everyone, and who answers here
        /agent `NAME`: switch to another agent; /agent `reset` undoes that
        /new: start a fresh conversation
        /stop: cancel the answer
        /status: what is going on here
        /memory, /remember `TEXT`, /forget `WORDS`: what the agent knows
        /whoami: who you are here, and why this agent answers

        /help `all` lists every command.
        ");
        for role in Role::ALL {
            assert!(in_short(&unhindered(role)).lines().count() < 16, "{role}");
        }
        assert_eq!(
            in_short(&unhindered(Role::Member)),
            in_short(&unhindered(Role::Guest))
        );
    }

    /// Nobody is shown a command that is not theirs.
    #[test]
    fn the_first_commands_are_open_to_their_reader() {
        for role in Role::ALL {
            let told = in_short(&unhindered(role));
            let named = told.split(|c: char| !c.is_ascii_alphabetic() && c != '/');
            for name in named.filter_map(|word| word.strip_prefix('/')) {
                let spec = SPECS.iter().find(|spec| spec.name == name);
                let spec = spec.unwrap_or_else(|| panic!("/{name} is no command"));
                assert!(role >= spec.least, "/{name} for {role}");
            }
        }
    }

    /// A guest in a locked group, and one whom the agent does not answer.
    #[test]
    fn help_lists_nothing_that_is_refused_to_its_reader() {
        let hindered = Asker {
            may_switch: false,
            may_fetch: false,
            may_choose_model: false,
            may_forget: false,
            ..unhindered(Role::Guest)
        };
        insta::assert_snapshot!(format!("{}\n\n{}", in_short(&hindered), all(&hindered)), @"
        Just write, and the agent of this place answers. In a group, mention the bot or reply to it.

        /agents: everyone, and who answers here
        /new: start a fresh conversation
        /stop: cancel the answer
        /status: what is going on here
        /memory, /remember `TEXT`: what the agent knows
        /whoami: who you are here, and why this agent answers

        /help `all` lists every command.

        Just write, and the agent of this place answers. In a group, mention the bot or reply to it.

        **Who answers**
        /agent `why`: who answers here
        /agents: all agents you can talk to
        /model: the model used here
        /models: all models you can choose here

        **This conversation**
        /new: start a fresh conversation
        /stop `[all]`: cancel the current answer, or the waiting messages too
        /queue `[clear]`: the current answer and the waiting messages
        /status: what is going on here

        **What the agent knows**
        /skills: the skills of the agent here
        /memory: what the agent here remembers
        /remember `[--person | --place] text`: save a memory

        **You and the bot**
        /whoami: who you are, where you are, and why this agent answers
        /usage `[today | 7d | 30d]`: your tokens and cost
        /help `[all]`: the most useful commands, or all
        ");
        let closed = Asker {
            has_agent: false,
            ..hindered
        };
        insta::assert_snapshot!(format!("{}\n\n{}", in_short(&closed), all(&closed)), @"
        Just write, and the agent of this place answers. In a group, mention the bot or reply to it.

        /agents: everyone, and who answers here
        /whoami: who you are here, and why this agent answers

        /help `all` lists every command.

        Just write, and the agent of this place answers. In a group, mention the bot or reply to it.

        **Who answers**
        /agent `why`: who answers here
        /agents: all agents you can talk to

        **You and the bot**
        /whoami: who you are, where you are, and why this agent answers
        /usage `[today | 7d | 30d]`: your tokens and cost
        /help `[all]`: the most useful commands, or all
        ");
    }

    /// Commands that are refused where the agent is closed to the person.
    #[test]
    fn commands_about_the_agent_are_known() {
        for spec in SPECS {
            let words = match spec.name {
                "remember" | "forget" => format!("/{} tea", spec.name),
                name => format!("/{name}"),
            };
            let about = match crate::commands::parse::parse(&words) {
                Parsed::Command(command) => command.is_about_the_agent(),
                _ => false,
            };
            assert_eq!(
                ABOUT_THE_AGENT.contains(&spec.name),
                about,
                "/{}",
                spec.name
            );
        }
    }

    #[test]
    fn all_commands_are_in_groups() {
        insta::assert_snapshot!(all(&unhindered(Role::Guest)), @"
        Just write, and the agent of this place answers. In a group, mention the bot or reply to it.

        **Who answers**
        /agent `[name] [once | for 2h] | why | reset`: who answers here, or switch
        /agents: all agents you can talk to
        /model `[provider/model] | reset`: the model used here, or switch
        /models: all models you can choose here

        **This conversation**
        /new: start a fresh conversation
        /stop `[all]`: cancel the current answer, or the waiting messages too
        /queue `[clear]`: the current answer and the waiting messages
        /status: what is going on here

        **What the agent knows**
        /skills: the skills of the agent here
        /memory: what the agent here remembers
        /remember `[--person | --place] text`: save a memory
        /forget `words | id`: find a memory and delete it

        **You and the bot**
        /whoami: who you are, where you are, and why this agent answers
        /usage `[today | 7d | 30d]`: your tokens and cost
        /help `[all]`: the most useful commands, or all
        ");
        insta::assert_snapshot!(all(&unhindered(Role::Owner)), @"
        Just write, and the agent of this place answers. In a group, mention the bot or reply to it.

        **Who answers**
        /agent `[name] [once | for 2h] | why | reset | close`: who answers here, or switch
        /agents: all agents you can talk to
        /model `[provider/model] | reset`: the model used here, or switch
        /models: all models you can choose here

        **This conversation**
        /new: start a fresh conversation
        /stop `[all]`: cancel the current answer, or the waiting messages too
        /queue `[clear]`: the current answer and the waiting messages
        /status: what is going on here
        /jobs `[pause | resume | remove] [number]`: what the agent here does by itself, and when
        /approvals: calls of tools that wait for a yes or no (admins in private: in all chats)
        /approve `number`: allow a call of a tool, once
        /refuse `number`: refuse a call of a tool

        **What the agent knows**
        /skills: the skills of the agent here
        /memory: what the agent here remembers
        /remember `[--person | --place | --agent | --global] text`: save a memory
        /forget `words | id`: find a memory and delete it

        **You and the bot**
        /whoami: who you are, where you are, and why this agent answers
        /usage `[today | 7d | 30d]`: your tokens and cost (owners: everyone's)
        /help `[all]`: the most useful commands, or all

        **For owners and admins**
        /retry: resend failed messages (in private: from all chats)
        /deliver `[off | on]`: keep answers back here, or send them again
        /reload: read config.toml again
        /doctor: what is wrong here, and what to do about it
        /trace: how an answer came about: reply to it, or leave that out for the last one here
        /dashboard: open the dashboard (in private)
        /bind `name`: give this place to an agent in config.toml
        /unbind: take the binding of this place out of config.toml
        /audit `[number]`: who changed what (in private: in all chats)
        /pair `[CODE] [yes | no]`: who waits and who was let in, or let in the person with this code
        /unpair `ID`: take back that a person was let in
        /people `[show WHO | role WHO ROLE [agent]]`: everybody and their roles (owners: change a role)
        /allow `WHO AMOUNT [tokens] [today | this month]`: raise a limit for today or this month
        /pause `background`: pause work that nobody waits for
        /resume `background`: go on with paused work
        /agent `pause | resume | restart NAME`: hold an agent, let it go on, or begin its answers again
        /agent `clear NAME`: a fresh conversation in all places of an agent
        ");
    }

    #[test]
    fn mistaken_commands_are_told_the_right_form() {
        let texts = [
            no_such_command("agnet", Some("agent")),
            no_such_command("frobnicate", None),
            not_your_command("bind", Role::Owner),
            not_your_command("audit", Role::Admin),
            TOPIC.to_owned(),
            STOP.to_owned(),
            QUEUE.to_owned(),
            USAGE.to_owned(),
            REMEMBER.to_owned(),
            NOT_PRIVATE.to_owned(),
            FORGET.to_owned(),
        ];
        insta::assert_snapshot!(texts.join("\n"), @"
        There is no command /agnet. Did you mean /agent? /help shows what there is.
        There is no command /frobnicate. /help shows what there is.
        Only owners can use /bind.
        Only owners and admins can use /audit.
        `/topic NAME` goes to another topic in a chat at the terminal. In other chats, open the topic itself.
        Write `/stop` to cancel the current answer, `/stop this` to leave answers that were set aside, or `/stop all` to drop the waiting messages too.
        Write `/queue` to see the waiting messages, or `/queue clear` to drop them.
        Write `/usage` for today, `/usage 7d` for a week or `/usage 30d` for a month.
        Write the text to remember behind the command: `/remember Ann likes tea`.
        Nothing is saved. `--person` saves it for you alone; `--agent` for everybody who talks to this agent, which `--private` meant before.
        Write some words of the memory, such as `/forget tea`, or its number, such as `/forget 12`. /memory shows the newest.
        ");
    }
}
