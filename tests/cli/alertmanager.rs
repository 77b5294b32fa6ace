//! Notifications of firing and resolved alerts to Alertmanagers: to a test server, which may be
//! down, and to the real Alertmanager.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    alerts::{RULES, poll_until, send_level},
    daemon::{Daemon, SECONDS, granary, granularities, request},
    hook::{Hook, tls_file},
    notifications,
    peers::need,
};

/// Returns the alerts of all requests that the server received.
fn received_alerts(hook: &Hook) -> Vec<Value> {
    let bodies = hook.received().into_iter();
    bodies.flat_map(|(_, body)| body.as_array().unwrap().clone()).collect()
}

fn start(urls: &[String]) -> Daemon {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.yml");
    fs::write(&path, RULES.replace("FOR", "0s")).unwrap();
    let alerts = format!("[alerts]\nrules = ['{}']\nalertmanagers = {urls:?}\n", path.display());
    Daemon::start_in(dir, &(alerts + &granularities(&SECONDS)))
}

fn alert_time(alert: &Value, key: &str) -> jiff::Timestamp {
    alert[key].as_str().unwrap().parse().unwrap()
}

#[test]
fn all_alertmanagers_are_notified_although_one_is_down() {
    let hook = Hook::start(None);
    // No server listens on this address yet.
    let offline = Hook::free_address();
    let daemon = start(&[format!("http://{}", hook.address), format!("http://{offline}")]);
    send_level(&daemon, 7.0);
    let received = poll_until(&daemon, "an alert", || received_alerts(&hook).first().cloned());
    assert_eq!(received["labels"], json!({"alertname": "High", "host": "a", "severity": "page"}));
    assert_eq!(received["annotations"]["summary"], "a is at 7");
    assert!(alert_time(&received, "endsAt") > jiff::Timestamp::now(), "{received}");
    poll_until(&daemon, "a failure", || {
        let failed = "granary_notifications_total{outcome=\"failed\"} 0";
        (!daemon.metrics().contains(failed)).then_some(())
    });
    // Once the second server runs, it receives the current state.
    let second_hook = Hook::start(Some(offline));
    let late_alert =
        poll_until(&daemon, "the same alert", || received_alerts(&second_hook).first().cloned());
    assert_eq!(
        (&late_alert["labels"], &late_alert["startsAt"]),
        (&received["labels"], &received["startsAt"])
    );
    send_level(&daemon, 1.0);
    for hook in [&hook, &second_hook] {
        let resolved = poll_until(&daemon, "the end", || {
            received_alerts(hook)
                .into_iter()
                .find(|alert| alert_time(alert, "endsAt") < jiff::Timestamp::now())
        });
        assert_eq!(resolved["startsAt"], received["startsAt"]);
    }
    // Each server received one firing and one resolved notification.
    assert_eq!((received_alerts(&hook).len(), received_alerts(&second_hook).len()), (2, 2));
    let (status, answer) = request(&daemon.url, "GET", "/api/v1/alertmanagers", &[], "").unwrap();
    assert_eq!((status, answer["data"]["activeAlertmanagers"].as_array().unwrap().len()), (200, 2));
}

