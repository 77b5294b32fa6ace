//! `granary rules test`: runs unit tests in promtool's format with Granary's PromQL and alerts,
//! without a daemon.

mod bench;
mod file;
mod series;

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, bail};

use crate::{
    alerts::{ExternalIdentity, LabelSet, RuleGroup},
    config::Settings,
    kept::RuleSources,
    model::{UnixMillis, parse_duration_ms},
    query::{Budget, Labels},
};
use bench::Bench;
use file::{AlertTest, ExpressionTest, TestFile, TestGroup};

/// The maximum number of evaluations of a test.
const EVALUATIONS_MAX: i64 = 1_000_000;

/// Runs the tests of a file, and returns the failures.
pub(super) fn run(path: &Path, settings: &Settings) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let options = serde_saphyr::options! { with_snippet: false };
    let file: TestFile = serde_saphyr::from_str_with_options(&text, options)
        .with_context(|| format!("read {}", path.display()))?;
    let interval_ms = duration("evaluation_interval", &file.evaluation_interval)?;
    let groups = groups(&file, path, interval_ms, settings)?;
    let mut faults = Vec::new();
    for (index, test) in file.tests.iter().enumerate() {
        let name = if test.name.is_empty() {
            format!("test {}", index + 1)
        } else {
            format!("test {:?}", test.name)
        };
        let runner = TestRunner { group: test, interval_ms, settings };
        match runner.run(groups.clone()) {
            Ok(failures) => {
                faults.extend(failures.into_iter().map(|fault| format!("{name}: {fault}")));
            }
            Err(cause) => faults.push(format!("{name}: {cause:#}")),
        }
    }
    Ok(faults)
}

fn duration(key: &str, text: &str) -> anyhow::Result<i64> {
    parse_duration_ms(text).with_context(|| format!("{key}: {text:?} is not a duration"))
}

/// Pairs expectations with their times.
fn timed<T>(all: &[T], time: impl Fn(&T) -> &String) -> anyhow::Result<Vec<(i64, &T)>> {
    all.iter()
        .map(|expectation| Ok((duration("eval_time", time(expectation))?, expectation)))
        .collect()
}

/// Returns the rules under test, in their order.
fn groups(
    file: &TestFile,
    path: &Path,
    interval_ms: i64,
    settings: &Settings,
) -> anyhow::Result<Vec<RuleGroup>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let paths = file.rule_files.iter();
    let paths = paths.map(|file| folder.join(file).to_string_lossy().into_owned()).collect();
    let mut groups = RuleSources { paths, interval_ms, ..RuleSources::default() }
        .read(&settings.promql_settings())?
        .groups;
    let place = |group: &RuleGroup| {
        let order = file.group_eval_order.iter().position(|name| *name == group.name);
        order.unwrap_or(usize::MAX)
    };
    groups.sort_by_key(place);
    Ok(groups)
}

struct TestRunner<'a> {
    group: &'a TestGroup,
    interval_ms: i64,
    settings: &'a Settings,
}

