//! A document as it is stored, byte by byte, for display.
//!
//! Must never know: the layout of a document, which each implementation of documents describes.

use crate::model::{Cell, UnixMillis};

/// The state of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentState {
    /// The document was preallocated, and every cell is zero.
    Shell,
    /// The document has samples, and is updated in place.
    Open,
    /// The document is compressed and immutable; the offsets of its numbers are not shown.
    Sealed,
}

/// A part of a document's bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPart {
    /// The name.
    pub name: &'static str,
    /// The offset of the first byte.
    pub offset: usize,
    /// The number of bytes.
    pub length: usize,
    /// The value, when it is a number.
    pub value: Option<f64>,
}

/// A slot of a document, which may be empty.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSlot {
    /// Start of the slot.
    pub start: UnixMillis,
    /// The cell of the slot.
    pub cell: Cell,
    /// The numbers of the cell.
    pub parts: Vec<StoredPart>,
}

/// A document with its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDocument {
    /// The state.
    pub state: DocumentState,
    /// All bytes of the document.
    pub bytes: Vec<u8>,
    /// The parts outside of slots.
    pub header: Vec<StoredPart>,
    /// All slots, ascending.
    pub slots: Vec<StoredSlot>,
}
