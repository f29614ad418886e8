//! The identity files of an agent, read from the disk.
//!
//! They are looked at for every turn, so an edit counts from the next message on. Nothing here
//! fails: an unreadable file is missing with a reason, and the agent answers without the file.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::folders::Listings;
use super::{Agent, Audience, Content, MemoryRules, Skills};

mod check;
mod remembered;

pub use check::check_personalities;

/// Bytes of a file in the prompt.
pub const MAX_FILE_BYTES: usize = 16 * 1024;

/// An agent's files, in the order of the prompt, and its skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    files: Vec<LoadedFile>,
    system_prompt: Option<String>,
    skills: Skills,
}

/// A file, found or missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedFile {
    pub file: IdentityFile,
    /// The file in place of SOUL.md, by the config's `personality`.
    pub stand_in: Option<String>,
    pub origin: FileOrigin,
    /// The path of the file; for a missing file, the path of the agent's own.
    pub path: PathBuf,
    /// Empty if missing.
    pub content: String,
    /// The reason why a file could not be used, or only in part.
    pub problem: Option<String>,
}

/// The identity files. An empty file in the agent's folder is an override too: the inherited file
/// is silenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdentityFile {
    Identity,
    Soul,
    Agents,
    Tools,
    User,
    /// A file for the agent's first conversation only.
    Bootstrap,
    /// Curated long-term memory.
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOrigin {
    /// The file is in the agent's folder.
    Own,
    /// The file is in the home folder.
    Inherited,
    Missing,
}

impl Identity {
    /// Reads the files; blocks on the disk. `bootstrap` is whether the agent has yet to finish its
    /// first turn.
    pub fn load(agent: &Agent, bootstrap: bool) -> Self {
        let looked_for = IdentityFile::ALL.into_iter().filter(|file| match file {
            IdentityFile::Bootstrap => bootstrap,
            IdentityFile::Memory => agent.memory.is_on,
            _ => true,
        });
        let own = OWN_FILES.get(&agent.folder, || own_files(&agent.folder));
        // Mostly an agent has few of the files itself.
        let may_have = |name: &str| {
            let own = own.as_deref().and_then(Option::as_ref);
            own.is_none_or(|own| own.iter().any(|other| other == name))
        };
        Identity {
            files: looked_for
                .map(|file| LoadedFile::load(agent, file, may_have(file.name())))
                .collect(),
            system_prompt: agent
                .system_prompt
                .as_ref()
                .map(|text| bounded("system_prompt", text.as_bytes(), text.len() as u64)),
            skills: Skills::load(agent),
        }
    }

    /// Without the files that the audience of a turn may not see.
    #[must_use]
    pub fn seen_by(mut self, audience: Audience, rules: &MemoryRules) -> Self {
        self.files.retain(|loaded| {
            let content = match loaded.file {
                IdentityFile::User => Content::UserFile,
                IdentityFile::Memory => Content::Memory,
                _ => Content::Identity,
            };
            audience.may_see(rules, content)
        });
        self
    }

    /// Every file, in the order of the prompt.
    pub fn files(&self) -> &[LoadedFile] {
        &self.files
    }

    /// The config's `system_prompt`, cut like a file.
    pub fn system_prompt(&self) -> Option<&str> {
        self.system_prompt.as_deref()
    }

    pub fn skills(&self) -> &Skills {
        &self.skills
    }

    /// `None` only for BOOTSTRAP.md after the first turn, and for MEMORY.md of an agent without
    /// memory.
    pub fn get(&self, file: IdentityFile) -> Option<&LoadedFile> {
        self.files.iter().find(|loaded| loaded.file == file)
    }
}

/// The names of the files in agents' folders; none for a folder that cannot be listed.
static OWN_FILES: LazyLock<Listings<Option<Vec<String>>>> = LazyLock::new(Listings::default);

fn own_files(folder: &Path) -> Option<Vec<String>> {
    let entries = fs::read_dir(folder).ok()?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().into_string().ok()));
    let names: Vec<_> = names.collect::<io::Result<_>>().ok()?;
    let texts = names.into_iter().flatten();
    Some(texts.filter(|name| name.ends_with(".md")).collect())
}

impl IdentityFile {
    /// In the order of the prompt: files with frequent changes stand last, so that providers can
    /// cache the beginning.
    pub const ALL: [IdentityFile; 7] = [
        Self::Identity,
        Self::Soul,
        Self::Agents,
        Self::Tools,
        Self::User,
        Self::Bootstrap,
        Self::Memory,
    ];

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

    /// Whether the home folder's file is used when the agent has none.
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
    /// The file's name.
    pub fn name(&self) -> &str {
        self.stand_in.as_deref().unwrap_or(self.file.name())
    }

    /// `may_be_own` is false where the agent's folder has no such file.
    fn load(agent: &Agent, file: IdentityFile, may_be_own: bool) -> Self {
        match &agent.personality {
            Some(name) if file == IdentityFile::Soul => Self::stand_in(agent, file, name),
            _ => Self::found(agent, file, may_be_own),
        }
    }

