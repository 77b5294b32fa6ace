//! Rounds after an election, after a restart of the server, and after errors.

use granary_agent_kit::Reading;

use super::*;

/// Regression: a tag `role` made a counter continue after a second election with the growth that
/// the series of the other role already contained.
#[test]
fn series_have_the_set_and_do_not_change_at_an_election() {
    let is_primary = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_primary);
    let server = Responder::start(move |_, command| {
        let role = if flag.load(Ordering::SeqCst) { "primary" } else { "secondary" };
        Some(response(role, "7.0.5", command))
    });
    let mut agent = agent_for(&[&server.address], LONG_TIMEOUT);
    let mut counters = Vec::new();
    for (role, now_ms) in [("primary", NOW_MS), ("secondary", NOW_MS + 10_000)] {
        is_primary.store(role == "primary", Ordering::SeqCst);
        let readings = sample_round(&mut agent, now_ms);
        let has = |r: &Reading, name: &str, value: Option<&str>| {
            r.tags.iter().any(|(key, known)| key == name && value.is_none_or(|v| v == known))
        };
        let mut of_server = readings.as_slice().iter().filter(|r| !is_of_agent(&r.metric));
        assert!(of_server.all(|r| has(r, "set", Some("rs0"))));
        assert!(!readings.as_slice().iter().any(|r| has(r, "role", None)));
        let metric = |r: &&Reading| r.metric.starts_with("mongodb_opcounter_");
        let all = readings.as_slice().iter().filter(metric);
        counters.push(all.map(|r| (r.metric.clone(), r.tags.clone())).collect::<Vec<_>>());
    }
    assert!(counters[0].len() > 3 && counters[0] == counters[1], "{counters:?}");
}

/// Regression: one refusal during an election hid the paths of the server for an hour.
#[test]
fn options_of_the_server_are_queried_again_after_a_temporary_refusal() {
    let is_refused = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_refused);
    let server = Responder::start(move |_, command| {
        let is_about_options = command.contains_key("getCmdLineOpts");
        if is_about_options && flag.load(Ordering::SeqCst) {
            return Some(error_document(11_602, "InterruptedDueToReplStateChange"));
        }
        Some(response("primary", "7.0.5", command))
    });
    let mut agent = agent_for(&[&server.address], LONG_TIMEOUT);
    let path = |readings: &Readings| value(readings, &server.address, "mongodb_storage_path");
    assert_eq!(path(&sample_round(&mut agent, NOW_MS)), None);
    is_refused.store(false, Ordering::SeqCst);
    assert_eq!(path(&sample_round(&mut agent, NOW_MS + 10_000)), Some(1.0));
}

/// Regression: values of the last sweep counted as growth since the server's new start.
#[test]
fn values_of_collections_do_not_survive_a_restart_of_the_server() {
    let has_restarted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&has_restarted);
    let server = Responder::start(move |_, command| {
        let name = command.keys().next().map_or("", String::as_str);
        let mut response = response("primary", "7.0.5", command);
        if flag.load(Ordering::SeqCst) {
            match name {
                "serverStatus" => {
                    response.extend(doc! { "pid": 77_i64, "uptimeMillis": 1000_i64 });
                }
                // The next sweep finds no collection.
                "listCollections" => return Some(first_batch_of_none()),
                _ => {}
            }
        }
        Some(response)
    });
    let mut agent = agent_for(&[&server.address], LONG_TIMEOUT);
    let reads = |readings: &Readings| value(readings, &server.address, "mongodb_collection_reads");
    assert!(reads(&sample_round(&mut agent, NOW_MS)).is_some());
    let again = sample_round(&mut agent, NOW_MS + 10_000);
    assert!(reads(&again).is_some(), "rounds repeat a sweep");
    has_restarted.store(true, Ordering::SeqCst);
    assert_eq!(reads(&sample_round(&mut agent, NOW_MS + 20_000)), None);
}

fn first_batch_of_none() -> Document {
    doc! { "cursor": { "firstBatch": [], "id": 0_i64, "ns": "shop" }, "ok": 1.0 }
}

/// Regression: an error of an election ended queries of running operations for an hour, and a
/// hanging query repeated the earlier values.
#[test]
fn running_operations_return_after_an_election_and_are_never_old() {
    let round = Arc::new(AtomicI64::new(0));
    let number = Arc::clone(&round);
    let server = Responder::start(move |_, command| {
        let is_current_op = command.get_array("pipeline").is_ok_and(|stages| {
            let first = stages.first().and_then(Bson::as_document);
            first.is_some_and(|stage| stage.contains_key("$currentOp"))
        });
        match number.load(Ordering::SeqCst) {
            1 if is_current_op => Some(error_document(11_602, "InterruptedDueToReplStateChange")),
            3 if is_current_op => None,
            _ => Some(response("primary", "7.0.5", command)),
        }
    });
    let mut agent = agent_for(&[&server.address], Duration::from_secs(2));
    for (number, is_known) in [(0, true), (1, false), (2, true), (3, false)] {
        round.store(number, Ordering::SeqCst);
        let readings = sample_round(&mut agent, NOW_MS + number * 10_000);
        let found = value(&readings, &server.address, "mongodb_running_operations");
        assert_eq!(found.is_some(), is_known, "round {number}: {:?}", readings.problems());
    }
}
