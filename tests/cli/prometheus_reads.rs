//! Remote read and `/federate`: answers, errors and limits.

use crate::{
    daemon::{Daemon, client},
    prometheus_api::filled_daemon,
    protobuf::{bytes, double, int, message},
    remote_write::{V1, minute, request, series, write},
};

/// Returns the status, the `Content-Type` and the body of an answer.
fn get(daemon: &Daemon, path: &str, accept: &str) -> (u16, String, String) {
    let request = client().get(format!("{}{path}", daemon.url)).header("Accept", accept);
    let mut response = request.call().unwrap();
    let kind = response.headers().get("Content-Type").unwrap().to_str().unwrap().to_owned();
    let text = response.body_mut().read_to_string().unwrap();
    (response.status().as_u16(), kind, text)
}

fn remote_read(daemon: &Daemon, encoding: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let request = client().post(format!("{}/api/v1/read", daemon.url));
    let request = request.header("Content-Encoding", encoding);
    let mut response = request.send(body).unwrap();
    (response.status().as_u16(), response.body_mut().read_to_vec().unwrap())
}

#[test]
fn federate_lists_the_newest_samples_with_their_times() {
    let daemon = Daemon::start("");
    // This time is in the last minute; samples before the lookback are not listed.
    let at = minute() + 20 * 60_000 - 30_000;
    let stale = f64::from_bits(0x7ff0_0000_0000_0002);
    let body = request(&[
        series(&[("__name__", "a_total"), ("job", "x")], &[(at - 15_000, 1.0), (at, 2.5)]),
        series(&[("__name__", "b.c"), ("instance", "i")], &[(at, 7.0)]),
        series(&[("__name__", "ended")], &[(at - 15_000, 1.0), (at, stale)]),
        series(&[("__name__", "old")], &[(at - 600_000, 1.0)]),
    ]);
    assert_eq!(write(&daemon, V1, &body).status, 204);
    let all = "/federate?match[]=a_total&match[]=%7B__name__=~%22b.*%7Cended%7Cold%22%7D";
    let (status, kind, text) = get(&daemon, all, "text/plain");
    assert_eq!((status, &*kind), (200, "text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(
        text,
        format!(
            "# TYPE a_total counter\na_total{{job=\"x\",instance=\"\"}} 2.5 {at}\n\
             # TYPE b_c gauge\nb_c{{instance=\"i\"}} 7 {at}\n"
        )
    );
    let accept = "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6";
    let (_, kind, text) = get(&daemon, &format!("/prometheus{all}"), accept);
    assert!(kind.contains("escaping=allow-utf-8"), "{kind}");
    assert!(text.ends_with(&format!("{{\"b.c\",instance=\"i\"}} 7 {at}\n")), "{text}");
}

#[test]
fn errors_are_text_that_names_the_remedy() {
    let (daemon, start) = filled_daemon();
    let (status, kind, text) = get(&daemon, "/federate", "");
    assert_eq!((status, &*kind), (400, "text/plain; charset=utf-8"));
    assert!(text.contains("add match[]=SELECTOR"), "{text}");
    let (status, _, text) = get(&daemon, "/federate?match[]=up%7B", "");
    assert!(status == 400 && text.contains("invalid parameter \"match[]\""), "{text}");
    let check = |encoding: &str, plain: &[u8], expected: u16, part: &str| {
        let body = snap::raw::Encoder::new().compress_vec(plain).unwrap();
        let body = if encoding == "snappy" { &body[..] } else { plain };
        let (status, answer) = remote_read(&daemon, encoding, body);
        let text = String::from_utf8_lossy(&answer);
        assert!(status == expected && text.contains(part), "{status} {text}");
    };
    check("identity", b"\xff\xff", 400, "Content-Encoding: snappy");
    let query = |kind: i64, value: &str| {
        let matcher = message(|out| {
            int(1, kind, out);
            bytes(2, b"__name__", out);
            bytes(3, value.as_bytes(), out);
        });
        let query = message(|out| {
            int(1, start, out);
            int(2, start + 600_000, out);
            bytes(3, &matcher, out);
        });
        message(|out| bytes(1, &query, out))
    };
    check("snappy", &query(2, "("), 400, "error parsing regexp");
    check("snappy", &query(9, "x"), 400, "matcher type 9 is not known");
    check("snappy", &query(0, "x").repeat(65), 400, "exceed the limit of 64");
    let other = [&query(0, "level")[..], &message(|out| int(2, 7, out))].concat();
    check("snappy", &other, 400, "use SAMPLES (0)");
    let plain = snap::raw::Encoder::new().compress_vec(&query(0, "level")).unwrap();
    let (status, answer) = remote_read(&daemon, "snappy", &plain);
    let answer = snap::raw::Decoder::new().decompress_vec(&answer).unwrap();
    assert!(status == 200 && answer.windows(12).any(|part| part == b"service.name"));
}

#[test]
fn a_native_histogram_is_read_as_a_sample_and_never_as_a_chunk() {
    let daemon = Daemon::start("");
    let at = minute() + 20 * 60_000 - 30_000;
    let histogram = message(|out| {
        int(1, 3, out);
        double(3, 4.5, out);
        // Schema 2.
        int(4, 4, out);
        // Buckets 5 and 6, with 1 and 2 observations.
        bytes(11, &[0x08, 10, 0x10, 2], out);
        bytes(12, &[2, 2], out);
        int(15, at, out);
    });
    let mut latency = series(&[("__name__", "latency")], &[]);
    bytes(4, &histogram, &mut latency);
    assert_eq!(write(&daemon, V1, &request(&[latency])).status, 204);
    let matcher = message(|out| {
        bytes(2, b"__name__", out);
        bytes(3, b"latency", out);
    });
    let query = message(|out| {
        int(1, at - 1000, out);
        int(2, at + 1000, out);
        bytes(3, &matcher, out);
    });
    let ask = |accepted: &[u8]| {
        let body = message(|out| {
            bytes(1, &query, out);
            bytes(2, accepted, out);
        });
        remote_read(&daemon, "snappy", &snap::raw::Encoder::new().compress_vec(&body).unwrap())
    };
    let sent_back = message(|out| {
        double(2, 3.0, out);
        double(3, 4.5, out);
        int(4, 4, out);
        double(7, 0.0, out);
        bytes(11, &[0x08, 10, 0x10, 2], out);
        bytes(13, &[1.0_f64, 2.0].map(f64::to_le_bytes).concat(), out);
        int(15, at, out);
    });
    for accepted in [&[0][..], &[1, 0]] {
        let (status, answer) = ask(accepted);
        let answer = snap::raw::Decoder::new().decompress_vec(&answer).unwrap();
        assert_eq!(status, 200);
        assert!(answer.ends_with(&sent_back), "{answer:?} does not contain {sent_back:?}");
    }
    let (status, answer) = ask(&[1]);
    let answer = String::from_utf8_lossy(&answer);
    assert!(status == 400 && answer.contains("also accept SAMPLES (0)"), "{status} {answer}");
    let (status, _, text) = get(&daemon, "/federate?match[]=latency", "");
    let left_out = "# 1 series of native histograms left out: accept Protocol Buffers \
                    (scrape_native_histograms in Prometheus), or use remote read\n";
    assert_eq!((status, &*text), (200, left_out));
}

#[test]
fn answers_stay_within_the_limits_of_queries() {
    let daemon = Daemon::start("limits.query_points_max = 40\n");
    let at = minute();
    let two_series = request(&[
        series(&[("__name__", "m"), ("part", "a")], &[(at, 1.0)]),
        series(&[("__name__", "m"), ("part", "b")], &[(at, 1.0)]),
    ]);
    assert_eq!(write(&daemon, V1, &two_series).status, 204);
    let (status, _, text) = get(&daemon, "/federate?match[]=m", "");
    assert!(status == 422 && text.contains("limits.query_points_max"), "{status} {text}");
    let refused = daemon.metrics();
    assert!(refused.contains("granary_queries_refused_total{reason=\"too_much\"} 1"), "{refused}");
}
