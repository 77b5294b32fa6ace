//! Alertmanagers are told of what fires and ends: one of the test's own, which may be away, and the
//! real one with amtool.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::{
    alerts::{RULES, set, until},
    daemon::{Daemon, SECONDS, granularities},
    peers::need,
};

/// Takes alerts as Alertmanager does, and remembers them.
struct Own {
    address: SocketAddr,
    taken: Arc<Mutex<Vec<Value>>>,
}

impl Own {
    /// At an address of before, or at any.
    fn start(address: Option<SocketAddr>) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(address.unwrap_or(any)).unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let all = taken.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut line, mut length) = (String::new(), 0);
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    let lower = line.to_lowercase();
                    if let Some(text) = lower.strip_prefix("content-length:") {
                        length = text.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let alerts: Vec<Value> = serde_json::from_slice(&body).unwrap();
                all.lock().unwrap().extend(alerts);
                let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { address, taken }
    }

    fn taken(&self) -> Vec<Value> {
        self.taken.lock().unwrap().clone()
    }
}

fn start(urls: &[String]) -> Daemon {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.yml");
    fs::write(&path, RULES.replace("FOR", "0s")).unwrap();
    let alerts = format!("[alerts]\nrules = ['{}']\nalertmanagers = {urls:?}\n", path.display());
    Daemon::start_in(dir, &(alerts + &granularities(&SECONDS)))
}

fn time(own: &Value, key: &str) -> jiff::Timestamp {
    own[key].as_str().unwrap().parse().unwrap()
}

#[test]
fn all_alertmanagers_are_told_and_one_that_is_away_holds_up_none() {
    let own = Own::start(None);
    // Nobody listens there yet.
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let daemon = start(&[format!("http://{}", own.address), format!("http://{away}")]);
    set(&daemon, 7.0);
    let told = until(&daemon, "an alert", || own.taken().first().cloned());
    assert_eq!(told["labels"], json!({"alertname": "High", "host": "a", "severity": "page"}));
    assert_eq!(told["annotations"]["summary"], "a is at 7");
    assert!(time(&told, "endsAt") > jiff::Timestamp::now(), "{told}");
    until(&daemon, "a failure", || {
        let failed = "granary_notifications_total{outcome=\"failed\"} 0";
        (!daemon.metrics().contains(failed)).then_some(())
    });
    // Once it is back, it is told what is so.
    let back = Own::start(Some(away));
    let late = until(&daemon, "the same", || back.taken().first().cloned());
    assert_eq!((&late["labels"], &late["startsAt"]), (&told["labels"], &told["startsAt"]));
    set(&daemon, 1.0);
    for own in [&own, &back] {
        let ended = until(&daemon, "the end", || {
            own.taken().into_iter().find(|own| time(own, "endsAt") < jiff::Timestamp::now())
        });
        assert_eq!(ended["startsAt"], told["startsAt"]);
    }
    // Each was told once that it fires, and once that it does not.
    assert_eq!((own.taken().len(), back.taken().len()), (2, 2));
    let (status, answer) =
        crate::daemon::request(&daemon.url, "GET", "/api/v1/alertmanagers", &[], "").unwrap();
    assert_eq!((status, answer["data"]["activeAlertmanagers"].as_array().unwrap().len()), (200, 2));
}

struct Real(Child);

impl Drop for Real {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
#[ignore = "needs prometheus-alertmanager; .ci/run installs it and runs this"]
fn the_real_alertmanager_takes_alerts_and_amtool_lists_them() {
    need("prometheus-alertmanager");
    need("amtool");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("alertmanager.yml");
    fs::write(&config, "route: {receiver: none}\nreceivers: [{name: none}]\n").unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let process = Command::new("prometheus-alertmanager")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.path={}", folder.path().display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .arg("--cluster.listen-address=")
        .stderr(Stdio::null())
        .spawn();
    let _real = Real(process.unwrap());
    let daemon = start(std::slice::from_ref(&url));
    let listed = || {
        let alertmanager = format!("--alertmanager.url={url}");
        let output = Command::new("amtool").args(["alert", &alertmanager, "-o", "json"]).output();
        serde_json::from_slice::<Value>(&output.unwrap().stdout).unwrap_or_default()
    };
    set(&daemon, 7.0);
    let listed_one = until(&daemon, "amtool", || listed().get(0).cloned());
    assert_eq!(listed_one["labels"]["alertname"], "High");
    assert_eq!(listed_one["annotations"]["summary"], "a is at 7");
    set(&daemon, 1.0);
    until(&daemon, "the end", || listed().as_array()?.is_empty().then_some(()));
}
