//! Documents of months with nested days, hours and minutes, and pipelines over them, as in
//! published examples for MongoDB.

use serde_json::{Value, json};

use crate::daemon::{Daemon, HOURS_AND_DAYS, granularities};

/// Time in August 2015, butterflies, honeybees, location and scientist.
const COUNTS: [(&str, i32, i32, i32, &str); 8] = [
    ("18T00:00", 12, 23, 1, "langstroth"),
    ("18T00:00", 1, 30, 1, "perpetua"),
    ("18T00:06", 11, 28, 1, "langstroth"),
    ("18T00:06", 3, 28, 1, "perpetua"),
    ("18T05:54", 2, 11, 2, "langstroth"),
    ("18T06:00", 1, 10, 2, "langstroth"),
    ("18T06:06", 8, 23, 2, "perpetua"),
    ("18T06:12", 7, 22, 2, "perpetua"),
];
/// A granularity of minutes with a retention of twenty years.
const MINUTES: [&str; 4] = ["1m", "1h", "1d", "7280d"];

fn count_insects(daemon: &Daemon, more_counts: &[(&str, i32, i32, i32, &str)]) {
    let samples =
        COUNTS.iter().chain(more_counts).flat_map(|(time, butterflies, bees, location, who)| {
            let tags = json!({"location": location.to_string(), "scientist": who});
            [("butterflies", butterflies), ("honeybees", bees)].map(|(metric, value)| {
                json!({"metric": metric, "tags": tags, "kind": "delta", "value": value,
                   "time": format!("2015-08-{time}:00Z")})
            })
        });
    daemon.accept(&samples.collect());
}

fn aggregate(daemon: &Daemon, pipeline: &str) -> Value {
    daemon.query(&["aggregate", pipeline])["documents"].clone()
}

/// Returns the parts of a list that have samples.
fn parts_with_samples(list: &Value) -> Vec<&Value> {
    let parts = list.as_array().unwrap().iter();
    parts.filter(|part| part["num_samples"] != json!(0)).collect()
}

#[test]
fn a_month_has_days_hours_and_minutes_with_their_sums() {
    let daemon = Daemon::start(&granularities(&[MINUTES, HOURS_AND_DAYS[0], HOURS_AND_DAYS[1]]));
    count_insects(&daemon, &[]);
    let answer = daemon.query(&[
        "documents",
        "--metric",
        "butterflies",
        "--tags",
        "location=1,scientist=langstroth",
        "--form",
        "levels",
        "--start",
        "2015-08-18",
        "--end",
        "2015-08-19",
    ]);
    let documents = answer["documents"].as_array().unwrap();
    assert_eq!(documents.len(), 1);
    let month = &documents[0];
    assert_eq!(month["date"], "2015-08-01T00:00:00Z");
    assert_eq!((&month["num_samples"], &month["total_samples"]), (&json!(2), &json!(23.0)));
    // Every day, hour and minute is present.
    let counts = |list: &Value| list.as_array().unwrap().len();
    assert_eq!(counts(&month["days"]), 31);
    let days = parts_with_samples(&month["days"]);
    assert_eq!(days.len(), 1);
    assert_eq!((counts(&days[0]["hours"]), counts(&days[0]["hours"][7]["minutes"])), (24, 60));
    let hours = parts_with_samples(&days[0]["hours"]);
    let minutes = parts_with_samples(&hours[0]["minutes"]);
    let shown_parts = json!({
        "date": days[0]["date"], "num_samples": days[0]["num_samples"],
        "total_samples": days[0]["total_samples"],
        "hours": [{
            "date": hours[0]["date"], "num_samples": hours[0]["num_samples"],
            "total_samples": hours[0]["total_samples"], "minutes": minutes,
        }],
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&shown_parts).unwrap(), @r#"
    {
      "date": "2015-08-18T00:00:00Z",
      "hours": [
        {
          "date": "2015-08-18T00:00:00Z",
          "minutes": [
            {
              "date": "2015-08-18T00:00:00Z",
              "num_samples": 1,
              "total_samples": 12.0
            },
            {
              "date": "2015-08-18T00:06:00Z",
              "num_samples": 1,
              "total_samples": 11.0
            }
          ],
          "num_samples": 2,
          "total_samples": 23.0
        }
      ],
      "num_samples": 2,
      "total_samples": 23.0
    }
    "#);
}

#[test]
fn documents_have_the_levels_of_the_granularities_that_keep_their_time() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    count_insects(&daemon, &[]);
    let args = ["documents", "--metric", "butterflies", "--form", "levels"];
    let range = ["--start", "2015-08-01", "--end", "2015-09-02"];
    let answer = daemon.query(&[&args[..], &range].concat());
    // September is empty and has no document; there are four tag sets.
    let documents = answer["documents"].as_array().unwrap();
    assert_eq!(documents.len(), 4);
    for document in documents {
        let day = &document["days"][17];
        assert_eq!(day["date"], "2015-08-18T00:00:00Z");
        assert_eq!(day["total_samples"], document["total_samples"]);
        assert_eq!(day["hours"].as_array().unwrap().len(), 24);
        assert_eq!(day["hours"][0].get("minutes"), None, "no minutes are kept");
    }
    // By default, 1h is kept for nine weeks and 1d for years.
    let daemon = Daemon::start("");
    let old = jiff::Timestamp::now().as_millisecond() - 150 * 86_400_000;
    daemon.accept(&json!([{"metric": "views", "kind": "delta", "time": old, "value": 4}]));
    let args = ["documents", "--metric", "views", "--form", "levels", "--range", "160d"];
    let answer = daemon.query(&args);
    let days = answer["documents"][0]["days"].as_array().unwrap();
    assert!(days.len() >= 28);
    assert!(days.iter().all(|day| day.get("hours").is_none()));
    assert_eq!(parts_with_samples(&answer["documents"][0]["days"])[0]["total_samples"], 4.0);
}

