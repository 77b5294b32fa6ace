//! The series and samples of a document, and its fields as numbers, times and tags.
//!
//! Must never know: shapes of documents.

use bson::{Bson, Document};

use crate::{
    ingest::{
        rows::{DescribedSeries, Rows, Target},
        series_cache::Fingerprint,
    },
    model::{Kind, SeriesKey, UnixMillis},
    policy::RefusalReason,
};

const PROTOCOL: u8 = 66;

/// Passes the samples of one document on.
pub(super) struct Emitter<'a, 'r> {
    pub(super) collection: &'a str,
    rows: &'a mut Rows<'r>,
}

impl<'a, 'r> Emitter<'a, 'r> {
    pub(super) fn new(collection: &'a str, rows: &'a mut Rows<'r>) -> Self {
        Self { collection, rows }
    }

    /// Returns the name of a field's metric.
    pub(super) fn metric(&self, field: &str) -> String {
        format!("{}_{field}", self.collection)
    }

    /// Returns the series of a metric with tags. The document decides the kind.
    pub(super) fn series(&mut self, metric: &str, tags: &Tags, kind: Kind) -> Target {
        let mut text = format!("{kind}\0{metric}");
        for (name, value) in &tags.0 {
            for part in ["\0", name, "\0", value] {
                text.push_str(part);
            }
        }
        self.rows.series(Fingerprint::new(PROTOCOL, text.as_bytes()), |limits| {
            let pairs = tags.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let key = SeriesKey::new(metric, pairs, limits).map_err(|cause| cause.to_string())?;
            Ok(DescribedSeries { key, kind, is_declared: true, unit: "".into() })
        })
    }

    pub(super) fn push(&mut self, series: Target, at: UnixMillis, value: f64) {
        self.rows.push_finite(series, at, value);
    }

    pub(super) fn refuse(&mut self, count: u64, message: impl FnOnce() -> String) {
        self.rows.refuse(RefusalReason::BadSample, count, message);
    }

    /// Counts values that are not numbers.
    pub(super) fn refuse_text(&mut self, field: &str, count: u64) {
        self.rows.refuse(RefusalReason::TextField, count, || {
            format!("field {field} is not a number; only numbers are stored")
        });
    }
}

/// The tags of a document's series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tags(pub(super) Vec<(String, String)>);

impl Tags {
    /// Returns the tags of those fields of a document that `is_tag` accepts. Fields of documents
    /// become tags with dots in their names.
    pub(super) fn from_document(document: &Document, is_tag: impl Fn(&str) -> bool) -> Self {
        let mut tags = Self::default();
        for (name, value) in document.iter().filter(|(name, _)| is_tag(name)) {
            tags.add(name, value, 0);
        }
        tags
    }

    /// Adds the value of a field; arrays, and documents below some levels, are not tags.
    pub(super) fn add(&mut self, name: &str, value: &Bson, depth: usize) {
        const DEPTH_MAX: usize = 8;
        if let Bson::Document(inner) = value {
            if depth < DEPTH_MAX {
                inner.iter().for_each(|(field, value)| {
                    self.add(&format!("{name}.{field}"), value, depth + 1);
                });
            }
            return;
        }
        let text = value.as_str().map(str::to_owned);
        let text = text.or_else(|| value.as_object_id().map(bson::oid::ObjectId::to_hex));
        let text = text.or_else(|| value.as_bool().map(|flag| flag.to_string()));
        let text = text.or_else(|| time(Some(value)).map(|at| at.timestamp().to_string()));
        let text = text.or_else(|| number(value).map(|number| number.to_string()));
        // An empty tag is a missing one.
        let text = text.filter(|text| !text.is_empty());
        self.0.extend(text.map(|text| (name.to_owned(), text)));
    }
}

/// Returns a number of any BSON type of numbers.
pub(super) fn number(value: &Bson) -> Option<f64> {
    if let Bson::Decimal128(number) = value {
        return number.to_string().parse().ok();
    }
    let number = value.as_f64().or_else(|| value.as_i32().map(f64::from));
    number.or_else(|| value.as_i64().map(|number| number as f64))
}

/// Returns a time.
pub(super) fn time(value: Option<&Bson>) -> Option<UnixMillis> {
    value?.as_datetime().map(|at| UnixMillis(at.timestamp_millis()))
}
