//! An erasure as it is stored, and whether its files are changed.
//!
//! Must never know: the store.

use std::{ops::Range, sync::Arc};

use crate::model::{Cell, SeriesId, UnixMillis};

/// An accepted erasure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Erasure {
    /// The last record before the erasure: all cells up to it are in files.
    pub(crate) through: u64,
    /// True when the files are changed.
    pub(crate) is_applied: bool,
    pub(crate) range: Range<UnixMillis>,
    /// The series, ascending.
    pub(crate) series: Vec<SeriesId>,
    /// The slots that the range cuts, with the cells that remain.
    pub(crate) cut: Vec<CutSlot>,
}

/// A slot that is erased in part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CutSlot {
    /// The name of the level.
    pub(crate) level: String,
    /// The start.
    pub(crate) start: UnixMillis,
    /// The series that change, ascending, with their remaining cells.
    pub(crate) cells: Vec<(SeriesId, Cell)>,
}

/// The erasure since the last cut.
#[derive(Debug, Clone, Default)]
pub(crate) enum Pending {
    /// There is none, or its files are changed.
    #[default]
    Nothing,
    /// The files are not changed yet.
    Stored(Arc<Erasure>),
    /// Storing the erasure failed, and the row may exist: the next checkpoint removes it.
    Unsure,
}
