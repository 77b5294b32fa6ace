//! A request for the cells of a selector.
//!
//! Must never know: how series are selected, how cells are read.

use crate::{
    policy::query_plan::Windows,
    query::{QueryError, SeriesMatcher},
    store::Columns,
};

/// The series of a selector that are in memory at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// All series, up to the limit of series.
    All,
    /// A chunk of any number of series.
    Chunk,
}

/// A function that returns the matchers of a selector.
pub(super) type Matchers<'w> = dyn Fn() -> Result<Vec<Vec<SeriesMatcher>>, QueryError> + 'w;

/// A request for the cells of a selector.
#[derive(Clone, Copy)]
pub(super) struct ReadRequest<'w> {
    /// The text that identifies the matchers.
    pub(super) text: &'w str,
    pub(super) matchers: &'w Matchers<'w>,
    pub(super) windows: &'w Windows,
    pub(super) needed: NeededCells,
    pub(super) columns: Columns,
    pub(super) held: Held,
}

/// The cells that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NeededCells {
    /// All cells within the windows.
    All,
    /// The newest cell of each series up to the only time, possibly with older cells.
    Newest,
}
