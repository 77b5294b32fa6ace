//! InfluxDB line protocol, OTLP, Graphite and collectd as their senders use them.

use std::{
    io::Write,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, client},
    ports::free_port,
};

#[expect(clippy::disallowed_methods, reason = "samples must be near the daemon's clock")]
pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

fn post(daemon: &Daemon, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    let mut request = client().post(format!("{}{path}", daemon.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = request.send(body).unwrap();
    (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
}

fn last_values(daemon: &Daemon, metric: &str, tags: &str) -> Vec<f64> {
    let args = ["chart", "--resolution", "1m", "--range", "1h", "--display", "last"];
    let answer = daemon.query(&[&args[..], &["--metric", metric, "--tags", tags]].concat());
    let points = answer["series"][0]["points"].as_array().cloned().unwrap_or_default();
    points.iter().filter_map(|point| point[1].as_f64()).collect()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn influx_lines_become_a_metric_for_each_field() {
    let daemon = Daemon::start("");
    let seconds = now_ms() / 1000 - 600;
    let lines = format!(
        "cpu,host=a\\ b,region=eu usage=12.5,cores=8i,busy=true {seconds}\n\
         # a remark\n\
         cpu,host=c usage=1 {}\n",
        seconds + 1
    );
    let path = "/write?db=any&precision=s";
    assert_eq!(
        post(&daemon, path, &[("Content-Encoding", "gzip")], &gzip(lines.as_bytes())).0,
        204
    );
    assert_eq!(last_values(&daemon, "cpu_usage", "host=a b"), [12.5]);
    assert_eq!(last_values(&daemon, "cpu_cores", "region=eu"), [8.0]);
    assert_eq!(last_values(&daemon, "cpu_busy", ""), [1.0]);
    // The path of version 2 has nanoseconds by default, and a retry counts once.
    let line = format!("mem free=5u {seconds}000000000");
    for _ in 0..2 {
        let answer = post(&daemon, "/api/v2/write?org=o&bucket=b", &[], line.as_bytes());
        assert_eq!(answer.0, 204, "{}", answer.1);
    }
    assert_eq!(last_values(&daemon, "mem_free", ""), [5.0]);
    assert!(daemon.metrics().contains("granary_samples_duplicate_total{protocol=\"influx\"} 1"));
}

#[test]
fn a_bad_influx_line_is_named_and_does_not_affect_others() {
    let daemon = Daemon::start("");
    let lines = "good value=1\nno fields here\nmixed text=\"hello\",number=2\nalso good=3\n";
    let (status, body) = post(&daemon, "/write", &[], lines.as_bytes());
    assert_eq!(status, 400);
    let message =
        serde_json::from_str::<Value>(&body).unwrap()["error"].as_str().unwrap().to_owned();
    for part in ["partial write", "line 2", "field text of mixed", "dropped=2"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert_eq!(last_values(&daemon, "good_value", ""), [1.0]);
    assert_eq!(last_values(&daemon, "mixed_number", ""), [2.0]);
    assert_eq!(last_values(&daemon, "also_good", ""), [3.0]);
    assert_eq!(post(&daemon, "/write?precision=d", &[], b"a b=1").0, 400);
    assert_eq!(post(&daemon, "/ping", &[], b"").0, 204);
    assert_eq!(post(&daemon, "/query?q=CREATE+DATABASE+x", &[], b"").0, 200);
}

fn otlp_request(at_ms: i64) -> Value {
    let times = |value: Value| {
        let mut point = value;
        point["timeUnixNano"] = json!(format!("{}000000", at_ms));
        point["startTimeUnixNano"] = json!(format!("{}000000", at_ms - 60_000));
        point
    };
    let attributes =
        |name: &str, value: &str| json!([{"key": name, "value": {"stringValue": value}}]);
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes("service.name", "shop")},
        "scopeMetrics": [{"metrics": [
            {"name": "queue.length", "unit": "{items}", "gauge": {"dataPoints": [
                times(json!({"asInt": "7", "attributes": attributes("queue", "mail")}))]}},
            {"name": "orders", "unit": "1", "sum": {"aggregationTemporality": 2,
                "isMonotonic": true, "dataPoints": [times(json!({"asDouble": 42.0}))]}},
            {"name": "clicks", "sum": {"aggregationTemporality": 1, "isMonotonic": true,
                "dataPoints": [times(json!({"asInt": "5"}))]}},
            {"name": "latency", "unit": "ms", "histogram": {"aggregationTemporality": 2,
                "dataPoints": [times(json!({"count": "6", "sum": 90.0, "min": 1.0, "max": 50.0,
                    "bucketCounts": ["1", "2", "3"], "explicitBounds": [10.0, 20.0]}))]}},
        ]}]
    }]})
}

