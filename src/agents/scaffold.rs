//! Writes the home folder's first content: the shipped team of agents, and a config for the team.

use std::borrow::Cow;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use include_dir::{Dir, File, include_dir};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::{Agent, IdentityFile};
use crate::config::{SCHEMA_FILE, edit, json_schema_text};
use crate::domain::AgentId;

/// Files on top and the pool of skills go into the home folder itself, the other folders into its
/// `agents/`.
static TEAM: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/agents");

const CONFIG: &str = "config.toml";
const POOL: &str = "skills";

/// New and existing files, as paths within the home folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Scaffolded {
    pub created: Vec<PathBuf>,
    pub kept: Vec<PathBuf>,
}

/// The reason why a home folder could not be filled, in words for the operator.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    #[error("{} cannot be a folder: a file of that name is in the way", .0.display())]
    FileInTheWay(PathBuf),
    #[error("{} cannot be written: the folder belongs to somebody else or is read-only", .0.display())]
    NotAllowed(PathBuf),
    #[error("{} cannot be written: the disk is full", .0.display())]
    DiskFull(PathBuf),
    #[error("{} cannot be written", .path.display())]
    Other { path: PathBuf, source: io::Error },
}

/// The agents of a new home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Team {
    Whole,
    /// The agent `main` without the specialists.
    OnlyMain,
}

/// The config of a new home.
pub(crate) fn shipped_config() -> &'static str {
    let config = TEAM.get_file(CONFIG).and_then(File::contents_utf8);
    config.unwrap_or_default()
}

/// Writes every missing file of the shipped team, and leaves existing files alone.
pub fn write_home(home: &Path, team: Team) -> Result<Scaffolded, ScaffoldError> {
    let mut scaffolded = Scaffolded::default();
    let files = match team {
        Team::Whole => shipped(),
        Team::OnlyMain => without_specialists(shipped()),
    };
    for (name, content) in files {
        match write_new(&home.join(&name), &content)? {
            Written::Created => scaffolded.created.push(name),
            Written::AlreadyThere => scaffolded.kept.push(name),
        }
    }
    Ok(scaffolded)
}

/// Whether a file of the home is an unchanged file of the shipped team.
pub(crate) fn is_as_shipped(name: &Path, content: &[u8]) -> bool {
    let mut files = shipped().into_iter();
    files.any(|(shipped, its_content)| shipped == name && *its_content == *content)
}

/// Fills a home without a config. `None` for a home with a config.
pub fn ensure_home(home: &Path) -> Result<Option<Scaffolded>, ScaffoldError> {
    // A link counts even without its target: the operator has a config in another place.
    let begun = fs::symlink_metadata(home.join(CONFIG)).is_ok();
    if begun {
        Ok(None)
    } else {
        write_home(home, Team::Whole).map(Some)
    }
}

/// Writes the files of a new agent. Existing files stay; `personality` becomes SOUL.md.
pub fn write_agent(
    home: &Path,
    id: &AgentId,
    personality: Option<&str>,
) -> Result<Scaffolded, ScaffoldError> {
    let soul = personality.map_or_else(|| NEW_SOUL.to_owned(), |text| format!("{}\n", text.trim()));
    let files = [
        (IdentityFile::Identity, NEW_IDENTITY),
        (IdentityFile::Soul, &soul),
        (IdentityFile::Memory, ""),
    ];
    write_files(home, id, &files)
}

/// Writes the first files of an agent that is only a table in the config. Existing files stay.
///
/// These are its memory, and the identity files without a counterpart in the home: a file of the
/// agent would hide the home's.
pub(crate) fn seed_agent(agent: &Agent) -> Result<Scaffolded, ScaffoldError> {
    let is_inherited =
        |file: IdentityFile| fs::symlink_metadata(agent.home.join(file.name())).is_ok();
    // The config may have the agent's manner, in a file of another name or in words.
    let has_manner = agent.personality.is_some() || agent.system_prompt.is_some();
    let mut files = Vec::new();
    if !is_inherited(IdentityFile::Identity) {
        files.push((IdentityFile::Identity, NEW_IDENTITY));
    }
    if !is_inherited(IdentityFile::Soul) && !has_manner {
        files.push((IdentityFile::Soul, NEW_SOUL));
    }
    if agent.memory.is_on {
        files.push((IdentityFile::Memory, ""));
    }
    write_files(&agent.home, &agent.id, &files)
}

/// The words of an agent's new files.
const SEEDS: [(IdentityFile, &str); 3] = [
    (IdentityFile::Identity, NEW_IDENTITY),
    (IdentityFile::Soul, NEW_SOUL),
    (IdentityFile::Memory, ""),
];

