//! The width of slots: the range and the limit of points determine it, or a request names any
//! multiple of a granularity.

use serde_json::{Value, json};

use super::{HOUR, chart, chart_error, send_views, slot_starts, to_millis, values_of};
use crate::daemon::{Daemon, HOURS_AND_DAYS, granularities, numbers};

#[test]
fn auto_chooses_the_finest_available_granularity_within_the_limit_of_points() {
    let daemon = Daemon::start("");
    daemon.accept(&json!([{"metric": "views", "kind": "delta", "value": 1}]));
    let chosen_resolution =
        |words: &str| chart(&daemon, &format!("--metric views {words}"))["resolution"].clone();
    assert_eq!(chosen_resolution("--range 24h"), "1m");
    assert_eq!(chosen_resolution("--range 24h --points 300"), "5m");
    assert_eq!(chosen_resolution("--range 24h --points 100"), "15m");
    assert_eq!(chosen_resolution("--range 24h --points 10"), "3h");
    assert_eq!(chosen_resolution("--range 5y"), "2d");
    assert_eq!(chosen_resolution("--range 5y --tz Europe/Berlin"), "2d");
    assert_eq!(chosen_resolution("--range 3d"), "5m");
    // Slots of 1m would fit, but 1m no longer keeps this range.
    let day = |ago: i64| (jiff::Timestamp::now().as_millisecond() - ago * 24 * HOUR).to_string();
    assert_eq!(chosen_resolution(&format!("--start {} --end {}", day(5), day(4))), "5m");
    assert_eq!(chosen_resolution("--range 4y --tz Europe/Berlin"), "day");
    assert!(chart_error(&daemon, "--metric views --points 0").contains("use 1 or more"));
    assert!(chart_error(&daemon, "--metric views --tz Mars/Olympus").contains("Europe/Berlin"));
    let message = chart_error(&daemon, "--metric views --resolution fortnight");
    assert!(
        message.contains("1d, or for charts one of hour, day, week, 2weeks, month"),
        "{message}"
    );
}

#[test]
fn points_are_limited_in_any_range_and_zone() {
    let daemon = Daemon::start("");
    daemon.accept(&json!([{"metric": "views", "kind": "delta", "value": 1}]));
    for range in ["1h", "25h", "31d", "1y", "5y"] {
        for points in [1, 2, 10, 99, 1000] {
            for zone in ["", " --tz Asia/Kolkata"] {
                let words = format!("--metric views --range {range} --points {points}{zone}");
                let answer = chart(&daemon, &words);
                let shown = answer["series"][0]["points"].as_array().unwrap().len();
                assert!((1..=points).contains(&shown), "{words}: {shown}");
                assert_eq!(sum_of_values(&answer), 1.0, "{words}");
            }
        }
    }
}

fn sum_of_values(answer: &Value) -> f64 {
    numbers(&answer["series"][0]["points"]).into_iter().flatten().sum()
}

#[test]
fn slots_are_any_multiple_of_a_granularity_and_quarters_and_years() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    send_views(&daemon, "2026-01-01T00:00:00Z", "2026-07-15T00:00:00Z", HOUR);
    let shown = |words: &str| {
        let answer = chart(&daemon, &format!("--metric views --display total {words}"));
        assert_eq!(answer["notes"], json!([]), "{words}");
        (slot_starts(&answer), values_of(&answer))
    };
    let (starts, sums) = shown("--resolution quarter --start 2026-02-03 --end 2026-07-03");
    assert_eq!(starts, ["2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z", "2026-07-01T00:00:00Z"]);
    assert_eq!(sums, [90.0 * 24.0, 91.0 * 24.0, 14.0 * 24.0]);
    let year = "--resolution year --start 2026-02-03 --end 2026-07-03";
    assert_eq!(shown(year).1, [195.0 * 24.0]);
    assert_eq!(shown(&format!("{year} --tz Europe/Berlin")).1, [195.0 * 24.0]);
    let (starts, sums) =
        shown("--resolution 6h --start 2026-02-03T07:00:00Z --end 2026-02-03T13:00:00Z");
    assert_eq!(starts, ["2026-02-03T06:00:00Z", "2026-02-03T12:00:00Z"]);
    assert_eq!(sums, [6.0, 6.0]);
    // Weeks begin on a Monday.
    let (starts, sums) = shown("--resolution 1w --start 2026-02-03 --end 2026-02-04");
    assert_eq!((starts, sums), (vec!["2026-02-02T00:00:00Z".to_owned()], vec![168.0]));
    // The first and the last value of a year are right, although the milliseconds of a year exceed
    // the range of a slot's offset.
    for (display, hours) in [("first", 0.0), ("last", 194.0 * 24.0 + 23.0)] {
        let samples = json!([{"metric": "hours", "time": to_millis("2026-01-01T00:00:00Z"), "value": 0},
            {"metric": "hours", "time": to_millis("2026-07-14T23:00:00Z"), "value": 194 * 24 + 23},
            {"metric": "hours", "time": to_millis("2026-03-14T23:00:00Z"), "value": -5}]);
        daemon.accept(&samples);
        let words = format!(
            "--metric hours --display {display} --resolution year --start 2026-01-01 --end 2026-12-01"
        );
        assert_eq!(values_of(&chart(&daemon, &words)), [hours]);
    }
    let message = chart_error(&daemon, "--metric views --resolution 90s");
    assert!(message.contains("whole multiple of a granularity"), "{message}");
}
