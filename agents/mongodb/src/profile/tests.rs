//! Profiles of a database that change from round to round.

use super::*;

const T: i64 = 1_800_000_000_000;

fn entry(at_ms: i64, field: &str, millis: i64) -> Document {
    doc! {
        "op": "query", "ns": "shop.orders", "ts": DateTime::from_millis(at_ms), "millis": millis,
        "docsExamined": 500, "keysExamined": 3_i64, "nreturned": 2,
        "command": { "find": "orders", "filter": { field: "secret" } },
    }
}

fn batch(entries: Vec<Document>) -> Document {
    doc! { "cursor": { "firstBatch": entries, "id": 0_i64 }, "ok": 1.0 }
}

fn operations() -> SlowOperations {
    let mut operations = SlowOperations::default();
    operations.set_databases(["local", "shop"].map(str::to_owned).into_iter());
    operations
}

fn count(operations: &SlowOperations) -> f64 {
    operations.shapes.values().map(|totals| totals.count).sum()
}

#[test]
fn each_operation_after_the_agents_start_counts_once() {
    let mut operations = operations();
    assert_eq!(operations.due(5, T), ["shop"]);
    assert!(operations.command("shop").unwrap().get_document("sort").unwrap().contains_key("ts"));
    operations.note_response("shop", &batch(vec![entry(T, "a", 900)]), T + 10);
    operations.end_round(T + 10);
    assert_eq!(count(&operations), 0.0, "older than the agent");
    // Two operations end in one millisecond, in two rounds.
    let (first, second) = (entry(T + 20, "a", 900), entry(T + 20, "a", 70_000));
    operations.note_response("shop", &batch(vec![entry(T, "a", 900), first.clone()]), T + 30);
    operations.end_round(T + 30);
    let filter = operations.command("shop").unwrap();
    let since = filter.get_document("filter").unwrap().get_document("ts").unwrap();
    assert_eq!(since.get_datetime("$gte").unwrap().timestamp_millis(), T + 20);
    operations.note_response("shop", &batch(vec![first.clone(), second.clone()]), T + 40);
    operations.note_response("shop", &batch(vec![first, second]), T + 50);
    let mut readings = Readings::default();
    operations.push_values(&mut readings);
    let values: Vec<f64> = readings.as_slice().iter().map(|reading| reading.value).collect();
    let buckets = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0];
    assert_eq!(values[..10], buckets);
    assert_eq!(values[10..], [2.0, 70.9, 1000.0, 6.0, 4.0]);
    assert!(readings.as_slice().iter().all(|reading| reading.start_ms == Some(T + 10)));
    assert!(!format!("{readings:?}").contains("secret"));
    assert_eq!(operations.take_problem(), None);
}

#[test]
fn a_profiler_that_is_turned_on_later_counts_from_its_first_operation() {
    let mut operations = operations();
    operations.note_response("shop", &batch(vec![]), T);
    operations.note_response("shop", &batch(vec![entry(T + 5, "a", 1)]), T + 10);
    assert_eq!(count(&operations), 1.0);
    operations.note_response("shop", &batch(vec![]), T + 20);
    assert_eq!(operations.take_problem(), None, "the profile was dropped");
    operations.note_response("shop", &batch(vec![entry(T + 25, "a", 1)]), T + 30);
    assert_eq!(count(&operations), 2.0);
    operations.note_response("shop", &batch(vec![]), T + 40);
    let command = operations.command("shop").unwrap();
    let since = command.get_document("filter").unwrap().get_document("ts").unwrap();
    assert_eq!(since.get_datetime("$gte").unwrap().timestamp_millis(), T + 25, "counts once");
}

#[test]
fn an_overwritten_profile_is_reported() {
    let mut operations = operations();
    operations.note_response("shop", &batch(vec![entry(T, "a", 1)]), T);
    operations.note_response("shop", &batch(vec![entry(T + 9, "a", 1)]), T + 10);
    assert!(operations.take_problem().unwrap().contains("shop.system.profile"));
    assert_eq!((operations.take_problem(), count(&operations)), (None, 1.0));
    for invalid in [doc! {}, doc! { "cursor": { "firstBatch": [1, { "ts": "x" }] } }] {
        operations.note_response("shop", &invalid, T + 20);
    }
    assert_eq!(count(&operations), 1.0);
}

#[test]
fn shapes_and_databases_are_bounded_and_idle_shapes_leave() {
    let mut operations = operations();
    operations.note_response("shop", &batch(vec![]), T);
    let many = ('a'..='z').flat_map(|a| ('a'..='z').map(move |b| format!("{a}{b}")));
    let entries = many.map(|field| entry(T + 1, &field, 1)).collect();
    operations.note_response("shop", &batch(entries), T + 10);
    assert_eq!((operations.shapes.len(), count(&operations)), (SHAPES_MAX + 1, 676.0));
    let rest = &operations.shapes[&[OTHER; 4].map(str::to_owned)];
    assert_eq!(rest.count, 676.0 - SHAPES_MAX as f64);
    operations.end_round(T + 10 + IDLE_MAX_MS);
    assert_eq!(operations.shapes.len(), 0);
    operations.set_databases((0..1_000).map(|n| format!("d{n:04}")));
    let tried = [operations.due(5, T), operations.due(5, T)].concat();
    assert_eq!((tried.len(), tried[0].as_str(), tried[9].as_str()), (10, "d0000", "d0009"));
    let all: Vec<String> = (0..40).flat_map(|_| operations.due(5, T)).collect();
    assert!(all.contains(&format!("d{:04}", DATABASES_MAX - 1)) && all.contains(&tried[0]));
}

/// Regression: one database that the user may not read ended the queries for all others.
#[test]
fn a_database_that_refuses_does_not_delay_the_others() {
    let mut operations = SlowOperations::default();
    operations.set_databases(["a", "b", "c"].map(str::to_owned).into_iter());
    assert_eq!(operations.due(5, T), ["a", "b", "c"]);
    operations.note_refusal("a", Fault::Refused(13, "Unauthorized".to_owned()), T);
    operations.note_refusal("b", Fault::Refused(11_602, "InterruptedDueTo".to_owned()), T);
    assert_eq!(operations.due(5, T + 1), ["b", "c"], "a temporary refusal is tried again");
    let message = operations.refusal().unwrap();
    assert!(message.contains("2 databases") && message.contains("a: Unauthorized"), "{message}");
    operations.note_response("b", &batch(vec![]), T + 10);
    assert!(operations.refusal().unwrap().contains("1 databases"));
    assert_eq!(operations.due(5, T + REFUSED_INTERVAL_MS).len(), 3);
    operations.note_response("a", &batch(vec![]), T + REFUSED_INTERVAL_MS);
    assert_eq!(operations.refusal(), None);
    operations.note_refusal("c", Fault::Refused(13, String::new()), T);
    operations.set_databases(["a".to_owned()].into_iter());
    assert_eq!(operations.refusal(), None, "a dropped database");
}
