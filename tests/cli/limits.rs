//! Each limit has an error and a counter, and exceeding it does not affect other requests.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, client},
    prometheus_api::get,
    remote_write::{V1, minute, request, series, write},
};

const LOW_LIMITS: &str = "
server.client_timeout = '1s'
ingest.body_memory_max = 8_388_608
limits.series_max = 100
limits.query_points_max = 160
";

fn samples(metrics: std::ops::Range<u32>) -> Vec<Value> {
    metrics.map(|i| json!({"metric": format!("m{i}"), "value": 1})).collect()
}

fn send(daemon: &Daemon, agent: &str, metrics: std::ops::Range<u32>) -> (u16, Value) {
    let batch = json!({"agent": agent, "epoch": 1, "seq": 1, "samples": samples(metrics)});
    let answer = daemon.post_json(&batch);
    (answer.status, answer.body)
}

fn counter_value(daemon: &Daemon, line: &str) -> u64 {
    let text = daemon.metrics();
    let found = text.lines().find_map(|text_line| text_line.strip_prefix(line));
    found.unwrap_or_else(|| panic!("{line} in {text}")).trim().parse().unwrap()
}

#[test]
fn series_and_senders_are_limited_and_existing_ones_continue() {
    let daemon = Daemon::start(LOW_LIMITS);
    // A sender may define 20 of the 100 series, and a project may have a sender for each series.
    let answer = send(&daemon, "a", 0..21).1;
    assert_eq!(answer["refused"], json!({"sender_series_limit": 1}));
    assert_eq!(answer["examples"][0]["series"], "m20");
    for first in [100, 200, 300, 400] {
        let agent = format!("without-numbers-{first}");
        let batch = json!({"agent": agent, "samples": samples(first..first + 20)});
        assert_eq!(daemon.post_json(&batch).body["accepted"], 20, "{first}");
    }
    assert_eq!(send(&daemon, "b", 19..21).1["refused"], json!({"series_limit": 1}));
    for number in 2..100 {
        assert_eq!(send(&daemon, &format!("agent-{number}"), 0..1).1["accepted"], 1, "{number}");
    }
    let (status, refused) = send(&daemon, "c", 0..2);
    assert_eq!((status, &refused["error"]), (503, &json!("sender_limit")));
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("limits.series_max"), "{message}");
    // Known series and senders are not affected.
    let next = json!({"agent": "a", "epoch": 1, "seq": 2, "samples": samples(0..5)});
    assert_eq!(daemon.post_json(&next).body["accepted"], 5);
    for (reason, count) in [("sender_series_limit", 1), ("series_limit", 1), ("sender_limit", 0)] {
        let line =
            format!("granary_samples_refused_total{{protocol=\"json\",reason=\"{reason}\"}}");
        assert_eq!(counter_value(&daemon, &line), count, "{reason}");
    }
}

#[test]
fn a_metric_has_a_limit_of_series_that_other_metrics_do_not_share() {
    let limits = "limits.metric_series = { 'debug_*' = 2, debug_more = 3 }";
    let daemon = Daemon::start(limits);
    let send = |metric: &str, hosts: std::ops::Range<u32>| {
        let sample = |host: u32| {
            json!({ "metric": metric, "tags": { "host": host.to_string() },
            "value": 1 })
        };
        daemon.post_json(&json!({ "samples": hosts.map(sample).collect::<Vec<_>>() })).body
    };
    let answer = send("debug_a", 0..3);
    assert_eq!(
        (&answer["accepted"], &answer["refused"]),
        (&json!(2), &json!({"metric_series_limit": 1}))
    );
    assert!(answer["examples"][0]["series"].as_str().unwrap().contains("debug_a"), "{answer}");
    assert_eq!(send("debug_b", 0..2)["accepted"], 2);
    assert_eq!(send("debug_more", 0..4)["accepted"], 3);
    assert_eq!(send("other", 0..9)["accepted"], 9);
    // Known series continue, even in a later batch with new ones.
    assert_eq!(send("debug_a", 1..4)["accepted"], 1);
    let line = "granary_samples_refused_total{protocol=\"json\",reason=\"metric_series_limit\"}";
    assert_eq!(counter_value(&daemon, line), 4);
}

#[test]
fn a_new_metric_that_differs_in_one_letter_from_a_known_one_is_reported_and_stored() {
    let daemon = Daemon::start("storage.checkpoint_interval = '1s'");
    let send = |metric: &str, seq: u64| {
        let batch = json!({ "agent": "web", "epoch": 1, "seq": seq, "samples":
            [{ "metric": metric, "value": 1 }] });
        assert_eq!(daemon.post_json(&batch).body["accepted"], 1);
    };
    send("http_requests", 1);
    // A new name is compared with the names of earlier checkpoints, which are a second apart.
    let found = ('a'..='z').zip(2..).find_map(|(letter, seq)| {
        send(&format!("http_requests{letter}"), seq);
        std::thread::sleep(Duration::from_millis(500));
        let (_, answer) = get(&daemon, "/readyz");
        answer["warnings"]["near_names"].as_str().map(str::to_owned)
    });
    let found = found.unwrap_or_else(|| panic!("{}", daemon.log()));
    assert!(found.contains("(like http_requests, from web)"), "{found}");
    assert!(daemon.log().contains("a new metric may be a typo of a known one"));
}

