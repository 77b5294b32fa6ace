//! Charts end to end: calendars, merging, grouping, ranking, and the choice of the resolution.

use serde_json::{Value, json};

use crate::{
    daemon::Daemon,
    reference_cases::{LONG, accept, numbers},
};

/// Five minutes and coarser, kept for twenty years.
const FINE: &str = "
[[granularity]]
slot = '5m'
document = '4h'
partition = '1d'
retention = '7280d'
[[granularity]]
slot = '1h'
document = '1d'
partition = '1w'
retention = '1040w'
[[granularity]]
slot = '1d'
document = '1mo'
partition = '1y'
retention = '20y'
";
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

fn at(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// One view every `step_ms` of a range.
fn views(daemon: &Daemon, from: &str, to: &str, step_ms: i64) {
    let times: Vec<_> = (at(from)..at(to)).step_by(step_ms as usize).collect();
    for chunk in times.chunks(5000) {
        let sample =
            |time: &i64| json!({"metric": "views", "kind": "delta", "time": time, "value": 1});
        accept(daemon, &chunk.iter().map(sample).collect());
    }
}

fn chart(daemon: &Daemon, words: &str) -> Value {
    let words: Vec<_> = std::iter::once("chart").chain(words.split_whitespace()).collect();
    daemon.query(&words)
}

fn refused(daemon: &Daemon, words: &str) -> String {
    let words: Vec<_> = std::iter::once("chart").chain(words.split_whitespace()).collect();
    let output = daemon.run_query(&words);
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

fn starts(answer: &Value) -> Vec<String> {
    let points = answer["series"][0]["points"].as_array().unwrap().iter();
    let start = |point: &Value| {
        jiff::Timestamp::from_millisecond(point[0].as_i64().unwrap()).unwrap().to_string()
    };
    points.map(start).collect()
}

fn totals(answer: &Value) -> Vec<f64> {
    numbers(&answer["series"][0]["points"]).into_iter().map(Option::unwrap).collect()
}

#[test]
fn days_in_berlin_have_23_and_25_hours_when_clocks_change() {
    let daemon = Daemon::start(LONG);
    views(&daemon, "2026-03-27T00:00:00Z", "2026-04-01T00:00:00Z", HOUR);
    views(&daemon, "2026-10-23T00:00:00Z", "2026-10-28T00:00:00Z", HOUR);
    let days = |from: &str, to: &str| {
        let range = format!("--metric views --start {from} --end {to}");
        chart(&daemon, &format!("{range} --resolution day --tz Europe/Berlin"))
    };
    let spring = days("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
    assert_eq!(totals(&spring), [24.0, 23.0, 24.0]);
    assert_eq!(
        starts(&spring),
        ["2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"]
    );
    assert_eq!(
        (&spring["resolution"], &spring["time_zone"]),
        (&json!("day"), &json!("Europe/Berlin"))
    );
    assert_eq!(spring["notes"], json!([]));
    let autumn = days("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
    assert_eq!(totals(&autumn), [24.0, 25.0, 24.0]);
    // The rate of a day is by its true length.
    let words = "--metric views --resolution day --tz Europe/Berlin --display avg_per_sec \
                 --start 2026-10-24T12:00:00Z --end 2026-10-26T12:00:00Z";
    assert_eq!(totals(&chart(&daemon, words)), [1.0 / 3600.0; 3]);
    let words = "--metric views --resolution hour --tz Europe/Berlin \
                 --start 2026-10-24T22:00:00Z --end 2026-10-25T23:00:00Z";
    assert_eq!(totals(&chart(&daemon, words)), [1.0; 25]);
}

#[test]
fn days_of_zones_between_the_hours_are_merged_from_finer_slots() {
    let daemon = Daemon::start(FINE);
    views(&daemon, "2026-01-08T00:00:00Z", "2026-01-13T00:00:00Z", 15 * MINUTE);
    let days = |zone: &str| {
        let words = "--metric views --resolution day --start 2026-01-09T12:00:00Z \
                     --end 2026-01-11T12:00:00Z";
        chart(&daemon, &format!("{words} --tz {zone}"))
    };
    for (zone, first) in
        [("Asia/Kolkata", "2026-01-08T18:30:00Z"), ("Asia/Kathmandu", "2026-01-08T18:15:00Z")]
    {
        let answer = days(zone);
        assert_eq!(starts(&answer)[0], first, "{zone}");
        assert_eq!(totals(&answer), [96.0; 3], "{zone}");
        assert_eq!(answer["notes"], json!([]));
    }
    // With hours alone the totals hold together, and the answer says where they are not exact.
    let daemon = Daemon::start(LONG);
    views(&daemon, "2026-01-08T00:00:00Z", "2026-01-13T00:00:00Z", 15 * MINUTE);
    let words = "--metric views --resolution day --tz Asia/Kathmandu \
                 --start 2026-01-09T12:00:00Z --end 2026-01-11T12:00:00Z";
    let answer = chart(&daemon, words);
    assert_eq!(totals(&answer).len(), 3);
    let note = answer["notes"][0].as_str().unwrap();
    assert!(note.starts_with("slots of 1h do not end where each day begins in Asia/Kathmandu"));
}

#[test]
fn sums_per_hour_day_week_two_weeks_and_month() {
    let daemon = Daemon::start(LONG);
    // One an hour from 1 January 2026, a Thursday, to the end of March.
    views(&daemon, "2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z", HOUR);
    let sums = |resolution: &str, range: &str| {
        let words = format!("--metric views --display total --resolution {resolution} {range}");
        let answer = chart(&daemon, &words);
        assert_eq!(answer["notes"], json!([]), "{resolution}");
        (starts(&answer), totals(&answer))
    };
    let quarter = "--start 2026-01-01 --end 2026-04-01";
    let (starts, months) = sums("month", quarter);
    assert_eq!(starts, ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"]);
    assert_eq!(months, [744.0, 672.0, 744.0]);
    let (starts, weeks) = sums("week", "--start 2026-01-01 --end 2026-01-19");
    assert_eq!(starts, ["2025-12-29T00:00:00Z", "2026-01-05T00:00:00Z", "2026-01-12T00:00:00Z"]);
    assert_eq!(weeks, [96.0, 168.0, 168.0]);
    // Two weeks are counted from Monday, 5 January 1970.
    let (starts, weeks) = sums("2weeks", "--start 2026-01-01 --end 2026-02-01");
    assert_eq!(starts, ["2025-12-22T00:00:00Z", "2026-01-05T00:00:00Z", "2026-01-19T00:00:00Z"]);
    assert_eq!(weeks, [96.0, 336.0, 336.0]);
    assert_eq!(sums("day", quarter).1, [24.0; 90]);
    assert_eq!(sums("hour", "--start 2026-01-01 --end 2026-01-03").1, [1.0; 48]);
    let berlin = sums("month", &format!("{quarter} --tz Europe/Berlin"));
    // In Berlin the year begins an hour earlier, where there is nothing; April begins two earlier.
    assert_eq!(
        berlin.0[1..],
        ["2026-01-31T23:00:00Z", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"]
    );
    assert_eq!(berlin.1, [743.0, 672.0, 743.0, 2.0]);
}

#[test]
fn the_slot_that_is_not_over_is_marked() {
    let daemon = Daemon::start(LONG);
    accept(&daemon, &json!([{"metric": "views", "kind": "delta", "value": 1}]));
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

/// Two hosts with two cores each, and one without a zone.
fn fleet(daemon: &Daemon) {
    let own = |host: &str, core: i32, zone: &str, values: [f64; 3]| {
        let times = ["2026-01-01T00:00:10Z", "2026-01-01T00:20:00Z", "2026-01-01T01:10:00Z"];
        let sample = |(time, value): (&str, f64)| {
            json!({"metric": "load", "tags": {"host": host, "core": core.to_string(), "zone": zone},
                   "time": time, "value": value})
        };
        times.into_iter().zip(values).map(sample).collect::<Vec<_>>()
    };
    let samples = [
        own("a", 0, "x", [1.0, 2.0, 3.0]),
        own("a", 1, "x", [5.0, 6.0, 7.0]),
        own("b", 0, "x", [9.0, 9.0, 9.0]),
        own("b", 1, "", [0.0, 0.0, -3.0]),
    ];
    accept(daemon, &samples.concat().into());
}

const TWO_HOURS: &str =
    "--metric load --resolution 1h --start 2026-01-01 --end 2026-01-01T02:00:00Z";

#[test]
fn series_are_merged_by_their_cells_and_grouped_by_tags() {
    let daemon = Daemon::start(LONG);
    fleet(&daemon);
    let lines = |words: &str| {
        let answer = chart(&daemon, &format!("{TWO_HOURS} {words}"));
        let series = answer["series"].as_array().unwrap().iter();
        let line =
            |own: &Value| (own["tags"].clone(), own["merged"].as_u64(), numbers(&own["points"]));
        series.map(line).collect::<Vec<_>>()
    };
    // An average is the sum by the number, never an average of averages.
    let all = [Some(32.0 / 8.0), Some(16.0 / 4.0)];
    assert_eq!(lines("--merge"), [(json!({}), Some(4), all.to_vec())]);
    assert_eq!(
        lines("--group-by host --display total"),
        [
            (json!({"host": "a"}), Some(2), vec![Some(14.0), Some(10.0)]),
            (json!({"host": "b"}), Some(2), vec![Some(18.0), Some(6.0)]),
        ]
    );
    assert_eq!(
        lines("--group-by zone,core --display max"),
        [
            (json!({"core": "1"}), Some(1), vec![Some(0.0), Some(-3.0)]),
            (json!({"zone": "x", "core": "0"}), Some(2), vec![Some(9.0), Some(9.0)]),
            (json!({"zone": "x", "core": "1"}), Some(1), vec![Some(6.0), Some(7.0)]),
        ]
    );
    assert_eq!(
        lines("--merge --tags host=a --display last")[0].0,
        json!({"host": "a", "zone": "x"})
    );
}

#[test]
fn the_highest_and_lowest_series_are_shown_in_their_order() {
    let daemon = Daemon::start(LONG);
    fleet(&daemon);
    let hosts = |words: &str| {
        let answer = chart(&daemon, &format!("{TWO_HOURS} {words}"));
        let name = |own: &Value| {
            let tag = |name: &str| own["tags"][name].as_str().unwrap_or("").to_owned();
            tag("host") + &tag("core")
        };
        answer["series"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(hosts("--top 2"), ["b0", "a1"]);
    assert_eq!(hosts("--bottom 2"), ["b1", "a0"]);
    assert_eq!(hosts("--bottom 1 --by last"), ["b1"]);
    assert_eq!(hosts("--top 1 --by max --group-by host"), ["b"]);
    assert_eq!(hosts("--top 1 --by min --group-by host"), ["a"]);
    assert!(refused(&daemon, &format!("{TWO_HOURS} --top 1 --bottom 1")).contains("not both"));
    assert!(refused(&daemon, &format!("{TWO_HOURS} --by max")).contains("top=N"));
}

#[test]
fn several_numbers_of_a_series_come_in_one_answer() {
    let daemon = Daemon::start(LONG);
    fleet(&daemon);
    let answer = chart(&daemon, &format!("{TWO_HOURS} --merge --display min,avg,max,count,first"));
    let shown: Vec<_> = answer["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| (own["display"].as_str().unwrap(), numbers(&own["points"])[0].unwrap()))
        .collect();
    // Of several first values at one time the smallest is taken.
    let expected = [("min", 0.0), ("avg", 4.0), ("max", 9.0), ("count", 8.0), ("first", 0.0)];
    assert_eq!(shown, expected);
    let message = refused(&daemon, &format!("{TWO_HOURS} --display avg,median"));
    assert!(message.contains("\"median\" is not known"), "{message}");
}

#[test]
fn auto_takes_the_finest_granularity_within_the_points_that_is_kept() {
    let daemon = Daemon::start("");
    accept(&daemon, &json!([{"metric": "views", "kind": "delta", "value": 1}]));
    let chosen =
        |words: &str| chart(&daemon, &format!("--metric views {words}"))["resolution"].clone();
    assert_eq!(chosen("--range 24h"), "1m");
    assert_eq!(chosen("--range 24h --points 300"), "5m");
    assert_eq!(chosen("--range 24h --points 100"), "15m");
    assert_eq!(chosen("--range 24h --points 10"), "3h");
    assert_eq!(chosen("--range 5y"), "2d");
    assert_eq!(chosen("--range 5y --tz Europe/Berlin"), "2d");
    assert_eq!(chosen("--range 3d"), "5m");
    // Minutes would fit and are no longer kept.
    let day = |ago: i64| (jiff::Timestamp::now().as_millisecond() - ago * 24 * HOUR).to_string();
    assert_eq!(chosen(&format!("--start {} --end {}", day(5), day(4))), "5m");
    assert_eq!(chosen("--range 4y --tz Europe/Berlin"), "day");
    assert!(refused(&daemon, "--metric views --points 0").contains("use 1 or more"));
    assert!(refused(&daemon, "--metric views --tz Mars/Olympus").contains("Europe/Berlin"));
    let message = refused(&daemon, "--metric views --resolution fortnight");
    assert!(
        message.contains("1d, or for charts one of hour, day, week, 2weeks, month"),
        "{message}"
    );
}

#[test]
fn points_are_a_bound_whatever_the_range_and_the_zone() {
    let daemon = Daemon::start("");
    accept(&daemon, &json!([{"metric": "views", "kind": "delta", "value": 1}]));
    for range in ["1h", "25h", "31d", "1y", "5y"] {
        for points in [1, 2, 10, 99, 1000] {
            for zone in ["", " --tz Asia/Kolkata"] {
                let words = format!("--metric views --range {range} --points {points}{zone}");
                let answer = chart(&daemon, &words);
                let shown = answer["series"][0]["points"].as_array().unwrap().len();
                assert!((1..=points).contains(&shown), "{words}: {shown}");
                assert_eq!(total_of(&answer), 1.0, "{words}");
            }
        }
    }
}

fn total_of(answer: &Value) -> f64 {
    numbers(&answer["series"][0]["points"]).into_iter().flatten().sum()
}

#[test]
fn slots_are_any_multiple_of_a_granularity_and_quarters_and_years() {
    let daemon = Daemon::start(LONG);
    views(&daemon, "2026-01-01T00:00:00Z", "2026-07-15T00:00:00Z", HOUR);
    let shown = |words: &str| {
        let answer = chart(&daemon, &format!("--metric views --display total {words}"));
        assert_eq!(answer["notes"], json!([]), "{words}");
        (starts(&answer), totals(&answer))
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
    // First and last of a year, whose milliseconds are more than an offset can tell.
    for (display, hours) in [("first", 0.0), ("last", 194.0 * 24.0 + 23.0)] {
        let own = json!([{"metric": "hours", "time": at("2026-01-01T00:00:00Z"), "value": 0},
            {"metric": "hours", "time": at("2026-07-14T23:00:00Z"), "value": 194 * 24 + 23},
            {"metric": "hours", "time": at("2026-03-14T23:00:00Z"), "value": -5}]);
        accept(&daemon, &own);
        let words = format!(
            "--metric hours --display {display} --resolution year --start 2026-01-01 --end 2026-12-01"
        );
        assert_eq!(totals(&chart(&daemon, &words)), [hours]);
    }
    let message = refused(&daemon, "--metric views --resolution 90s");
    assert!(message.contains("whole multiple of a granularity"), "{message}");
}

#[test]
fn more_series_are_merged_and_ranked_than_an_answer_may_show() {
    let daemon = Daemon::start(&format!("limits.query_series_max = 10\n{LONG}"));
    let sample = |host: usize, core: usize| {
        json!({"metric": "load", "tags": {"host": format!("h{host:02}"), "core": core.to_string()},
               "time": "2026-01-01T00:00:10Z", "value": host})
    };
    let samples: Vec<_> =
        (0..30).flat_map(|host| (0..4).map(move |core| sample(host, core))).collect();
    accept(&daemon, &samples.into());
    let hosts = |words: &str| {
        let answer = chart(&daemon, &format!("{TWO_HOURS} {words}"));
        let name = |own: &Value| {
            (own["tags"]["host"].as_str().unwrap().to_owned(), own["merged"].as_u64())
        };
        answer["series"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    let top = ["h29", "h28"].map(|host| (host.to_owned(), Some(4)));
    assert_eq!(hosts("--group-by host --top 2"), top);
    assert_eq!(hosts("--top 1")[0].1, None);
    assert_eq!(chart(&daemon, &format!("{TWO_HOURS} --merge"))["series"][0]["merged"], 120);
    let message = refused(&daemon, TWO_HOURS);
    assert!(message.contains("120 series match, more than 10"), "{message}");
    let message = refused(&daemon, &format!("{TWO_HOURS} --group-by host"));
    assert!(message.contains("30 lines are more than 10"), "{message}");
    drop(daemon);
    let daemon = Daemon::start(&format!("promql.series_max = 2\n{LONG}"));
    fleet(&daemon);
    let message = refused(&daemon, &format!("{TWO_HOURS} --merge"));
    assert!(
        message.contains("more than 2: name more tags or raise promql.series_max"),
        "{message}"
    );
}

#[test]
fn a_time_zone_may_be_an_offset() {
    let daemon = Daemon::start(LONG);
    views(&daemon, "2026-03-27T00:00:00Z", "2026-04-01T00:00:00Z", HOUR);
    let days = "metric=views&resolution=day&start=2026-03-28T12:00:00Z&end=2026-03-29T12:00:00Z";
    for zone in ["+02:00", "%2B02:00", "%2B0200"] {
        let url = format!("{}/api/v1/chart?{days}&tz={zone}", daemon.url);
        let answer = ureq::get(&url).call().unwrap().body_mut().read_to_vec().unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["time_zone"], "+02:00");
        assert_eq!(starts(&answer), ["2026-03-27T22:00:00Z", "2026-03-28T22:00:00Z"]);
        assert_eq!(totals(&answer), [24.0; 2]);
    }
}

#[test]
fn a_large_answer_comes_in_chunks_and_leaves_its_place_among_the_queries() {
    let daemon = Daemon::start(&format!("limits.queries_max = 1\n{LONG}"));
    views(&daemon, "2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z", HOUR);
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

#[test]
fn the_table_of_a_chart_is_in_its_time_zone() {
    let daemon = Daemon::start(LONG);
    views(&daemon, "2026-03-27T00:00:00Z", "2026-04-01T00:00:00Z", HOUR);
    let output = crate::daemon::granary()
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
