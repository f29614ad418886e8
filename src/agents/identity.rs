//! The files that make an agent who it is, as they stand on the disk right now.
//!
//! They are read anew for every turn, so an edit counts from the next message on. Nothing here fails: what cannot be read
//! is missing with the reason beside it, and the agent answers without it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{Agent, Skills};

mod check;

pub use check::check_personalities;

/// As much of one file as a model is shown.
pub const MAX_FILE_BYTES: usize = 16 * 1024;

/// An agent's files, in the order of the prompt, and the skills it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    files: Vec<LoadedFile>,
    system_prompt: Option<String>,
    skills: Skills,
}

/// One file, found or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedFile {
    pub file: IdentityFile,
    /// The file of the agent's folder that stands in for it, if the config names one.
    pub stand_in: Option<String>,
    pub origin: FileOrigin,
    /// Where it was read; for a missing file, where the agent's own would be.
    pub path: PathBuf,
    /// Empty if missing.
    pub content: String,
    /// Why a file that is there could not be used, or not as it is.
    pub problem: Option<String>,
}

/// The files an agent can have. An empty file of its own is an override too: it silences the inherited one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdentityFile {
    Identity,
    Soul,
    Agents,
    Tools,
    User,
    /// For the agent's first conversation only.
    Bootstrap,
    /// Curated long-term memory.
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOrigin {
    /// From the agent's folder.
    Own,
    /// From the home folder.
    Inherited,
    Missing,
}

impl Identity {
    /// Reads the files; blocks on the disk. `bootstrap` is whether the agent has yet to finish its first turn.
    pub fn load(agent: &Agent, bootstrap: bool) -> Self {
        let looked_for = IdentityFile::ALL.into_iter().filter(|file| match file {
            IdentityFile::Bootstrap => bootstrap,
            IdentityFile::Memory => agent.memory.is_on,
            _ => true,
        });
        Identity {
            files: looked_for.map(|file| LoadedFile::load(agent, file)).collect(),
            system_prompt: agent.system_prompt.as_ref().map(|text| bounded("system_prompt", text.as_bytes(), text.len() as u64)),
            skills: Skills::load(agent),
        }
    }

    /// Every file that was looked for, in the order of the prompt.
    pub fn files(&self) -> &[LoadedFile] {
        &self.files
    }

    /// What the config adds, cut like a file.
    pub fn system_prompt(&self) -> Option<&str> {
        self.system_prompt.as_deref()
    }

    pub fn skills(&self) -> &Skills {
        &self.skills
    }

    /// `None` only for the bootstrap file once it is over, and for the memory of an agent that has none.
    pub fn get(&self, file: IdentityFile) -> Option<&LoadedFile> {
        self.files.iter().find(|loaded| loaded.file == file)
    }
}

impl IdentityFile {
    /// In the order of the prompt: what changes often stands last, so that a provider can cache what comes before.
    pub const ALL: [IdentityFile; 7] =
        [Self::Identity, Self::Soul, Self::Agents, Self::Tools, Self::User, Self::Bootstrap, Self::Memory];

    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "IDENTITY.md",
            Self::Soul => "SOUL.md",
            Self::Agents => "AGENTS.md",
            Self::Tools => "TOOLS.md",
            Self::User => "USER.md",
            Self::Bootstrap => "BOOTSTRAP.md",
            Self::Memory => "MEMORY.md",
        }
    }

    /// Whether the home folder's file stands in for one the agent does not have.
    pub fn is_inherited(self) -> bool {
        !matches!(self, Self::Bootstrap | Self::Memory)
    }
}

impl fmt::Display for FileOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            FileOrigin::Own => "own",
            FileOrigin::Inherited => "inherited",
            FileOrigin::Missing => "missing",
        })
    }
}

impl LoadedFile {
    /// What it is called: the file that was looked for.
    pub fn name(&self) -> &str {
        self.stand_in.as_deref().unwrap_or(self.file.name())
    }

    fn load(agent: &Agent, file: IdentityFile) -> Self {
        match &agent.personality {
            Some(name) if file == IdentityFile::Soul => Self::stand_in(agent, file, name),
            _ => Self::found(agent, file),
        }
    }

