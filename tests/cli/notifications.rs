//! Granary's own receivers: fake servers across kill -9, mail with TLS, and a comparison with a
//! real Alertmanager.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    alertmanager::RealAlertmanager,
    alerts::{RULES, ask, poll_until},
    daemon::{Daemon, SECONDS, granary, granularities, request},
    hook::Hook,
    peers::need,
};

/// Each host is a separate group, notified immediately, and not again during the test.
pub(crate) const ROUTE: &str = "route: {receiver: own, group_by: [host], group_wait: 0s, group_interval: 1s, \
                     repeat_interval: 1h}\n";

/// Starts a daemon with a file of receivers, and with more settings of `[alerts]`.
pub(crate) fn start(notifications: &str, more: &str) -> Daemon {
    let dir = tempfile::tempdir().unwrap();
    let path_of = |name: &str| dir.path().join(name);
    fs::write(path_of("rules.yml"), RULES.replace("FOR", "0s")).unwrap();
    fs::write(path_of("notify.yml"), notifications).unwrap();
    let settings = format!(
        "[alerts]\nrules = ['{}']\nnotifications = '{}'\n{more}\n",
        path_of("*rules.yml").display(),
        path_of("notify.yml").display()
    );
    Daemon::start_in(dir, &(settings + &granularities(&SECONDS)))
}

pub(crate) fn set(daemon: &Daemon, host: &str, level: f64) {
    let tags = json!({ "host": host });
    daemon.accept(&json!([{ "metric": "level", "tags": tags, "value": level }]));
}

pub(crate) fn webhook(hook: &Hook) -> String {
    format!(
        "{ROUTE}receivers:\n- name: own\n  webhook_configs: [{{url: 'http://{}/'}}]\n",
        hook.address
    )
}

/// Returns the notifications about a host in order, each with its state and start.
pub(crate) fn notifications_of(hook: &Hook, host: &str) -> Vec<(String, String)> {
    let documents = hook.received().into_iter().map(|(_, body)| body);
    let alerts = documents.flat_map(|document| document["alerts"].as_array().unwrap().clone());
    let host_alerts = alerts.filter(|alert| alert["labels"]["host"] == host);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    host_alerts.map(|alert| (text(&alert["status"]), text(&alert["startsAt"]))).collect()
}

#[test]
fn a_webhook_that_was_down_is_notified_once_when_it_returns() {
    let address = Hook::free_address();
    let settings = format!(
        "{ROUTE}receivers:\n- name: own\n  webhook_configs: [{{url: 'http://{address}/'}}]\n"
    );
    let daemon = start(&settings, "");
    set(&daemon, "a", 7.0);
    set(&daemon, "b", 7.0);
    let failed = "granary_receiver_notifications_total{outcome=\"failed\",receiver=\"own\"}";
    poll_until(&daemon, "a failure", || daemon.metrics().contains(failed).then_some(()));
    assert!(daemon.metrics().contains("granary_receiver_queue_length{receiver=\"own\"} 2"));
    set(&daemon, "b", 1.0);
    let hook = Hook::start(Some(address));
    poll_until(&daemon, "both", || {
        let ends = |host: &str| {
            notifications_of(&hook, host).last().map(|notification| notification.0.clone())
        };
        (ends("a")? == "firing" && ends("b")? == "resolved").then_some(())
    });
    poll_until(&daemon, "an empty queue", || {
        daemon.metrics().contains("granary_receiver_queue_length{receiver=\"own\"} 0").then_some(())
    });
    assert_eq!(notifications_of(&hook, "a").len(), 1);
    let document = hook
        .received()
        .into_iter()
        .map(|(_, body)| body)
        .find(|body| body["groupLabels"]["host"] == "a");
    let document = document.unwrap();
    assert_eq!((&document["version"], &document["receiver"]), (&json!("4"), &json!("own")));
    assert_eq!(document["groupKey"], "{}:{host=\"a\"}");
    assert_eq!(document["commonAnnotations"], json!({"summary": "a is at 7"}));
}

