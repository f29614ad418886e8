//! Style sheets and scripts, inside the binary. Each has the hash of its content in its address, and
//! is compressed once.

use std::collections::HashMap;
use std::io::Write;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::GzEncoder;
use include_dir::{Dir, File, include_dir};
use ring::digest::{SHA256, digest};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/admin/dashboard/assets");

static ASSETS: LazyLock<HashMap<&'static str, Asset>> = LazyLock::new(|| {
    let files = FILES.files();
    files
        .filter_map(|file| Some((file.path().to_str()?, Asset::of(file))))
        .collect()
});

/// All scripts in one hash: a script names its imports without one, so they share a folder that
/// changes with any of them.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut all = Vec::new();
    let mut files: Vec<&File<'_>> = FILES.files().collect();
    files.sort_by_key(|file| file.path());
    for file in files {
        all.extend_from_slice(file.contents());
    }
    let hash = digest(&SHA256, &all);
    BASE64_URL_SAFE_NO_PAD.encode(&hash.as_ref()[..9])
});

struct Asset {
    plain: &'static [u8],
    gzipped: Vec<u8>,
    etag: String,
    media_type: &'static str,
}

impl Asset {
    fn of(file: &'static File<'static>) -> Self {
        let plain = file.contents();
        let hash = digest(&SHA256, plain);
        let ending = file.path().extension().and_then(|ending| ending.to_str());
        Asset {
            gzipped: gzipped(plain),
            etag: BASE64_URL_SAFE_NO_PAD.encode(&hash.as_ref()[..12]),
            media_type: match ending {
                Some("css") => "text/css; charset=utf-8",
                Some("js") => "text/javascript; charset=utf-8",
                Some("svg") => "image/svg+xml",
                _ => "application/octet-stream",
            },
            plain,
        }
    }
}

fn gzipped(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(plain).and_then(|()| encoder.finish());
    written.expect("memory takes every byte")
}

/// The address of an asset.
pub(in crate::admin) fn address(name: &str) -> String {
    format!("/assets/{}/{name}", *VERSION)
}

/// Serves an asset. An address with an old hash gets the file of now, which must not be kept.
pub(super) async fn serve(
    Path((version, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let Some(asset) = ASSETS.get(name.as_str()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let takes_gzip = headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.contains("gzip"));
    let etag = match takes_gzip {
        true => format!("\"{}-gz\"", asset.etag),
        false => format!("\"{}\"", asset.etag),
    };
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == etag.as_bytes());
    let kept = match version == *VERSION {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let mut response = match (is_known, takes_gzip) {
        (true, _) => StatusCode::NOT_MODIFIED.into_response(),
        (false, true) => asset.gzipped.clone().into_response(),
        (false, false) => asset.plain.into_response(),
    };
    let to = response.headers_mut();
    to.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(asset.media_type),
    );
    to.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    to.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        to.insert(header::ETAG, etag);
    }
    if takes_gzip && !is_known {
        to.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Browsers ask for it on pages that name none.
pub(super) async fn icon(headers: HeaderMap) -> Response {
    serve(Path((VERSION.clone(), "mark.svg".to_owned())), headers).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget of the dashboard.
    #[test]
    fn scripts_and_styles_stay_small() {
        let bytes = |ending: &str| {
            let files = ASSETS.iter().filter(|(name, _)| name.ends_with(ending));
            files.map(|(_, asset)| asset.gzipped.len()).sum::<usize>()
        };
        assert!(
            bytes(".js") <= 60 * 1024,
            "{} bytes of scripts",
            bytes(".js")
        );
        assert!(
            bytes(".css") <= 20 * 1024,
            "{} bytes of styles",
            bytes(".css")
        );
    }

    #[tokio::test]
    async fn an_asset_is_compressed_once_and_known_by_its_hash() {
        let path = || Path((VERSION.clone(), "app.css".to_owned()));
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, "gzip, br".parse().unwrap());
        let first = serve(path(), headers.clone()).await;
        assert_eq!(first.headers()[header::CONTENT_ENCODING], "gzip");
        assert!(
            first.headers()[header::CACHE_CONTROL]
                .to_str()
                .unwrap()
                .contains("immutable")
        );
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        let second = serve(path(), headers).await;
        assert_eq!(second.status(), StatusCode::NOT_MODIFIED);
        let old = Path(("old".to_owned(), "app.css".to_owned()));
        let old = serve(old, HeaderMap::new()).await;
        assert_eq!(old.headers()[header::CACHE_CONTROL], "no-cache");
        let none = Path((VERSION.clone(), "../Cargo.toml".to_owned()));
        assert_eq!(
            serve(none, HeaderMap::new()).await.status(),
            StatusCode::NOT_FOUND
        );
    }
}
