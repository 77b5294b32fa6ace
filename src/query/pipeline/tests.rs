//! Pipelines over documents of the tests' own, as MongoDB would answer them.

use super::*;
use crate::setup::NOW;

fn documents() -> Vec<Fields> {
    let texts = [
        "{host: 'a', n: 3, sum: 6, date: ISODate('2026-03-28T23:30:00Z'), list: [{x: 1}, {x: 2}]}",
        "{host: 'b', n: 1, sum: 2.5, date: ISODate('2026-03-29T12:00:00Z'), list: []}",
        "{host: 'a', n: 2, sum: -1, date: ISODate('2026-03-30T00:00:00Z'), rack: '7'}",
    ];
    let read = |text: &str| match notation::read(text).unwrap().value {
        Value::Fields(fields) => fields,
        other => panic!("{other:?}"),
    };
    texts.into_iter().map(read).collect()
}

fn run(pipeline: &str) -> String {
    let request = AggregateRequest::read(pipeline, NOW).unwrap();
    let quota = Quota::new(1000, &Budget::UNLIMITED);
    let own = |fields| Ok(document::Document { fields, taken: quota.begin(0) });
    let source = Box::new(documents().into_iter().map(own));
    serde_json::to_string(&execution::run(&request.stages, source, &quota).unwrap()).unwrap()
}

fn fault(pipeline: &str) -> String {
    AggregateRequest::read(pipeline, NOW).unwrap_err().to_string()
}

