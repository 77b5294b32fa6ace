//! Tests of notification files: their supported content, and the errors for invalid files.

use super::*;
use crate::alerts::{LabelSet, Target};

/// The example of Alertmanager (`doc/examples/simple.yml`), without an unsupported receiver.
const EXAMPLE: &str = "
global:
  smtp_smarthost: 'localhost:25'
  smtp_from: 'alertmanager@example.org'
route:
  group_by: ['alertname', 'cluster', 'service']
  group_wait: 30s
  group_interval: 5m
  repeat_interval: 3h
  receiver: team-X-mails
  routes:
    - matchers:
        - service=~\"foo1|foo2|baz\"
      receiver: team-X-mails
      routes:
        - matchers:
            - severity=\"critical\"
          receiver: team-X-pager
    - matchers:
        - service=\"files\"
      receiver: team-Y-mails
      routes:
        - match: {severity: critical}
          continue: true
          receiver: team-Y-pager
        - match_re: {owner: team-X|}
          receiver: team-X-pager
    - matchers:
        - service=\"database\"
      receiver: team-DB-pager
      group_by: [...]
      mute_time_intervals: [nights]
      escalate: [{after: 15m, receiver: team-X-pager}]
inhibit_rules:
  - source_matchers: [severity=\"critical\"]
    target_matchers: [severity=\"warning\"]
    equal: ['alertname', 'cluster']
time_intervals:
  - name: nights
    time_intervals: [{times: [{start_time: '00:00', end_time: '06:00'}]}]
receivers:
  - name: team-X-mails
    email_configs: [{to: 'team-X+alerts@example.org'}]
  - name: team-X-pager
    email_configs: [{to: 'team-X+alerts-critical@example.org'}]
    pagerduty_configs: [{routing_key: x}]
  - name: team-Y-mails
    email_configs: [{to: 'team-Y+alerts@example.org', require_tls: false}]
  - name: team-Y-pager
    webhook_configs: [{url: 'http://localhost:5001/', max_alerts: 5}]
  - name: team-DB-pager
    slack_configs: [{api_url_file: slack, channel: '#db'}]
    command_configs: [{command: [/bin/true], timeout: 5s}]
";

fn read(text: &str) -> Result<Routing, String> {
    check_routing("notifications.yml", Some(Path::new("/etc/granary")), text)
        .map_err(|faults| faults.iter().map(FileFault::to_string).collect::<Vec<_>>().join("\n"))
}

fn labels(text: &str) -> LabelSet {
    let pair =
        |part: &str| part.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.split(' ').filter_map(pair).collect()
}

#[test]
fn the_example_file_of_alertmanager_routes_as_in_alertmanager() {
    let routing = read(EXAMPLE).unwrap();
    let check = |text: &str, expected: &[&str]| {
        let route_indexes = routing.routes_of(&labels(text));
        let names = route_indexes.iter().map(|index| {
            let receiver = routing.routes[*index].receiver;
            routing.receivers[receiver].name.as_str()
        });
        assert_eq!(names.collect::<Vec<_>>(), expected, "{text}");
    };
    check("service=other", &["team-X-mails"]);
    check("service=foo1 severity=critical", &["team-X-pager"]);
    check("service=foo10", &["team-X-mails"]);
    // The route continues, and a missing label is empty.
    check("service=files severity=critical", &["team-Y-pager", "team-X-pager"]);
    check("service=files owner=team-Z", &["team-Y-mails"]);
    let route = &routing.routes[routing.routes_of(&labels("service=database"))[0]];
    assert_eq!((&route.group_by, route.repeat_interval_ms), (&None, 3 * 3_600_000));
    assert_eq!(route.escalations[0].after_ms, 900_000);
    assert_eq!(route.group_labels(&labels("a=b c=d")), labels("a=b c=d"));
    let keys: Vec<_> = routing.routes.iter().map(|route| route.key.as_str()).collect();
    assert_eq!(keys[2], "{}/{service=~\"foo1|foo2|baz\"}/{severity=\"critical\"}");
    assert_eq!(keys[5], "{}/{service=\"files\"}/{owner=~\"^(?:team-X|)$\"}");
    let group = routing.routes[0].group_labels(&labels("alertname=A cluster=c host=h"));
    assert_eq!(group, labels("alertname=A cluster=c"));
}

#[test]
fn receivers_have_alertmanagers_defaults_and_paths_are_relative_to_the_file() {
    let routing = read(EXAMPLE).unwrap();
    let integration_of = |name: &str, at: usize| {
        routing.receivers.iter().find(|receiver| receiver.name == name).unwrap().integrations[at]
            .clone()
    };
    let mail = integration_of("team-X-mails", 0);
    let Target::Email(email) = &mail.target else { panic!("{mail:?}") };
    assert_eq!(
        (mail.key.as_str(), mail.send_resolved, email.require_tls),
        ("email/0", false, true)
    );
    assert_eq!(email.smarthost, ("localhost".to_owned(), 25));
    let slack = integration_of("team-DB-pager", 0);
    let Target::Slack(settings) = &slack.target else { panic!("{slack:?}") };
    assert!(format!("{:?}", settings.api_url).contains("/etc/granary/slack"));
    assert!(integration_of("team-Y-pager", 0).send_resolved);
    let shown = format!("{:?}", integration_of("team-X-pager", 0));
    assert!(shown.contains("<secret>") && !shown.contains("\"x\""), "{shown}");
}

#[test]
fn each_fault_is_reported_with_its_location() {
    let receivers = "receivers: [{name: a}]\n";
    for (text, expected) in [
        ("route: {receiver: b}", "route: no receiver is named \"b\""),
        ("route: {receiver: a, routes: [{receiver: c}]}", "route.routes[0]: no receiver"),
        ("route: {}", "the first route has no receiver"),
        ("route: {receiver: a, matchers: [b=c]}", "accepts all alerts"),
        ("route: {receiver: a, group_by: [..., b]}", "remove the other names"),
        ("route: {receiver: a, group_interval: 0s}", "group_interval must be longer"),
        ("route: {receiver: a, group_wait: soon}", "\"soon\" is not a duration"),
        ("route: {receiver: a, routes: [{mute_time_intervals: [x]}]}", "is named \"x\""),
        ("route: {receiver: a, routes: [{matchers: ['=b']}]}", "route.routes[0]: "),
        ("route: {receiver: a, rout: []}", "rout"),
        ("route: {receiver: a}\nglobal: {victorops_api_key: x}", "victorops_api_key"),
        ("route: {receiver: a}\ninhibit_rules: [{source_matchers: ['a=~(']}]", "inhibit_rules[0]"),
    ] {
        let message = read(&format!("{text}\n{receivers}")).unwrap_err();
        assert!(
            message.contains("notifications.yml") && message.contains(expected),
            "{text}: {message}"
        );
    }
    let receiver = |integration: &str| {
        read(&format!("route: {{receiver: a}}\nreceivers: [{{name: a, {integration}}}]"))
            .unwrap_err()
    };
    for (integration, expected) in [
        ("webhook_configs: [{}]", "receiver \"a\", webhook_configs[0]: url or url_file is missing"),
        ("webhook_configs: [{url: nowhere}]", "url is not a URL"),
        ("webhook_configs: [{url: 'http://a', url_file: b}]", "set only one of them"),
        ("victorops_configs: [{}]", "victorops_configs"),
        ("webhook_configs: [{url: 'http://a', timeout: 6m}]", "300000 ms at most"),
        ("opsgenie_configs: [{}]", "api_key or api_key_file is missing"),
        ("opsgenie_configs: [{api_key: a, responders: [{nam: b}]}]", "\"nam\" is not one of"),
        ("msteams_configs: [{webhook_url: x}]", "webhook_url is not a URL"),
        ("telegram_configs: [{bot_token: a}]", "chat_id is missing"),
        ("telegram_configs: [{bot_token: a, chat_id: 1, parse_mode: x}]", "\"x\" is not one of"),
        (
            "webhook_configs: [{url: 'http://a', http_config: {http_headers: {Host: {values: [b]}}}}]",
            "\"Host\" cannot be set",
        ),
        (
            "webhook_configs: [{url: 'http://a', http_config: {http_headers: {X-A: {}}}}]",
            "\"X-A\" has none of values",
        ),
        ("discord_configs: [{title: x}]", "webhook_url or webhook_url_file is missing"),
        ("email_configs: [{to: a@b}]", "smarthost must be a host"),
        ("slack_configs: [{channel: x}]", "api_url or api_url_file is missing"),
        ("command_configs: [{command: []}]", "names no program"),
        ("pagerduty_configs: [{}]", "routing_key or routing_key_file is missing"),
    ] {
        let message = receiver(integration);
        assert!(message.contains(expected), "{integration}: {message}");
    }
    let twice = "route: {receiver: a}\nreceivers: [{name: a}, {name: a}]";
    assert!(read(twice).unwrap_err().contains("appears twice"));
    let deep =
        (0..40).fold("{receiver: a}".to_owned(), |inner, _| format!("{{routes: [{inner}]}}"));
    read(&format!("route: {{receiver: a, routes: [{deep}]}}\n{receivers}")).unwrap_err();
}
