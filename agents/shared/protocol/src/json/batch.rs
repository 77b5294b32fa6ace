//! The conversion of a JSON batch: definitions, samples in rows, and samples in columns.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::{
    invalid::InvalidSamples,
    raw::{DefinitionRef, RawBatch, RawColumns, RawSeries},
    sample::{self, RawSample, SHAPE, SampleContent, content},
    values::{
        Entry, ObjectFields, Time, for_each, name_in_sample, number, series_name, without_location,
    },
};
use crate::{Batch, DecodeError, Kind, SeriesDefinition, push_histogram};

/// The maximum memory of a body's samples with `fields`, which share metric and tags.
pub(super) const FIELD_BYTES_MAX: usize = 32 << 20;

/// One batch of a JSON body.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JsonBatch {
    /// The batch with its valid samples.
    pub batch: Batch,
    /// The invalid samples.
    pub invalid: InvalidSamples,
    /// True when the samples replace the stored samples at the same times.
    pub replace: bool,
}

/// Converts a batch. `field_bytes` is the remaining memory for fields.
///
/// # Errors
/// The batch contradicts itself, or a definition or a column cannot be read.
pub(super) fn convert(
    raw: RawBatch<'_>,
    now: i64,
    field_bytes: &mut usize,
) -> Result<JsonBatch, DecodeError> {
    if raw.v.is_some_and(|v| v != crate::PROTOCOL_VERSION) {
        return Err(DecodeError::new("v", "is not known; this daemon reads 1"));
    }
    if raw.seq > 0 && raw.agent.is_none() {
        return Err(DecodeError::new("agent", "missing; a numbered batch names its sender"));
    }
    if raw.replace && raw.seq > 0 {
        let problem = "is not possible with a seq; omit epoch and seq, because a repeated \
                       replacement changes nothing";
        return Err(DecodeError::new("replace", problem));
    }
    let batch = Batch {
        agent: raw.agent.unwrap_or_else(|| "script".to_owned()),
        epoch: raw.epoch,
        seq: raw.seq,
        sent: raw.sent.map_or(0, |time| time.0),
        ..Batch::default()
    };
    let mut in_progress = BatchInProgress {
        now,
        batch,
        invalid: InvalidSamples::default(),
        replaces: raw.replace,
        bad_refs: HashMap::new(),
        next_ref: 0,
        inline: HashMap::new(),
        field_bytes,
    };
    for (index, series) in raw.series.into_iter().enumerate() {
        in_progress.define(index, series)?;
    }
    if raw.samples.get().starts_with('[') {
        for_each(raw.samples.get(), |index, row| in_progress.add_row(index, row))
            .map_err(|cause| DecodeError::new("samples", cause.to_string()))?;
    } else {
        let columns: RawColumns = serde_json::from_str(raw.samples.get()).map_err(|cause| {
            let shape = "an array of samples, or an object with refs, times and values";
            DecodeError::new("samples", format!("{}; expected {shape}", without_location(&cause)))
        })?;
        in_progress.add_columns(&columns)?;
    }
    let BatchInProgress { mut batch, invalid, .. } = in_progress;
    if batch.starts.iter().all(|start| *start == 0) {
        batch.starts.clear();
    }
    Ok(JsonBatch { batch, invalid, replace: raw.replace })
}

/// The identity of a series that is described in a sample.
type InlineSeries = (String, Vec<(String, String)>, Kind, String);

/// A batch that is being parsed.
struct BatchInProgress<'b> {
    now: i64,
    batch: Batch,
    invalid: InvalidSamples,
    /// True when the samples replace stored ones.
    replaces: bool,
    /// Invalid definitions: name and fault.
    bad_refs: HashMap<u32, (String, String)>,
    /// The next unused ref.
    next_ref: u32,
    /// The refs of series that are described in samples.
    inline: HashMap<InlineSeries, u32>,
    /// The remaining memory for fields.
    field_bytes: &'b mut usize,
}

