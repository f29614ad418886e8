//! `/help`, and texts about a command with mistakes.

use super::super::specs::{Group, SPECS, Spec};
use crate::domain::Role;

/// What a person needs first.
pub(crate) fn in_short(role: Role) -> String {
    let for_admins = match role {
        Role::Owner => FIRST_OF_OWNERS,
        Role::Admin => FIRST_OF_ADMINS,
        Role::Member | Role::Guest => "",
    };
    format!("{JUST_WRITE}\n\n{FIRST}{for_admins}\n\n{ALL}")
}

const FIRST: &str = "\
/agents: everyone, and who answers here
/agent `NAME`: switch to another agent; /agent `reset` undoes that
/new: start a fresh conversation
/stop: cancel the answer
/status: what is going on here
/memory, /remember `TEXT`, /forget `WORDS`: what the agent knows
/whoami: who you are here, and why this agent answers";
const FIRST_OF_ADMINS: &str = "\n/people: everybody and their roles\n/audit: who changed what";
const FIRST_OF_OWNERS: &str = "\n/bind `NAME`: give this place to an agent for good\n/pair: who waits to be let in\n/doctor: what is wrong, and what to do about it";
const ALL: &str = "/help `all` lists every command.";

/// The commands that a person may use, by group.
pub(crate) fn all(role: Role) -> String {
    let groups = Group::ALL.into_iter().filter_map(|group| {
        let lines: Vec<String> = SPECS
            .iter()
            .filter(|spec| spec.group == group && role >= spec.least)
            .map(|spec| line(spec, role))
            .collect();
        (!lines.is_empty()).then(|| format!("**{}**\n{}", group.title(), lines.join("\n")))
    });
    let mut groups: Vec<String> = groups.collect();
    if role == Role::Owner
        && let Some(last) = groups.last_mut()
    {
        last.push_str(STEERING);
    }
    format!("{JUST_WRITE}\n\n{}", groups.join("\n\n"))
}

fn line(spec: &Spec, role: Role) -> String {
    let shown = |text: &str| match role {
        Role::Guest => NOT_FOR_GUESTS
            .iter()
            .fold(text.to_owned(), |text, part| text.replace(part, "")),
        _ => text.to_owned(),
    };
    let summary = shown(spec.summary);
    match shown(spec.arguments).as_str() {
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
pub(crate) const PAUSE: &str =
    "Write `/pause background` to pause work that nobody waits for. /resume goes on with it.";
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

    #[test]
    fn help_tells_the_most_useful_commands_without_their_whole_syntax() {
        insta::assert_snapshot!(in_short(Role::Guest), @"
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
            assert!(in_short(role).lines().count() < 16, "{role}");
        }
        assert_eq!(in_short(Role::Member), in_short(Role::Guest));
    }

    /// Nobody is shown a command that is not theirs.
    #[test]
    fn the_first_commands_are_open_to_their_reader() {
        for role in Role::ALL {
            let told = in_short(role);
            let named = told.split(|c: char| !c.is_ascii_alphabetic() && c != '/');
            for name in named.filter_map(|word| word.strip_prefix('/')) {
                let spec = SPECS.iter().find(|spec| spec.name == name);
                let spec = spec.unwrap_or_else(|| panic!("/{name} is no command"));
                assert!(role >= spec.least, "/{name} for {role}");
            }
        }
    }

    #[test]
    fn all_commands_are_in_groups() {
        insta::assert_snapshot!(all(Role::Guest), @"
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
        insta::assert_snapshot!(all(Role::Owner), @"
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
