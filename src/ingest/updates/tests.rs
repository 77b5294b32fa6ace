//! Tests of updates: published examples with their samples, and refusals.

use proptest::prelude::*;

use super::*;
use crate::model::UnixMillis;

/// Returns the samples, sorted, and the messages of refusals.
fn decoded(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut samples, mut refused) = (Vec::new(), Vec::new());
    for JsonBatch { batch, invalid, .. } in decode(text.as_bytes()).unwrap() {
        for ((reference, at), value) in batch.refs.iter().zip(&batch.times).zip(&batch.values) {
            let series = &batch.series[*reference as usize];
            let tags: Vec<_> =
                series.tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let (metric, kind, at) = (&series.metric, series.kind, UnixMillis(*at));
            samples.push(format!("{metric}{{{}}} {kind} {at} {value}", tags.join(",")));
        }
        refused.extend(invalid.examples.into_iter().map(|example| example.message));
    }
    samples.sort();
    (samples, refused)
}

fn check(text: &str, expected: &[&str]) {
    let (samples, refused) = decoded(text);
    assert_eq!(
        (samples, refused),
        (expected.iter().map(|sample| (*sample).to_owned()).collect(), vec![]),
        "{text}"
    );
}

#[test]
fn published_updates_become_samples() {
    // A counter of page views, first without the total, then with it.
    let view = ["page_views{page=/index.htm} delta 2014-01-01T10:05:25Z 1"];
    check(
        "db.page_views.update({page: '/index.htm', timestamp_minute: ISODate('2014-01-01T10:05:00Z')},
            {$inc: {'seconds.25': 1}}, {upsert: true})",
        &view,
    );
    check(
        "db.page_views.update({page: '/index.htm', timestamp_minute: ISODate('2014-01-01T10:05:00Z')},
            {$inc: {'seconds.25': 1, total_views: 1}}, true, false);",
        &view,
    );
    // A second of memory use: first as published, which is not a document, then in hours of
    // minutes.
    let memory = ["memory_used{} gauge 2013-10-10T23:06:59Z 2000000"];
    check(
        "db.metrics.update(\n  {\n    timestamp_minute: ISODate(\u{201c}2013-10-10T23:06:00.000Z\u{201d}),\n    type: \u{201c}memory_used\u{201d}\n  },\n  {\n    {$set: {\u{201c}values.59\u{201d}: 2000000 }},\n    {$inc: {num_samples: 1, total_samples: 2000000 }}\n  }\n)",
        &memory,
    );
    check(
        "db.metrics.update({timestamp_hour: ISODate('2013-10-10T23:00:00.000Z'), type: 'memory_used'},
            {$set: {'values.6.59': 2000000}})",
        &memory,
    );
    // Butterflies and honeybees at all levels at once.
    check(
        "db.test.update({location: 1, scientist: 'langstroth', date: ISODate('2015-08-01')}, {$inc: {
            butterflies: 12, honeybees: 23,
            'days.17.butterflies': 12, 'days.17.honeybees': 23,
            'days.17.hours.0.butterflies': 12, 'days.17.hours.0.honeybees': 23,
            'days.17.hours.0.minutes.6.butterflies': 12, 'days.17.hours.0.minutes.6.honeybees': 23}})",
        &[
            "butterflies{location=1,scientist=langstroth} delta 2015-08-18T00:06:00Z 12",
            "honeybees{location=1,scientist=langstroth} delta 2015-08-18T00:06:00Z 23",
        ],
    );
    // A bucket of readings, with totals computed from it.
    check(
        "db.sensors.updateOne({sensor_id: 12345, start_date: {$lte: ISODate('2019-01-31T10:00:00Z')},
                transaction_count: {$lt: 200}},
            {$push: {measurements: {timestamp: ISODate('2019-01-31T10:05:00Z'), temperature: 40}},
             $inc: {transaction_count: 1, sum_temperature: 40}, $max: {max_temperature: 40}}, {upsert: true})",
        &["temperature{sensor_id=12345} gauge 2019-01-31T10:05:00Z 40"],
    );
    // A measurement of a time-series collection, and shells of zeros, which have no samples.
    check(
        "db.weather.insertMany([{metadata: {sensorId: 5578, type: 'temperature'},
            timestamp: ISODate('2021-05-18T00:00:00Z'), temp: 12}])",
        &["temp{sensorId=5578,type=temperature} gauge 2021-05-18T00:00:00Z 12"],
    );
    check(
        "db.test.insert({location: 1, date: ISODate('2015-08-01'), bees: 0,
            days: [{date: ISODate('2015-08-01'), bees: 0, hours: [{bees: 0}]}]})
         db.test.update({location: 1, date: ISODate('2015-08-01')},
            {$setOnInsert: {bees: 0, days: [{bees: 0}]}}, {upsert: true})",
        &[],
    );
}