#[test]
fn otlp_gauges_sums_and_histograms_become_series() {
    let daemon = Daemon::start("");
    let at = now_ms() - 300_000;
    let json_type = [("Content-Type", "application/json")];
    let (status, body) =
        post(&daemon, "/v1/metrics", &json_type, otlp_request(at).to_string().as_bytes());
    assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (200, json!({})), "{body}");
    assert_eq!(last_values(&daemon, "queue.length", "queue=mail,service.name=shop"), [7.0]);
    assert_eq!(last_values(&daemon, "orders", ""), [42.0]);
    for (metric, value) in
        [("latency_count", 6.0), ("latency_sum", 90.0), ("latency_min", 1.0), ("latency_max", 50.0)]
    {
        assert_eq!(last_values(&daemon, metric, ""), [value], "{metric}");
    }
    for (bound, count) in [("10", 1.0), ("20", 3.0), ("+Inf", 6.0)] {
        assert_eq!(
            last_values(&daemon, "latency_bucket", &format!("le={bound}")),
            [count],
            "{bound}"
        );
    }
    let kind =
        |metric: &str| daemon.query(&["series", "--metric", metric])["series"][0]["kind"].clone();
    assert_eq!(
        [kind("orders"), kind("clicks"), kind("queue.length")],
        ["counter", "delta", "gauge"]
    );
    // One bad point does not affect the others, and the answer counts it.
    let mut mixed_request = otlp_request(at + 60_000);
    let points = &mut mixed_request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["gauge"];
    points["dataPoints"][0]["timeUnixNano"] = json!("1000000000");
    let (status, body) =
        post(&daemon, "/v1/metrics", &json_type, mixed_request.to_string().as_bytes());
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &answer["partialSuccess"]["rejectedDataPoints"]),
        (200, &json!("1")),
        "{body}"
    );
    assert_eq!(post(&daemon, "/v1/metrics", &json_type, b"{\"resourceMetrics\": 3}").0, 400);
    assert_eq!(post(&daemon, "/v1/metrics", &[("Content-Type", "text/plain")], b"").0, 415);
}

/// Sends metrics; returns the number of rejected points in the answer.
fn rejected_points(daemon: &Daemon, metrics: &Value) -> u64 {
    let body = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}).to_string();
    let json_type = [("Content-Type", "application/json")];
    let (status, answer) = post(daemon, "/v1/metrics", &json_type, body.as_bytes());
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let points = &answer["partialSuccess"]["rejectedDataPoints"];
    points.as_str().map_or(0, |text| text.parse().unwrap())
}

#[test]
fn rejections_of_otlp_are_counted_in_points() {
    let daemon = Daemon::start("");
    let at = now_ms() - 300_000;
    let nanos = |ms: i64| json!(format!("{ms}000000"));
    let exponential = |ms: i64, count: u32| {
        json!({"timeUnixNano": nanos(ms), "count": count.to_string(), "sum": 9.0, "scale": 1,
            "positive": {"offset": 0, "bucketCounts": ["1", "2", "3"]},
            "negative": {"offset": 0, "bucketCounts": ["4", "5"]}})
    };
    let exponential_metric = |points: Vec<Value>| {
        json!([{"name": "size",
            "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": points}}])
    };
    assert_eq!(rejected_points(&daemon, &exponential_metric(vec![exponential(at, 15)])), 0);
    // The buckets contain 15 observations.
    let three_points = (1..4).map(|minute| exponential(at + minute * 1000, 14)).collect();
    assert_eq!(rejected_points(&daemon, &exponential_metric(three_points)), 3);
    assert_eq!(last_values(&daemon, "size", ""), [15.0]);
    let empty = json!({"timeUnixNano": nanos(at + 9000), "count": "0", "sum": 0.0, "scale": 1});
    assert_eq!(rejected_points(&daemon, &exponential_metric(vec![empty])), 0);
    // Each of these points becomes five samples, of which one or all may be refused.
    let histogram = |ms: i64, tag: &str| {
        json!({"timeUnixNano": nanos(ms), "count": "3", "sum": 9.0, "bucketCounts": ["1", "1", "1"],
            "explicitBounds": [1.0, 2.0],
            "attributes": [{"key": "path", "value": {"stringValue": tag}}]})
    };
    let points = json!([{"name": "latency", "histogram": {"aggregationTemporality": 2,
        "dataPoints": [histogram(1000, "/old"), histogram(at, "/fine"), histogram(1000, "/old2"),
            histogram(at, &"/longer-than-a-value".repeat(60))]}}]);
    assert_eq!(rejected_points(&daemon, &points), 3);
    assert_eq!(last_values(&daemon, "latency_count", "path=/fine"), [3.0]);
    // The writer, not the decoder, refuses samples out of order.
    let late = json!([{"name": "latency", "histogram": {"aggregationTemporality": 2,
        "dataPoints": [histogram(at - 3_600_000, "/fine"), histogram(at + 1000, "/fine")]}}]);
    assert_eq!(rejected_points(&daemon, &late), 1);
}

