//! The input of a job, up to its limit.

use std::io::{self, Write};

use super::{Failure, Limits};

/// Writes the input. A broken pipe is no error: the child has read enough, or its exit status shows the
/// failure.
pub(super) fn feed(
    to: impl Write,
    limits: &Limits,
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut bounded = Bounded {
        to,
        left: limits.input_bytes,
        is_over: false,
    };
    let fed = feed(&mut bounded).and_then(|()| bounded.flush());
    match fed {
        _ if bounded.is_over => Err(Failure::Input),
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Broke),
        _ => Ok(()),
    }
}

struct Bounded<W> {
    to: W,
    left: u64,
    is_over: bool,
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            self.is_over = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let written = self.to.write(bytes)?;
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: Limits = Limits {
        memory_bytes: 0,
        time: Duration::ZERO,
        input_bytes: 4,
        output_bytes: 0,
    };

    #[test]
    fn input_is_written_up_to_its_limit() {
        let written = |bytes: &[u8]| {
            let mut input = Vec::new();
            (feed(&mut input, &LIMITS, |to| to.write_all(bytes)), input)
        };
        assert_eq!(written(b"1234"), (Ok(()), b"1234".to_vec()));
        assert_eq!(written(b"12345"), (Err(Failure::Input), Vec::new()));
    }

    #[test]
    fn a_reader_with_enough_is_no_failure_and_a_broken_source_is() {
        let end = |kind: io::ErrorKind| feed(Vec::new(), &LIMITS, |_| Err(kind.into()));
        assert_eq!(end(io::ErrorKind::BrokenPipe), Ok(()));
        assert_eq!(end(io::ErrorKind::Other), Err(Failure::Broke));
    }
}
