//! Bounds on the reading of a compressed tar that may come from anywhere.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// An archive that unpacks to more than this is refused if it is much smaller itself. Conversations
/// and most files become a tenth when packed, not a hundredth.
const ALWAYS_BYTES: u64 = 64 * 1024 * 1024;
const MOST_TIMES: u64 = 100;
/// A header with a long name, or the end of the file.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

/// A limit was reached in the middle of a read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(&'static str);

/// The limit that ended a read. None where the read failed by itself.
pub(crate) fn refusal(error: &io::Error) -> Option<&'static str> {
    let inner = error.get_ref()?.downcast_ref::<Refused>()?;
    Some(inner.0)
}

/// Bytes that may still be read: the next header, then as many bytes as that header announces.
#[derive(Clone)]
pub(crate) struct Allowance {
    now: Rc<Cell<u64>>,
    in_all: Rc<Cell<u64>>,
    /// Bytes read so far.
    unpacked: Rc<Cell<u64>>,
    /// Those of the compressed file, where the two are compared.
    packed: Option<Rc<Cell<u64>>>,
}

impl Allowance {
    pub(crate) fn new(most_bytes: u64) -> Self {
        Allowance {
            now: Rc::new(Cell::new(MAX_HEADER_BYTES)),
            in_all: Rc::new(Cell::new(most_bytes)),
            unpacked: Rc::default(),
            packed: None,
        }
    }

    /// Refuses a file that is small and becomes huge.
    pub(crate) fn without_bombs(self, packed: Rc<Cell<u64>>) -> Self {
        Allowance {
            packed: Some(packed),
            ..self
        }
    }

    /// Allows the bytes of the next entry. None where they are too many.
    pub(crate) fn grant(&self, bytes: u64) -> Option<()> {
        self.in_all.set(self.in_all.get().checked_sub(bytes)?);
        self.now.set(bytes.checked_add(MAX_HEADER_BYTES)?);
        Some(())
    }

    fn used(&self, bytes: u64) -> io::Result<()> {
        self.now.set(self.now.get() - bytes);
        let unpacked = self.unpacked.get() + bytes;
        self.unpacked.set(unpacked);
        let is_bomb = |packed: &Rc<Cell<u64>>| {
            unpacked > ALWAYS_BYTES && unpacked / MOST_TIMES > packed.get()
        };
        if self.packed.as_ref().is_some_and(is_bomb) {
            return Err(io::Error::other(Refused(
                "it is small and would become huge: more than 64 MiB, and more than 100 times its size",
            )));
        }
        Ok(())
    }
}

/// Limits the bytes that the tar reader gets, because the reader puts names of any length into
/// memory.
pub(crate) struct Metered<R> {
    reader: R,
    allowance: Allowance,
}

impl<R> Metered<R> {
    pub(crate) fn new(reader: R, allowance: &Allowance) -> Self {
        Metered {
            reader,
            allowance: allowance.clone(),
        }
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.allowance.now.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other(Refused("a name in it is too long")));
        }
        let most = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = self.reader.read(&mut buffer[..most])?;
        self.allowance.used(read as u64)?;
        Ok(read)
    }
}

/// Counts the bytes of the compressed file.
pub(crate) struct Counted<R> {
    reader: R,
    bytes: Rc<Cell<u64>>,
}

impl<R> Counted<R> {
    pub(crate) fn new(reader: R) -> Self {
        Counted {
            reader,
            bytes: Rc::default(),
        }
    }

    /// The count, which goes on.
    pub(crate) fn count(&self) -> Rc<Cell<u64>> {
        self.bytes.clone()
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}
