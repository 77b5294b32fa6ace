//! The page's files, as `npm run build` writes them to `src/web/dist`: a release build has them
//! embedded, others read them from there. Without that folder there are none.
//!
//! Must never know: which of them is asked for when, and how it is answered.

use actix_web::web::Bytes;
use rust_embed::{Embed, EmbeddedFile};

#[derive(Embed)]
#[folder = "src/web/dist/"]
#[allow_missing = true]
struct Built;

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) bytes: Bytes,
    /// Tells what it holds from what other files hold, in hexadecimal digits.
    pub(super) fingerprint: String,
}

/// Hands out a file by its path below the folder, such as `assets/index-1a2b.js`.
pub(super) type Files = fn(&str) -> Option<File>;

/// The files that were built.
pub(super) fn built(path: &str) -> Option<File> {
    let EmbeddedFile { data, metadata } = Built::get(path)?;
    let bytes = match data {
        std::borrow::Cow::Borrowed(data) => Bytes::from_static(data),
        std::borrow::Cow::Owned(data) => Bytes::from(data),
    };
    let hash = metadata.sha256_hash();
    let fingerprint = u128::from_be_bytes(*hash.first_chunk()?);
    Some(File { bytes, fingerprint: format!("{fingerprint:032x}") })
}

/// The media type by the ending of a name.
pub(super) fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}
