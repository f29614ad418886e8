//! Puts an agent's system prompt together. The same agent and files always give the same bytes.

use crate::agents::{Agent, Identity, LoadedFile, head};

/// The whole prompt stays within this; what does not fit is cut from its end.
pub const MAX_PROMPT_BYTES: usize = 64 * 1024;

/// Kept free for headings and cut marks of all sections once a prompt is too long.
const MARKS_BYTES: usize = 1024;

/// What holds for every agent, whatever its files say.
const HOUSE_RULES: &str = "\
You speak in a chat, through a gateway called Parlor. Write chat messages, in simple Markdown where it helps.
Answer in the language of the person you answer. Keep it short unless asked for more.
Where several people write, a message begins with its writer in brackets: [Alice] is a person, [@main] another agent. Your own messages never begin that way.
Never claim to be another agent, and never speak for one.";

/// Who the agent is, the house rules, then each file under a heading with its name.
///
/// Files are shown as they are, with their own headings: they are the operator's. The one file that is an agent's to
/// write, its memory, stands last, where it can add to what was said before but not come between.
pub fn assemble(agent: &Agent, identity: &Identity) -> String {
    let mut prompt = format!("{}\n{HOUSE_RULES}", introduction(agent));
    let sections: Vec<Section> = identity.files().iter().filter_map(Section::of).collect();
    let mut room = room_for(&sections, prompt.len());
    for section in &sections {
        section.write(&mut prompt, room);
        // Once a section was too long nothing is left, so that a later, smaller one does not push itself in.
        room = room.saturating_sub(section.len());
    }
    prompt
}

/// Bytes that sections may take: all they need if that fits, else a little less than there is, because cut marks need some.
fn room_for(sections: &[Section], taken: usize) -> usize {
    let needed = sections.iter().map(Section::len).sum::<usize>();
    if taken + needed <= MAX_PROMPT_BYTES { needed } else { (MAX_PROMPT_BYTES - MARKS_BYTES).saturating_sub(taken) }
}

fn introduction(agent: &Agent) -> String {
    match &agent.emoji {
        Some(emoji) => format!("You are {} {emoji} (agent id: {}).", agent.name, agent.id),
        None => format!("You are {} (agent id: {}).", agent.name, agent.id),
    }
}

/// One file's part of the prompt.
struct Section<'a> {
    name: &'static str,
    content: &'a str,
}

impl<'a> Section<'a> {
    /// `None` for a file that says nothing.
    fn of(loaded: &'a LoadedFile) -> Option<Self> {
        let content = loaded.content.trim_end();
        (!content.is_empty()).then(|| Section { name: loaded.file.name(), content })
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
            prompt.push_str(self.content);
        } else {
            prompt.push_str(&self.cut(room));
        }
    }

    fn cut(&self, room: usize) -> String {
        let mark =
            format!("[cut: the prompt may have {} KiB, and the rest of {} did not fit]", MAX_PROMPT_BYTES / 1024, self.name);
        match head(self.content, room) {
            "" => mark,
            kept => format!("{kept}\n{mark}"),
        }
    }
}

#[cfg(test)]
mod tests;
