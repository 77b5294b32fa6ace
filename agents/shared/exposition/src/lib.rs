//! What exporters show of their metrics: Prometheus and OpenMetrics text, and the same in Protocol
//! Buffers (the OpenMetrics 1.0 specification; prometheus.io, "Exposition formats").
//!
//! Agents read answers with [`read`] and, while they arrive, with [`read_from`]; the daemon's import reads files line by
//! line with the parts. This crate knows bytes, never where they come from or where samples go.

mod families;
mod format;
mod labels;
mod names;
mod pieces;
mod proto;
mod read;
mod sample;
mod text;
pub mod wire;

pub use families::{Families, Family, Type, kind_of_name};
pub use format::Format;
pub use names::Names;
pub use pieces::Room;
pub use read::{fuzz, read, read_from};
pub use sample::{Fault, Sample};
pub use text::{Line, Parts, cut, parts};
