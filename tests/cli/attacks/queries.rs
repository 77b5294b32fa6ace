//! Short queries with large results, and log lines caused by strangers.

use serde_json::json;

use super::{
    ingest::{gzip, post},
    peak_bytes, send,
};
use crate::{daemon::Daemon, peers::wait_until};

const MIB: usize = 1 << 20;

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("Content-Type", "application/json");

#[test]
fn forms_are_limited_to_a_sufficient_length() {
    let daemon = Daemon::start("");
    let before = peak_bytes(daemon.pid());
    let long = gzip("a&".repeat(8 * MIB).as_bytes());
    let encoded = ("Content-Encoding", "gzip");
    for (path, kind, limit) in [
        ("/api/v1/query", FORM, "1048576 bytes"),
        ("/prometheus/api/v1/query_range", FORM, "1048576 bytes"),
        ("/api/v1/labels", FORM, "1048576 bytes"),
        ("/api/v1/aggregate", FORM, "65536 bytes"),
        ("/api/v1/admin/series/delete", JSON, "1048576 bytes"),
    ] {
        let (status, answer) = post(&daemon, path, &[kind, encoded], &long);
        assert_eq!(status, 413, "{path} {answer}");
        assert!(answer.contains("too_large") && answer.contains(limit), "{path} {answer}");
    }
    let grown = peak_bytes(daemon.pid()) - before;
    assert!(grown < 60 << 20, "{} MiB", grown >> 20);
    // A long but sensible query is answered.
    let query = format!("query=1{}", "%20".repeat(20_000));
    let (status, answer) = post(&daemon, "/api/v1/query", &[FORM], query.as_bytes());
    assert_eq!(status, 200, "{answer}");
    let metrics = daemon.metrics();
    assert!(metrics.contains("granary_queries_refused_total{reason=\"invalid\"} 4"), "{metrics}");
}

