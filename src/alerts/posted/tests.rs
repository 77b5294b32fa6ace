//! Tests of merging, limits and ends of posted alerts.

use super::*;

const TIMEOUT: i64 = 300_000;
const NOW: UnixMillis = UnixMillis(1_795_305_600_000);

fn alert(labels: &str, starts_at: Option<i64>, ends_at: Option<i64>) -> PostableAlert {
    let text = |at: Option<i64>| at.map(|at| UnixMillis(NOW.0 + at).to_string());
    let pairs = labels.split(' ').filter_map(|pair| pair.split_once('='));
    PostableAlert {
        labels: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        starts_at: text(starts_at),
        ends_at: text(ends_at),
        ..PostableAlert::default()
    }
}

/// Returns the start and the end of the only alert, relative to `NOW`; the end is `None` while it
/// fires.
fn only_alert(posted: &PostedAlerts, now: UnixMillis) -> (i64, Option<i64>) {
    let alerts = posted.message_alerts(now);
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    (alerts[0].starts_at - NOW.0, alerts[0].ends_at.map(|at| at - NOW.0))
}

#[test]
fn omitted_times_have_alertmanagers_defaults() {
    let accepted = |starts_at, ends_at| {
        let mut posted = PostedAlerts::default();
        let outcome = posted.put(vec![alert("a=b", starts_at, ends_at)], TIMEOUT, NOW);
        assert_eq!(outcome.accepted, 1, "{outcome:?}");
        only_alert(&posted, NOW)
    };
    assert_eq!(accepted(None, None), (0, None));
    assert_eq!(accepted(Some(-7), None), (-7, None));
    assert_eq!(accepted(None, Some(-5)), (-5, Some(-5)));
    assert_eq!(accepted(Some(-7), Some(9)), (-7, None));
}

#[test]
fn an_alert_that_is_not_sent_again_ends_once_after_the_resolve_timeout() {
    let mut posted = PostedAlerts::default();
    let post = || vec![alert("a=b", None, None)];
    posted.put(post(), TIMEOUT, NOW);
    let first = posted.changes(NOW);
    // When the same alert is sent again, it continues, and nothing has changed.
    posted.put(post(), TIMEOUT, NOW.plus(60_000));
    assert_eq!(posted.changes(NOW.plus(60_000)), first);
    assert_eq!(only_alert(&posted, NOW.plus(TIMEOUT)), (0, None));
    assert_eq!(posted.changes(NOW.plus(TIMEOUT)), first);
    let end = 60_000 + TIMEOUT;
    assert_eq!(only_alert(&posted, NOW.plus(end)), (0, Some(end)));
    assert_eq!(posted.changes(NOW.plus(end)), first + 1);
    assert_eq!(posted.changes(NOW.plus(end + 1)), first + 1);
    assert!(posted.firing(NOW.plus(end)).is_empty());
    // The next alert is a new episode.
    posted.put(vec![alert("a=b", Some(end + 9), None)], TIMEOUT, NOW.plus(end + 10));
    assert_eq!(only_alert(&posted, NOW.plus(end + 10)), (end + 9, None));
}

#[test]
fn alerts_of_several_senders_are_merged_as_in_alertmanager() {
    let merged = |first: (i64, Option<i64>), second: (i64, Option<i64>)| {
        let mut posted = PostedAlerts::default();
        for (starts_at, ends_at) in [first, second] {
            posted.put(vec![alert("a=b", Some(starts_at), ends_at)], TIMEOUT, NOW);
        }
        only_alert(&posted, NOW)
    };
    // The earlier start counts.
    assert_eq!(merged((-60, Some(600)), (-20, Some(900))), (-60, None));
    // An explicit end takes precedence over a timeout, while it is later.
    let mut posted = PostedAlerts::default();
    posted.put(vec![alert("a=b", Some(-60), Some(2 * TIMEOUT))], TIMEOUT, NOW);
    posted.put(vec![alert("a=b", Some(-20), None)], TIMEOUT, NOW);
    assert_eq!(only_alert(&posted, NOW.plus(2 * TIMEOUT - 1)), (-60, None));
    // An ended alert ends the known alert, even before the end that was expected.
    assert_eq!(merged((-60, Some(600)), (-20, Some(-10))), (-60, Some(-10)));
    // Of two past ends, the later one counts.
    assert_eq!(merged((-60, Some(-10)), (-50, Some(-20))), (-60, Some(-10)));
}

