//! A full disk: the daemon forecasts it, answers reads while it lasts, and keeps every acknowledged
//! sample.

use std::fs;

use serde_json::{Value, json};

use crate::{
    alerts::poll_until,
    daemon::{Daemon, yesterday},
    damage::total,
    prometheus_api::get,
    small_disk::SmallDisk,
};

/// Returns a batch with samples of yesterday that compress badly, and the exact sum of their
/// values.
fn incompressible_batch(seq: u64, rng: &mut fastrand::Rng) -> (Value, f64) {
    let time = yesterday().parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let mut sum = 0.0;
    let samples: Vec<_> = (0..2000)
        .map(|i| {
            let value = rng.u32(..1 << 30);
            sum += f64::from(value);
            let time = time + rng.i64(0..600_000);
            json!({"metric": format!("m{}", i % 20), "kind": "delta", "value": value, "time": time})
        })
        .collect();
    (json!({"agent": "tester", "epoch": 7, "seq": seq, "samples": samples}), sum)
}

fn answer(daemon: &Daemon, path: &str) -> Value {
    get(daemon, path).1
}

#[test]
#[ignore = "needs to mount a file system; .ci/run runs this where mounting is permitted"]
fn on_a_full_disk_reads_continue_and_writes_resume_when_space_returns() {
    let small = SmallDisk::tmpfs(16);
    let mut daemon = Daemon::start_in(small.data_dir(), "");
    let ballast = small.fill();
    let mut rng = fastrand::Rng::new();
    let (mut seq, mut accepted) = (1, 0.0);
    let (refused, sum_of_refused) = loop {
        let (batch, sum) = incompressible_batch(seq, &mut rng);
        let answer = daemon.post_json(&batch);
        if answer.status != 200 {
            assert_eq!(answer.status, 507, "{}", answer.body);
            assert!(answer.body.to_string().contains("No space left on device"), "{}", answer.body);
            break (batch, sum);
        }
        assert_eq!(answer.body["accepted"], 2000, "{}", answer.body);
        (seq, accepted) = (seq + 1, accepted + sum);
        assert!(seq < 3000, "the disk does not fill: {}", small.free_bytes());
    };
    assert_eq!(total(&daemon, "1d"), Some(accepted));
    let ready = ureq::get(format!("{}/readyz", daemon.url)).call();
    assert!(ready.is_err(), "not ready while the disk is full");
    fs::remove_file(&ballast).unwrap();
    let answer = daemon.post_json(&refused);
    assert_eq!(answer.status, 200, "writes resume: {}", answer.body);
    daemon.kill();
    daemon.restart();
    // The batch may have been stored when it was refused; it counts once in any case.
    assert_eq!(daemon.post_json(&refused).body["duplicates"], 2000);
    assert_eq!(total(&daemon, "1d"), Some(accepted + sum_of_refused));
    assert_eq!(daemon.stop(), Some(0));
    let verified = daemon.verify();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[test]
#[ignore = "needs to mount a file system; .ci/run runs this where mounting is permitted"]
fn a_disk_that_is_too_small_for_the_next_documents_is_reported_with_bytes_and_time() {
    const SERIES: u64 = 1000;
    let small = SmallDisk::tmpfs(16);
    let mut daemon = Daemon::start_in(small.data_dir(), "");
    let now = jiff::Timestamp::now().to_string();
    let sample = |n| json!({"metric": "m", "tags": {"n": n}, "time": now, "value": n});
    daemon.accept(&(0..SERIES).map(sample).collect());
    let reason = |daemon: &Daemon| answer(daemon, "/readyz")["reasons"]["disk"].clone();
    let forecast = poll_until(&daemon, "the series are forecast", || {
        let forecast = answer(&daemon, "/api/v1/storage")["forecast"].clone();
        (forecast[0]["bytes"].as_u64()? > SERIES * 100).then_some(forecast)
    });
    let bytes: Vec<_> = (0..4).map(|level| forecast[level]["bytes"].as_u64().unwrap()).collect();
    assert!(bytes.is_sorted() && bytes[3] < 2_000_000, "{bytes:?}");
    assert_eq!(reason(&daemon), Value::Null);
    let ballast = small.path().join("ballast");
    fs::write(&ballast, vec![1; small.free_bytes() - 4096]).unwrap();
    let reason = poll_until(&daemon, "the daemon is degraded", || {
        reason(&daemon).as_str().map(str::to_owned)
    });
    assert!(reason.starts_with("1d: documents of ") && reason.ends_with("and 3 more"), "{reason}");
    let missing = "granary_disk_missing_bytes{granularity=\"1m\"} ";
    let missing_bytes_metric = |daemon: &Daemon| {
        let metrics = daemon.metrics();
        let line = metrics.lines().find_map(|line| line.strip_prefix(missing));
        line.unwrap().parse::<u64>().unwrap()
    };
    assert!(
        (bytes[0] - 4096..=bytes[0]).contains(&missing_bytes_metric(&daemon)),
        "{} {bytes:?}",
        missing_bytes_metric(&daemon)
    );
    assert_eq!(answer(&daemon, "/readyz")["status"], "degraded");
    fs::remove_file(&ballast).unwrap();
    poll_until(&daemon, "the daemon is ready", || {
        (answer(&daemon, "/readyz")["status"] == "ready").then_some(())
    });
    assert_eq!(missing_bytes_metric(&daemon), 0);
    assert!(daemon.log().contains("the disk has space for documents again"));
    assert_eq!(daemon.stop(), Some(0));
}