/// Starts a daemon; returns it and the addresses of its two Graphite listeners.
fn start_with_graphite() -> (Daemon, [String; 2]) {
    let addresses = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let settings = format!(
        "graphite.listen = ['{}', 'pickle://{}']\n\
         graphite.templates = ['servers.* _.host.metric*']",
        addresses[0], addresses[1]
    );
    (Daemon::start(&settings), addresses)
}

fn wait_for(daemon: &Daemon, metric: &str, tags: &str, expected: &[f64]) {
    for _ in 0..200 {
        if last_values(daemon, metric, tags) == expected {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(last_values(daemon, metric, tags), expected, "{metric} {}", daemon.log());
}

#[test]
fn graphite_senders_deliver_over_tcp_udp_and_pickle() {
    let (daemon, [lines, pickles]) = start_with_graphite();
    let seconds = now_ms() / 1000 - 300;
    let mut stream = std::net::TcpStream::connect(&lines).unwrap();
    // A line may arrive in pieces, and a bad line does not affect other lines.
    write!(stream, "servers.web1.cpu.idle 9").unwrap();
    stream.flush().unwrap();
    write!(stream, "7.5 {seconds}\nnonsense\nplain.path;dc=eu 3 {seconds}\n").unwrap();
    wait_for(&daemon, "cpu.idle", "host=web1", &[97.5]);
    wait_for(&daemon, "plain.path", "dc=eu", &[3.0]);
    write!(stream, "without.newline 4 {seconds}").unwrap();
    drop(stream);
    wait_for(&daemon, "without.newline", "", &[4.0]);
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(format!("by.datagram 5 {seconds}\n").as_bytes(), lines).unwrap();
    wait_for(&daemon, "by.datagram", "", &[5.0]);
    // pickle.dumps([("by.pickle", (seconds, 6.0))], protocol=2)
    let mut pickle = b"\x80\x02](X\x09\0\0\0by.pickleJ".to_vec();
    pickle.extend((seconds as i32).to_le_bytes());
    pickle.push(b'G');
    pickle.extend(6.0_f64.to_be_bytes());
    pickle.extend(b"\x86\x86e.");
    let mut stream = std::net::TcpStream::connect(&pickles).unwrap();
    stream.write_all(&(pickle.len() as u32).to_be_bytes()).unwrap();
    stream.write_all(&pickle).unwrap();
    wait_for(&daemon, "by.pickle", "", &[6.0]);
    let refused = "granary_samples_refused_total{protocol=\"graphite\",reason=\"bad_sample\"} 1";
    assert!(daemon.metrics().contains(refused));
}

#[test]
fn a_bad_value_list_of_collectd_is_counted_and_does_not_affect_others() {
    let daemon = Daemon::start("");
    // A JSON parser that rounds twice would change this number.
    let value = 2.638_344_616_030_823e-256;
    let list = json!({"values": [value], "dstypes": ["gauge"], "dsnames": ["value"],
        "time": now_ms() as f64 / 1000.0 - 300.0, "host": "a", "plugin": "room",
        "type": "temperature"});
    let body = json!([{"values": 1}, list, {"labels": {"severity": "WARNING"}}]).to_string();
    let json_type = [("Content-Type", "application/json")];
    let (status, answer) = post(&daemon, "/api/v1/collectd", &json_type, body.as_bytes());
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&answer["accepted"], &answer["refused"]["bad_sample"]), (&json!(1), &json!(2)));
    assert_eq!(last_values(&daemon, "room_temperature", "host=a"), [value]);
    let refused = "granary_samples_refused_total{protocol=\"collectd\",reason=\"bad_sample\"} 2";
    assert!(daemon.metrics().contains(refused));
    assert_eq!(post(&daemon, "/api/v1/collectd", &json_type, b"[{").0, 400);
    let (status, answer) = post(&daemon, "/api/v1/collectd", &[], b"PUTVAL a/b/c 1:2");
    assert_eq!(status, 415);
    assert!(answer.contains("Format"), "{answer}");
}
