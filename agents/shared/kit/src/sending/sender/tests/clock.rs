//! A host with a wrong clock, and a daemon whose responses contain the time.

use super::*;
use crate::clock::{unix_ms, wall_base_ms};

fn http_date(ms: i64) -> String {
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_millis(ms.unsigned_abs()))
}

/// Returns a response whose `Date` differs from the current time by `offset_ms`.
fn accepted_with_date(offset_ms: i64) -> (u16, String, String) {
    let date = format!("Date: {}\r\n", http_date(unix_ms() + offset_ms));
    (200, date, r#"{"accepted":2,"duplicates":0}"#.to_owned())
}

const TWO_HOURS_MS: i64 = 7_200_000;

/// Regression: an agent with a clock two hours ahead delivered nothing, and the log showed no
/// reason. With a clock behind, an agent sent wrong times.
#[test]
fn samples_of_a_wrong_clock_are_held() {
    for offset_ms in [-TWO_HOURS_MS, TWO_HOURS_MS] {
        let (_folder, spool) = spool(100);
        let (url, server) = serve(vec![accepted_with_date(offset_ms)]);
        let (mut sender, _) = sender(&spool, &url, None);
        // The daemon's time is known from its first response, usually to a ping.
        assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
        server.join().unwrap();
        let held = waiting_batches(&spool);
        assert!(held > 0);
        assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Idle);
        assert_eq!(waiting_batches(&spool), held);
        // Without the daemon's time, no sample is held.
        sender.client.clock().clear();
        sender.clock_guard = ClockGuard::default();
        assert!(!sender.waits_for_clock());
    }
}

#[test]
fn samples_of_a_wrong_clock_are_sent_with_the_right_times() {
    let (_folder, spool) = spool(0);
    let new_batch = || Batch {
        agent: "a".to_owned(),
        times: vec![unix_ms()],
        refs: vec![0],
        values: vec![1.0],
        ..Batch::default()
    };
    let ahead_ms = TWO_HOURS_MS + 500;
    // Two rounds with a clock ahead; then the clock was set, and one more round followed.
    spool.note_clock(wall_base_ms() + ahead_ms);
    for _ in 0..2 {
        let mut batch = Batch { times: vec![unix_ms() + ahead_ms], ..new_batch() };
        spool.append(&mut batch).unwrap();
    }
    spool.note_clock(wall_base_ms());
    spool.append(&mut new_batch()).unwrap();
    let (url, server) = serve(vec![accepted_with_date(0)]);
    let (mut sender, _) = sender(&spool, &url, None);
    let now = (wall_base_ms(), unix_ms());
    sender.client.clock().note_server_time(&http_date(unix_ms()), Duration::ZERO, now);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    let requests = server.join().unwrap();
    assert_eq!(requests[0].times.len(), 3);
    for time in &requests[0].times {
        assert!(time.abs_diff(unix_ms()) < 60_000, "{time}");
    }
}

#[test]
fn with_the_daemons_clock_no_sample_is_held_and_times_are_corrected() {
    let (_folder, spool) = spool(0);
    let mut batch = Batch {
        agent: "a".to_owned(),
        times: vec![unix_ms()],
        refs: vec![0],
        values: vec![1.0],
        ..Batch::default()
    };
    spool.append(&mut batch).unwrap();
    let (url, server) = serve(vec![accepted_with_date(-TWO_HOURS_MS)]);
    let (sender, _) = sender(&spool, &url, None);
    let mut sender = sender.with_clock(ClockOf::Daemon);
    let daemon_date = http_date(unix_ms() - TWO_HOURS_MS);
    let now = (wall_base_ms(), unix_ms());
    sender.client.clock().note_server_time(&daemon_date, Duration::ZERO, now);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    let time = server.join().unwrap()[0].times[0];
    assert!(time.abs_diff(unix_ms() - TWO_HOURS_MS) < 60_000, "{time}");
}
