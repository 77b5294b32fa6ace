//! The board without threads and clocks: targets are added, scraped and removed.

use std::{sync::Arc, time::Duration};

use granary_agent_kit::{KnownReading, Series, relabel::Labels};
use granary_protocol::Kind;

use super::*;
use crate::memory::MEMORY_MAX;

fn assigned_target(name: &str) -> AssignedTarget {
    let target = Target {
        url: format!("http://{name}/metrics"),
        labels: [("instance", name)].into_iter().collect::<Labels>(),
        interval: Duration::from_secs(10),
        timeout: Duration::from_secs(5),
    };
    AssignedTarget { index: 0, target }
}

fn board() -> Board {
    Board::new(Memory::new(MEMORY_MAX))
}

/// Returns the numbers of targets up and down, and of missed scrapes.
fn up_down_missed(board: &Board) -> (u64, u64, u64) {
    let ScrapeCounts { up, down, missed, .. } = board.counts();
    (up, down, missed)
}

fn samples_of(board: &Board, count: usize) -> Samples {
    let series = Arc::new(Series::new("m", Vec::new(), Kind::Gauge, ""));
    let reading = KnownReading { series, value: 1.0, time_ms: 1, start_ms: None, histogram: None };
    let mut samples = board.memory.samples();
    for _ in 0..count {
        samples.push_always(reading.clone());
    }
    samples
}

#[test]
fn each_target_is_due_once_per_interval_at_its_own_offset() {
    let mut board = board();
    board.assign(0, vec![assigned_target("a"), assigned_target("b")], 0);
    let mut times = Vec::new();
    let mut now = 0;
    while now < 40_000 {
        match board.next_task(now) {
            Ok(task) => {
                assert_eq!(task.time_ms, now);
                times.push((task.assigned_target.target.url.clone(), now));
                let no_samples = board.memory.samples();
                board.finish(task, no_samples, None, now);
            }
            Err(due) => now = due.unwrap(),
        }
    }
    assert_eq!(times.len(), 8);
    for url in ["http://a/metrics", "http://b/metrics"] {
        let scrapes: Vec<_> =
            times.iter().filter(|(scraped, _)| scraped == url).map(|(_, at)| *at).collect();
        assert!(scrapes.windows(2).all(|two| two[1] - two[0] == 10_000), "{scrapes:?}");
    }
    assert_eq!(up_down_missed(&board), (2, 0, 0));
}

#[test]
fn a_target_that_hangs_for_its_whole_interval_is_scraped_in_each_interval() {
    let mut board = board();
    board.assign(0, vec![assigned_target("a")], 0);
    let mut now = board.next_task(0).unwrap_err().unwrap();
    let first = now;
    for round in 0..6 {
        let task = board.next_task(now).unwrap();
        assert_eq!(task.time_ms, first + round * 10_000, "at its scheduled times");
        // The target is due again before its worker has noticed the timeout.
        assert_eq!(board.next_task(first + (round + 1) * 10_000).unwrap_err(), None);
        now = first + (round + 1) * 10_000 + 5;
        let no_samples = board.memory.samples();
        board.finish(task, no_samples, Some("timeout".to_owned()), now);
    }
    assert_eq!(up_down_missed(&board), (0, 1, 0));
}

#[test]
fn a_target_is_not_scraped_twice_at_once_and_missed_scrapes_are_counted() {
    let mut board = board();
    board.assign(0, vec![assigned_target("a")], 0);
    let due = board.next_task(0).unwrap_err().unwrap();
    let task = board.next_task(due + 60).unwrap();
    assert_eq!(task.time_ms, due + 60, "too late for the scheduled time");
    assert_eq!(board.next_task(due + 10_000).unwrap_err(), None);
    assert_eq!(board.next_task(due + 20_000).unwrap_err(), None);
    let no_samples = board.memory.samples();
    board.finish(task, no_samples, Some("refused".to_owned()), due + 25_000);
    assert_eq!(board.next_task(due + 25_000).unwrap().time_ms, due + 25_000);
    assert_eq!(board.counts().missed, 1);
    assert_eq!(board.problems(), [("target http://a/metrics".to_owned(), "refused".to_owned())]);
    board.make_all_due(due + 30_000);
    assert_eq!(board.next_task(due + 30_000).unwrap_err(), None, "it is still being scraped");
}

#[test]
fn after_a_suspend_of_an_hour_one_scrape_follows_and_the_others_are_missed() {
    let mut board = board();
    board.assign(0, vec![assigned_target("a")], 0);
    let due = board.next_task(0).unwrap_err().unwrap();
    assert_eq!(board.next_task(due + 3_600_000).unwrap().time_ms, due + 3_600_000);
    assert_eq!(board.counts().missed, 360);
}

#[test]
fn a_clock_that_steps_back_does_not_stop_scraping() {
    let mut board = board();
    let hour = 3_600_000;
    board.assign(0, vec![assigned_target("a")], hour);
    let due = board.next_task(hour).unwrap_err().unwrap();
    let task = board.next_task(due).unwrap();
    let no_samples = board.memory.samples();
    board.finish(task, no_samples, None, due);
    let again = board.next_task(due - hour).unwrap_err().unwrap();
    assert!(again > due - hour && again <= due - hour + 10_000, "{due} {again}");
    assert!(board.next_task(again).is_ok());
    // A small step of the clock neither skips nor repeats a scrape.
    assert_eq!(board.next_task(again - 5).unwrap_err(), Some(again));
}

#[test]
fn remaining_targets_continue_and_removed_targets_end() {
    let mut board = board();
    board.assign(0, vec![assigned_target("a"), assigned_target("b")], 0);
    board.assign(1, vec![assigned_target("a")], 0);
    board.make_all_due(5);
    let mut queue: Vec<_> = std::iter::from_fn(|| board.next_task(5).ok()).collect();
    assert_eq!(queue.len(), 3, "one for each job");
    let last = queue.pop().unwrap();
    for task in queue {
        let samples = samples_of(&board, 2);
        board.finish(task, samples, None, 5);
    }
    assert!(!board.is_all_scraped() && board.has_waiting());
    let samples = samples_of(&board, 1);
    board.finish(last, samples, None, 5);
    assert!(board.is_all_scraped());
    assert_eq!(board.take_samples().len(), 3);
    board.assign(0, vec![assigned_target("b")], 6);
    assert_eq!(board.entries.len(), 2);
    board.assign(0, vec![assigned_target("b")], 7);
    board.make_all_due(8);
    assert_eq!(std::iter::from_fn(|| board.next_task(8).ok()).count(), 2);
}

#[test]
fn waiting_samples_are_bounded() {
    let mut board = board();
    let bytes = samples_of(&board, 1).bytes();
    let samples_max = MEMORY_MAX / WAITING_DIVISOR / bytes;
    for _ in 0..3 {
        let samples = samples_of(&board, samples_max / 2);
        board.queue(samples);
    }
    assert_eq!(board.counts().dropped_samples, samples_max as u64 / 2);
    assert_eq!(board.take_samples().len(), 2);
    assert!(!board.has_waiting());
    assert_eq!(board.counts().bytes, 0);
}