#[test]
fn a_query_that_takes_too_long_is_refused_and_releases_its_permit() {
    let daemon =
        Daemon::start("limits.query_memory_max = 33_554_432\nlimits.query_timeout = '1ms'\n");
    let sample = |i: u32| json!({"metric": "m", "tags": {"host": i.to_string()}, "value": 1});
    let samples: Vec<_> = (0..100).map(sample).collect();
    assert_eq!(daemon.post_json(&json!({"samples": samples})).body["accepted"], 100);
    for _ in 0..3 {
        // A chart of a hundred lines with thousands of slots takes more than a millisecond.
        let (status, body) = get(&daemon, "/api/v1/chart?metric=m&resolution=1m&range=40h");
        assert_eq!((status, &body["error"]), (503, &json!("timeout")), "{body}");
        assert!(body["message"].as_str().unwrap().contains("limits.query_timeout"), "{body}");
    }
    let line = "granary_queries_refused_total{reason=\"timeout\"}";
    assert_eq!(counter_value(&daemon, line), 3);
}

#[test]
fn names_tags_and_values_are_limited() {
    let daemon = Daemon::start("");
    let tags: serde_json::Map<_, _> = (0..33).map(|n| (format!("t{n}"), json!("v"))).collect();
    for (sample, part) in [
        (json!({"metric": "n".repeat(257), "value": 1}), "of 257 bytes is longer than 256"),
        (json!({"metric": "m", "tags": {"t": "v".repeat(1025)}, "value": 1}), "longer than 1024"),
        (json!({"metric": "m", "tags": tags, "value": 1}), "33 tags exceed the limit of 32"),
    ] {
        let answer = daemon.post_json(&json!({"samples": [sample, {"metric": "ok", "value": 1}]}));
        assert_eq!(answer.body["accepted"], 1, "{}", answer.body);
        let message = answer.body["examples"][0]["message"].as_str().unwrap();
        assert!(message.contains(part), "{part} in {message}");
    }
    let name = "n".repeat(300);
    let answer = daemon.post_json(&json!({"agent": name, "seq": 1, "samples": []}));
    assert_eq!((answer.status, &answer.body["error"]), (400, &json!("malformed")));
}

#[test]
fn bodies_are_limited_in_size_time_and_memory() {
    /// Their bodies take more than all memory.
    const CLIENTS: usize = 48;
    const SENT_BYTES: usize = 500_000;
    let daemon = Daemon::start(LOW_LIMITS);
    assert_eq!(daemon.post("application/bson", &vec![0; (1 << 20) + 1]).status, 413);
    let bomb = zstd::encode_all(&vec![0_u8; (4 << 20) + 1][..], 3).unwrap();
    let request = client().post(format!("{}/api/v1/ingest", daemon.url));
    let response = request.content_type("application/bson").header("Content-Encoding", "zstd");
    let mut response = response.send(&bomb[..]).unwrap();
    let message = response.body_mut().read_to_string().unwrap();
    assert_eq!(response.status(), 413);
    assert!(message.contains("ingest.body_memory_max"), "{message}");
    // These clients stop in the middle of a body: their memory counts, and they time out.
    let head = "POST /api/v1/ingest HTTP/1.1\r\nHost: x\r\nContent-Type: application/bson\r\n\
                Content-Length: 500001\r\n\r\n";
    let mut silent: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut stream = TcpStream::connect(daemon.url.trim_start_matches("http://")).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&vec![b' '; SENT_BYTES]).unwrap();
            stream
        })
        .collect();
    let answers: Vec<String> = silent
        .iter_mut()
        .map(|stream| {
            let mut bytes = [0; 12];
            stream.read_exact(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        })
        .collect();
    let count = |status: &str| answers.iter().filter(|answer| answer.ends_with(status)).count();
    assert!(count("408") > 0 && count("429") > 0, "{answers:?}");
    assert_eq!(count("408") + count("429"), CLIENTS, "{answers:?}");
    let metrics = daemon.metrics();
    for part in ["{outcome=\"too_slow\"} ", "{outcome=\"busy\"} ", "{outcome=\"too_large\"} 2"] {
        assert!(metrics.contains(&format!("granary_ingest_requests_total{part}")), "{part}");
    }
    drop(silent);
    assert_eq!(send(&daemon, "a", 0..2).1["accepted"], 2);
}

