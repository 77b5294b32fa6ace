//! The cells of histograms: their bytes, and the map of the cells that are not in files.
//!
//! A series of histograms also has the cells of its counts, which decide everything about slots:
//! marks, holes, retention, partitions. Cells of histograms move with them, in the same
//! transactions, into tables of their own, which a file without histograms lacks. FORMAT.md
//! describes the bytes. Must never know: when cells move.

pub(crate) mod cell_bytes;
pub(crate) mod entries;
pub(crate) mod map;
#[cfg(test)]
mod tests;
