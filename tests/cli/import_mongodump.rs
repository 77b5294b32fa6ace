//! Imports of dumps of MongoDB collections into the real daemon, whose values are read back.

use std::fs;

use bson::{Bson, Document, doc};

use crate::{
    daemon::{Daemon, HOURS_AND_DAYS, granularities},
    import::{import, points},
    remote_write::minute,
};

fn bson_date(at: i64) -> Bson {
    Bson::DateTime(bson::DateTime::from_millis(at))
}

fn write_dump(folder: &std::path::Path, file: &str, documents: &[Document]) {
    let mut out = Vec::new();
    for document in documents {
        document.to_writer(&mut out).unwrap();
    }
    fs::write(folder.join(file), out).unwrap();
}

const HOUR: i64 = 3_600_000;

/// Writes a dump of a collection of each supported shape, with samples from `start` on.
fn write_dumps(folder: &std::path::Path, start: i64) {
    let seconds: Document = (0..60).map(|i| (i.to_string(), Bson::Int32(i))).collect();
    let hour: Document =
        (0..60).map(|i| (i.to_string(), Bson::Document(seconds.clone()))).collect();
    write_dump(
        folder,
        "mms.bson",
        &[doc! {
            "timestamp_hour": bson_date(start), "type": "memory_used", "host": "db1",
            "num_samples": 3600, "total_samples": 106_200, "values": hour,
        }],
    );
    write_dump(
        folder,
        "views.bson",
        &[doc! {
            "page": "/index.htm", "timestamp_minute": bson_date(start), "total_views": 1770,
            "seconds": seconds,
        }],
    );
    write_dump(
        folder,
        "insects.bson",
        &[doc! {
            "date": bson_date(start), "location": 1, "scientist": "perpetua", "butterflies": 5,
            "days": [{ "date": bson_date(start), "butterflies": 5, "hours": [
                { "date": bson_date(start), "butterflies": 2 }, { "date": bson_date(start + HOUR), "butterflies": 3 },
            ] }],
        }],
    );
    write_dump(
        folder,
        "sensors.bson",
        &[doc! {
            "sensor_id": 12345, "start_date": bson_date(start), "end_date": bson_date(start + HOUR - 1000),
            "measurements": [
                { "timestamp": bson_date(start), "temperature": 40 },
                { "timestamp": bson_date(start + 60_000), "temperature": 42 },
            ],
            "transaction_count": 2, "sum_temperature": 82,
        }],
    );
    let bucket = |version: i32| {
        doc! {
            "control": { "version": version, "min": { "t": bson_date(start) }, "max": { "t": bson_date(start) },
                         "count": 1 },
            "meta": { "type": "temperature" },
            "data": { "t": { "0": bson_date(start) }, "temp": { "0": 13 } },
        }
    };
    write_dump(folder, "system.buckets.weather.bson", &[bucket(1), bucket(2)]);
    fs::write(folder.join("weather.metadata.json"), "{}").unwrap();
}

#[test]
fn a_dump_of_all_shapes_counts_once_however_often_it_is_imported() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    let dir = tempfile::tempdir().unwrap();
    let start = minute() / (24 * HOUR) * 24 * HOUR - 24 * HOUR;
    write_dumps(dir.path(), start);
    let args = ["--format", "mongodump", dir.path().to_str().unwrap()];
    let first_import = import(&daemon, &args);
    // The dumps have 3,600 values of memory, 59 seconds with views, 2 hours with insects, 2
    // measurements, and a bucket.
    assert_eq!(first_import.counts(), (3600 + 59 + 2 + 2 + 1, 0, 1), "{}", first_import.errors);
    assert_eq!(first_import.code, Some(2), "a compressed bucket is refused");
    assert!(
        first_import.errors.contains("columns of this bucket are compressed"),
        "{}",
        first_import.errors
    );
    let second_import = import(&daemon, &args);
    assert_eq!(second_import.counts(), (0, 3664, 1), "{}", second_import.errors);
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
    let first_series =
        |metric: &str| daemon.query(&["series", "--metric", metric])["series"][0].clone();
    assert_eq!(first_series("insects_butterflies")["tags"]["scientist"], "perpetua");
    assert_eq!(first_series("insects_butterflies")["kind"], "delta");
    assert_eq!(first_series("weather_temp")["tags"]["meta.type"], "temperature");
}