    /// The operator chose this very file, so no other file is used instead.
    fn stand_in(agent: &Agent, file: IdentityFile, name: &str) -> Self {
        let (path, stand_in) = (agent.folder.join(name), Some(name.to_owned()));
        let problem = match read(&path) {
            Ok(Some(FileText { content, remark })) => {
                let problem = remark.map(str::to_owned);
                return LoadedFile {
                    file,
                    stand_in,
                    origin: FileOrigin::Own,
                    path,
                    content,
                    problem,
                };
            }
            Ok(None) => format!("{} is not there", path.display()),
            Err(error) => format!("{} cannot be read: {error}", path.display()),
        };
        LoadedFile {
            file,
            stand_in,
            origin: FileOrigin::Missing,
            path,
            content: String::new(),
            problem: Some(problem),
        }
    }

    fn found(agent: &Agent, file: IdentityFile, may_be_own: bool) -> Self {
        let own = agent.folder.join(file.name());
        let inherited = file
            .is_inherited()
            .then(|| (agent.home.join(file.name()), FileOrigin::Inherited));
        let mut problem = None;
        let looked_at = may_be_own.then(|| (own.clone(), FileOrigin::Own));
        for (path, origin) in looked_at.into_iter().chain(inherited) {
            match read(&path) {
                Ok(Some(FileText { content, remark })) => {
                    let problem = problem.or_else(|| remark.map(str::to_owned));
                    return LoadedFile {
                        file,
                        stand_in: None,
                        origin,
                        path,
                        content,
                        problem,
                    };
                }
                Ok(None) => {}
                Err(error) => {
                    problem =
                        problem.or(Some(format!("{} cannot be read: {error}", path.display())));
                }
            }
        }
        LoadedFile {
            file,
            stand_in: None,
            origin: FileOrigin::Missing,
            path: own,
            content: String::new(),
            problem,
        }
    }
}

/// The text of a file for the prompt.
#[derive(Debug, Clone)]
struct FileText {
    content: String,
    /// A remark for the author of the file.
    remark: Option<&'static str>,
}

/// `None` without a file. A link to nothing is an error, because a person made the link for a
/// reason.
fn read(path: &Path) -> io::Result<Option<FileText>> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => fs::metadata(path)?,
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if let Some(known) = remembered::get(path, &metadata) {
        return Ok(Some(known));
    }
    let start = read_start(path, &metadata)?;
    let text = FileText {
        content: bounded(&file_name(path), &start, metadata.len()),
        remark: remark(&start),
    };
    remembered::keep(path, &metadata, &text);
    Ok(Some(text))
}

/// The text of a file in the agent's folder, as long as an identity file may be. None: the file is
/// not there.
pub(crate) fn read_file_of(agent: &Agent, name: &str) -> io::Result<Option<String>> {
    Ok(read(&agent.folder.join(name))?.map(|text| text.content))
}

/// The start of a file, a byte longer than the limit if the file is longer.
fn read_start(path: &Path, metadata: &Metadata) -> io::Result<Vec<u8>> {
    // Opening a FIFO waits for its other end, perhaps for ever, so the kind is known before
    // anything is opened.
    if !metadata.is_file() {
        return Err(io::Error::other(if metadata.is_dir() {
            "it is a folder"
        } else {
            "it is not a regular file"
        }));
    }
    let most = MAX_FILE_BYTES as u64 + 1;
    // Room for an extra byte, so that the first read takes the whole file and the second finds the
    // end.
    let mut start =
        Vec::with_capacity(usize::try_from(metadata.len().min(most)).unwrap_or(MAX_FILE_BYTES) + 1);
    File::open(path)?.take(most).read_to_end(&mut start)?;
    Ok(start)
}

/// A remark for the author of the file.
fn remark(start: &[u8]) -> Option<&'static str> {
    // The start of a file may end inside a character.
    let is_torn =
        |error: std::str::Utf8Error| error.error_len().is_none() && start.len() > MAX_FILE_BYTES;
    match std::str::from_utf8(start) {
        Err(error) if !is_torn(error) => {
            Some("it is not UTF-8, so parts of it are shown as \u{fffd}")
        }
        _ if start.len() > MAX_FILE_BYTES => Some("only its first 16 KiB are read"),
        _ => None,
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The text of a file. A long text is cut, with a line about the cut.
fn bounded(name: &str, start: &[u8], size: u64) -> String {
    let text = String::from_utf8_lossy(start);
    // A torn character at the end became a replacement character beyond the limit, and goes with
    // the cut.
    let shown = head(&text, MAX_FILE_BYTES);
    let clean = shown.strip_prefix('\u{feff}').unwrap_or(shown);
    if shown.len() == text.len() {
        return clean.to_owned();
    }
    let size_kib = size.max(text.len() as u64).div_ceil(1024);
    format!(
        "{clean}\n[cut: {name} is {size_kib} KiB and only its first {} KiB are read]\n",
        MAX_FILE_BYTES / 1024
    )
}

/// The start of a text within a limit: up to the end of a line if this keeps at least half, else
/// inside a line.
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
