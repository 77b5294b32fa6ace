//! Dashboards and annotations in a store: versions, limits, restarts. The built-in dashboards query
//! existing metrics.

use std::{collections::BTreeSet, fs, path::Path};

use granary::{
    kept::{
        Annotations, AnnotationsQuery, Dashboard, DashboardFiles, NewAnnotation, ObjectFault,
        dashboards,
    },
    model::UnixMillis,
    store::{ObjectKind, ObjectRefusal, Store},
    telemetry::{METRIC_NAMES, Metrics},
};
use serde_json::{Value, json};

use crate::setup::{self, DAY, HOUR, MINUTE, NOW};

fn open(dir: &Path) -> Store {
    setup::open(dir, NOW).0
}

fn dashboard_titled(title: &str) -> Dashboard {
    let json = json!({ "schema": 1, "title": title, "variables": [], "panels": [] });
    Dashboard::read(&json.to_string()).unwrap()
}

fn no_files() -> DashboardFiles {
    DashboardFiles::default()
}

fn to_json<T: serde::Serialize>(answer: &T) -> Value {
    serde_json::to_value(answer).unwrap()
}

#[test]
fn of_two_conflicting_saves_the_second_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let first =
        dashboards::put(&store, &no_files(), "mine", None, &dashboard_titled("one"), NOW).unwrap();
    let conflicting_version = |outcome: Result<u64, ObjectFault>| match outcome {
        Err(ObjectFault::Refused(ObjectRefusal::Conflict { found, .. })) => found,
        other => panic!("{other:?}"),
    };
    // Both editors have read the first version.
    let second =
        dashboards::put(&store, &no_files(), "mine", Some(first), &dashboard_titled("two"), NOW)
            .unwrap();
    let refused =
        dashboards::put(&store, &no_files(), "mine", Some(first), &dashboard_titled("three"), NOW);
    assert_eq!(conflicting_version(refused), Some(second));
    assert_eq!(
        conflicting_version(dashboards::put(
            &store,
            &no_files(),
            "mine",
            None,
            &dashboard_titled("x"),
            NOW
        )),
        Some(second)
    );
    drop(store);
    let store = open(dir.path());
    let answer = to_json(&dashboards::get(&store, &no_files(), "mine").unwrap());
    assert_eq!(answer["dashboard"]["title"], "two");
    assert_eq!((&answer["version"], &answer["builtin"]), (&json!(second), &json!(false)));
    assert!(matches!(
        dashboards::delete(&store, &no_files(), "mine", Some(first)),
        Err(ObjectFault::Refused(_))
    ));
    dashboards::delete(&store, &no_files(), "mine", Some(second)).unwrap();
    assert!(matches!(dashboards::get(&store, &no_files(), "mine"), Err(ObjectFault::NotFound(_))));
    assert!(matches!(
        dashboards::delete(&store, &no_files(), "mine", None),
        Err(ObjectFault::NotFound(_))
    ));
}

#[test]
fn built_in_dashboards_come_first_and_cannot_be_changed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for name in ["zoo", "apes"] {
        dashboards::put(&store, &no_files(), name, None, &dashboard_titled(name), NOW).unwrap();
    }
    // A damaged dashboard does not hide the others, and can be replaced.
    store.put_object(ObjectKind::Dashboard, "broken", None, b"{", NOW).unwrap().unwrap();
    let listed = to_json(&dashboards::list(&store, &no_files()).unwrap());
    let listed = listed["dashboards"].as_array().unwrap();
    let names: Vec<_> =
        listed.iter().map(|dashboard| dashboard["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hosts", "mongodb", "granary", "apes", "broken", "zoo"]);
    assert_eq!(
        listed[0],
        json!({ "name": "hosts", "title": "Hosts", "version": null,
        "builtin": true, "changed": null })
    );
    assert_eq!(
        listed[3],
        json!({ "name": "apes", "title": "apes", "version": 2,
        "builtin": false, "changed": NOW.0 })
    );
    assert_eq!(listed[4]["title"], "broken (damaged)");
    for name in ["hosts", "mongodb", "granary", "", "A", "a/b", "a b", &"x".repeat(65)] {
        let outcome = dashboards::put(&store, &no_files(), name, None, &dashboard_titled("x"), NOW);
        assert!(matches!(outcome, Err(ObjectFault::Invalid(_))), "{name}");
        let outcome = dashboards::delete(&store, &no_files(), name, Some(1));
        assert!(matches!(outcome, Err(ObjectFault::Invalid(_))), "{name}");
    }
    let version = listed[4]["version"].as_u64();
    dashboards::put(&store, &no_files(), "broken", version, &dashboard_titled("fixed"), NOW)
        .unwrap();
}