#[test]
fn conditions_choose_documents() {
    let hosts = |condition: &str| {
        run(&format!("[{{$match: {condition}}}, {{$project: {{_id: 0, n: 1}}}}]"))
    };
    assert_eq!(hosts("{host: 'a'}"), r#"[{"n":3},{"n":2}]"#);
    assert_eq!(hosts("{n: {$gt: 1, $lt: 3}}"), r#"[{"n":2}]"#);
    assert_eq!(hosts("{n: {$in: [1, 3.0]}}"), r#"[{"n":3},{"n":1}]"#);
    assert_eq!(hosts("{host: {$ne: 'a'}}"), r#"[{"n":1}]"#);
    assert_eq!(hosts("{$or: [{n: 1}, {sum: -1}]}"), r#"[{"n":1},{"n":2}]"#);
    assert_eq!(hosts("{$nor: [{n: 1}, {sum: -1}]}"), r#"[{"n":3}]"#);
    assert_eq!(hosts("{rack: {$exists: true}}"), r#"[{"n":2}]"#);
    assert_eq!(hosts("{rack: null}"), r#"[{"n":3},{"n":1}]"#);
    // Tags are texts; a number finds the one that is written so.
    assert_eq!(hosts("{rack: 7}"), r#"[{"n":2}]"#);
    assert_eq!(hosts("{rack: {$gt: 6}}"), "[]");
    assert_eq!(hosts("{'list.x': 2}"), r#"[{"n":3}]"#);
    // A number is a position, and a field of the documents in the list.
    assert_eq!(hosts("{'list.0.x': 1}"), r#"[{"n":3}]"#);
    assert_eq!(hosts("{'list.1.x': 1}"), "[]");
    assert_eq!(hosts("{'list.1': {x: 2}}"), r#"[{"n":3}]"#);
    assert_eq!(hosts("{'list.1.x': {$exists: false}}"), r#"[{"n":1},{"n":2}]"#);
    assert_eq!(hosts("{'list.01.x': 2}"), "[]");
    assert_eq!(hosts("{'list.7.x': null}"), r#"[{"n":3},{"n":1},{"n":2}]"#);
    assert_eq!(hosts("{date: {$gte: '2026-03-29', $lt: '2026-03-30'}}"), r#"[{"n":1}]"#);
    assert_eq!(hosts("{date: {$not: {$gte: ISODate('2026-03-29')}}}"), r#"[{"n":3}]"#);
}

#[test]
fn groups_gather_what_their_documents_have() {
    assert_eq!(
        run("[{$group: {_id: '$host', n: {$sum: '$n'}, avg: {$avg: '$sum'}, min: {$min: '$date'},
                        max: {$max: '$sum'}, first: {$first: '$n'}, last: {$last: '$n'},
                        all: {$push: '$n'}, racks: {$addToSet: '$rack'}, documents: {$count: {}}}}]"),
        r#"[{"_id":"a","n":5,"avg":2.5,"min":{"$date":"2026-03-28T23:30:00Z"},"max":6,"first":3,"last":2,"all":[3,2],"racks":["7"],"documents":2},{"_id":"b","n":1,"avg":2.5,"min":{"$date":"2026-03-29T12:00:00Z"},"max":2.5,"first":1,"last":1,"all":[1],"racks":[],"documents":1}]"#
    );
    assert_eq!(
        run("[{$group: {_id: {day: {$dateTrunc: {date: '$date', unit: 'day',
                timezone: 'Europe/Berlin'}}, h: {$hour: '$date'}}, n: {$sum: 1}}}, {$limit: 1}]"),
        r#"[{"_id":{"day":{"$date":"2026-03-28T23:00:00Z"},"h":12},"n":1}]"#
    );
    assert_eq!(run("[{$group: {_id: null, n: {$sum: 'x'}}}]"), r#"[{"_id":null,"n":0}]"#);
}

#[test]
fn documents_are_unwound_projected_sorted_and_counted() {
    assert_eq!(
        run("[{$unwind: '$list'}, {$project: {_id: 0, 'list.x': 1, more: {$add: ['$n', 1]}}}]"),
        r#"[{"list":{"x":1},"more":4},{"list":{"x":2},"more":4}]"#
    );
    let kept = "[{$unwind: {path: '$list', preserveNullAndEmptyArrays: true}}, {$count: 'all'}]";
    assert_eq!(run(kept), r#"[{"all":4}]"#);
    assert_eq!(run("[{$match: {n: 9}}, {$count: 'all'}]"), "[]");
    assert_eq!(
        run("[{$sort: {host: -1, sum: 1}}, {$skip: 1}, {$project: {list: 0, date: 0}}]"),
        r#"[{"host":"a","n":2,"sum":-1,"rack":"7"},{"host":"a","n":3,"sum":6}]"#
    );
    assert_eq!(
        run("[{$limit: 1}, {$addFields: {mean: {$divide: ['$sum', '$n']}, 'in.y': {$year: '$date'},
              big: {$cond: [{$gte: ['$n', 3]}, 'yes', 'no']}, none: {$ifNull: ['$rack', 0]}}},
              {$project: {mean: 1, in: 1, big: 1, none: 1, x: '$list.x', zero: {$divide: [1, 0]}}}]"),
        r#"[{"mean":2.0,"in":{"y":2026},"big":"yes","none":0,"x":[1,2],"zero":null}]"#
    );
    assert_eq!(
        run("[{$limit: 1}, {$project: {late: {$subtract: ['$date', ISODate('2026-03-28')]}}}]"),
        r#"[{"late":84600000}]"#
    );
}

#[test]
fn faults_name_the_stage_and_what_is_known() {
    let check = |pipeline: &str, parts: [&str; 2]| {
        let message = fault(pipeline);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    check("[{$match: {}}, {$lookup: {}}]", ["pipeline[1]: $lookup: is not known", "$unwind"]);
    check("[{$match: {a: {$regex: 'x'}}}]", ["pipeline[0]: $match: $regex", "$exists"]);
    check("[{$group: {_id: 1, x: {$median: 1}}}]", ["x: $median is not known", "$addToSet"]);
    check("[{$group: {x: {$sum: 1}}}]", ["_id is missing", "_id: null"]);
    check("[{$project: {x: {$map: []}}}]", ["$map is not known", "$dateTrunc"]);
    check("[{$project: {x: 1, y: 0}}]", ["cannot both", "_id: 0"]);
    check("[{$project: {x: 1, 'x.y': 1}}]", ["pipeline[0]", "x is given twice"]);
    check("[{$sort: {x: 2}}]", ["x takes 1 or -1", "pipeline[0]"]);
    check("[{$limit: 0}]", ["takes a number from 1 on", "$limit"]);
    check("[{$match: {}, $limit: 1}]", ["pipeline[0] is no stage", "$skip"]);
    check("{stages: []}", ["stages is not known", "pipeline"]);
    check("{pipeline: [], range: 'soon'}", ["range:", "no length of time"]);
    check("[{$unwind: 'days'}]", ["takes a field path", "\"$days\""]);
    check("[{$project: {x: '$$NOW'}}]", ["$$NOW", "$$ROOT"]);
    let many = format!("[{}]", "{$limit: 1},".repeat(51));
    check(&many, ["51 stages are more than 50", ""]);
}

#[test]
fn what_is_held_and_done_is_bounded() {
    let refused = |pipeline: &str, documents: usize| {
        let request = AggregateRequest::read(pipeline, NOW).unwrap();
        let own =
            |i: usize| -> Fields { std::iter::once(("i".into(), Value::Int(i as i64))).collect() };
        let quota = Quota::new(100, &Budget::UNLIMITED);
        let own = |i| Ok(document::Document { fields: own(i), taken: quota.begin(0) });
        let source = Box::new((0..documents).map(own));
        let run = execution::run(&request.stages, source, &quota);
        run.map(|documents| documents.len()).unwrap_err().to_string()
    };
    assert!(refused("[]", 101).contains("pipeline[0] would hold more than 100 values"));
    assert!(refused("[{$sort: {i: 1}}, {$limit: 1}]", 101).contains("limits.query_points_max"));
    assert!(refused("[{$group: {_id: '$i'}}, {$limit: 1}]", 200).contains("pipeline[0]"));
    assert!(refused("[{$group: {_id: 1, all: {$push: '$i'}}}]", 200).contains("pipeline[0]"));
    assert!(refused("[{$match: {i: -1}}]", 5000).contains("pass through the pipeline"));
    // What is made is counted before it is there.
    let doubled: Vec<_> = (0..8).map(|n| format!("{{$addFields: {{a{n}: '$$ROOT'}}}}")).collect();
    let doubled = doubled.join(",");
    assert!(refused(&format!("[{doubled}]"), 1).contains("would hold more than 100 values"));
    let list = "'$$ROOT',".repeat(60);
    for made in
        ["{$project: {a: LIST}}", "{$group: {_id: LIST}}", "{$group: {_id: 1, a: {$last: LIST}}}"]
    {
        let made = made.replace("LIST", &format!("[{list}]"));
        assert!(refused(&format!("[{made}]"), 1).contains("pipeline[0] would hold"), "{made}");
    }
    let nests = "{$group: {_id: {a: {a: {a: {a: {a: {a: {a: '$$ROOT'}}}}}}}}},".repeat(9);
    assert!(refused(&format!("[{nests}]"), 1).contains("nest deeper than 32"));
}

#[test]
fn the_first_stages_say_what_is_read() {
    let wanted = |pipeline: &str| {
        let request = AggregateRequest::read(pipeline, NOW).unwrap();
        (request.wanted, request.words)
    };
    let day = |text: &str| notation::date(text).unwrap();
    let (own, words) = wanted(
        "[{$match: {location: 1, scientist: {$in: ['a', 'b']}, $or: [{x: 1}, {y: 1}]}},
          {$unwind: '$days'},
          {$match: {$and: [{'days.date': {$gte: ISODate('2015-08-18')}},
                           {'days.date': {$lte: ISODate('2015-08-20')}}]}},
          {$project: {_id: 0, butterflies: '$days.butterflies'}},
          {$match: {butterflies: 3}}]",
    );
    let texts = |name: &str, texts: &[&str]| {
        (name.to_owned(), texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(own.texts, [texts("location", &["1"]), texts("scientist", &["a", "b"])]);
    assert_eq!(own.days, day("2015-08-18")..day("2015-08-20").plus(1));
    assert!(words.wants("butterflies") && !words.wants("honeybees") && !words.wants("hours"));
    // Before the days are documents of their own, a condition on them is one on the month.
    let (own, _) = wanted("[{$match: {'days.date': {$gte: '2015-08-18'}}}, {$unwind: '$days'}]");
    assert_eq!(own.days, UnixMillis::MIN..UnixMillis::MAX);
    // What is counted first is not what is matched later.
    let (own, _) = wanted("[{$limit: 3}, {$match: {host: 'a'}}]");
    assert!(own.texts.is_empty());
    for whole in [
        "[{$unwind: '$days'}]",
        "[{$project: {days: 1}}]",
        "[{$group: {_id: null, all: {$push: '$days'}}}]",
        "[{$group: {_id: null, all: {$push: '$$ROOT'}}}]",
    ] {
        assert!(wanted(whole).1.wants("honeybees"), "{whole}");
    }
}
