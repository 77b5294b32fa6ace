//! Encodings that journal, head, catalog and segments share: numbers as bytes, series in rows.
//!
//! Must never know: the meaning of numbers, where they are stored.

pub(crate) mod fixed;
pub(crate) mod lanes;
pub(crate) mod moment;
pub(crate) mod number;
pub(crate) mod varint;