#[test]
fn an_alertmanager_behind_tls_receives_a_password_headers_external_labels_and_links() {
    let hook = Hook::start_tls();
    let dir = tempfile::tempdir().unwrap();
    let path_of = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path_of("rules.yml"), RULES.replace("FOR", "0s")).unwrap();
    fs::write(path_of("password"), "wrong\n").unwrap();
    let settings = format!(
        "[server]\nexternal_url = 'https://granary.example.org/'\n\
         [alerts]\nrules = ['{}']\nexternal_labels = {{ region = 'eu', severity = 'none' }}\n\
         [[alerts.alertmanagers]]\nurl = 'https://localhost:{}/am/'\n\
         [alerts.alertmanagers.http_config]\n\
         basic_auth = {{ username = 'granary', password_file = '{}' }}\n\
         tls_config = {{ ca_file = '{}' }}\nhttp_headers = {{ X-Scope = {{ values = ['b'] }} }}\n",
        path_of("rules.yml"),
        hook.address.port(),
        path_of("password"),
        path_of("ca.pem"),
    );
    // This authority did not sign the server's certificate.
    fs::copy(tls_file("server.pem"), path_of("ca.pem")).unwrap();
    let daemon = Daemon::start_in(dir, &(settings + &granularities(&SECONDS)));
    send_level(&daemon, 7.0);
    let none_sent = "granary_notifications_total{outcome=\"sent\"} 0";
    poll_until(&daemon, "a failure", || {
        let metrics = daemon.metrics();
        let none_failed = "granary_notifications_total{outcome=\"failed\"} 0";
        (metrics.contains(none_sent) && !metrics.contains(none_failed)).then_some(())
    });
    assert_eq!(received_alerts(&hook).len(), 0);
    // The daemon reads both files again for each request.
    fs::write(daemon.dir.path().join("password"), "secret\n").unwrap();
    fs::copy(tls_file("authority.pem"), daemon.dir.path().join("ca.pem")).unwrap();
    let alert = poll_until(&daemon, "an alert", || received_alerts(&hook).first().cloned());
    assert_eq!(hook.received()[0].0, "/am/api/v2/alerts");
    let head = hook.heads()[0].to_lowercase();
    let basic = "authorization: basic z3jhbmfyetpzzwnyzxq=";
    assert!(head.contains(basic) && head.contains("x-scope: b\r\n"), "{head}");
    // The alert's own labels take precedence, as in Prometheus.
    let labels = json!({"alertname": "High", "host": "a", "region": "eu", "severity": "page"});
    assert_eq!(alert["labels"], labels);
    let link = "https://granary.example.org/graph?g0.expr=level+%3E+5&g0.tab=1";
    assert_eq!(alert["generatorURL"], link);
    // The daemon lists the same alert, and silences match its external labels.
    let (_, listed) = request(&daemon.url, "GET", "/api/v2/alerts", &[], "").unwrap();
    assert_eq!((&listed[0]["labels"], &listed[0]["generatorURL"]), (&labels, &json!(link)));
    let silence = ["silence", "add", "region=eu", "--comment", "x"];
    let output = granary().args(silence).args(["--url", &daemon.url]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (_, answer) = request(&daemon.url, "GET", "/api/v1/alerts", &[], "").unwrap();
    let alert = &answer["data"]["alerts"][0];
    assert_eq!(alert["silencedBy"].as_array().unwrap().len(), 1, "{alert}");
    assert_eq!(alert["labels"]["region"], Value::Null, "Prometheus' list has its own labels");
}

#[test]
fn alerts_that_an_alertmanager_rejects_do_not_delay_others() {
    let hook = Hook::start_failing(None, Some("\"h00\""));
    let daemon = start(&[format!("http://{}", hook.address)]);
    let high = |host: usize| json!({ "metric": "level", "tags": { "host": format!("h{host:02}") }, "value": 7 });
    // More alerts than fit in one request; the first request always fails.
    daemon.accept(&(0..80).map(high).collect());
    poll_until(&daemon, "the other alerts", || {
        received_alerts(&hook)
            .iter()
            .any(|received| received["labels"]["host"] == "h79")
            .then_some(())
    });
    assert!(received_alerts(&hook).iter().all(|received| received["labels"]["host"] != "h00"));
    poll_until(&daemon, "failed alerts are retried", || {
        let metrics = daemon.metrics();
        let failed = "granary_notifications_total{outcome=\"failed\"} ";
        let count = metrics.lines().find_map(|line| line.strip_prefix(failed))?;
        (count.parse::<f64>().unwrap() > 64.0).then_some(())
    });
}

/// A process of the real Alertmanager, which is killed when this value is dropped.
pub(crate) struct RealAlertmanager {
    process: Child,
    pub(crate) url: String,
}

