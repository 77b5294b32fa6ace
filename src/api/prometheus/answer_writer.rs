//! Streaming JSON of Prometheus' API: memory contains an answer once, and only a part of its JSON.
//!
//! Must never know: how an answer was computed.

use std::{iter::Enumerate, sync::Arc, vec::IntoIter};

use actix_web::{HttpResponse, body::BoxBody, web::Bytes};

use super::{
    answer::{Answer, Data, MetricEntry},
    json::{Times, push_comma, push_histogram, push_labels, push_notes, push_point, push_text},
};
use crate::{
    api::answer::{
        pulled::PulledBody,
        slow::{CHUNK_BYTES, SlowReaders},
    },
    model::Histogram,
    query::{Labels, MatrixSeries, Points, PromqlValue, Reservation, VectorSample},
};

/// The number of a series' points that are written before the chunk's size is checked.
const POINTS_PER_STEP: usize = 256;

/// The estimated size of a point.
const POINT_BYTES: usize = 32;

/// A histogram with its time in Unix milliseconds.
type TimedHistogram = (i64, Arc<Histogram>);

/// The part of an answer that is not written yet.
#[derive(Debug)]
enum RemainingElements {
    Vector(Enumerate<IntoIter<VectorSample>>),
    Matrix(Enumerate<IntoIter<MatrixSeries>>),
    /// The points of a partly written series, and the following series.
    Points(PartialSeries, Enumerate<IntoIter<MatrixSeries>>),
    /// The histograms of a partly written series, and the following series.
    Histograms(Enumerate<IntoIter<TimedHistogram>>, Enumerate<IntoIter<MatrixSeries>>),
    Series(Enumerate<IntoIter<Labels>>),
    Texts(Enumerate<IntoIter<String>>),
    Metrics(Enumerate<IntoIter<MetricEntry>>),
    /// The end of the JSON text.
    End,
    Nothing,
}

/// The points of a partly written series.
#[derive(Debug)]
struct PartialSeries {
    points: Points,
    /// The index of the next point.
    next: usize,
    /// True when no point is written yet.
    is_empty: bool,
    /// The histograms that follow the points.
    histograms: Vec<TimedHistogram>,
}

/// An answer that is being written.
#[derive(Debug)]
pub(super) struct AnswerWriter {
    /// The bytes that are ready to be sent.
    ready_bytes: Vec<u8>,
    rest: RemainingElements,
    end: Vec<u8>,
    times: Times,
}

impl AnswerWriter {
    /// Writes the first chunk.
    pub(super) fn start(answer: Answer) -> Self {
        let mut ready_bytes = Vec::with_capacity(first_bytes(&answer));
        ready_bytes.extend_from_slice(br#"{"status":"success","data":"#);
        let mut end = Vec::new();
        let rest = open(answer.data, &mut ready_bytes, &mut end);
        push_notes("warnings", &answer.warnings, &mut end);
        push_notes("infos", &answer.infos, &mut end);
        end.push(b'}');
        let mut writer = Self { ready_bytes: Vec::new(), rest, end, times: Times::default() };
        writer.fill(&mut ready_bytes);
        writer.ready_bytes = ready_bytes;
        writer
    }

    /// Returns the response. A large response holds the query's memory until the client has read
    /// it.
    pub(super) fn response(self, memory: Option<Reservation>, slow: SlowReaders) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response.content_type("application/json");
        if matches!(self.rest, RemainingElements::Nothing) {
            return response.body(self.ready_bytes);
        }
        let mut writer = self;
        let body = PulledBody::new(move || writer.next_chunk(), memory, slow);
        response.message_body(BoxBody::new(body)).unwrap_or_else(HttpResponse::from_error)
    }