#[test]
fn a_dashboard_in_a_file_cannot_be_changed_and_reports_the_saved_one_it_hides() {
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(dir.path());
    let saved = dashboards::put(&store, &no_files(), "web", None, &dashboard_titled("saved"), NOW);
    let text = serde_json::to_string(&dashboard_titled("file")).unwrap();
    fs::write(folder.path().join("web.json"), text).unwrap();
    let files = DashboardFiles::default();
    files.load(folder.path(), &Metrics::new().unwrap());
    let listed = to_json(&dashboards::list(&store, &files).unwrap());
    assert_eq!(
        listed["dashboards"][3],
        json!({ "name": "web", "title": "file", "version": null, "builtin": false,
            "file": "web.json", "changed": null })
    );
    assert_eq!(listed["dashboards"].as_array().unwrap().len(), 4);
    assert_eq!(listed["faults"][0]["file"], "web.json");
    assert!(listed["faults"][0]["message"].as_str().unwrap().contains("hides a saved dashboard"));
    let answer = to_json(&dashboards::get(&store, &files, "web").unwrap());
    assert_eq!(
        (&answer["dashboard"]["title"], &answer["file"]),
        (&json!("file"), &json!("web.json"))
    );
    let version = Some(saved.unwrap());
    let put = dashboards::put(&store, &files, "web", version, &dashboard_titled("x"), NOW);
    assert!(matches!(put, Err(ObjectFault::Invalid(message)) if message.contains("web.json")));
    let deleted = dashboards::delete(&store, &files, "web", version);
    assert!(matches!(deleted, Err(ObjectFault::Invalid(_))));
    // Without the file, the saved dashboard is back.
    let answer = to_json(&dashboards::get(&store, &no_files(), "web").unwrap());
    assert_eq!(answer["dashboard"]["title"], "saved");
}

/// Returns the metrics that a dashboard queries.
fn queried_metrics(dashboard: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for query in panel["queries"].as_array().unwrap() {
            let text = query["metric"].as_str().or(query["expression"].as_str()).unwrap();
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let is_metric = |word: &&str| word.contains('_');
            found.extend(words.filter(is_metric).map(str::to_owned));
        }
    }
    let variables = dashboard["variables"].as_array().unwrap();
    found.extend(variables.iter().map(|variable| variable["metric"].as_str().unwrap().to_owned()));
    found
}

#[test]
fn built_in_dashboards_query_existing_metrics() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let get =
        |name| to_json(&dashboards::get(&store, &no_files(), name).unwrap())["dashboard"].clone();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, agent) in [("hosts", "host"), ("mongodb", "mongodb")] {
        let table = root.join("agents").join(agent).join("METRICS.md");
        let table = fs::read_to_string(table).unwrap();
        let queried = queried_metrics(&get(name));
        assert!(queried.len() >= 40, "{name}: {queried:?}");
        for metric in queried {
            assert!(table.contains(&format!("| `{metric}` |")), "{name}: {metric}");
        }
    }
    let granary = queried_metrics(&get("granary"));
    assert!(granary.len() > 30, "{granary:?}");
    for metric in granary {
        let is_metric = |(name, _): &(&str, &str)| {
            metric == *name || metric == format!("{name}_sum") || metric == format!("{name}_count")
        };
        assert!(METRIC_NAMES.iter().any(is_metric), "granary: {metric}");
    }
    // The page can save a copy of each built-in dashboard.
    for name in ["hosts", "mongodb", "granary"] {
        let copy = Dashboard::read(&get(name).to_string()).unwrap();
        dashboards::put(&store, &no_files(), &format!("my-{name}"), None, &copy, NOW).unwrap();
        let panels = get(name)["panels"].as_array().unwrap().len();
        assert!((15..=40).contains(&panels), "{name}: {panels}");
    }
}

fn add_annotation(annotations: &Annotations, new: Value) -> (String, usize) {
    let new: NewAnnotation = serde_json::from_value(new).unwrap();
    annotations.add(new, NOW).unwrap()
}

