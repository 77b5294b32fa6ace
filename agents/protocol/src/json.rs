//! The same batch as JSON, for scripts.
//!
//! A body is one batch or an array of batches. Samples either use refs with definitions in
//! `series`, as in BSON, or name their metric and tags themselves. `agent`, `epoch` and `seq` may
//! be left out together; such a batch counts again when it is sent again.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use crate::{Batch, DecodeError, Kind, SeriesDefinition};

/// Batches of one JSON body.
pub type JsonBatches = Vec<Batch>;

#[derive(Deserialize)]
#[serde(untagged)]
enum Body {
    Many(Vec<JsonBatch>),
    One(JsonBatch),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonBatch {
    #[serde(default)]
    v: Option<i32>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    epoch: i64,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    sent: Option<Time>,
    #[serde(default)]
    series: Vec<JsonSeries>,
    samples: Vec<JsonSample>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonSeries {
    r#ref: u32,
    metric: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    unit: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonSample {
    #[serde(default)]
    r#ref: Option<u32>,
    #[serde(default)]
    metric: Option<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    time: Option<Time>,
    value: f64,
    #[serde(default)]
    start: Option<Time>,
}

/// Unix milliseconds or an RFC 3339 text.
#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum Time {
    Millis(i64),
    Text(String),
}

impl Time {
    fn millis(&self, place: &str) -> Result<i64, DecodeError> {
        match self {
            Self::Millis(millis) => Ok(*millis),
            Self::Text(text) => {
                text.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_millisecond).map_err(|_| {
                    let problem = format!(
                        "{text:?} is no time; use Unix milliseconds or 2026-11-21T08:00:00Z"
                    );
                    DecodeError::new(place, problem)
                })
            }
        }
    }
}

/// Reads a JSON body. A sample without `time` gets `now`, in Unix milliseconds.
///
/// # Errors
/// With the line and column, or the place in the batch, of the first fault.
pub fn decode_json(body: &[u8], now: i64) -> Result<JsonBatches, DecodeError> {
    // An untagged enum hides where a fault is, so the shape is looked at first.
    let is_array = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    let parsed = if is_array {
        serde_json::from_slice(body).map(Body::Many)
    } else {
        serde_json::from_slice(body).map(Body::One)
    };
    let batches = match parsed.map_err(|cause| DecodeError::new("JSON body", cause.to_string()))? {
        Body::Many(batches) => batches,
        Body::One(batch) => vec![batch],
    };
    let several = batches.len() > 1;
    batches
        .into_iter()
        .enumerate()
        .map(|(index, batch)| {
            convert(batch, now).map_err(|cause| {
                if several {
                    DecodeError::new(format!("batch {index}: {}", cause.place), cause.problem)
                } else {
                    cause
                }
            })
        })
        .collect()
}

fn convert(json: JsonBatch, now: i64) -> Result<Batch, DecodeError> {
    if json.v.is_some_and(|v| v != crate::PROTOCOL_VERSION) {
        return Err(DecodeError::new("v", "is not known; this daemon reads 1"));
    }
    if json.seq > 0 && json.agent.is_none() {
        return Err(DecodeError::new("agent", "missing; a numbered batch names its sender"));
    }
    let mut batch = Batch {
        agent: json.agent.unwrap_or_else(|| "script".to_owned()),
        epoch: json.epoch,
        seq: json.seq,
        sent: json.sent.map_or(Ok(0), |time| time.millis("sent"))?,
        ..Batch::default()
    };
    for series in json.series {
        batch.series.push(SeriesDefinition {
            reference: series.r#ref,
            metric: series.metric,
            tags: series.tags.into_iter().collect(),
            kind: series.kind,
            unit: series.unit,
        });
    }
    let mut refs = InlineRefs::after(&batch.series);
    for (index, sample) in json.samples.into_iter().enumerate() {
        let place = |field: &str| format!("samples.{index}.{field}");
        let time = sample.time.as_ref().map_or(Ok(now), |time| time.millis(&place("time")))?;
        let start = sample.start.as_ref().map_or(Ok(0), |time| time.millis(&place("start")))?;
        let reference = match (sample.r#ref, sample.metric) {
            (Some(reference), None) => reference,
            (None, Some(metric)) => refs.define(
                SeriesDefinition {
                    reference: 0,
                    metric,
                    tags: sample.tags.into_iter().collect(),
                    kind: sample.kind,
                    unit: sample.unit,
                },
                &mut batch.series,
            ),
            _ => return Err(DecodeError::new(place("ref"), "give either ref or metric")),
        };
        batch.refs.push(reference);
        batch.times.push(time);
        batch.values.push(sample.value);
        batch.starts.push(start);
    }
    if batch.starts.iter().all(|start| *start == 0) {
        batch.starts.clear();
    }
    Ok(batch)
}

/// Hands out refs to samples that name their series themselves.
struct InlineRefs {
    next: u32,
    known: HashMap<(String, Vec<(String, String)>), u32>,
}

impl InlineRefs {
    fn after(series: &[SeriesDefinition]) -> Self {
        let next = series.iter().map(|s| s.reference.saturating_add(1)).max().unwrap_or(0);
        Self { next, known: HashMap::new() }
    }

    fn define(&mut self, mut series: SeriesDefinition, all: &mut Vec<SeriesDefinition>) -> u32 {
        let key = (series.metric.clone(), series.tags.clone());
        if let Some(reference) = self.known.get(&key) {
            return *reference;
        }
        let reference = self.next;
        self.next = self.next.saturating_add(1);
        self.known.insert(key, reference);
        series.reference = reference;
        all.push(series);
        reference
    }
}
