//! `parlor.sock` in the home folder: where it is, and how it is made and reached.
//!
//! A socket's address is short (108 bytes with its end on Linux). The socket of a home with a longer
//! path is named through an open folder of this process.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

const NAME: &str = "parlor.sock";
/// Addresses of this length are possible on all systems.
const MOST_ADDRESS_BYTES: usize = 103;

/// The socket of a running gateway. Its file goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    file: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A file that is gone already was taken away by hand.
        drop(fs::remove_file(&self.file));
    }
}

/// Makes the socket for the owner of the home alone. The caller holds the lock of the home, so a
/// socket found there is from a process that was killed.
pub(crate) fn make(home: &Path) -> io::Result<Socket> {
    let file = home.join(NAME);
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = at(home, |address| net::UnixListener::bind(address))?;
    // The folder keeps others out until the mode is set.
    fs::set_permissions(&file, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(Socket {
        listener: UnixListener::from_std(listener)?,
        file,
    })
}

pub(crate) fn connect(home: &Path) -> io::Result<UnixStream> {
    let stream = at(home, |address| net::UnixStream::connect(address))?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Calls `work` with an address of the socket that is short enough.
fn at<T>(home: &Path, work: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = home.join(NAME);
    if path.as_os_str().as_bytes().len() <= MOST_ADDRESS_BYTES {
        return work(&path);
    }
    let folder = File::open(home)?;
    let open = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    if !open.exists() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidFilename,
            "the path of the home folder is too long for a socket on this system",
        ));
    }
    work(&open.join(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_home_of_any_length_has_a_socket() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home".to_owned(), "h".repeat(200)] {
            let home = folder.path().join(name);
            fs::create_dir(&home).unwrap();
            // Left by a process that was killed.
            drop(at(&home, |address| net::UnixListener::bind(address)).unwrap());
            let socket = make(&home).unwrap();
            let file = home.join(NAME);
            assert_eq!(
                fs::metadata(&file).unwrap().permissions().mode() & 0o777,
                0o600
            );
            let (_client, accepted) = (connect(&home).unwrap(), socket.listener.accept().await);
            accepted.unwrap();
            drop(socket);
            assert!(!file.exists());
        }
    }
}
