//! Puts an agent's system prompt together. The same agent and files always give the same bytes.

use std::borrow::Cow;

use crate::agents::skills::Skill;
use crate::agents::{Agent, Identity, IdentityFile, head};
use crate::domain::{Marks, SessionKey};

/// The bytes of a whole prompt; the rest is cut from the end.
pub(crate) const MAX_PROMPT_BYTES: usize = 64 * 1024;

/// Kept free for headings and cut marks of all sections once a prompt is too long.
const MARKS_BYTES: usize = 1024;

/// Rules for every agent, whatever its files say.
const HOUSE_RULES: &str = "\
Write chat messages, in simple Markdown where it helps.
Answer in the language of the person you answer. Keep it short unless asked for more.
Never claim to be another agent, and never speak for one.";

/// The people who read an agent's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// A single person, in private.
    Private,
    /// A single person, where others read along.
    OneOfMany,
    /// Everybody in the place, and several of them write.
    Many,
    /// Another agent.
    Agent,
}

impl Audience {
    pub(crate) fn of(place: &SessionKey) -> Self {
        match place {
            SessionKey::Child { .. } => Audience::Agent,
            place if place.is_shared() => Audience::Many,
            place if place.is_private() => Audience::Private,
            _ => Audience::OneOfMany,
        }
    }

    fn told(self) -> &'static str {
        match self {
            Audience::Private => "You speak in a private chat, through a gateway called Parlor.",
            Audience::OneOfMany => {
                "You speak with one person in a chat where others read along, through a gateway called Parlor."
            }
            Audience::Many => {
                "You speak in a chat where several people write, through a gateway called Parlor."
            }
            Audience::Agent => "You speak with another agent, through a gateway called Parlor.",
        }
    }
}

/// The agent's name, the house rules, then each file under a heading with its name, and the
/// config's own words behind SOUL.md.
///
/// Files are shown with their own headings, because they are the operator's. The memory is the
/// agent's own to write and stands last, where it can add to the operator's words but not come
/// between them.
pub(crate) fn assemble(agent: &Agent, identity: &Identity, audience: Audience) -> String {
    outlined(agent, identity, audience).0
}

/// The same with the names of its sections, each with its first byte.
pub(crate) fn outlined(
    agent: &Agent,
    identity: &Identity,
    audience: Audience,
) -> (String, Vec<(String, usize)>) {
    let marks = agent.marks();
    let mut prompt = format!(
        "{}\n{} {HOUSE_RULES}\n{}",
        introduction(agent),
        audience.told(),
        marks.rules()
    );
    let mut starts = vec![(RULES.to_owned(), 0)];
    let sections = sections(identity, &marks);
    let skills = skill_list(&identity.skills().readable);
    let skills = marks.escape(&skills);
    let before_skills = sections
        .iter()
        .filter(|section| section.stands_before_skills())
        .count();
    // The list is never cut: agents can read exactly the listed skills.
    let mut room = room_for(&sections, prompt.len() + skills.len());
    for (index, section) in sections.iter().enumerate() {
        if index == before_skills {
            push_skills(&mut prompt, &skills, &mut starts);
        }
        starts.push((section.name.to_owned(), prompt.len()));
        section.write(&mut prompt, room);
        // After a cut section no room is left, so a later, smaller section does not push in.
        room = room.saturating_sub(section.len());
    }
    if before_skills == sections.len() {
        push_skills(&mut prompt, &skills, &mut starts);
    }
    (prompt, starts)
}

fn push_skills(prompt: &mut String, skills: &str, starts: &mut Vec<(String, usize)>) {
    if !skills.is_empty() {
        starts.push(("Skills".to_owned(), prompt.len()));
        prompt.push_str(skills);
    }
}

/// The name of the first section.
const RULES: &str = "Name and house rules";

/// Bytes for the list of skills. With too few, descriptions are cut and names are not.
const MAX_SKILL_LIST_BYTES: usize = 24 * 1024;

