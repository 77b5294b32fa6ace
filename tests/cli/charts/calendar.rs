//! Charts by hours, days, weeks and months of a time zone.

use serde_json::{Value, json};

use super::{HOUR, MINUTE, chart, send_views, slot_starts, values_of};
use crate::daemon::{Daemon, HOURS_AND_DAYS, granary, granularities};

/// Granularities of 5m, hours and days.
const FINE: [[&str; 4]; 3] = [["5m", "4h", "1d", "7280d"], HOURS_AND_DAYS[0], HOURS_AND_DAYS[1]];

#[test]
fn days_in_berlin_have_23_and_25_hours_when_clocks_change() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    send_views(&daemon, "2026-03-27T00:00:00Z", "2026-04-01T00:00:00Z", HOUR);
    send_views(&daemon, "2026-10-23T00:00:00Z", "2026-10-28T00:00:00Z", HOUR);
    let days = |from: &str, to: &str| {
        let range = format!("--metric views --start {from} --end {to}");
        chart(&daemon, &format!("{range} --resolution day --tz Europe/Berlin"))
    };
    let spring = days("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
    assert_eq!(values_of(&spring), [24.0, 23.0, 24.0]);
    assert_eq!(
        slot_starts(&spring),
        ["2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"]
    );
    assert_eq!(
        (&spring["resolution"], &spring["time_zone"]),
        (&json!("day"), &json!("Europe/Berlin"))
    );
    assert_eq!(spring["notes"], json!([]));
    let autumn = days("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
    assert_eq!(values_of(&autumn), [24.0, 25.0, 24.0]);
    // The rate of a day uses its true length.
    let words = "--metric views --resolution day --tz Europe/Berlin --display avg_per_sec \
                 --start 2026-10-24T12:00:00Z --end 2026-10-26T12:00:00Z";
    assert_eq!(values_of(&chart(&daemon, words)), [1.0 / 3600.0; 3]);
    let words = "--metric views --resolution hour --tz Europe/Berlin \
                 --start 2026-10-24T22:00:00Z --end 2026-10-25T23:00:00Z";
    assert_eq!(values_of(&chart(&daemon, words)), [1.0; 25]);
}

#[test]
fn days_that_begin_between_full_hours_are_merged_from_finer_slots() {
    let daemon = Daemon::start(&granularities(&FINE));
    send_views(&daemon, "2026-01-08T00:00:00Z", "2026-01-13T00:00:00Z", 15 * MINUTE);
    let days = |zone: &str| {
        let words = "--metric views --resolution day --start 2026-01-09T12:00:00Z \
                     --end 2026-01-11T12:00:00Z";
        chart(&daemon, &format!("{words} --tz {zone}"))
    };
    for (zone, first) in
        [("Asia/Kolkata", "2026-01-08T18:30:00Z"), ("Asia/Kathmandu", "2026-01-08T18:15:00Z")]
    {
        let answer = days(zone);
        assert_eq!(slot_starts(&answer)[0], first, "{zone}");
        assert_eq!(values_of(&answer), [96.0; 3], "{zone}");
        assert_eq!(answer["notes"], json!([]));
    }
    // With only 1h, totals are complete, and the answer names the slots that are not exact.
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    send_views(&daemon, "2026-01-08T00:00:00Z", "2026-01-13T00:00:00Z", 15 * MINUTE);
    let words = "--metric views --resolution day --tz Asia/Kathmandu \
                 --start 2026-01-09T12:00:00Z --end 2026-01-11T12:00:00Z";
    let answer = chart(&daemon, words);
    assert_eq!(values_of(&answer).len(), 3);
    let note = answer["notes"][0].as_str().unwrap();
    assert!(note.starts_with("slots of 1h do not end where each day begins in Asia/Kathmandu"));
}

#[test]
fn sums_are_exact_per_hour_day_week_two_weeks_and_month() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    // One sample per hour from 1 January 2026, a Thursday, to the end of March.
    send_views(&daemon, "2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z", HOUR);
    let sums = |resolution: &str, range: &str| {
        let words = format!("--metric views --display total --resolution {resolution} {range}");
        let answer = chart(&daemon, &words);
        assert_eq!(answer["notes"], json!([]), "{resolution}");
        (slot_starts(&answer), values_of(&answer))
    };
    let quarter = "--start 2026-01-01 --end 2026-04-01";
    let (starts, months) = sums("month", quarter);
    assert_eq!(starts, ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"]);
    assert_eq!(months, [744.0, 672.0, 744.0]);
    let (starts, weeks) = sums("week", "--start 2026-01-01 --end 2026-01-19");
    assert_eq!(starts, ["2025-12-29T00:00:00Z", "2026-01-05T00:00:00Z", "2026-01-12T00:00:00Z"]);
    assert_eq!(weeks, [96.0, 168.0, 168.0]);
    // Slots of two weeks are counted from Monday, 5 January 1970.
    let (starts, weeks) = sums("2weeks", "--start 2026-01-01 --end 2026-02-01");
    assert_eq!(starts, ["2025-12-22T00:00:00Z", "2026-01-05T00:00:00Z", "2026-01-19T00:00:00Z"]);
    assert_eq!(weeks, [96.0, 336.0, 336.0]);
    assert_eq!(sums("day", quarter).1, [24.0; 90]);
    assert_eq!(sums("hour", "--start 2026-01-01 --end 2026-01-03").1, [1.0; 48]);
    let berlin = sums("month", &format!("{quarter} --tz Europe/Berlin"));
    // In Berlin the year begins an hour earlier, so the first slot has no samples before 00:00 UTC.
    // April begins two hours earlier.
    assert_eq!(
        berlin.0[1..],
        ["2026-01-31T23:00:00Z", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"]
    );
    assert_eq!(berlin.1, [743.0, 672.0, 743.0, 2.0]);
}

#[test]
fn the_current_slot_is_marked() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    daemon.accept(&json!([{"metric": "views", "kind": "delta", "value": 1}]));
    for words in ["--resolution day --tz Europe/Berlin", "--resolution 1h", "--resolution month"] {
        let answer = chart(&daemon, &format!("--metric views --range 40d {words}"));
        let last = answer["series"][0]["points"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(answer["incomplete_from"], last[0], "{words}");
        assert_eq!(last[1], 1.0, "{words}");
    }
    let past =
        chart(&daemon, "--metric views --resolution day --start 2026-01-01 --end 2026-02-01");
    assert_eq!(past.get("incomplete_from"), None);
}

#[test]
fn a_time_zone_may_be_an_offset() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    send_views(&daemon, "2026-03-27T00:00:00Z", "2026-04-01T00:00:00Z", HOUR);
    let days = "metric=views&resolution=day&start=2026-03-28T12:00:00Z&end=2026-03-29T12:00:00Z";
    for zone in ["+02:00", "%2B02:00", "%2B0200"] {
        let url = format!("{}/api/v1/chart?{days}&tz={zone}", daemon.url);
        let answer = ureq::get(&url).call().unwrap().body_mut().read_to_vec().unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["time_zone"], "+02:00");
        assert_eq!(slot_starts(&answer), ["2026-03-27T22:00:00Z", "2026-03-28T22:00:00Z"]);
        assert_eq!(values_of(&answer), [24.0; 2]);
    }
}

#[test]
fn the_table_of_a_chart_is_in_its_time_zone() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    send_views(&daemon, "2026-03-27T00:00:00Z", "2026-04-01T00:00:00Z", HOUR);
    let output = granary()
        .args(["query", "--url", &daemon.url, "chart", "--metric", "views", "--resolution", "day"])
        .args(["--tz", "Europe/Berlin", "--start", "2026-03-28T12:00:00Z"])
        .args(["--end", "2026-03-30T12:00:00Z", "--display", "total"])
        .output()
        .unwrap();
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap(), @r"
    views, total

    time (Europe/Berlin), day  total
    2026-03-28                    24
    2026-03-29                    23
    2026-03-30                    24
    ");
}
