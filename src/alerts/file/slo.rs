//! The expansion of a service level objective (SLO) into a group of rules: burn rates over several
//! windows, the error budget that is left, and alerts.
//!
//! A burn rate is the share of bad events divided by the share that the target allows. At a burn
//! rate of 1, the budget lasts exactly for the window of the SLO. Must never know: YAML.

use std::collections::BTreeMap;

use super::{
    check::{FileChecker, SEVERITY},
    raw::{Lined, RawGroup, RawRule, RawSlo},
};
use crate::{
    alerts::{
        RuleGroup,
        rule::{SLO, SLO_TARGET},
    },
    query::labels_always_differ,
};

/// The maximum number of SLOs of a file.
const SLOS_MAX: usize = 200;
const NAME_CHARS_MAX: usize = 100;
/// The text in expressions that each window replaces.
const VARIABLE: &str = "$window";
const WINDOW: &str = "window";
const BURN_RATE: &str = "slo:burn_rate";
const BUDGET_LEFT: &str = "slo:budget_left";
const ALERT: &str = "ErrorBudgetBurn";

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 1440 * MINUTE_MS;
const WINDOW_MS_DEFAULT: i64 = 30 * DAY_MS;
/// A shorter window would leave the fastest alert less than a quarter of an hour.
const WINDOW_DAYS_MIN: i64 = 7;
const WINDOW_DAYS_MAX: i64 = 366;
/// The limits of targets in percent: a lower target is probably a share such as 0.999.
const TARGETS: std::ops::RangeInclusive<f64> = 50.0..=99.9999;

/// The pairs of windows of each severity: the long window is this part of the SLO's window, and the
/// short window a twelfth of it. See chapter 5 of the Site Reliability Workbook: of 30 days, an
/// hour at 14.4 spends 2 % of the budget, six hours at 6 spend 5 %, one day at 3 and three at 1
/// spend 10 %.
const ALERTS: [(&str, [BurnLimit; 2]); 2] = [
    ("critical", [BurnLimit { part: 720, rate: "14.4" }, BurnLimit { part: 120, rate: "6" }]),
    ("warning", [BurnLimit { part: 30, rate: "3" }, BurnLimit { part: 10, rate: "1" }]),
];
/// The shortest window, which contains several slots of the finest granularity by default.
const SHORT_MS_MIN: i64 = 5 * MINUTE_MS;

/// A burn rate that two windows must exceed.
struct BurnLimit {
    part: i64,
    rate: &'static str,
}

impl BurnLimit {
    /// Returns the long and the short window in milliseconds, in whole minutes.
    fn windows(&self, window_ms: i64) -> [i64; 2] {
        let long = window_ms / self.part / MINUTE_MS * MINUTE_MS;
        [long, (long / 12 / MINUTE_MS * MINUTE_MS).max(SHORT_MS_MIN)]
    }
}

