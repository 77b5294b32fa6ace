//! kill -9 of the real daemon at random moments under load.
//!
//! `GRANARY_KILL_ROUNDS` sets how many; `GRANARY_KILL_SEED` replays the moments.

use std::{thread, time::Duration};

use serde_json::json;

use crate::daemon::Daemon;

/// Rounds in an ordinary run.
const ROUNDS: u64 = 20;
const SAMPLES: u64 = 200;

/// Checkpoints and shells all the time, so that kills hit them too.
const BUSY: &str = "
storage.checkpoint_interval = '100ms'
[[granularity]]
slot = '1s'
document = '1m'
partition = '1h'
retention = '6h'
[[granularity]]
slot = '1m'
document = '1h'
partition = '6h'
retention = '48h'
[[granularity]]
slot = '1d'
document = '1mo'
partition = '1y'
retention = '5y'
";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Sends numbered batches until the daemon is gone; returns the number that was not
/// acknowledged.
fn send_until_killed(url: &str, from: u64) -> u64 {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut seq = from;
    loop {
        let samples: Vec<_> = (0..SAMPLES)
            .map(|i| json!({"metric": format!("m{}", i % 50), "kind": "delta", "value": 1}))
            .collect();
        let body = json!({"agent": "killer", "epoch": 1, "seq": seq, "samples": samples});
        let request = agent.post(format!("{url}/api/v1/ingest"));
        match request.content_type("application/json").send(body.to_string()) {
            Ok(response) if response.status() == 200 => seq += 1,
            Ok(response) => assert_eq!(response.status(), 429, "batch {seq}"),
            // Not acknowledged: the same number again after the restart.
            Err(_) => return seq,
        }
    }
}

#[test]
fn kills_at_random_moments_lose_nothing_and_count_nothing_twice() {
    let seed = number("GRANARY_KILL_SEED").unwrap_or_else(|| fastrand::u64(..));
    eprintln!("GRANARY_KILL_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut daemon = Daemon::start(BUSY);
    let mut next = 1;
    for _ in 0..number("GRANARY_KILL_ROUNDS").unwrap_or(ROUNDS) {
        let url = daemon.url.clone();
        let sender = thread::spawn(move || send_until_killed(&url, next));
        // Not a wait for anything: the moment of the kill is what is random.
        thread::sleep(Duration::from_millis(rng.u64(1..400)));
        daemon.kill();
        next = sender.join().unwrap();
        daemon.restart();
    }
    // The batch that was cut off comes again; whether it was kept or not, it counts once.
    let url = daemon.url.clone();
    let last = json!({"agent": "killer", "epoch": 1, "seq": next, "samples": (0..SAMPLES)
        .map(|i| json!({"metric": format!("m{}", i % 50), "kind": "delta", "value": 1}))
        .collect::<Vec<_>>()});
    assert_eq!(daemon.post_json(&last).status, 200, "{url}");
    let expected = (next * SAMPLES) as f64;
    for resolution in ["1s", "1m", "1d"] {
        let mut total = 0.0;
        for metric in 0..50 {
            let metric = format!("m{metric}");
            let answer = daemon.query(&[
                "chart",
                "--metric",
                &metric,
                "--display",
                "total",
                "--range",
                "1h",
                "--resolution",
                resolution,
            ]);
            let points = answer["series"][0]["points"].as_array().unwrap();
            total += points.iter().filter_map(|point| point[1].as_f64()).sum::<f64>();
        }
        assert_eq!(total, expected, "{resolution}, {next} batches");
    }
    assert!(daemon.metrics().contains("granary_documents_grown_total 0"));
}