#[test]
fn a_start_with_an_invalid_rule_file_resolves_none_of_its_alerts() {
    let hook = Hook::start(None);
    let mut daemon = start(&webhook(&hook), "");
    let path_of = |name: &str| daemon.dir.path().join(name);
    let rules = path_of("rules.yml");
    let other =
        RULES.replace("FOR", "0s").replace("level", "other").replace("name: own", "name: b");
    fs::write(path_of("other-rules.yml"), other).unwrap();
    set(&daemon, "a", 7.0);
    // A kill before the daemon recorded the delivery would repeat the notification.
    poll_until(&daemon, "the firing alert", || {
        let metrics = daemon.metrics();
        let delivered = [
            "notifications_total{outcome=\"sent\",receiver=\"own\"} 1",
            "queue_length{receiver=\"own\"} 0",
        ];
        delivered
            .iter()
            .all(|line| metrics.contains(&format!("granary_receiver_{line}")))
            .then_some(())
    });
    let good = fs::read_to_string(&rules).unwrap();
    daemon.kill();
    fs::write(&rules, good.replace("expr", "exp")).unwrap();
    daemon.restart();
    let tags = json!({ "host": "b" });
    daemon.accept(&json!([{ "metric": "other", "tags": tags, "value": 7.0 }]));
    poll_until(&daemon, "the valid file", || notifications_of(&hook, "b").first().cloned());
    assert_eq!(notifications_of(&hook, "a").len(), 1, "no evaluation ended the alert");
    let (_, shown) =
        request(&daemon.url, "GET", "/api/v2/alerts?filter=host%3Da", &[], "").unwrap();
    assert_eq!(shown[0]["status"]["state"], "active", "{shown}");
    // The list in the format of Prometheus also contains the alert.
    let alerts = ask(&daemon, "/api/v1/alerts")["alerts"].clone();
    let is_a = |value: &Value| value["labels"]["host"] == "a" && value["state"] == "firing";
    assert!(alerts.as_array().unwrap().iter().any(is_a), "{alerts}");
    // After the file was corrected, the alert ends with a single notification.
    set(&daemon, "a", 1.0);
    fs::write(&rules, good).unwrap();
    let (status, _) = request(&daemon.url, "POST", "/-/reload", &[], "").unwrap();
    assert_eq!(status, 200);
    poll_until(&daemon, "the end", || {
        (notifications_of(&hook, "a").last()?.0 == "resolved").then_some(())
    });
    assert_eq!(notifications_of(&hook, "a").len(), 2, "{:?}", notifications_of(&hook, "a"));
}

/// Kills the daemon at random moments; `GRANARY_TEST_KILLS` sets the number of kills.
#[test]
fn kill_9_loses_no_notification_and_resolves_no_alert() {
    let kills: u64 = env::var("GRANARY_TEST_KILLS").map_or(5, |text| text.parse().unwrap());
    let hook = Hook::start(None);
    let mut daemon = start(&webhook(&hook), "");
    set(&daemon, "stays", 7.0);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..kills {
        let level = if round % 2 == 0 { 7.0 } else { 1.0 };
        set(&daemon, "flips", level);
        // A sample counts for five minutes, and many rounds take longer.
        set(&daemon, "stays", 7.0);
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        thread::sleep(Duration::from_millis((random >> 33) % 1500));
        daemon.kill();
        daemon.restart();
        let expected = if round % 2 == 0 { "firing" } else { "resolved" };
        poll_until(&daemon, expected, || {
            (notifications_of(&hook, "flips").last()?.0 == expected).then_some(())
        });
    }
    poll_until(&daemon, "the alert that stays", || {
        notifications_of(&hook, "stays").first().cloned()
    });
    let stays_notifications = notifications_of(&hook, "stays");
    let distinct: BTreeSet<_> = stays_notifications.iter().collect();
    assert_eq!(distinct.len(), 1, "the alert fires without a break: {distinct:?}");
    // Each change was notified once, or once more when the daemon was killed before it recorded the
    // delivery.
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    for state in notifications_of(&hook, "flips") {
        *counts.entry(state).or_default() += 1;
    }
    let count_of =
        |status: &str| counts.keys().filter(|notification| notification.0 == status).count() as u64;
    assert_eq!(count_of("firing"), kills.div_ceil(2), "{counts:?}");
    assert_eq!(count_of("resolved"), kills / 2, "{counts:?}");
    let repeats_of_stays = stays_notifications.len() as u64 - 1;
    let duplicates = counts.values().map(|count| count - 1).sum::<u64>() + repeats_of_stays;
    assert!(duplicates <= kills, "{counts:?}");
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
}

