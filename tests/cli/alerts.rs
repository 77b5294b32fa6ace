//! Rules and alerts in the real daemon: evaluation, kill -9, reload, the warning without a
//! receiver, series of hosts, and `granary rules check` and `granary rules test`.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::daemon::{Daemon, SECONDS, granary, granularities, request};

pub(crate) const RULES: &str = "groups:
- name: own
  interval: 1s
  rules:
  - record: level:max
    expr: max(level)
  - alert: High
    expr: level > 5
    for: FOR
    labels: {severity: page}
    annotations: {summary: '{{ $labels.host }} is at {{ $value }}'}
";

/// Starts a daemon with `RULES`, whose alert is pending for this time before it fires.
pub(crate) fn start(pending: &str) -> Daemon {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("rules.yml"), RULES.replace("FOR", pending)).unwrap();
    let path = dir.path().join("*.yml");
    let rules = format!("[alerts]\nrules = [{:?}]\n", path.to_str().unwrap());
    Daemon::start_in(dir, &(rules + &granularities(&SECONDS)))
}

fn rules_file(daemon: &Daemon) -> std::path::PathBuf {
    daemon.dir.path().join("rules.yml")
}

pub(crate) fn send_level(daemon: &Daemon, level: f64) {
    daemon.accept(&json!([{ "metric": "level", "tags": { "host": "a" }, "value": level }]));
}

pub(crate) fn ask(daemon: &Daemon, path: &str) -> Value {
    let (status, answer) = request(&daemon.url, "GET", path, &[], "").unwrap();
    assert_eq!(status, 200, "{answer}");
    answer["data"].clone()
}

