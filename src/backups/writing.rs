//! Writes an archive: the database as of one moment and the files of the home, verified before the
//! archive gets its name.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptionsExt as _};
use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::OFlags;
use tar::{Builder, EntryType, Header};
use uuid::Uuid;

use super::archive::{FILES, FORM, HEAD, Head, SUMS, Summed, Sums, write_sums};
use super::contents::{Contents, KeepSecrets, contents, is_of_a_tenant};
use super::error::BackupError;
use super::names::{DATABASE, UNFINISHED};
use super::{reading, rotation};
use crate::clock::now_ms;
use crate::config::{self, Keeper, kept_secrets, store};
use crate::home::Home;
use crate::storage;

/// A file up to this size is read in one piece, so the file may become shorter meanwhile.
const IN_ONE_PIECE: u64 = 16 * 1024 * 1024;

/// A written and verified archive.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// Files besides the database.
    pub(crate) files: usize,
    pub(crate) schema: Option<u32>,
    /// Files with secrets inside the archive.
    pub(crate) secrets: Vec<PathBuf>,
    /// Files with secrets outside the archive, and variables of the environment with secrets.
    pub(crate) secrets_elsewhere: Vec<String>,
    pub(crate) left_out: Vec<PathBuf>,
}

/// Writes a backup to a new file of this name, or else into a folder, under a name with the time.
/// Blocks.
pub(crate) fn write(
    home: &Home,
    file: Option<&Path>,
    folder: &Path,
    keep: KeepSecrets,
) -> Result<Written, BackupError> {
    let made_at = now_ms();
    let target = match file {
        Some(file) => file.to_owned(),
        None => {
            make_folder(folder)?;
            folder.join(rotation::name(made_at))
        }
    };
    if fs::symlink_metadata(&target).is_ok() {
        return Err(BackupError::Conflict(format!(
            "{} is there already. Choose another name",
            target.display()
        )));
    }
    // No agent is added, renamed or removed meanwhile, so files and database are of one state.
    let _lock = store::lock(home.path())?;
    let unfinished = Unfinished::beside(&target)?;
    let written = Packing::new(home, &unfinished, keep, made_at)?.pack()?;
    unfinished.publish(&target)?;
    let bytes = fs::metadata(&target).map_err(BackupError::disk(&target))?;
    Ok(Written {
        path: target,
        bytes: bytes.len(),
        ..written
    })
}

fn make_folder(folder: &Path) -> Result<(), BackupError> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.map_err(BackupError::disk(folder))
}

/// A folder for the parts of an archive, removed with its content at any end of the work.
struct Unfinished {
    path: PathBuf,
    /// Held as a sign to other processes of a writer at work.
    _lock: File,
}

