//! Notifications of a mass outage, and the formats of chat and paging services.

use serde_json::{Value, json};

use crate::{
    alerts::{ask, poll_until},
    daemon::{granary, request},
    hook::Hook,
    notifications::{ROUTE, set, start},
};

/// Regression: 2,500 series were not notified: "2500 alerts are more than 2000".
#[test]
fn a_mass_outage_is_notified_at_once_with_the_number_of_further_alerts() {
    let hook = Hook::start(None);
    let route = ROUTE.replace("[host]", "[alertname]").replace("group_wait: 0s", "group_wait: 1s");
    let receivers = format!("webhook_configs: [{{url: 'http://{}/'}}]", hook.address);
    let mut daemon = start(&format!("{route}receivers:\n- name: own\n  {receivers}\n"), "");
    let count = 2500;
    let tags = |at: usize| json!({ "host": format!("h{at:05}") });
    let all = |level: f64| -> Value {
        let sample = |at| json!({ "metric": "level", "tags": tags(at), "value": level });
        (0..count).map(sample).collect()
    };
    daemon.accept(&all(7.0));
    let counts_of = |hook: &Hook, status: &str| {
        let documents = hook.received().into_iter().map(|(_, body)| body);
        let alerts = |value: &Value| value["alerts"].as_array().map_or(0, Vec::len);
        let document = documents.filter(|document| document["status"] == status);
        let counts = document
            .map(|document| (alerts(&document), document["truncatedAlerts"].as_u64().unwrap()));
        counts.collect::<Vec<_>>()
    };
    let firing =
        poll_until(&daemon, "the notification", || counts_of(&hook, "firing").first().copied());
    assert_eq!(firing, (500, 2000));
    assert_eq!(counts_of(&hook, "firing").len(), 1, "in one message");
    poll_until(&daemon, "the degraded state", || {
        let (_, ready) = request(&daemon.url, "GET", "/readyz", &[], "").unwrap();
        (ready["status"] == "degraded" && ready["reasons"]["alerts"].is_string()).then_some(())
    });
    assert!(daemon.metrics().contains("granary_notification_alerts_left_out 2000"));
    // One alert is acknowledged. The state of this many alerts is stored in several objects and
    // read again.
    let run = |args: &[&str]| granary().args(args).output().unwrap();
    let acknowledged =
        run(&["alerts", "ack", "host=h00007", "--by", "ann", "--url", daemon.url.as_str()]);
    assert!(acknowledged.status.success(), "{acknowledged:?}");
    daemon.kill();
    daemon.restart();
    let alerts = poll_until(&daemon, "the alerts", || {
        let alerts = ask(&daemon, "/api/v1/alerts")["alerts"].as_array().cloned()?;
        (alerts.len() == count).then_some(alerts)
    });
    let acknowledged_count =
        alerts.iter().filter(|alert| alert["acknowledged"]["by"] == "ann").count();
    assert_eq!(acknowledged_count, 1);
    daemon.accept(&all(1.0));
    poll_until(&daemon, "the end", || counts_of(&hook, "resolved").first().copied());
    poll_until(&daemon, "a healthy store", || {
        let (_, ready) = request(&daemon.url, "GET", "/readyz", &[], "").unwrap();
        ready["reasons"]["alerts"].is_null().then_some(())
    });
    assert!(!daemon.log().contains("cannot store alerts"), "{}", daemon.log());
}

#[test]
fn opsgenie_teams_telegram_and_discord_are_notified_in_their_formats() {
    let hook = Hook::start(None);
    let settings = format!(
        "{ROUTE}receivers:
- name: own
  opsgenie_configs: [{{api_key: k, api_url: 'http://{0}/opsgenie'}}]
  msteams_configs: [{{webhook_url: 'http://{0}/teams'}}]
  telegram_configs: [{{api_url: 'http://{0}', bot_token: t, chat_id: 7}}]
  discord_configs: [{{webhook_url: 'http://{0}/discord'}}]
",
        hook.address
    );
    let daemon = start(&settings, "");
    set(&daemon, "a", 7.0);
    let first = |path: &str| poll_until(&daemon, path, || hook.received_at(path).first().cloned());
    let opened_alert = first("/opsgenie/v2/alerts");
    assert_eq!(opened_alert["message"], "[FIRING:1] a");
    assert_eq!(first("/teams")["title"], "[FIRING:1] a");
    let message = first("/bott/sendMessage");
    assert!(message["text"].as_str().unwrap().contains("a is at 7"), "{message}");
    assert_eq!(first("/discord")["embeds"][0]["title"], "[FIRING:1] a");
    set(&daemon, "a", 1.0);
    let alias = opened_alert["alias"].as_str().unwrap();
    first(&format!("/opsgenie/v2/alerts/{alias}/close?identifierType=alias"));
    for path in ["/-/healthy", "/-/ready"] {
        assert_eq!(request(&daemon.url, "GET", path, &[], "").unwrap().0, 200, "{path}");
    }
}