#[test]
fn a_silence_suppresses_notifications_and_an_acknowledgement_stops_escalation() {
    let hook = Hook::start(None);
    let url = |path: &str| format!("webhook_configs: [{{url: 'http://{}/{path}'}}]", hook.address);
    let route = ROUTE.replace("}\n", ", escalate: [{after: 8s, receiver: boss}]}\n");
    let receivers = [("own", url("own")), ("boss", url("boss"))]
        .map(|(name, urls)| format!("- name: {name}\n  {urls}\n"));
    let daemon = start(&format!("{route}receivers:\n{}", receivers.concat()), "");
    let run = |args: &[&str]| {
        let output = granary().args(args).args(["--url", &daemon.url]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let notifications_at = |path: &str, host: &str| {
        let documents = hook.received_at(path);
        documents.iter().filter(|document| document["groupLabels"]["host"] == host).count()
    };
    let id = run(&["silence", "add", "host=quiet", "--comment", "moved", "--by", "ann"]);
    set(&daemon, "quiet", 7.0);
    set(&daemon, "kept", 7.0);
    poll_until(&daemon, "the alert to acknowledge", || {
        (notifications_at("/own", "kept") > 0).then_some(())
    });
    run(&["alerts", "ack", "host=kept", "--by", "ann"]);
    set(&daemon, "left", 7.0);
    poll_until(&daemon, "an escalation", || (notifications_at("/boss", "left") > 0).then_some(()));
    assert_eq!(notifications_at("/boss", "kept"), 0, "the alert is acknowledged");
    assert_eq!(notifications_at("/own", "quiet") + notifications_at("/boss", "quiet"), 0);
    run(&["silence", "expire", id.trim()]);
    poll_until(&daemon, "the alert after its silence", || {
        (notifications_at("/own", "quiet") > 0).then_some(())
    });
}

#[test]
fn slack_pagerduty_and_commands_are_notified_in_their_formats() {
    let hook = Hook::start(None);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let secret = folder.path().join("key");
    fs::write(&secret, "the-key\n").unwrap();
    let settings = format!(
        "{ROUTE}receivers:
- name: own
  slack_configs:
  - {{api_url: 'http://{0}/slack', channel: '#ops', fields: [{{title: host, value: '{{{{ .CommonLabels.host }}}}'}}]}}
  pagerduty_configs:
  - {{url: 'http://{0}/pagerduty', routing_key_file: '{1}', severity: '{{{{ .CommonLabels.severity }}}}'}}
  command_configs:
  - {{command: [/bin/sh, -c, 'cat >> {2}; echo >> {2}']}}
",
        hook.address,
        secret.display(),
        out.display()
    );
    let daemon = start(&settings, "");
    set(&daemon, "a", 7.0);
    let slack = poll_until(&daemon, "Slack", || hook.received_at("/slack").first().cloned());
    assert_eq!((&slack["channel"], &slack["username"]), (&json!("#ops"), &json!("Granary")));
    let attachment = &slack["attachments"][0];
    assert_eq!(
        (&attachment["title"], &attachment["color"]),
        (&json!("[FIRING:1] a"), &json!("danger"))
    );
    assert_eq!(attachment["fields"], json!([{"title": "host", "value": "a", "short": false}]));
    assert!(attachment["text"].as_str().unwrap().contains("a is at 7"), "{attachment}");
    let event =
        poll_until(&daemon, "PagerDuty", || hook.received_at("/pagerduty").first().cloned());
    assert_eq!(
        (&event["event_action"], &event["routing_key"]),
        (&json!("trigger"), &json!("the-key"))
    );
    assert_eq!(
        (&event["payload"]["summary"], &event["payload"]["severity"]),
        (&json!("[FIRING:1] a"), &json!("page"))
    );
    set(&daemon, "a", 1.0);
    let end = poll_until(&daemon, "the end", || hook.received_at("/pagerduty").get(1).cloned());
    assert_eq!((&end["event_action"], &end["dedup_key"]), (&json!("resolve"), &event["dedup_key"]));
    let lines = poll_until(&daemon, "the command", || {
        let text = fs::read_to_string(&out).ok()?;
        let lines =
            text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>().ok()?;
        (lines.len() == 2).then_some(lines)
    });
    assert_eq!((&lines[0]["status"], &lines[1]["status"]), (&json!("firing"), &json!("resolved")));
    // Slack receives no resolved notification, because it is not configured.
    assert_eq!(hook.received_at("/slack").len(), 1);
}

#[test]
fn a_file_of_receivers_is_checked_and_an_invalid_one_changes_nothing() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/notifications.yml");
    let check = |path: &Path, labels: &[&str]| {
        let command = granary().args(["rules", "notifications"]).arg(path).args(labels).output();
        let output = command.unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.success(), text)
    };
    let (succeeds, output) = check(&shipped, &[]);
    assert!(succeeds && output.contains("3 routes, 3 receivers with 4 integrations"), "{output}");
    let (_, output) = check(&shipped, &["alertname=High", "severity=critical"]);
    let route = "{}/{severity=\"critical\"}";
    let expected = format!("duty, after 900 s boss, grouped by alertname, route {route}\n");
    assert_eq!(output, expected);
    let hook = Hook::start(None);
    let daemon = start(&webhook(&hook), "");
    let path = daemon.dir.path().join("notify.yml");
    let bad = webhook(&hook).replace("receiver: own", "receiver: nobody");
    fs::write(&path, bad + "opsgenie: x\n").unwrap();
    let (succeeds, output) = check(&path, &[]);
    assert!(!succeeds && output.contains("notify.yml") && output.contains("opsgenie"), "{output}");
    let (status, answer) = request(&daemon.url, "POST", "/-/reload", &[], "").unwrap();
    assert!(status == 500 && answer.to_string().contains("opsgenie"), "{answer}");
    // Notifications continue with the earlier file.
    set(&daemon, "a", 7.0);
    poll_until(&daemon, "the webhook", || hook.received().first().cloned());
    // A reloaded route notifies another receiver.
    let other = Hook::start(None);
    fs::write(&path, webhook(&other)).unwrap();
    let (status, _) = request(&daemon.url, "POST", "/-/reload", &[], "").unwrap();
    assert_eq!(status, 200);
    set(&daemon, "b", 7.0);
    poll_until(&daemon, "the other receiver", || notifications_of(&other, "b").first().cloned());
}

