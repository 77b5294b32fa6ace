//! Sealed documents: the cells of neighbouring series over one span of slots, compressed, in flat
//! files that never change. FORMAT.md describes the bytes.
//!
//! `segment` is the file, `segment_writer` makes it, `group` is what it is made of, `times` and
//! `values` what a group is made of, `stream` how numbers are packed, `heads` those of groups
//! that were read lately. Must never know: open documents,
//! and which files count.

mod bits;
mod counter;
mod cursor;
pub(crate) mod fuzzing;
mod gauge;
pub(crate) mod group;
pub(crate) mod heads;
mod rates;
mod scratch;
pub(crate) mod segment;
pub(crate) mod segment_writer;
mod stream;
#[cfg(test)]
mod tests;
mod times;
mod values;

pub use self::values::Columns;
pub(crate) use self::{cursor::Misfit, scratch::Scratch};
