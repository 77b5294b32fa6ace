//! The bytes that all documents with the same columns share.
//!
//! Must never know: cells.

use std::ops::Range;

/// The versions of the layout: without and with the column of moments.
pub(super) const VERSIONS: [i32; 2] = [1, 2];
/// The offset of the version, after the length and the kind and name of the element.
pub(super) const VERSION_AT: usize = 4 + 3;

/// The offset of the number of slots, after the version, series, start and width.
pub(super) const SLOTS_AT: usize = 64;

/// The bytes of documents with the same columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// The offset of the checksum, which covers all bytes before it.
    pub(super) checksum_at: usize,
    /// An empty document.
    pub(super) shell: Vec<u8>,
    /// The parts that are the same in all documents.
    fixed: Vec<Range<usize>>,
}

impl Form {
    /// Completes a document after its columns. `variable` are the offsets and lengths of the parts
    /// that differ between documents, ascending.
    pub(super) fn new(mut shell: Vec<u8>, mut variable: Vec<(usize, usize)>, version: i32) -> Self {
        let checksum_at = element(&mut shell, 0x12, "checksum").len();
        shell.extend_from_slice(&[0; 8]);
        variable.push((checksum_at, 8));
        shell.push(0);
        let length = shell.len() as i32;
        put(&mut shell, 0, length.to_le_bytes());
        put(&mut shell, VERSION_AT, version.to_le_bytes());
        variable.push((shell.len(), 0));
        let mut from = 0;
        let mut fixed = Vec::with_capacity(variable.len());
        for (at, bytes) in variable {
            fixed.push(from..at);
            from = at + bytes;
        }
        Self { checksum_at, shell, fixed }
    }

    /// Returns the offset of the first constant byte that differs from the shell.
    pub(super) fn damaged_at(&self, doc: &[u8]) -> Option<usize> {
        let differs = |part: &&Range<usize>| doc[(*part).clone()] != self.shell[(*part).clone()];
        self.fixed.iter().find(differs)?.clone().find(|at| doc[*at] != self.shell[*at])
    }
}

pub(super) fn element<'a>(doc: &'a mut Vec<u8>, kind: u8, name: &str) -> &'a mut Vec<u8> {
    doc.push(kind);
    doc.extend_from_slice(name.as_bytes());
    doc.push(0);
    doc
}

pub(super) fn put<const N: usize>(doc: &mut [u8], at: usize, bytes: [u8; N]) {
    doc[at..at + N].copy_from_slice(&bytes);
}

pub(super) fn get<const N: usize>(doc: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&doc[at..at + N]);
    bytes
}