#[test]
fn pipelines_count_values_before_they_are_built() {
    let daemon = Daemon::start("limits.query_points_max = 1_000_000");
    let samples: Vec<_> = (0..100)
        .map(|host| json!({ "metric": "m", "tags": { "host": format!("h{host}") }, "value": host }))
        .collect();
    let batch = json!({ "samples": samples }).to_string();
    assert_eq!(daemon.post("application/json", batch.as_bytes()).status, 200);
    let before = peak_bytes(daemon.pid());
    let doubled: Vec<_> = (0..20).map(|n| format!("{{$addFields: {{a{n}: '$$ROOT'}}}},")).collect();
    let doubled = doubled.concat();
    let many = "'$$ROOT',".repeat(7000);
    for pipeline in [
        format!("[{doubled}]"),
        format!("[{doubled}{{$count: 'n'}}]"),
        format!("[{{$group: {{_id: [{many}]}}}}]"),
        format!("[{{$group: {{_id: 1, a: {{$push: [{many}]}}}}}}]"),
        format!("[{{$addFields: {{a: [{many}]}}}}, {{$unwind: '$a'}}, {{$sort: {{a: 1}}}}]"),
        format!(
            "[{{$addFields: {{a: [{many}]}}}}, {{$unwind: '$a'}}, {{$set: {{b: '$$ROOT'}}}}, {{$count: 'n'}}]"
        ),
    ] {
        let body = format!("{{collection: '1m', pipeline: {pipeline}}}");
        let (status, answer) = send(&daemon, "POST", "/api/v1/aggregate", &[], &body);
        assert_eq!((status, &answer["error"]), (422, &json!("too_much")), "{answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("limits.query_points_max"), "{message}");
    }
    let grown = peak_bytes(daemon.pid()) - before;
    assert!(grown < 200 << 20, "{} MiB", grown >> 20);
    let metrics = daemon.metrics();
    assert!(metrics.contains("granary_queries_refused_total{reason=\"too_much\"} 6"), "{metrics}");
}

#[test]
fn all_pipelines_share_the_memory_of_queries() {
    let daemon = Daemon::start("limits.query_memory_max = 16777216");
    let batch = json!({ "samples": [{ "metric": "m", "value": 1 }] }).to_string();
    assert_eq!(daemon.post("application/json", batch.as_bytes()).status, 200);
    let pipeline = |root: &str| {
        format!(
            "{{collection: '1m', pipeline: [{{$limit: 1}}, {{$project: {{a: [{root}]}}}}, {{$project: {{a: [{root}]}}}}]}}"
        )
    };
    let (status, answer) = send(
        &daemon,
        "POST",
        "/api/v1/aggregate",
        &[],
        &pipeline("'$$ROOT',".repeat(200).as_str()),
    );
    assert_eq!(status, 503, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("limits.query_memory_max"), "{answer}");
    // The memory is released.
    let small = format!(
        "{{collection: '1m', pipeline: [{{$project: {{a: [{}]}}}}]}}",
        "'$$ROOT',".repeat(100)
    );
    for _ in 0..30 {
        assert_eq!(send(&daemon, "POST", "/api/v1/aggregate", &[], &small).0, 200);
    }
    assert!(daemon.metrics().contains("granary_queries_refused_total{reason=\"busy\"} 1"));
}

#[test]
fn a_log_line_that_strangers_cause_is_not_repeated() {
    let daemon = Daemon::start("");
    let message = "too many alerts of other programs";
    let alert = |number: usize| json!({ "labels": { "alertname": "A", "n": number.to_string() } });
    let post = |numbers: std::ops::Range<usize>| {
        let alerts: Vec<_> = numbers.map(alert).collect();
        post(&daemon, "/api/v2/alerts", &[JSON], json!(alerts).to_string().as_bytes()).0
    };
    for numbers in [0..5000, 5000..10_000] {
        assert_eq!(post(numbers), 200);
    }
    for number in 10_000..10_300 {
        assert_eq!(post(number..number + 1), 503);
    }
    wait_until("lines are counted", || {
        daemon.metrics().contains("granary_log_lines_left_out_total 200")
    });
    let lines = daemon.log().lines().filter(|line| line.contains(message)).count();
    assert_eq!(lines, 100);
}

/// Returns a form with a rule that has these templates as annotations.
fn rule(templates: &[&str]) -> String {
    let annotations: Vec<_> =
        templates.iter().enumerate().map(|(n, text)| (format!("a{n}"), json!(text))).collect();
    let annotations: serde_json::Map<_, _> = annotations.into_iter().collect();
    let rule = json!({ "alert": "A", "expr": "up == 0", "annotations": annotations });
    let rules = json!({ "groups": [{ "name": "g", "rules": [rule] }] }).to_string();
    format!("rules={}", encoded(&rules))
}

fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Regression: a check executed the template: 40 doublings of a text ended the daemon, and two
/// loops over patterns blocked all queries for 20 seconds.
#[test]
fn a_check_of_rules_executes_no_template_and_is_not_available_by_a_link() {
    let daemon = Daemon::start("");
    let doubling =
        r#"{{ $x := "aaaaaaaaaa" }}{{ range 40 }}{{ $x = printf "%s%s" $x $x }}{{ end }}"#;
    let patterns = r#"{{ range 4000 }}{{ if match "(\\pL{1,5}){1,3}" "x" }}{{ end }}{{ end }}"#;
    let form = rule(&[doubling, patterns, patterns]);
    let before = peak_bytes(daemon.pid());
    for path in ["/api/v1/rules/check", "/prometheus/api/v1/rules/check"] {
        let (status, answer) = send(&daemon, "POST", path, &[FORM], &form);
        assert_eq!((status, &answer["data"]["rules"]), (200, &json!(1)), "{answer}");
        let (status, answer) = send(&daemon, "GET", &format!("{path}?{form}"), &[], "");
        assert_eq!((status, &answer["error"]), (405, &json!("bad_method")), "{answer}");
    }
    let grown = peak_bytes(daemon.pid()) - before;
    assert!(grown < 30 << 20, "{} MiB", grown >> 20);
    let form = rule(&["{{ $labels.a }} {{ $nothing }}"]);
    let (status, answer) = send(&daemon, "POST", "/api/v1/rules/check", &[FORM], &form);
    assert_eq!(status, 400, "{answer}");
    assert!(answer["error"].as_str().unwrap().contains("$nothing"), "{answer}");
}