/// Polls until the closure returns an answer.
#[expect(clippy::disallowed_methods, reason = "a deadline of a test")]
pub(crate) fn poll_until<T>(
    daemon: &Daemon,
    what: &str,
    mut find_answer: impl FnMut() -> Option<T>,
) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = find_answer() {
            return found;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{what}: {}", daemon.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until an alert is in this state, and returns it.
pub(crate) fn wait_for_alert(daemon: &Daemon, state: &str) -> Value {
    poll_until(daemon, state, || {
        let alerts = ask(daemon, "/api/v1/alerts")["alerts"].clone();
        alerts.as_array()?.iter().find(|alert| alert["state"] == state).cloned()
    })
}

pub(crate) fn query_values(daemon: &Daemon, query: &str) -> Vec<f64> {
    let escape = |byte: u8| format!("%{byte:02X}");
    let query: String = query.bytes().map(escape).collect();
    let path = format!("/api/v1/query?query={query}");
    let answer = ask(daemon, &path)["result"].clone();
    let value = |value: &Value| value["value"][1].as_str().unwrap().parse().unwrap();
    answer.as_array().unwrap().iter().map(value).collect()
}

#[test]
fn a_recording_rule_stores_samples_and_an_alert_is_pending_then_fires_then_ends() {
    let daemon = start("2s");
    send_level(&daemon, 7.0);
    let pending = wait_for_alert(&daemon, "pending");
    assert_eq!(pending["labels"], json!({"alertname": "High", "host": "a", "severity": "page"}));
    assert_eq!(
        (&pending["value"], &pending["annotations"]["summary"]),
        (&json!("7e+00"), &json!("a is at 7"))
    );
    let firing = wait_for_alert(&daemon, "firing");
    assert_eq!(firing["activeAt"], pending["activeAt"]);
    poll_until(&daemon, "ALERTS", || {
        (query_values(&daemon, "ALERTS{alertstate=\"firing\"}") == [1.0]).then_some(())
    });
    // The series of the pending alert has ended, long before the lookback would end it.
    assert_eq!(query_values(&daemon, "ALERTS{alertstate=\"pending\"}"), [0.0; 0]);
    let since: jiff::Timestamp = firing["activeAt"].as_str().unwrap().parse().unwrap();
    assert_eq!(query_values(&daemon, "ALERTS_FOR_STATE"), [since.as_second() as f64]);
    assert_eq!(query_values(&daemon, "level:max"), [7.0]);

    let groups = ask(&daemon, "/api/v1/rules?type=alert")["groups"].clone();
    let rule = &groups[0]["rules"][0];
    assert_eq!(
        (&rule["state"], &rule["health"], &rule["type"]),
        (&json!("firing"), &json!("ok"), &json!("alerting"))
    );
    assert_eq!((&rule["duration"], &groups[0]["interval"]), (&json!(2.0), &json!(1.0)));
    let listed = granary().args(["alerts", "--url", &daemon.url]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("High") && listed.contains("1 firing, 0 pending"), "{listed}");
    let metrics = daemon.metrics();
    assert!(metrics.contains("granary_alerts{state=\"firing\"} 1"), "{metrics}");
    assert!(metrics.contains("granary_rule_evaluation_failures_total 0"), "{metrics}");

    send_level(&daemon, 3.0);
    poll_until(&daemon, "the end", || {
        ask(&daemon, "/api/v1/alerts")["alerts"].as_array()?.is_empty().then_some(())
    });
    assert_eq!(query_values(&daemon, "ALERTS"), [0.0; 0]);
}

#[test]
fn an_alert_continues_after_kill_9_without_a_change() {
    let mut daemon = start("4s");
    send_level(&daemon, 7.0);
    let pending = wait_for_alert(&daemon, "pending");
    daemon.kill();
    daemon.restart();
    let found = poll_until(&daemon, "the alert", || {
        let alerts = ask(&daemon, "/api/v1/alerts")["alerts"].clone();
        alerts.get(0).cloned()
    });
    assert_eq!(found["activeAt"], pending["activeAt"], "{found}");
    let firing = wait_for_alert(&daemon, "firing");
    assert_eq!(firing["activeAt"], pending["activeAt"]);
    for _ in 0..3 {
        daemon.kill();
        daemon.restart();
        let firing_again = wait_for_alert(&daemon, "firing");
        assert_eq!(firing_again["activeAt"], pending["activeAt"]);
    }
    // Each evaluation wrote its sample once: no slot of 1s has two.
    let counts = query_values(&daemon, "max_over_time(count_over_time(level:max[1s])[1m:1s])");
    assert_eq!(counts, [1.0]);
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
}

#[test]
fn rules_are_reloaded_and_an_invalid_file_changes_nothing() {
    let daemon = start("0s");
    send_level(&daemon, 7.0);
    let firing = wait_for_alert(&daemon, "firing");
    let reload = || request(&daemon.url, "POST", "/-/reload", &[], "").unwrap();
    fs::write(rules_file(&daemon), "groups:\n- name: own\n  rulez: []\n").unwrap();
    let (status, answer) = reload();
    assert_eq!(status, 500, "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("rules.yml") && message.contains("rulez"), "{message}");
    assert!(daemon.metrics().contains("granary_rules_reload_failed 1"));
    assert_eq!(wait_for_alert(&daemon, "firing")["activeAt"], firing["activeAt"]);

    // The alert of the changed rule continues, and the new rule starts.
    let more = RULES.replace("FOR", "0s").replace("level > 5", "level > 6")
        + "  - alert: Also\n    expr: level > 0\n    no_data: keep\n";
    fs::write(rules_file(&daemon), more).unwrap();
    let pid = daemon.pid().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    poll_until(&daemon, "the new rule", || {
        let alerts = ask(&daemon, "/api/v1/alerts")["alerts"].clone();
        (alerts.as_array()?.len() == 2).then_some(())
    });
    assert_eq!(wait_for_alert(&daemon, "firing")["activeAt"], firing["activeAt"]);
    // Without rules, no alert fires, and the series end.
    fs::write(rules_file(&daemon), "").unwrap();
    assert_eq!(reload(), (200, json!({ "rules": 0, "changed": [], "reopens": false, "kept": [] })));
    poll_until(&daemon, "the end", || query_values(&daemon, "ALERTS").is_empty().then_some(()));
}

fn check_rules(path: &Path) -> (bool, String) {
    let output = granary().args(["rules", "check"]).arg(path).output().unwrap();
    let answer = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(answer).unwrap())
}

#[test]
fn rules_check_names_the_error_and_the_daemon_starts_without_that_file() {
    let deployed = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/rules/granary.yml");
    let (succeeds, answer) = check_rules(&deployed);
    assert!(
        succeeds && answer.contains("1 group: 20 alerting rules, 0 recording rules"),
        "{answer}"
    );
    let mut daemon = start("0s");
    fs::write(rules_file(&daemon), RULES.replace("level > 5", "level >")).unwrap();
    let (succeeds, answer) = check_rules(&rules_file(&daemon));
    assert!(
        !succeeds && answer.contains("rule 2 (High)") && answer.contains("parse error"),
        "{answer}"
    );
    fs::write(
        daemon.dir.path().join("other.yml"),
        RULES.replace("own", "other").replace("FOR", "0s"),
    )
    .unwrap();
    daemon.kill();
    daemon.restart();
    // The store and the rules of the other file work, and the daemon reports the error.
    send_level(&daemon, 7.0);
    wait_for_alert(&daemon, "firing");
    assert_eq!(ask(&daemon, "/api/v1/rules")["groups"].as_array().unwrap().len(), 1);
    let (status, answer) = request(&daemon.url, "GET", "/readyz", &[], "").unwrap();
    assert_eq!((status, &answer["status"]), (200, &json!("degraded")));
    assert!(answer["reasons"]["rules"].as_str().unwrap().contains("rule 2 (High)"), "{answer}");
    assert!(daemon.metrics().contains("granary_rules_reload_failed 1"));
    assert!(daemon.log().contains("cannot use all rule files"), "{}", daemon.log());
    fs::write(rules_file(&daemon), RULES.replace("FOR", "0s")).unwrap();
    assert_eq!(request(&daemon.url, "POST", "/-/reload", &[], "").unwrap().0, 200);
    let (_, answer) = request(&daemon.url, "GET", "/readyz", &[], "").unwrap();
    assert_eq!(answer["status"], "ready");
    assert_eq!(ask(&daemon, "/api/v1/rules")["groups"].as_array().unwrap().len(), 2);
}

fn no_receiver_warning(daemon: &Daemon) -> Option<String> {
    let (status, answer) = request(&daemon.url, "GET", "/readyz", &[], "").unwrap();
    assert_eq!((status, &answer["status"]), (200, &json!("ready")));
    let (_, overview) = request(&daemon.url, "GET", "/api/v1/status", &[], "").unwrap();
    assert_eq!(overview["health"]["state"], "ready");
    assert_eq!(answer["warnings"]["no_receiver"], overview["health"]["warnings"][0]["message"]);
    answer["warnings"]["no_receiver"].as_str().map(str::to_owned)
}

#[test]
fn alerts_without_a_receiver_cause_a_warning_until_one_is_configured() {
    let daemon = start("0s");
    let reason = no_receiver_warning(&daemon).unwrap();
    assert!(
        reason.starts_with("1 rule has alerts, but notifications have no destination"),
        "{reason}"
    );
    assert!(reason.contains("set alerts.notifications to its path"), "{reason}");
    assert!(daemon.log().contains("firing alerts notify nobody"), "{}", daemon.log());
    let ready = granary().args(["ready", "--url", &daemon.url]).output().unwrap();
    assert!(ready.status.success());
    assert!(String::from_utf8_lossy(&ready.stdout).contains("notifications have no destination"));
    fs::write(rules_file(&daemon), "groups: []\n").unwrap();
    assert_eq!(request(&daemon.url, "POST", "/-/reload", &[], "").unwrap().0, 200);
    assert_eq!(no_receiver_warning(&daemon), None, "no rule has alerts");

    let integration = "webhook_configs: [{url: 'http://127.0.0.1:9/'}]";
    let receivers = |integrations: &str| {
        format!("route: {{receiver: duty}}\nreceivers:\n- name: duty\n  {integrations}\n")
    };
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("rules.yml"), RULES.replace("FOR", "0s")).unwrap();
    let notifications = dir.path().join("notifications.yaml");
    fs::write(&notifications, receivers(integration)).unwrap();
    let rules = dir.path().join("rules.yml");
    let settings = format!("[alerts]\nrules = [{rules:?}]\nnotifications = {notifications:?}\n");
    let daemon = Daemon::start_in(dir, &(settings + &granularities(&SECONDS)));
    assert_eq!(no_receiver_warning(&daemon), None, "{}", daemon.log());
    fs::write(&notifications, receivers("")).unwrap();
    assert_eq!(request(&daemon.url, "POST", "/-/reload", &[], "").unwrap().0, 200);
    assert!(no_receiver_warning(&daemon).unwrap().contains("add an integration"));
}