    /// Somebody chose this very file, so no other stands in for it.
    fn stand_in(agent: &Agent, file: IdentityFile, name: &str) -> Self {
        let (path, stand_in) = (agent.folder.join(name), Some(name.to_owned()));
        let problem = match read(&path) {
            Ok(Some((content, remark))) => {
                let problem = remark.map(str::to_owned);
                return LoadedFile { file, stand_in, origin: FileOrigin::Own, path, content, problem };
            }
            Ok(None) => format!("{} is not there", path.display()),
            Err(error) => format!("{} cannot be read: {error}", path.display()),
        };
        LoadedFile { file, stand_in, origin: FileOrigin::Missing, path, content: String::new(), problem: Some(problem) }
    }

    fn found(agent: &Agent, file: IdentityFile) -> Self {
        let own = agent.folder.join(file.name());
        let inherited = file.is_inherited().then(|| (agent.home.join(file.name()), FileOrigin::Inherited));
        let mut problem = None;
        for (path, origin) in [(own.clone(), FileOrigin::Own)].into_iter().chain(inherited) {
            match read(&path) {
                Ok(Some((content, remark))) => {
                    let problem = problem.or_else(|| remark.map(str::to_owned));
                    return LoadedFile { file, stand_in: None, origin, path, content, problem };
                }
                Ok(None) => {}
                Err(error) => problem = problem.or(Some(format!("{} cannot be read: {error}", path.display()))),
            }
        }
        LoadedFile { file, stand_in: None, origin: FileOrigin::Missing, path: own, content: String::new(), problem }
    }
}

/// `None` if nothing is there. A link to nothing is an error: somebody meant something by it.
fn read(path: &Path) -> io::Result<Option<(String, Option<&'static str>)>> {
    match read_start(path) {
        Ok((start, size)) => Ok(Some((bounded(&file_name(path), &start, size), remark(&start)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(None),
        Err(error) => Err(error),
    }
}

/// One byte more than may be shown, if there is more, and the size of the whole.
fn read_start(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    // Opening a FIFO waits for its other end, perhaps for ever, so the kind is known before anything is opened.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other(if metadata.is_dir() { "it is a folder" } else { "it is not a regular file" }));
    }
    let most = MAX_FILE_BYTES as u64 + 1;
    // Room for one byte more than the file has, so that one read takes it all and the next finds the end.
    let mut start = Vec::with_capacity(usize::try_from(metadata.len().min(most)).unwrap_or(MAX_FILE_BYTES) + 1);
    File::open(path)?.take(most).read_to_end(&mut start)?;
    Ok((start, metadata.len()))
}

/// What whoever wrote the file would want to know.
fn remark(start: &[u8]) -> Option<&'static str> {
    // A file that is cut may end inside a character.
    let is_torn = |error: std::str::Utf8Error| error.error_len().is_none() && start.len() > MAX_FILE_BYTES;
    match std::str::from_utf8(start) {
        Err(error) if !is_torn(error) => Some("it is not UTF-8, so parts of it are shown as \u{fffd}"),
        _ if start.len() > MAX_FILE_BYTES => Some("only its first 16 KiB are read"),
        _ => None,
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The text of a file, or as much of it as may be shown and a line that says so.
fn bounded(name: &str, start: &[u8], size: u64) -> String {
    let text = String::from_utf8_lossy(start);
    // A character torn at the end of what was read became a replacement mark that ends past the limit, so it goes here.
    let shown = head(&text, MAX_FILE_BYTES);
    let clean = shown.strip_prefix('\u{feff}').unwrap_or(shown);
    if shown.len() == text.len() {
        return clean.to_owned();
    }
    let size_kib = size.max(text.len() as u64).div_ceil(1024);
    format!("{clean}\n[cut: {name} is {size_kib} KiB and only its first {} KiB are read]\n", MAX_FILE_BYTES / 1024)
}

/// The start of a text within a limit: up to the end of a line where that keeps at least half, else inside a line.
pub(crate) fn head(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let fitting = &text[..text.floor_char_boundary(max_bytes)];
    match fitting.rfind('\n') {
        Some(line_end) if line_end >= max_bytes / 2 => &fitting[..line_end],
        _ => fitting,
    }
}

#[cfg(test)]
mod tests;
