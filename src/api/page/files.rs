//! The page's files, as `npm run build` writes them to `src/web/dist`. A release build embeds them;
//! other builds read them from that folder. Without the folder there are no files.
//!
//! Must never know: when a file is requested, and how it is served.

use actix_web::web::Bytes;
use rust_embed::{Embed, EmbeddedFile};

#[derive(Embed)]
#[folder = "src/web/dist/"]
#[allow_missing = true]
struct EmbeddedFiles;

/// A file of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) bytes: Bytes,
    /// The first half of the content's SHA-256, in hexadecimal digits.
    pub(super) fingerprint: String,
}

/// A function that returns a file by its path in the folder, such as `assets/index-1a2b.js`.
pub(super) type Files = fn(&str) -> Option<File>;

/// Returns a built file.
pub(super) fn built_file(path: &str) -> Option<File> {
    let EmbeddedFile { data, metadata } = EmbeddedFiles::get(path)?;
    let bytes = match data {
        std::borrow::Cow::Borrowed(data) => Bytes::from_static(data),
        std::borrow::Cow::Owned(data) => Bytes::from(data),
    };
    let hash = metadata.sha256_hash();
    let fingerprint = u128::from_be_bytes(*hash.first_chunk()?);
    Some(File { bytes, fingerprint: format!("{fingerprint:032x}") })
}

/// Returns the media type for the extension of a path.
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
