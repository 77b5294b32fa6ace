//! Published examples of time series in MongoDB, which the store supports over HTTP and on the
//! command line.

use serde_json::{Value, json};

use crate::daemon::{Daemon, HOURS_AND_DAYS, SECONDS, granularities, numbers, request};

/// Returns the start of the last complete minute.
fn last_minute() -> i64 {
    let now = jiff::Timestamp::now().as_millisecond();
    (now / 60_000 - 1) * 60_000
}

#[test]
fn scientists_count_butterflies_and_honeybees() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    let mut samples = Vec::new();
    // Two scientists count at the same times, which have no regular interval.
    for (scientist, weight) in [("langstroth", 1), ("perpetua", 2)] {
        for day in 17..=21 {
            for (time, location) in [("00:00", "1"), ("00:06", "1"), ("17:31", "2")] {
                let time = format!("2015-08-{day}T{time}:00Z");
                let tags = json!({ "location": location, "scientist": scientist });
                let sample = |metric: &str, value: i32| json!({"metric": metric, "tags": tags, "kind": "delta", "time": time, "value": value});
                samples.push(sample("butterflies", weight * day));
                samples.push(sample("honeybees", 0));
            }
        }
    }
    daemon.accept(&Value::Array(samples));
    let total = |metric: &str, tags: &str, resolution: &str| {
        let answer = daemon.query(&[
            "chart",
            "--metric",
            metric,
            "--tags",
            tags,
            "--resolution",
            resolution,
            "--start",
            "2015-08-18",
            "--end",
            "2015-08-21",
            "--display",
            "total",
        ]);
        let series = answer["series"].as_array().unwrap().iter();
        series.flat_map(|line| numbers(&line["points"])).flatten().sum::<f64>()
    };
    // The counts of three days are 18 + 19 + 20 = 57; location 1 has two readings a day, and
    // location 2 has one.
    for resolution in ["1h", "1d"] {
        assert_eq!(total("butterflies", "location=1,scientist=perpetua", resolution), 228.0);
        assert_eq!(total("butterflies", "location=2,scientist=langstroth", resolution), 57.0);
        assert_eq!(total("butterflies", "location=1", resolution), 342.0);
        assert_eq!(total("honeybees", "location=1", resolution), 0.0);
    }
}

#[test]
fn page_views_per_second_and_minute_have_one_total() {
    let daemon = Daemon::start(&granularities(&SECONDS));
    let minute = last_minute();
    let mut expected = 0.0;
    for second in 0..60 {
        // A second has up to three views, and every seventh second has none.
        let views = if second % 7 == 0 { 0 } else { second % 4 };
        let sample = |millis: i64| {
            json!({"metric": "page_views", "tags": {"page": "/index.htm"}, "kind": "delta",
                   "time": minute + second * 1000 + millis, "value": 1})
        };
        let samples: Vec<_> = (0..views).map(|view| sample(view * 100)).collect();
        expected += views as f64;
        if !samples.is_empty() {
            daemon.accept(&Value::Array(samples));
        }
    }
    let (start, end) = (minute.to_string(), (minute + 60_000).to_string());
    let documents = |resolution: &str| {
        let args = ["documents", "--metric", "page_views", "--resolution", resolution];
        daemon.query(&[&args[..], &["--start", &start, "--end", &end]].concat())
    };
    let answer = documents("1s");
    let document = &answer["documents"][0];
    assert_eq!(document["total_samples"], expected);
    assert_eq!(document["num_samples"], expected);
    let values = document["values"].as_object().unwrap();
    assert_eq!(values.len(), 60);
    let sum: f64 = values.values().filter_map(|value| value["sum"].as_f64()).sum();
    assert_eq!(sum, expected);
    assert_eq!(values["0"], json!({"n": 0}), "an empty slot is empty, not zero");
    let slot = (minute / 60_000 % 60).to_string();
    assert_eq!(documents("1m")["documents"][0]["values"][&slot]["sum"], expected);
}

#[test]
fn memory_used_per_second_gives_the_average_from_samples_and_total() {
    let daemon = Daemon::start(&granularities(&SECONDS));
    let minute = last_minute();
    let samples: Vec<_> = (0..58)
        .map(|second| {
            json!({"metric": "memory_used", "tags": {"host": "db1"}, "unit": "bytes",
                   "time": minute + second * 1000, "value": 1_000_000 + second})
        })
        .collect();
    daemon.accept(&Value::Array(samples));
    let (start, end) = (minute.to_string(), (minute + 60_000).to_string());
    let range = ["--metric", "memory_used", "--start", &start, "--end", &end];
    let answer = daemon.query(&[&["documents", "--resolution", "1s"], &range[..]].concat());
    let document = &answer["documents"][0];
    assert_eq!(document["num_samples"], 58);
    assert_eq!(document["total_samples"], 58_001_653.0);
    let answer = daemon.query(&[&["chart", "--resolution", "1m"], &range[..]].concat());
    assert_eq!(numbers(&answer["series"][0]["points"]), [Some(58_001_653.0 / 58.0)]);
}

