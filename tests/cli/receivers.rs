//! Receivers: links in messages, test notifications, acknowledgements that expire, and alerts of
//! other programs.

use std::fs;

use serde_json::{Value, json};

use crate::{
    alerts::{ask, poll_until},
    daemon::{Daemon, granary, request},
    hook::Hook,
    notifications::{ROUTE, notifications_of, set, start, webhook},
};

#[test]
fn notifications_contain_links_and_are_routed_by_external_labels() {
    let hook = Hook::start(None);
    let texts = "{{ .ExternalURL }} {{ (index .Alerts 0).GeneratorURL }}";
    let notifications = format!(
        "route:\n  receiver: nobody\n  routes:\n  - {{receiver: own, matchers: [region=eu], \
         group_by: [region], group_wait: 0s}}\nreceivers:\n- name: nobody\n- name: own\n  \
         webhook_configs: [{{url: 'http://{0}/'}}]\n  \
         slack_configs: [{{api_url: 'http://{0}/slack', text: '{texts}'}}]\n  \
         discord_configs: [{{webhook_url: 'http://{0}/discord'}}]\n  \
         pagerduty_configs: [{{routing_key: a, url: 'http://{0}/pagerduty'}}]\n",
        hook.address
    );
    let settings_of_alerts = "external_labels = { region = 'eu' }\n\
                [server]\nexternal_url = 'https://granary.example.org/g/'";
    let daemon = start(&notifications, settings_of_alerts);
    set(&daemon, "a", 7.0);
    let received = |path: &str| hook.received_at(path).first().cloned();
    let document = poll_until(&daemon, "a message", || received("/"));
    assert_eq!(document["externalURL"], "https://granary.example.org/g");
    assert_eq!(document["groupLabels"], json!({"region": "eu"}));
    let link = "https://granary.example.org/g/graph?g0.expr=level+%3E+5&g0.tab=1";
    assert_eq!(document["alerts"][0]["generatorURL"], link);
    let page = "https://granary.example.org/g/alerts";
    let slack = poll_until(&daemon, "Slack's", || received("/slack"))["attachments"][0].clone();
    assert_eq!(slack["title_link"], page);
    assert_eq!(slack["text"], format!("https://granary.example.org/g {link}"));
    let discord = poll_until(&daemon, "Discord's", || received("/discord"))["embeds"][0].clone();
    assert_eq!(discord["url"], page);
    assert!(discord["description"].as_str().unwrap().ends_with(page), "{discord}");
    assert_eq!(poll_until(&daemon, "PagerDuty's", || received("/pagerduty"))["client_url"], page);
    // The daemon accepts requests under the name in `external_url`.
    let host = [("Host", "granary.example.org")];
    let (status, _) = request(&daemon.url, "GET", "/api/v2/status", &host, "").unwrap();
    assert_eq!(status, 200);
}

