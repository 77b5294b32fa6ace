//! Sealed documents: the cells of neighbouring series over one span of slots, compressed, in flat
//! files that never change. FORMAT.md describes the bytes.
//!
//! `file` reads a segment and `writer` writes one; a segment consists of `tile`s, a tile of `times`
//! and `values`, which are lists of numbers packed by `stream`; `cache` keeps decoded heads
//! of tiles and the `column`s of series. Must never know: open documents, which files count.

mod bits;
mod buffers;
pub(crate) mod cache;
mod column;
mod cursor;
pub(crate) mod file;
pub(crate) mod fuzzing;
pub(crate) mod histograms;
pub(crate) mod room;
mod scratch;
mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod tile;
mod times;
mod values;
pub(crate) mod writer;

pub use self::values::Columns;
pub(crate) use self::{cursor::Misfit, scratch::Scratch};
