//! Queries of documents: merged documents, time zones, slots of seconds, and refused requests.

use serde_json::{Value, json};

use crate::daemon::{Daemon, HOURS_AND_DAYS, client, granularities};

const HOUR: i64 = 3_600_000;

fn to_millis(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// Sends one view per hour for each of two hosts, from 25 to 30 March 2026.
fn send_views(daemon: &Daemon) {
    let times = (to_millis("2026-03-25T00:00:00Z")..to_millis("2026-03-31T00:00:00Z"))
        .step_by(HOUR as usize);
    let sample = |host: &str, time: i64| {
        json!({"metric": "views", "tags": {"host": host, "dc": "x"}, "kind": "delta", "time": time,
               "value": 1})
    };
    let samples: Vec<_> = times.flat_map(|time| [sample("a", time), sample("b", time)]).collect();
    daemon.accept(&samples.into());
}

fn query_documents(daemon: &Daemon, words: &str) -> Value {
    let words: Vec<_> =
        ["documents", "--metric", "views"].into_iter().chain(words.split(' ')).collect();
    daemon.query(&words)
}

#[test]
fn documents_are_merged_and_grouped_in_every_form() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    send_views(&daemon);
    let range = "--start 2026-03-28 --end 2026-03-29";
    let query = |words: &str| query_documents(&daemon, &format!("{range} {words}"));
    let nested = query("--resolution 1h --merge");
    let all = nested["documents"].as_array().unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!((&all[0]["tags"], &all[0]["merged"]), (&json!({"dc": "x"}), &json!(2)));
    assert_eq!((&all[0]["num_samples"], &all[0]["total_samples"]), (&json!(48), &json!(48.0)));
    assert_eq!(all[0]["values"]["7"]["n"], 2);
    let grouped = query("--resolution 1h --group-by host");
    let hosts: Vec<_> = grouped["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|document| document["tags"].clone())
        .collect();
    assert_eq!(hosts, [json!({"host": "a"}), json!({"host": "b"})]);
    let rows = query("--form rows --resolution 6h --merge --display total");
    let values: Vec<_> =
        rows["rows"].as_array().unwrap().iter().map(|row| row["value"].as_f64()).collect();
    assert_eq!(values, [Some(12.0); 4]);
    let levels = query("--form levels --merge");
    let levels = levels["documents"].as_array().unwrap();
    assert_eq!(levels.len(), 1);
    assert_eq!(levels[0]["total_samples"], 6.0 * 48.0);
    assert_eq!(levels[0]["days"][27]["hours"][3]["num_samples"], 2);
}

#[test]
fn an_empty_slot_has_a_row_without_a_value() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    let samples = ["2026-03-28T01:00:00Z", "2026-03-28T04:00:00Z"]
        .map(|time| json!({"metric": "visits", "kind": "delta", "time": time, "value": 2}));
    assert_eq!(daemon.post_json(&json!({ "samples": samples })).body["accepted"], 2);
    let words = "--start 2026-03-28 --end 2026-03-28T06:00:00Z --resolution 1h --form rows";
    let words: Vec<_> = words.split(' ').collect();
    let words = [&["documents", "--metric", "visits"], &words[..]].concat();
    let rows = daemon.query(&words);
    let row = |row: &Value| (row["date"].as_str().unwrap().to_owned(), row["value"].as_f64());
    let rows: Vec<_> = rows["rows"].as_array().unwrap().iter().map(row).collect();
    let expected = [None, Some(2.0), None, None, Some(2.0), None];
    assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), expected);
    assert_eq!(rows[3].0, "2026-03-28T03:00:00Z");
}

