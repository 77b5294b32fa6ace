//! Alertmanagers are told of what fires and ends: one of the test's own, which may be away, and the
//! real one with amtool.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    alerts::{RULES, set, until},
    daemon::{Daemon, SECONDS, granularities},
    hook::Hook,
    peers::need,
};

/// The alerts of all requests.
fn alerts(own: &Hook) -> Vec<Value> {
    let bodies = own.taken().into_iter();
    bodies.flat_map(|(_, body)| body.as_array().unwrap().clone()).collect()
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
    let own = Hook::start(None);
    // Nobody listens there yet.
    let away = Hook::free_address();
    let daemon = start(&[format!("http://{}", own.address), format!("http://{away}")]);
    set(&daemon, 7.0);
    let told = until(&daemon, "an alert", || alerts(&own).first().cloned());
    assert_eq!(told["labels"], json!({"alertname": "High", "host": "a", "severity": "page"}));
    assert_eq!(told["annotations"]["summary"], "a is at 7");
    assert!(time(&told, "endsAt") > jiff::Timestamp::now(), "{told}");
    until(&daemon, "a failure", || {
        let failed = "granary_notifications_total{outcome=\"failed\"} 0";
        (!daemon.metrics().contains(failed)).then_some(())
    });
    // Once it is back, it is told what is so.
    let back = Hook::start(Some(away));
    let late = until(&daemon, "the same", || alerts(&back).first().cloned());
    assert_eq!((&late["labels"], &late["startsAt"]), (&told["labels"], &told["startsAt"]));
    set(&daemon, 1.0);
    for own in [&own, &back] {
        let ended = until(&daemon, "the end", || {
            alerts(own).into_iter().find(|own| time(own, "endsAt") < jiff::Timestamp::now())
        });
        assert_eq!(ended["startsAt"], told["startsAt"]);
    }
    // Each was told once that it fires, and once that it does not.
    assert_eq!((alerts(&own).len(), alerts(&back).len()), (2, 2));
    let (status, answer) =
        crate::daemon::request(&daemon.url, "GET", "/api/v1/alertmanagers", &[], "").unwrap();
    assert_eq!((status, answer["data"]["activeAlertmanagers"].as_array().unwrap().len()), (200, 2));
}

/// A real Alertmanager.
pub(crate) struct Real {
    process: Child,
    pub(crate) url: String,
}

impl Drop for Real {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Real {
    /// With a configuration; what it keeps is in the folder.
    pub(crate) fn start(folder: &Path, configuration: &str) -> Self {
        need("prometheus-alertmanager");
        let path = folder.join("alertmanager.yml");
        fs::write(&path, configuration).unwrap();
        let port = Hook::free_address().port();
        let process = Command::new("prometheus-alertmanager")
            .arg(format!("--config.file={}", path.display()))
            .arg(format!("--storage.path={}", folder.display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--cluster.listen-address=")
            .stderr(Stdio::null())
            .spawn();
        Self { process: process.unwrap(), url: format!("http://127.0.0.1:{port}") }
    }
}

#[test]
#[ignore = "needs prometheus-alertmanager; .ci/run installs it and runs this"]
fn the_real_alertmanager_takes_alerts_and_amtool_lists_them() {
    need("amtool");
    let folder = tempfile::tempdir().unwrap();
    let real = Real::start(folder.path(), "route: {receiver: none}\nreceivers: [{name: none}]\n");
    let url = real.url.clone();
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
