//! The same batch as JSON, for scripts.
//!
//! A body is one batch or an array of batches. `samples` is either an object of columns, as in BSON,
//! or an array of samples, which use refs with definitions in `series` or name their metric and
//! tags themselves. `agent`, `epoch` and `seq` may
//! be left out together; such a batch counts again when it is sent again.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use serde::{
    Deserialize, Deserializer,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

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
    samples: JsonSamples,
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

enum JsonSamples {
    Rows(Vec<JsonSample>),
    Columns(JsonColumns),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonColumns {
    refs: Vec<u32>,
    times: Vec<Time>,
    values: Vec<f64>,
    #[serde(default)]
    starts: Vec<Time>,
}

/// Written by hand, because serde's untagged enums do not say where a fault is.
impl<'de> Deserialize<'de> for JsonSamples {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> Visitor<'de> for Shape {
            type Value = JsonSamples;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of samples, or an object with refs, times and values")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                let rows = SeqAccessDeserializer::new(seq);
                Deserialize::deserialize(rows).map(JsonSamples::Rows)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let columns = MapAccessDeserializer::new(map);
                Deserialize::deserialize(columns).map(JsonSamples::Columns)
            }
        }

        deserializer.deserialize_any(Shape)
    }
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
    match json.samples {
        JsonSamples::Rows(rows) => take_rows(rows, now, &mut batch)?,
        JsonSamples::Columns(columns) => take_columns(columns, &mut batch)?,
    }
    if batch.starts.iter().all(|start| *start == 0) {
        batch.starts.clear();
    }
    Ok(batch)
}

fn take_columns(columns: JsonColumns, batch: &mut Batch) -> Result<(), DecodeError> {
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
    let millis = |name: &str, times: &[Time]| {
        let one = |(index, time): (usize, &Time)| time.millis(&format!("samples.{name}.{index}"));
        times.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()
    };
    batch.times = millis("times", &columns.times)?;
    batch.starts = millis("starts", &columns.starts)?;
    (batch.refs, batch.values) = (columns.refs, columns.values);
    Ok(())
}

fn take_rows(rows: Vec<JsonSample>, now: i64, batch: &mut Batch) -> Result<(), DecodeError> {
    let mut refs = InlineRefs::after(&batch.series);
    for (index, sample) in rows.into_iter().enumerate() {
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
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Batch, String> {
        let mut batches = decode_json(text.as_bytes(), 5).map_err(|cause| cause.to_string())?;
        Ok(batches.remove(0))
    }

    #[test]
    fn columns_and_rows_say_the_same() {
        let series = r#""series": [{"ref": 0, "metric": "m", "kind": "delta"}]"#;
        let head = format!(r#"{{"agent": "a", "epoch": 1, "seq": 2, {series}, "samples": "#);
        let rows = format!(
            r#"{head}[{{"ref": 0, "time": 7, "value": 1.5}}, {{"ref": 0, "time": 8, "value": 2}}]}}"#
        );
        let columns = format!(r#"{head}{{"refs": [0, 0], "times": [7, 8], "values": [1.5, 2]}}}}"#);
        assert_eq!(one(&rows), one(&columns));
        let named = r#"{"samples": [{"metric": "m", "kind": "delta", "value": 1.5}]}"#;
        let batch = one(named).unwrap();
        assert_eq!((batch.times, batch.seq, batch.refs), (vec![5], 0, vec![0]));
    }

    #[test]
    fn faults_name_their_place() {
        let check = |text: &str, part: &str| {
            let message = one(text).unwrap_err();
            assert!(message.contains(part), "{part} in {message}");
        };
        check(r#"{"samples": [{"metric": "m"}]}"#, "missing field `value` at line 1 column");
        check(r#"{"samples": 3}"#, "an array of samples, or an object");
        check(r#"{"samples": [{"metric": "m", "ref": 1, "value": 1}]}"#, "samples.0.ref");
        check(r#"{"samples": [{"metric": "m", "time": "noon", "value": 1}]}"#, "samples.0.time");
        check(
            r#"{"samples": {"refs": [0], "times": [1, 2], "values": [1, 2]}}"#,
            "samples.refs: 1 entries for 2 values",
        );
        check(r#"{"seq": 3, "samples": []}"#, "agent: missing");
        check(r#"[{"samples": []}, {"samples": [{"value": 1}]}]"#, "batch 1: samples.0.ref");
    }
}
