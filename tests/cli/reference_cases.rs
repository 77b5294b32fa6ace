//! The cases of the sources that this store follows, end to end over HTTP and the command line.

use serde_json::{Value, json};

use crate::daemon::{Daemon, LONG, SECONDS, granularities, numbers};

/// The minute that ended last, so that all its seconds lie in the past.
fn last_minute() -> i64 {
    let now = jiff::Timestamp::now().as_millisecond();
    (now / 60_000 - 1) * 60_000
}

#[test]
fn scientists_count_butterflies_and_honeybees() {
    let daemon = Daemon::start(&granularities(&LONG));
    let mut samples = Vec::new();
    // Two scientists count at the same instants, at six minute steps and at odd times.
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
        series.flat_map(|own| numbers(&own["points"])).flatten().sum::<f64>()
    };
    // 18 + 19 + 20 = 57 a reading; location 1 has two readings a day and location 2 one.
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
        // Several views in a second, and none in every seventh.
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
        let words = ["documents", "--metric", "page_views", "--resolution", resolution];
        daemon.query(&[&words[..], &["--start", &start, "--end", &end]].concat())
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