#[test]
fn the_published_query_runs_unchanged() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    let more_counts = [
        ("17T23:59", 100, 100, 1, "langstroth"),
        ("20T23:59", 5, 5, 1, "langstroth"),
        ("21T00:00", 100, 100, 1, "langstroth"),
    ];
    count_insects(&daemon, &more_counts);
    let published_query = r#"
db.test.aggregate([
    {$match: {location: 1, scientist: 'langstroth'}},
    {$unwind: '$days'},
    {$match: {'$and': [{'days.date': {'$gte' : ISODate("2015-08-18T00:00:00.000Z")}},
                       {'days.date': {'$lte' : ISODate("2015-08-20T00:00:00.000Z")}}]}},
    {$project: {_id : 0, location: 1, scientist: 1, 'butterflies' : '$days.butterflies'}},
    {$group: {_id : {location: '$location', scientist: '$scientist'}, butterflies: {'$sum': '$butterflies'}}}
])"#;
    let expected =
        json!([{"_id": {"location": "1", "scientist": "langstroth"}, "butterflies": 28.0}]);
    assert_eq!(aggregate(&daemon, published_query), expected);
    // The same pipeline is accepted as JSON.
    let json = r#"{"collection": "test", "pipeline": [
        {"$match": {"location": "1", "scientist": "langstroth"}},
        {"$unwind": "$days"},
        {"$match": {"days.date": {"$gte": {"$date": "2015-08-18T00:00:00Z"}, "$lte": "2015-08-20"}}},
        {"$group": {"_id": {"location": "$location", "scientist": "$scientist"},
                    "butterflies": {"$sum": "$days.butterflies"}}}]}"#;
    assert_eq!(aggregate(&daemon, json), expected);
}

#[test]
fn months_are_documents_with_their_tags_and_metrics() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    count_insects(&daemon, &[]);
    let months = aggregate(
        &daemon,
        "[{$match: {scientist: 'perpetua', date: ISODate('2015-08-01')}}, {$sort: {location: -1}},
          {$project: {days: 0}}]",
    );
    assert_eq!(
        months[0],
        json!({"_id": "2015-08-01T00:00:00Z location=2,scientist=perpetua",
               "date": {"$date": "2015-08-01T00:00:00Z"}, "location": "2", "scientist": "perpetua",
               "butterflies": 15.0, "honeybees": 45.0,
               "num_samples": 4, "counts": {"butterflies": 2, "honeybees": 2}})
    );
    assert_eq!(months.as_array().unwrap().len(), 2);
    // This pipeline computes the largest hour of each scientist and the average of the hours.
    let hours = aggregate(
        &daemon,
        "[{$unwind: '$days'}, {$unwind: '$days.hours'},
          {$match: {'days.hours.date': {$gte: '2015-08-18', $lt: '2015-08-19'}}},
          {$group: {_id: '$scientist', most: {$max: '$days.hours.butterflies'},
                    avg: {$avg: '$days.hours.butterflies'}, hours: {$sum: 1}}}]",
    );
    assert_eq!(
        hours,
        json!([{"_id": "langstroth", "most": 23.0, "avg": 26.0 / 3.0, "hours": 48},
               {"_id": "perpetua", "most": 15.0, "avg": 9.5, "hours": 48}])
    );
}

