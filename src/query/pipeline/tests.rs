//! Pipelines over fixed documents, with the answers of MongoDB.

use super::*;
use crate::setup::NOW;

fn documents() -> Vec<Fields> {
    let texts = [
        "{host: 'a', n: 3, sum: 6, date: ISODate('2026-03-28T23:30:00Z'), list: [{x: 1}, {x: 2}]}",
        "{host: 'b', n: 1, sum: 2.5, date: ISODate('2026-03-29T12:00:00Z'), list: []}",
        "{host: 'a', n: 2, sum: -1, date: ISODate('2026-03-30T00:00:00Z'), rack: '7'}",
    ];
    let read = |text: &str| match notation::read(text).unwrap() {
        notation::Statement::Value(Value::Fields(fields)) => fields,
        other => panic!("{other:?}"),
    };
    texts.into_iter().map(read).collect()
}

fn result_of(text: &str) -> Result<StageResult, QueryError> {
    let request = AggregateRequest::read(text, NOW)?;
    let quota = Quota::new(1000, &Budget::UNLIMITED);
    let as_document = |fields| Ok(document::Document { fields, share: quota.new_share(0) });
    let source = Box::new(documents().into_iter().map(as_document));
    Ok(StageResult::new(request.shape, execution::run(&request.stages, source, &quota)?))
}

/// Returns the documents, or the result of a command, as text.
fn run(text: &str) -> String {
    match result_of(text).unwrap() {
        StageResult::Documents { documents } => serde_json::to_string(&documents).unwrap(),
        other => serde_json::to_string(&other).unwrap(),
    }
}

/// Returns the error of a valid pipeline that fails to run.
fn run_fault(text: &str) -> String {
    AggregateRequest::read(text, NOW).unwrap();
    result_of(text).unwrap_err().to_string()
}

fn fault(pipeline: &str) -> String {
    AggregateRequest::read(pipeline, NOW).unwrap_err().to_string()
}

