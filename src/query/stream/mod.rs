//! Answers in parts: pages of an export, and the live tail.
//!
//! Must never know: HTTP.

mod export;
mod tail;

pub use export::{ExportPage, ExportRequest, export, export_of_question};
pub use tail::{Tail, TailCell, TailEvent, TailRequest};
