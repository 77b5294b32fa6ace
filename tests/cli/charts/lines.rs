//! The lines of a chart: merged, grouped and ranked series, and several displays of one series.

use serde_json::{Value, json};

use super::{chart, chart_error};
use crate::daemon::{Daemon, HOURS_AND_DAYS, granularities, numbers};

/// Sends the loads of two hosts with two cores each; one core has no zone.
fn send_loads(daemon: &Daemon) {
    let core_sample = |host: &str, core: i32, zone: &str, values: [f64; 3]| {
        let times = ["2026-01-01T00:00:10Z", "2026-01-01T00:20:00Z", "2026-01-01T01:10:00Z"];
        let sample = |(time, value): (&str, f64)| {
            json!({"metric": "load", "tags": {"host": host, "core": core.to_string(), "zone": zone},
                   "time": time, "value": value})
        };
        times.into_iter().zip(values).map(sample).collect::<Vec<_>>()
    };
    let samples = [
        core_sample("a", 0, "x", [1.0, 2.0, 3.0]),
        core_sample("a", 1, "x", [5.0, 6.0, 7.0]),
        core_sample("b", 0, "x", [9.0, 9.0, 9.0]),
        core_sample("b", 1, "", [0.0, 0.0, -3.0]),
    ];
    daemon.accept(&samples.concat().into());
}

const TWO_HOURS: &str =
    "--metric load --resolution 1h --start 2026-01-01 --end 2026-01-01T02:00:00Z";

#[test]
fn series_are_merged_by_their_cells_and_grouped_by_tags() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    send_loads(&daemon);
    let lines = |words: &str| {
        let answer = chart(&daemon, &format!("{TWO_HOURS} {words}"));
        let series = answer["series"].as_array().unwrap().iter();
        let line = |value: &Value| {
            (value["tags"].clone(), value["merged"].as_u64(), numbers(&value["points"]))
        };
        series.map(line).collect::<Vec<_>>()
    };
    // An average is the total sum divided by the total count, never an average of averages.
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
fn the_highest_and_lowest_series_are_shown_in_order() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    send_loads(&daemon);
    let hosts = |words: &str| {
        let answer = chart(&daemon, &format!("{TWO_HOURS} {words}"));
        let name = |value: &Value| {
            let tag = |name: &str| value["tags"][name].as_str().unwrap_or("").to_owned();
            tag("host") + &tag("core")
        };
        answer["series"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(hosts("--top 2"), ["b0", "a1"]);
    assert_eq!(hosts("--bottom 2"), ["b1", "a0"]);
    assert_eq!(hosts("--bottom 1 --by last"), ["b1"]);
    assert_eq!(hosts("--top 1 --by max --group-by host"), ["b"]);
    assert_eq!(hosts("--top 1 --by min --group-by host"), ["a"]);
    assert!(chart_error(&daemon, &format!("{TWO_HOURS} --top 1 --bottom 1")).contains("not both"));
    assert!(chart_error(&daemon, &format!("{TWO_HOURS} --by max")).contains("top=N"));
}

#[test]
fn one_answer_contains_several_displays_of_a_series() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    send_loads(&daemon);
    let answer = chart(&daemon, &format!("{TWO_HOURS} --merge --display min,avg,max,count,first"));
    let displays: Vec<_> = answer["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["display"].as_str().unwrap(), numbers(&line["points"])[0].unwrap()))
        .collect();
    // When several series have their first value at the same time, the smallest is used.
    let expected = [("min", 0.0), ("avg", 4.0), ("max", 9.0), ("count", 8.0), ("first", 0.0)];
    assert_eq!(displays, expected);
    let message = chart_error(&daemon, &format!("{TWO_HOURS} --display avg,median"));
    assert!(message.contains("\"median\" is not known"), "{message}");
}

#[test]
fn more_series_may_be_merged_and_ranked_than_shown() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    let sample = |host: usize, core: usize| {
        json!({"metric": "load", "tags": {"host": format!("h{host:03}"), "core": core.to_string()},
               "time": "2026-01-01T00:00:10Z", "value": host})
    };
    let samples: Vec<_> =
        (0..300).flat_map(|host| (0..4).map(move |core| sample(host, core))).collect();
    daemon.accept(&samples.into());
    let hosts = |words: &str| {
        let answer = chart(&daemon, &format!("{TWO_HOURS} {words}"));
        let name = |value: &Value| {
            (value["tags"]["host"].as_str().unwrap().to_owned(), value["merged"].as_u64())
        };
        answer["series"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    let top = ["h299", "h298"].map(|host| (host.to_owned(), Some(4)));
    assert_eq!(hosts("--group-by host --top 2"), top);
    assert_eq!(hosts("--top 1")[0].1, None);
    assert_eq!(chart(&daemon, &format!("{TWO_HOURS} --merge"))["series"][0]["merged"], 1200);
    let message = chart_error(&daemon, TWO_HOURS);
    assert!(message.contains("1200 series match, more than 1000"), "{message}");
    let message = chart_error(&daemon, &format!("{TWO_HOURS} --group-by host,core"));
    assert!(message.contains("1200 lines exceed the limit of 1000"), "{message}");
    drop(daemon);
    let daemon =
        Daemon::start(&format!("limits.query_points_max = 80\n{}", granularities(&HOURS_AND_DAYS)));
    send_loads(&daemon);
    let message = chart_error(&daemon, &format!("{TWO_HOURS} --merge"));
    assert!(
        message.contains("more than 2: add tags or raise limits.query_points_max"),
        "{message}"
    );
}