/// Whether a new agent gets a file of this name.
pub(crate) fn has_seed(name: &str) -> bool {
    SEEDS.iter().any(|(file, _)| file.name() == name)
}

/// Whether a file of an agent still has the words of a new agent's file.
pub(crate) fn is_seed(name: &str, content: &[u8]) -> bool {
    let mut seeds = SEEDS.iter();
    seeds.any(|(file, seed)| file.name() == name && seed.as_bytes() == content)
}

fn write_files(
    home: &Path,
    id: &AgentId,
    files: &[(IdentityFile, &str)],
) -> Result<Scaffolded, ScaffoldError> {
    let mut scaffolded = Scaffolded::default();
    for (file, content) in files {
        let name = Path::new("agents").join(id.as_str()).join(file.name());
        match write_new(&home.join(&name), content.as_bytes())? {
            Written::Created => scaffolded.created.push(name),
            Written::AlreadyThere => scaffolded.kept.push(name),
        }
    }
    Ok(scaffolded)
}

const NEW_IDENTITY: &str = "\
An agent of this house that was added by its operator. Go by your name, and by what people come to you for.
";
const NEW_SOUL: &str = "\
Useful first, pleasant second, brief throughout.

- Say what you know, and say so when you do not.
- Ask one question when the answer would change what you do; otherwise get on with it.
";

enum Written {
    Created,
    AlreadyThere,
}

/// The config comes last: an interrupted first start leaves no config, so the next start completes
/// the files.
fn shipped() -> Vec<ShippedFile> {
    let home = TEAM
        .files()
        .map(|file| (file.path().to_owned(), Cow::from(file.contents())));
    let place = |folder: &Dir<'_>| {
        if folder.path() == Path::new(POOL) {
            ""
        } else {
            "agents"
        }
    };
    let below = TEAM.dirs().flat_map(|folder| {
        files_below(folder)
            .into_iter()
            .map(move |file| (place(folder), file))
    });
    let below = below.map(|(place, file)| {
        let name = Path::new(place).join(file.path());
        (name, Cow::from(file.contents()))
    });
    let schema = (
        PathBuf::from(SCHEMA_FILE),
        Cow::from(json_schema_text().into_bytes()),
    );
    let (config, mut files): (Vec<_>, Vec<_>) = home
        .chain(below)
        .chain([schema])
        .partition(|(name, _)| name == Path::new(CONFIG));
    files.extend(config);
    files
}

type ShippedFile = (PathBuf, Cow<'static, [u8]>);

/// Leaves out the folders of all agents but `main`, and takes these agents out of the config.
fn without_specialists(files: Vec<ShippedFile>) -> Vec<ShippedFile> {
    let specialists = specialists();
    let is_of = |name: &Path, id: &AgentId| name.starts_with(Path::new("agents").join(id.as_str()));
    let kept = files
        .into_iter()
        .filter(|(name, _)| !specialists.iter().any(|id| is_of(name, id)));
    kept.map(|(name, content)| {
        let content = match name.to_str() {
            Some(CONFIG) => Cow::from(config_without(&content, &specialists).into_bytes()),
            Some(_) if name.starts_with("agents/main") => silent_about(&content, &specialists),
            _ => content,
        };
        (name, content)
    })
    .collect()
}

/// Leaves out lines that send people to missing agents.
fn silent_about(content: &[u8], agents: &[AgentId]) -> Cow<'static, [u8]> {
    let text = String::from_utf8_lossy(content);
    let names_one = |line: &str| {
        let line = line.to_lowercase();
        let mut words = line.split(|c: char| !c.is_alphanumeric());
        words.any(|word| agents.iter().any(|id| id.as_str() == word))
    };
    let lines = text.split_inclusive('\n').filter(|line| !names_one(line));
    Cow::from(lines.collect::<String>().into_bytes())
}

fn specialists() -> Vec<AgentId> {
    let folders = TEAM.dirs().filter_map(|folder| folder.path().to_str());
    folders
        .filter(|name| *name != POOL)
        .filter_map(|name| AgentId::parse(name).ok())
        .filter(|id| *id != AgentId::main())
        .collect()
}

fn config_without(content: &[u8], agents: &[AgentId]) -> String {
    let text = String::from_utf8_lossy(content).into_owned();
    agents.iter().fold(text, |text, id| {
        edit::take_out_agent(&text, id).map_or(text, |taken| taken.text)
    })
}

fn files_below<'a>(folder: &'a Dir<'static>) -> Vec<&'a File<'static>> {
    folder
        .files()
        .chain(folder.dirs().flat_map(files_below))
        .collect()
}

