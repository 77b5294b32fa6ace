//! Isolation of projects, beyond single requests: answers that depend on another project, functions
//! of PromQL, limits and the state of the daemon.

use std::fs;

use granary::access::{ROUTES, Right};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Guarded,
    matrix::filled,
    people::PASSWORD,
    projects::{
        ASKING, SETTINGS, TELLING, Tenant, assert_tells_nothing_of_others, feed, random_word, start,
    },
};
use crate::{
    alerts::{RULES, poll_until},
    daemon::{SECONDS, granularities},
    hook::Hook,
};

/// The rounds of samples of another project.
const ROUNDS: u64 = 4;

fn random_below(count: u32) -> u32 {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).unwrap();
    u32::from_le_bytes(bytes) % count
}

fn text(time: i64) -> String {
    Timestamp::from_millisecond(time).unwrap().to_string()
}

/// Sends a random number of series, samples and objects with names that `feed` also uses.
fn disturb(guarded: &Guarded, tenant: &Tenant, round: u64, now: i64) {
    let Tenant { key, word, .. } = tenant;
    let mut samples = Vec::new();
    for number in 0..=random_below(200) {
        let metric = ["load", "memory", word][number as usize % 3];
        let tags = json!({ "host": "web1", "zone": format!("{word}{number}") });
        let time = now - i64::from(random_below(7_000_000));
        let value = random_below(1000);
        samples.push(json!({ "metric": metric, "tags": tags, "time": text(time), "value": value }));
    }
    let batch = json!({ "agent": "web1", "epoch": 2, "seq": round, "samples": samples });
    let (status, answer) = guarded.send("POST", "/api/v1/ingest", key, &batch.to_string());
    assert_eq!(status, 200, "{answer}");
    for _ in 0..random_below(4) {
        let dashboard = json!({ "schema": 1, "title": word, "variables": [], "panels": [] });
        let body = json!({ "version": null, "dashboard": dashboard }).to_string();
        let path = format!("/api/v1/dashboards/{}", random_word());
        assert_eq!(guarded.send("PUT", &path, key, &body).0, 200);
    }
    if random_below(2) == 1 {
        let path = format!("/api/v1/series?metric=load&tags=zone={word}0");
        assert_eq!(guarded.send("DELETE", &path, key, "").0, 200);
    }
}

/// Sends the data of a project whose answers are compared, with fixed times.
fn fill(guarded: &Guarded, tenant: &Tenant, now: i64) {
    let Tenant { key, word, number, .. } = tenant;
    let value: u64 = number.parse().unwrap();
    for seq in 1..=3 {
        let sample = |metric: &str, host: &str| {
            let tags = json!({ "host": host, "zone": word });
            let time = now - 1_000_000 * seq;
            json!({ "metric": metric, "tags": tags, "time": text(time), "value": value })
        };
        let samples = [sample("load", "web1"), sample("load", "web2"), sample("memory", "web1")];
        let batch = json!({ "agent": "web1", "epoch": 1, "seq": seq, "samples": samples });
        let (status, answer) = guarded.send("POST", "/api/v1/ingest", key, &batch.to_string());
        assert_eq!((status, &answer["accepted"]), (200, &json!(3)), "{answer}");
    }
    let dashboard = json!({ "schema": 1, "title": word, "variables": [], "panels": [] });
    let body = json!({ "version": null, "dashboard": dashboard }).to_string();
    assert_eq!(guarded.send("PUT", "/api/v1/dashboards/main", key, &body).0, 200);
}

/// Returns a text without times, durations of work and random ids: long groups of digits, and the
/// words of `own`.
fn steady(text: &str, own: &[&str]) -> String {
    let mut text = text.to_owned();
    for word in own {
        text = text.replace(word, "OWN");
    }
    let mut steady = String::new();
    let is_of_time = |c: char| c.is_ascii_digit() || "-:.TZ".contains(c);
    let mut rest = &*text;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c| !is_of_time(c)).unwrap_or(rest.len());
        let (group, after) = rest.split_at(length);
        if length == 0 {
            steady.push(first);
            rest = rest.split_at(first.len_utf8()).1;
            continue;
        }
        let digits = group.bytes().filter(u8::is_ascii_digit).count();
        steady += if digits >= 10 || group.starts_with("0.00") { "TIME" } else { group };
        rest = after;
    }
    steady
}

