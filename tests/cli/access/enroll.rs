//! One-time codes, and agents that receive keys for codes and renew them.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::{Command, Output},
};

use serde_json::{Value, json};

use super::{Guarded, secret};
use crate::daemon::agent_program;

fn code(guarded: &Guarded, words: &[&str]) -> String {
    guarded.output(&guarded.admin, &[&["key", "code"], words].concat())
}

fn enroll(guarded: &Guarded, code: &str, sender: &str) -> (u16, Value) {
    let body = json!({ "code": code, "sender": sender }).to_string();
    guarded.send_with("POST", "/api/v1/access/enroll", &[], &body)
}

fn batch(agent: &str) -> String {
    let samples = json!([{ "metric": "load", "value": 1 }]);
    json!({ "agent": agent, "epoch": 1, "seq": 1, "samples": samples }).to_string()
}

#[test]
fn a_code_gives_one_key_for_one_sender() {
    let guarded = Guarded::start();
    let text = code(&guarded, &["--senders", "web"]);
    // The list also contains the code for the first administrator.
    assert!(guarded.output(&guarded.admin, &["key", "codes"]).ends_with("2 codes"));
    let (status, answer) = enroll(&guarded, &text, "db1");
    assert_eq!(status, 400, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("begins with \"web\""), "{answer}");
    let (status, made) = enroll(&guarded, &text, "web1");
    assert_eq!(status, 201, "{made}");
    let (key, record) = (made["token"].as_str().unwrap(), &made["key"]);
    assert_eq!((&record["senders"], &record["one_sender"]), (&json!("web1"), &json!(true)));
    let ingest = |agent: &str| guarded.send("POST", "/api/v1/ingest", key, &batch(agent)).0;
    assert_eq!([ingest("web1"), ingest("web10"), ingest("web")], [200, 403, 403]);
    assert_eq!(guarded.send("GET", "/api/v1/series", key, "").0, 403);
    // A used, an unknown and a cut code, a key, and a revoked code get the same answer.
    let revoked = code(&guarded, &[]);
    let id = revoked.split('_').nth(1).unwrap();
    guarded.output(&guarded.admin, &["key", "revoke", id]);
    let unknown = text.replace(secret(&text), &"0".repeat(52));
    let cut = text.split_at(40).0.to_owned();
    let answers: Vec<_> = [&text, &unknown, &cut, key, &revoked]
        .iter()
        .map(|code| enroll(&guarded, code, "web1"))
        .collect();
    assert_eq!((answers[0].0, &answers[0].1["error"]), (401, &json!("wrong_code")));
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert!(guarded.output(&guarded.admin, &["key", "codes"]).ends_with("1 code"));
    // The audit has the enrolment, and one record of all refusals.
    let (_, audit) = guarded.send("GET", "/api/v1/admin/audit", &guarded.admin, "");
    let records = audit["records"].as_array().unwrap().iter();
    let codes: Vec<_> = records.filter(|record| record["kind"] == "code").collect();
    assert_eq!((codes.len(), &codes[0]["count"], &codes[1]["who"]), (2, &json!(5), &json!("web1")));
    let log = guarded.daemon.log();
    assert!(!log.contains(secret(&text)) && !log.contains(secret(key)), "{log}");
}

#[test]
fn a_key_that_is_revoked_during_the_request_makes_no_code() {
    let guarded = Guarded::start();
    let key = guarded.scoped("leaver", &["admin"]);
    let address = guarded.daemon.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let body = r#"{"senders": "web"}"#;
    let (first, rest) = body.split_at(4);
    let head = format!(
        "POST /api/v1/access/codes HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The daemon asks for the body after it has checked the key.
    let mut reply = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reply.read_line(&mut line).unwrap();
    assert!(line.contains("100 Continue"), "{line}");
    stream.write_all(first.as_bytes()).unwrap();
    guarded.output(&guarded.admin, &["key", "revoke", "leaver"]);
    stream.write_all(rest.as_bytes()).unwrap();
    let mut answer = String::new();
    reply.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("403 Forbidden") && answer.contains("has ended"), "{answer}");
    assert!(
        guarded.output(&guarded.admin, &["key", "codes"]).ends_with("1 code"),
        "only the first"
    );
}