impl TestRunner<'_> {
    /// Runs a test, and returns its failures.
    fn run(&self, groups: Vec<RuleGroup>) -> anyhow::Result<Vec<String>> {
        let external = ExternalIdentity {
            url: self.group.external_url.trim_end_matches('/').to_owned(),
            labels: self.group.external_labels.clone(),
        };
        let mut bench = Bench::new(groups, self.settings.promql_settings(), external)?;
        let (step_ms, input) = self.input()?;
        let alerts = timed(&self.group.alert_rule_test, |test| &test.eval_time)?;
        let expressions = timed(&self.group.promql_expr_test, |test| &test.eval_time)?;
        let mut added = 0;
        let mut faults = Vec::new();
        let times = alerts.iter().map(|test| test.0).chain(expressions.iter().map(|test| test.0));
        for at in self.times(times)? {
            while (added as i64) * step_ms <= at {
                let samples: Vec<_> = input
                    .iter()
                    .filter_map(|(labels, values)| Some((labels.clone(), (*values.get(added)?)?)))
                    .collect();
                bench.add(&samples, UnixMillis(added as i64 * step_ms))?;
                added += 1;
            }
            if at % self.interval_ms == 0 {
                bench.evaluate(UnixMillis(at))?;
            }
            for (time, test) in &alerts {
                // An expectation is about the last evaluation at or before its time.
                if time - time % self.interval_ms == at {
                    faults.extend(check_alerts(test, &bench));
                }
            }
            for (_, test) in expressions.iter().filter(|(time, _)| *time == at) {
                faults.extend(self.check_expression(test, &bench, UnixMillis(at))?);
            }
        }
        Ok(faults)
    }

    /// Returns the series with a value for each step.
    #[expect(clippy::type_complexity, reason = "the type is a list of series with their values")]
    fn input(&self) -> anyhow::Result<(i64, Vec<(Labels, Vec<Option<f64>>)>)> {
        let step_ms = duration("interval", &self.group.interval)?;
        if step_ms < 1000 || self.interval_ms < 1000 {
            bail!("interval and evaluation_interval must be 1s or more");
        }
        let limits = self.settings.promql_settings().limits(&Budget::UNLIMITED);
        let mut input = Vec::new();
        for series in &self.group.input_series {
            input.push((series::labels(&series.series, &limits)?, series::values(&series.values)?));
        }
        Ok((step_ms, input))
    }

    /// Returns the times of all evaluations, up to the last expectation.
    fn times(&self, expected: impl Iterator<Item = i64>) -> anyhow::Result<BTreeSet<i64>> {
        let expected: Vec<_> = expected.collect();
        let last = expected.iter().copied().max().unwrap_or(0);
        if last / self.interval_ms > EVALUATIONS_MAX {
            bail!("eval_time is more than {EVALUATIONS_MAX} evaluations after the start");
        }
        let regular = (0..=last / self.interval_ms).map(|count| count * self.interval_ms);
        Ok(regular.chain(expected).collect())
    }

    fn check_expression(
        &self,
        test: &ExpressionTest,
        bench: &Bench,
        at: UnixMillis,
    ) -> anyhow::Result<Option<String>> {
        let limits = self.settings.promql_settings().limits(&Budget::UNLIMITED);
        let ExpressionTest { expr, eval_time, .. } = test;
        let mut expected = Vec::new();
        for sample in &test.exp_samples {
            expected.push((series::labels(&sample.labels, &limits)?, sample.value));
        }
        let found = match bench.query_vector(expr, at) {
            Ok(found) => found,
            Err(cause) => return Ok(Some(format!("expr {expr:?}, time {eval_time}: {cause}"))),
        };
        let mut found: Vec<_> =
            found.into_iter().map(|sample| (sample.labels, sample.value)).collect();
        for samples in [&mut found, &mut expected] {
            samples.sort_by(|first, second| first.0.cmp(&second.0));
        }
        let is_same = |(first, second): (&(Labels, f64), &(Labels, f64))| {
            first.0 == second.0 && is_almost(first.1, second.1)
        };
        if found.len() == expected.len() && found.iter().zip(&expected).all(is_same) {
            return Ok(None);
        }
        let shown = |samples: &[(Labels, f64)]| {
            let samples =
                samples.iter().map(|(labels, value)| format!("{} {value}", series::shown(labels)));
            format!("[{}]", samples.collect::<Vec<_>>().join(", "))
        };
        Ok(Some(format!(
            "expr {expr:?}, time {eval_time}:\n  exp: {}\n  got: {}",
            shown(&expected),
            shown(&found)
        )))
    }
}

/// Returns true when two numbers are equal up to rounding, with the tolerance of Prometheus' tests.
fn is_almost(first: f64, second: f64) -> bool {
    const TOLERANCE: f64 = 1e-6;
    first == second
        || (first.is_nan() && second.is_nan())
        || (first - second).abs() <= TOLERANCE * (first.abs() + second.abs()) / 2.0
}

fn check_alerts(test: &AlertTest, bench: &Bench) -> Option<String> {
    let AlertTest { eval_time, alertname, exp_alerts } = test;
    let mut expected: Vec<_> = exp_alerts
        .iter()
        .map(|alert| {
            let mut labels = alert.exp_labels.clone();
            labels.insert("alertname".to_owned(), alertname.clone());
            (labels, alert.exp_annotations.clone())
        })
        .collect();
    let firing = bench.firing(alertname);
    let mut found: Vec<_> =
        firing.into_iter().map(|alert| (alert.labels.clone(), alert.annotations.clone())).collect();
    expected.sort();
    found.sort();
    let shown = |alerts: &[(LabelSet, LabelSet)]| {
        let alerts =
            alerts.iter().map(|(labels, annotations)| format!("{labels:?} {annotations:?}"));
        format!("[{}]", alerts.collect::<Vec<_>>().join(", "))
    };
    (expected != found).then(|| {
        format!(
            "alertname {alertname}, time {eval_time}:\n  exp: {}\n  got: {}",
            shown(&expected),
            shown(&found)
        )
    })
}
