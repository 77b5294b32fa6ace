//! Remote write: accepted, duplicate, late and invalid samples.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::{
    daemon::{Daemon, client},
    protobuf::{bytes, double, int, message, varint},
};

pub(crate) const V1: &str = "application/x-protobuf";
const V2: &str = "application/x-protobuf;proto=io.prometheus.write.v2.Request";

/// Returns the start of the minute 20 minutes ago, in ms.
#[expect(clippy::disallowed_methods, reason = "samples must be near the daemon's clock")]
pub(crate) fn minute() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    (now / 60_000 - 20) * 60_000
}

fn sample(at: i64, value: f64) -> Vec<u8> {
    message(|out| {
        double(1, value, out);
        int(2, at, out);
    })
}

/// Returns a message `TimeSeries` with labels and samples.
pub(crate) fn series(labels: &[(&str, &str)], samples: &[(i64, f64)]) -> Vec<u8> {
    message(|out| {
        for (name, value) in labels {
            let label = message(|out| {
                bytes(1, name.as_bytes(), out);
                bytes(2, value.as_bytes(), out);
            });
            bytes(1, &label, out);
        }
        for (at, value) in samples {
            bytes(2, &sample(*at, *value), out);
        }
    })
}

pub(crate) fn request(all: &[Vec<u8>]) -> Vec<u8> {
    message(|out| all.iter().for_each(|series| bytes(1, series, out)))
}

pub(crate) struct WriteResponse {
    pub(crate) status: u16,
    pub(crate) samples: Option<u64>,
    pub(crate) body: String,
}

pub(crate) fn write(daemon: &Daemon, media_type: &str, plain: &[u8]) -> WriteResponse {
    let body = snap::raw::Encoder::new().compress_vec(plain).unwrap();
    let request = client().post(format!("{}/api/v1/write", daemon.url));
    let request = request.content_type(media_type).header("Content-Encoding", "snappy");
    let mut response = request.send(&body[..]).unwrap();
    let header = response.headers().get("X-Prometheus-Remote-Write-Samples-Written");
    let samples = header.map(|value| value.to_str().unwrap().parse().unwrap());
    let body = response.body_mut().read_to_string().unwrap();
    WriteResponse { status: response.status().as_u16(), samples, body }
}

pub(crate) fn points(daemon: &Daemon, metric: &str, display: &str) -> Vec<f64> {
    let args = ["chart", "--resolution", "1m", "--range", "1h", "--metric", metric];
    let answer = daemon.query(&[&args[..], &["--display", display]].concat());
    let points = answer["series"][0]["points"].as_array().unwrap();
    points.iter().filter_map(|point| point[1].as_f64()).collect()
}

fn kind(daemon: &Daemon, metric: &str) -> Value {
    daemon.query(&["series", "--metric", metric])["series"][0]["kind"].clone()
}

fn refused_samples(daemon: &Daemon, reason: &str) -> u64 {
    let line =
        format!("granary_samples_refused_total{{protocol=\"remote_write\",reason=\"{reason}\"}} ");
    let text = daemon.metrics();
    text.lines().find_map(|text_line| text_line.strip_prefix(&line)).unwrap().parse().unwrap()
}

#[test]
fn retries_change_nothing_and_late_samples_are_stored_at_their_time() {
    let mut daemon = Daemon::start("");
    let at = minute();
    let counter = [("__name__", "requests_total"), ("job", "web")];
    let step = |from: i64, to: i64| -> Vec<_> {
        (from..to).map(|i| (at + i * 15_000, 100.0 + i as f64 * 10.0)).collect()
    };
    let first_batch = request(&[series(&counter, &step(0, 8))]);
    let second_batch = request(&[series(&counter, &step(8, 12))]);
    let third_batch = request(&[series(&counter, &step(12, 16))]);
    // As with two queues, the second batch overtakes the first, which is then repeated.
    for body in [&second_batch, &first_batch, &first_batch, &second_batch, &third_batch] {
        let written = write(&daemon, V1, body);
        assert_eq!((written.status, &*written.body), (204, ""));
        daemon.kill();
        daemon.restart();
        assert_eq!(write(&daemon, V1, body).status, 204);
    }
    assert_eq!(points(&daemon, "requests_total", "count"), [4.0, 4.0, 4.0, 4.0]);
    // The readings are 100, 110 and so on to 250; the growth in each minute does not depend on
    // their order.
    assert_eq!(points(&daemon, "requests_total", "total"), [30.0, 40.0, 40.0, 40.0]);
    assert_eq!(points(&daemon, "requests_total", "last"), [130.0, 170.0, 210.0, 250.0]);
    assert_eq!(kind(&daemon, "requests_total"), "counter");
    let too_late = request(&[series(&counter, &[(at - 3_600_000, 1.0)])]);
    assert_eq!(write(&daemon, V1, &too_late).samples, Some(0));
    assert_eq!(refused_samples(&daemon, "out_of_order"), 1);
}

