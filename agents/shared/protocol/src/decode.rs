//! The BSON decoder of batches, which does not copy columns.
//!
//! Each fault is reported with its location in the document, so that the author of a sender can fix
//! it.

use bson::raw::{RawBsonRef, RawDocument};

use crate::{
    AGENT_BYTES_MAX, BATCHES_PER_REQUEST_MAX, Batch, Kind, PROTOCOL_VERSION, SeriesDefinition,
};

/// A fault in a body, with its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {problem}")]
pub struct DecodeError {
    /// The location in the body, such as `batch 2: samples.values`.
    pub location: String,
    /// The problem and the expectation.
    pub problem: String,
}

impl DecodeError {
    pub(crate) fn new(location: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { location: location.into(), problem: problem.into() }
    }

    /// Adds an outer part to the location.
    fn within(mut self, outer: &str) -> Self {
        let dot = if self.location.is_empty() { "" } else { "." };
        self.location = format!("{outer}{dot}{}", self.location);
        self
    }
}

/// A batch that borrows its columns from the request's body.
#[derive(Debug, Clone, Default)]
pub struct BatchView<'a> {
    /// See [`crate::Batch::agent`].
    pub agent: &'a str,
    /// See [`crate::Batch::epoch`].
    pub epoch: i64,
    /// See [`crate::Batch::seq`].
    pub seq: u64,
    /// See [`crate::Batch::sent`].
    pub sent: i64,
    /// See [`crate::Batch::series`].
    pub series: Vec<SeriesView<'a>>,
    refs: &'a [u8],
    times: &'a [u8],
    values: &'a [u8],
    starts: &'a [u8],
    /// See [`crate::Batch::histograms`].
    pub histograms: &'a [u8],
}

/// A series definition that borrows from the request's body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeriesView<'a> {
    /// See [`crate::SeriesDefinition::reference`].
    pub reference: u32,
    /// See [`crate::SeriesDefinition::metric`].
    pub metric: &'a str,
    /// See [`crate::SeriesDefinition::tags`].
    pub tags: Vec<(&'a str, &'a str)>,
    /// See [`crate::SeriesDefinition::kind`].
    pub kind: Kind,
    /// See [`crate::SeriesDefinition::unit`].
    pub unit: &'a str,
}

impl From<&BatchView<'_>> for Batch {
    fn from(view: &BatchView<'_>) -> Self {
        Self {
            agent: view.agent.to_owned(),
            epoch: view.epoch,
            seq: view.seq,
            sent: view.sent,
            series: view.series.iter().map(SeriesDefinition::from).collect(),
            refs: view.refs().collect(),
            times: view.times().collect(),
            values: view.values().collect(),
            starts: view.starts().collect(),
            histograms: view.histograms.to_vec(),
        }
    }
}

impl From<&SeriesView<'_>> for SeriesDefinition {
    fn from(view: &SeriesView<'_>) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            reference: view.reference,
            metric: view.metric.to_owned(),
            tags: view.tags.iter().map(owned).collect(),
            kind: view.kind,
            unit: view.unit.to_owned(),
        }
    }
}

impl<'a> BatchView<'a> {
    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.values.len() / 8
    }

    /// Returns true when the batch has no sample.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the ref of each sample.
    pub fn refs(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.refs.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// Returns the value of each sample.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> + use<'a> {
        self.values.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes))
    }

    /// Returns the times in Unix milliseconds: one per sample, or one for all.
    pub fn times(&self) -> impl ExactSizeIterator<Item = i64> + use<'a> {
        self.times.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes))
    }

    /// Returns the counter starts: one per sample, one for all, or none.
    pub fn starts(&self) -> impl ExactSizeIterator<Item = i64> + use<'a> {
        self.starts.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes))
    }
}

