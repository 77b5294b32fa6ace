//! A request for documents, and its answer.
//!
//! Must never know: how documents are read.

use std::{collections::BTreeMap, ops::Range};

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{LevelsDocument, NestedDocument};
use crate::{
    model::UnixMillis,
    query::{Display, Resolution, Selector, SeriesMerge},
};

/// A request for documents.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentsRequest {
    /// The series.
    pub selector: Selector,
    /// The granularity of the documents; rows may have any width.
    pub resolution: Resolution,
    /// The time range; documents that overlap it are returned whole.
    pub range: Range<UnixMillis>,
    /// The form of the documents.
    pub form: DocumentsForm,
    /// The displayed number of a row; `None` lets the kind decide.
    pub display: Option<Display>,
    /// The time zone of hours, days and months; UTC when `None`.
    pub time_zone: Option<TimeZone>,
    /// Maximum number of slots of a series with automatic resolution.
    pub points: Option<usize>,
    /// The merging of series.
    pub merge: SeriesMerge,
    /// True to include preallocated documents without samples, in the nested form.
    pub shells: bool,
}

/// The form of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DocumentsForm {
    /// The stored form: slots by number.
    #[default]
    Nested,
    /// One document per month: days > hours > minutes.
    Levels,
    /// One row with date and value per slot.
    Rows,
}

/// Documents or rows. The notes are remarks for the reader, for example that a part comes from a
/// coarser granularity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the types explain the fields")]
pub enum DocumentsAnswer {
    /// Documents in order of series and time.
    Documents { documents: Vec<NestedDocument>, notes: Vec<String> },
    /// Months in order of series and time.
    Levels { documents: Vec<LevelsDocument>, notes: Vec<String> },
    /// Rows in order of time, then series. The row of an empty slot has no value.
    Rows { rows: Vec<DocumentRow>, notes: Vec<String> },
}

/// A slot as a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentRow {
    /// Start of the slot, RFC 3339.
    pub date: String,
    /// The displayed number; `None` for an empty slot.
    pub value: Option<f64>,
    /// The metric's name.
    pub metric: String,
    /// The tags.
    pub tags: BTreeMap<String, String>,
}
