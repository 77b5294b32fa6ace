//! What exporters show of their metrics: Prometheus and OpenMetrics text, and the same in Protocol
//! Buffers (the OpenMetrics 1.0 specification; prometheus.io, "Exposition formats").
//!
//! The scraping agent reads whole answers with [`read`]; the daemon's import reads files line by
//! line with the parts. This crate knows bytes, never where they come from or where samples go.

mod families;
mod format;
mod labels;
mod proto;
mod read;
mod text;
pub mod wire;

pub use families::{Families, Family, Type, kind_of_name};
pub use format::Format;
pub use read::{Fault, Sample, fuzz, read};
pub use text::{Line, Names, Parts, cut, parts};