#[test]
fn invalid_alerts_are_reported_and_the_others_are_accepted() {
    let mut posted = PostedAlerts::default();
    let long_label = format!("a={}", "x".repeat(ALERT_BYTES_MAX));
    let many_labels: Vec<_> = (0..=PAIRS_MAX).map(|at| format!("l{at}=x")).collect();
    let many_labels = many_labels.join(" ");
    let invalid_alerts = [
        (alert("", None, None), "at least one label"),
        (alert("a=", None, None), "at least one label"),
        (alert("a-b=c", None, None), "invalid label name"),
        (alert("a=b", Some(10), Some(5)), "start time must be before end time"),
        (alert(&long_label, None, None), "bytes exceed the limit of"),
        (alert(&many_labels, None, None), "labels exceed the limit of"),
        (
            PostableAlert { starts_at: Some("soon".to_owned()), ..alert("a=b", None, None) },
            "startsAt",
        ),
    ];
    for (invalid_alert, expected) in invalid_alerts {
        let outcome = posted.put(vec![invalid_alert, alert("good=1", None, None)], TIMEOUT, NOW);
        assert_eq!((outcome.accepted, outcome.invalid), (1, 1), "{outcome:?}");
        assert!(outcome.faults[0].contains(expected), "{outcome:?}");
    }
    let zero = PostableAlert {
        starts_at: Some("0001-01-01T00:00:00Z".to_owned()),
        ends_at: Some("0001-01-01T00:00:00.000Z".to_owned()),
        ..alert("zero=1", None, None)
    };
    assert_eq!(posted.put(vec![zero], TIMEOUT, NOW).accepted, 1);
}

#[test]
fn alerts_are_limited_in_number_and_size_and_ended_alerts_make_room() {
    let mut posted = PostedAlerts::default();
    let batch = |from: usize, count: usize, ends_at: Option<i64>| {
        (from..from + count)
            .map(|at| alert(&format!("a={at}"), Some(-100), ends_at))
            .collect::<Vec<_>>()
    };
    let outcome = posted.put(batch(0, ALERTS_MAX + 5, None), TIMEOUT, NOW);
    assert_eq!((outcome.accepted, outcome.refused), (ALERTS_MAX, 5));
    // Known alerts continue, and an ended one makes room.
    assert_eq!(posted.put(batch(0, 1, None), TIMEOUT, NOW).accepted, 1);
    assert_eq!(posted.put(batch(3, 1, Some(-1)), TIMEOUT, NOW).accepted, 1);
    let outcome = posted.put(batch(ALERTS_MAX, 2, None), TIMEOUT, NOW);
    assert_eq!((outcome.accepted, outcome.refused), (1, 1));
    let large = "x".repeat(ALERT_BYTES_MAX - 1000);
    let mut posted = PostedAlerts::default();
    let alerts = (0..400).map(|at| alert(&format!("a={at} b={large}"), None, None)).collect();
    let outcome = posted.put(alerts, TIMEOUT, NOW);
    assert!(outcome.refused > 0 && posted.bytes <= BYTES_MAX, "{outcome:?}");
    let sum: usize = posted.all.iter().map(|(labels, alert)| bytes(labels, alert)).sum();
    assert_eq!(posted.bytes, sum);
    posted.changes(NOW.plus(TIMEOUT));
    posted.put(Vec::new(), TIMEOUT, NOW.plus(TIMEOUT));
    posted.changes(NOW.plus(TIMEOUT));
    assert_eq!(posted.firing(NOW.plus(TIMEOUT)).len(), 0);
}
