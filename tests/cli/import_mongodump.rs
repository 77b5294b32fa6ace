//! Imports of dumps of MongoDB collections into the real daemon, and the values read back.

use std::fs;

use bson::{Bson, Document, doc};

use crate::{
    daemon::{Daemon, HOURS_AND_DAYS, granularities},
    import::{import, points},
    remote_write::minute,
};

fn date(at: i64) -> Bson {
    Bson::DateTime(bson::DateTime::from_millis(at))
}

fn dump(folder: &std::path::Path, file: &str, documents: &[Document]) {
    let mut out = Vec::new();
    for document in documents {
        document.to_writer(&mut out).unwrap();
    }
    fs::write(folder.join(file), out).unwrap();
}

const HOUR: i64 = 3_600_000;

/// Writes a collection in each shape, from a time on.
fn write_dumps(folder: &std::path::Path, start: i64) {
    let seconds: Document = (0..60).map(|i| (i.to_string(), Bson::Int32(i))).collect();
    let hour: Document =
        (0..60).map(|i| (i.to_string(), Bson::Document(seconds.clone()))).collect();
    dump(
        folder,
        "mms.bson",
        &[doc! {
            "timestamp_hour": date(start), "type": "memory_used", "host": "db1",
            "num_samples": 3600, "total_samples": 106_200, "values": hour,
        }],
    );
    dump(
        folder,
        "views.bson",
        &[doc! {
            "page": "/index.htm", "timestamp_minute": date(start), "total_views": 1770,
            "seconds": seconds,
        }],
    );
    dump(
        folder,
        "insects.bson",
        &[doc! {
            "date": date(start), "location": 1, "scientist": "perpetua", "butterflies": 5,
            "days": [{ "date": date(start), "butterflies": 5, "hours": [
                { "date": date(start), "butterflies": 2 }, { "date": date(start + HOUR), "butterflies": 3 },
            ] }],
        }],
    );
    dump(
        folder,
        "sensors.bson",
        &[doc! {
            "sensor_id": 12345, "start_date": date(start), "end_date": date(start + HOUR - 1000),
            "measurements": [
                { "timestamp": date(start), "temperature": 40 },
                { "timestamp": date(start + 60_000), "temperature": 42 },
            ],
            "transaction_count": 2, "sum_temperature": 82,
        }],
    );
    let bucket = |version: i32| {
        doc! {
            "control": { "version": version, "min": { "t": date(start) }, "max": { "t": date(start) },
                         "count": 1 },
            "meta": { "type": "temperature" },
            "data": { "t": { "0": date(start) }, "temp": { "0": 13 } },
        }
    };
    dump(folder, "system.buckets.weather.bson", &[bucket(1), bucket(2)]);
    fs::write(folder.join("weather.metadata.json"), "{}").unwrap();
}

#[test]
fn a_dump_of_all_shapes_counts_once_however_often_it_is_imported() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    let dir = tempfile::tempdir().unwrap();
    let start = minute() / (24 * HOUR) * 24 * HOUR - 24 * HOUR;
    write_dumps(dir.path(), start);
    let words = ["--format", "mongodump", dir.path().to_str().unwrap()];
    let first = import(&daemon, &words);
    // 3,600 levels, 59 seconds with events, 2 hours with events, 2 measurements, a bucket.
    assert_eq!(first.counts(), (3600 + 59 + 2 + 2 + 1, 0, 1), "{}", first.errors);
    assert_eq!(first.code, Some(2), "a compressed bucket is refused");
    assert!(first.errors.contains("columns of this bucket are compressed"), "{}", first.errors);
    let again = import(&daemon, &words);
    assert_eq!(again.counts(), (0, 3664, 1), "{}", again.errors);
    for (metric, display, expected) in [
        ("memory_used", "avg", 29.5),
        ("memory_used", "count", 3600.0),
        ("views_views", "total", 1770.0),
        ("insects_butterflies", "total", 2.0),
        ("sensors_temperature", "avg", 41.0),
        ("weather_temp", "last", 13.0),
    ] {
        let found = points(&daemon, metric, "1h", "7d", display);
        assert_eq!(found[0], (start, expected), "{metric} {display}");
    }
    let tags = |metric: &str| daemon.query(&["series", "--metric", metric])["series"][0].clone();
    assert_eq!(tags("insects_butterflies")["tags"]["scientist"], "perpetua");
    assert_eq!(tags("insects_butterflies")["kind"], "delta");
    assert_eq!(tags("weather_temp")["tags"]["meta.type"], "temperature");
}
