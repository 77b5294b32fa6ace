//! Accepted and rejected JSON bodies, and the locations in messages.

use super::*;
use crate::{Kind, SeriesDefinition};

fn parse(text: &str) -> Result<JsonBatch, String> {
    let mut batches = decode_json(text.as_bytes(), 5).map_err(|cause| cause.to_string())?;
    Ok(batches.remove(0))
}

#[test]
fn columns_and_rows_yield_the_same_batch() {
    let series = r#""series": [{"ref": 0, "metric": "m", "kind": "delta"}]"#;
    let head = format!(r#"{{"agent": "a", "epoch": 1, "seq": 2, {series}, "samples": "#);
    let rows = format!(
        r#"{head}[{{"ref": 0, "time": 7, "value": 1.5}}, {{"ref": 0, "time": 8, "value": 2}}]}}"#
    );
    let columns = format!(r#"{head}{{"refs": [0, 0], "times": [7, 8], "values": [1.5, 2]}}}}"#);
    assert_eq!(parse(&rows), parse(&columns));
    let self_described = r#"{"samples": [{"metric": "m", "kind": "delta", "value": 1.5}]}"#;
    let batch = parse(self_described).unwrap().batch;
    assert_eq!((batch.times, batch.seq, batch.refs), (vec![5], 0, vec![0]));
}

#[test]
fn faults_of_a_batch_name_their_location() {
    let expect_fault = |text: &str, part: &str| {
        let message = parse(text).unwrap_err();
        assert!(message.contains(part), "{part} in {message}");
    };
    expect_fault(r#"{"samples": ["#, "at line 1 column");
    expect_fault(r#"{"sample": []}"#, "unknown field `sample`");
    expect_fault(r#"{"samples": 3}"#, "an array of samples, or an object");
    expect_fault(
        r#"{"samples": {"refs": [0], "times": [1, 2], "values": [1, 2]}}"#,
        "samples.refs: 1 entries for 2 values",
    );
    expect_fault(r#"{"seq": 3, "samples": []}"#, "agent: missing");
    expect_fault(r#"[{"samples": []}, {"seq": 1, "samples": []}]"#, "batch 1: agent");
    expect_fault(
        r#"{"series": [{"metric": "m"}], "samples": []}"#,
        "series.0: missing field `ref`",
    );
}

#[test]
fn a_malformed_sample_is_named_and_does_not_affect_the_others() {
    let expect_invalid = |sample: &str, series: &str, part: &str| {
        let text = format!(r#"{{"samples": [{sample}, {{"metric": "ok", "value": 1}}]}}"#);
        let JsonBatch { batch, invalid, .. } = parse(&text).unwrap();
        assert_eq!((batch.values, invalid.samples), (vec![1.0], 1), "{sample}");
        let example = &invalid.examples[0];
        assert_eq!(example.series, series);
        assert!(example.message.contains(part), "{part} in {}", example.message);
    };
    let metric_and_tags = r#""metric": "m", "tags": {"host": "a"}"#;
    let name = r#"m{host="a"}"#;
    expect_invalid(
        &format!(r#"{{{metric_and_tags}, "value": null}}"#),
        name,
        "value is missing or null",
    );
    expect_invalid(
        &format!(r#"{{{metric_and_tags}, "value": "1.5"}}"#),
        name,
        r#"value "1.5" is not a number"#,
    );
    expect_invalid(
        &format!(r#"{{{metric_and_tags}, "value": 1e999}}"#),
        name,
        "value 1e999 is not a number",
    );
    expect_invalid(&format!("{{{metric_and_tags}}}"), name, "value is missing");
    expect_invalid(
        &format!(r#"{{{metric_and_tags}, "time": "noon", "value": 1}}"#),
        name,
        r#""noon" is not a time"#,
    );
    expect_invalid(
        &format!(r#"{{{metric_and_tags}, "kind": "level", "value": 1}}"#),
        name,
        "unknown variant `level`",
    );
    for kind in ["histogram", "gaugehistogram", "deltahistogram"] {
        expect_invalid(
            &format!(r#"{{{metric_and_tags}, "kind": "{kind}", "value": 1}}"#),
            name,
            &format!("kind {kind} has native histograms"),
        );
    }
    expect_invalid(&format!(r#"{{{metric_and_tags}, "vaule": 1}}"#), name, "unknown field `vaule`");
    expect_invalid(
        &format!(r#"{{{metric_and_tags}, "ref": 1, "value": 1}}"#),
        name,
        "give ref or metric",
    );
    expect_invalid(&format!(r#"{{{metric_and_tags}, "fields": {{}}}}"#), name, "fields is empty");
    expect_invalid(
        r#"{"metric": "m", "tags": {"a": null}, "value": 1}"#,
        r#"m{a="null"}"#,
        "is null",
    );
    expect_invalid(r#"{"metric": "m", "tags": {"a": [1]}, "value": 1}"#, r#"m{a="[1]"}"#, "is [1]");
    let nul = r#"{"metric": "m", "tags": {"a\u0000": "x"}, "value": 1}"#;
    expect_invalid(nul, "m{a\0=\"x\"}", "contains a NUL byte");
    expect_invalid("7", "samples.0", "invalid type");
    expect_invalid(r#"{"ref": 7, "value": "x"}"#, "ref 7", "is not a number");
}

#[test]
fn a_malformed_column_or_definition_affects_only_its_samples() {
    let text = r#"{"series": [{"ref": 0, "metric": "a"}, {"ref": 1, "metric": "b", "kind": "x"}],
        "samples": {"refs": [0, 0, 1, 0, "x"], "times": [1, "noon", 1, 1, 1],
                    "values": [1, 2, 3, null, 5]}}"#;
    let JsonBatch { batch, invalid, .. } = parse(text).unwrap();
    assert_eq!((batch.refs, batch.values, invalid.samples), (vec![0], vec![1.0], 4));
    let series_names: Vec<_> =
        invalid.examples.iter().map(|example| example.series.as_str()).collect();
    assert_eq!(series_names, ["a", "b", "a", "samples.4"]);
}

#[test]
fn numbers_and_booleans_become_tag_values_with_their_text() {
    let text = r#"{"samples": [{"metric": "m", "value": 1,
        "tags": {"port": 8080, "id": 123456789012345678901234567890, "up": true, "v": 1.50}}]}"#;
    let tags = parse(text).unwrap().batch.series.remove(0).tags;
    let tags: Vec<_> = tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(tags, ["id=123456789012345678901234567890", "port=8080", "up=true", "v=1.50"]);
}

#[test]
fn the_fields_of_an_event_are_metrics_with_its_tags_and_time() {
    let text = r#"{"samples": [
        {"metric": "disk", "tags": {"d": "sda"}, "time": 9, "kind": "counter", "unit": "bytes",
         "fields": {"read": 1, "write": 2, "bad": "x"}},
        {"fields": {"load": 0.5}}]}"#;
    let JsonBatch { batch, invalid, .. } = parse(text).unwrap();
    let names: Vec<_> = batch.series.iter().map(|series| series.metric.as_str()).collect();
    assert_eq!(names, ["disk_read", "disk_write", "load"]);
    let is_complete =
        |series: &SeriesDefinition| series.tags.len() == 1 && series.kind == Kind::Counter;
    assert!(batch.series[..2].iter().all(is_complete));
    assert_eq!((batch.times, batch.values), (vec![9, 9, 5], vec![1.0, 2.0, 0.5]));
    assert_eq!((invalid.samples, &*invalid.examples[0].series), (1, r#"disk_bad{d="sda"}"#));
    // A long tag that is sent once must not expand to gigabytes.
    let fields: Vec<_> = (0..1000).map(|field| format!(r#""f{field}": 1"#)).collect();
    let tag = "x".repeat(100_000);
    let text = format!(
        r#"{{"samples": [{{"tags": {{"t": "{tag}"}}, "fields": {{{}}}}}]}}"#,
        fields.join(",")
    );
    let JsonBatch { batch, invalid, .. } = parse(&text).unwrap();
    assert_eq!((batch.series.len(), invalid.samples), (0, 1));
    assert!(invalid.examples[0].message.contains("send fewer at a time"));
}

#[test]
fn a_sample_is_a_histogram_of_its_kind() {
    let text = r#"{"series": [{"ref": 3, "metric": "r", "kind": "gaugehistogram"}], "samples": [
        {"metric": "m", "value": "NaN"},
        {"metric": "h", "histogram": {"schema": 1, "sum": 2.5, "positive": [[1, 2], [3, 1]]}},
        {"metric": "g", "kind": "gaugehistogram", "histogram": {"schema": 0, "sum": 0}},
        {"ref": 3, "time": 8, "start": 7, "histogram": {"custom_bounds": [1], "sum": "+Inf"}}]}"#;
    let JsonBatch { batch, invalid, .. } = parse(text).unwrap();
    assert_eq!(invalid, InvalidSamples::default());
    let kinds: Vec<_> = batch.series.iter().map(|series| series.kind).collect();
    assert_eq!(kinds, [Kind::GaugeHistogram, Kind::Gauge, Kind::Histogram, Kind::GaugeHistogram]);
    assert!(batch.values[0].is_nan());
    assert_eq!((&batch.values[1..], &*batch.starts), (&[3.0, 0.0, 0.0][..], &[0, 0, 0, 7][..]));
    let found = crate::read_histograms(&batch.histograms, batch.values.len());
    let found: Vec<_> = found.map(Result::unwrap).collect();
    assert_eq!(found.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [1, 2, 3]);
    let [h, g, r] = [0, 1, 2].map(|index| &found[index].1);
    assert_eq!((h.count, h.sum, h.positive.len(), g.schema), (3.0, 2.5, 2, 0));
    assert_eq!(g.hint, granary_histogram::ResetHint::Gauge);
    assert!(r.is_custom() && r.sum.is_infinite());
}

#[test]
fn two_kinds_of_one_series_are_two_definitions() {
    let text = r#"{"samples": [{"metric": "m", "value": 1},
        {"metric": "m", "kind": "counter", "value": 2}, {"metric": "m", "value": 3}]}"#;
    let batch = parse(text).unwrap().batch;
    assert_eq!(batch.refs, [0, 1, 0]);
    assert_eq!((batch.series[0].kind, batch.series[1].kind), (Kind::Gauge, Kind::Counter));
}
