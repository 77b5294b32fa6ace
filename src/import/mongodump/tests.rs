//! Dumps of documents in the shapes of time series.

use bson::{Bson, Document, doc, oid::ObjectId};
use proptest::prelude::*;

use super::*;
use crate::import::{
    intake::{read_all, testing},
    selection::Selection,
};

/// 2026-11-21T10:00:00Z
const HOUR: i64 = 1_795_255_200_000;

fn date(at: i64) -> Bson {
    Bson::DateTime(bson::DateTime::from_millis(at))
}

fn dump(documents: &[Document]) -> Vec<u8> {
    let mut out = Vec::new();
    for document in documents {
        document.to_writer(&mut out).unwrap();
    }
    out
}

/// Returns the samples of a document in the collection `c`, relative to `HOUR` in seconds, and the
/// refusals.
fn read(documents: &[Document]) -> (Vec<String>, Vec<String>) {
    let (kept, _) = testing::read(&mut MongoDump::new(&dump(documents)[..], "c"));
    let relative = |sample: &String| {
        let mut words: Vec<_> = sample.split_whitespace().map(str::to_owned).collect();
        let time_index = words.len() - 2;
        words[time_index] = ((words[time_index].parse::<i64>().unwrap() - HOUR) / 1000).to_string();
        words.join(" ")
    };
    (kept.samples.iter().map(relative).collect(), kept.refused)
}

#[test]
fn a_month_of_levels_becomes_the_events_of_its_minutes() {
    let minute = |at: i64, butterflies: i32, honeybees: i32| {
        doc! { "date": date(HOUR + at * 60_000), "butterflies": butterflies, "honeybees": honeybees }
    };
    let hour = doc! {
        "date": date(HOUR), "butterflies": 3, "honeybees": 28,
        "minutes": [minute(0, 1, 0), minute(6, 0, 0), minute(12, 2, 28)],
    };
    let (samples, refused) = read(&[doc! {
        "_id": ObjectId::new(), "date": date(HOUR - 20 * 86_400_000),
        "location": 1, "scientist": "perpetua", "butterflies": 3, "honeybees": 28,
        "days": [{ "date": date(HOUR), "butterflies": 3, "honeybees": 28, "hours": [hour] }],
    }]);
    assert_eq!(
        samples,
        [
            r#"c_butterflies{location="1",scientist="perpetua"} delta 0 1"#,
            r#"c_butterflies{location="1",scientist="perpetua"} delta 720 2"#,
            r#"c_honeybees{location="1",scientist="perpetua"} delta 720 28"#,
        ]
    );
    assert!(refused.is_empty(), "{refused:?}");
    // Levels are optional.
    let (samples, _) = read(&[doc! { "days": [{ "date": date(HOUR), "n": 5_i64 }, { "n": 1 }] }]);
    assert_eq!(samples, ["c_n delta 0 5"]);
}

#[test]
fn a_bucket_becomes_its_measurements() {
    let (samples, refused) = read(&[doc! {
        "sensor_id": 12345, "start_date": date(HOUR), "end_date": date(HOUR + 3_599_000),
        "measurements": [
            { "timestamp": date(HOUR), "temperature": 40 },
            { "timestamp": date(HOUR + 61_000), "temperature": 40.5, "note": "warm" },
            { "temperature": 1 },
        ],
        "transaction_count": 42, "sum_temperature": 1783,
    }]);
    let expected = [
        r#"c_temperature{sensor_id="12345"} gauge 0 40"#,
        r#"c_temperature{sensor_id="12345"} gauge 61 40.5"#,
    ];
    assert_eq!(samples, expected);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().any(|line| line.contains("no timestamp that is a date")), "{refused:?}");
}