fn run_tests(path: &Path) -> (bool, String) {
    let output = granary().args(["rules", "test"]).arg(path).output().unwrap();
    let answer = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(answer).unwrap())
}

/// Copies the shipped rules and their test into a folder; the closure may change the test.
fn copy_shipped_test(folder: &Path, change: impl Fn(String) -> String) -> std::path::PathBuf {
    let deployed = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    fs::create_dir_all(folder.join("rules")).unwrap();
    fs::copy(deployed.join("rules/granary.yml"), folder.join("rules/granary.yml")).unwrap();
    let path = folder.join("test.yml");
    let text = fs::read_to_string(deployed.join("granary_test.yml")).unwrap();
    fs::write(&path, change(text)).unwrap();
    path
}

/// Replacements in the shipped test, and whether the test then succeeds. The first one changes
/// nothing.
const CHANGES: [(&str, &str, bool); 5] = [
    ("summary: The daemon", "summary: The daemon", true),
    ("summary: The daemon", "summary: Another daemon", false),
    ("instance: a}", "instance: b}", false),
    (
        "eval_time: 3m\n    alertname: GranaryDown",
        "eval_time: 5m\n    alertname: GranaryDown",
        false,
    ),
    ("value: 120", "value: 121", false),
];

#[test]
fn the_shipped_rules_pass_their_test_and_a_changed_test_fails() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to, succeeds) in CHANGES {
        let path = copy_shipped_test(folder.path(), |text| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        let (found, answer) = run_tests(&path);
        assert_eq!(found, succeeds, "{to}: {answer}");
        let verdict = if succeeds { "SUCCESS" } else { "FAILED" };
        assert!(answer.contains(verdict), "{answer}");
    }
    let path = copy_shipped_test(folder.path(), |text| text.replace("alertname:", "alertnam:"));
    let (succeeds, answer) = run_tests(&path);
    assert!(!succeeds && answer.contains("alertnam"), "{answer}");
}