#[test]
fn queries_are_limited_in_series_and_points() {
    let daemon = Daemon::start(LOW_LIMITS);
    for agent in ["a", "b"] {
        let tags = json!({ "host": agent });
        let samples: Vec<_> = (0..4)
            .map(|i| json!({"metric": "cpu", "tags": {"c": format!("{agent}{i}")}, "value": 1}))
            .collect();
        assert_eq!(
            daemon.post_json(&json!({"agent": agent, "seq": 1, "samples": samples})).status,
            200,
            "{tags}"
        );
    }
    let refused = |args: &[&str]| {
        let output = daemon.run_query(args);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let message_about_series = refused(&["chart", "--metric", "cpu"]);
    assert!(
        message_about_series
            .contains("8 series match, more than 4: add tags or merge or rank them"),
        "{message_about_series}"
    );
    let args = ["chart", "--metric", "cpu", "--tags", "c=a1", "--resolution", "1m", "--range"];
    let message_about_points = refused(&[&args[..], &["10h"]].concat());
    assert!(message_about_points.contains("limits.query_points_max"), "{message_about_points}");
    let message_about_range = refused(&["chart", "--metric", "cpu", "--range", "soon"]);
    assert!(message_about_range.contains("range"), "{message_about_range}");
    assert_eq!(counter_value(&daemon, "granary_queries_refused_total{reason=\"too_much\"}"), 2);
    assert_eq!(counter_value(&daemon, "granary_queries_refused_total{reason=\"invalid\"}"), 1);
    assert!(daemon.run_query(&[&args[..], &["1h"]].concat()).status.success());
    assert!(counter_value(&daemon, "granary_connections_total") > 5);
}

#[test]
fn two_hundred_heavy_queries_are_answered_and_memory_is_released() {
    let daemon = Daemon::start("limits.query_memory_max = 1_048_576");
    let at = minute() - 1_500 * 60_000;
    let samples: Vec<_> = (0..1_500).map(|i| (at + i * 60_000, i as f64)).collect();
    let names: Vec<_> = (0..16).map(|i| i.to_string()).collect();
    let all: Vec<_> =
        names.iter().map(|i| series(&[("__name__", "m"), ("i", i)], &samples)).collect();
    assert_eq!(write(&daemon, V1, &request(&all)).samples, Some(24_000));
    let heavy_query = "/api/v1/query?query=count_over_time(m[1d])";
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..200).map(|_| scope.spawn(|| get(&daemon, heavy_query))).collect();
        for (status, body) in running.into_iter().map(|query| query.join().unwrap()) {
            assert_eq!((status, &body["errorType"]), (503, &json!("unavailable")), "{body}");
            assert!(body["error"].as_str().unwrap().contains("limits.query_memory_max"), "{body}");
        }
    });
    assert_eq!(counter_value(&daemon, "granary_queries_refused_total{reason=\"busy\"}"), 200);
    for i in &names {
        let light_query =
            format!("/api/v1/query?query=count_over_time(m{{i=\"{i}\"}}[1h]+offset+2h)");
        assert_eq!(get(&daemon, &light_query).1["data"]["result"][0]["value"][1], "60");
    }
}

/// Sends a form to an endpoint of PromQL; returns the status and the answer.
fn post_form(daemon: &Daemon, path: &str, form: &[(&str, &str)]) -> (u16, Value) {
    let sent = client()
        .post(format!("{}/api/v1/{path}", daemon.url))
        .send_form(form.iter().copied())
        .unwrap_or_else(|cause| panic!("{cause}: {}", daemon.log()));
    let status = sent.status().as_u16();
    (status, serde_json::from_str(&sent.into_body().read_to_string().unwrap()).unwrap())
}

#[test]
fn selectors_of_one_request_count_once_and_are_limited() {
    let daemon = Daemon::start("");
    send(&daemon, "a", 0..3);
    let repeated = vec![("match[]", "{__name__=~\"m.*\"}"); 20_000];
    let (status, body) = post_form(&daemon, "series", &repeated);
    assert_eq!((status, body["data"].as_array().map(Vec::len)), (200, Some(3)), "{body}");
    let names: Vec<_> = (0..300).map(|i| format!("m{i}")).collect();
    let message_about_series: Vec<_> =
        names.iter().map(|name| ("match[]", name.as_str())).collect();
    let (status, body) = post_form(&daemon, "labels", &message_about_series);
    assert_eq!(status, 422, "{body}");
    assert!(body["error"].as_str().unwrap().contains("300 different match[]"), "{body}");
}

#[test]
fn a_query_ends_when_its_client_disconnects() {
    let daemon = Daemon::start("limits.query_memory_max = 33_554_432\n");
    let address = daemon.url.trim_start_matches("http://");
    // This query would take several minutes in little memory.
    let query = "quantile_over_time(0.5,vector(1)[100000s:1s])";
    let path = format!("/api/v1/query_range?query={query}&start=1000000&end=1010000&step=1");
    let mut client = TcpStream::connect(address).unwrap();
    write!(client, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    client.set_nonblocking(true).unwrap();
    // The running query has the only permit, so another query waits until its timeout.
    loop {
        let (status, body) = post_form(&daemon, "query", &[("query", "1"), ("timeout", "100ms")]);
        if status == 503 {
            assert_eq!(body["errorType"], "timeout", "{body}");
            break;
        }
        let answered = client.peek(&mut [0]).map_err(|cause| cause.kind());
        assert_eq!(answered, Err(std::io::ErrorKind::WouldBlock), "the query is still running");
    }
    drop(client);
    let (status, body) = post_form(&daemon, "query", &[("query", "1"), ("timeout", "50s")]);
    assert_eq!(status, 200, "{body}");
}
