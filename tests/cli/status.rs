//! The daemon's status over HTTP: accepted and refused samples, senders and limits.

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, client},
    prometheus_api::get,
};

fn get_status(daemon: &Daemon) -> Value {
    let (code, body) = get(daemon, "/api/v1/status");
    assert_eq!(code, 200, "{body}");
    body
}

fn used_and_max(status: &Value, setting: &str) -> (u64, u64) {
    let all = status["limits"].as_array().unwrap();
    let limit = all
        .iter()
        .find(|limit| [&limit["setting"], &limit["name"]].contains(&&json!(setting)))
        .unwrap();
    (limit["used"].as_u64().unwrap(), limit["max"].as_u64().unwrap())
}

#[test]
fn status_shows_accepted_samples_by_sender_and_refused_ones_with_examples() {
    let daemon = Daemon::start("limits.series_max = 10\n");
    let empty = get_status(&daemon);
    assert_eq!(
        (&empty["commits"]["count"], &empty["commits"]["p50_ms"]),
        (&json!(0), &Value::Null)
    );
    assert_eq!((&empty["refused"], &empty["health"]["state"]), (&json!([]), &json!("ready")));

    let sample =
        |metric: &str, value: f64| json!({"metric": metric, "kind": "gauge", "value": value});
    let batch = json!({"agent": "web1", "samples": [sample("a", 1.0), sample("b", 2.0)]});
    assert_eq!(daemon.post_json(&batch).status, 200);
    // These samples of 1970 are too old; the status shows their tag `host` as text.
    for n in 0..4 {
        let line = format!("cpu,host=<img\\ src\\=x> load={n} {n}000000000\n");
        let url = format!("{}/write?precision=ns", daemon.url);
        client().post(url).content_type("text/plain").send(line.as_bytes()).unwrap();
    }
    let report = get_status(&daemon);
    let protocol = |name: &str| {
        let all = report["protocols"].as_array().unwrap();
        all.iter().find(|ingest| ingest["protocol"] == name).unwrap().clone()
    };
    assert_eq!(
        (&protocol("json")["accepted"], &protocol("influx")["refused"]),
        (&json!(2), &json!(4))
    );
    let refused = report["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 1, "{report}");
    assert_eq!((&refused[0]["protocol"], &refused[0]["count"]), (&json!("influx"), &json!(4)));
    let examples = refused[0]["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 3, "{report}");
    let text = examples[0]["text"].as_str().unwrap();
    assert!(text.starts_with("cpu_load{host=\"<img src=x>\"}: "), "{text}");
    assert!(examples[0]["at"].as_i64() >= report["started"].as_i64(), "{report}");

    let senders = &report["senders"]["top"];
    assert_eq!((&senders[0]["agent"], &senders[0]["series"]), (&json!("web1"), &json!(2)));
    assert_eq!(senders[0]["samples"], json!(2));
    assert_eq!(senders[1]["agent"], json!("influx 127.0.0.1"));
    assert_eq!(used_and_max(&report, "series"), (3, 10));
    assert_eq!(used_and_max(&report, "series of the largest sender"), (2, 2));
    assert_eq!(used_and_max(&report, "live tails"), (0, 16));
    assert!(used_and_max(&report, "server.connections_max").0 >= 1, "{report}");

    let commits = &report["commits"];
    let [p50, p99, max] =
        ["p50_ms", "p99_ms", "max_ms"].map(|name| commits[name].as_f64().unwrap());
    assert!(0.0 < p50 && p50 <= p99 && 0.0 < max, "{commits}");
    assert!(commits["count"].as_u64() >= Some(1), "{commits}");
    assert_eq!(report["requests"]["outcomes"]["acknowledged"], json!(5));
    assert!(report["memory"]["resident"].as_u64() > Some(1 << 20), "{report}");
    let (code, body) = get(&daemon, "/readyz");
    assert_eq!((code, &body["status"]), (200, &report["health"]["state"]));
}
