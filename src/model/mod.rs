//! The words of the domain, as pure values: no clock, no file, no thread.
//!
//! Must never know: how anything is stored, sent or scheduled. Everybody else calls it.

pub mod cell;
pub mod counter;
pub mod document;
pub mod gaps;
pub mod granularity;
pub mod keeping;
pub mod seen;
pub mod sequence;
pub mod series;
pub mod span;
pub mod time;

pub use cell::Cell;
pub use counter::{Correction, Observed, Reading, SeriesState, is_stale_marker};
pub use document::DocumentLayout;
pub use gaps::Gaps;
pub use granary_protocol::Kind;
pub use granularity::{Granularity, GranularitySet};
pub use keeping::Keeping;
pub use seen::{SeenTimes, TimeVerdict};
pub use sequence::{SenderWindow, SequenceVerdict};
pub use series::{METRIC_TAG, SeriesId, SeriesKey, SeriesKeyError, SeriesLimits};
pub use span::Span;
pub use time::{Clock, Moment, SystemClock, UnixMillis};
