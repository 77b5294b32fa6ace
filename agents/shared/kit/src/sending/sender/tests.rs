//! The sender with a real HTTP server on a socket, whose answers follow a script.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc::sync_channel,
};

use granary_https::Https;
use granary_protocol::{Batch, Ping, SeriesDefinition};
use tempfile::TempDir;

use super::*;
use crate::{
    sampling::watched::WatchedHosts,
    sending::{key::Token, test_server::serve},
};

mod clock;
mod fleet;
mod forms;
mod histograms;
mod pings;

const TIMEOUT: Duration = Duration::from_secs(5);

fn accepted_answer(samples: u64) -> (u16, &'static str, String) {
    (200, "", format!(r#"{{"accepted":{samples},"duplicates":0}}"#))
}

fn refused_answer(status: u16, word: &str) -> (u16, &'static str, String) {
    (status, "", format!(r#"{{"error":"{word}","message":"because"}}"#))
}

/// Returns a spool with this many batches of two samples; the first defines both refs.
fn spool(batches: usize) -> (TempDir, Arc<Spool>) {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path(), "a", 1 << 30, 5).unwrap();
    for index in 0..batches {
        let series = if index == 0 { vec![definition(0), definition(1)] } else { vec![] };
        let mut batch = Batch {
            agent: "a".to_owned(),
            series,
            refs: vec![0, 1],
            times: vec![1000],
            values: vec![1.0, 2.0],
            ..Batch::default()
        };
        spool.append(&mut batch).unwrap();
    }
    (folder, Arc::new(spool))
}

fn definition(reference: u32) -> SeriesDefinition {
    SeriesDefinition { reference, metric: format!("m{reference}"), ..SeriesDefinition::default() }
}

/// Returns a client of one daemon. The token's file no longer exists when the token is used.
fn client(url: &str, token: Option<&str>) -> Client {
    let folder = tempfile::tempdir().unwrap();
    let token = token.map(|token| {
        let path = folder.path().join("token");
        std::fs::write(&path, token).unwrap();
        Token::read(&path).unwrap()
    });
    Client::new(&[url.to_owned()], token, Https::default()).unwrap()
}

fn sender(spool: &Arc<Spool>, url: &str, token: Option<&str>) -> (Sender, Arc<Totals>) {
    let totals = Arc::new(Totals::default());
    let client = client(url, token);
    let spool = Arc::clone(spool);
    let sender = Sender::new(spool, client, Arc::clone(&totals), None, Duration::ZERO);
    (sender, totals)
}

fn pinger() -> Pinger {
    Pinger::new(Ping::default(), Duration::ZERO, WatchedHosts::new(Duration::ZERO))
}

fn waiting_batches(spool: &Spool) -> u64 {
    spool.usage().batches
}

#[test]
fn a_backlog_is_sent_in_full_requests_and_removed_when_acknowledged() {
    let (_folder, spool) = spool(100);
    let (url, server) = serve(vec![accepted_answer(128), accepted_answer(72)]);
    let (mut sender, totals) = sender(&spool, &url, Some("s3cret"));
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(waiting_batches(&spool), 36);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Idle);
    let requests = server.join().unwrap();
    let numbers: Vec<u64> = requests[0].batches.iter().map(|batch| batch.0).collect();
    assert_eq!(numbers, (1..=64).collect::<Vec<_>>());
    assert_eq!(requests[0].batches[0].1, [0, 1], "the first batch contains the definitions");
    assert!(requests[0].head.starts_with("POST /api/v1/ingest HTTP/1.1\r\n"));
    let head = requests[0].head.to_ascii_lowercase();
    assert!(head.contains("content-type: application/bson\r\n"), "{head}");
    assert!(head.contains("authorization: bearer s3cret\r\n"), "{head}");
    assert_eq!(totals.samples_acknowledged.get(), 200);
    assert_eq!(totals.batches_acknowledged.get(), 100);
}

#[test]
fn refused_samples_and_duplicates_are_counted_and_not_sent_again() {
    let (_folder, spool) = spool(2);
    let body = r#"{"accepted":1,"duplicates":2,"refused":{"too_old":1},
        "examples":[{"reason":"too_old","series":"m0","message":"m"}]}"#;
    let (url, server) = serve(vec![(200, "", body.to_owned())]);
    let (mut sender, totals) = sender(&spool, &url, None);
    // These batches were sent before, but the response was lost.
    sender.posted_through = 2;
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(waiting_batches(&spool), 0);
    let counts = (&totals.samples_acknowledged, &totals.samples_duplicate, &totals.samples_refused);
    assert_eq!((counts.0.get(), counts.1.get(), counts.2.get()), (1, 2, 1));
    server.join().unwrap();
}

fn duplicates_answer(samples: u64) -> (u16, &'static str, String) {
    (200, "", format!(r#"{{"accepted":0,"duplicates":{samples}}}"#))
}

#[test]
fn a_spool_whose_first_new_numbers_are_known_begins_a_new_epoch() {
    let (_folder, spool) = spool(2);
    let epoch = spool.epoch();
    let (url, server) = serve(vec![duplicates_answer(4), accepted_answer(4)]);
    let (mut sender, _) = sender(&spool, &url, None);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert!(waiting_batches(&spool) == 2 && spool.epoch() > epoch);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(waiting_batches(&spool), 0);
    server.join().unwrap();
}

/// Returns the spool of an agent that has delivered a batch and was restarted, with two batches
/// after the restart.
fn restarted_spool() -> (TempDir, Arc<Spool>) {
    let (folder, before) = spool(1);
    before.acknowledge(&[1]).unwrap();
    drop(before);
    let spool = Spool::open(folder.path(), "a", 1 << 30, 6).unwrap();
    for _ in 0..2 {
        let mut batch = Batch {
            agent: "a".to_owned(),
            refs: vec![0, 1],
            times: vec![1000],
            values: vec![1.0, 2.0],
            ..Batch::default()
        };
        spool.append(&mut batch).unwrap();
    }
    (folder, Arc::new(spool))
}

#[test]
fn a_restored_spool_is_detected_also_after_an_unreachable_daemon() {
    let (_folder, spool) = restarted_spool();
    let epoch = spool.epoch();
    let closed_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (url, server) = serve(vec![duplicates_answer(2), accepted_answer(4)]);
    let (mut sender, totals) = sender(&spool, &format!("http://{closed_port}"), None);
    assert!(matches!(sender.attempt(TIMEOUT).unwrap(), Attempt::Retry { answered: false, .. }));
    sender.client = client(&url, None);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert!(waiting_batches(&spool) == 2 && spool.epoch() > epoch);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!((waiting_batches(&spool), totals.samples_acknowledged.get()), (0, 4));
    server.join().unwrap();
}

#[test]
fn a_reopened_spool_sends_a_new_number_alone_until_one_is_accepted() {
    let (_folder, spool) = restarted_spool();
    let (url, server) = serve(vec![accepted_answer(2), duplicates_answer(2)]);
    let (mut sender, _) = sender(&spool, &url, None);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(waiting_batches(&spool), 1);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(waiting_batches(&spool), 0);
    server.join().unwrap();
}

#[test]
fn duplicates_are_acknowledged_after_a_new_number_was_accepted() {
    let (_folder, spool) = spool(65);
    let epoch = spool.epoch();
    let (url, server) = serve(vec![accepted_answer(128), duplicates_answer(2)]);
    let (mut sender, _) = sender(&spool, &url, None);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!((waiting_batches(&spool), spool.epoch()), (0, epoch));
    server.join().unwrap();
}

#[test]
fn forgotten_refs_are_defined_again_in_the_first_batch() {
    let (_folder, spool) = spool(3);
    spool.acknowledge(&[1]).unwrap();
    let (url, server) = serve(vec![refused_answer(409, "unknown_refs"), accepted_answer(4)]);
    let (mut sender, _) = sender(&spool, &url, None);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    let requests = server.join().unwrap();
    assert_eq!(requests[0].batches, [(2, vec![], 2), (3, vec![], 2)]);
    assert_eq!(requests[1].batches, [(2, vec![0, 1], 2), (3, vec![], 2)]);
    assert_eq!(waiting_batches(&spool), 0);
}

#[test]
fn batches_are_kept_when_their_refs_stay_unknown_despite_definitions() {
    let (_folder, spool) = spool(1);
    let (url, server) =
        serve(vec![refused_answer(409, "unknown_refs"), refused_answer(409, "unknown_refs")]);
    let (mut sender, _) = sender(&spool, &url, None);
    assert!(matches!(sender.attempt(TIMEOUT).unwrap(), Attempt::Retry { .. }));
    assert_eq!(waiting_batches(&spool), 1);
    server.join().unwrap();
}

#[test]
fn the_retry_after_of_a_busy_daemon_is_respected() {
    for status in [429, 503, 507] {
        let (_folder, spool) = spool(2);
        let busy = |after| (status, after, r#"{"error":"busy","message":"later"}"#.to_owned());
        let (url, server) = serve(vec![
            busy("Retry-After: 7\r\n"),
            busy("Retry-After: 3600\r\n"),
            busy(""),
            accepted_answer(4),
        ]);
        let (mut sender, totals) = sender(&spool, &url, None);
        let mut delay = || match sender.attempt(TIMEOUT).unwrap() {
            Attempt::Retry { delay, answered: true } => delay,
            step @ (Attempt::Idle | Attempt::Progress | Attempt::Retry { .. }) => {
                panic!("{step:?}")
            }
        };
        assert_eq!(delay(), Duration::from_secs(7));
        assert_eq!(delay(), RETRY_MAX);
        let third = delay();
        assert!(third >= BACKOFF_MIN * 4 && third <= BACKOFF_MIN * 8, "{third:?}");
        assert_eq!(waiting_batches(&spool), 2, "no batch is lost");
        assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
        assert_eq!((waiting_batches(&spool), totals.requests_failed.get()), (0, 3));
        server.join().unwrap();
    }
}

#[test]
fn a_rejected_batch_is_set_aside_and_does_not_block_the_others() {
    let (_folder, spool) = spool(4);
    let (url, server) = serve(vec![
        refused_answer(400, "malformed"),
        accepted_answer(2),
        refused_answer(413, "too_large"),
        accepted_answer(2),
        accepted_answer(2),
    ]);
    let (mut sender, totals) = sender(&spool, &url, None);
    for _ in 0..5 {
        assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    }
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Idle);
    let sent: Vec<Vec<u64>> = server
        .join()
        .unwrap()
        .iter()
        .map(|request| request.batches.iter().map(|batch| batch.0).collect())
        .collect();
    assert_eq!(sent, [vec![1, 2, 3, 4], vec![1], vec![2], vec![3], vec![4]]);
    assert_eq!((totals.batches_rejected.get(), totals.samples_rejected.get()), (1, 2));
    assert_eq!(totals.batches_acknowledged.get(), 3);
}

#[test]
fn an_unreachable_daemon_is_retried_with_backoff_and_no_batch_is_lost() {
    let (_folder, spool) = spool(2);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (mut sender, totals) = sender(&spool, &url, None);
    let mut delays = Vec::new();
    for _ in 0..10 {
        match sender.attempt(TIMEOUT).unwrap() {
            Attempt::Retry { delay, answered: false } => delays.push(delay),
            step @ (Attempt::Idle | Attempt::Progress | Attempt::Retry { .. }) => {
                panic!("{step:?}")
            }
        }
    }
    assert!(delays[0] <= BACKOFF_MIN * 2 && delays[9] >= BACKOFF_MAX, "{delays:?}");
    assert!(delays.iter().all(|delay| *delay <= RETRY_MAX), "{delays:?}");
    assert_eq!((waiting_batches(&spool), totals.requests_failed.get()), (2, 10));
}

#[test]
fn stopping_delivers_waiting_batches_and_writes_the_report() {
    let (folder, spool) = spool(2);
    let (url, server) = serve(vec![accepted_answer(4)]);
    let (mut sender, _) = sender(&spool, &url, None);
    let path = folder.path().join("report.json");
    sender.report = Some(ReportFile::new(path.clone(), "a".to_owned()));
    let (announce, rounds) = sync_channel(1);
    drop(announce);
    sender.run(&rounds, pinger()).unwrap();
    server.join().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((&report["samples_acknowledged"], &report["spool_batches"]), (&4.into(), &0.into()));
}

#[test]
fn stopping_with_an_unreachable_daemon_ends_at_once_and_keeps_the_batches() {
    let (_folder, spool) = spool(2);
    let (sender, _) = sender(&spool, "http://127.0.0.1:1", None);
    let (announce, rounds) = sync_channel(1);
    drop(announce);
    let watch = Stopwatch::start();
    sender.run(&rounds, pinger()).unwrap();
    assert!(watch.elapsed() < FLUSH_DEADLINE);
    assert_eq!(waiting_batches(&spool), 2);
}

#[test]
fn two_agents_do_not_retry_in_step() {
    // Regression: without the feature `std`, backon's jitter was the same in each process.
    let delays = || backoff().take(8).collect::<Vec<_>>();
    assert_ne!(delays(), delays());
}

fn renumber_answer(seqs: &[u64], reason: &str) -> (u16, &'static str, String) {
    let samples = 2 * seqs.len();
    let body = format!(
        r#"{{"accepted":0,"duplicates":0,"refused":{{"{reason}":{samples}}},"renumber":{seqs:?}}}"#
    );
    (200, "", body)
}

#[test]
fn batches_with_stale_numbers_are_sent_again_in_a_new_epoch() {
    // Regression: after another client had advanced the window of numbers, every batch was lost.
    let (folder, spool) = spool(3);
    let (url, server) = serve(vec![
        renumber_answer(&[2, 3], "stale_number"),
        renumber_answer(&[2, 3], "stale_number"),
        refused_answer(409, "unknown_refs"),
        accepted_answer(4),
    ]);
    let (mut sender, totals) = sender(&spool, &url, None);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    let second = spool.epoch();
    assert!(second > 1_500_000_000_000, "the time: {second}");
    assert!(matches!(sender.attempt(TIMEOUT).unwrap(), Attempt::Retry { answered: true, .. }));
    let third = spool.epoch();
    assert!(third > second);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(waiting_batches(&spool), 0);
    let sent: Vec<Vec<_>> = server
        .join()
        .unwrap()
        .iter()
        .map(|request| request.epochs.iter().copied().zip(request.batches.iter()).collect())
        .map(|batches: Vec<_>| batches.into_iter().map(|(epoch, batch)| (epoch, batch.0)).collect())
        .collect();
    let again = |epoch| vec![(epoch, 2), (epoch, 3)];
    assert_eq!(sent, [vec![(5, 1), (5, 2), (5, 3)], again(second), again(third), again(third)]);
    assert_eq!((totals.samples_refused.get(), totals.samples_rejected.get()), (0, 0));
    drop((sender, spool));
    let reopened = Spool::open(folder.path(), "a", 1 << 30, 9).unwrap();
    assert_eq!(reopened.epoch(), third);
}

#[test]
fn an_epoch_in_the_future_ends_when_the_clock_is_right_again() {
    let (_folder, spool) = spool(1);
    spool.begin_epoch(i64::MAX / 2).unwrap();
    let (url, server) = serve(vec![renumber_answer(&[1], "far_number"), accepted_answer(2)]);
    let (mut sender, _) = sender(&spool, &url, None);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert!((1_500_000_000_000..i64::MAX / 4).contains(&spool.epoch()));
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(waiting_batches(&spool), 0);
    server.join().unwrap();
}

#[test]
fn a_batch_that_may_have_been_accepted_is_set_aside_rather_than_counted_twice() {
    let (_folder, spool) = spool(2);
    let lost = (200, "", "cut short".to_owned());
    let (url, server) = serve(vec![lost, renumber_answer(&[1, 2], "stale_number")]);
    let (mut sender, totals) = sender(&spool, &url, None);
    assert!(matches!(sender.attempt(TIMEOUT).unwrap(), Attempt::Retry { .. }));
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    server.join().unwrap();
    assert_eq!((waiting_batches(&spool), totals.batches_rejected.get()), (0, 2));
}

/// Starts a server that answers pings with these statuses in order, then ends.
fn ping_server(statuses: Vec<u16>) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        for status in statuses {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            assert!(stream.read(&mut head).unwrap() > 0);
            let body = r#"{"accepted":1,"refused":[]}"#;
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n");
            stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).unwrap();
        }
    });
    (url, thread)
}

