//! Kills and stops of the real daemon at random moments under load: while it accepts batches,
//! writes checkpoints, creates shells, drops partitions and starts.
//!
//! `GRANARY_KILL_ROUNDS` sets the number of rounds; `GRANARY_KILL_SEED` replays the moments.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use crate::daemon::{Daemon, client, granularities};

/// The number of rounds, unless the environment sets it.
const ROUNDS: u64 = 20;
const SAMPLES: u64 = 200;
const METRICS: u64 = 50;

/// Settings for frequent checkpoints, so that kills interrupt them too.
const CHECKPOINTS: &str = "storage.checkpoint_interval = '100ms'\n";
const SPANS: [[&str; 4]; 4] = [
    ["1s", "5s", "5s", "5s"],
    ["10s", "10m", "1h", "6h"],
    ["1m", "1h", "6h", "48h"],
    ["1d", "1mo", "1y", "5y"],
];

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn batch(seq: u64) -> Value {
    let samples: Vec<_> = (0..SAMPLES)
        .map(|i| json!({"metric": format!("m{}", i % METRICS), "kind": "delta", "value": 1}))
        .collect();
    json!({"agent": "killer", "epoch": 1, "seq": seq, "samples": samples})
}

/// Sends numbered batches until the daemon stops; returns the first number without an
/// acknowledgement.
fn send_until_stopped(url: &str, from: u64) -> u64 {
    let (client, mut seq) = (client(), from);
    loop {
        let request = client.post(format!("{url}/api/v1/ingest"));
        match request.content_type("application/json").send(batch(seq).to_string()) {
            Ok(response) if response.status() == 200 => seq += 1,
            // The daemon is stopping: the batch is sent again after its restart.
            Ok(response) if response.status() == 503 => return seq,
            Ok(response) => assert_eq!(response.status(), 429, "batch {seq}"),
            // Without an acknowledgement, the same number is sent again after the restart.
            Err(_) => return seq,
        }
    }
}

fn sum_of_metric(daemon: &Daemon, metric: u64, resolution: &str) -> f64 {
    let metric = format!("m{metric}");
    let args = ["chart", "--display", "total", "--range", "1h", "--metric", &metric];
    let answer = daemon.query(&[&args[..], &["--resolution", resolution]].concat());
    let points = answer["series"][0]["points"].as_array().unwrap();
    points.iter().filter_map(|point| point[1].as_f64()).sum()
}

#[test]
fn kills_at_random_moments_lose_nothing_and_count_nothing_twice() {
    let seed = env_number("GRANARY_KILL_SEED").unwrap_or_else(|| fastrand::u64(..));
    eprintln!("GRANARY_KILL_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut daemon = Daemon::start(&(CHECKPOINTS.to_owned() + &granularities(&SPANS)));
    let mut next_seq = 1;
    let (mut kills, mut stops, mut kills_at_start) = (0, 0, 0);
    for round in 0..env_number("GRANARY_KILL_ROUNDS").unwrap_or(ROUNDS) {
        let url = daemon.url.clone();
        let sender = thread::spawn(move || send_until_stopped(&url, next_seq));
        // The sleep makes the moment of the stop or kill random.
        thread::sleep(Duration::from_millis(rng.u64(1..600)));
        if round % 5 == 4 {
            assert_eq!(daemon.stop(), Some(0), "{}", daemon.log());
            stops += 1;
        } else {
            daemon.kill();
            kills += 1;
        }
        next_seq = sender.join().unwrap();
        if rng.bool() {
            daemon.spawn();
            thread::sleep(Duration::from_micros(rng.u64(0..20_000)));
            daemon.kill();
            kills_at_start += 1;
        }
        daemon.restart();
    }
    eprintln!("{kills} kills, {stops} stops, {kills_at_start} kills at start, {next_seq} batches");
    // The interrupted batch is sent again, and counts once whether or not it was stored.
    assert_eq!(daemon.post_json(&batch(next_seq)).status, 200);
    let expected = (next_seq * SAMPLES) as f64;
    for resolution in ["10s", "1m", "1d"] {
        let found: f64 =
            (0..METRICS).map(|metric| sum_of_metric(&daemon, metric, resolution)).sum();
        assert_eq!(found, expected, "{resolution}, {next_seq} batches");
    }
    daemon.kill();
    let verified = daemon.verify();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}
