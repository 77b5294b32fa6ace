//! The vocabulary of the domain, as pure values. Only the retention of a granularity can change
//! after its creation (`retention.rs`).
//!
//! Must never know: the clock, storage, transport, scheduling. All other folders use it.

#[cfg(test)]
extern crate self as granary;
#[cfg(test)]
#[path = "../../tests/support/times.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod test_times;

// Paths are those of the crate granary, which reexports these crates.
#[cfg(test)]
use crate as model;

pub mod address;
mod audit;
pub mod batch;
pub mod cell;
pub mod counter;
pub mod display;
pub mod distributions;
pub mod duration;
pub mod gaps;
pub mod go_regex;
pub mod granularity;
pub mod graphite;
pub mod histogram_cell;
pub mod histogram_readings;
pub mod host;
pub mod key_selector;
pub mod metric_limits;
pub mod metric_pattern;
pub mod own_sender;
pub mod partition;
pub mod project;
pub mod replica;
mod retention;
pub mod retention_rule;
pub mod retention_starts;
pub mod seen;
mod sender_limit;
pub mod sequence;
pub mod series;
pub mod span;
pub mod tag_pairs;
pub mod time;
pub mod verdict;
pub mod with_causes;
pub mod with_noun;

pub use address::without_password;
pub use audit::{AUDIT_TEXT_BYTES_MAX, AuditKind, AuditOutcome, AuditRecord, audit_text};
pub use batch::{AcceptedBatch, BatchNumber, Deduplication, HistogramSample};
pub use cell::Cell;
pub use counter::{Correction, ObservedCell, Reading, STALE_MARKER, SeriesState, is_stale_marker};
pub use display::Display;
pub use distributions::{DISTRIBUTIONS_MAX, Distributions, OBSERVATION_BYTES, observation};
pub use duration::{LENGTH_MS_MAX, LENGTH_UNITS, parse_duration_ms};
pub use gaps::Gaps;
pub use granary_histogram::{self as histogram, Histogram, HistogramFault, ResetHint};
pub use granary_protocol::{JsonHistogram, Kind};
pub use granularity::{
    DOCUMENT_PAGE_BYTES, DOCUMENT_SLOTS_MAX, Granularity, GranularityIndex, GranularitySet,
};
pub use histogram_cell::{HistogramCell, HistogramSlot};
pub use histogram_readings::{HistogramReading, HistogramReadings};
pub use host::{
    AgentRecord, AgentStatus, HostChanges, HostEvent, HostEventEntry, HostEventKind, HostRecord,
    HostRecords, HostState, HostStatus, HostTotals, ListeningSpan, StoredHosts,
};
pub use key_selector::{KeySelector, PROJECT_TAG, TagComparison, TagMatcher};
pub use metric_limits::MetricLimits;
pub use metric_pattern::MetricPattern;
pub use own_sender::{OWN_SENDER_PREFIX, is_own_sender, own_sender};
pub use partition::PartitionId;
pub use project::{
    DEFAULT_PROJECT, PROJECT_NAME_BYTES_MAX, ProjectName, ProjectNameError, split_stored_name,
};
pub use retention_rule::{RETENTION_RULES_MAX, RetentionRule, RuleLevel, split_level};
pub use retention_starts::RetentionStarts;
pub use seen::{SeenTimes, TimeVerdict};
pub use sender_limit::SenderLimit;
pub use sequence::{SenderWindow, SequenceVerdict, WINDOW_BATCHES};
pub use series::{METRIC_TAG, SeriesId, SeriesInfo, SeriesKey, SeriesKeyError, SeriesLimits};
pub use span::Span;
pub use tag_pairs::{quoted_words, tag_pairs};
pub use time::{Moment, UnixMillis};
pub use verdict::{BatchVerdict, DefinitionVerdict, GroupVerdict, TimesTally};
pub use with_causes::with_causes;
pub use with_noun::with_noun;