#[test]
fn a_ping_is_sent_at_the_start_and_again_only_when_it_is_due() {
    let (url, server) = ping_server(vec![200]);
    let daemon = client(&url, None);
    let mut pinger = pinger();
    assert!(pinger.time_left().is_zero());
    pinger.ping_if_due(&daemon);
    pinger.ping_if_due(&daemon);
    assert!(pinger.time_left() > Duration::from_secs(20), "{:?}", pinger.time_left());
    server.join().unwrap();
    // A refused ping is an error with its cause.
    let (url, server) = ping_server(vec![404]);
    let daemon = client(&url, None);
    assert_eq!(daemon.ping(vec![Ping::default()], TIMEOUT), Err("status 404".to_owned()));
    server.join().unwrap();
    assert!(daemon.ping(vec![Ping::default()], TIMEOUT).is_err());
}

/// Regression: a backlog was delivered oldest first, so live samples arrived minutes after the
/// daemon's return.
#[test]
fn with_a_backlog_requests_alternate_between_the_newest_and_the_oldest_batches() {
    let (_folder, spool) = spool(100);
    let (url, server) = serve(vec![accepted_answer(128), accepted_answer(16), accepted_answer(56)]);
    let (mut sender, _) = sender(&spool, &url, None);
    sender.next_request = NextRequest::Newest;
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Idle);
    let numbers = |request: &crate::sending::test_server::Request| -> Vec<u64> {
        request.batches.iter().map(|batch| batch.0).collect()
    };
    let requests = server.join().unwrap();
    assert_eq!(numbers(&requests[0]), (93..=100).collect::<Vec<_>>());
    assert_eq!(numbers(&requests[1]), (1..=64).collect::<Vec<_>>());
    assert_eq!(numbers(&requests[2]), (65..=92).collect::<Vec<_>>());
    assert_eq!(waiting_batches(&spool), 0);
}

