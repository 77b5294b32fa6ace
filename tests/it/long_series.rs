//! Requests whose samples share one very long name or label. The series is refused once: a copy of
//! the text for each sample would take minutes or all memory.

use granary::{
    ingest::{
        collectd,
        influx::{self, Precision},
        otlp::{self, Form},
        remote_write::{self, Families, Version},
        rows::Rows,
        series_cache::SeriesCache,
    },
    model::{GranularitySet, SeriesKey, SeriesLimits, UnixMillis},
    policy::{Admission, RefusalReason},
};

use crate::protobuf;

const MEBIBYTE: usize = 1 << 20;
const MANY: usize = 100_000;

/// Returns the number of samples that are refused as a bad series; all samples must be refused.
fn count_refused(decode: impl FnOnce(&mut Rows<'_>)) -> u64 {
    let (mut cache, limits) = (SeriesCache::default(), SeriesLimits::default());
    let unknown_series = |_: &SeriesKey| None;
    let mut rows = Rows::new(&mut cache, &unknown_series, &limits, "");
    decode(&mut rows);
    let decoded = rows.finish();
    assert_eq!(decoded.len(), 0);
    let admission = Admission::new(&GranularitySet::default(), 600_000, UnixMillis(0));
    let (_, refused) =
        decoded.admit(&[], &mut cache, &admission, (|_| None, |_, _| 0, |_| None), 600_000);
    assert_eq!(refused.counts.keys().collect::<Vec<_>>(), [&RefusalReason::BadSeries]);
    refused.total()
}

#[test]
fn a_line_of_many_tags_and_many_fields_is_refused_without_copies() {
    // The line is nearly as long as permitted.
    let many = 30_000;
    let line = format!("m{} f=1{}", ",t=v".repeat(many), ",f=1".repeat(many - 1));
    let decode = |rows: &mut Rows<'_>| {
        influx::decode(line.as_bytes(), Precision::Seconds, UnixMillis(0), rows).unwrap();
    };
    assert_eq!(count_refused(decode), many as u64);
}

#[test]
fn a_value_list_of_many_values_with_a_long_name_is_refused_without_copies() {
    let list = |item: &str| vec![item; MANY].join(",");
    let body = format!(
        r#"[{{"values":[{}],"dstypes":[{}],"dsnames":[{}],"time":1,"host":"a","type":"b",
        "plugin":"{}"}}]"#,
        list("1"),
        list("\"gauge\""),
        list("\"x\""),
        "p".repeat(MEBIBYTE)
    );
    assert_eq!(count_refused(|rows| collectd::decode(body.as_bytes(), rows).unwrap()), MANY as u64);
}

#[test]
fn many_points_of_a_long_resource_are_refused_without_copies() {
    let points = vec![r#"{"asInt":"1","timeUnixNano":"1"}"#; MANY].join(",");
    let body = format!(
        r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"a","value":
        {{"stringValue":"{}"}}}}]}},"scopeMetrics":[{{"metrics":[{{"name":"m","gauge":
        {{"dataPoints":[{points}]}}}}]}}]}}]}}"#,
        "v".repeat(MEBIBYTE)
    );
    let decode = |rows: &mut Rows<'_>| otlp::decode(Form::Json, body.as_bytes(), rows).unwrap();
    assert_eq!(count_refused(decode), MANY as u64);
}

#[test]
fn remote_write_of_many_refs_to_a_long_symbol_is_refused_without_copies() {
    let sample = protobuf::message(|out| {
        protobuf::double(1, 1.5, out);
        protobuf::int(2, 1, out);
    });
    let series = protobuf::message(|out| {
        protobuf::bytes(1, &vec![1; 2 * MANY], out);
        protobuf::bytes(2, &sample, out);
        protobuf::bytes(2, &sample, out);
    });
    let body = protobuf::message(|out| {
        protobuf::bytes(4, b"", out);
        protobuf::bytes(4, &vec![b's'; MEBIBYTE], out);
        protobuf::bytes(5, &series, out);
    });
    let families = Families::default();
    let decode = |rows: &mut Rows<'_>| {
        remote_write::decode(Version::V2, &body, &families, rows).unwrap();
    };
    assert_eq!(count_refused(decode), 2);
}

#[test]
fn remote_write_of_many_histograms_with_a_long_label_is_refused_without_copies() {
    let label = protobuf::message(|out| {
        protobuf::bytes(1, b"__name__", out);
        protobuf::bytes(2, &vec![b's'; MEBIBYTE], out);
    });
    let series = protobuf::message(|out| {
        protobuf::bytes(1, &label, out);
        (0..MANY).for_each(|_| protobuf::bytes(4, b"", out));
    });
    let body = protobuf::message(|out| protobuf::bytes(1, &series, out));
    let families = Families::default();
    let decode = |rows: &mut Rows<'_>| {
        remote_write::decode(Version::V1, &body, &families, rows).unwrap();
    };
    assert_eq!(count_refused(decode), MANY as u64);
}