#[test]
#[ignore = "needs prometheus-alertmanager; .ci/run installs it and runs this"]
fn webhook_documents_equal_those_of_a_real_alertmanager() {
    let (theirs, ours) = (Hook::start(None), Hook::start(None));
    let settings = |hook: &Hook| {
        format!(
            "route:
  receiver: all
  group_by: [alertname]
  group_wait: 3s
  group_interval: 2s
  routes:
  - match_re: {{host: a|b}}
    matchers: [severity=\"page\"]
    receiver: some
    continue: true
  - receiver: each
    group_by: ['...']
inhibit_rules:
- source_matchers: [host=\"c\"]
  target_matchers: [host=\"d\"]
  equal: [alertname]
receivers:
- name: all
- name: some
  webhook_configs: [{{url: 'http://{0}/some'}}]
- name: each
  webhook_configs: [{{url: 'http://{0}/each', send_resolved: false}}]
",
            hook.address
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let real = RealAlertmanager::start(folder.path(), &settings(&theirs));
    let daemon = start(&settings(&ours), &format!("alertmanagers = ['{}']", real.url));
    for host in ["c", "a", "b", "d"] {
        set(&daemon, host, 7.0);
    }
    let comparable_requests = |hook: &Hook| {
        let mut all: Vec<_> = hook.received();
        for (_, body) in &mut all {
            // The addresses of the two programs differ.
            body["externalURL"] = Value::Null;
            for alert in body["alerts"].as_array_mut().unwrap() {
                alert["generatorURL"] = Value::Null;
            }
        }
        all.sort_by_key(|request| format!("{request:?}"));
        all
    };
    let compare_when_received = |daemon: &Daemon, count: usize| {
        poll_until(daemon, "both", || {
            (theirs.received().len() >= count && ours.received().len() >= count).then_some(())
        });
        assert_eq!(comparable_requests(&theirs), comparable_requests(&ours));
    };
    // The two programs send four notifications each; d is inhibited by c.
    compare_when_received(&daemon, 4);
    set(&daemon, "a", 1.0);
    compare_when_received(&daemon, 5);
    set(&daemon, "b", 1.0);
    compare_when_received(&daemon, 6);
}

/// The process of a mail server in Python, and the mails that it received.
struct MailServer {
    process: Child,
    port: u16,
    mails: Arc<Mutex<Vec<Value>>>,
}

impl MailServer {
    fn start(folder: &Path) -> Self {
        let python = env::var("GRANARY_TEST_PYTHON").unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/smtp_server.py");
        let process = Command::new(python).arg(script).arg(folder).stdout(Stdio::piped()).spawn();
        let mut process = process.unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        let mails = Arc::new(Mutex::new(Vec::new()));
        let all = mails.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                all.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { process, port, mails }
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[test]
#[ignore = "needs aiosmtpd; .ci/run installs it and runs this"]
fn mail_arrives_at_a_real_server_with_starttls_and_a_password() {
    need("python3");
    let folder = tempfile::tempdir().unwrap();
    let server = MailServer::start(folder.path());
    fs::write(folder.path().join("password"), "secret\n").unwrap();
    let path_of = |name: &str| folder.path().join(name).display().to_string();
    let settings = |tls: &str| {
        format!(
        "{ROUTE}global: {{smtp_smarthost: 'localhost:{}', smtp_from: 'Granary <granary@example.org>',
  smtp_auth_username: granary, smtp_auth_password_file: '{}'}}
receivers:
- name: own
  email_configs:
  - {{to: 'ann@example.org, bob@example.org', send_resolved: true{tls}}}
",
        server.port,
        path_of("password"),
    )
    };
    let tls = format!(", tls_config: {{ca_file: '{}'}}", path_of("ca.pem"));
    let daemon = start(&settings(&tls), "");
    set(&daemon, "a", 7.0);
    let mail = poll_until(&daemon, "a mail", || server.mails.lock().unwrap().first().cloned());
    assert_eq!(mail["encrypted"], true);
    assert_eq!(mail["to"], json!(["ann@example.org", "bob@example.org"]));
    assert_eq!(
        (&mail["from"], &mail["subject"]),
        (&json!("granary@example.org"), &json!("[FIRING:1] a"))
    );
    for kind in ["text/plain", "text/html"] {
        assert!(mail["parts"][kind].as_str().unwrap().contains("a is at 7"), "{mail}");
    }
    set(&daemon, "a", 1.0);
    let end = poll_until(&daemon, "the end", || server.mails.lock().unwrap().get(1).cloned());
    assert_eq!(end["subject"], "[RESOLVED] a");
    assert_ne!(end["id"], mail["id"]);

    // A server with an unknown certificate receives nothing.
    fs::write(daemon.dir.path().join("notify.yml"), settings("")).unwrap();
    let (status, _) = request(&daemon.url, "POST", "/-/reload", &[], "").unwrap();
    assert_eq!(status, 200);
    set(&daemon, "b", 7.0);
    let failed = "granary_receiver_notifications_total{outcome=\"failed\",receiver=\"own\"}";
    poll_until(&daemon, "a failure", || daemon.metrics().contains(failed).then_some(()));
    assert_eq!(server.mails.lock().unwrap().len(), 2);
}