#[test]
fn shipped_rules_pass_their_tests_and_each_has_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    for entry in fs::read_dir(folder.join("rules")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let test = folder.join(format!("{name}_test.yml"));
        let (succeeds, answer) = run_tests(&test);
        assert!(succeeds, "{name}: {answer}");
        let (rules, tests) =
            (fs::read_to_string(&path).unwrap(), fs::read_to_string(&test).unwrap());
        let names = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
        let untested: Vec<_> =
            names.filter(|name| !tests.contains(&format!("alertname: {name}\n"))).collect();
        assert_eq!(untested, [""; 0], "{name}");
    }
}

#[test]
fn hosts_that_ping_become_series_for_rules() {
    let daemon = start("0s");
    let now = jiff::Timestamp::now().as_millisecond();
    let ping = |host: &str| {
        json!({ "agent": "a", "host": host, "program": "host", "version": "1", "started": now - 5000,
            "booted": now - 60_000, "interval_ms": 10_000, "sent": now + 30_000 })
    };
    let body = json!({ "pings": [ping("web1"), ping("web2")] }).to_string();
    let headers = [("Content-Type", "application/json")];
    let (status, answer) = request(&daemon.url, "POST", "/api/v1/ping", &headers, &body).unwrap();
    assert_eq!(status, 200, "{answer}");
    poll_until(&daemon, "the hosts' series", || {
        (query_values(&daemon, "granary_host_up") == [1.0, 1.0]).then_some(())
    });
    let silent =
        query_values(&daemon, "granary_host_silent_seconds{agent=\"a\", program=\"host\"}");
    assert!(
        silent.len() == 2 && silent.iter().all(|seconds| (0.0..60.0).contains(seconds)),
        "{silent:?}"
    );
    let skewed = query_values(&daemon, "granary_host_clock_skew_seconds");
    assert!(skewed.iter().all(|seconds| (20.0..40.0).contains(seconds)), "{skewed:?}");
    let booted = (now - 60_000) as f64 / 1000.0;
    assert_eq!(query_values(&daemon, "granary_host_boot_time_seconds{host=\"web1\"}"), [booted]);
    assert_eq!(query_values(&daemon, "time() - granary_host_first_seen_seconds < 600").len(), 2);
    // A host whose agent shut down cleanly is neither down nor silent.
    let mut last = ping("web1");
    last["ending"] = json!(true);
    let body = json!({ "pings": [last] }).to_string();
    let (_, answer) = request(&daemon.url, "POST", "/api/v1/ping", &headers, &body).unwrap();
    assert_eq!(answer["accepted"], 1, "{answer}");
    poll_until(&daemon, "the clean shutdown", || {
        (query_values(&daemon, "granary_host_stopped_seconds{host=\"web1\"}").len() == 1)
            .then_some(())
    });
    for ended in ["granary_host_up", "granary_host_silent_seconds"] {
        assert_eq!(
            query_values(&daemon, &format!("{ended}{{host=\"web1\"}}")),
            [0.0; 0],
            "{ended}"
        );
    }
    // The series of a removed host end.
    let (status, _) = request(&daemon.url, "DELETE", "/api/v1/hosts?host=web2", &[], "").unwrap();
    assert_eq!(status, 204);
    poll_until(&daemon, "the end", || {
        query_values(&daemon, "granary_host_up").is_empty().then_some(())
    });
}