impl FileChecker<'_> {
    /// Expands the SLOs that have no fault.
    pub(super) fn slos(&mut self, slos: Vec<Lined<RawSlo>>) -> Vec<RuleGroup> {
        self.location.clear();
        self.line = None;
        if slos.len() > SLOS_MAX {
            self.fault(format!("more than {SLOS_MAX} SLOs: make two files"));
            return Vec::new();
        }
        let checked = slos.into_iter().filter_map(|slo| {
            self.line = slo.line;
            self.slo(slo.value)
        });
        checked.collect()
    }

    fn slo(&mut self, raw: RawSlo) -> Option<RuleGroup> {
        self.location = format!("slo {:?}", raw.name);
        let faults = self.fault_count();
        let is_plain = |c: char| !c.is_control() && !matches!(c, '"' | '\\' | '{' | '}');
        if !(1..=NAME_CHARS_MAX).contains(&raw.name.chars().count())
            || !raw.name.chars().all(is_plain)
        {
            self.fault(format!(
                "name: use 1 to {NAME_CHARS_MAX} characters, without quotes, braces and backslashes"
            ));
        }
        if !TARGETS.contains(&raw.target) {
            let (target, low, high) = (raw.target, TARGETS.start(), TARGETS.end());
            self.fault(format!(
                "target: {target} is not a percentage from {low} to {high}; write 99.9"
            ));
        }
        for name in
            [SLO, WINDOW, SEVERITY].into_iter().filter(|name| raw.labels.contains_key(*name))
        {
            self.fault(format!("labels: {name:?} is set by the SLO; choose another name"));
        }
        let window_ms = self.length(WINDOW, raw.window.as_deref()).unwrap_or(WINDOW_MS_DEFAULT);
        let days = window_ms / DAY_MS;
        if window_ms % DAY_MS != 0 || !(WINDOW_DAYS_MIN..=WINDOW_DAYS_MAX).contains(&days) {
            self.fault(format!("window: use whole days, {WINDOW_DAYS_MIN}d to {WINDOW_DAYS_MAX}d"));
        }
        let errors = self.errors(&raw, &duration_text(window_ms));
        if self.fault_count() > faults {
            return None;
        }
        Some(self.group(expanded(raw, &errors?, window_ms)))
    }

    /// Returns the expression of the share of bad events, with the variable. Without any event in a
    /// window, there is no share.
    fn errors(&mut self, raw: &RawSlo, window: &str) -> Option<String> {
        let form = (&raw.good, &raw.bad, &raw.total, &raw.histogram, raw.under);
        let keys = match form {
            (Some(good), None, Some(total), None, None) => {
                [("good", good), ("total", total)].to_vec()
            }
            (None, Some(bad), Some(total), None, None) => [("bad", bad), ("total", total)].to_vec(),
            (None, None, None, Some(histogram), Some(_)) => [("histogram", histogram)].to_vec(),
            _ => {
                self.fault("use good and total, bad and total, or histogram and under");
                return None;
            }
        };
        if raw.under.is_some_and(|under| !under.is_finite()) {
            self.fault("under: use a finite number");
        }
        for (key, text) in &keys {
            if !text.contains(VARIABLE) {
                self.fault(format!(
                    "{key}: the expression has no {VARIABLE}; write \
                     sum(increase(requests_total[{VARIABLE}]))"
                ));
            }
            self.check_expression(key, &text.replace(VARIABLE, window));
        }
        if let [(key, events), (_, total)] = keys.as_slice() {
            let [events, total] = [events, total].map(|text| text.replace(VARIABLE, window));
            // Invalid expressions are faults already.
            if labels_always_differ(&events, &total, self.limits).unwrap_or(false) {
                self.fault(format!("{key} and total: use the same labels in by or without"));
            }
        }
        // A comment would include the parenthesis after the expression.
        let ended =
            |text: &str| text.trim().to_owned() + if text.contains('#') { "\n" } else { "" };
        let texts: Vec<_> = keys.iter().map(|(_, text)| ended(text)).collect();
        Some(match (texts.as_slice(), &raw.bad, raw.under) {
            // Without a series of bad events, no event was bad; without one of good events, all were.
            ([bad, total], Some(_), _) => {
                format!("(({bad}) or ({total}) * 0) / (({total}) > 0)")
            }
            ([good, total], None, _) => {
                format!("1 - (({good}) or ({total}) * 0) / (({total}) > 0)")
            }
            // The comparison drops NaN, the fraction of no observations.
            ([histogram], _, Some(under)) => {
                format!("1 - (histogram_fraction(-Inf, {under}, {histogram}) >= 0)")
            }
            _ => return None,
        })
    }
}

/// Returns the group of an SLO without faults.
fn expanded(raw: RawSlo, errors: &str, window_ms: i64) -> RawGroup {
    let RawSlo { name, target, interval, mut labels, annotations, .. } = raw;
    let window = duration_text(window_ms);
    // Rounded, so that the texts are short: 0.001 instead of 0.0009999999999998899.
    let millionths = (target * 1e4).round();
    let (share, budget) = (millionths / 1e6, (1e6 - millionths) / 1e6);
    let mut windows: Vec<i64> = ALERTS
        .iter()
        .flat_map(|(_, limits)| limits)
        .flat_map(|limit| limit.windows(window_ms))
        .collect();
    windows.push(window_ms);
    windows.sort_unstable();
    windows.dedup();
    let record = |metric: &str, window: &str, expr: String| RawRule {
        record: Some(metric.to_owned()),
        expr,
        labels: [(WINDOW.to_owned(), window.to_owned())].into(),
        ..RawRule::default()
    };
    let mut rules = vec![record(SLO_TARGET, &window, format!("vector({share})"))];
    rules.extend(windows.into_iter().map(|window_ms| {
        let window = duration_text(window_ms);
        let errors = errors.replace(VARIABLE, &window);
        // Extrapolation can find slightly more good events than events.
        record(BURN_RATE, &window, format!("clamp_min({errors}, 0) / {budget}"))
    }));
    rules.push(record(BUDGET_LEFT, &window, format!("1 - {}", burn_rate(&name, &window))));
    rules.extend(ALERTS.map(|(severity, limits)| {
        alert(
            &name,
            severity,
            &limits.map(|limit| exceeded(&name, &limit, window_ms)),
            &window,
            &annotations,
        )
    }));
    labels.insert(SLO.to_owned(), name.clone());
    let rules = rules.into_iter().map(|value| Lined { line: None, value }).collect();
    RawGroup { name: format!("slo:{name}"), interval, labels, rules, ..RawGroup::default() }
}

