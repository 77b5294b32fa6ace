//! Rule files in Prometheus' format: parsing into checked groups, or a list of all faults.
//!
//! Must never know: where files are stored.

mod check;
mod raw;
mod slo;

use std::fmt;

use super::RuleGroup;
use crate::query::ExpressionLimits;
use check::FileChecker;
pub use check::is_label_name;
use raw::{RawFile, line_of};

/// The maximum size of a rule file, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// A fault in a rule file, with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFault {
    /// The file.
    pub file: String,
    /// The group and the rule; empty when the fault concerns the file.
    pub location: String,
    /// The line, counted from 1, where it is known.
    pub line: Option<u64>,
    /// The problem and its remedy.
    pub problem: String,
}

impl FileFault {
    /// Returns a fault that concerns a whole file.
    pub fn of_file(file: &str, problem: impl Into<String>) -> Self {
        let (file, problem) = (file.to_owned(), problem.into());
        Self { file, location: String::new(), line: None, problem }
    }

    /// Returns the fault of a file that is not valid YAML, or has unknown keys.
    pub(super) fn of_yaml(file: &str, cause: &serde_saphyr::Error) -> Self {
        let line = cause.location().and_then(line_of);
        Self { line, ..Self::of_file(file, cause.to_string()) }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, location, problem, line: _ } = self;
        match location.as_str() {
            "" => write!(f, "{file}: {problem}"),
            location => write!(f, "{file}: {location}: {problem}"),
        }
    }
}

impl std::error::Error for FileFault {}

