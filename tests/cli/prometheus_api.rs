//! Prometheus' HTTP API as its clients see it.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, client},
    remote_write::{V1, request, series, write},
};

/// Starts a daemon with samples every 15 s for ten minutes, from about 20 minutes ago on; returns
/// the daemon and the first time.
pub(crate) fn filled_daemon() -> (Daemon, i64) {
    let daemon = Daemon::start("");
    let start = crate::remote_write::minute();
    let times: Vec<_> = (0..40).map(|i| start + i * 15_000).collect();
    let all = |value: fn(i64) -> f64| -> Vec<(i64, f64)> {
        times.iter().enumerate().map(|(i, at)| (*at, value(i as i64))).collect()
    };
    let body = request(&[
        series(&[("__name__", "requests_total"), ("job", "web")], &all(|i| (i * 30) as f64)),
        series(&[("__name__", "requests_total"), ("job", "db")], &all(|i| (i * 60) as f64)),
        series(&[("__name__", "level"), ("service.name", "shop")], &all(|_| 2.5)),
    ]);
    assert_eq!(write(&daemon, V1, &body).status, 204);
    (daemon, start)
}

pub(crate) fn get(daemon: &Daemon, path: &str) -> (u16, Value) {
    let codes = [('{', "%7B"), ('}', "%7D"), ('"', "%22"), ('~', "%7E")];
    let path = codes.iter().fold(path.to_owned(), |path, (from, to)| path.replace(*from, to));
    let mut response = client().get(format!("{}{path}", daemon.url)).call().unwrap();
    let text = response.body_mut().read_to_string().unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (response.status().as_u16(), body)
}

pub(crate) fn post(daemon: &Daemon, path: &str, form: &[(&str, &str)]) -> (u16, Value) {
    let sent = client().post(format!("{}{path}", daemon.url)).send_form(form.iter().copied());
    let mut response = sent.unwrap();
    let text = response.body_mut().read_to_string().unwrap();
    (response.status().as_u16(), serde_json::from_str(&text).unwrap())
}

#[test]
fn queries_are_answered_under_both_prefixes_by_get_and_post() {
    let (daemon, start) = filled_daemon();
    let at = start / 1000 + 585;
    let form = [("query", "sum(level)"), ("time", &at.to_string())];
    let expected = json!({"status": "success", "data": {"resultType": "vector",
        "result": [{"metric": {}, "value": [at, "2.5"]}]}});
    for prefix in ["/api/v1", "/prometheus/api/v1"] {
        let path = format!("{prefix}/query?query=sum(level)&time={at}");
        assert_eq!(get(&daemon, &path), (200, expected.clone()));
        assert_eq!(post(&daemon, &format!("{prefix}/query"), &form), (200, expected.clone()));
        let (first, last) = (start / 1000 + 300, start / 1000 + 420);
        let path = format!("{prefix}/query_range?query=level&start={first}&end={last}&step=1m");
        let (status, body) = get(&daemon, &path);
        assert_eq!(status, 200, "{body}");
        let values = body["data"]["result"][0]["values"].clone();
        assert_eq!(values, json!([[first, "2.5"], [first + 60, "2.5"], [last, "2.5"]]));
        let labels = body["data"]["result"][0]["metric"].clone();
        assert_eq!(labels, json!({"__name__": "level", "service.name": "shop"}));
    }
    let scalar = get(&daemon, &format!("/api/v1/query?query=1%2B1&time={at}.5")).1;
    assert_eq!(scalar["data"], json!({"resultType": "scalar", "result": [at as f64 + 0.5, "2"]}));
}