fn alert(
    name: &str,
    severity: &str,
    conditions: &[String],
    window: &str,
    annotations: &BTreeMap<String, String>,
) -> RawRule {
    let mut annotations = annotations.clone();
    annotations.entry("summary".to_owned()).or_insert_with(|| {
        format!(
            "{name} spends its error budget of {window} {{{{ $value | humanize }}}} times as fast as \
             the target allows."
        )
    });
    RawRule {
        alert: Some(ALERT.to_owned()),
        expr: conditions.join(" or "),
        labels: [(SEVERITY.to_owned(), severity.to_owned())].into(),
        annotations,
        ..RawRule::default()
    }
}

/// Returns the expression of the burn rates whose long and short window exceed a limit. The short
/// window ends the alert soon after the cause.
fn exceeded(name: &str, limit: &BurnLimit, window_ms: i64) -> String {
    let [long, short] =
        limit.windows(window_ms).map(|window_ms| burn_rate(name, &duration_text(window_ms)));
    let rate = limit.rate;
    format!("max without ({WINDOW}) ({long} > {rate} and ignoring ({WINDOW}) {short} > {rate})")
}

fn burn_rate(name: &str, window: &str) -> String {
    format!("{BURN_RATE}{{{SLO}=\"{name}\", {WINDOW}=\"{window}\"}}")
}

/// Returns a text of whole minutes in one unit: `5m`, `6h`, `30d`.
fn duration_text(ms: i64) -> String {
    let units = [("d", DAY_MS), ("h", 60 * MINUTE_MS), ("m", MINUTE_MS)];
    let whole = units.into_iter().find(|(_, unit_ms)| ms % unit_ms == 0);
    let (unit, unit_ms) = whole.unwrap_or(("m", MINUTE_MS));
    format!("{}{unit}", ms / unit_ms)
}

#[cfg(test)]
mod tests {
    use crate::alerts::{Action, RuleGroup, file::tests::read};

    fn slo(lines: &str) -> Result<Vec<RuleGroup>, String> {
        read(&format!("slos:\n- name: shop\n  {}\n", lines.replace('\n', "\n  ")))
    }

    const COUNTED: &str = "target: 99.9\n\
         good: sum by (job) (increase(ok_total[$window]))\n\
         total: sum by (job) (increase(all_total[$window]))";

    #[test]
    fn an_slo_becomes_a_group_that_records_burn_rates_and_alerts() {
        let text = format!("{COUNTED}\nlabels: {{team: web}}\ninterval: 30s");
        let groups = slo(&text).unwrap();
        let [group] = groups.as_slice() else { panic!("{groups:?}") };
        assert_eq!((group.name.as_str(), group.interval_ms), ("slo:shop", 30_000));
        assert_eq!(group.slo(), Some("shop"));
        let labels = |rule: usize, name: &str| group.rules[rule].labels.get(name).cloned();
        for rule in 0..group.rules.len() {
            assert_eq!(labels(rule, "team").as_deref(), Some("web"));
            assert_eq!(labels(rule, "slo").as_deref(), Some("shop"));
        }
        let (target, left) = (&group.rules[0], &group.rules[9]);
        assert_eq!(
            (target.name.as_str(), target.expression.as_str()),
            ("slo:target", "vector(0.999)")
        );
        let windows: Vec<_> = (1..9).map(|rule| labels(rule, "window").unwrap()).collect();
        assert_eq!(windows, ["5m", "30m", "1h", "2h", "6h", "1d", "3d", "30d"]);
        assert_eq!(
            group.rules[1].expression,
            "clamp_min(1 - ((sum by (job) (increase(ok_total[5m]))) or \
             (sum by (job) (increase(all_total[5m]))) * 0) / \
             ((sum by (job) (increase(all_total[5m]))) > 0), 0) / 0.001"
        );
        assert_eq!(left.name, "slo:budget_left");
        assert_eq!(left.expression, "1 - slo:burn_rate{slo=\"shop\", window=\"30d\"}");
        let alerts: Vec<_> = group.rules.iter().skip(10).collect();
        assert_eq!(alerts.len(), 2);
        assert!(alerts.iter().all(|rule| rule.name == "ErrorBudgetBurn"));
        let severities = alerts.iter().map(|rule| rule.labels["severity"].as_str());
        assert!(severities.eq(["critical", "warning"]));
        assert_eq!(
            alerts[1].expression,
            "max without (window) (slo:burn_rate{slo=\"shop\", window=\"1d\"} > 3 and ignoring \
             (window) slo:burn_rate{slo=\"shop\", window=\"2h\"} > 3) or max without (window) \
             (slo:burn_rate{slo=\"shop\", window=\"3d\"} > 1 and ignoring (window) \
             slo:burn_rate{slo=\"shop\", window=\"6h\"} > 1)"
        );
        let Action::Alert(policy) = &alerts[0].action else { panic!("{alerts:?}") };
        assert!(
            policy.annotations["summary"].starts_with("shop spends its error budget of 30d {{")
        );
    }