/// Reads a rule file. Groups without an interval use `interval_ms`; expressions are parsed within
/// the limits.
///
/// # Errors
/// With all faults of the file.
pub fn read_rules(
    file: &str,
    text: &str,
    interval_ms: i64,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<RuleGroup>, Vec<FileFault>> {
    if text.len() > FILE_BYTES_MAX {
        let problem =
            format!("{} bytes exceed the limit of {FILE_BYTES_MAX}: split the file", text.len());
        return Err(vec![FileFault::of_file(file, problem)]);
    }
    let options = serde_saphyr::options! { with_snippet: false };
    let read = serde_saphyr::from_str_with_options::<Option<RawFile>>(text, options);
    let raw = read.map_err(|cause| vec![FileFault::of_yaml(file, &cause)])?;
    let mut checking = FileChecker::new(file, interval_ms, limits);
    let RawFile { groups, slos } = raw.unwrap_or_default();
    let checked = groups.into_iter().map(|group| {
        checking.line = group.line;
        checking.group(group.value)
    });
    let mut groups: Vec<_> = checked.collect();
    groups.extend(checking.slos(slos));
    let faults = checking.into_faults();
    if faults.is_empty() { Ok(groups) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        alerts::{Action, NoData, Rule},
        query::{Budget, ExpressionLimits},
    };

    const LIMITS: ExpressionLimits<'static> = ExpressionLimits {
        series_max: 1000,
        points_max: 10_000,
        steps_max: 11_000,
        query_bytes_max: 65_536,
        regex_bytes_max: 1 << 20,
        budget: &Budget::UNLIMITED,
    };

    pub(super) fn read(text: &str) -> Result<Vec<RuleGroup>, String> {
        read_rules("rules.yml", text, 60_000, &LIMITS).map_err(|faults| {
            faults.iter().map(FileFault::to_string).collect::<Vec<_>>().join("\n")
        })
    }

    fn rule(lines: &str) -> Result<Vec<RuleGroup>, String> {
        let lines: Vec<_> = lines.lines().map(str::trim).collect();
        read(&format!("groups:\n- name: g\n  rules:\n  - {}", lines.join("\n    ")))
    }

    #[test]
    fn the_example_file_of_prometheus_is_read() {
        let text = "groups:
- name: my-group-name
  interval: 30s   # defaults to global interval
  limit: 10
  rules:
  - record: instance:errors:rate5m
    expr: rate(errors_total[5m])
  - record: instance:requests:rate5m
    expr: rate(requests_total[5m])
    labels: {zone: 1}
  - alert: HighErrors
    # Expressions remain PromQL.
    expr: |
      sum without(instance) (instance:errors:rate5m)
      /
      sum without(instance) (instance:requests:rate5m)
    for: 5m
    keep_firing_for: 1h30m
    labels:
      severity: critical
    annotations:
      description: \"stuff's happening with {{ $labels.service }}\"
- name: my-another-name
  rules: []
";
        let groups = read(text).unwrap();
        assert_eq!((groups[0].interval_ms, groups[0].limit), (30_000, 10));
        assert_eq!(groups[1].interval_ms, 60_000);
        assert_eq!(groups[0].rules[1].labels["zone"], "1");
        let Action::Alert(policy) = &groups[0].rules[2].action else { panic!("{groups:?}") };
        assert_eq!((policy.for_ms, policy.keep_firing_ms), (300_000, 5_400_000));
        assert_eq!(policy.no_data, NoData::Ok);
        assert_eq!(read("").unwrap(), []);
        assert_eq!(read("# nothing yet\n").unwrap(), []);
    }

    #[test]
    fn each_fault_is_reported_with_its_location() {
        let check = |lines: &str, expected: &[&str]| {
            let message = rule(lines).unwrap_err();
            for part in expected.iter().chain(&["rules.yml"]) {
                assert!(message.contains(part), "{part:?} in {message:?}");
            }
        };
        check("alert: A\nexpr: up\nno_dta: ok", &["no_dta"]);
        check("alert: A\nexpr: up\nno_data: perhaps", &["rule 1 (A)", "no_data", "perhaps"]);
        check("alert: A\nexpr: up ==", &["rule 1 (A)", "expr", "parse error"]);
        check("alert: A\nrecord: b\nexpr: up", &["alert", "record"]);
        check("expr: up", &["alert", "record"]);
        check("record: b\nexpr: up\nfor: 5m", &["for", "alert"]);
        check("record: b c\nexpr: up", &["b c"]);
        check("alert: A\nexpr: up\nfor: 5 minutes", &["for", "5 minutes"]);
        check("alert: A\nexpr: up\nlabels: {alertname: b}", &["alertname"]);
        check("alert: A\nexpr: up\nlabels: {__name__: b}", &["__name__"]);
        check("alert: A\nexpr: up\nannotations: {a: '{{ .x'}", &["annotations", "a"]);
        check("alert: A\nexpr: up\nlabels: {a: '{{ nope }}'}", &["labels", "nope"]);
        check("alert: A\nexpr: up[5m]", &["range vector"]);
        check("alert: A\nexpr: up\nno_data_for: 5m", &["no_data_for", "no_data"]);
        check("alert: A\nexpr: up and up > 1\nrecover: '< 3'", &["recover", "comparison"]);
        check("alert: A\nexpr: up\nseverity: {a: nope}", &["severity", "nope"]);
        let twice = "groups:\n- name: g\n- name: g\n- name: ''\n";
        let message = read(twice).unwrap_err();
        assert!(message.contains("\"g\" appears twice") && message.contains("empty"), "{message}");
        assert!(read("groups:\n- name: g\n  intervall: 5m").unwrap_err().contains("intervall"));
        assert!(
            read("groups:\n- name: g\n  interval: 500ms").unwrap_err().contains("whole seconds")
        );
    }

    #[test]
    fn faults_have_the_line_of_their_group_rule_or_slo() {
        let text = "groups:
- name: g
  interval: 5
  rules:
  - record: a
    expr: up
  - alert: B
    expr: up ==
- name: g
slos:
- {name: s, target: 200}
";
        let faults = read_rules("rules.yml", text, 60_000, &LIMITS).unwrap_err();
        let lines: Vec<_> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines[..3], [Some(2), Some(7), Some(9)], "{faults:?}");
        assert!(lines[3..].iter().all(|line| *line == Some(11)) && lines.len() > 3, "{faults:?}");
        let unknown = read_rules("rules.yml", "groups:\n- nam: g", 60_000, &LIMITS).unwrap_err();
        assert_eq!(unknown[0].line, Some(2));
    }

    #[test]
    fn granarys_keys_become_expressions() {
        let groups = rule(
            "alert: Full\nexpr: disk_used / disk_total * 100 > 90\nrecover: '< 80'\n\
             no_data: alerting\nno_data_for: 10m",
        );
        let groups = groups.unwrap();
        let Action::Alert(policy) = &groups[0].rules[0].action else { panic!("{groups:?}") };
        let measured = "disk_used / disk_total * 100";
        assert_eq!(policy.measured.as_deref(), Some(measured));
        assert_eq!(policy.recover, Some(format!("({measured}) < 80")));
        assert_eq!((policy.no_data, policy.no_data_for_ms), (NoData::Alerting, Some(600_000)));
        let groups =
            rule("alert: Full\nexpr: used{a=~\"x.*\"}\nseverity: {low: '> 1', high: '> 2'}");
        let groups = groups.unwrap();
        let level = |rule: &'_ Rule| (rule.expression.clone(), rule.labels["severity"].clone());
        let levels: Vec<_> = groups[0].rules.iter().map(level).collect();
        let shown = |expr: &str, level: &str| (expr.to_owned(), level.to_owned());
        let used = "(used{a=~\"x.*\"})";
        let expected =
            [shown(&format!("{used} > 1"), "low"), shown(&format!("{used} > 2"), "high")];
        assert_eq!(levels, expected);
        assert_ne!(groups[0].rules[0].key, groups[0].rules[1].key);
    }
}
