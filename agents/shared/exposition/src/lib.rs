//! Parsers of exposition formats: Prometheus and OpenMetrics text, and Protocol Buffers (the
//! OpenMetrics 1.0 specification; prometheus.io, "Exposition formats").
//!
//! Agents parse responses with [`read`], or with [`read_from`] while they arrive; the daemon's
//! import parses files line by line with the parts. Must never know: the origin of the bytes, and
//! the destination of samples.

pub mod buckets;
mod families;
mod format;
mod labels;
mod names;
mod native;
mod pieces;
mod proto;
mod read;
mod sample;
mod text;
pub mod wire;

pub use families::{Families, Family, Type, kind_of_name};
pub use format::Format;
pub use names::Names;
pub use native::NativeHistograms;
pub use pieces::MemoryRequest;
pub use read::{fuzz, read, read_from};
pub use sample::{Fault, Sample};
pub use text::{Line, SeriesParts, cut, parts};
