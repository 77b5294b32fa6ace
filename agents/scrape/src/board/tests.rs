//! Targets that come, are due, and go; no thread and no clock.

use std::{sync::Arc, time::Duration};

use granary_agent_kit::{Series, relabel::Labels};
use granary_protocol::Kind;

use super::*;

fn assigned(name: &str) -> Assigned {
    let target = Target {
        url: format!("http://{name}/metrics"),
        labels: [("instance", name)].into_iter().collect::<Labels>(),
        interval: Duration::from_secs(10),
        timeout: Duration::from_secs(5),
    };
    Assigned { index: 0, target }
}

fn readings(count: usize) -> Vec<KnownReading> {
    let series = Arc::new(Series::new("m", Vec::new(), Kind::Gauge, ""));
    let one = KnownReading { series, value: 1.0, time_ms: 1, start_ms: None };
    vec![one; count]
}

#[test]
fn each_target_is_due_once_an_interval_at_its_own_time() {
    let mut board = Board::default();
    board.assign(0, vec![assigned("a"), assigned("b")], 0);
    let mut times = Vec::new();
    let mut now = 0;
    while now < 40_000 {
        match board.next(now) {
            Ok(ticket) => {
                assert_eq!(ticket.time_ms, now);
                times.push((ticket.assigned.target.url.clone(), now));
                board.done(ticket, Vec::new(), None, now);
            }
            Err(due) => now = due.unwrap(),
        }
    }
    assert_eq!(times.len(), 8);
    for url in ["http://a/metrics", "http://b/metrics"] {
        let own: Vec<_> = times.iter().filter(|(own, _)| own == url).map(|(_, at)| *at).collect();
        assert!(own.windows(2).all(|two| two[1] - two[0] == 10_000), "{own:?}");
    }
    assert_eq!(board.counts(), Counts { up: 2, down: 0, missed: 0, dropped_samples: 0 });
}

#[test]
fn a_target_that_is_under_way_is_not_scraped_twice_and_the_miss_is_counted() {
    let mut board = Board::default();
    board.assign(0, vec![assigned("a")], 0);
    let due = board.next(0).unwrap_err().unwrap();
    let ticket = board.next(due + 60).unwrap();
    assert_eq!(ticket.time_ms, due + 60, "too late to count at its time");
    assert_eq!(board.next(due + 10_000).unwrap_err(), Some(due + 20_000));
    assert_eq!(board.counts().missed, 1);
    board.done(ticket, Vec::new(), Some("refused".to_owned()), due + 15_000);
    assert_eq!(board.problems(), [("target http://a/metrics".to_owned(), "refused".to_owned())]);
    // After a suspend of an hour there is one scrape, and the others are missed.
    assert!(board.next(due + 20_000 + 3_600_000).is_ok());
    assert_eq!(board.counts(), Counts { up: 0, down: 1, missed: 361, dropped_samples: 0 });
}

#[test]
fn a_clock_that_steps_back_does_not_stop_scraping() {
    let mut board = Board::default();
    let hour = 3_600_000;
    board.assign(0, vec![assigned("a")], hour);
    let due = board.next(hour).unwrap_err().unwrap();
    let ticket = board.next(due).unwrap();
    board.done(ticket, Vec::new(), None, due);
    let again = board.next(due - hour).unwrap_err().unwrap();
    assert!(again > due - hour && again <= due - hour + 10_000, "{due} {again}");
    assert!(board.next(again).is_ok());
    // A clock that is set a little skips nothing and repeats nothing.
    assert_eq!(board.next(again - 5).unwrap_err(), Some(again));
}

#[test]
fn targets_that_stay_go_on_and_those_that_are_gone_end_once() {
    let mut board = Board::default();
    board.assign(0, vec![assigned("a"), assigned("b")], 0);
    board.assign(1, vec![assigned("a")], 0);
    board.all_due(5);
    let mut tickets: Vec<_> = std::iter::from_fn(|| board.next(5).ok()).collect();
    assert_eq!(tickets.len(), 3, "of each job its own");
    let last = tickets.pop().unwrap();
    for ticket in tickets {
        board.done(ticket, readings(2), None, 5);
    }
    assert!(!board.is_all_scraped() && board.has_waiting());
    board.done(last, readings(1), None, 5);
    assert!(board.is_all_scraped());
    assert_eq!(board.take().len(), 3);
    board.assign(0, vec![assigned("b")], 6);
    assert_eq!(board.entries.len(), 2);
    board.assign(0, vec![assigned("b")], 7);
    board.all_due(8);
    assert_eq!(std::iter::from_fn(|| board.next(8).ok()).count(), 2);
}

#[test]
fn answers_that_nobody_takes_are_bounded() {
    let mut board = Board::default();
    for _ in 0..3 {
        board.wait(readings(WAITING_SAMPLES_MAX / 2));
    }
    assert_eq!(board.counts().dropped_samples, WAITING_SAMPLES_MAX as u64 / 2);
    assert_eq!(board.take().len(), 2);
    assert!(!board.has_waiting());
}