/// Returns requests that change nothing: one for each route, and some with parameters.
fn questions(word: &str) -> Vec<(String, String, String)> {
    let given = TELLING.iter().chain(&ASKING).filter(|(method, path, _)| {
        *method != "DELETE" && !path.contains("/admin/") && !path.contains("-1h")
    });
    let with = |text: &str| text.replace("WORD", word).replace("range=1h", "range=2d");
    let given = given.map(|(method, path, body)| ((*method).to_owned(), with(path), with(body)));
    let of_routes = ROUTES.iter().filter(|row| row.right == Right::Read && row.methods != "POST");
    let of_routes = of_routes.filter(|row| !row.path.ends_with("/tail"));
    let of_routes = of_routes.map(|row| ("GET".to_owned(), filled(row.path), String::new()));
    given.chain(of_routes).collect()
}

/// Two daemons receive the same data of a project; in one of them, another project works, too.
#[test]
fn answers_of_a_project_are_the_same_with_and_without_another() {
    let now = Timestamp::now().as_millisecond();
    let [alone, beside] = [(), ()].map(|()| Guarded::start_with(SETTINGS));
    let [red, mut red_beside] = [&alone, &beside].map(|guarded| Tenant::new(guarded, "red"));
    red_beside.word.clone_from(&red.word);
    red_beside.number.clone_from(&red.number);
    let blue = Tenant::new(&beside, "blue");
    feed(&beside, &blue);
    fill(&alone, &red, now);
    fill(&beside, &red_beside, now);
    for round in 1..=ROUNDS {
        disturb(&beside, &blue, round, now);
        for (method, path, body) in questions(&blue.word) {
            let ask = |guarded: &Guarded, tenant: &Tenant| {
                let (status, answer) = guarded.send(&method, &path, &tenant.key, &body);
                steady(&format!("{status} {answer}"), &[&red.word, &red.number])
            };
            // Some answers depend on the time, and differ while a slot begins.
            let is_same = (0..10).any(|_| ask(&alone, &red) == ask(&beside, &red_beside));
            assert!(
                is_same,
                "{method} {path}: {} instead of {}",
                ask(&beside, &red_beside),
                ask(&alone, &red)
            );
        }
    }
}

/// Returns a call of each function of PromQL with arguments that fit.
fn calls() -> Vec<String> {
    let table = include_str!("../../../src/query/promql/syntax/functions.rs");
    let (_, table) = table.split_once("static FUNCTIONS").unwrap();
    let (table, _) = table.split_once("\n];").unwrap();
    let argument = |kind: &str| match kind {
        "Vector" => "load",
        "Matrix" => "load[1h]",
        "Scalar" => "0.5",
        _ => "\"zone\"",
    };
    let call = |(start, name, rest): (&str, &str, &str)| {
        let kind = start.rsplit([' ', '\n']).next().unwrap();
        let arguments = match kind {
            "mapping" | "calendar" => "load".to_owned(),
            "range_function" => "load[1h]".to_owned(),
            "number" => String::new(),
            _ => {
                let (_, kinds) = rest.split_once("&[").unwrap();
                let (kinds, _) = kinds.split_once(']').unwrap();
                let kinds = kinds.split(',').map(str::trim).filter(|kind| !kind.is_empty());
                kinds.map(argument).collect::<Vec<_>>().join(",")
            }
        };
        format!("{name}({arguments})")
    };
    let mut calls = Vec::new();
    for entry in table.split("(\"").collect::<Vec<_>>().windows(2) {
        let (name, rest) = entry[1].split_once('"').unwrap();
        calls.push(call((entry[0], name, rest)));
    }
    calls
}