/// After a kill or a power cut there is the whole file or none: half a file would be taken for the
/// operator's own.
fn write_new(path: &Path, content: &[u8]) -> Result<Written, ScaffoldError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_folder(folder).map_err(|error| explain(folder, error))?;
    // A link counts even if its target is away.
    if fs::symlink_metadata(path).is_ok() {
        return Ok(Written::AlreadyThere);
    }
    // Always the same name, so the next process overwrites leftovers of a killed process.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{name}.new"));
    let written = write_whole(&beside, content).and_then(|()| put(&beside, path));
    match written {
        Ok(()) => fs::File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| explain(folder, error))?,
        Err(error) => {
            // If the removal fails, the first error still tells the problem.
            let _ = fs::remove_file(&beside);
            // Another process was faster to fill the same home, or a person saved the file.
            let is_taken = matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists
            );
            return match is_taken && path.exists() {
                true => Ok(Written::AlreadyThere),
                false => Err(explain(path, error)),
            };
        }
    }
    Ok(Written::Created)
}

/// Gives a file its name, unless another file has taken the name meanwhile.
fn put(beside: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, beside, CWD, path, RenameFlags::NOREPLACE) {
        // The file system cannot do both at once.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::rename(beside, path),
        done => Ok(done?),
    }
}

fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Conversations and secrets will lie here, so new folders are for their owner only.
fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

