//! Charts from the command line: calendars, merging, grouping, ranking, and the choice of the
//! resolution.

mod calendar;
mod lines;
mod slots;

use serde_json::{Value, json};

use crate::daemon::{Daemon, HOURS_AND_DAYS, granularities, numbers};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

fn to_millis(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// Sends one view every `step_ms` milliseconds of a range.
fn send_views(daemon: &Daemon, from: &str, to: &str, step_ms: i64) {
    let times: Vec<_> = (to_millis(from)..to_millis(to)).step_by(step_ms as usize).collect();
    for chunk in times.chunks(5000) {
        let sample =
            |time: &i64| json!({"metric": "views", "kind": "delta", "time": time, "value": 1});
        daemon.accept(&chunk.iter().map(sample).collect());
    }
}

fn chart(daemon: &Daemon, words: &str) -> Value {
    let words: Vec<_> = std::iter::once("chart").chain(words.split_whitespace()).collect();
    daemon.query(&words)
}

fn chart_error(daemon: &Daemon, words: &str) -> String {
    let words: Vec<_> = std::iter::once("chart").chain(words.split_whitespace()).collect();
    let output = daemon.run_query(&words);
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

fn slot_starts(answer: &Value) -> Vec<String> {
    let points = answer["series"][0]["points"].as_array().unwrap().iter();
    let start = |point: &Value| {
        jiff::Timestamp::from_millisecond(point[0].as_i64().unwrap()).unwrap().to_string()
    };
    points.map(start).collect()
}

fn values_of(answer: &Value) -> Vec<f64> {
    numbers(&answer["series"][0]["points"]).into_iter().map(Option::unwrap).collect()
}

#[test]
fn a_large_answer_is_chunked_and_releases_its_query_slot() {
    let daemon = Daemon::start(&format!(
        "limits.query_memory_max = 33_554_432\n{}",
        granularities(&HOURS_AND_DAYS)
    ));
    send_views(&daemon, "2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z", HOUR);
    let url = format!(
        "{}/api/v1/chart?metric=views&resolution=1h&start=2026-01-01&end=2026-04-01\
         &display=total,count,min,max,first,last",
        daemon.url
    );
    for _ in 0..20 {
        let mut response = ureq::get(&url).call().unwrap();
        assert_eq!(response.headers()["transfer-encoding"], "chunked");
        let body = response.body_mut().read_to_vec().unwrap();
        assert!(body.len() > 200_000, "{}", body.len());
        let answer: Value = serde_json::from_slice(&body).unwrap();
        for series in answer["series"].as_array().unwrap() {
            assert_eq!(numbers(&series["points"]), vec![Some(1.0); 90 * 24]);
        }
    }
}