#[test]
fn errors_have_the_words_and_codes_of_prometheus() {
    let (daemon, _) = filled_daemon();
    let check = |path: &str, status: u16, kind: &str, part: &str| {
        let (found, body) = get(&daemon, &format!("/api/v1/{path}"));
        assert_eq!((found, &body["status"]), (status, &json!("error")), "{path}: {body}");
        assert_eq!(body["errorType"], kind, "{path}");
        let error = body["error"].as_str().unwrap();
        assert!(error.contains(part), "{path}: {error}");
    };
    check("query?query=sum(", 400, "bad_data", r#"invalid parameter "query": 1:5: parse error"#);
    check("query?query=up&time=soon", 400, "bad_data", r#"invalid parameter "time": cannot parse"#);
    check("query?query=up&timeout=soon", 400, "bad_data", "to a valid duration");
    check("query?query=up&limit=-1", 400, "bad_data", "limit must be non-negative");
    check("query_range?query=up", 400, "bad_data", r#"invalid parameter "start""#);
    let range = "query_range?query=up&start=10";
    check(&format!("{range}&end=5&step=1"), 400, "bad_data", "must not be before start time");
    check(&format!("{range}&end=11&step=0"), 400, "bad_data", "zero or negative");
    check(&format!("{range}&end=99999&step=1"), 400, "bad_data", "11,000 points per timeseries");
    check("labels?start=5&end=1", 400, "bad_data", "must not be before start time");
    check("labels?match[]={", 400, "bad_data", r#"invalid parameter "match[]""#);
    let (status, body) = get(&daemon, "/prometheus/api/v1/series");
    assert_eq!((status, &body["error"]), (400, &json!("no match[] parameter provided")));
    assert!(daemon.metrics().contains("granary_queries_refused_total{reason=\"invalid\"} 11"));
}

#[test]
fn series_labels_values_and_metadata_are_listed() {
    let (daemon, start) = filled_daemon();
    let data = |path: &str| {
        let (status, body) = get(&daemon, path);
        assert_eq!((status, &body["status"]), (200, &json!("success")), "{path}: {body}");
        body
    };
    let db = json!({"__name__": "requests_total", "job": "db"});
    let web = json!({"__name__": "requests_total", "job": "web"});
    assert_eq!(data("/api/v1/series?match[]=requests_total")["data"], json!([db, web]));
    let both = "/prometheus/api/v1/series?match%5B%5D=requests_total&match%5B%5D={job=~\"d.\"}";
    assert_eq!(data(both)["data"], json!([db, web]));
    let limited = data("/api/v1/series?match[]=requests_total&limit=1");
    assert_eq!(limited["data"], json!([db]));
    assert_eq!(limited["warnings"], json!(["results truncated due to limit"]));
    let form = [("match[]", "requests_total"), ("match[]", "level")];
    let posted = post(&daemon, "/api/v1/series", &form);
    assert_eq!(posted.1["data"].as_array().unwrap().len(), 3);
    // Without match[], the answer is the store's own list.
    assert_eq!(get(&daemon, "/api/v1/series?metric=level").1["total"], 1);

    assert_eq!(data("/api/v1/labels")["data"], json!(["__name__", "job", "service.name"]));
    let of_level = data("/api/v1/labels?match[]=level")["data"].clone();
    assert_eq!(of_level, json!(["__name__", "service.name"]));
    assert_eq!(data("/api/v1/label/job/values")["data"], json!(["db", "web"]));
    assert_eq!(
        data("/api/v1/label/job/values?match[]={job!=\"db\",__name__!=\"\"}")["data"],
        json!(["web"])
    );
    assert_eq!(data("/api/v1/label/none/values")["data"], json!([]));
    assert_eq!(data("/api/v1/label/U__service_2e_name/values")["data"], json!(["shop"]));
    let names = data("/api/v1/label/__name__/values?limit=1");
    assert_eq!(names["data"], json!(["level"]));

    // Samples ended 10 minutes after the start.
    let paths = ["series?match[]=requests_total", "labels?", "label/job/values?"];
    for (path, before) in paths.iter().zip([2, 3, 2]) {
        for (minutes, count) in [(9, before), (11, 0)] {
            let since = start / 1000 + minutes * 60;
            let listed = data(&format!("/api/v1/{path}&start={since}"))["data"].clone();
            assert_eq!(listed.as_array().unwrap().len(), count, "{path} {listed}");
        }
    }

    let metadata = data("/api/v1/metadata")["data"].clone();
    let entry = |kind: &str| json!([{"type": kind, "help": "", "unit": ""}]);
    assert_eq!(metadata, json!({"level": entry("gauge"), "requests_total": entry("counter")}));
    let of_level = data("/api/v1/metadata?metric=level&limit=1")["data"].clone();
    assert_eq!(of_level, json!({"level": entry("gauge")}));

    let build = data("/api/v1/status/buildinfo")["data"]["revision"].clone();
    assert!(build.as_str().unwrap().starts_with("granary-"));
    assert_eq!(data("/api/v1/rules")["data"], json!({"groups": []}));
    assert_eq!(data("/api/v1/query_exemplars?query=up")["data"], json!([]));
    let formatted = data("/api/v1/format_query?query=sum(level)%2Fcount(level{a=~\"b\"})");
    assert_eq!(formatted["data"], "sum(level) / count(level{a=~\"b\"})");
    assert_eq!(get(&daemon, "/").0, 200);
}

#[test]
fn answers_are_compressed_on_request_except_for_ingest() {
    let (daemon, _) = filled_daemon();
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .accept_encoding("gzip")
        .build()
        .into();
    let unpacked = |path: &str| -> Value {
        let mut response = agent.get(format!("{}/api/v1/{path}", daemon.url)).call().unwrap();
        assert_eq!(response.headers()["content-encoding"], "gzip", "{path}");
        let packed = response.body_mut().read_to_vec().unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(unpacked("series?match[]=requests_total")["data"].as_array().unwrap().len(), 2);
    let chart = unpacked("chart?metric=requests_total");
    assert_eq!(chart, get(&daemon, "/api/v1/chart?metric=requests_total").1);
    assert_eq!(unpacked("hosts")["hosts"], json!([]));
    for streamed in ["export", "tail?metric=requests_total"] {
        let response = agent.get(format!("{}/api/v1/{streamed}", daemon.url)).call().unwrap();
        assert_eq!(
            (response.status().as_u16(), response.headers().get("content-encoding")),
            (200, None),
            "{streamed}"
        );
    }
    let batch = json!({"samples": [{"metric": "m", "value": 1}]}).to_string();
    let url = format!("{}/api/v1/ingest", daemon.url);
    let response = agent.post(&url).content_type("application/json").send(batch).unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers().get("content-encoding")),
        (200, None)
    );
}

#[test]
fn a_long_answer_is_complete_and_releases_its_query_slot() {
    let (daemon, _) = filled_daemon();
    let path = "/api/v1/query_range?query=vector(time())&start=0&end=10000&step=1";
    for _ in 0..40 {
        let (status, body) = get(&daemon, path);
        assert_eq!(status, 200, "{body}");
        let values = body["data"]["result"][0]["values"].as_array().unwrap();
        assert_eq!((values.len(), &values[10_000]), (10_001, &json!([10_000, "10000"])));
    }
}

/// Returns a query with this many parts; a debug build takes about a second for a part of 10,000
/// steps.
fn heavy_query(parts: usize, steps: u32) -> String {
    let part = "sum_over_time(vector(time())[1h:1s])";
    let query = vec![part; parts].join("%2B");
    format!("/api/v1/query_range?query={query}&start=0&end={steps}&step=1")
}

#[test]
fn many_heavy_queries_wait_for_their_turn_while_ingest_continues() {
    let (daemon, _) = filled_daemon();
    std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..60).map(|_| scope.spawn(|| get(&daemon, &heavy_query(3, 100)))).collect();
        let answer = daemon.post_json(&json!({"samples": [{"metric": "m", "value": 1}]}));
        assert_eq!(answer.status, 200, "{}", answer.body);
        for query in all {
            let (status, body) = query.join().unwrap();
            assert_eq!((status, &body["status"]), (200, &json!("success")), "{body}");
        }
    });
}