impl Drop for RealAlertmanager {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl RealAlertmanager {
    /// Starts an Alertmanager with a configuration, and with its data in a folder.
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
fn the_real_alertmanager_accepts_alerts_and_amtool_lists_them() {
    need("amtool");
    let folder = tempfile::tempdir().unwrap();
    let real = RealAlertmanager::start(
        folder.path(),
        "route: {receiver: none}\nreceivers: [{name: none}]\n",
    );
    let url = real.url.clone();
    let daemon = start(std::slice::from_ref(&url));
    let listed = || {
        let alertmanager = format!("--alertmanager.url={url}");
        let output = Command::new("amtool").args(["alert", &alertmanager, "-o", "json"]).output();
        serde_json::from_slice::<Value>(&output.unwrap().stdout).unwrap_or_default()
    };
    send_level(&daemon, 7.0);
    let listed_one = poll_until(&daemon, "amtool", || listed().get(0).cloned());
    assert_eq!(listed_one["labels"]["alertname"], "High");
    assert_eq!(listed_one["annotations"]["summary"], "a is at 7");
    send_level(&daemon, 1.0);
    poll_until(&daemon, "the end", || listed().as_array()?.is_empty().then_some(()));
}

const ROUTES: &str = "route:
  receiver: all
  group_by: [alertname]
  routes:
  - match_re: {host: a|b}
    matchers: [severity=\"page\"]
    receiver: some
    continue: true
  - matchers: [host=\"c\"]
    receiver: third
  - receiver: each
    group_by: ['...']
inhibit_rules:
- source_matchers: [host=\"c\"]
  target_matchers: [host=~\"b|d\"]
  equal: [alertname]
receivers:
- name: all
- name: some
- name: each
- name: third
";

/// Returns alerts without the fields that differ between two Alertmanagers: times of receipt and
/// expiry, and IDs.
fn comparable(mut value: Value) -> Value {
    match &mut value {
        Value::Array(all) => all.iter_mut().for_each(|value| *value = comparable(value.take())),
        Value::Object(all) => {
            all.retain(|key, _| !matches!(&**key, "endsAt" | "updatedAt"));
            if let Some(ids) = all.get_mut("silencedBy") {
                *ids = json!(ids.as_array().unwrap().len());
            }
            if let Some(at) = all.get_mut("startsAt") {
                let at_ms = at.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
                *at = json!(at_ms.as_millisecond());
            }
            all.values_mut().for_each(|value| *value = comparable(value.take()));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

#[test]
#[ignore = "needs prometheus-alertmanager; .ci/run installs it and runs this"]
fn alerts_groups_and_receivers_are_listed_as_by_a_real_alertmanager() {
    need("amtool");
    let folder = tempfile::tempdir().unwrap();
    let real = RealAlertmanager::start(folder.path(), ROUTES);
    let daemon = notifications::start(ROUTES, &format!("alertmanagers = ['{}']", real.url));
    for host in ["a", "b", "c", "d"] {
        notifications::set(&daemon, host, 7.0);
    }
    let amtool = |url: &str, args: &[&str]| {
        let alertmanager = format!("--alertmanager.url={url}");
        let output = Command::new("amtool").arg(alertmanager).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let list = |url: &str, path: &str| {
        let (status, answer) = request(url, "GET", path, &[], "").unwrap();
        assert_eq!(status, 200, "{path}: {answer}");
        comparable(answer)
    };
    for url in [&real.url, &daemon.url] {
        // Alertmanager does not answer before it has started.
        poll_until(&daemon, "all", || {
            let (_, alerts) = request(url, "GET", "/api/v2/alerts", &[], "").ok()?;
            (alerts.as_array()?.len() == 4).then_some(())
        });
        amtool(url, &["silence", "add", "--author=ann", "--comment=x", "host=~a|b"]);
    }
    let queries = [
        "",
        "?receiver=some",
        "?receiver=so.*|third",
        "?receiver=nobody",
        "?active=false",
        "?silenced=false",
        "?inhibited=false",
        "?active=false&silenced=false",
        "?unprocessed=false",
        "?filter=host%3D~%22a%7Cc%22&filter=severity%3Dpage",
        "?filter=host!%3Da",
        "?filter=team%3D%22%22",
    ];
    for query in queries {
        for list_of in ["/api/v2/alerts", "/api/v2/alerts/groups"] {
            let path = format!("{list_of}{query}");
            assert_eq!(list(&daemon.url, &path), list(&real.url, &path), "{path}");
        }
    }
    let groups = list(&daemon.url, "/api/v2/alerts/groups");
    assert_eq!(groups.as_array().unwrap().len(), 5, "{groups}");
    assert_eq!(list(&daemon.url, "/api/v2/receivers"), list(&real.url, "/api/v2/receivers"));
    // Both programs show the same routes.
    for labels in [&["host=a", "severity=page"][..], &["host=c"], &["x=y"]] {
        let all = [&["config", "routes", "test"], labels].concat();
        assert_eq!(amtool(&daemon.url, &all), amtool(&real.url, &all), "{labels:?}");
    }
    for args in [&["--receiver=each"][..], &["--inhibited"], &["-s", "host=a"], &["host=c"]] {
        let all = [&["alert", "query", "-o", "json"], args].concat();
        let listed = |url| comparable(serde_json::from_str(&amtool(url, &all)).unwrap());
        assert_eq!(listed(&daemon.url), listed(&real.url), "{args:?}");
    }
}