#[test]
fn tags_that_spell_numbers_are_numbers_and_samples_are_counted() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    let bee_sample = |location: &str, value: i32| {
        json!({"metric": "bees", "tags": {"location": location}, "kind": "delta", "value": value,
               "time": "2015-08-18T00:00:00Z"})
    };
    let samples: Vec<_> = [("2", 1), ("10", 2), ("09", 4), ("hill", 8)]
        .map(|(at, value)| bee_sample(at, value))
        .into();
    daemon.accept(&samples.into());
    daemon.accept(&json!([{"metric": "wasps", "tags": {"location": "2"}, "kind": "delta",
                           "value": 5, "time": "2015-08-18T00:00:00Z"}]));
    let locations = |stages: &str| {
        let pipeline = format!("[{stages}, {{$project: {{_id: 0, location: 1}}}}]");
        let found = aggregate(&daemon, &pipeline);
        found
            .as_array()
            .unwrap()
            .iter()
            .map(|document| document["location"].clone())
            .collect::<Vec<_>>()
    };
    let all = "{$match: {bees: {$gt: 0}}}";
    // Conditions on series, conditions on documents, and expressions agree.
    for (test, expected) in [
        ("{$gt: 2}", vec!["09", "10"]),
        ("{$gte: 2, $lt: 10}", vec!["2", "09"]),
        ("{$in: [9, 'hill']}", vec!["09", "hill"]),
        ("9", vec!["09"]),
        ("{$ne: 2}", vec!["09", "10", "hill"]),
        ("{$lte: '9'}", vec!["2", "09"]),
        ("{$regex: '^h'}", vec!["hill"]),
    ] {
        let sorted = "{$sort: {location: 1}}";
        let pushed = format!("{{$match: {{location: {test}}}}}, {all}, {sorted}");
        let later = format!("{all}, {{$skip: 0}}, {{$match: {{location: {test}}}}}, {sorted}");
        assert_eq!(locations(&pushed), expected, "{test}");
        assert_eq!(locations(&later), expected, "{test}");
    }
    let computed = format!("{all}, {{$match: {{$expr: {{$gt: ['$location', 2]}}}}}}");
    assert_eq!(locations(&format!("{computed}, {{$match: {{location: {{$lt: 99}}}}}}")).len(), 2);
    let answer = aggregate(
        &daemon,
        "[{$match: {location: {$lt: 99}}}, {$group: {_id: null, avg: {$avg: '$location'}, sum: {$sum: '$bees'},
            n: {$sum: '$num_samples'}, bees: {$sum: '$counts.bees'}}}]",
    );
    assert_eq!(answer, json!([{"_id": null, "avg": 7.0, "sum": 7.0, "n": 4, "bees": 3}]));
    let found = |args: &str| daemon.query(&["find", args]);
    daemon.accept(&json!([{"metric": "ants", "tags": {"hill": "north"}, "value": 1}]));
    assert_eq!(
        found("db.1h.find({metric: 'ants', hill: {$gt: 1}})"),
        json!({"documents": [],
               "notes": ["hill is compared with a number, but none of its values is a number, for example \"north\""]})
    );
    assert_eq!(found("db.m.countDocuments({location: {$gt: 2}})"), json!({"n": 2}));
    assert_eq!(
        found("db.1h.distinct('location', {metric: /^bee/})"),
        json!({"values": ["2", "09", "10", "hill"]})
    );
    assert_eq!(
        found("db.1h.findOne({metric: 'bees', location: 2}, {sum: 1, n: 1})"),
        json!({"document": {"n": 1, "sum": 1.0}})
    );
    assert_eq!(
        found(
            "{find: '1h', filter: {value: {$gte: 4}}, sort: {value: -1}, projection: {value: 1}}"
        ),
        json!({"documents": [{"value": 8.0}, {"value": 5.0}, {"value": 4.0}]})
    );
}

