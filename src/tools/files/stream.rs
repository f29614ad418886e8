//! Contents of files in a row, in a single stream: chunks with their lengths, and an empty chunk at
//! the end of each file. A length that is known before a file is read could be wrong in the end.

use std::io::{self, BufRead, Read, Write};

/// Bytes of a chunk.
const CHUNK: usize = 64 * 1024;

/// Writes a file. After a zero byte the rest is left out, because the file is no text.
pub(super) fn write(to: &mut dyn Write, mut file: impl Read) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        // The rest of an unreadable file is left out.
        let read = file.read(&mut chunk).unwrap_or(0);
        let length = u32::try_from(read).expect("a chunk is short");
        to.write_all(&length.to_le_bytes())?;
        to.write_all(&chunk[..read])?;
        if read == 0 {
            return Ok(());
        }
        if chunk[..read].contains(&0) {
            return to.write_all(&0_u32.to_le_bytes());
        }
    }
}

/// Reads a file of the stream.
pub(super) struct FileStream<'a> {
    from: &'a mut dyn BufRead,
    left: u64,
    is_over: bool,
}

impl<'a> FileStream<'a> {
    /// None at the end of the stream.
    pub(super) fn next(from: &'a mut dyn BufRead) -> io::Result<Option<Self>> {
        if from.fill_buf()?.is_empty() {
            return Ok(None);
        }
        Ok(Some(FileStream {
            from,
            left: 0,
            is_over: false,
        }))
    }

    pub(super) fn skip_rest(mut self) -> io::Result<()> {
        io::copy(&mut self, &mut io::sink()).map(drop)
    }
}

impl Read for FileStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.is_over {
            let mut length = [0; 4];
            self.from.read_exact(&mut length)?;
            self.left = u64::from(u32::from_le_bytes(length));
            self.is_over = self.left == 0;
        }
        let read = (&mut self.from).take(self.left).read(buffer)?;
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn files_come_out_as_they_went_in(
            files in proptest::collection::vec(proptest::collection::vec(1..=255_u8, 0..300), 0..6),
            skipped in any::<u8>(),
        ) {
            let mut stream = Vec::new();
            for file in &files {
                write(&mut stream, file.as_slice()).unwrap();
            }
            let mut from = stream.as_slice();
            for (number, file) in files.iter().enumerate() {
                let mut found = FileStream::next(&mut from).unwrap().expect("one more file");
                if skipped & (1 << number) == 0 {
                    let mut content = Vec::new();
                    found.read_to_end(&mut content).unwrap();
                    prop_assert_eq!(&content, file);
                }
                found.skip_rest().unwrap();
            }
            prop_assert!(FileStream::next(&mut from).unwrap().is_none());
        }
    }

    #[test]
    fn a_long_file_is_read_whole_and_one_without_text_up_to_its_chunk() {
        let text = vec![b'a'; 3 * CHUNK + 7];
        let binary = [vec![b'b'; CHUNK - 1], vec![0], vec![b'c'; CHUNK]].concat();
        let mut stream = Vec::new();
        for file in [&text, &binary] {
            write(&mut stream, file.as_slice()).unwrap();
        }
        let mut from = stream.as_slice();
        for expected in [text.as_slice(), &binary[..CHUNK]] {
            let mut content = Vec::new();
            let mut found = FileStream::next(&mut from).unwrap().unwrap();
            found.read_to_end(&mut content).unwrap();
            assert!(content == expected, "{} bytes", content.len());
        }
    }
}