/// Runs a command on a daemon; returns true if it succeeds, and its complete output.
fn run_command(daemon: &Daemon, args: &[&str]) -> (bool, String) {
    let output = granary().args(args).args(["--url", &daemon.url]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn a_test_of_a_receiver_shows_the_answers_of_its_integrations() {
    let hook = Hook::start(None);
    let failing = Hook::start_failing(None, Some("GranaryTest"));
    let offline = Hook::free_address();
    let receivers = |integrations: &[String]| {
        format!(
            "{ROUTE}receivers:\n- name: own\n  webhook_configs: [{}]\n- name: none\n",
            integrations.join(", ")
        )
    };
    let url = |address| format!("{{url: 'http://{address}/hooks/a-long-secret'}}");
    let integrations = [url(hook.address), url(failing.address), url(offline)];
    let daemon = start(&receivers(&integrations), "external_labels = { region = 'eu' }");
    let body = json!({ "receiver": "own" }).to_string();
    let json_header = [("Content-Type", "application/json")];
    let test = |body: &str| {
        request(&daemon.url, "POST", "/api/v1/receivers/test", &json_header, body).unwrap()
    };
    let (status, answer) = test(&body);
    assert_eq!(status, 200, "{answer}");
    let outcomes: Vec<_> = answer["integrations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| (result["integration"].clone(), result["outcome"].clone()))
        .collect();
    let expected = [("webhook/0", "sent"), ("webhook/1", "failed"), ("webhook/2", "failed")];
    assert_eq!(outcomes, expected.map(|(name, outcome)| (json!(name), json!(outcome))));
    assert_eq!(answer["integrations"][0]["answer"], "200 OK: ok");
    assert!(answer["integrations"][1]["answer"].as_str().unwrap().starts_with("500"), "{answer}");
    assert!(!answer.to_string().contains("a-long-secret"), "{answer}");
    // The test alert fires and ends, so that no incident stays open. The list does not contain it.
    let received = hook.received();
    let statuses: Vec<_> = received.iter().map(|(_, body)| body["status"].clone()).collect();
    assert_eq!(statuses, ["firing", "resolved"]);
    assert_eq!(received[0].1["alerts"][0]["labels"]["region"], "eu");
    let (_, listed) = request(&daemon.url, "GET", "/api/v2/alerts", &[], "").unwrap();
    assert_eq!(listed, json!([]));
    let (succeeds, output) = run_command(&daemon, &["alerts", "test-receiver", "own"]);
    assert!(!succeeds && output.contains("webhook/0") && output.contains("failed"), "{output}");
    let (succeeds, output) = run_command(&daemon, &["alerts", "test-receiver", "other"]);
    assert!(!succeeds && output.contains("known receivers: own, none"), "{output}");
    assert_eq!(test("{\"receiver\": \"none\"}").1["integrations"], json!([]));
    assert_eq!(test("{\"receiver\": 7}").0, 400);
    fs::write(daemon.dir.path().join("notify.yml"), receivers(&integrations[..1])).unwrap();
    assert_eq!(request(&daemon.url, "POST", "/-/reload", &[], "").unwrap().0, 200);
    let (succeeds, output) = run_command(&daemon, &["alerts", "test-receiver", "own"]);
    assert!(succeeds && output.contains("200 OK: ok"), "{output}");
}

#[test]
fn an_acknowledgement_expires_and_the_alert_is_notified_again() {
    let hook = Hook::start(None);
    let settings = webhook(&hook).replace("repeat_interval: 1h", "repeat_interval: 1s");
    let daemon = start(&settings, "");
    set(&daemon, "a", 7.0);
    poll_until(&daemon, "two messages", || (notifications_of(&hook, "a").len() >= 2).then_some(()));
    let (succeeds, output) =
        run_command(&daemon, &["alerts", "ack", "host=a", "--by", "ann", "--for", "6s"]);
    assert!(succeeds, "{output}");
    let acknowledged = || ask(&daemon, "/api/v1/alerts")["alerts"][0]["acknowledged"].clone();
    let acknowledgement = acknowledged();
    assert!(
        acknowledgement["until"].as_i64().unwrap() - acknowledgement["at"].as_i64().unwrap()
            <= 6000,
        "{acknowledgement}"
    );
    assert!(run_command(&daemon, &["alerts"]).1.contains("ann until 20"));
    poll_until(&daemon, "the end", || acknowledged().is_null().then_some(()));
    let count = notifications_of(&hook, "a").len();
    poll_until(&daemon, "another message", || {
        (notifications_of(&hook, "a").len() > count).then_some(())
    });
    // The acknowledgement is stored with its end and survives kill -9.
    let (succeeds, _) = run_command(&daemon, &["alerts", "ack", "host=a", "--until", "2100-01-01"]);
    assert!(!succeeds, "in more than a year");
    let json_header = [("Content-Type", "application/json")];
    for until in ["\"2020-01-01\"", "\"soon\"", "7"] {
        let body =
            format!("{{\"labels\": {{\"host\": \"a\"}}, \"by\": \"x\", \"until\": {until}}}");
        let (status, answer) =
            request(&daemon.url, "POST", "/api/v1/alerts/ack", &json_header, &body).unwrap();
        assert_eq!(status, 400, "{until}: {answer}");
    }
}

#[test]
fn alerts_of_other_programs_are_notified_silenced_and_unchanged_by_kill_9() {
    let hook = Hook::start(None);
    let settings = format!("global: {{resolve_timeout: 15s}}\n{}", webhook(&hook));
    let mut daemon = start(&settings, "external_labels = { region = 'eu' }");
    let post = |daemon: &Daemon, body: &Value| {
        let json_header = [("Content-Type", "application/json")];
        let body = body.to_string();
        request(&daemon.url, "POST", "/api/v2/alerts", &json_header, &body).unwrap()
    };
    let alert = json!([{
        "labels": { "alertname": "Loki", "host": "l", "empty": "" },
        "annotations": { "summary": "errors" },
        "startsAt": "2026-11-22T00:00:00.5Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://loki/graph",
    }]);
    assert_eq!(post(&daemon, &alert).0, 200);
    let received = poll_until(&daemon, "a message", || hook.received().first().cloned()).1;
    let first = &received["alerts"][0];
    assert_eq!(first["labels"], json!({ "alertname": "Loki", "host": "l" }));
    assert_eq!(first["generatorURL"], "http://loki/graph");
    assert_eq!(first["startsAt"], "2026-11-22T00:00:00.5Z");
    let list = |daemon: &Daemon| request(&daemon.url, "GET", "/api/v2/alerts", &[], "").unwrap().1;
    let acknowledgement = list(&daemon);
    assert_eq!(acknowledgement[0]["receivers"], json!([{ "name": "own" }]), "{acknowledgement}");
    assert_eq!(acknowledgement[0]["status"]["state"], "active");
    // A daemon that is killed before it has recorded a notification sends it again.
    let sent = "granary_receiver_notifications_total{outcome=\"sent\",receiver=\"own\"} 1";
    poll_until(&daemon, "the record", || daemon.metrics().contains(sent).then_some(()));
    // A restart does not end the alert: the sender repeats it, without a notification.
    daemon.kill();
    daemon.restart();
    assert_eq!(list(&daemon), json!([]));
    assert_eq!(post(&daemon, &alert).0, 200);
    assert_eq!(list(&daemon)[0]["labels"]["host"], "l");
    let (succeeds, output) =
        run_command(&daemon, &["silence", "add", "alertname=Other", "--comment", "x"]);
    assert!(succeeds, "{output}");
    let states = notifications_of(&hook, "l");
    assert_eq!(states.len(), 1, "{states:?}");
    // The alert ends when its sender stops sending it.
    poll_until(&daemon, "the end", || {
        (notifications_of(&hook, "l").last()?.0 == "resolved").then_some(())
    });
    assert_eq!(notifications_of(&hook, "l").len(), 2);
    // Invalid alerts are named in the error, and the others are accepted.
    let (status, answer) = post(
        &daemon,
        &json!([{ "labels": {} }, { "labels": { "alertname": "Good", "host": "g" } }]),
    );
    assert!(status == 400 && answer.to_string().contains("at least one label"), "{answer}");
    poll_until(&daemon, "the valid alert", || notifications_of(&hook, "g").first().cloned());
    assert_eq!(post(&daemon, &json!({ "labels": {} })).0, 400);
    let metrics = daemon.metrics();
    for line in ["{outcome=\"taken\"} 2", "{outcome=\"invalid\"} 1", "{outcome=\"refused\"} 0"] {
        assert!(metrics.contains(&format!("granary_posted_alerts_total{line}")), "{metrics}");
    }
    let runtime = ask(&daemon, "/api/v1/status/runtimeinfo");
    assert_eq!(runtime["reloadConfigSuccess"], true, "{runtime}");
    runtime["startTime"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
}
