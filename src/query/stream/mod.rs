//! Answers in parts: pages of an export, and the live tail.
//!
//! Must never know: HTTP.

mod export;
mod tail;

pub use export::{ExportPage, ExportRequest, export};
pub use tail::{Tail, TailCell, TailEvent, TailRequest};