fn explain(path: &Path, source: io::Error) -> ScaffoldError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            ScaffoldError::FileInTheWay(path)
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ScaffoldError::NotAllowed(path)
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ScaffoldError::DiskFull(path),
        _ => ScaffoldError::Other { path, source },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::SystemTime;

    use tempfile::TempDir;

    use super::*;
    use crate::domain::SessionKey;

    /// Every file below a folder, with its text and its time of writing.
    fn contents(folder: &Path) -> BTreeMap<PathBuf, (String, SystemTime)> {
        let mut found = BTreeMap::new();
        for path in fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                found.extend(contents(&path));
            } else {
                let modified = fs::metadata(&path).unwrap().modified().unwrap();
                found.insert(path.clone(), (fs::read_to_string(&path).unwrap(), modified));
            }
        }
        found
    }

    fn names(paths: &[PathBuf]) -> String {
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// S1.52, S1.53
    #[test]
    fn the_first_start_writes_the_team_and_the_second_changes_nothing() {
        let parent = TempDir::new().unwrap();
        let home = parent.path().join("new").join("home");
        let scaffolded = ensure_home(&home).unwrap().unwrap();
        insta::assert_snapshot!(names(&scaffolded.created), @"
        AGENTS.md
        IDENTITY.md
        SOUL.md
        TOOLS.md
        USER.md
        agents/ada/IDENTITY.md
        agents/ada/MEMORY.md
        agents/ada/SOUL.md
        agents/ada/skills/bug-report/SKILL.md
        agents/ada/skills/bug-report/template.md
        agents/main/BOOTSTRAP.md
        agents/main/IDENTITY.md
        agents/main/MEMORY.md
        agents/main/SOUL.md
        agents/rose/IDENTITY.md
        agents/rose/MEMORY.md
        agents/rose/SOUL.md
        agents/rose/skills/tighten/SKILL.md
        skills/thread-summary/SKILL.md
        config.schema.json
        config.toml
        ");
        assert_eq!(scaffolded.kept, [] as [PathBuf; 0]);

        let before = contents(&home);
        assert_eq!(ensure_home(&home).unwrap(), None);
        assert_eq!(
            write_home(&home, Team::Whole).unwrap(),
            Scaffolded {
                created: Vec::new(),
                kept: scaffolded.created
            }
        );
        assert_eq!(contents(&home), before);
    }

    #[test]
    fn main_alone_has_a_config_without_the_others() {
        let home = TempDir::new().unwrap();
        let written = write_home(home.path(), Team::OnlyMain).unwrap();
        let is_of_others = |path: &&PathBuf| {
            path.starts_with("agents") && !path.starts_with(Path::new("agents").join("main"))
        };
        assert_eq!(written.created.iter().find(is_of_others), None);
        assert!(
            written
                .created
                .contains(&PathBuf::from("agents/main/SOUL.md"))
        );
        let text = fs::read_to_string(home.path().join(CONFIG)).unwrap();
        let config: toml::Table = text.parse().unwrap();
        let agents: Vec<&String> = config["agents"].as_table().unwrap().keys().collect();
        assert_eq!(agents, ["main"]);
        assert_eq!(config.get("bindings"), None);
        for file in ["IDENTITY.md", "SOUL.md", "BOOTSTRAP.md"] {
            let text = fs::read_to_string(home.path().join("agents/main").join(file)).unwrap();
            assert!(!text.contains("Rose") && !text.contains("Ada"), "{file}");
            assert!(text.lines().count() > 0, "{file}");
        }
        assert!(
            text.contains("#token = { env = \"TELEGRAM_BOT_TOKEN\" }"),
            "the ways to a platform stay"
        );
    }

    #[test]
    fn what_the_operator_wrote_is_kept() {
        let home = TempDir::new().unwrap();
        fs::write(home.path().join("SOUL.md"), "mine").unwrap();
        let scaffolded = write_home(home.path(), Team::Whole).unwrap();
        assert_eq!(scaffolded.kept, [Path::new("SOUL.md")]);
        assert_eq!(
            fs::read_to_string(home.path().join("SOUL.md")).unwrap(),
            "mine"
        );
    }

    #[test]
    fn an_interrupted_first_start_is_completed_by_the_next() {
        let home = TempDir::new().unwrap();
        write_home(home.path(), Team::Whole).unwrap();
        for lost in ["config.toml", "agents/rose/SOUL.md"] {
            fs::remove_file(home.path().join(lost)).unwrap();
        }
        let scaffolded = ensure_home(home.path()).unwrap().unwrap();
        assert_eq!(
            scaffolded.created,
            [Path::new("agents/rose/SOUL.md"), Path::new("config.toml")]
        );
    }

    #[test]
    fn half_a_file_of_a_killed_process_is_not_taken_for_the_operators() {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("agents")).unwrap();
        fs::write(home.path().join(".config.toml.new"), "defau").unwrap();
        write_home(home.path(), Team::Whole).unwrap();
        let whole = TempDir::new().unwrap();
        write_home(whole.path(), Team::Whole).unwrap();
        let texts = |home: &TempDir| {
            contents(home.path())
                .into_values()
                .map(|(text, _)| text)
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(&home), texts(&whole), "and nothing is left beside");
    }

    #[cfg(unix)]
    #[test]
    fn a_new_home_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let parent = TempDir::new().unwrap();
        let home = parent.path().join("home");
        write_home(&home, Team::Whole).unwrap();
        for folder in [home.clone(), home.join("agents/main")] {
            assert_eq!(
                fs::metadata(folder).unwrap().permissions().mode() & 0o777,
                0o700
            );
        }
    }

    #[test]
    fn errors_name_the_path_and_what_is_wrong() {
        let parent = TempDir::new().unwrap();
        let in_the_way = parent.path().join("home");
        fs::write(&in_the_way, "a file").unwrap();
        for home in [in_the_way.clone(), in_the_way.join("below")] {
            assert!(
                matches!(write_home(&home, Team::Whole), Err(ScaffoldError::FileInTheWay(path)) if path == home)
            );
        }

        let text =
            |kind: io::ErrorKind| explain(Path::new("home/SOUL.md"), kind.into()).to_string();
        assert_eq!(
            text(io::ErrorKind::StorageFull),
            "home/SOUL.md cannot be written: the disk is full"
        );
        assert_eq!(
            text(io::ErrorKind::ReadOnlyFilesystem),
            "home/SOUL.md cannot be written: the folder belongs to somebody else or is read-only"
        );
    }

    #[test]
    fn a_file_that_came_meanwhile_is_not_replaced() {
        let folder = TempDir::new().unwrap();
        let (beside, path) = (folder.path().join(".new"), folder.path().join("SOUL.md"));
        fs::write(&beside, "shipped").unwrap();
        fs::write(&path, "mine").unwrap();
        assert_eq!(
            put(&beside, &path).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn the_shipped_config_names_exactly_the_shipped_agents() {
        let text = TEAM.get_file(CONFIG).unwrap().contents_utf8().unwrap();
        let config: toml::Table = text.parse().unwrap();
        let agents: Vec<&String> = config["agents"].as_table().unwrap().keys().collect();
        let folders = TEAM
            .dirs()
            .map(|folder| folder.path().display().to_string());
        let folders: Vec<String> = folders.filter(|folder| folder != POOL).collect();
        assert!(
            agents
                .iter()
                .all(|id| AgentId::parse(id).is_ok() && folders.contains(id))
        );
        assert_eq!(agents.len(), folders.len());
        assert!(
            config["bindings"]
                .as_array()
                .unwrap()
                .iter()
                .all(|binding| {
                    let place = binding["match"].as_str().unwrap().parse::<SessionKey>();
                    place.is_ok()
                        && agents
                            .iter()
                            .any(|id| Some(id.as_str()) == binding["agent"].as_str())
                })
        );
    }
}