#[test]
fn commands_are_numbered_and_several_updates_are_one_request() {
    let command = r#"{"update": "views", "agent": "shop", "epoch": 7, "seq": 3, "updates": [
        {"q": {"timestamp_minute": {"$date": "2014-01-01T10:05:00Z"}, "page": "a"},
         "u": {"$inc": {"seconds.1": 1}, "$set": {"values.2.load": 0.5}}, "upsert": true}]}"#;
    let batches = decode(command.as_bytes()).unwrap();
    assert_eq!(batches.len(), 1);
    let batch = &batches[0].batch;
    assert_eq!((&*batch.agent, batch.epoch, batch.seq, batch.values.len()), ("shop", 7, 3, 2));
    // Without numbers, counts and readings are separate batches.
    let unnumbered = command.replace(r#""agent": "shop", "epoch": 7, "seq": 3, "#, "");
    let batches = decode(format!("{unnumbered}\n{unnumbered}").as_bytes()).unwrap();
    let kinds: Vec<_> = batches.iter().map(|batch| batch.batch.series[0].kind).collect();
    assert_eq!(kinds, [Kind::Delta, Kind::Gauge]);
    assert!(batches.iter().all(|batch| batch.batch.seq == 0 && batch.batch.series.len() == 1));
    assert!(batches.iter().all(|batch| batch.batch.values.len() == 2));
    let bulk = "db.v.bulkWrite([{updateOne: {filter: {date: ISODate('2015-08-01')}, update:
        {$inc: {'days.1.a': 1}}, upsert: true}}, {insertOne: {document: {at: ISODate('2015-08-01'), b: 2}}}])";
    check(bulk, &["a{} delta 2015-08-02T00:00:00Z 1", "b{} gauge 2015-08-01T00:00:00Z 2"]);
}

