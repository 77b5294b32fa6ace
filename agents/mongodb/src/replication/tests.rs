//! Readings of `replSetGetStatus` from members in each state.

use std::collections::BTreeMap;

use mongodb::bson::{Timestamp, doc};

use super::*;
use crate::test_responses::{NOW_S, set_status};

const PRIMARY: i32 = 1;
const SECONDARY: i32 = 2;
const ARBITER: i32 = 7;
const DOWN: i32 = 8;

fn values_and_lag(status: &Document) -> (BTreeMap<String, f64>, Lag) {
    let mut readings = Readings::default();
    let lag = push_replication(status, &mut readings);
    (readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect(), lag)
}

#[test]
fn a_secondary_reports_its_lag() {
    let members = [("a", PRIMARY, 0), ("b", SECONDARY, 7), ("c", SECONDARY, 20)];
    let (values, lag) = values_and_lag(&set_status("b", &members));
    assert_eq!(values["mongodb_oplog_slave_lag_master_time"], 7.0);
    assert_eq!(values["mongodb_oplog_replication_lag"], 7.25, "by the clock, to the millisecond");
    assert_eq!(lag.seconds, Some(7.0));
    assert_eq!((values["mongodb_state"], values["mongodb_term"]), (2.0, 3.0));
    assert_eq!(values["mongodb_members_healthy"], 3.0);
}

#[test]
fn a_primary_reports_the_largest_lag_of_its_secondaries() {
    let members = [("a", PRIMARY, 0), ("b", SECONDARY, 7), ("c", SECONDARY, 20), ("d", ARBITER, 0)];
    let (values, lag) = values_and_lag(&set_status("a", &members));
    assert_eq!(values["mongodb_oplog_replication_lag"], 20.25);
    assert_eq!(lag.seconds, None);
    assert!(!values.contains_key("mongodb_oplog_slave_lag_master_time"));
    assert_eq!(values["mongodb_members_healthy"], 4.0);
}

/// Regression: a member that began to recover had no lag any more, although its lag grows then.
#[test]
fn a_member_that_recovers_or_rolls_back_reports_its_lag() {
    for state in [3, 5, 9] {
        let members = [("a", PRIMARY, 0), ("b", state, 700), ("c", SECONDARY, 20)];
        let status = set_status("b", &members);
        let (values, lag) = values_and_lag(&status);
        assert_eq!(values["mongodb_oplog_slave_lag_master_time"], 700.0, "{state}");
        assert_eq!(lag.seconds, Some(700.0));
        assert_eq!(values["mongodb_members_unhealthy"], 1.0);
        let (of_primary, _) = values_and_lag(&set_status("a", &members));
        assert_eq!(of_primary["mongodb_oplog_replication_lag"], 700.25);
    }
    // A member without data is not decades behind.
    let mut status = set_status("b", &[("a", PRIMARY, 0), ("b", 5, 0)]);
    let empty = doc! {
        "self": true, "state": 5, "health": 1.0, "optime": { "ts": Timestamp { time: 0, increment: 0 } },
        "optimeDate": mongodb::bson::DateTime::from_millis(0),
    };
    status.get_array_mut("members").unwrap()[1] = Bson::Document(empty);
    assert_eq!(values_and_lag(&status).1, Lag::default());
}

#[test]
fn a_set_without_a_primary_has_no_lag_and_unhealthy_members_count() {
    let members = [("a", DOWN, 0), ("b", SECONDARY, 7), ("c", 3, 0)];
    let (values, lag) = values_and_lag(&set_status("b", &members));
    assert_eq!(values["mongodb_has_primary"], 0.0);
    assert_eq!(
        (values["mongodb_members_healthy"], values["mongodb_members_unhealthy"]),
        (1.0, 2.0)
    );
    assert_eq!(lag, Lag::default());
}

#[test]
fn an_arbiter_has_a_state_but_no_lag() {
    let members = [("a", PRIMARY, 0), ("b", SECONDARY, 0), ("c", ARBITER, 0)];
    let (values, lag) = values_and_lag(&set_status("c", &members));
    assert_eq!((values["mongodb_state"], values["mongodb_has_primary"]), (7.0, 1.0));
    assert_eq!(lag, Lag::default());
}

#[test]
fn the_known_fields_of_an_incomplete_response_are_read() {
    assert_eq!(values_and_lag(&doc! {}).0, BTreeMap::new());
    let (values, _) = values_and_lag(&doc! { "myState": 5, "members": [1, "x", {}] });
    assert_eq!((values["mongodb_state"], values["mongodb_members_unhealthy"]), (5.0, 1.0));
}

#[test]
fn the_oplog_has_a_window_and_a_rate() {
    let end = |time: u32| doc! { "ts": Timestamp { time, increment: 1 } };
    let stats = doc! { "storageStats": { "size": 3_221_225_472_i64 } };
    let oplog = Oplog::of(&end(NOW_S - 7200), &end(NOW_S), Some(&stats)).unwrap();
    let mut readings = Readings::default();
    oplog.push_values(&mut readings);
    let values: Vec<_> =
        readings.as_slice().iter().map(|r| (r.metric.as_ref(), r.value, r.unit.as_ref())).collect();
    assert_eq!(
        values,
        [
            ("mongodb_oplog_master_time", 7200.0, "seconds"),
            ("mongodb_oplog_rate_gb_per_hour", 1.5, "gibibytes/hour"),
        ]
    );
    let fresh = Oplog::of(&end(NOW_S), &end(NOW_S), Some(&stats)).unwrap();
    let mut readings = Readings::default();
    fresh.push_values(&mut readings);
    assert_eq!(readings.as_slice().len(), 1, "a window of zero has no rate");
    assert_eq!(Oplog::of(&doc! {}, &end(NOW_S), None), None);
}