#[test]
fn a_bad_series_or_sample_does_not_affect_the_rest() {
    let daemon = Daemon::start("");
    let at = minute();
    let stale = f64::from_bits(0x7ff0_0000_0000_0002);
    let body = request(&[
        series(&[("__name__", "good")], &[(at, 1.5), (at + 1000, stale)]),
        series(&[("job", "no name")], &[(at, 1.0)]),
        series(&[("__name__", "twice"), ("a", "1"), ("a", "2")], &[(at, 1.0)]),
        series(
            &[("__name__", "numbers")],
            &[(at, f64::NAN), (at + 1, f64::INFINITY), (at + 2, 3.0)],
        ),
        series(&[("__name__", "numbers_total")], &[(at, f64::NAN), (at + 1, f64::INFINITY)]),
        series(&[("__name__", "future")], &[(at + 86_400_000, 1.0)]),
        series(&[("__name__", "empty_label"), ("host", "")], &[(at, 4.0)]),
    ]);
    let written = write(&daemon, V1, &body);
    assert_eq!((written.status, written.samples), (204, Some(6)), "{}", written.body);
    for (reason, count) in [("bad_series", 2), ("not_finite", 2), ("too_new", 1)] {
        assert_eq!(refused_samples(&daemon, reason), count, "{reason}");
    }
    assert_eq!(points(&daemon, "good", "count"), [1.0]);
    // Only gauges may have NaN, which `points` leaves out.
    assert_eq!(points(&daemon, "numbers", "count"), [3.0]);
    assert_eq!(points(&daemon, "numbers", "last"), [3.0]);
    assert_eq!(points(&daemon, "numbers", "max"), [0.0; 0]);
    assert_eq!(points(&daemon, "empty_label", "last"), [4.0]);
}

#[test]
fn metadata_sets_the_kind_and_a_native_histogram_is_one_series() {
    let daemon = Daemon::start("");
    let at = minute();
    let metadata = message(|out| {
        int(1, 1, out);
        bytes(2, b"odd_counter", out);
    });
    let histogram = |count: i64, at: i64| {
        message(|out| {
            int(1, count, out);
            double(3, 12.5, out);
            bytes(11, &[0x08, 0, 0x10, 3], out);
            bytes(12, &message(|out| (0..3).for_each(|_| varint(2, out))), out);
            int(15, at, out);
        })
    };
    let mut latency = series(&[("__name__", "latency")], &[]);
    // The buckets contain 1, 2 and 3 observations.
    bytes(4, &histogram(6, at), &mut latency);
    bytes(4, &histogram(7, at + 1000), &mut latency);
    let mut body = message(|out| bytes(3, &metadata, out));
    body.extend(request(&[series(&[("__name__", "odd_counter")], &[(at, 5.0)]), latency]));
    let written = write(&daemon, V1, &body);
    assert_eq!((written.status, written.samples), (204, Some(1)), "besides a histogram");
    assert_eq!(kind(&daemon, "odd_counter"), "counter");
    assert_eq!(kind(&daemon, "latency"), "histogram");
    assert_eq!(points(&daemon, "latency", "last"), [6.0]);
    assert_eq!(
        daemon.query(&["series", "--metric", "latency_count"])["series"],
        serde_json::json!([])
    );
    assert_eq!(refused_samples(&daemon, "bad_histogram"), 1);
}

#[test]
fn version_2_has_symbols_kinds_units_and_created_times() {
    let daemon = Daemon::start("");
    let at = minute();
    let symbols = ["", "__name__", "jobs_done", "job", "batch", "jobs", "depth"];
    let time_series = |name: u64, code: i64, created: i64, samples: &[(i64, f64)]| {
        message(|out| {
            let refs = message(|out| [1, name, 3, 4].into_iter().for_each(|r| varint(r, out)));
            bytes(1, &refs, out);
            for (at, value) in samples {
                bytes(2, &sample(*at, *value), out);
            }
            let metadata = message(|out| {
                int(1, code, out);
                int(4, 5, out);
            });
            bytes(5, &metadata, out);
            int(6, created, out);
        })
    };
    let body = message(|out| {
        for symbol in symbols {
            bytes(4, symbol.as_bytes(), out);
        }
        // The counter was reset at 30 s, although its value is larger afterwards.
        bytes(5, &time_series(2, 1, at - 5000, &[(at, 10.0), (at + 15_000, 14.0)]), out);
        bytes(5, &time_series(2, 1, at + 30_000, &[(at + 45_000, 20.0)]), out);
        bytes(5, &time_series(6, 2, 0, &[(at, 3.0)]), out);
        bytes(5, &message(|out| bytes(1, &[1, 99], out)), out);
    });
    let written = write(&daemon, V2, &body);
    assert_eq!((written.status, written.samples), (204, Some(4)), "{}", written.body);
    assert_eq!([kind(&daemon, "jobs_done"), kind(&daemon, "depth")], ["counter", "gauge"]);
    // The first reading of an unknown sender counts nothing. The next readings count 4, and 20
    // after the reset.
    assert_eq!(points(&daemon, "jobs_done", "total"), [24.0]);
    let series = daemon.query(&["series", "--metric", "jobs_done"]);
    assert_eq!(series["series"][0]["unit"], "jobs");
    assert_eq!(series["series"][0]["tags"]["job"], "batch");
}

#[test]
fn an_unreadable_request_is_refused_with_the_reason() {
    let daemon = Daemon::start("ingest.body_memory_max = 8_388_608");
    let broken = write(&daemon, V1, &[0x0a, 0xff, 0x01]);
    assert_eq!(broken.status, 400);
    assert!(broken.body.contains("longer than its message"), "{}", broken.body);
    let other = write(&daemon, "application/x-protobuf;proto=other.Message", &[]);
    assert_eq!(other.status, 415, "{}", other.body);
    let bomb = write(&daemon, V1, &vec![0; 5 << 20]);
    assert_eq!(bomb.status, 413, "{}", bomb.body);
    assert_eq!(write(&daemon, V1, &[]).status, 204);
}
