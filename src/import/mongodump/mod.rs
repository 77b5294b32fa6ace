//! Dumps of MongoDB collections by `mongodump`: documents in BSON, one after the other.
//!
//! Each document is read by its shape, which is one of the five that time series have in MongoDB:
//!
//! - `levels`: a month with `days`, their `hours` and their `minutes`, and sums at every level
//! - `bucket`: an hour with a list `measurements`
//! - `slots`: a minute with a number for each second, or an hour with 60 minutes of 60 seconds
//! - `columns`: a bucket of a time series collection (`system.buckets`)
//!
//! Must never know: where the file is.

mod bucket;
mod columns;
mod emit;
mod levels;
mod slots;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Read};

use bson::{Document, RawBsonRef, RawDocument};

use super::{Location, Source, SourceFault};
use crate::{ingest::rows::Rows, policy::RefusalReason};
use emit::Emitter;

/// The maximum size of a document: that of MongoDB, with its room for a server's own fields.
const DOCUMENT_BYTES_MAX: usize = (16 << 20) + (16 << 10);
/// The smallest document: its length and a zero.
const DOCUMENT_BYTES_MIN: usize = 5;
/// The maximum nesting depth of a document: that of MongoDB.
const DEPTH_MAX: usize = 100;
/// The first bytes of an archive, which has several collections.
const ARCHIVE: [u8; 4] = [0x6d, 0xe2, 0x99, 0x81];

/// A file with the documents of one collection.
#[derive(Debug)]
pub struct MongoDump<'a, R> {
    input: R,
    collection: &'a str,
    /// The number of documents so far.
    documents: u64,
    bytes: Vec<u8>,
}

impl<'a, R: BufRead> MongoDump<'a, R> {
    /// Creates a source from a reader.
    pub fn new(input: R, collection: &'a str) -> Self {
        Self { input, collection, documents: 0, bytes: Vec::new() }
    }

    /// Reads the bytes of the next document; returns false at the end.
    fn next_bytes(&mut self) -> Result<bool, SourceFault> {
        let location = self.documents + 1;
        let failed = |cause: io::Error| {
            if cause.kind() == io::ErrorKind::UnexpectedEof {
                return SourceFault::Damaged(format!(
                    "document {location}: the file ends within it"
                ));
            }
            SourceFault::Read { line: location, cause }
        };
        if self.input.fill_buf().map_err(failed)?.is_empty() {
            return Ok(false);
        }
        let mut head = [0; 4];
        self.input.read_exact(&mut head).map_err(failed)?;
        if location == 1 && head == ARCHIVE {
            return Err(SourceFault::Damaged(
                "this is an archive: dump without --archive, or unpack it with mongorestore"
                    .to_owned(),
            ));
        }
        let length = usize::try_from(u32::from_le_bytes(head)).unwrap_or(usize::MAX);
        if !(DOCUMENT_BYTES_MIN..=DOCUMENT_BYTES_MAX).contains(&length) {
            return Err(SourceFault::Damaged(format!(
                "document {location}: a length of {length} bytes is not one of a BSON document; is \
                 this a file of mongodump?"
            )));
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&head);
        let rest = (length - head.len()) as u64;
        let read = self.input.by_ref().take(rest).read_to_end(&mut self.bytes).map_err(failed)?;
        if (read as u64) < rest {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        self.documents = location;
        Ok(true)
    }
}

impl<R: BufRead> Source for MongoDump<'_, R> {
    fn read(&mut self, rows: &mut Rows<'_>) -> Result<Option<Location>, SourceFault> {
        if !self.next_bytes()? {
            return Ok(None);
        }
        match parse(&self.bytes) {
            Ok(document) => read_document(&document, &mut Emitter::new(self.collection, rows)),
            Err(problem) => rows.refuse(RefusalReason::BadSample, 1, || problem),
        }
        Ok(Some(self.documents))
    }
}

/// Parses a document. Its depth is checked first, because the library parses recursively.
fn parse(bytes: &[u8]) -> Result<Document, String> {
    let invalid = |cause: &dyn std::fmt::Display| format!("not BSON: {cause}");
    let mut levels =
        vec![RawDocument::from_bytes(bytes).map_err(|cause| invalid(&cause))?.into_iter()];
    while let Some(level) = levels.last_mut() {
        let inner = match level.next() {
            None => {
                levels.pop();
                continue;
            }
            Some(Err(cause)) => return Err(invalid(&cause)),
            Some(Ok((_, RawBsonRef::Document(inner)))) => inner,
            Some(Ok((_, RawBsonRef::Array(inner)))) => {
                RawDocument::from_bytes(inner.as_bytes()).map_err(|cause| invalid(&cause))?
            }
            Some(Ok((_, RawBsonRef::JavaScriptCodeWithScope(code)))) => code.scope,
            Some(Ok(_)) => continue,
        };
        if levels.len() == DEPTH_MAX {
            return Err(format!("the document is nested deeper than {DEPTH_MAX} levels"));
        }
        levels.push(inner.into_iter());
    }
    Document::from_reader(bytes).map_err(|cause| invalid(&cause))
}

/// Reads a document by its shape.
fn read_document(document: &Document, emitter: &mut Emitter<'_, '_>) {
    let is_read = columns::read(document, emitter)
        || levels::read(document, emitter)
        || bucket::read(document, emitter)
        || slots::read(document, emitter);
    if !is_read {
        let fields: Vec<_> = document.keys().take(10).map(String::as_str).collect();
        emitter.refuse(1, || {
            format!(
                "a document with the fields {} has none of the known shapes (days, measurements, \
                 values or seconds with timestamp_minute or timestamp_hour, control with data)",
                fields.join(", ")
            )
        });
    }
}

/// Returns the collection of a file's name: `weather` of `system.buckets.weather.bson.gz`.
pub fn collection_of(file: &str) -> String {
    let name = [".gz", ".zst"].iter().find_map(|end| file.strip_suffix(end)).unwrap_or(file);
    let name = name.strip_suffix(".bson").unwrap_or(name);
    let name = name.strip_prefix("system.buckets.").unwrap_or(name);
    // mongodump writes characters that a file's name cannot have as `%2F`.
    let mut parts = name.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let decoded = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        if let Some(byte) = decoded.filter(u8::is_ascii) {
            out.push(char::from(byte));
            out.push_str(part.get(2..).unwrap_or_default());
        } else {
            out.push('%');
            out.push_str(part);
        }
    }
    out
}