impl Unfinished {
    fn beside(target: &Path) -> Result<Self, BackupError> {
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        sweep(folder);
        let path = folder.join(format!("{UNFINISHED}{}", Uuid::now_v7().simple()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(BackupError::disk(folder))?;
        let lock = File::open(&path).and_then(|lock| lock.lock().map(|()| lock));
        match lock {
            Ok(lock) => Ok(Unfinished { path, _lock: lock }),
            Err(error) => {
                drop(fs::remove_dir_all(&path));
                Err(BackupError::disk(&path)(error))
            }
        }
    }

    fn archive(&self) -> PathBuf {
        self.path.join("archive")
    }

    /// Gives the archive its name, for good.
    fn publish(self, target: &Path) -> Result<(), BackupError> {
        let failed = BackupError::disk(target);
        fs::rename(self.archive(), target).map_err(&failed)?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(failed)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // A leftover is removed by the next backup.
        drop(fs::remove_dir_all(&self.path));
    }
}

/// Removes leftovers of killed processes from a folder.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        let is_free = || File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok());
        if is_ours && is_free() {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// An archive on its way.
struct Packing<'a> {
    home: &'a Path,
    unfinished: &'a Unfinished,
    head: Head,
    contents: Contents,
    secrets_elsewhere: Vec<String>,
    sums: Sums,
    left_out: Vec<PathBuf>,
}

type Tar = Builder<GzEncoder<BufWriter<File>>>;

impl<'a> Packing<'a> {
    fn new(
        home: &'a Home,
        unfinished: &'a Unfinished,
        keep: KeepSecrets,
        made_at: i64,
    ) -> Result<Self, BackupError> {
        let database = home.database();
        // An archive without the database would look good, and would rotate good archives away.
        storage::check_presence(&database)?;
        // The database comes first, because rows name existing files, and files do not know rows.
        let schema = match database.exists() {
            true => Some(storage::copy_of(
                &database,
                &unfinished.path.join(DATABASE),
            )?),
            false => None,
        };
        let text = config::read_home(home.path()).map(|source| source.text);
        let named = kept_secrets(&text.unwrap_or_default(), home.path());
        let contents = contents(home.path(), &named, keep)?;
        let variables = named.iter().filter_map(|secret| match &secret.keeper {
            Keeper::Variable(name) => Some(name.clone()),
            Keeper::File(path) if !path.starts_with(home.path()) => {
                Some(path.display().to_string())
            }
            Keeper::File(_) => None,
        });
        let mut secrets_elsewhere: Vec<String> = variables.collect();
        if keep == KeepSecrets::No {
            let files = contents.secrets.iter();
            secrets_elsewhere.extend(files.map(|path| path.display().to_string()));
        }
        Ok(Packing {
            home: home.path(),
            unfinished,
            head: Head {
                form: FORM,
                parlor: env!("CARGO_PKG_VERSION").to_owned(),
                schema,
                made_at,
                has_secrets: keep == KeepSecrets::Yes && !contents.secrets.is_empty(),
            },
            left_out: contents.left_out.clone(),
            contents,
            secrets_elsewhere,
            sums: Sums::new(),
        })
    }

    fn pack(mut self) -> Result<Written, BackupError> {
        let path = self.unfinished.archive();
        self.fill(&path)?;
        self.verify(&path)?;
        let has_secrets = self.head.has_secrets;
        let files = self.sums.len() - 1 - usize::from(self.head.schema.is_some());
        Ok(Written {
            path,
            bytes: 0,
            files,
            schema: self.head.schema,
            secrets: if has_secrets {
                self.contents.secrets
            } else {
                Vec::new()
            },
            secrets_elsewhere: self.secrets_elsewhere,
            left_out: self.left_out,
        })
    }

    fn fill(&mut self, path: &Path) -> Result<(), BackupError> {
        let failed = BackupError::disk(path);
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let file = BufWriter::new(made.map_err(&failed)?);
        let mut tar = Builder::new(GzEncoder::new(file, Compression::default()));
        let head = serde_json::to_vec_pretty(&self.head).map_err(|error| failed(error.into()))?;
        self.append(
            &mut tar,
            Path::new(HEAD),
            0o600,
            0,
            &head[..],
            head.len() as u64,
        )
        .map_err(&failed)?;
        if self.head.schema.is_some() {
            self.database(&mut tar).map_err(&failed)?;
        }
        for folder in std::mem::take(&mut self.contents.folders) {
            append_folder(&mut tar, &Path::new(FILES).join(folder)).map_err(&failed)?;
        }
        for file in std::mem::take(&mut self.contents.files) {
            self.file(&mut tar, &file)?;
        }
        let sums = write_sums(&self.sums);
        let mut header = header(sums.len() as u64, 0o600, 0);
        tar.append_data(&mut header, SUMS, &sums[..])
            .map_err(&failed)?;
        finish(tar).map_err(failed)
    }

    fn database(&mut self, tar: &mut Tar) -> io::Result<()> {
        let file = File::open(self.unfinished.path.join(DATABASE))?;
        let (size, mtime) = (file.metadata()?.len(), self.head.made_at / 1000);
        let name = Path::new(FILES).join(DATABASE);
        self.append(tar, &name, 0o600, mtime, file, size)
    }

    fn file(&mut self, tar: &mut Tar, path: &Path) -> Result<(), BackupError> {
        let file = match self.open(path) {
            Ok(Some(file)) => file,
            // Deleted or replaced since the folder was read.
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(BackupError::disk(&self.home.join(path))(error)),
        };
        let appended = self.append_file(tar, path, file);
        appended.map_err(BackupError::disk(&self.home.join(path)))
    }

    fn append_file(&mut self, tar: &mut Tar, path: &Path, mut file: File) -> io::Result<()> {
        let metadata = file.metadata()?;
        let (mode, mtime) = (metadata.mode(), metadata.mtime());
        let name = Path::new(FILES).join(path);
        if metadata.len() > IN_ONE_PIECE {
            return self.append(tar, &name, mode, mtime, file, metadata.len());
        }
        let mut bytes = Vec::new();
        (&mut file).take(IN_ONE_PIECE).read_to_end(&mut bytes)?;
        let size = bytes.len() as u64;
        self.append(tar, &name, mode, mtime, &bytes[..], size)
    }

    /// None for a path that is no longer a plain file.
    fn open(&mut self, path: &Path) -> io::Result<Option<File>> {
        if !is_of_a_tenant(path) {
            let file = File::open(self.home.join(path))?;
            return Ok(file.metadata()?.is_file().then_some(file));
        }
        let home = Dir::open_ambient_dir(self.home, ambient_authority())?;
        let mut options = cap_std::fs::OpenOptions::new();
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = home.open_with(path, &options)?.into_std();
        let metadata = file.metadata()?;
        Ok((metadata.is_file() && metadata.nlink() == 1).then_some(file))
    }

    /// Appends so many bytes of a reader. Fewer are an error; more are left out.
    fn append(
        &mut self,
        tar: &mut Tar,
        name: &Path,
        mode: u32,
        mtime: i64,
        content: impl Read,
        size: u64,
    ) -> io::Result<()> {
        let mut summed = Summed::new(content.take(size));
        tar.append_data(&mut header(size, mode, mtime), name, &mut summed)?;
        let (sum, bytes) = summed.finish();
        if bytes < size {
            return Err(io::Error::other(
                "it became shorter while it was read; try again",
            ));
        }
        self.sums.insert(name.to_owned(), sum);
        Ok(())
    }

    /// Reads the archive again, as a restore would.
    fn verify(&self, path: &Path) -> Result<(), BackupError> {
        let read = reading::read(path, u64::MAX, &mut |item| item.drain())?;
        if read.sums == self.sums {
            return Ok(());
        }
        let reason = "what was written is not what is read back; the disk may be failing";
        Err(BackupError::archive(path, reason))
    }
}

fn append_folder(tar: &mut Tar, name: &Path) -> io::Result<()> {
    let mut header = header(0, 0o700, 0);
    header.set_entry_type(EntryType::Directory);
    tar.append_data(&mut header, name, io::empty())
}

fn header(size: u64, mode: u32, mtime: i64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode & 0o700);
    header.set_mtime(mtime.try_into().unwrap_or_default());
    header
}

fn finish(tar: Tar) -> io::Result<()> {
    let mut written = tar.into_inner()?.finish()?;
    written.flush()?;
    let file = written
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    file.sync_all()
}