#[test]
fn slots_of_a_granularity_are_rows() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    count_insects(&daemon, &[]);
    let rows = aggregate(
        &daemon,
        "db.1h.aggregate([
            {$match: {metric: 'honeybees', location: {$in: [1, 2]}, date: {$gte: '2015-08-18'}}},
            {$group: {_id: {$dateTrunc: {date: '$date', unit: 'day'}}, n: {$sum: '$n'},
                      total: {$sum: '$value'}, max: {$max: '$max'}}}])",
    );
    assert_eq!(
        rows,
        json!([{"_id": {"$date": "2015-08-18T00:00:00Z"}, "n": 8, "total": 175.0, "max": 30.0}])
    );
    let row = aggregate(
        &daemon,
        "{collection: '1h', metric: 'butterflies', tags: {scientist: 'perpetua'}, pipeline: [
            {$match: {location: '1'}}]}",
    );
    assert_eq!(
        row,
        json!([{"date": {"$date": "2015-08-18T00:00:00Z"}, "metric": "butterflies",
                "location": "1", "scientist": "perpetua", "kind": "delta", "unit": "", "n": 2,
                "sum": 4.0, "min": 1.0, "max": 3.0, "first": 1.0, "last": 3.0, "value": 4.0}])
    );
}

#[test]
fn the_error_of_a_pipeline_that_cannot_run_names_the_reason() {
    let daemon = Daemon::start("limits.query_points_max = 1000");
    daemon.accept(&json!([{"metric": "views", "value": 1}]));
    let refused = |pipeline: &str| {
        let output = daemon.run_query(&["aggregate", pipeline]);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    for (pipeline, part) in [
        ("[{$lookup: {from: 'x'}}]", "pipeline[0]: $lookup: is not known; use $match"),
        ("[{$match: {a: 1}", "line 1: expected }"),
        ("[]", "limits.query_points_max"),
    ] {
        let message = refused(pipeline);
        assert!(message.contains(part), "{message}");
    }
    let many: Vec<_> = (0..25).map(|i| json!({"metric": format!("m{i}"), "value": 1})).collect();
    daemon.accept(&many.into());
    let message = refused("{collection: '1d', pipeline: [{$limit: 1}]}");
    assert!(message.contains("26 series match, more than 25"), "{message}");
    let long = format!("[{}]", " ".repeat(70_000));
    assert!(refused(&long).contains("exceeds 65536 bytes"));
}

#[test]
fn a_pipeline_over_many_series_reads_all_samples() {
    let daemon = Daemon::start("");
    let core_sample = |metric: usize, core: usize| {
        json!({"metric": format!("m{metric}"), "tags": {"core": core.to_string(), "host": "h1"},
               "value": core})
    };
    let samples: Vec<_> =
        (0..60).flat_map(|m| (0..4).map(move |core| core_sample(m, core))).collect();
    daemon.accept(&samples.into());
    let months = aggregate(&daemon, "db.m.aggregate([{$match: {host: 'h1'}}])");
    assert_eq!(months.as_array().unwrap().len(), 4);
    assert_eq!(days_with_metric(&months[3]["days"], "m7").len(), 1);
    let hidden =
        aggregate(&daemon, "[{$match: {host: 'h1'}}, {$project: {days: 0, num_samples: 0}}]");
    assert_eq!((&hidden[3]["m7"], hidden[3].get("days")), (&json!(3.0), None));
    // Without a metric, the pipeline counts documents.
    let counted = aggregate(&daemon, "[{$group: {_id: '$core', n: {$sum: 1}}}, {$limit: 1}]");
    assert_eq!(counted, json!([{"_id": "0", "n": 1}]));
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).day() - 1;
    let count_at = |position: i8| {
        let pipeline = format!("[{{$match: {{'days.{position}.m7': 3}}}}, {{$count: 'n'}}]");
        aggregate(&daemon, &pipeline)
    };
    assert_eq!(count_at(today), json!([{"n": 1}]));
    assert_eq!(count_at((today + 1) % 28), json!([]));
}

fn days_with_metric<'v>(days: &'v Value, metric: &str) -> Vec<&'v Value> {
    days.as_array().unwrap().iter().filter(|day| day.get(metric).is_some()).collect()
}