#[test]
fn wrong_codes_count_as_wrong_keys_and_a_valid_one_still_passes() {
    let guarded = Guarded::start();
    let text = code(&guarded, &[]);
    let statuses: Vec<_> = (0..31).map(|_| enroll(&guarded, "grc_wrong", "web1").0).collect();
    assert_eq!((statuses[29], statuses[30]), (401, 429));
    assert_eq!(guarded.send("GET", "/api/v1/series", "gry_wrong", "").0, 429);
    assert_eq!(enroll(&guarded, &text, "web1").0, 201);
}

#[test]
fn the_makers_rights_limit_a_code() {
    let guarded = Guarded::start();
    let operator = guarded.scoped("operator", &["operate"]);
    let body = json!({ "key_life_ms": 3_600_000 }).to_string();
    let make = |key: &str, body: &str| guarded.send("POST", "/api/v1/access/codes", key, body);
    assert_eq!(make(&operator, &body).0, 403);
    let (status, answer) = make(&guarded.admin, &json!({ "valid_ms": 1 }).to_string());
    assert_eq!((status, &answer["error"]), (400, &json!("invalid")), "{answer}");
    let (status, answer) = make(&guarded.admin, &body);
    assert_eq!((status, &answer["code"]["key_life_ms"]), (201, &json!(3_600_000)), "{answer}");
    let listed = guarded.send("GET", "/api/v1/access/codes", &guarded.admin, "").1;
    assert!(!listed.to_string().contains(secret(answer["text"].as_str().unwrap())), "{listed}");
}

/// An agent with a settings file.
struct Agent {
    folder: tempfile::TempDir,
}

impl Agent {
    fn new(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let settings = format!(
            "[agent]\nurl = '{url}'\nagent_id = 'web1'\ntoken_file = '{path}/key'\n\
             spool_dir = '{path}/spool'\ninterval = '100ms'\n[host]\n"
        );
        fs::write(folder.path().join("agent.toml"), settings).unwrap();
        Self { folder }
    }

    fn run(&self, words: &[&str]) -> Output {
        let config = self.folder.path().join("agent.toml");
        Command::new(agent_program("granary-agent"))
            .arg("--config")
            .arg(config)
            .args(words)
            .output()
            .unwrap()
    }

    fn key(&self) -> String {
        fs::read_to_string(self.folder.path().join("key")).unwrap().trim().to_owned()
    }
}

#[test]
fn an_agent_enrolls_once_delivers_and_renews_its_key() {
    let guarded = Guarded::start();
    let url = &guarded.daemon.url;
    let agent = Agent::new(url);
    let refused = agent.run(&["enroll", url, "grc_wrong"]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && text.contains("the code is not valid"), "{text}");
    assert!(!agent.folder.path().join("key").exists());
    let text = code(&guarded, &[]);
    let enrolled = agent.run(&["enroll", url, &text]);
    assert!(enrolled.status.success(), "{}", String::from_utf8_lossy(&enrolled.stderr));
    let mode = fs::metadata(agent.folder.path().join("key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = String::from_utf8(agent.run(&["enroll", url, &text]).stderr).unwrap();
    assert!(again.contains("the file exists"), "{again}");
    let run = || {
        let output = agent.run(&["run", "--rounds", "2"]);
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !log.contains("status 40"), "{log}");
        log
    };
    let first = agent.key();
    run();
    assert_eq!(agent.key(), first, "the key is new");
    // An agent with a replaced secret renews its key as in the last third of the key's lifetime.
    guarded.output(&guarded.admin, &["key", "rotate", "web1", "--overlap", "1h"]);
    let log = run();
    let second = agent.key();
    assert!(second != first && log.contains("renewed the key"), "{log}");
    assert!(!log.contains(secret(&second)), "{log}");
    // The replaced secret overlaps with the new one.
    for key in [&first, &second] {
        assert_eq!(guarded.send("POST", "/api/v1/ingest", key, &batch("web1")).0, 200);
    }
    run();
    assert_eq!(agent.key(), second);
    let keys = guarded.send("GET", "/api/v1/access/keys", &guarded.admin, "").1;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2, "{keys}");
}