#[test]
fn no_function_of_promql_reads_another_project() {
    let (guarded, tenants) = start();
    for tenant in &tenants {
        feed(&guarded, tenant);
    }
    let calls = calls();
    assert!(calls.len() > 80, "{calls:?}");
    let mut answered = 0;
    for tenant in &tenants {
        for call in &calls {
            let query: Vec<_> = call.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let query = query.concat();
            for path in ["query?query=", "query_range?step=60&start=0&end=600&query="] {
                let path = format!("/api/v1/{path}{query}");
                let (status, answer) = guarded.send("GET", &path, &tenant.key, "");
                let text = format!("{status} {answer}");
                assert_tells_nothing_of_others(&text, tenant, &tenants, call);
                answered += usize::from(status == 200);
            }
        }
    }
    assert!(answered > calls.len() * 4, "only {answered} answers to {calls:?}");
}

#[test]
fn the_state_of_the_daemon_needs_rights_in_all_projects() {
    let (guarded, tenants) = start();
    for tenant in &tenants {
        feed(&guarded, tenant);
    }
    let new = json!({ "name": "operator", "scopes": ["admin", "operate"], "project": "default" });
    let operator = guarded.key(&new);
    for path in ["/metrics", "/api/v1/status", "/api/v1/storage", "/api/v1/admin/log"] {
        let (status, answer) = guarded.send("GET", path, &operator, "");
        assert_eq!((status, &answer["error"]), (403, &json!("forbidden")), "{path}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains("--project '*'"), "{answer}");
        assert_eq!(guarded.send("GET", path, &guarded.admin, "").0, 200, "{path}");
    }
    // A caller without rights in all projects cannot give such rights.
    let create = |key: &str, name: &str| {
        let new = json!({ "name": name, "password": PASSWORD, "roles": { "*": "admin" } });
        guarded.send("POST", "/api/v1/access/users", key, &new.to_string()).0
    };
    assert_eq!((create(&operator, "ann"), create(&guarded.admin, "ann")), (403, 201));
    let (_, users) = guarded.send("GET", "/api/v1/access/users", &operator, "");
    assert_eq!(users["users"], json!([]));
    // A new key with the same scopes inherits the right to all projects.
    let root = guarded.scoped("root", &["admin", "operate"]);
    assert_eq!(guarded.send("GET", "/metrics", &root, "").0, 200);
    let document = "/api/v1/storage/document?metric=load&resolution=1m";
    let partition = |key: &str| guarded.send("GET", document, key, "").1["partition"].clone();
    for tenant in &tenants {
        let (_, ready) = guarded.send("GET", "/readyz", &tenant.key, "");
        assert_eq!((&ready["reasons"], &ready["warnings"]), (&Value::Null, &Value::Null));
        // All projects share a partition, so its size would reveal data of others.
        assert_eq!(partition(&tenant.key), Value::Null);
    }
}

#[test]
fn the_senders_of_a_project_take_no_room_from_others() {
    let settings = format!("limits.series_max = 2\n{SETTINGS}");
    let guarded = Guarded::start_with(&settings);
    let [red, blue] = ["red", "blue"].map(|name| Tenant::new(&guarded, name));
    let send = |tenant: &Tenant, agent: &str| {
        let sample = json!({ "metric": "load", "value": 1 });
        let batch = json!({ "agent": agent, "epoch": 1, "seq": 1, "samples": [sample] });
        guarded.send("POST", "/api/v1/ingest", &tenant.key, &batch.to_string())
    };
    for agent in ["a", "b"] {
        assert_eq!(send(&blue, agent).1["accepted"], 1);
    }
    let (_, full) = send(&blue, "c");
    assert!(full.to_string().contains("sender_limit"), "{full}");
    assert_eq!(send(&red, "a").1["accepted"], 1);
    assert_eq!(send(&red, "b").1["accepted"], 1);
    let (_, full) = send(&red, "c");
    assert!(full.to_string().contains("limits.series_max"), "{full}");
}

#[test]
fn a_project_has_a_retention_and_a_limit_of_bytes_of_its_own() {
    let settings = "security.access = true\nstorage.checkpoint_interval = '1s'\n\
                    [security.projects.red]\ndisk_max = '4 KiB'\n[security.projects.blue]\n\
                    [[retention.rule]]\nname = 'red'\nproject = 'red'\nkeep = { 1m = 'none' }\n";
    let guarded = Guarded::start_with(settings);
    let [red, blue] = ["red", "blue"].map(|name| Tenant::new(&guarded, name));
    let now = Timestamp::now().as_millisecond();
    let send = |tenant: &Tenant| {
        let time = text(now - 3 * 86_400_000);
        let sample = json!({ "metric": "load", "time": time, "value": 1 });
        let body = json!({ "samples": [sample] }).to_string();
        guarded.send("POST", "/api/v1/ingest", &tenant.key, &body)
    };
    // The quota counts files, which the next checkpoint writes.
    let (status, full) = poll_until(&guarded.daemon, "the quota", || {
        let (status, answer) = send(&red);
        (status != 200).then_some((status, answer))
    });
    assert_eq!((status, &full["error"]), (429, &json!("quota")), "{full}");
    let message = full["message"].as_str().unwrap();
    assert!(message.contains("project red") && message.contains("disk_max"), "{full}");
    assert_eq!(guarded.send("POST", "/write", &red.key, "load value=1").0, 503);
    assert_eq!(send(&blue).0, 200);
    let (_, metrics) = guarded.send("GET", "/metrics", &guarded.admin, "");
    let refused = "granary_requests_refused_total{reason=\"quota\"} ";
    let count = metrics.as_str().unwrap().lines().find_map(|line| line.strip_prefix(refused));
    assert!(count.unwrap().parse::<u64>().unwrap() >= 2);
}

#[test]
fn alerts_of_a_project_reach_its_alertmanager_and_its_faults_the_operator() {
    let [hook, of_default] = [(), ()].map(|()| Hook::start(None));
    let dir = tempfile::tempdir().unwrap();
    let [rules, broken] = ["rules.yml", "broken.yml"].map(|name| dir.path().join(name));
    fs::write(&rules, RULES.replace("FOR", "0s")).unwrap();
    fs::write(&broken, "groups: []\n").unwrap();
    let settings = format!(
        "[alerts]\nalertmanagers = ['http://{}']\n[security]\naccess = true\n\
         [security.projects.red]\nrules = ['{}']\nalertmanagers = ['http://ann:pass@{}']\n\
         [security.projects.blue]\nrules = ['{}']\n{}",
        of_default.address,
        rules.display(),
        hook.address,
        broken.display(),
        granularities(&SECONDS)
    );
    let guarded = Guarded::start_with(&settings);
    let [red, blue] = ["red", "blue"].map(|name| Tenant::new(&guarded, name));
    let sample = json!({ "metric": "level", "tags": { "host": "a" }, "value": 7 });
    for tenant in [&red, &blue] {
        let body = json!({ "samples": [sample] }).to_string();
        assert_eq!(guarded.send("POST", "/api/v1/ingest", &tenant.key, &body).0, 200);
    }
    let alert = poll_until(&guarded.daemon, "an alert", || hook.received().first().cloned());
    assert_eq!(alert.1[0]["labels"]["alertname"], "High", "{alert:?}");
    let metric = |line: &str| {
        let (_, metrics) = guarded.send("GET", "/metrics", &guarded.admin, "");
        metrics.as_str().unwrap().lines().any(|known| known == line).then_some(())
    };
    poll_until(&guarded.daemon, "the gauge", || metric("granary_alerts{state=\"firing\"} 1"));
    assert_eq!(metric("granary_rules 2"), Some(()));
    let known = |tenant: &Tenant| guarded.send("GET", "/api/v1/alertmanagers", &tenant.key, "").1;
    let count = |answer: &Value| answer["data"]["activeAlertmanagers"].as_array().unwrap().len();
    assert_eq!((count(&known(&red)), count(&known(&blue))), (1, 0));
    assert!(!guarded.daemon.log().contains("ann:pass"));
    // A file that becomes invalid is the operator's concern, and names its project.
    fs::write(&broken, "groups: 7\n").unwrap();
    let (status, answer) = guarded.send("POST", "/-/reload", &guarded.admin, "");
    assert!(status >= 400 && answer.to_string().contains("blue"), "{status} {answer}");
    assert_eq!(of_default.received().len(), 0);
    drop(dir);
}
