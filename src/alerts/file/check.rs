//! The conversion of a file's raw rules to checked rules; each fault is recorded with its location.
//!
//! Must never know: YAML.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    FileFault,
    raw::{RawGroup, RawRule},
};
use crate::{
    alerts::{Action, AlertPolicy, NoData, Rule, RuleGroup, TemplateData, rule::ALERT_NAME},
    model::{METRIC_TAG, parse_duration_ms},
    query::{ExpressionLimits, check_rule_promql, measured_promql},
};

/// The maximum number of rules of a group: an evaluation numbers its rules.
const GROUP_RULES_MAX: usize = 1000;
/// The maximum number of levels of a rule.
const LEVELS_MAX: usize = 10;
/// The label that distinguishes the levels of a rule.
pub(super) const SEVERITY: &str = "severity";

const COMPARISONS: [&str; 6] = [">=", "<=", "==", "!=", ">", "<"];

/// Checks one file.
pub(super) struct FileChecker<'a> {
    file: &'a str,
    interval_ms: i64,
    pub(super) limits: &'a ExpressionLimits<'a>,
    faults: Vec<FileFault>,
    pub(super) location: String,
    /// The line of the group or rule in the file.
    pub(super) line: Option<u64>,
    names: BTreeSet<String>,
}

impl<'a> FileChecker<'a> {
    pub(super) fn new(file: &'a str, interval_ms: i64, limits: &'a ExpressionLimits<'a>) -> Self {
        let (faults, location, names) = (Vec::new(), String::new(), BTreeSet::new());
        Self { file, interval_ms, limits, faults, location, line: None, names }
    }

    pub(super) fn fault_count(&self) -> usize {
        self.faults.len()
    }

    pub(super) fn into_faults(self) -> Vec<FileFault> {
        self.faults
    }

    pub(super) fn fault(&mut self, problem: impl Into<String>) {
        let (location, line) = (self.location.clone(), self.line);
        self.faults.push(FileFault { location, line, ..FileFault::of_file(self.file, problem) });
    }

    pub(super) fn length(&mut self, key: &str, text: Option<&str>) -> Option<i64> {
        let text = text?;
        let found = parse_duration_ms(text);
        if found.is_none() {
            self.fault(format!("{key}: {text:?} is not a duration; write 30s, 5m or 1h30m"));
        }
        found
    }

    pub(super) fn group(&mut self, raw: RawGroup) -> RuleGroup {
        self.location = format!("group {:?}", raw.name);
        if raw.name.is_empty() {
            self.fault("the name of a group is empty");
        }
        if !self.names.insert(raw.name.clone()) {
            self.fault(format!("the group {:?} appears twice in this file", raw.name));
        }
        let interval_ms = self.length("interval", raw.interval.as_deref());
        let interval_ms = interval_ms.unwrap_or(self.interval_ms);
        if interval_ms < 1000 || interval_ms % 1000 != 0 {
            self.fault("interval: use whole seconds, 1s or more");
        }
        let query_offset_ms = self.length("query_offset", raw.query_offset.as_deref());
        let mut rules: Vec<Rule> = Vec::new();
        for (index, rule) in raw.rules.into_iter().enumerate() {
            self.line = rule.line.or(self.line);
            let mut rule = rule.value;
            let name = rule.alert.as_ref().or(rule.record.as_ref()).cloned().unwrap_or_default();
            self.location = format!("group {:?}, rule {} ({name})", raw.name, index + 1);
            for (label, value) in &raw.labels {
                rule.labels.entry(label.clone()).or_insert_with(|| value.clone());
            }
            self.rule(rule, &mut rules);
        }
        if rules.len() > GROUP_RULES_MAX {
            self.fault(format!("more than {GROUP_RULES_MAX} rules: make two groups"));
        }
        RuleGroup {
            file: self.file.to_owned(),
            name: raw.name,
            interval_ms: interval_ms.max(1000),
            query_offset_ms: query_offset_ms.unwrap_or(0),
            limit: raw.limit,
            rules,
        }
    }

    fn rule(&mut self, raw: RawRule, rules: &mut Vec<Rule>) {
        let is_alert = raw.alert.is_some();
        let name = match (&raw.alert, &raw.record) {
            (Some(name), None) | (None, Some(name)) => name.clone(),
            _ => {
                return self
                    .fault("a rule has either alert, with a name, or record, with a metric");
            }
        };
        self.check_labels(&raw.labels, is_alert);
        self.check_expression("expr", &raw.expr);
        if !is_alert {
            self.refuse_alert_keys(&raw);
            if !is_metric(&name) {
                self.fault(format!("record: {name:?} is not a metric name"));
            }
            let key = unique(rules, &name, &raw.labels);
            let (expression, labels) = (raw.expr, raw.labels);
            rules.push(Rule { key, name, expression, labels, action: Action::Record });
            return;
        }
        if name.is_empty() {
            self.fault("alert: the name is empty");
        }
        for (key, text) in &raw.annotations {
            self.check_template("annotations", key, text);
        }
        for (level, expression, policy) in self.levels(&raw) {
            let mut labels = raw.labels.clone();
            labels.extend(level.map(|level| (SEVERITY.to_owned(), level)));
            let key = unique(rules, &name, &labels);
            let (name, action) = (name.clone(), Action::Alert(policy));
            rules.push(Rule { key, name, expression, labels, action });
        }
    }

