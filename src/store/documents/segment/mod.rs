//! Sealed documents: the cells of neighbouring series over one span of slots, compressed, in flat
//! files that never change. FORMAT.md describes the bytes.
//!
//! `file` is the file, `writer` makes it, `tile` is what it is made of, `times` and
//! `values` what a tile is made of, `stream` how numbers are packed, `heads` those of tiles
//! that were read lately. Must never know: open documents,
//! and which files count.

mod bits;
mod buffers;
mod cursor;
pub(crate) mod file;
pub(crate) mod fuzzing;
pub(crate) mod heads;
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