/// Splits a body into batches, by the length at the beginning of each BSON document.
///
/// # Errors
/// A length does not fit the body, or there are more batches than [`BATCHES_PER_REQUEST_MAX`].
pub fn split_batches(body: &[u8]) -> Result<Vec<&[u8]>, DecodeError> {
    let mut batches = Vec::new();
    let mut rest = body;
    let mut offset = 0_usize;
    while !rest.is_empty() {
        let location = || format!("batch {} at byte {offset}", batches.len());
        if batches.len() == BATCHES_PER_REQUEST_MAX {
            let problem = format!("more than {BATCHES_PER_REQUEST_MAX} batches in one request");
            return Err(DecodeError::new(location(), problem));
        }
        let length = rest.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        let length = usize::try_from(length).unwrap_or(0);
        if length < 5 || length > rest.len() {
            let problem = format!(
                "no BSON document: it announces {length} bytes, but {} bytes are left",
                rest.len()
            );
            return Err(DecodeError::new(location(), problem));
        }
        let (batch, tail) = rest.split_at(length);
        batches.push(batch);
        rest = tail;
        offset += length;
    }
    Ok(batches)
}

/// Decodes one batch.
///
/// # Errors
/// The first fault, with its location. Unknown fields are skipped, so that a newer agent works with
/// an older daemon.
pub fn decode_batch(bytes: &[u8]) -> Result<BatchView<'_>, DecodeError> {
    let doc = RawDocument::from_bytes(bytes)
        .map_err(|cause| DecodeError::new("batch", cause.to_string()))?;
    let mut view = BatchView::default();
    let mut version = PROTOCOL_VERSION;
    let mut has_samples = false;
    for element in doc {
        let (key, value) = element.map_err(|cause| DecodeError::new("batch", cause.to_string()))?;
        match key.as_str() {
            "v" => version = i32::try_from(read_integer("v", value)?).unwrap_or(-1),
            "agent" => view.agent = read_text("agent", value)?,
            "epoch" => view.epoch = read_integer("epoch", value)?,
            "seq" => {
                view.seq = u64::try_from(read_integer("seq", value)?)
                    .map_err(|_| DecodeError::new("seq", "must not be negative"))?;
            }
            "sent" => view.sent = read_integer("sent", value)?,
            "series" => view.series = decode_series(value)?,
            "samples" => {
                has_samples = true;
                decode_columns(value, &mut view)?;
            }
            _ => {}
        }
    }
    if version != PROTOCOL_VERSION {
        let problem = format!("version {version} is not known; this daemon reads 1");
        return Err(DecodeError::new("v", problem));
    }
    if view.agent.is_empty() {
        return Err(DecodeError::new("agent", "missing; every batch names its sender"));
    }
    if view.agent.len() > AGENT_BYTES_MAX {
        let problem = format!("{} bytes; at most {AGENT_BYTES_MAX}", view.agent.len());
        return Err(DecodeError::new("agent", problem));
    }
    if !has_samples {
        return Err(DecodeError::new("samples", "missing"));
    }
    check_columns(&view)?;
    Ok(view)
}

fn decode_series(value: RawBsonRef<'_>) -> Result<Vec<SeriesView<'_>>, DecodeError> {
    let RawBsonRef::Array(array) = value else {
        return Err(DecodeError::new("series", "must be an array of documents"));
    };
    let mut series = Vec::new();
    for (index, item) in array.into_iter().enumerate() {
        let location = |cause: DecodeError| cause.within(&format!("series.{index}"));
        let item = item.map_err(|cause| location(DecodeError::new("", cause.to_string())))?;
        let RawBsonRef::Document(doc) = item else {
            return Err(location(DecodeError::new("", "must be a document")));
        };
        series.push(decode_definition(doc).map_err(location)?);
    }
    Ok(series)
}

/// Decodes a definition. A fault contains the location within the definition; the caller adds the
/// index of the definition.
fn decode_definition(doc: &RawDocument) -> Result<SeriesView<'_>, DecodeError> {
    let mut view = SeriesView::default();
    let mut has_ref = false;
    for element in doc {
        let (key, value) = element.map_err(|cause| DecodeError::new("", cause.to_string()))?;
        match key.as_str() {
            "ref" => {
                has_ref = true;
                view.reference = u32::try_from(read_integer("ref", value)?)
                    .map_err(|_| DecodeError::new("ref", "must be 0 to 4294967295"))?;
            }
            "metric" => view.metric = read_text("metric", value)?,
            "unit" => view.unit = read_text("unit", value)?,
            "kind" => {
                let fault = |cause: crate::UnknownKind| DecodeError::new("kind", cause.to_string());
                view.kind = Kind::from_word(read_text("kind", value)?).map_err(fault)?;
            }
            "tags" => view.tags = decode_tags(value).map_err(|cause| cause.within("tags"))?,
            _ => {}
        }
    }
    if !has_ref {
        return Err(DecodeError::new("ref", "missing"));
    }
    Ok(view)
}