    /// Returns the expression and policy of each level, or of the rule if it has no levels.
    fn levels(&mut self, raw: &RawRule) -> Vec<(Option<String>, String, AlertPolicy)> {
        let measured = match &raw.severity {
            Some(_) => Some(raw.expr.clone()),
            None => measured_promql(&raw.expr, self.limits).ok().flatten(),
        };
        let policy = self.policy(raw, measured);
        let Some(levels) = &raw.severity else {
            return vec![(None, raw.expr.clone(), policy)];
        };
        if levels.0.is_empty() || levels.0.len() > LEVELS_MAX {
            self.fault(format!("severity: name 1 to {LEVELS_MAX} levels"));
        }
        if raw.labels.contains_key(SEVERITY) {
            self.fault("severity: the rule also has a label severity; remove one of the two");
        }
        let mut expanded = Vec::new();
        for (level, threshold) in &levels.0 {
            let key = format!("severity: {level}");
            let Some(expression) = self.compared(&key, &raw.expr, threshold) else { continue };
            expanded.push((Some(level.clone()), expression, policy.clone()));
        }
        expanded
    }

    fn policy(&mut self, raw: &RawRule, measured: Option<String>) -> AlertPolicy {
        let no_data = match raw.no_data.as_deref() {
            None | Some("ok") => NoData::Ok,
            Some("keep") => NoData::Keep,
            Some("alerting") => NoData::Alerting,
            Some(other) => {
                self.fault(format!("no_data: {other:?} is not known; use alerting, ok or keep"));
                NoData::Ok
            }
        };
        if raw.no_data_for.is_some() && no_data == NoData::Ok {
            self.fault("no_data_for is given without no_data: alerting or no_data: keep");
        }
        let recover = raw.recover.as_deref().and_then(|text| {
            let is_threshold =
                COMPARISONS.iter().any(|comparison| text.trim_start().starts_with(comparison));
            match (&measured, is_threshold) {
                (Some(measured), true) => self.compared("recover", measured, text),
                (None, true) => {
                    self.fault(
                        "recover: the expression does not end with a comparison with a number; \
                         write a whole expression instead of a threshold",
                    );
                    None
                }
                (_, false) => {
                    self.check_expression("recover", text);
                    Some(text.to_owned())
                }
            }
        });
        let needs_measured = no_data != NoData::Ok || recover.is_some();
        let measured = measured.unwrap_or_else(|| raw.expr.clone());
        AlertPolicy {
            annotations: raw.annotations.clone(),
            for_ms: self.length("for", raw.for_long.as_deref()).unwrap_or(0),
            keep_firing_ms: self
                .length("keep_firing_for", raw.keep_firing_for.as_deref())
                .unwrap_or(0),
            no_data,
            no_data_for_ms: self.length("no_data_for", raw.no_data_for.as_deref()),
            measured: needs_measured.then_some(measured),
            recover,
        }
    }

    /// Compares an expression with a threshold such as `> 80`; `None` after a fault.
    fn compared(&mut self, key: &str, expression: &str, threshold: &str) -> Option<String> {
        let threshold = threshold.trim();
        let operator = COMPARISONS.iter().find(|comparison| threshold.starts_with(**comparison));
        let number = operator.and_then(|comparison| threshold.strip_prefix(comparison));
        if number.is_none_or(|number| number.trim().parse::<f64>().is_err()) {
            self.fault(format!("{key}: {threshold:?} is not a threshold; write \"> 80\""));
            return None;
        }
        let text = format!("({}) {threshold}", expression.trim());
        self.check_expression(key, &text).then_some(text)
    }

    fn refuse_alert_keys(&mut self, raw: &RawRule) {
        let alert_keys = [
            ("for", raw.for_long.is_some()),
            ("keep_firing_for", raw.keep_firing_for.is_some()),
            ("annotations", !raw.annotations.is_empty()),
            ("no_data", raw.no_data.is_some()),
            ("no_data_for", raw.no_data_for.is_some()),
            ("recover", raw.recover.is_some()),
            (SEVERITY, raw.severity.is_some()),
        ];
        for (key, _) in alert_keys.into_iter().filter(|(_, is_given)| *is_given) {
            self.fault(format!("{key} is allowed only in rules with alert"));
        }
    }

    pub(super) fn check_expression(&mut self, key: &str, text: &str) -> bool {
        let checked = check_rule_promql(text, self.limits);
        if let Err(cause) = &checked {
            self.fault(format!("{key}: {cause}"));
        }
        checked.is_ok()
    }

    fn check_labels(&mut self, labels: &BTreeMap<String, String>, is_alert: bool) {
        for (name, value) in labels {
            if !is_label_name(name) || name == METRIC_TAG || (is_alert && name == ALERT_NAME) {
                self.fault(format!("labels: {name:?} cannot be set; choose another name"));
            }
            if is_alert {
                self.check_template("labels", name, value);
            }
        }
    }

    fn check_template(&mut self, key: &str, name: &str, text: &str) {
        if let Err(problem) = TemplateData::check(text) {
            self.fault(format!("{key}: {name}: {problem}"));
        }
    }
}

/// Returns a key that is unique in the group: name, labels, and a number if another rule shares
/// both.
fn unique(rules: &[Rule], name: &str, labels: &BTreeMap<String, String>) -> String {
    let key = format!("{name}{labels:?}");
    let is_duplicate = |rule: &&Rule| rule.name == *name && rule.labels == *labels;
    match rules.iter().filter(is_duplicate).count() {
        0 => key,
        more => format!("{key}#{}", more + 1),
    }
}

fn is_metric(name: &str) -> bool {
    is_word(name, |c| c == '_' || c == ':')
}

/// Returns whether Prometheus accepts the text as a label's name.
pub fn is_label_name(name: &str) -> bool {
    is_word(name, |c| c == '_')
}

/// Returns whether a text consists of letters, digits and these characters, and does not begin with
/// a digit.
fn is_word(name: &str, more: impl Fn(char) -> bool) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || more(c);
    name.chars().next().is_some_and(is_letter)
        && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}