#[test]
fn documents_and_rows_follow_the_days_of_a_zone() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    send_views(&daemon);
    let range = "--start 2026-03-29T10:00:00Z --end 2026-03-29T11:00:00Z --merge";
    // On this day, the clocks in Berlin skip an hour.
    let answer = query_documents(&daemon, &format!("{range} --resolution 1h --tz Europe/Berlin"));
    let day = &answer["documents"][0];
    assert_eq!(day["timestamp_day"], "2026-03-29T00:00:00+01:00");
    assert_eq!(day["values"].as_object().unwrap().len(), 23);
    assert_eq!(day["total_samples"], 46.0);
    let answer = query_documents(&daemon, &format!("{range} --resolution 1d --tz Europe/Berlin"));
    let month = &answer["documents"][0];
    assert_eq!(month["timestamp_month"], "2026-03-01T00:00:00+01:00");
    assert_eq!(month["values"].as_object().unwrap().len(), 31);
    assert_eq!(
        (&month["values"]["28"]["n"], &month["values"]["27"]["n"]),
        (&json!(46), &json!(48))
    );
    let rows = query_documents(
        &daemon,
        &format!("{range} --resolution day --form rows --tz +05:00 --display count"),
    );
    assert_eq!(rows["rows"][0]["date"], "2026-03-29T00:00:00+05:00");
    assert_eq!(rows["rows"][0]["value"], 48.0);
    let hours = query_documents(
        &daemon,
        &format!("{range} --resolution 1h --form rows --tz Europe/Berlin"),
    );
    assert_eq!(hours["rows"][0]["date"], "2026-03-29T12:00:00+02:00");
}

#[test]
fn an_hour_of_seconds_is_nested_by_minute_and_second() {
    let settings = include_str!("../../config/seconds.toml");
    let levels = settings.split_once("[[granularity]]").unwrap().1;
    let daemon = Daemon::start(&format!("[[granularity]]{levels}"));
    let hour = (jiff::Timestamp::now().as_millisecond() / HOUR - 1) * HOUR;
    let sample = |time: i64| json!({"metric": "views", "kind": "delta", "time": time, "value": 2});
    daemon.accept(&json!([sample(hour), sample(hour + HOUR - 1), sample(hour + 65_000)]));
    let query_range = |from: i64, to: i64| {
        query_documents(
            &daemon,
            &format!("--resolution 1s --form nested --start {from} --end {to}"),
        )
    };
    let answer = query_range(hour, hour + HOUR);
    let document = &answer["documents"][0];
    assert_eq!(answer["documents"].as_array().unwrap().len(), 1);
    assert_eq!(to_millis(document["timestamp_hour"].as_str().unwrap()), hour);
    assert_eq!((&document["num_samples"], &document["total_samples"]), (&json!(3), &json!(6.0)));
    let minutes = document["values"].as_object().unwrap();
    assert_eq!(minutes.len(), 60);
    assert!(minutes.values().all(|minute| minute.as_object().unwrap().len() == 60));
    assert_eq!(document["values"]["59"]["59"]["sum"], 2.0);
    assert_eq!(document["values"]["1"]["5"]["n"], 1);
    assert_eq!(document["values"]["1"]["6"], json!({"n": 0}));
    let first = &document["minutes"]["0"];
    assert_eq!(to_millis(first["timestamp_minute"].as_str().unwrap()), hour);
    assert_eq!((&first["num_samples"], &first["total_samples"]), (&json!(1), &json!(2.0)));
    // For a range of a minute, the document is the minute.
    let answer = query_range(hour + 60_000, hour + 120_000);
    let minute = &answer["documents"][0];
    assert_eq!(to_millis(minute["timestamp_minute"].as_str().unwrap()), hour + 60_000);
    assert_eq!((&minute["values"]["5"]["n"], &minute["total_samples"]), (&json!(1), &json!(2.0)));
    for words in ["--range 2h", "--range 5m", "--range 2h --form levels", "--range 2h --unfold"] {
        let words: Vec<_> = words.split(' ').collect();
        let output = crate::daemon::granary()
            .args(["query", "--url", &daemon.url, "documents", "--metric", "views"])
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn a_parameter_without_effect_is_refused() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    let status = |path: &str| {
        let mut answer = client().get(format!("{}/api/v1/{path}", daemon.url)).call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    };
    for path in [
        "documents?metric=m&top=3",
        "documents?metric=m&by=max",
        "documents?metric=m&display=max",
        "documents?metric=m&form=levels&tz=Europe/Berlin",
        "documents?metric=m&form=levels&points=3",
        "documents?metric=m&after=1",
        "chart?metric=m&form=rows",
        "chart?metric=m&unfold=true",
        "chart?metric=m&upto=1",
        "chart?metric=m&colour=red",
        "series?metric=m&range=1h&resolution=1h",
        "series?tz=UTC",
        "export?metric=m&tz=Europe/Berlin",
        "export?metric=m&merge=true",
    ] {
        let (status, body) = status(path);
        assert_eq!(status, 400, "{path}: {body}");
    }
    for path in ["documents?metric=m&form=rows&display=max&points=3", "chart?metric=m&merge=true"] {
        assert_eq!(status(path).0, 200, "{path}");
    }
}