#[test]
fn a_stock_ticker_shows_first_last_lowest_and_highest_whatever_the_order() {
    let daemon = Daemon::start(&granularities(&SECONDS));
    let minute = last_minute();
    let ticks = [(30_000, 99.5), (1000, 101.0), (59_000, 100.25), (15_000, 104.0)];
    let samples: Vec<_> = ticks
        .iter()
        .map(|(at, price)| {
            json!({"metric": "price", "tags": {"symbol": "MDB"}, "time": minute + at, "value": price})
        })
        .collect();
    daemon.accept(&Value::Array(samples));
    let (start, end) = (minute.to_string(), (minute + 60_000).to_string());
    for (display, expected) in
        [("first", 101.0), ("last", 100.25), ("min", 99.5), ("max", 104.0), ("count", 4.0)]
    {
        let answer = daemon.query(&[
            "chart",
            "--metric",
            "price",
            "--resolution",
            "1m",
            "--start",
            &start,
            "--end",
            &end,
            "--display",
            display,
        ]);
        assert_eq!(numbers(&answer["series"][0]["points"]), [Some(expected)], "{display}");
    }
}

#[test]
fn zero_is_a_number_and_an_empty_slot_is_null() {
    let daemon = Daemon::start(&granularities(&SECONDS));
    let minute = last_minute();
    daemon.accept(&json!([{"metric": "errors", "time": minute + 1000, "value": 0}]));
    let (start, end) = (minute.to_string(), (minute + 3000).to_string());
    let answer = daemon.query(&[
        "chart",
        "--metric",
        "errors",
        "--resolution",
        "1s",
        "--start",
        &start,
        "--end",
        &end,
    ]);
    assert_eq!(numbers(&answer["series"][0]["points"]), [None, Some(0.0), None]);
}

/// Sends updates in the form of MongoDB; returns the answer.
fn send_update(daemon: &Daemon, text: &str) -> Value {
    let head = [("Content-Type", "application/json")];
    let (status, answer) =
        request(&daemon.url, "POST", "/api/v1/update", &head, text).expect("an answer");
    assert_eq!(status, 200, "{answer}");
    answer
}

#[test]
fn published_updates_count_and_set_slots() {
    let mut daemon = Daemon::start(&granularities(&SECONDS));
    let minute = jiff::Timestamp::from_millisecond(last_minute()).unwrap();
    let view = format!(
        "db.page_views.update({{page: '/index.htm', timestamp_minute: ISODate('{minute}')}},
            {{$inc: {{'seconds.25': 1, total_views: 1}}}}, {{upsert: true}});"
    );
    // Each update of a second counts: two in one request, and a third in another request.
    assert_eq!(send_update(&daemon, &view.repeat(2))["accepted"], 2);
    assert_eq!(send_update(&daemon, &view)["accepted"], 1);
    let memory_update = |second: u32, value: u32| {
        format!(
            "db.metrics.update({{timestamp_minute: ISODate('{minute}'), type: 'memory_used'}},
                {{ {{$set: {{'values.{second}': {value}}}}}, {{$inc: {{num_samples: 1, total_samples: {value}}}}} }})"
        )
    };
    assert_eq!(send_update(&daemon, &memory_update(58, 10))["accepted"], 1);
    assert_eq!(send_update(&daemon, &memory_update(59, 20))["accepted"], 1);
    // A repeated reading is a duplicate.
    let repeated = send_update(&daemon, &memory_update(59, 20));
    assert_eq!((&repeated["accepted"], &repeated["duplicates"]), (&json!(0), &json!(1)));
    // A numbered command counts once; a bad update does not affect others.
    let command = json!({"update": "page_views", "agent": "shop", "epoch": 1, "seq": 1, "updates": [
        {"q": {"page": "/index.htm", "timestamp_minute": minute.to_string()}, "u": {"$inc": {"seconds.1": 4}}},
        {"q": {"page": "/index.htm", "timestamp_minute": minute.to_string()}, "u": {"$inc": {"seconds.1": -4}}}]});
    let first = send_update(&daemon, &command.to_string());
    assert_eq!((&first["accepted"], &first["refused"]), (&json!(1), &json!({"bad_sample": 1})));
    assert!(first["examples"][0]["message"].as_str().unwrap().contains("cannot be taken back"));
    assert_eq!(send_update(&daemon, &command.to_string())["accepted"], 0);
    // An increment of a gauge is refused, because the series has another kind.
    let update_with_count = format!(
        "db.metrics.update({{timestamp_minute: ISODate('{minute}'), type: 'memory_used'}},
            {{$inc: {{'values.3': 1}}}})"
    );
    assert_eq!(send_update(&daemon, &update_with_count)["refused"], json!({"kind_conflict": 1}));
    // Acknowledged updates are present after a kill.
    daemon.kill();
    daemon.restart();
    let start = minute.as_millisecond();
    let (start, end) = (start.to_string(), (start + 60_000).to_string());
    let document = |metric: &str| {
        let args = ["documents", "--metric", metric, "--resolution", "1s", "--start", &start];
        daemon.query(&[&args[..], &["--end", &end]].concat())["documents"][0].clone()
    };
    let views = document("page_views");
    assert_eq!((&views["num_samples"], &views["total_samples"]), (&json!(4), &json!(7.0)));
    assert_eq!(views["values"]["25"]["sum"], 3.0);
    let memory = document("memory_used");
    assert_eq!((&memory["num_samples"], &memory["total_samples"]), (&json!(2), &json!(30.0)));
    assert_eq!(memory["values"]["59"]["last"], 20.0);
    let (status, answer) = request(&daemon.url, "POST", "/api/v1/update", &[], &view).unwrap();
    assert_eq!((status, &answer["error"]), (415, &json!("malformed")));
}