#[test]
fn a_minute_of_seconds_counts_events() {
    let (samples, refused) = read(&[doc! {
        "page": "/index.htm", "timestamp_minute": date(HOUR), "total_views": 7,
        "seconds": { "0": 3, "1": 0, "59": 4, "60": 1 },
    }]);
    let expected =
        [r#"c_views{page="/index.htm"} delta 0 3"#, r#"c_views{page="/index.htm"} delta 59 4"#];
    assert_eq!(samples, expected);
    assert!(refused[0].contains("not numbers of seconds 0 to 59"), "{refused:?}");
}

#[test]
fn an_hour_of_minutes_of_seconds_becomes_levels_without_preallocated_zeros() {
    let hour = |written: i32| {
        doc! {
            "timestamp_hour": date(HOUR), "type": "memory_used", "host": "db1",
            "num_samples": written, "total_samples": 30.0,
            "values": { "0": { "0": 10.0, "1": 0.0 }, "59": { "59": 20.0 } },
        }
    };
    let tagged = |rest: &str| format!("memory_used{{host=\"db1\"}} gauge {rest}");
    assert_eq!(read(&[hour(2)]).0, [tagged("0 10"), tagged("3599 20")]);
    assert_eq!(read(&[hour(3)]).0, [tagged("0 10"), tagged("1 0"), tagged("3599 20")]);
    let flat = doc! { "timestamp_hour": date(HOUR), "values": { "0": 1, "3599": 2, "7": null } };
    assert_eq!(read(&[flat]).0, ["c_values gauge 0 1", "c_values gauge 3599 2"]);
    let minute = doc! { "timestamp_minute": date(HOUR), "type": "m", "values": [1.0, 0.0] };
    assert_eq!(read(&[minute]).0, ["m gauge 0 1", "m gauge 1 0"]);
}

#[test]
fn a_bucket_of_a_time_series_collection_becomes_its_columns() {
    let bucket = |version: i32| {
        doc! {
            "_id": ObjectId::new(),
            "control": {
                "version": version, "count": 2,
                "min": { "_id": ObjectId::new(), "t": date(HOUR), "temp": 12, "wind": { "x": 1 } },
                "max": { "t": date(HOUR + 60_000), "temp": 13, "wind": { "x": 2 } },
            },
            "meta": { "sensor": { "id": 5 }, "type": "temperature" },
            "data": {
                "_id": { "0": ObjectId::new(), "1": ObjectId::new() },
                "t": { "0": date(HOUR), "1": date(HOUR + 60_000) },
                "temp": { "0": 12, "1": 13 },
                "wind": { "1": { "x": 2 } },
                "sky": { "0": "blue" },
            },
        }
    };
    let (samples, refused) = read(&[bucket(1)]);
    let tags = r#"{meta.sensor.id="5",meta.type="temperature"}"#;
    let expected = ["temp", "temp", "wind_x"].iter().zip(["0 12", "60 13", "60 2"]);
    let expected: Vec<_> =
        expected.map(|(field, rest)| format!("c_{field}{tags} gauge {rest}")).collect();
    assert_eq!(samples, expected);
    assert!(refused.len() == 1 && refused[0].contains("field sky is not a number"), "{refused:?}");
    let (samples, refused) = read(&[bucket(2)]);
    assert!(samples.is_empty());
    assert!(refused[0].starts_with("1 bad_sample 2 the columns of this bucket are compressed"));
}

#[test]
fn another_document_is_refused_with_its_number_and_a_cut_file_is_named() {
    let documents =
        [doc! { "a": 1 }, doc! { "timestamp_minute": date(HOUR), "values": { "1": 2 } }];
    let (samples, refused) = read(&documents);
    assert_eq!(samples, ["c_values gauge 1 2"]);
    assert!(refused[0].starts_with("1 bad_sample 1 a document with the fields a has none"));
    let fault = |bytes: &[u8]| {
        let mut kept = testing::RecordedOutput::default();
        let mut source = MongoDump::new(bytes, "c");
        let (_, end) = read_all(&mut source, "x".into(), &Selection::default(), &mut kept);
        end.unwrap_err().to_string()
    };
    let bytes = dump(&documents);
    let (cut, _) = bytes.split_at(bytes.len() - 1);
    assert_eq!(fault(cut), "document 2: the file ends within it");
    assert!(fault(&[0x6d, 0xe2, 0x99, 0x81, 0]).contains("without --archive"));
    assert!(fault(b"not a dump at all").contains("is this a file of mongodump?"));
}

#[test]
fn a_file_names_its_collection() {
    for (file, expected) in [
        ("weather.bson", "weather"),
        ("system.buckets.weather.bson.gz", "weather"),
        ("a%2Fb.bson", "a/b"),
        ("100%.bson", "100%"),
    ] {
        assert_eq!(collection_of(file), expected);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        cut in 0..500_usize,
        field in "(days|values|seconds|control|data|measurements|timestamp_hour)",
    ) {
        let nested = doc! { "date": date(HOUR), "0": { "0": 1, "x": null }, "min": { "t": date(1) } };
        let document = doc! {
            "timestamp_hour": date(HOUR), "values": nested.clone(), "days": [nested.clone(), 1],
            "control": nested.clone(), "data": { "t": nested.clone() }, &field: nested,
        };
        let built = dump(&[document.clone(), document]);
        let (cut, _) = built.split_at(cut.min(built.len()));
        for input in [&bytes[..], &built[..], cut] {
            let mut kept = testing::RecordedOutput::default();
            let mut source = MongoDump::new(input, "c");
            drop(read_all(&mut source, "x".into(), &Selection::default(), &mut kept));
        }
    }
}

#[test]
fn documents_of_any_depth_are_refused_instead_of_parsed() {
    let nested = |depth: usize| {
        // Each level is a document with the field `a`: its length, type, name, content, and a zero.
        let mut bytes = vec![5, 0, 0, 0, 0];
        for _ in 1..depth {
            let length = (bytes.len() + 8) as u32;
            let head = [&length.to_le_bytes()[..], &[3, b'a', 0]].concat();
            bytes = [head, bytes, vec![0]].concat();
        }
        bytes
    };
    assert!(parse(&nested(DEPTH_MAX)).is_ok());
    for depth in [DEPTH_MAX + 1, 20_000] {
        assert!(parse(&nested(depth)).unwrap_err().contains("deeper than 100 levels"));
    }
    assert!(parse(&[5, 0, 0, 0, 1]).is_err());
}