#[test]
fn a_query_times_out_with_a_remedy() {
    let daemon = Daemon::start("limits.query_timeout = '200ms'");
    for path in [heavy_query(60, 10_000), format!("{}&timeout=1ms", heavy_query(60, 10_000))] {
        let (status, body) = get(&daemon, &path);
        assert_eq!((status, &body["errorType"]), (503, &json!("timeout")));
        assert!(body["error"].as_str().unwrap().contains("limits.query_timeout"), "{body}");
    }
    assert!(daemon.metrics().contains("granary_queries_refused_total{reason=\"timeout\"} 2"));
}

#[test]
fn a_query_whose_client_disconnected_releases_its_permit() {
    let daemon = Daemon::start("limits.query_memory_max = 33_554_432");
    let address = daemon.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {} HTTP/1.1\r\nHost: x\r\n\r\n", heavy_query(60, 10_000)).unwrap();
    let has_begun = "granary_queries_total{endpoint=\"promql_range\"} 1";
    while !daemon.metrics().contains(has_begun) {
        std::thread::yield_now();
    }
    // The client resets the connection, as the kernel does when a process ends.
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    // The permit is released long before the two minutes of the query are over.
    let (status, body) = get(&daemon, "/api/v1/query?query=1&timeout=20s");
    assert_eq!(status, 200, "{body}");
}