#[test]
#[ignore = "needs promtool; .ci/run installs it and runs this"]
fn promtool_has_the_same_verdicts() {
    crate::peers::need("promtool");
    let folder = tempfile::tempdir().unwrap();
    for (from, to, succeeds) in CHANGES {
        let path = copy_shipped_test(folder.path(), |text| text.replacen(from, to, 1));
        let output = Command::new("promtool").args(["test", "rules"]).arg(&path).output().unwrap();
        assert_eq!(output.status.success(), succeeds, "{to}: {output:?}");
    }
}

/// Regression: a group with an interval of 5 s whose evaluation took 20 s made another group miss 7
/// evaluations.
#[test]
fn a_slow_group_does_not_delay_others() {
    let dir = tempfile::tempdir().unwrap();
    let slow = "  - record: slow:max\n    expr: max_over_time(sum(level)[1h:1s])\n".repeat(20);
    let text = format!(
        "groups:\n- name: slow\n  interval: 1s\n  rules:\n{slow}\
         - name: quick\n  interval: 1s\n  rules:\n  - record: quick:max\n    expr: max(level)\n"
    );
    fs::write(dir.path().join("rules.yml"), text).unwrap();
    let path = dir.path().join("*.yml");
    let rules = format!("[alerts]\nrules = [{:?}]\n", path.to_str().unwrap());
    let mut daemon = Daemon::start_in(dir, &(rules + &granularities(&SECONDS)));
    let sample =
        |at: usize| json!({ "metric": "level", "tags": { "host": at.to_string() }, "value": 7 });
    daemon.accept(&(0..1000).map(sample).collect());
    let missed_evaluations = |name: &str| {
        let groups = ask(&daemon, "/api/v1/rules")["groups"].clone();
        let group = groups.as_array().unwrap().iter().find(|group| group["name"] == name).cloned();
        group.unwrap()["missedEvaluations"].as_u64().unwrap()
    };
    poll_until(&daemon, "a group that is slow", || (missed_evaluations("slow") > 1).then_some(()));
    let (slow, quick) = (missed_evaluations("slow"), missed_evaluations("quick"));
    assert!(quick * 2 < slow, "{quick} missed beside {slow}");
    // A stop ends a running evaluation.
    assert_eq!(daemon.stop(), Some(0));
}