#[test]
fn conditions_select_documents() {
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
    // Tags are texts. A tag that spells a number compares with numbers and is sorted among them.
    assert_eq!(hosts("{rack: 7}"), r#"[{"n":2}]"#);
    assert_eq!(hosts("{rack: {$gt: 6, $lte: 7.5}}"), r#"[{"n":2}]"#);
    assert_eq!(hosts("{rack: {$lt: 7}}"), "[]");
    assert_eq!(hosts("{$expr: {$gt: ['$rack', 6]}}"), r#"[{"n":2}]"#);
    assert_eq!(hosts("{$expr: {$lt: ['$sum', '$n']}}"), r#"[{"n":2}]"#);
    assert_eq!(hosts("{n: '3'}"), r#"[{"n":3}]"#);
    assert_eq!(hosts("{n: {$gt: 'a'}}"), "[]");
    assert_eq!(hosts("{host: {$gt: 1}}"), "[]");
    assert_eq!(hosts("{host: {$gt: 'a'}}"), r#"[{"n":1}]"#);
    assert_eq!(hosts("{host: {$regex: '^B', $options: 'i'}}"), r#"[{"n":1}]"#);
    assert_eq!(hosts("{host: /^b/}"), r#"[{"n":1}]"#);
    assert_eq!(hosts("{host: {$not: /b/}, n: {$not: {$gt: 2, $lt: 9}}}"), r#"[{"n":2}]"#);
    assert_eq!(hosts("{host: {$in: [/^b$/, 7]}}"), r#"[{"n":1}]"#);
    assert_eq!(hosts("{n: /3/}"), "[]");
    assert_eq!(hosts("{'list.x': 2}"), r#"[{"n":3}]"#);
    // A number is a position in a list, or a field of its documents.
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
fn groups_accumulate_values_of_their_documents() {
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
fn percentiles_of_groups_and_lists_follow_mongodb() {
    assert_eq!(
        run("[{$group: {_id: '$host', p: {$percentile: {input: '$n', p: [0.5, 1]}},
                        m: {$median: {input: '$sum', method: 'approximate'}}}}]"),
        r#"[{"_id":"a","p":[2.0,3.0],"m":-1.0},{"_id":"b","p":[1.0,1.0],"m":2.5}]"#
    );
    assert_eq!(
        run("[{$project: {_id: 0, m: {$median: {input: '$list.x'}},
                          q: {$percentile: {input: ['$n', '$sum', 4], p: [0.9]}}}}, {$limit: 1}]"),
        r#"[{"m":1.0,"q":[6.0]}]"#
    );
    assert_eq!(
        run("[{$group: {_id: null, m: {$median: {input: '$rock'}}}}]"),
        r#"[{"_id":null,"m":null}]"#
    );
}

#[test]
fn values_fall_into_buckets_and_facets() {
    assert_eq!(
        run("[{$bucket: {groupBy: '$n', boundaries: [1, 3], default: 'more',
              output: {n: {$sum: '$n'}, hosts: {$push: '$host'}}}}]"),
        r#"[{"_id":1,"n":3,"hosts":["b","a"]},{"_id":"more","n":3,"hosts":["a"]}]"#
    );
    assert_eq!(
        run_fault("[{$bucket: {groupBy: '$host', boundaries: ['a', 'b']}}]"),
        "$bucket: \"b\" falls into no bucket; add a default"
    );
    // Tags that spell numbers fall into the buckets of numbers.
    assert_eq!(
        run("[{$match: {rack: '7'}}, {$bucket: {groupBy: '$rack', boundaries: [5, 10]}}]"),
        r#"[{"_id":5,"count":1}]"#
    );
    assert_eq!(
        run("[{$bucketAuto: {groupBy: '$n', buckets: 2}}]"),
        r#"[{"_id":{"min":1,"max":3},"count":2},{"_id":{"min":3,"max":3},"count":1}]"#
    );
    assert_eq!(
        run("[{$facet: {all: [{$count: 'n'}], a: [{$match: {host: 'a'}}, {$project: {n: 1}}],
              none: [{$match: {n: 9}}]}}]"),
        r#"[{"all":[{"n":3}],"a":[{"n":3},{"n":2}],"none":[]}]"#
    );
    assert_eq!(
        run("[{$sortByCount: '$host'}]"),
        r#"[{"_id":"a","count":2},{"_id":"b","count":1}]"#
    );
    assert_eq!(
        run("[{$match: {n: 3}}, {$unset: ['list', 'date']}, {$replaceWith: {x: '$$ROOT.n'}}]"),
        r#"[{"x":3}]"#
    );
    assert_eq!(
        run("[{$group: {_id: null, pop: {$stdDevPop: '$n'}, samp: {$stdDevSamp: '$n'},
              one: {$stdDevSamp: '$rack'}, none: {$stdDevPop: '$host'}, racks: {$avg: '$rack'}}}]"),
        r#"[{"_id":null,"pop":0.816496580927726,"samp":1.0,"one":null,"none":null,"racks":7.0}]"#
    );
    assert_eq!(
        run("[{$match: {n: 3}}, {$project: {_id: 0, most: {$max: '$list.x'}, sum: {$sum: ['$n', '$sum', 'x']},
              matches: {$regexMatch: {input: '$host', regex: /^A/i}}}}]"),
        r#"[{"most":2,"sum":9,"matches":true}]"#
    );
}

#[test]
fn dates_are_truncated_and_formatted_as_in_mongodb() {
    let evaluate = |expression: &str| {
        let pipeline = format!("[{{$limit: 1}}, {{$project: {{x: {expression}}}}}]");
        let shown = run(&pipeline);
        shown.trim_start_matches("[{\"x\":").trim_end_matches("}]").trim_matches('"').to_owned()
    };
    // The date is 28 March 2026, 23:30, a Saturday; in Berlin it is Sunday, 00:30.
    let text = |format: &str, zone: &str| {
        evaluate(&format!(
            "{{$dateToString: {{date: '$date', format: '{format}', timezone: '{zone}'}}}}"
        ))
    };
    assert_eq!(evaluate("{$dateToString: {date: '$date'}}"), "2026-03-28T23:30:00.000Z");
    assert_eq!(
        text("%Y-%m-%d %H:%M:%S.%L %j %u %w %U %V %G %B %b %z %Z %%", "Europe/Berlin"),
        "2026-03-29 00:30:00.000 088 7 1 13 13 2026 March Mar +0100 60 %"
    );
    assert_eq!(text("%z %Z", "-03:30"), "-0330 -210");
    assert_eq!(evaluate("{$dateToString: {date: '$oops', onNull: 'none'}}"), "none");
    assert_eq!(evaluate("{$dateToString: {date: '$oops'}}"), "null");
    let parts = "[{$limit: 1}, {$project: {week: {$week: '$date'}, second: {$second: '$date'},
        iso: {$isoWeek: '$date'}, isoYear: {$isoWeekYear: '$date'}, isoDay: {$isoDayOfWeek: '$date'},
        day: {$dayOfYear: '$date'}, ms: {$millisecond: ['$date']}, none: {$hour: '$oops'}}}]";
    assert_eq!(
        run(parts),
        r#"[{"week":12,"second":0,"iso":13,"isoYear":2026,"isoDay":6,"day":87,"ms":0,"none":null}]"#
    );
    assert_eq!(
        run_fault("[{$project: {x: {$hour: '$host'}}}]"),
        "$hour takes a date, not a text (\"a\")"
    );
    assert_eq!(
        run_fault("[{$project: {x: {$add: ['$host', 1]}}}]"),
        "$add takes numbers and dates, not a text (\"a\")"
    );
    assert!(run_fault("[{$project: {x: {$divide: [1, 0]}}}]").contains("$divide by zero"));
    let start = |options: &str| evaluate(&format!("{{$dateTrunc: {{date: '$date', {options}}}}}"));
    for (options, expected) in [
        ("unit: 'week'", "2026-03-22T00:00:00Z"),
        ("unit: 'week', startOfWeek: 'monday'", "2026-03-23T00:00:00Z"),
        ("unit: 'week', startOfWeek: 'Mon', binSize: 2", "2026-03-23T00:00:00Z"),
        ("unit: 'week', binSize: 2", "2026-03-22T00:00:00Z"),
        ("unit: 'month', binSize: 5", "2025-11-01T00:00:00Z"),
        ("unit: 'quarter'", "2026-01-01T00:00:00Z"),
        ("unit: 'day', binSize: 10", "2026-03-25T00:00:00Z"),
        ("unit: 'hour', binSize: 5", "2026-03-28T23:00:00Z"),
        ("unit: 'minute', binSize: 7", "2026-03-28T23:27:00Z"),
        ("unit: 'day', timezone: 'Europe/Berlin'", "2026-03-28T23:00:00Z"),
        ("unit: 'hour', timezone: '+05:45'", "2026-03-28T23:15:00Z"),
    ] {
        assert_eq!(
            start(options),
            format!("{{\"$date\":\"{expected}\"}}").trim_matches('"'),
            "{options}"
        );
    }
}

