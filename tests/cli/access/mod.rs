//! Access control of the real daemon: users, and keys through the commands, the API and every kind
//! of client.

mod audit;
mod enroll;
mod isolation;
mod matrix;
mod oidc;
mod people;
mod projects;
mod receivers;
mod senders;
mod sessions;

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    process::{Command, Output},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use granary::clock::Stopwatch;
use serde_json::{Value, json};

use crate::daemon::{Daemon, client, granary, request};

/// A daemon with access control, and the key of its administrator.
pub(crate) struct Guarded {
    pub(crate) daemon: Daemon,
    pub(crate) admin: String,
}

impl Guarded {
    pub(crate) fn start() -> Self {
        Self::start_with("security.access = true")
    }

    /// Starts a daemon with settings that turn access control on.
    pub(crate) fn start_with(settings: &str) -> Self {
        let daemon = Daemon::start(settings);
        let admin = first_key(&daemon).unwrap();
        Self { daemon, admin }
    }

    /// Makes a key through the API, and returns its text.
    pub(crate) fn key(&self, body: &Value) -> String {
        let path = "/api/v1/access/keys";
        let (status, made) = self.send("POST", path, &self.admin, &body.to_string());
        assert_eq!(status, 201, "{made}");
        made["token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn scoped(&self, name: &str, scopes: &[&str]) -> String {
        self.key(&json!({ "name": name, "scopes": scopes }))
    }

    /// Sends a request with a key; returns status and body.
    pub(crate) fn send(&self, method: &str, path: &str, key: &str, body: &str) -> (u16, Value) {
        let authorization = format!("Bearer {key}");
        self.send_with(method, path, &[("Authorization", &authorization)], body)
    }

    pub(crate) fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, Value) {
        let headers = [headers, &[("Content-Type", "application/json")]].concat();
        request(&self.daemon.url, method, path, &headers, body).unwrap()
    }

    /// Runs `granary` with a key in the environment.
    pub(crate) fn run(&self, key: &str, words: &[&str]) -> Output {
        let mut command: Command = granary();
        command.args(words).env("GRANARY_URL", &self.daemon.url).env("GRANARY_KEY", key);
        command.output().unwrap()
    }