/// Regression: a spool from a backup reused numbers that the daemon knew; its samples were
/// acknowledged as duplicates, and lost.
#[test]
fn a_known_number_of_a_batch_that_was_never_sent_begins_a_new_epoch() {
    let (_folder, spool) = spool(2);
    let known = (200, "", r#"{"accepted":0,"duplicates":4}"#.to_owned());
    let (url, server) = serve(vec![known, accepted_answer(4)]);
    let (mut sender, totals) = sender(&spool, &url, None);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(waiting_batches(&spool), 2, "no batch counts as delivered");
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    let requests = server.join().unwrap();
    assert_eq!(requests[0].epochs, [5, 5]);
    assert!(requests[1].epochs.iter().all(|epoch| *epoch > 5), "{:?}", requests[1].epochs);
    assert_eq!((waiting_batches(&spool), totals.samples_acknowledged.get()), (0, 4));
}

#[test]
fn batches_of_an_earlier_run_may_be_duplicates() {
    let (folder, first) = spool(2);
    drop(first);
    let again = Arc::new(Spool::open(folder.path(), "a", 1 << 30, 9).unwrap());
    let (url, server) = serve(vec![(200, "", r#"{"accepted":0,"duplicates":4}"#.to_owned())]);
    let (mut sender, totals) = sender(&again, &url, None);
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!((waiting_batches(&again), totals.samples_duplicate.get()), (0, 4));
    server.join().unwrap();
}

#[test]
fn the_next_daemon_receives_the_batches_of_an_unreachable_daemon() {
    let (_folder, spool) = spool(1);
    let closed_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (url, server) = serve(vec![accepted_answer(2)]);
    let (mut sender, totals) = sender(&spool, &url, None);
    sender.client =
        Client::new(&[format!("http://{closed_port}"), url], None, Https::default()).unwrap();
    assert!(matches!(sender.attempt(TIMEOUT).unwrap(), Attempt::Retry { .. }));
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    assert_eq!(totals.samples_acknowledged.get(), 2);
    server.join().unwrap();
}
