//! Senders that number their batches: forged numbers, the limit of senders, and the removal of
//! senders.

use std::process::Output;

use granary_protocol::{
    BSON_MEDIA_TYPE, Batch, Kind, PACKED_MEDIA_TYPE, SeriesDefinition, encode_batch, pack,
};
use serde_json::{Value, json};

use crate::daemon::{Daemon, client, granary};

fn batch(agent: &str, epoch: i64, seq: u64) -> Value {
    json!({"agent": agent, "epoch": epoch, "seq": seq,
           "samples": [{"metric": "events", "kind": "delta", "value": 1}]})
}

fn run_senders(daemon: &Daemon, args: &[&str]) -> Output {
    granary().arg("senders").args(args).args(["--url", &daemon.url]).output().unwrap()
}

fn sender_names(daemon: &Daemon) -> Vec<String> {
    let output = run_senders(daemon, &["list", "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = answer["senders"].as_array().unwrap().iter();
    all.map(|sender| sender["agent"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_forged_sender_locks_no_agent_out() {
    let daemon = Daemon::start("");
    assert_eq!(daemon.post_json(&batch("web1", 5, 1)).body["accepted"], 1);
    let mut empty = batch("web1", i64::MAX, 1);
    empty["samples"] = json!([]);
    for distance in 0..4 {
        empty["epoch"] = json!(i64::MAX - distance);
        assert_eq!(daemon.post_json(&empty).status, 200);
        let far_number = daemon.post_json(&batch("web1", i64::MAX - distance, 1)).body;
        assert_eq!(
            (&far_number["refused"], &far_number["renumber"]),
            (&json!({"far_number": 1}), &json!([1]))
        );
    }
    let far_number = daemon.post_json(&batch("web1", 5, 1 << 62)).body;
    assert_eq!(
        (&far_number["refused"], &far_number["renumber"]),
        (&json!({"far_number": 1}), &json!([1_u64 << 62]))
    );
    let message = far_number["examples"][0]["message"].as_str().unwrap();
    assert!(message.contains("Unix milliseconds"), "{message}");
    assert_eq!(daemon.post_json(&batch("web1", 5, 2)).body["accepted"], 1);
    // A number that is too old for the window is reported, so that the sender can begin a new
    // epoch.
    assert_eq!(daemon.post_json(&batch("web1", 5, 5000)).body["accepted"], 1);
    let stale = daemon.post_json(&json!([batch("web1", 5, 3), batch("web1", 5, 5001)])).body;
    assert_eq!((&stale["accepted"], &stale["renumber"]), (&json!(1), &json!([3])));
    assert_eq!(stale["refused"], json!({"stale_number": 1}));
}

#[test]
fn a_full_store_asks_new_senders_to_wait_until_some_are_removed() {
    let mut daemon = Daemon::start("limits.series_max = 3");
    for agent in ["a", "b", "c"] {
        assert_eq!(daemon.post_json(&batch(agent, 1, 1)).status, 200);
    }
    let refused = daemon.post_json(&json!([batch("new", 1, 1), batch("a", 1, 2)]));
    assert_eq!((refused.status, &refused.body["error"]), (503, &json!("sender_limit")));
    assert!(refused.body["message"].as_str().unwrap().contains("granary senders remove"));
    // The other batch of the request was accepted.
    assert_eq!(daemon.post_json(&batch("a", 1, 2)).body["duplicates"], 1);

    let table = String::from_utf8(run_senders(&daemon, &["list"]).stdout).unwrap();
    assert!(table.contains("3 senders") && table.contains("epoch"), "{table}");
    let dry_run = run_senders(&daemon, &["remove", "b", "nobody", "--dry-run"]).stdout;
    assert!(String::from_utf8(dry_run).unwrap().contains("1 sender would be removed"));
    assert_eq!(run_senders(&daemon, &["remove", "--idle", "1h"]).stdout, b"removed 0 senders\n");
    assert_eq!(sender_names(&daemon), ["a", "b", "c"]);
    assert_eq!(run_senders(&daemon, &["remove", "b", "nobody"]).stdout, b"removed 1 sender\n");
    daemon.kill();
    daemon.restart();
    assert_eq!(sender_names(&daemon), ["a", "c"]);
    assert_eq!(daemon.post_json(&batch("new", 1, 1)).body["accepted"], 1);
    assert_eq!(daemon.post_json(&batch("a", 1, 2)).body["duplicates"], 1);

    let delete = |query: &str| {
        let mut answer =
            client().delete(format!("{}/api/v1/senders{query}", daemon.url)).call().unwrap();
        let body = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str::<Value>(&body).unwrap())
    };
    assert_eq!(delete("").0, 400, "the removal of all senders needs idle=0ms");
    assert_eq!(delete("?agent=c").1["total"], 1);
    assert_eq!(sender_names(&daemon), ["a", "new"]);
}

/// Returns batches in BSON, the form of older agents.
fn bson_body(batches: &[&Batch]) -> Vec<u8> {
    let mut body = Vec::new();
    for batch in batches {
        encode_batch(batch, &mut body);
    }
    body
}

#[test]
fn a_packed_body_of_the_shown_size_is_accepted_and_a_larger_one_refused() {
    let daemon = Daemon::start("ingest.body_memory_max = 8_388_608");
    // Each sample takes three bytes, the least, so decoding takes the most memory for the size.
    let body = |seq: u64, samples: usize| {
        let definition = SeriesDefinition { metric: "m".to_owned(), ..SeriesDefinition::default() };
        pack(&[Batch {
            agent: "web1".to_owned(),
            epoch: 1,
            seq,
            series: vec![definition],
            refs: vec![0; samples],
            times: vec![jiff::Timestamp::now().as_millisecond()],
            values: vec![1.0; samples],
            ..Batch::default()
        }])
    };
    let largest = body(1, 43_660);
    assert!((131_000..=131_072).contains(&largest.len()), "{}", largest.len());
    let answer = daemon.post(PACKED_MEDIA_TYPE, &largest);
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(43_660)), "{}", answer.body);
    let answer = daemon.post(PACKED_MEDIA_TYPE, &body(2, 43_700));
    let expected = "more than 131072 bytes: send smaller requests or raise ingest.body_memory_max \
                    (a packed request may take a 64th of it, decompressed)";
    assert_eq!((answer.status, answer.body["message"].as_str()), (413, Some(expected)));
}

#[test]
fn a_batch_counts_once_whether_it_is_packed_or_not() {
    let daemon = Daemon::start("");
    let metric = "events".to_owned();
    let definition =
        SeriesDefinition { reference: 7, metric, kind: Kind::Delta, ..SeriesDefinition::default() };
    let first = Batch {
        agent: "web1".to_owned(),
        epoch: 5,
        seq: 1,
        series: vec![definition],
        refs: vec![7, 7],
        times: vec![jiff::Timestamp::now().as_millisecond()],
        values: vec![1.0, 2.5],
        ..Batch::default()
    };
    let next = Batch { seq: 2, series: vec![], ..first.clone() };
    let counts = |media_type: &str, body: &[u8]| {
        let answer = daemon.post(media_type, body);
        (answer.status, answer.body["accepted"].clone(), answer.body["duplicates"].clone())
    };
    // A batch is refused when the daemon does not know its definitions.
    let body = pack(std::slice::from_ref(&next));
    assert_eq!(counts(PACKED_MEDIA_TYPE, &body).0, 409);
    let body = pack(std::slice::from_ref(&first));
    assert_eq!(counts(PACKED_MEDIA_TYPE, &body), (200, json!(2), json!(0)));
    assert_eq!(counts(BSON_MEDIA_TYPE, &bson_body(&[&first, &next])), (200, json!(2), json!(2)));
    let both = pack(&[first, next]);
    assert_eq!(counts(PACKED_MEDIA_TYPE, &both), (200, json!(0), json!(4)));
    let chart = ["chart", "--metric", "events", "--display", "total", "--range", "2d"];
    let answer = daemon.query(&[&chart[..], &["--resolution", "1d"]].concat());
    let points = answer["series"][0]["points"].as_array().unwrap();
    assert_eq!(points.iter().filter_map(|point| point[1].as_f64()).sum::<f64>(), 7.0);
    let answer = client().post(format!("{}/api/v1/ingest", daemon.url)).send_empty().unwrap();
    assert_eq!(answer.headers()["accept-post"], PACKED_MEDIA_TYPE, "{}", answer.status());
}

/// Returns a hundred rounds of a thousand series, with values that do not compress.
fn large_rounds() -> Vec<Batch> {
    let definition = |reference| SeriesDefinition {
        reference,
        metric: format!("m{reference}"),
        kind: Kind::Gauge,
        ..SeriesDefinition::default()
    };
    let now = jiff::Timestamp::now().as_millisecond();
    let mut definitions = (1..=1000).map(definition).collect();
    let mut round = |seq: u64| {
        let mut random = [0; 8000];
        getrandom::fill(&mut random).unwrap();
        let (numbers, _) = random.as_chunks();
        Batch {
            agent: "web1".to_owned(),
            epoch: 5,
            seq,
            series: std::mem::take(&mut definitions),
            refs: (1..=1000).collect(),
            times: vec![now - 10_000 * (100 - seq as i64)],
            values: numbers.iter().map(|bytes| u64::from_le_bytes(*bytes) as f64).collect(),
            ..Batch::default()
        }
    };
    (1..=100).map(&mut round).collect()
}

#[test]
fn bodies_of_64_mib_have_room_for_the_largest_request_of_agents() {
    // A distribution takes memory for its own samples only.
    let daemon = Daemon::start(
        "ingest.body_memory_max = 67_108_864\ningest.distribution = [{ metric = \"x_nothing\" }]",
    );
    let body = pack(&large_rounds());
    assert!((700_000..=1 << 20).contains(&body.len()), "{}", body.len());
    let compressed = zstd::encode_all(&body[..], 1).unwrap();
    let request = client().post(format!("{}/api/v1/ingest", daemon.url));
    let request = request.content_type(PACKED_MEDIA_TYPE).header("Content-Encoding", "zstd");
    let mut response = request.send(&compressed[..]).unwrap();
    let answer = response.body_mut().read_to_string().unwrap();
    assert_eq!(response.status(), 200, "{answer}");
    assert!(answer.contains("\"accepted\":100000"), "{answer}");
}

#[test]
fn equal_deltas_of_configured_replicas_count_once() {
    let settings =
        "ingest.ha_senders = { statsd- = '30s', 'influx ' = '30s' }\nlimits.series_max = 1000";
    for (settings, expected) in [("", 12.0), (settings, 6.0)] {
        let daemon = Daemon::start(settings);
        let now = crate::protocols::now_ms();
        let mut answers = Vec::new();
        for seq in 1..=3 {
            for agent in ["statsd-a", "statsd-b"] {
                let mut batch = batch(agent, 5, seq);
                batch["samples"][0]["time"] = json!(now - 300_000 + seq as i64 * 10_000);
                batch["samples"][0]["value"] = json!(2);
                answers.push(daemon.post_json(&batch).body);
            }
        }
        let args = "chart --metric events --display total --range 1h --resolution 1d";
        let chart = daemon.query(&args.split(' ').collect::<Vec<_>>());
        let points = chart["series"][0]["points"].as_array().unwrap();
        let total: f64 = points.iter().filter_map(|point| point[1].as_f64()).sum();
        assert_eq!(total, expected, "{answers:?}");
        if !settings.is_empty() {
            assert_eq!(
                (&answers[5]["accepted"], &answers[5]["duplicates"]),
                (&json!(0), &json!(1))
            );
            assert!(daemon.metrics().contains("granary_ha_samples_left_out_total 3"));
            assert_eq!(sender_names(&daemon), ["statsd-a", "statsd-b"]);
        }
    }
}