/// Returns the texts of the annotations in a time range, separated by spaces.
fn texts(annotations: &Annotations, start: i64, end: i64, tags: &[(&str, &str)]) -> String {
    let tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let (start, end) = (UnixMillis(start), UnixMillis(end));
    let query = AnnotationsQuery { start, end, tags: tags.collect() };
    let answer = to_json(&annotations.list(&query, None).unwrap());
    assert_eq!(answer["left_out"], 0);
    let found = answer["annotations"].as_array().unwrap();
    found
        .iter()
        .map(|annotation| annotation["text"].as_str().unwrap())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn annotations_are_found_by_time_span_and_tags() {
    let dir = tempfile::tempdir().unwrap();
    let annotations = Annotations::new(&open(dir.path()), 100);
    let at = NOW.0;
    for new in [
        json!({ "text": "now" }),
        json!({ "text": "too", "time": at, "tags": { "host": "web1" } }),
        json!({ "text": "hour", "time": at - HOUR, "end": at - 30 * MINUTE }),
        json!({ "text": "month", "time": at - 31 * DAY, "end": at, "tags": { "host": "web2" } }),
        json!({ "text": "first", "time": 0 }),
    ] {
        add_annotation(&annotations, new);
    }
    assert_eq!(texts(&annotations, 0, at + 1, &[]), "first month hour now too");
    assert_eq!(texts(&annotations, at, at + 1, &[]), "month now too");
    assert_eq!(texts(&annotations, at + 1, at + DAY, &[]), "");
    // The end of the range is exclusive.
    assert_eq!(texts(&annotations, at - 40 * MINUTE, at, &[]), "month hour");
    assert_eq!(texts(&annotations, at - 29 * MINUTE, at, &[]), "month");
    // An annotation without the tag is about all hosts.
    assert_eq!(texts(&annotations, 0, at + 1, &[("host", "web1")]), "first hour now too");
    assert_eq!(texts(&annotations, 0, at + 1, &[("host", "web2")]), "first month hour now");
    assert_eq!(texts(&annotations, 0, 1, &[]), "first");
    assert_eq!(texts(&annotations, 5, 5, &[]), "");
}

#[test]
fn the_oldest_annotations_are_evicted_and_ids_are_unique() {
    let dir = tempfile::tempdir().unwrap();
    let annotations = Annotations::new(&open(dir.path()), 5);
    let ids: Vec<_> =
        (0..5).map(|_| add_annotation(&annotations, json!({ "text": "x" })).0).collect();
    assert!(ids.is_sorted());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 5);
    let (new_id, evicted) =
        add_annotation(&annotations, json!({ "text": "new", "time": NOW.0 + 1 }));
    assert_eq!(evicted, 1);
    assert!(matches!(annotations.delete(&ids[0]), Err(ObjectFault::NotFound(_))));
    assert_eq!(texts(&annotations, 0, NOW.0 + 2, &[]), "x x x x new");
    drop(annotations);
    // After a restart with a smaller limit, the next annotation evicts others.
    let annotations = Annotations::new(&open(dir.path()), 3);
    assert_eq!(add_annotation(&annotations, json!({ "text": "y" })).1, 3);
    assert_eq!(texts(&annotations, 0, NOW.0 + 2, &[]), "x y new");
    annotations.delete(&new_id).unwrap();
    assert!(matches!(annotations.delete(&new_id), Err(ObjectFault::NotFound(_))));
    assert_eq!(add_annotation(&annotations, json!({ "text": "z" })).1, 0);
    assert_eq!(texts(&annotations, 0, NOW.0 + 2, &[]), "x y z");
}

#[test]
fn an_answer_has_the_newest_annotations_and_the_number_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let annotations = Annotations::new(&store, 8000);
    for index in 0..1003 {
        add_annotation(&annotations, json!({ "text": index.to_string(), "time": NOW.0 + index }));
    }
    let all = AnnotationsQuery { start: UnixMillis::MIN, end: UnixMillis::MAX, tags: vec![] };
    let answer = to_json(&annotations.list(&all, None).unwrap());
    let found = answer["annotations"].as_array().unwrap();
    assert_eq!((found.len(), &answer["left_out"]), (1000, &json!(3)));
    assert_eq!((&found[0]["text"], &found[999]["text"]), (&json!("3"), &json!("1002")));
}