#[test]
fn extreme_queries_are_answered_or_refused_and_the_daemon_continues() {
    let daemon = Daemon::start("");
    let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
    for text in ["", "(", "up{", "\u{0}", "up[5m", "1 +", &deep] {
        let (status, body) = post(&daemon, "/api/v1/query", &[("query", text)]);
        assert_eq!((status, &body["errorType"]), (400, &json!("bad_data")), "{text}: {body}");
    }
    for text in ["vector(1)[1e300:1]", "up @ 1e300", "x[99999999999y]", "x offset -1e18"] {
        let (status, body) = post(&daemon, "/api/v1/query", &[("query", text)]);
        assert!([200, 400, 422].contains(&status), "{text}: {status} {body}");
    }
    for time in ["1e300", "-1e14", "999999999999999", "0", "-1"] {
        let form = [("query", "rate(up[1y]) + time()"), ("time", time)];
        let (status, body) = post(&daemon, "/api/v1/query", &form);
        assert!([200, 400, 422].contains(&status), "{time}: {status} {body}");
        let range = [("query", "up offset 100y"), ("start", time), ("end", time), ("step", "1y")];
        let (status, body) = post(&daemon, "/api/v1/query_range", &range);
        assert!([200, 400, 422].contains(&status), "{time}: {status} {body}");
    }
    assert_eq!(get(&daemon, "/healthz").0, 200);
}

#[test]
fn queries_run_at_lower_priority_than_ingest() {
    let (daemon, _) = filled_daemon();
    assert_eq!(get(&daemon, "/api/v1/query?query=1").0, 200);
    let mut nice_values = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap() {
        let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
        // In proc(5), the state after the name in parentheses is field 3, and nice is field 19.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        nice_values.push(fields.split_whitespace().nth(19 - 3).unwrap().parse::<i32>().unwrap());
    }
    let normal = *nice_values.iter().min().unwrap();
    let lower = nice_values.iter().filter(|nice| **nice > normal).count();
    assert!(lower > 0 && lower < nice_values.len() / 2, "{nice_values:?}");
}

#[test]
fn cardinality_and_trees_of_queries_have_the_form_of_prometheus() {
    let (daemon, start) = filled_daemon();
    for prefix in ["/api/v1", "/prometheus/api/v1"] {
        let (status, tsdb) = get(&daemon, &format!("{prefix}/status/tsdb?limit=1"));
        let head = &tsdb["data"]["headStats"];
        assert_eq!((status, &tsdb["status"]), (200, &json!("success")), "{tsdb}");
        assert_eq!((&head["numSeries"], &head["numLabelPairs"]), (&json!(3), &json!(5)));
        assert_eq!(head["maxTime"], start + 585_000);
        let single = |name: &str, value: u64| json!([{"name": name, "value": value}]);
        let data = &tsdb["data"];
        assert_eq!(data["seriesCountByMetricName"], single("requests_total", 2));
        assert_eq!(data["labelValueCountByLabelName"], single("__name__", 2));
        // The bytes are those of two times `requests_total` and one `level`.
        assert_eq!(data["memoryInBytesByLabelName"], single("__name__", 33));
        assert_eq!(data["seriesCountByLabelValuePair"], single("__name__=requests_total", 2));

        let path = format!("{prefix}/parse_query");
        let form = [("query", "rate(requests_total[5m])")];
        let (status, by_form) = post(&daemon, &path, &form);
        assert_eq!((status, &by_form["data"]["func"]["name"]), (200, &json!("rate")), "{by_form}");
        let by_get = get(&daemon, &format!("{path}?query=rate(requests_total[5m])")).1;
        assert_eq!(by_get, by_form);
        assert_eq!(by_get["data"]["args"][0]["range"], 300_000);
    }
    let (status, refused) = get(&daemon, "/api/v1/parse_query?query=sum(");
    assert_eq!((status, &refused["errorType"]), (400, &json!("bad_data")));
    let (status, refused) = get(&daemon, "/api/v1/status/tsdb?limit=10001");
    assert_eq!((status, &refused["errorType"]), (400, &json!("bad_data")));
    let empty = Daemon::start("");
    let head = get(&empty, "/api/v1/status/tsdb").1["data"]["headStats"].clone();
    assert_eq!((&head["numSeries"], &head["minTime"]), (&json!(0), &json!(i64::MAX)));
}