    /// Returns the next chunk, or `None` at the end.
    fn next_chunk(&mut self) -> Option<Bytes> {
        let mut out = std::mem::take(&mut self.ready_bytes);
        if out.is_empty() && !matches!(self.rest, RemainingElements::Nothing) {
            out.reserve(CHUNK_BYTES + CHUNK_BYTES / 4);
            self.fill(&mut out);
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn fill(&mut self, out: &mut Vec<u8>) {
        while out.len() < CHUNK_BYTES && !matches!(self.rest, RemainingElements::Nothing) {
            self.push_next(out);
        }
    }

    /// Writes the next element.
    fn push_next(&mut self, out: &mut Vec<u8>) {
        let more = match &mut self.rest {
            RemainingElements::Vector(all) => push_element(all, out, |sample, out| {
                out.extend_from_slice(br#"{"metric":"#);
                push_labels(sample.labels.iter(), out);
                if let Some(histogram) = &sample.histogram {
                    out.extend_from_slice(br#","histogram":"#);
                    push_histogram(sample.at, histogram, out);
                } else {
                    out.extend_from_slice(br#","value":"#);
                    push_point(sample.at, sample.value, out);
                }
                out.push(b'}');
            }),
            RemainingElements::Series(all) => {
                push_element(all, out, |labels, out| push_labels(labels.iter(), out))
            }
            RemainingElements::Texts(all) => {
                push_element(all, out, |text, out| push_text(&text, out))
            }
            RemainingElements::Metrics(all) => {
                push_element(all, out, |metric, out| push_metric(&metric, out))
            }
            RemainingElements::Matrix(_)
            | RemainingElements::Points(..)
            | RemainingElements::Histograms(..) => {
                let rest = std::mem::replace(&mut self.rest, RemainingElements::End);
                self.rest = push_points(rest, &mut self.times, out);
                return;
            }
            RemainingElements::End | RemainingElements::Nothing => {
                out.append(&mut self.end);
                self.rest = RemainingElements::Nothing;
                return;
            }
        };
        if !more {
            self.rest = RemainingElements::End;
        }
    }
}

/// Starts the next series of a matrix, or continues the current one.
fn push_points(rest: RemainingElements, times: &mut Times, out: &mut Vec<u8>) -> RemainingElements {
    match rest {
        RemainingElements::Matrix(mut all) => {
            let Some((index, series)) = all.next() else { return RemainingElements::End };
            push_comma(index, out);
            out.extend_from_slice(br#"{"metric":"#);
            push_labels(series.labels.iter(), out);
            let (points, histograms) = (series.points, series.histograms);
            if histograms.is_empty() || points.iter().next().is_some() {
                out.extend_from_slice(br#","values":"#);
                let partial = PartialSeries { points, next: 0, is_empty: true, histograms };
                return RemainingElements::Points(partial, all);
            }
            RemainingElements::Histograms(histograms.into_iter().enumerate(), all)
        }
        RemainingElements::Points(mut series, all) => {
            let end = series.points.slot_count().min(series.next + POINTS_PER_STEP);
            out.reserve(POINT_BYTES * (end - series.next));
            series.points.for_each(series.next..end, |index, at, value| {
                let before = if series.is_empty { b'[' } else { b',' };
                times.push_point(before, (index, at, value), out);
                series.is_empty = false;
            });
            series.next = end;
            if end < series.points.slot_count() {
                return RemainingElements::Points(series, all);
            }
            out.extend_from_slice(if series.is_empty { b"[]" } else { b"]" });
            if series.histograms.is_empty() {
                out.push(b'}');
                return RemainingElements::Matrix(all);
            }
            RemainingElements::Histograms(series.histograms.into_iter().enumerate(), all)
        }
        RemainingElements::Histograms(mut histograms, all) => {
            let Some((index, (at, histogram))) = histograms.next() else {
                out.extend_from_slice(b"]}");
                return RemainingElements::Matrix(all);
            };
            out.extend_from_slice(if index == 0 { br#","histograms":["# } else { b"," });
            push_histogram(at, &histogram, out);
            RemainingElements::Histograms(histograms, all)
        }
        RemainingElements::Vector(_)
        | RemainingElements::Series(_)
        | RemainingElements::Texts(_)
        | RemainingElements::Metrics(_)
        | RemainingElements::End
        | RemainingElements::Nothing => RemainingElements::End,
    }
}

/// Returns the estimated size of the first chunk; only a matrix can be large.
fn first_bytes(answer: &Answer) -> usize {
    const SMALL: usize = 4 << 10;
    let points = answer.bytes() / size_of::<f64>();
    (SMALL + points * POINT_BYTES).min(CHUNK_BYTES + CHUNK_BYTES / 4)
}

/// Writes the text before the elements, and sets the text after them.
fn open(data: Data, out: &mut Vec<u8>, end: &mut Vec<u8>) -> RemainingElements {
    let mut frame = |before: &[u8], after: &[u8]| {
        out.extend_from_slice(before);
        end.extend_from_slice(after);
    };
    match data {
        Data::Value(PromqlValue::Vector(all)) => {
            frame(br#"{"resultType":"vector","result":["#, b"]}");
            RemainingElements::Vector(all.into_iter().enumerate())
        }
        Data::Value(PromqlValue::Matrix(all)) => {
            frame(br#"{"resultType":"matrix","result":["#, b"]}");
            RemainingElements::Matrix(all.into_iter().enumerate())
        }
        Data::Value(PromqlValue::Scalar(at, value)) => {
            frame(br#"{"resultType":"scalar","result":"#, b"}");
            push_point(at, value, out);
            RemainingElements::End
        }
        Data::Value(PromqlValue::String(at, text)) => {
            frame(br#"{"resultType":"string","result":["#, b"]}");
            super::json::push_time(at, out);
            out.push(b',');
            push_text(&text, out);
            RemainingElements::End
        }
        Data::Series(all) => {
            frame(b"[", b"]");
            RemainingElements::Series(all.into_iter().enumerate())
        }
        Data::Texts(all) => {
            frame(b"[", b"]");
            RemainingElements::Texts(all.into_iter().enumerate())
        }
        Data::Metrics(all) => {
            frame(b"{", b"}");
            RemainingElements::Metrics(all.into_iter().enumerate())
        }
        Data::Text(text) => {
            push_text(&text, out);
            RemainingElements::End
        }
        Data::Json(json) => {
            frame(json.as_bytes(), b"");
            RemainingElements::End
        }
    }
}

/// Writes one element; returns false when there is none.
fn push_element<T>(
    all: &mut Enumerate<IntoIter<T>>,
    out: &mut Vec<u8>,
    push: impl FnOnce(T, &mut Vec<u8>),
) -> bool {
    let Some((index, element)) = all.next() else { return false };
    push_comma(index, out);
    push(element, out);
    true
}

fn push_metric(metric: &MetricEntry, out: &mut Vec<u8>) {
    push_text(&metric.name, out);
    out.extend_from_slice(br#":[{"type":"#);
    push_text(metric.kind, out);
    out.extend_from_slice(br#","help":"","unit":"#);
    push_text(&metric.unit, out);
    out.extend_from_slice(b"}]");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::new(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    /// Returns the written answer and the number of its chunks.
    fn written(answer: Answer) -> (String, usize) {
        let mut writer = AnswerWriter::start(answer);
        let mut out = std::mem::take(&mut writer.ready_bytes);
        let mut chunks = 1;
        while !matches!(writer.rest, RemainingElements::Nothing) {
            let mut chunk = Vec::new();
            writer.fill(&mut chunk);
            assert!(chunk.len() < CHUNK_BYTES + 64 * POINTS_PER_STEP);
            out.extend(chunk);
            chunks += 1;
        }
        (String::from_utf8(out).unwrap(), chunks)
    }

    #[test]
    fn each_type_is_written_as_in_prometheus() {
        let check = |data: Data, expected: &str| {
            let (text, chunks) = written(Answer::new(data));
            assert_eq!(text, format!(r#"{{"status":"success","data":{expected}}}"#));
            assert_eq!(chunks, 1);
        };
        let value = |value| Data::Value(value);
        check(
            value(PromqlValue::Scalar(1500, 2.0)),
            r#"{"resultType":"scalar","result":[1.500,"2"]}"#,
        );
        let text = PromqlValue::String(0, "a\"".to_owned());
        check(value(text), r#"{"resultType":"string","result":[0,"a\""]}"#);
        let up = labels(&[("__name__", "up"), ("job", "x")]);
        let sample = |labels: &Labels, value| VectorSample {
            labels: labels.clone(),
            at: 1000,
            value,
            histogram: None,
        };
        let vector = vec![sample(&up, 1.0), sample(&Labels::default(), f64::NAN)];
        check(
            value(PromqlValue::Vector(vector)),
            r#"{"resultType":"vector","result":[{"metric":{"__name__":"up","job":"x"},"value":[1,"1"]},{"metric":{},"value":[1,"NaN"]}]}"#,
        );
        check(value(PromqlValue::Vector(Vec::new())), r#"{"resultType":"vector","result":[]}"#);
        let matrix = vec![MatrixSeries {
            labels: up.clone(),
            points: Points::from_list(vec![(0, 1.0), (1000, 0.5)]),
            histograms: Vec::new(),
        }];
        check(
            value(PromqlValue::Matrix(matrix)),
            r#"{"resultType":"matrix","result":[{"metric":{"__name__":"up","job":"x"},"values":[[0,"1"],[1,"0.5"]]}]}"#,
        );
        let histogram = Arc::new(Histogram::empty(0));
        let of_histogram = VectorSample {
            labels: Labels::default(),
            at: 1000,
            value: f64::NAN,
            histogram: Some(histogram.clone()),
        };
        check(
            value(PromqlValue::Vector(vec![of_histogram])),
            r#"{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"0","sum":"0"}]}]}"#,
        );
        let series = |points, times: &[i64]| MatrixSeries {
            labels: Labels::default(),
            points: Points::from_list(points),
            histograms: times.iter().map(|at| (*at, histogram.clone())).collect(),
        };
        let matrix = vec![series(vec![(0, 1.0)], &[1000]), series(Vec::new(), &[1000, 2000])];
        check(
            value(PromqlValue::Matrix(matrix)),
            r#"{"resultType":"matrix","result":[{"metric":{},"values":[[0,"1"]],"histograms":[[1,{"count":"0","sum":"0"}]]},{"metric":{},"histograms":[[1,{"count":"0","sum":"0"}],[2,{"count":"0","sum":"0"}]]}]}"#,
        );
        check(Data::Series(vec![up]), r#"[{"__name__":"up","job":"x"}]"#);
        check(Data::Texts(vec!["a".into(), "b".into()]), r#"["a","b"]"#);
        let entry = MetricEntry { name: "up".into(), kind: "gauge", unit: String::new() };
        check(Data::Metrics(vec![entry]), r#"{"up":[{"type":"gauge","help":"","unit":""}]}"#);
        check(Data::Text("a + b".into()), r#""a + b""#);
        check(Data::Json(r#"{"groups":[]}"#.into()), r#"{"groups":[]}"#);
    }

    #[test]
    fn a_large_answer_has_several_chunks_and_ends_with_its_warnings() {
        let points: Vec<_> = (0..50_000).map(|i| (i * 1000, f64::from(i as i32))).collect();
        let series = |job: &str| MatrixSeries {
            labels: labels(&[("job", job)]),
            points: Points::from_list(points.clone()),
            histograms: Vec::new(),
        };
        let mut answer =
            Answer::new(Data::Value(PromqlValue::Matrix(vec![series("a"), series("b")])));
        answer.warnings.push("look".to_owned());
        let (text, chunks) = written(answer);
        assert!(chunks > 10, "{chunks}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["warnings"][0], "look");
        assert_eq!(read["data"]["result"][1]["values"].as_array().unwrap().len(), 50_000);
        assert_eq!(read["data"]["result"][1]["values"][49_999][1], "49999");
    }
}