#[test]
fn commands_and_methods_are_converted_to_pipelines() {
    for text in [
        "db.1h.find({host: 'a'}, {_id: 0, n: 1}).sort({n: 1}).limit(1)",
        "db.1h.find({host: 'a'}).projection({_id: 0, n: 1}).skip(1).toArray()",
        "{find: '1h', filter: {host: 'a'}, projection: {_id: 0, n: 1}, sort: {n: 1}, limit: -1}",
        "{collection: '1h', filter: {n: 2}, projection: {_id: 0, n: 1}, limit: 0}",
    ] {
        assert_eq!(run(text), r#"[{"n":2}]"#, "{text}");
    }
    let expected = r#"{"document":{"n":2}}"#;
    assert_eq!(run("db.1h.findOne({sum: -1}, {n: 1})"), expected);
    assert_eq!(run("{findOne: '1h', sort: {n: 1}, skip: 1, projection: {n: 1}}"), expected);
    assert_eq!(run("db.1h.findOne({n: 9})"), r#"{"document":null}"#);
    assert_eq!(run("db.1h.countDocuments({host: 'a'})"), r#"{"n":2}"#);
    assert_eq!(run("db.1h.countDocuments({host: 'a'}, {limit: 1})"), r#"{"n":1}"#);
    assert_eq!(run("db.1h.find({host: 'x'}).count()"), r#"{"n":0}"#);
    assert_eq!(run("{count: '1h', query: {}}"), r#"{"n":3}"#);
    assert_eq!(run("db.1h.distinct('host')"), r#"{"values":["a","b"]}"#);
    assert_eq!(run("db.1h.distinct('list.x', {n: {$gt: 1}})"), r#"{"values":[1,2]}"#);
    assert_eq!(run("{distinct: '1h', key: 'rack'}"), r#"{"values":["7"]}"#);
    let request = AggregateRequest::read("db.getCollection('5m').find()", NOW).unwrap();
    assert_eq!(request.collection.as_deref(), Some("5m"));
    // Only fields that are shown are read.
    let needed =
        AggregateRequest::read("db.m.find({host: 'a'}, {butterflies: 1})", NOW).unwrap().needed;
    assert!(needed.needs("butterflies") && !needed.needs("days"));
}

#[test]
fn documents_are_unwound_projected_sorted_and_counted() {
    assert_eq!(
        run("[{$unwind: '$list'}, {$project: {_id: 0, 'list.x': 1, more: {$add: ['$n', 1]}}}]"),
        r#"[{"list":{"x":1},"more":4},{"list":{"x":2},"more":4}]"#
    );
    let pipeline =
        "[{$unwind: {path: '$list', preserveNullAndEmptyArrays: true}}, {$count: 'all'}]";
    assert_eq!(run(pipeline), r#"[{"all":4}]"#);
    assert_eq!(run("[{$match: {n: 9}}, {$count: 'all'}]"), "[]");
    assert_eq!(
        run("[{$sort: {host: -1, sum: 1}}, {$skip: 1}, {$project: {list: 0, date: 0}}]"),
        r#"[{"host":"a","n":2,"sum":-1,"rack":"7"},{"host":"a","n":3,"sum":6}]"#
    );
    assert_eq!(
        run(
            "[{$limit: 1}, {$addFields: {mean: {$divide: ['$sum', '$n']}, 'in.y': {$year: '$date'},
              big: {$cond: [{$gte: ['$n', 3]}, 'yes', 'no']}, none: {$ifNull: ['$rack', 0]}}},
              {$project: {mean: 1, in: 1, big: 1, none: 1, x: '$list.x'}}]"
        ),
        r#"[{"mean":2.0,"in":{"y":2026},"big":"yes","none":0,"x":[1,2]}]"#
    );
    assert_eq!(
        run("[{$limit: 1}, {$project: {late: {$subtract: ['$date', ISODate('2026-03-28')]}}}]"),
        r#"[{"late":84600000}]"#
    );
}

#[test]
fn errors_name_the_stage_and_the_known_operators() {
    let check = |pipeline: &str, parts: [&str; 2]| {
        let message = fault(pipeline);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    check("[{$match: {}}, {$lookup: {}}]", ["pipeline[1]: $lookup: is not known", "$unwind"]);
    check("[{$match: {a: {$type: 'x'}}}]", ["pipeline[0]: $match: $type", "$exists"]);
    check("[{$match: {a: {$regex: '(?=x)'}}}]", ["pipeline[0]: $match: $regex", "look-around"]);
    check("[{$match: {a: {$regex: 'x{1000}{1000}'}}}]", ["$regex", "too large"]);
    check("[{$match: {a: {$regex: 'x', $options: 'q'}}}]", ["q is not known", "imsx"]);
    let with_21_patterns = format!("[{{$match: {{$or: [{}]}}}}]", "{a: /x/},".repeat(21));
    check(&with_21_patterns, ["more than 20 patterns", ""]);
    check("[{$bucket: {groupBy: '$n', boundaries: [3, 1]}}]", ["$bucket: boundaries", "ascend"]);
    check("[{$bucket: {groupBy: '$n', boundaries: [1, 'a']}}]", ["boundaries", "one kind"]);
    check(
        "[{$bucket: {groupBy: '$n', boundaries: [1, 3], default: 2}}]",
        ["default must be outside", ""],
    );
    check("[{$bucket: {groupBy: '$n'}}]", ["takes groupBy and boundaries", ""]);
    check("[{$facet: {a: [{$oops: 1}]}}]", ["pipeline[0]: $facet: a[0]: $oops", "$facet"]);
    check("[{$facet: {a: [{$facet: {b: []}}]}}]", ["a must not contain $facet", ""]);
    check("[{$project: {x: {$dateToString: {date: '$date', format: '%q'}}}}]", ["%Y", "%%"]);
    check(
        "[{$project: {x: {$dateTrunc: {date: '$date', unit: 'era'}}}}]",
        ["unit must be one of", "day"],
    );
    check("{find: '1h', filter: {a: {$oops: 1}}}", ["filter: $oops", "$regex"]);
    check("{find: '1h', sort: {a: 2}}", ["sort: a takes 1 or -1", ""]);
    check("{find: '1h', skip: -1}", ["skip: takes a number of at least 0", ""]);
    check("{find: '1h', key: 'a'}", ["key is not known", "projection"]);
    check("{distinct: '1h'}", ["key must name a field", ""]);
    check("{find: 'a', count: 'b'}", ["find is not the only command", ""]);
    check("db.a.find({}).oops()", [".oops is not known", ".limit(n)"]);
    check("db.a.mapReduce()", ["mapReduce is not known", "countDocuments"]);
    check("db.a.updateOne({}, {})", ["updateOne writes samples", "/api/v1/update"]);
    check("[{$group: {_id: 1, x: {$mode: 1}}}]", ["x: $mode is not known", "$percentile"]);
    check("[{$group: {_id: 1, x: {$median: 1}}}]", ["x: $median takes {input", "approximate"]);
    check(
        "[{$group: {_id: 1, x: {$percentile: {input: '$x', p: [2]}}}}]",
        ["p must be a list", "from 0 to 1"],
    );
    check(
        "[{$project: {x: {$median: {input: '$x', method: 'exact'}}}}]",
        ["$median: method must be", "approximate"],
    );
    check("[{$group: {x: {$sum: 1}}}]", ["_id is missing", "_id: null"]);
    check("[{$project: {x: {$map: []}}}]", ["$map is not known", "$dateTrunc"]);
    check("[{$project: {x: 1, y: 0}}]", ["cannot both", "_id: 0"]);
    check("[{$project: {x: 1, 'x.y': 1}}]", ["pipeline[0]", "x is specified twice"]);
    check("[{$sort: {x: 2}}]", ["x takes 1 or -1", "pipeline[0]"]);
    check("[{$limit: 0}]", ["takes a number of at least 1", "$limit"]);
    check("[{$match: {}, $limit: 1}]", ["pipeline[0] is not a stage", "$skip"]);
    check("{stages: []}", ["stages is not known", "pipeline"]);
    check("{pipeline: [], range: 'soon'}", ["range:", "not a duration"]);
    check("[{$unwind: 'days'}]", ["takes a field path", "\"$days\""]);
    check("[{$project: {x: '$$NOW'}}]", ["$$NOW", "$$ROOT"]);
    let with_51_stages = format!("[{}]", "{$limit: 1},".repeat(51));
    check(&with_51_stages, ["51 stages exceed the limit of 50", ""]);
}

#[test]
fn the_values_and_the_work_of_a_pipeline_are_limited() {
    let refused = |pipeline: &str, documents: usize| {
        let request = AggregateRequest::read(pipeline, NOW).unwrap();
        let fields =
            |i: usize| -> Fields { std::iter::once(("i".into(), Value::Int(i as i64))).collect() };
        let quota = Quota::new(100, &Budget::UNLIMITED);
        let as_document =
            |i| Ok(document::Document { fields: fields(i), share: quota.new_share(0) });
        let source = Box::new((0..documents).map(as_document));
        let run = execution::run(&request.stages, source, &quota);
        run.map(|documents| documents.len()).unwrap_err().to_string()
    };
    assert!(refused("[]", 101).contains("pipeline[0] would hold more than 100 values"));
    assert!(refused("[{$sort: {i: 1}}, {$limit: 1}]", 101).contains("limits.query_points_max"));
    assert!(refused("[{$group: {_id: '$i'}}, {$limit: 1}]", 200).contains("pipeline[0]"));
    assert!(refused("[{$group: {_id: 1, all: {$push: '$i'}}}]", 200).contains("pipeline[0]"));
    assert!(refused("[{$match: {i: -1}}]", 5000).contains("pass through the pipeline"));
    // Values are charged before they are created.
    let doubled: Vec<_> = (0..8).map(|n| format!("{{$addFields: {{a{n}: '$$ROOT'}}}}")).collect();
    let doubled = doubled.join(",");
    assert!(refused(&format!("[{doubled}]"), 1).contains("would hold more than 100 values"));
    let list = "'$$ROOT',".repeat(60);
    for stage in
        ["{$project: {a: LIST}}", "{$group: {_id: LIST}}", "{$group: {_id: 1, a: {$last: LIST}}}"]
    {
        let text = stage.replace("LIST", &format!("[{list}]"));
        assert!(refused(&format!("[{text}]"), 1).contains("pipeline[0] would hold"), "{text}");
    }
    let nests = "{$group: {_id: {a: {a: {a: {a: {a: {a: {a: '$$ROOT'}}}}}}}}},".repeat(9);
    assert!(refused(&format!("[{nests}]"), 1).contains("nest deeper than 32"));
}

#[test]
fn the_first_stages_decide_which_documents_are_read() {
    let pushdown = |pipeline: &str| {
        let request = AggregateRequest::read(pipeline, NOW).unwrap();
        (request.conditions, request.needed)
    };
    let day = |text: &str| notation::date(text).unwrap();
    let (conditions, needed) = pushdown(
        "[{$match: {location: 1, scientist: {$in: ['a', 'b']}, $or: [{x: 1}, {y: 1}]}},
          {$unwind: '$days'},
          {$match: {$and: [{'days.date': {$gte: ISODate('2015-08-18')}},
                           {'days.date': {$lte: ISODate('2015-08-20')}}]}},
          {$project: {_id: 0, butterflies: '$days.butterflies'}},
          {$match: {butterflies: 3}}]",
    );
    let names: Vec<_> = conditions.tests.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["location", "scientist"]);
    let passes = |index: usize, text: &str| conditions.tests[index].1.holds_for_text(Some(text));
    assert!(passes(0, "1") && passes(0, "1.0") && !passes(0, "2") && passes(1, "b"));
    assert_eq!(conditions.days, day("2015-08-18")..day("2015-08-20").plus(1));
    assert!(needed.needs("butterflies") && !needed.needs("honeybees") && !needed.needs("hours"));
    // Before the days are unwound, a condition on them applies to the month.
    let (conditions, _) =
        pushdown("[{$match: {'days.date': {$gte: '2015-08-18'}}}, {$unwind: '$days'}]");
    assert_eq!(conditions.days, UnixMillis::MIN..UnixMillis::MAX);
    // A condition after a limit cannot be moved in front of it.
    let (conditions, _) = pushdown("[{$limit: 3}, {$match: {host: 'a'}}]");
    assert!(conditions.tests.is_empty());
    for whole in [
        "[{$unwind: '$days'}]",
        "[{$project: {days: 1}}]",
        "[{$group: {_id: null, all: {$push: '$days'}}}]",
        "[{$group: {_id: null, all: {$push: '$$ROOT'}}}]",
    ] {
        assert!(pushdown(whole).1.needs("honeybees"), "{whole}");
    }
}
