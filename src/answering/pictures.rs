//! Tells pictures for models from other files.

use std::io::{self, Read};
use std::path::Path;

use crate::models::{Image, ImageKind};

/// The kind of a stored file.
pub(super) enum Looked {
    Picture(Image),
    TooLarge,
    SomethingElse,
}

pub(super) async fn look(path: &Path) -> io::Result<Looked> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || look_now(&path))
        .await
        .map_err(io::Error::other)?
}

fn look_now(path: &Path) -> io::Result<Looked> {
    let mut file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref()
        .take(ImageKind::TELLING_BYTES as u64)
        .read_to_end(&mut bytes)?;
    let Some(kind) = ImageKind::of(&bytes) else {
        return Ok(Looked::SomethingElse);
    };
    if file.metadata()?.len() > Image::MAX_BYTES {
        return Ok(Looked::TooLarge);
    }
    file.take(Image::MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(Looked::Picture(Image::new(kind, &bytes)))
}

/// The size limit in megabytes, for texts.
pub(super) fn max_mb() -> f64 {
    const MEGABYTE: u32 = 1_000_000;
    f64::from(u32::try_from(Image::MAX_BYTES).unwrap_or(u32::MAX)) / f64::from(MEGABYTE)
}
