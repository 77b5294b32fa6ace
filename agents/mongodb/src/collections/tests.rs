//! Sweeps over scripted collections.

use super::*;

const INTERVAL_MS: i64 = 1_200_000;

fn batch(documents: Vec<Document>) -> Document {
    doc! { "cursor": { "firstBatch": documents, "id": 0_i64 }, "ok": 1.0 }
}

/// Returns the response to a step: collection `c7` has 7 bytes.
fn response(step: &Step, collections: usize) -> Document {
    match step {
        Step::List(_) => {
            batch((0..collections).map(|n| doc! { "name": format!("c{n}") }).collect())
        }
        Step::Measure((_, name)) => {
            let size: i64 = name.strip_prefix('c').unwrap().parse().unwrap();
            let sizes = doc! { "_id_": 4096, "by.day": 8192 };
            batch(vec![doc! { "storageStats": { "size": size, "indexSizes": sizes } }])
        }
        Step::Indexes(_) => {
            let since = mongodb::bson::DateTime::from_millis(5);
            let accesses = doc! { "ops": 12_i64, "since": since };
            batch(vec![doc! { "name": "_id_", "accesses": accesses }])
        }
    }
}

fn run(sweep: &mut CollectionSweep, collections: usize, series_max: usize) {
    sweep.start(["local", "shop"].map(str::to_owned).into_iter());
    while let Some(step) = sweep.next(series_max) {
        let response = response(&step, collections);
        sweep.note_response(step, &response, series_max);
        assert!(sweep.largest.len() <= 2 * series_max);
    }
    sweep.end_round(1000, 5, INTERVAL_MS);
}

#[test]
fn the_largest_collections_have_series_and_only_their_indexes_are_queried() {
    let mut sweep = CollectionSweep::default();
    run(&mut sweep, 50, 3);
    let mut readings = Readings::default();
    sweep.push_values(Some(1), &mut readings);
    assert_eq!(sweep.problem(), None);
    let of_metric = |metric: &str| {
        let all = readings.as_slice().iter().filter(move |r| r.metric == metric);
        let tag = |r: &granary_agent_kit::Reading, name: &str| {
            let tag = r.tags.iter().find(|(known, _)| known == name);
            tag.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        all.map(|r| (r.value, tag(r, "collection"), tag(r, "index"))).collect::<Vec<_>>()
    };
    let expected = |value: f64, collection: &str, index: &str| {
        (value, collection.to_owned(), index.to_owned())
    };
    let sizes = [(49.0, "c49"), (48.0, "c48"), (47.0, "c47")];
    let sizes = sizes.map(|(size, name)| expected(size, name, ""));
    assert_eq!(of_metric("mongodb_collection_size"), sizes);
    assert_eq!(of_metric("mongodb_index_accesses").len(), 3);
    assert_eq!(of_metric("mongodb_index_size")[1], expected(8192.0, "c49", "by.day"));
    assert!(!sweep.is_due(1000 + INTERVAL_MS - 1) && sweep.is_due(1000 + INTERVAL_MS));
}

#[test]
fn collections_beyond_the_limit_and_refusals_are_reported() {
    let mut sweep = CollectionSweep::default();
    run(&mut sweep, COLLECTIONS_MAX + 5, 1);
    assert_eq!(sweep.problem(), Some("5 collections beyond 20000 are not measured"));
    sweep.start(std::iter::once("shop".to_owned()));
    let list = sweep.next(1).unwrap();
    sweep.note_refusal(&list, &Fault::Refused(26, "NamespaceNotFound (26)".to_owned()));
    sweep.note_refusal(&list, &Fault::Refused(13, "Unauthorized (13)".to_owned()));
    assert_eq!(sweep.next(1), None);
    sweep.end_round(2000, 5, INTERVAL_MS);
    let problem = "1 queries were refused, the first one for shop: Unauthorized (13)";
    assert_eq!(sweep.problem(), Some(problem));
}

/// Regression: a query that did not return before the end of its round left no trace.
#[test]
fn a_query_that_the_end_of_a_round_interrupts_is_reported() {
    let mut sweep = CollectionSweep::default();
    sweep.start(std::iter::once("shop".to_owned()));
    let list = sweep.next(1).unwrap();
    sweep.note_response(list, &batch(vec![doc! { "name": "c1" }]), 1);
    assert!(matches!(sweep.next(1), Some(Step::Measure(_))));
    assert_eq!(sweep.next(1), None);
    sweep.end_round(1000, 5, INTERVAL_MS);
    let problem = "1 queries were refused, the first one for shop.c1: no answer in time";
    assert_eq!(sweep.problem(), Some(problem));
    assert!(!sweep.is_due(1000 + INTERVAL_MS - 1));
}

/// Regression: the profiler's collection was a refusal in each sweep.
#[test]
fn collections_of_the_server_are_not_measured() {
    let mut sweep = CollectionSweep::default();
    sweep.start(std::iter::once("shop".to_owned()));
    let list = sweep.next(1).unwrap();
    let names = ["system.profile", "system.buckets.weather", "orders", "system.views"];
    let names = names.map(|name| doc! { "name": name }).into();
    sweep.note_response(list, &batch(names), 1);
    let measured = |name: &str| Step::Measure(("shop".to_owned(), name.to_owned()));
    assert_eq!(sweep.steps, [measured("system.buckets.weather"), measured("orders")]);
}

/// Regression: the collections after the first batch were left out without a message.
#[test]
fn a_list_of_collections_that_is_cut_is_reported() {
    let mut sweep = CollectionSweep::default();
    sweep.start(std::iter::once("shop".to_owned()));
    let list = sweep.next(1).unwrap();
    let cut = doc! { "cursor": { "firstBatch": [{ "name": "c1" }], "id": 7_i64 } };
    sweep.note_response(list, &cut, 1);
    while let Some(step) = sweep.next(1) {
        let response = response(&step, 1);
        sweep.note_response(step, &response, 1);
    }
    sweep.end_round(1000, 5, INTERVAL_MS);
    let problem = "collections of shop beyond the first response are not measured";
    assert_eq!(sweep.problem(), Some(problem));
}

#[test]
fn values_remain_until_a_later_sweep_is_complete() {
    let mut sweep = CollectionSweep::default();
    run(&mut sweep, 2, 5);
    let count = |sweep: &CollectionSweep| {
        let mut readings = Readings::default();
        sweep.push_values(None, &mut readings);
        readings.as_slice().iter().filter(|r| r.metric == "mongodb_collection_size").count()
    };
    sweep.start(std::iter::once("shop".to_owned()));
    let list = sweep.next(5).unwrap();
    let listed = response(&list, 4);
    sweep.note_response(list, &listed, 5);
    sweep.end_round(2000, 5, INTERVAL_MS);
    assert_eq!(count(&sweep), 2);
    while let Some(step) = sweep.next(5) {
        let response = response(&step, 4);
        let is_dropped = step == Step::Measure(("shop".to_owned(), "c0".to_owned()));
        if !is_dropped {
            sweep.note_response(step, &response, 5);
        }
    }
    sweep.end_round(3000, 5, INTERVAL_MS);
    assert_eq!(count(&sweep), 3, "a collection that was dropped meanwhile has no series");
    // Regression: a round after the sweep replaced its values by none, and postponed the next.
    sweep.end_round(4000, 0, INTERVAL_MS);
    assert_eq!(count(&sweep), 3);
    assert!(sweep.is_due(3000 + INTERVAL_MS));
}