const SKILLS: &str = "\n\n# Skills\n\nInstructions for particular jobs. When one fits what you are asked, read it first with the `skill` tool, then follow it.";

/// Every skill of the agent on a line. Empty for an agent without any.
fn skill_list(skills: &[Skill]) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let line = |skill: &Skill| format!("\n- {}: {}", skill.name, skill.description);
    let lines: Vec<String> = skills.iter().map(line).collect();
    let fits = lines.iter().map(String::len).sum::<usize>() <= MAX_SKILL_LIST_BYTES;
    let most = if fits {
        usize::MAX
    } else {
        MAX_SKILL_LIST_BYTES / lines.len()
    };
    let shortened = lines.iter().map(|line| {
        if line.len() <= most {
            line.clone()
        } else {
            format!("{}…", head(line, most))
        }
    });
    SKILLS.to_owned() + &shortened.collect::<String>()
}

/// Bytes for the sections: all they need if there is room, else a little less than the room,
/// because cut marks need some.
fn room_for(sections: &[Section], taken: usize) -> usize {
    let needed = sections.iter().map(Section::len).sum::<usize>();
    if taken + needed <= MAX_PROMPT_BYTES {
        needed
    } else {
        (MAX_PROMPT_BYTES - MARKS_BYTES).saturating_sub(taken)
    }
}

fn introduction(agent: &Agent) -> String {
    let emoji = agent.emoji.as_ref();
    let emoji = emoji.map_or_else(String::new, |emoji| format!(" {emoji}"));
    let mut text = format!("You are {}{emoji} (agent id: {}).", agent.name, agent.id);
    if let Some(creature) = &agent.creature {
        text.push_str(&format!(" You are this kind of creature: {creature}."));
    }
    if let Some(vibe) = &agent.vibe {
        text.push_str(&format!(" Your vibe: {vibe}."));
    }
    text
}

/// The files, with the config's words behind the second of them. Empty sections are left out.
/// Nothing in them looks like a mark: some are written by agents.
fn sections<'a>(identity: &'a Identity, marks: &Marks) -> Vec<Section<'a>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for loaded in identity.files() {
        sections.push(Section {
            file: loaded.file,
            name: loaded.name(),
            content: marks.escape(loaded.content.trim_end()),
        });
        if let Some(content) = identity
            .system_prompt()
            .filter(|_| loaded.file == IdentityFile::Soul)
        {
            sections.push(Section {
                file: loaded.file,
                name: SYSTEM_PROMPT,
                content: marks.escape(content.trim_end()),
            });
        }
    }
    sections.retain(|section| !section.content.is_empty());
    sections
}

/// The heading of the config's part.
const SYSTEM_PROMPT: &str = "system_prompt";

/// A section of the prompt.
struct Section<'a> {
    /// Decides the order.
    file: IdentityFile,
    name: &'a str,
    content: Cow<'a, str>,
}

impl Section<'_> {
    /// Skills change less often than BOOTSTRAP.md and the memory, so they stand before both.
    fn stands_before_skills(&self) -> bool {
        !matches!(self.file, IdentityFile::Bootstrap | IdentityFile::Memory)
    }

    fn heading(&self) -> String {
        format!("\n\n# {}\n\n", self.name)
    }

    fn len(&self) -> usize {
        self.heading().len() + self.content.len()
    }

    fn write(&self, prompt: &mut String, room: usize) {
        prompt.push_str(&self.heading());
        if self.len() <= room {
            prompt.push_str(&self.content);
        } else {
            prompt.push_str(&self.cut(room));
        }
    }

    fn cut(&self, room: usize) -> String {
        let mark = format!(
            "[cut: the prompt may have {} KiB, and the rest of {} did not fit]",
            MAX_PROMPT_BYTES / 1024,
            self.name
        );
        match head(&self.content, room) {
            "" => mark,
            kept => format!("{kept}\n{mark}"),
        }
    }
}

#[cfg(test)]
mod tests;