    /// Runs `granary`, which must succeed, and returns its output.
    fn output(&self, key: &str, words: &[&str]) -> String {
        let output = self.run(key, words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// Returns the secret part of a key.
pub(crate) fn secret(key: &str) -> &str {
    key.rsplit('_').next().unwrap()
}

fn first_key(daemon: &Daemon) -> Option<String> {
    let path = daemon.data("first-key");
    let text = fs::read_to_string(&path).ok()?;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    Some(text.trim().to_owned())
}

/// Returns the message of a command that must fail.
fn message(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_first_key_makes_the_others_and_ends_when_another_key_can() {
    let mut guarded = Guarded::start();
    let first = guarded.admin.clone();
    assert!(!guarded.daemon.log().contains(secret(&first)), "the log contains the key");
    let dir = guarded.daemon.dir.path().join("admin.key");
    let file = dir.to_str().unwrap();
    let add = ["key", "add", "root", "--scope", "admin,operate", "--out", file];
    assert_eq!(guarded.output(&first, &add), format!("wrote the key to {file}"));
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o600);
    let again = message(&guarded.run(&first, &add));
    assert!(again.contains("the file exists"), "{again}");
    let again = message(&guarded.run(&first, &["key", "add", "root", "--scope", "admin,operate"]));
    assert!(again.contains("exists; rotate it or revoke it"), "{again}");
    guarded.admin = fs::read_to_string(&dir).unwrap().trim().to_owned();
    guarded.daemon.stop();
    guarded.daemon.restart();
    assert_eq!(first_key(&guarded.daemon), None);
    assert_eq!(guarded.send("GET", "/api/v1/status", &first, "").0, 401);
    assert_eq!(guarded.send("GET", "/api/v1/status", &guarded.admin, "").0, 200);
    // When no key can make keys, the next start provides another first key.
    guarded.output(&guarded.admin.clone(), &["key", "revoke", "root"]);
    guarded.daemon.stop();
    guarded.daemon.restart();
    let second = first_key(&guarded.daemon).unwrap();
    assert_ne!(second, first);
    assert_eq!(guarded.send("GET", "/api/v1/access/keys", &second, "").0, 200);
}

#[test]
fn commands_list_rotate_and_revoke_keys() {
    let guarded = Guarded::start();
    let run = |words: &[&str]| guarded.output(&guarded.admin, words);
    let first = run(&["key", "add", "agents", "--scope", "ingest,read", "--expires", "90d"]);
    let second = run(&["key", "rotate", "agents", "--overlap", "1h"]);
    let listed = run(&["key", "list"]);
    let row = listed.lines().find(|line| line.contains("agents")).unwrap();
    assert!(row.contains("ingest,read") && row.contains("first-key"), "{listed}");
    assert!(!listed.contains(secret(&first)) && listed.ends_with("2 keys"), "{listed}");
    let chart = |key: &str| guarded.send("GET", "/api/v1/series", key, "").0;
    assert_eq!((chart(&first), chart(&second)), (200, 200), "both during the overlap");
    let third = run(&["key", "rotate", "agents", "--overlap", "0s"]);
    let codes = [&first, &second, &third].map(|key| chart(key));
    assert_eq!(codes, [401, 401, 200]);
    let stranger = message(&guarded.run(&third, &["key", "list"]));
    assert!(stranger.contains("lacks a scope: this request needs admin"), "{stranger}");
    let id = third.split('_').nth(1).unwrap();
    assert_eq!(run(&["key", "revoke", id]), "revoked 1 key");
    assert_eq!(chart(&third), 401);
    let missing = message(&guarded.run(&guarded.admin, &["key", "revoke", "agents"]));
    assert!(missing.contains("there is no key \"agents\""), "{missing}");
    // A command without a key, or with a cut one, reports the reason.
    let cut = message(&guarded.run(guarded.admin.split_at(60).0, &["query", "series"]));
    assert!(cut.contains("the key is not valid"), "{cut}");
    let none = granary().args(["query", "series", "--url", &guarded.daemon.url]).output().unwrap();
    assert!(message(&none).contains("this daemon requires a key"));
}

#[test]
fn a_key_works_in_each_place_that_clients_use() {
    let guarded = Guarded::start();
    let key = guarded.scoped("reader", &["read", "ingest"]);
    let basic = format!("Basic {}", STANDARD.encode(format!("anyone:{key}")));
    let token = format!("Token {key}");
    let get = |path: &str, headers: &[(&str, &str)]| guarded.send_with("GET", path, headers, "").0;
    assert_eq!(get("/api/v1/series", &[("authorization", &basic)]), 200);
    assert_eq!(get("/api/v1/series", &[("authorization", &token)]), 200);
    // Handlers that refuse unknown parameters do not see the key.
    assert_eq!(get(&format!("/api/v1/find?q=x&api_key={key}"), &[]), 200);
    assert_eq!(get(&format!("/api/v1/find?api_key={key}x"), &[]), 401);
    let write = format!("/write?db=x&u=me&p={key}");
    assert_eq!(guarded.send_with("POST", &write, &[], "load value=1").0, 204);
    assert_eq!(get(&format!("/api/v1/series?p={key}"), &[]), 401, "only in requests with samples");
    let other = guarded.scoped("other", &["read"]);
    let two = format!("/api/v1/series?api_key={other}");
    assert_eq!(get(&two, &[("authorization", &token)]), 400);
    // The refusal contains no challenge that would open a browser's login dialog.
    let refused = client().get(format!("{}/metrics", guarded.daemon.url)).call().unwrap();
    assert_eq!(refused.headers()["www-authenticate"], "Bearer realm=\"granary\"");
    let log = guarded.daemon.log();
    assert!(!log.contains(secret(&key)) && !log.contains(secret(&other)), "{log}");
}

#[test]
fn a_revoked_key_ends_its_tails_within_a_second() {
    let guarded = Guarded::start();
    let key = guarded.scoped("reader", &["read", "ingest"]);
    let sample = json!({ "samples": [{ "metric": "load", "value": 1 }] });
    assert_eq!(guarded.send("POST", "/api/v1/ingest", &key, &sample.to_string()).0, 200);
    let response = client()
        .get(format!("{}/api/v1/tail?metric=load", guarded.daemon.url))
        .header("Authorization", format!("Bearer {key}"))
        .call()
        .unwrap();
    assert_eq!(response.status(), 200);
    let mut lines = BufReader::new(response.into_body().into_reader()).lines();
    assert!(lines.next().unwrap().is_ok());
    let watch = Stopwatch::start();
    guarded.output(&guarded.admin, &["key", "revoke", "reader"]);
    assert_eq!(guarded.send("POST", "/api/v1/ingest", &key, &sample.to_string()).0, 401);
    while lines.next().is_some_and(|line| line.is_ok()) {}
    // The tail checks its key once a second; the command also takes time.
    assert!(watch.elapsed() < Duration::from_secs(4), "{:?}", watch.elapsed());
}

#[test]
fn a_reload_turns_access_control_on_with_the_keys_that_were_made_before() {
    let daemon = Daemon::start("security.access = false");
    let (status, answer) = request(&daemon.url, "GET", "/api/v1/series", &[], "").unwrap();
    assert_eq!(status, 200, "{answer}");
    let guarded = Guarded { daemon, admin: String::new() };
    let key = guarded.output("gry_none", &["key", "add", "reader", "--scope", "read"]);
    fs::write(guarded.daemon.dir.path().join("granary.toml"), "security.access = true").unwrap();
    assert_eq!(guarded.send_with("POST", "/-/reload", &[], "").0, 200);
    let get = |key: &str| {
        let headers = [("Authorization", &*format!("Bearer {key}"))];
        request(&guarded.daemon.url, "GET", "/api/v1/series", &headers, "")
            .map_or(0, |(code, _)| code)
    };
    crate::peers::wait_until("access control", || get("gry_none") == 401);
    assert_eq!(get(&key), 200);
    let first = first_key(&guarded.daemon).unwrap();
    assert_eq!(guarded.send("GET", "/api/v1/access/keys", &first, "").0, 200);
}

#[test]
fn keys_expire_while_the_daemon_runs_and_survive_a_kill() {
    let mut guarded = Guarded::start();
    let soon = jiff::Timestamp::now().as_millisecond() + 1500;
    let key = guarded.key(&json!({ "name": "short", "scopes": ["read"], "expires": soon }));
    let long = guarded.scoped("long", &["read"]);
    let get = |guarded: &Guarded, key: &str| guarded.send("GET", "/api/v1/series", key, "").0;
    assert_eq!(get(&guarded, &key), 200);
    crate::peers::wait_until("the end of a key", || get(&guarded, &key) == 401);
    guarded.daemon.kill();
    guarded.daemon.restart();
    assert_eq!((get(&guarded, &key), get(&guarded, &long)), (401, 200));
}

#[test]
fn a_caller_cannot_make_or_rotate_a_key_that_may_do_more() {
    let guarded = Guarded::start();
    let manager = guarded.scoped("manager", &["admin"]);
    let make = |key: &str, body: &Value| {
        guarded.send("POST", "/api/v1/access/keys", key, &body.to_string()).0
    };
    assert_eq!(make(&manager, &json!({ "name": "a", "scopes": ["objects"] })), 201);
    assert_eq!(make(&manager, &json!({ "name": "b", "scopes": ["operate"] })), 403);
    let operator = guarded.scoped("operator", &["operate"]);
    let id = operator.split('_').nth(1).unwrap();
    let path = format!("/api/v1/access/keys/{id}");
    assert_eq!(guarded.send("POST", &format!("{path}/rotate"), &manager, "{}").0, 403);
    assert_eq!(guarded.send("DELETE", &path, &manager, "").0, 403);
    assert_eq!(guarded.send("DELETE", &path, &guarded.admin, "").0, 204);
    for body in [
        json!({ "name": "", "scopes": ["read"] }),
        json!({ "name": "c", "scopes": [] }),
        json!({ "name": "c", "scopes": ["all"] }),
        json!({ "name": "c", "scopes": ["read"], "expires": 1 }),
        json!({ "name": "c", "scopes": ["read"], "other": 1 }),
    ] {
        assert_eq!(make(&guarded.admin, &body), 400, "{body}");
    }
}

#[test]
fn many_wrong_keys_are_limited_and_a_valid_key_of_the_same_address_still_passes() {
    let guarded = Guarded::start();
    let key = guarded.scoped("agents", &["ingest"]);
    let wrong = key.replace(secret(&key), &secret(&key).chars().rev().collect::<String>());
    let get = |key: &str| guarded.send("GET", "/api/v1/series", key, "").0;
    let statuses: Vec<_> = (0..100).map(|_| get(&wrong)).collect();
    let refused = statuses.iter().filter(|status| **status == 401).count();
    // A minute may end in between.
    assert!((30..=60).contains(&refused), "{statuses:?}");
    assert_eq!(statuses[99], 429);
    let body = json!({ "samples": [{ "metric": "load", "value": 1 }] }).to_string();
    assert_eq!(guarded.send("POST", "/api/v1/ingest", &key, &body).0, 200);
    let (_, metrics) = guarded.send("GET", "/metrics", &guarded.admin, "");
    let line = "granary_requests_refused_total{reason=\"key\"} 100";
    assert!(metrics.as_str().unwrap().contains(line), "{metrics}");
    let lines = guarded.daemon.log().matches("refused a request: its key or code is wrong").count();
    assert!((1..=2).contains(&lines), "{lines} lines");
}

#[test]
fn readyz_names_no_reasons_to_strangers_and_the_page_loads_without_a_key() {
    let guarded = Guarded::start();
    let (status, answer) = guarded.send_with("GET", "/readyz", &[], "");
    assert_eq!((status, &answer["status"]), (200, &json!("ready")));
    assert_eq!(answer.as_object().unwrap().len(), 2, "{answer}");
    assert_eq!(guarded.send_with("GET", "/healthz", &[], "").0, 200);
    assert_ne!(guarded.send_with("GET", "/explore", &[("Accept", "text/html")], "").0, 401);
    assert_eq!(guarded.send("GET", "/readyz", "gry_wrong", "").0, 200);
    assert_eq!(guarded.send_with("GET", "/api/v1/none", &[], "").0, 404);
}

#[test]
fn damaged_keys_are_answered_with_503_and_give_nobody_rights() {
    let mut guarded = Guarded::start();
    let key = guarded.scoped("agents", &["ingest"]);
    guarded.daemon.stop();
    fs::write(guarded.daemon.data("objects.redb"), "no database").unwrap();
    guarded.daemon.restart();
    let stale = fs::read_to_string(guarded.daemon.data("first-key")).unwrap();
    assert_eq!(stale.trim(), guarded.admin, "no key was made");
    for key in [&key, &guarded.admin] {
        let (status, answer) = guarded.send("POST", "/api/v1/ingest", key, "{}");
        assert_eq!((status, &answer["error"]), (503, &json!("keys_unread")), "{answer}");
    }
    let (_, ready) = guarded.send_with("GET", "/readyz", &[], "");
    assert_eq!(ready["status"], "degraded");
    // The operator decides that the keys are lost.
    guarded.daemon.stop();
    fs::remove_file(guarded.daemon.data("damaged/objects.redb")).unwrap();
    guarded.daemon.restart();
    let first = first_key(&guarded.daemon).unwrap();
    assert_eq!(guarded.send("GET", "/api/v1/access/keys", &first, "").0, 200);
    assert_eq!(guarded.send("POST", "/api/v1/ingest", &key, "{}").0, 401);
}