    #[test]
    fn windows_of_alerts_follow_the_window_of_the_slo() {
        let windows = |window: &str| -> Vec<String> {
            let groups = slo(&format!("{COUNTED}\nwindow: {window}")).unwrap();
            let burns = groups[0].rules.iter().filter(|rule| rule.name == "slo:burn_rate");
            burns.map(|rule| rule.labels["window"].clone()).collect()
        };
        assert_eq!(windows("1w"), ["5m", "7m", "14m", "28m", "84m", "336m", "1008m", "7d"]);
        assert_eq!(windows("90d"), ["15m", "90m", "3h", "6h", "18h", "3d", "9d", "90d"]);
    }

    #[test]
    fn the_other_forms_count_bad_events_or_the_share_under_a_bound() {
        let burn = |lines: &str| slo(lines).unwrap()[0].rules[1].expression.clone();
        assert_eq!(
            burn("target: 99\nbad: increase(e[$window])\ntotal: increase(t[$window])"),
            "clamp_min(((increase(e[5m])) or (increase(t[5m])) * 0) / ((increase(t[5m])) > 0), 0) / 0.01"
        );
        assert_eq!(
            burn("target: 95\nhistogram: sum by (le) (rate(h_bucket[$window]))\nunder: 0.3"),
            "clamp_min(1 - (histogram_fraction(-Inf, 0.3, sum by (le) (rate(h_bucket[5m]))) >= 0), 0) \
             / 0.05"
        );
    }

    /// Regression: the comment included the parenthesis that follows.
    #[test]
    fn an_expression_of_an_slo_may_end_with_a_comment() {
        let groups = slo("target: 99\n\
                          bad: 'increase(e[$window]) # errors'\n\
                          total: 'increase(t[$window]) # all'");
        let burn = &groups.unwrap()[0].rules[1].expression;
        assert!(burn.starts_with("clamp_min(((increase(e[5m]) # errors\n) or ("), "{burn}");
    }

    #[test]
    fn each_fault_of_an_slo_is_reported() {
        let check = |lines: &str, expected: &[&str]| {
            let message = slo(lines).unwrap_err();
            for part in expected.iter().chain(&["rules.yml", "slo \"shop\""]) {
                assert!(message.contains(part), "{part:?} in {message:?}");
            }
        };
        let with = |line: &str| format!("{COUNTED}\n{line}");
        check(&COUNTED.replace("99.9", "0.999"), &["target", "0.999", "write 99.9"]);
        check(&COUNTED.replace("99.9", "100"), &["target"]);
        check(&COUNTED.replace("99.9", ".nan"), &["target"]);
        check(&with("window: 36h"), &["window", "whole days"]);
        check(&with("window: 6d"), &["window", "7d to 366d"]);
        check(&with("window: a month"), &["window", "not a duration"]);
        check(&with("labels: {window: x}"), &["labels", "window"]);
        check(&with("under: 3"), &["good and total"]);
        for form in ["good", "bad"] {
            for [events, total] in
                [["", " by (job)"], [" by (job)", ""], [" by (a)", " without (a)"]]
            {
                let lines = format!(
                    "target: 99\n{form}: sum{events} (increase(e[$window]))\n\
                     total: sum{total} (increase(t[$window]))"
                );
                check(&lines, &[form, "use the same labels"]);
            }
        }
        for under in [".nan", ".inf"] {
            let lines = format!("target: 99\nhistogram: rate(h[$window])\nunder: {under}");
            check(&lines, &["under: use a finite number"]);
        }
        check("target: 99\ntotal: sum(t[$window])", &["good and total"]);
        check(&COUNTED.replace("ok_total[$window]", "ok_total[5m]"), &["good", "$window"]);
        check(&COUNTED.replace("ok_total[$window]", "ok_total[$window"), &["good", "parse error"]);
        let named = |name: &str| {
            read(&format!("slos:\n- name: '{name}'\n  {}\n", COUNTED.replace('\n', "\n  ")))
        };
        assert!(named("a\"b").unwrap_err().contains("without quotes"));
        assert!(named("").unwrap_err().contains("1 to 100 characters"));
        let twice =
            format!("slos:\n- name: a\n  {0}\n- name: a\n  {0}\n", COUNTED.replace('\n', "\n  "));
        assert!(read(&twice).unwrap_err().contains("\"slo:a\" appears twice"));
        assert!(slo(&with("windows: 30d")).unwrap_err().contains("windows"));
    }
}
