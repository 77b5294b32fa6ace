//! A document as it is stored, byte by byte, for people who want to see it.
//!
//! Must never know: how a document is laid out; each place of documents says that of its own.

use crate::model::{Cell, UnixMillis};

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentState {
    /// Made ahead of its time: every cell is zero.
    Shell,
    /// It has samples, and is changed in place.
    Open,
    /// It is compressed, and is not changed; where its numbers lie is not shown.
    Sealed,
}

/// A part of a document's bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPart {
    /// What it is called.
    pub name: &'static str,
    /// Where it begins.
    pub offset: usize,
    /// How many bytes it has.
    pub length: usize,
    /// What it says, where that is a number.
    pub value: Option<f64>,
}

/// A slot of a document, empty ones too.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSlot {
    /// When it begins.
    pub start: UnixMillis,
    /// Its cell.
    pub cell: Cell,
    /// The numbers of the cell.
    pub parts: Vec<StoredPart>,
}

/// A document with its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDocument {
    /// What it is.
    pub state: DocumentState,
    /// All of it.
    pub bytes: Vec<u8>,
    /// What is not of a slot.
    pub header: Vec<StoredPart>,
    /// All slots, ascending.
    pub slots: Vec<StoredSlot>,
}