#[test]
fn parts_that_cannot_become_samples_are_refused_with_the_reason() {
    let minute = "{timestamp_minute: ISODate('2014-01-01T10:05:00Z'), page: 'a'}";
    let month = "{date: ISODate('2015-08-01')}";
    for (query, change, reason) in [
        (minute, "{$inc: {'seconds.1': -1}}", "cannot be taken back"),
        (minute, "{$set: {total_views: 5}}", "total_views follows from its slots"),
        (minute, "{$set: {name: 5}}", "name names no slot"),
        (minute, "{$set: {'seconds.1': 'x'}}", "is a text; a sample is a number"),
        (minute, "{$inc: {total_views: 1}}", "total_views names no slot"),
        (minute, "{$inc: {'seconds.1': 1, errors: 1}}", "errors names no slot"),
        (minute, "{$inc: {'seconds.1': 1, total_views: 2}}", "would grow by 2, and its slots by 1"),
        (minute, "{$inc: {'seconds.60': 1}}", "seconds has slots up to 59"),
        (minute, "{$inc: {'seconds.1.a': 1}, $set: {'seconds.2.a': 1}}", "counted and set at once"),
        (minute, "{$max: {max: 7}, $set: {'values.1': 6}}", "of which none is 7"),
        (minute, "{$unset: {'values.1': ''}}", "$unset: is not supported"),
        (minute, "{$mul: {'values.1': 2}}", "$mul: is not supported"),
        (minute, "{$setOnInsert: {'values.1': 2}}", "every slot begins empty"),
        (minute, "{values: {}}", "a whole document cannot be replaced"),
        (minute, "[{$set: {a: 1}}]", "a pipeline as an update"),
        (
            month,
            "{$inc: {'days.17.a': 3, 'days.17.hours.1.a': 2}}",
            "grow by 3, and its slots by 2",
        ),
        (month, "{$inc: {'days.1.a': 1, 'days.1.num_samples': 5}}", "num_samples would grow by 5"),
        (month, "{$inc: {'days.1.a': 1, a: 2}}", "a would grow by 2"),
        (month, "{$inc: {'values.1': 1}}", "a month has no values"),
        ("{date: ISODate('2015-08-18')}", "{$inc: {'days.1.a': 1}}", "is not the start of a month"),
        (
            "{page: 'a'}",
            "{$inc: {'seconds.1': 1}}",
            "the filter needs a start in one of timestamp_minute",
        ),
        ("{at: ISODate('2015-08-18')}", "{$inc: {'days.1.a': 1}}", "at does not"),
        ("{_id: 7}", "{$inc: {'days.1.a': 1}}", "_id cannot be chosen"),
        (
            "{page: {$in: ['a']}}",
            "{$inc: {'days.1.a': 1}}",
            "page: the filter of a tag must be its value",
        ),
        ("{$or: []}", "{$inc: {'days.1.a': 1}}", "$or: identify the document by"),
        ("{}", "{$push: {list: {a: 1}}}", "a reading has one time"),
    ] {
        // The refusal does not affect other updates.
        let good = format!("db.v.update({minute}, {{$inc: {{'seconds.9': 1}}}})");
        let (samples, refused) = decoded(&format!("db.v.update({query}, {change});\n{good}"));
        assert_eq!((samples.len(), refused.len()), (1, 1), "{change}");
        assert!(
            refused[0].starts_with("update 1: ") && refused[0].contains(reason),
            "{}",
            refused[0]
        );
    }
    for (text, reason) in [
        ("db.v.remove({})", "remove is not known"),
        ("db.v.update({})", "an update needs a filter"),
        ("db.v.update({}, {}).pretty()", "one method"),
        ("{update: 'v'}", "a command needs update with updates"),
        ("{update: 'v', updates: [], seq: 1}", "go together"),
        ("{update: 'v', writes: []}", "writes is not known"),
        ("7", "a command must be a document"),
        ("db.v.update({", "line 1"),
    ] {
        assert!(decode(text.as_bytes()).unwrap_err().to_string().contains(reason), "{text}");
    }
    let update = format!(
        "{{insert: 'v', documents: [{{t: ISODate('2015-01-01'), s: '{}', {}}}]}}",
        "x".repeat(40_000),
        (0..1000).map(|n| format!("m{n}: 1")).collect::<Vec<_>>().join(",")
    );
    assert!(decode(update.as_bytes()).unwrap_err().to_string().contains("take more than"));
}

proptest! {
    /// The samples of an update are its finest parts, even when the update also names totals.
    #[test]
    fn totals_never_drift_from_their_slots(
        slots in prop::collection::btree_map((0..31_u32, 0..24_u32, 0..60_u32), 0..100_u32, 1..8),
        (days, hours, wrong) in (any::<bool>(), any::<bool>(), 0..3_u32),
    ) {
        let mut paths = std::collections::BTreeMap::new();
        for ((day, hour, minute), count) in &slots {
            *paths.entry("a".to_owned()).or_insert(0) += count;
            if days {
                *paths.entry(format!("days.{day}.a")).or_insert(0) += count;
            }
            if hours {
                *paths.entry(format!("days.{day}.hours.{hour}.a")).or_insert(0) += count;
            }
            paths.insert(format!("days.{day}.hours.{hour}.minutes.{minute}.a"), *count);
        }
        *paths.get_mut("a").unwrap() += wrong;
        let fields: Vec<_> = paths.iter().map(|(path, count)| format!("'{path}': {count}")).collect();
        let text = format!("db.v.update({{date: ISODate('2015-08-01')}}, {{$inc: {{{}}}}})", fields.join(","));
        let batches = decode(text.as_bytes()).unwrap();
        let sum: f64 = batches.iter().flat_map(|batch| &batch.batch.values).sum();
        let refused: u64 = batches.iter().map(|batch| batch.invalid.samples).sum();
        prop_assert_eq!(refused, u64::from(wrong > 0));
        if wrong == 0 {
            prop_assert_eq!(sum, f64::from(slots.values().sum::<u32>()));
            prop_assert_eq!(batches[0].batch.values.len(), slots.len());
        }
    }
}