fn decode_tags(value: RawBsonRef<'_>) -> Result<Vec<(&str, &str)>, DecodeError> {
    let RawBsonRef::Document(doc) = value else {
        return Err(DecodeError::new("", "must be a document of strings"));
    };
    let mut tags = Vec::new();
    for element in doc {
        let (key, value) = element.map_err(|cause| DecodeError::new("", cause.to_string()))?;
        tags.push((key.as_str(), read_text(key.as_str(), value)?));
    }
    Ok(tags)
}

fn decode_columns<'a>(value: RawBsonRef<'a>, view: &mut BatchView<'a>) -> Result<(), DecodeError> {
    let RawBsonRef::Document(doc) = value else {
        return Err(DecodeError::new("samples", "must be a document of binary columns"));
    };
    for element in doc {
        let (key, value) =
            element.map_err(|cause| DecodeError::new("samples", cause.to_string()))?;
        match key.as_str() {
            "refs" => view.refs = read_column("samples.refs", value, 4)?,
            "times" => view.times = read_column("samples.times", value, 8)?,
            "values" => view.values = read_column("samples.values", value, 8)?,
            "starts" => view.starts = read_column("samples.starts", value, 8)?,
            "histograms" => view.histograms = read_column("samples.histograms", value, 1)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_columns(view: &BatchView<'_>) -> Result<(), DecodeError> {
    let samples = view.values.len() / 8;
    if view.refs.len() / 4 != samples {
        let problem = format!("{} entries for {samples} values", view.refs.len() / 4);
        return Err(DecodeError::new("samples.refs", problem));
    }
    let times = view.times.len() / 8;
    if times != samples && times != 1 {
        let problem =
            format!("{times} entries for {samples} values; send one per sample, or one for all");
        return Err(DecodeError::new("samples.times", problem));
    }
    let starts = view.starts.len() / 8;
    if starts > 1 && starts != samples {
        let problem = format!(
            "{starts} entries for {samples} values; send one per sample, one for all, or none"
        );
        return Err(DecodeError::new("samples.starts", problem));
    }
    Ok(())
}

fn read_text<'a>(location: &str, value: RawBsonRef<'a>) -> Result<&'a str, DecodeError> {
    value.as_str().ok_or_else(|| {
        DecodeError::new(location, format!("must be a string, is {:?}", value.element_type()))
    })
}

fn read_integer(location: &str, value: RawBsonRef<'_>) -> Result<i64, DecodeError> {
    value
        .as_i64()
        .or_else(|| value.as_i32().map(i64::from))
        .or_else(|| value.as_datetime().map(bson::DateTime::timestamp_millis))
        .ok_or_else(|| {
            let problem =
                format!("must be a 64-bit integer or a date, is {:?}", value.element_type());
            DecodeError::new(location, problem)
        })
}

fn read_column<'a>(
    location: &str,
    value: RawBsonRef<'a>,
    width: usize,
) -> Result<&'a [u8], DecodeError> {
    let bytes = value
        .as_binary()
        .ok_or_else(|| {
            DecodeError::new(location, format!("must be binary, is {:?}", value.element_type()))
        })?
        .bytes;
    if bytes.len() % width != 0 {
        let problem =
            format!("{} bytes are not a multiple of {width}, the width of an entry", bytes.len());
        return Err(DecodeError::new(location, problem));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