impl BatchInProgress<'_> {
    fn define(&mut self, index: usize, raw: &RawValue) -> Result<(), DecodeError> {
        let fault = match serde_json::from_str::<RawSeries<'_>>(raw.get()) {
            Ok(series) => match series.tags.tags() {
                Ok(tags) => {
                    self.next_ref = self.next_ref.max(series.r#ref.saturating_add(1));
                    self.batch.series.push(SeriesDefinition {
                        reference: series.r#ref,
                        metric: series.metric,
                        tags,
                        kind: series.kind,
                        unit: series.unit,
                    });
                    return Ok(());
                }
                Err(fault) => fault,
            },
            Err(cause) => without_location(&cause),
        };
        let fault = format!("series.{index}: {fault}");
        let DefinitionRef { r#ref: reference } = serde_json::from_str(raw.get())
            .map_err(|_| DecodeError::new("series", fault.clone()))?;
        self.next_ref = self.next_ref.max(reference.saturating_add(1));
        let name = name_in_sample(raw.get()).unwrap_or_else(|| format!("ref {reference}"));
        self.bad_refs.insert(reference, (name, fault));
        Ok(())
    }

    fn add_row(&mut self, index: usize, raw: &RawValue) {
        if let Err(fault) = self.parse_row(raw) {
            let mut invalid = std::mem::take(&mut self.invalid);
            invalid.add(|| {
                let location = format!("samples.{index}");
                let name = self.name_in_row(raw).unwrap_or_else(|| location.clone());
                (name, format!("{location}: {fault}"))
            });
            self.invalid = invalid;
        }
    }

    fn parse_row(&mut self, raw: &RawValue) -> Result<(), String> {
        let sample: RawSample<'_> =
            serde_json::from_str(raw.get()).map_err(|cause| without_location(&cause))?;
        let time = sample.time.map_or(self.now, |time| time.0);
        let start = sample.start.map_or(0, |start| start.0);
        let found = content(sample.value, sample.histogram, sample.kind)?;
        match (sample.r#ref, sample.metric, found, sample.fields) {
            (Some(reference), None, Some((content, _)), None) => {
                self.push_content(reference, time, content, start)
            }
            (None, Some(metric), Some((content, kind)), None) => {
                let series = (metric, sample.tags.tags()?, kind, sample.unit);
                let reference = self.ref_of_inline(series);
                self.push_content(reference, time, content, start)
            }
            (None, metric, None, Some(fields)) => {
                let tags = sample.tags.tags()?;
                let (kind, unit) = (sample::kind_of_numbers(sample.kind)?, sample.unit);
                self.add_fields(metric.as_deref(), &tags, &fields, |in_progress, metric, value| {
                    let reference =
                        in_progress.ref_of_inline((metric, tags.clone(), kind, unit.clone()));
                    in_progress.push_sample(reference, time, value, start)
                })
            }
            (_, _, None, None) => Err(format!("value is missing or null; {SHAPE}")),
            _ => Err(SHAPE.to_owned()),
        }
    }

    fn push_content(
        &mut self,
        reference: u32,
        time: i64,
        content: SampleContent,
        start: i64,
    ) -> Result<(), String> {
        let histogram = match content {
            SampleContent::Number(value) => return self.push_sample(reference, time, value, start),
            SampleContent::Histogram(histogram) => histogram,
        };
        if self.replaces {
            let problem = "a histogram cannot be replaced: delete the samples of its slot, and \
                           send all of them again";
            return Err(problem.to_owned());
        }
        let index = self.batch.refs.len() as u32;
        self.push_sample(reference, time, histogram.count, start)?;
        push_histogram(&mut self.batch.histograms, index, &histogram);
        Ok(())
    }

    /// Adds the fields of a sample, each as a separate metric.
    fn add_fields(
        &mut self,
        metric: Option<&str>,
        tags: &[(String, String)],
        fields: &ObjectFields<'_>,
        mut take: impl FnMut(&mut Self, String, f64) -> Result<(), String>,
    ) -> Result<(), String> {
        if fields.0.is_empty() {
            return Err("fields is empty".to_owned());
        }
        // The body contains metric and tags once, the batch once per field.
        let shared_bytes: usize = tags.iter().map(|(name, value)| name.len() + value.len()).sum();
        let shared_bytes = shared_bytes + metric.map_or(0, str::len);
        let bytes = shared_bytes.saturating_mul(fields.0.len() - 1);
        let remaining = self.field_bytes.checked_sub(bytes).ok_or_else(|| {
            format!(
                "the fields of one request take more than {FIELD_BYTES_MAX} bytes with their \
                tags; send fewer at a time"
            )
        })?;
        *self.field_bytes = remaining;
        for (field, raw) in &fields.0 {
            let name = metric.map_or_else(|| field.clone(), |metric| format!("{metric}_{field}"));
            let outcome = number(raw).and_then(|value| take(self, name.clone(), value));
            if let Err(fault) = outcome {
                self.invalid
                    .add(|| (series_name(&name, tags), format!("field {field:?}: {fault}")));
            }
        }
        Ok(())
    }

    fn push_sample(
        &mut self,
        reference: u32,
        time: i64,
        value: f64,
        start: i64,
    ) -> Result<(), String> {
        if let Some((_, fault)) = self.bad_refs.get(&reference) {
            return Err(fault.clone());
        }
        self.batch.refs.push(reference);
        self.batch.times.push(time);
        self.batch.values.push(value);
        self.batch.starts.push(start);
        Ok(())
    }

    /// Returns the ref of a series that is described in a sample. A different kind or unit creates
    /// another definition; the daemon uses the first definition of a series.
    fn ref_of_inline(&mut self, series: InlineSeries) -> u32 {
        if let Some(reference) = self.inline.get(&series) {
            return *reference;
        }
        let reference = self.next_ref;
        self.next_ref = self.next_ref.saturating_add(1);
        let (metric, tags, kind, unit) = series.clone();
        self.batch.series.push(SeriesDefinition { reference, metric, tags, kind, unit });
        self.inline.insert(series, reference);
        reference
    }

    fn add_columns(&mut self, columns: &RawColumns) -> Result<(), DecodeError> {
        let samples = columns.values.len();
        let check = |name: &str, entries: usize, shared: bool| {
            let problem = format!("{entries} entries for {samples} values");
            let fits = entries == samples || (shared && entries == 1);
            if fits { Ok(()) } else { Err(DecodeError::new(format!("samples.{name}"), problem)) }
        };
        check("refs", columns.refs.len(), false)?;
        check("times", columns.times.len(), true)?;
        if !columns.starts.is_empty() {
            check("starts", columns.starts.len(), true)?;
        }
        let time_at = |times: &[Entry<Time>], index: usize| {
            times.get(if times.len() == 1 { 0 } else { index }).map(|entry| entry.0)
        };
        for (index, (reference, value)) in columns.refs.iter().zip(&columns.values).enumerate() {
            let invalid_cell = |column: &str| format!("samples.{column}.{index} cannot be read");
            let start = time_at(&columns.starts, index).unwrap_or(Some(Time(0)));
            let outcome = (|| {
                let reference = reference.0.ok_or_else(|| invalid_cell("refs"))?;
                let value = value.0.ok_or_else(|| invalid_cell("values"))?;
                let time = time_at(&columns.times, index)
                    .flatten()
                    .ok_or_else(|| invalid_cell("times"))?;
                let start = start.ok_or_else(|| invalid_cell("starts"))?;
                self.push_sample(reference, time.0, value, start.0)
            })();
            if let Err(fault) = outcome {
                let mut invalid = std::mem::take(&mut self.invalid);
                invalid.add(|| (self.series_name_of(reference.0, index), fault));
                self.invalid = invalid;
            }
        }
        Ok(())
    }

    fn name_in_row(&self, raw: &RawValue) -> Option<String> {
        let reference = serde_json::from_str(raw.get()).ok().map(|DefinitionRef { r#ref }| r#ref);
        name_in_sample(raw.get()).or_else(|| Some(self.series_name_of(Some(reference?), 0)))
    }

    fn series_name_of(&self, reference: Option<u32>, index: usize) -> String {
        let Some(reference) = reference else { return format!("samples.{index}") };
        let mut series = self.batch.series.iter();
        match (
            self.bad_refs.get(&reference),
            series.find(|definition| definition.reference == reference),
        ) {
            (Some((name, _)), _) => name.clone(),
            (None, Some(definition)) => series_name(&definition.metric, &definition.tags),
            (None, None) => format!("ref {reference}"),
        }
    }
}
