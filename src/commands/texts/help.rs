//! `/help`, and what is said about a command that was written wrongly.

use super::super::specs::{Group, SPECS, Spec};
use crate::domain::Role;

/// The commands that a person may use, by group.
pub(crate) fn help(role: Role) -> String {
    let groups = Group::ALL.into_iter().filter_map(|group| {
        let lines: Vec<String> = SPECS
            .iter()
            .filter(|spec| spec.group == group && role >= spec.least)
            .map(line)
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

fn line(spec: &Spec) -> String {
    match spec.arguments {
        "" => format!("/{}: {}", spec.name, spec.summary),
        arguments => format!("/{} `{arguments}`: {}", spec.name, spec.summary),
    }
}

/// Words of `/agent` for owners, in all places of an agent.
const STEERING: &str = "\n/agent `pause | resume | restart NAME`: hold an agent, let it go on, or begin its answers again\n/agent `clear NAME`: a fresh conversation in all places of an agent";

const JUST_WRITE: &str =
    "Just write, and the agent of this place answers. In a group, mention the bot or reply to it.";

pub(crate) fn no_such_command(name: &str, near: Option<&str>) -> String {
    match near {
        Some(near) => {
            format!("There is no command /{name}. Did you mean /{near}? /help lists all of them.")
        }
        None => format!("There is no command /{name}. /help lists all of them."),
    }
}

/// A command with wrong arguments, by a person who may not use it anyway.
pub(crate) fn not_your_command(name: &str, least: Role) -> String {
    match least {
        Role::Owner => format!("Only owners can use /{name}."),
        _ => format!("Only owners and admins can use /{name}."),
    }
}

pub(crate) const TOPIC: &str =
    "`/topic NAME` goes to another topic in `parlor chat`. In other chats, open the topic itself.";
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
pub(crate) const FORGET: &str = "Write some words of the memory, such as `/forget tea`, or its number, such as `/forget 12`. /memory shows the newest.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_grouped_and_short() {
        insta::assert_snapshot!(help(Role::Guest), @"
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

        **What the agent knows**
        /skills: the skills of the agent here
        /memory: what the agent here remembers
        /remember `[--person | --place | --private | --global] text`: save a memory
        /forget `words | id`: find a memory and delete it

        **You and the bot**
        /whoami: who you are, where you are, and why this agent answers
        /usage `[today | 7d | 30d]`: your tokens and cost (owners: everyone's)
        /help: this list
        ");
        insta::assert_snapshot!(help(Role::Owner), @"
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

        **What the agent knows**
        /skills: the skills of the agent here
        /memory: what the agent here remembers
        /remember `[--person | --place | --private | --global] text`: save a memory
        /forget `words | id`: find a memory and delete it

        **You and the bot**
        /whoami: who you are, where you are, and why this agent answers
        /usage `[today | 7d | 30d]`: your tokens and cost (owners: everyone's)
        /help: this list

        **For owners and admins**
        /retry: resend failed messages (in private: from all chats)
        /deliver `[off | on]`: keep answers back here, or send them again
        /reload: read config.toml again
        /doctor: what is wrong here, and what to do about it
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
            FORGET.to_owned(),
        ];
        insta::assert_snapshot!(texts.join("\n"), @"
        There is no command /agnet. Did you mean /agent? /help lists all of them.
        There is no command /frobnicate. /help lists all of them.
        Only owners can use /bind.
        Only owners and admins can use /audit.
        `/topic NAME` goes to another topic in `parlor chat`. In other chats, open the topic itself.
        Write `/stop` to cancel the current answer, `/stop this` to leave answers that were set aside, or `/stop all` to drop the waiting messages too.
        Write `/queue` to see the waiting messages, or `/queue clear` to drop them.
        Write `/usage` for today, `/usage 7d` for a week or `/usage 30d` for a month.
        Write the text to remember behind the command: `/remember Ann likes tea`.
        Write some words of the memory, such as `/forget tea`, or its number, such as `/forget 12`. /memory shows the newest.
        ");
    }
}
