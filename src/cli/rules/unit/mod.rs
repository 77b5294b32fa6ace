//! `granary rules test`: runs promtool's unit tests of rules, with Granary's own PromQL and alerts.
//!
//! Knows nothing of a running daemon.

mod bench;
mod file;
mod series;

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, bail};

use crate::{
    alerts::{External, LabelSet, RuleGroup},
    config::Settings,
    kept::RuleSources,
    model::{UnixMillis, length_ms},
    query::{Budget, Labels},
};
use bench::Bench;
use file::{AlertTest, ExpressionTest, TestFile, TestGroup};

/// Evaluations of one test, at most.
const EVALUATIONS_MAX: i64 = 1_000_000;

/// Runs the tests of a file; returns what went wrong, each a text of its own.
pub(super) fn run(path: &Path, settings: &Settings) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let options = serde_saphyr::options! { with_snippet: false };
    let file: TestFile = serde_saphyr::from_str_with_options(&text, options)
        .with_context(|| format!("read {}", path.display()))?;
    let interval_ms = length("evaluation_interval", &file.evaluation_interval)?;
    let groups = groups(&file, path, interval_ms, settings)?;
    let mut faults = Vec::new();
    for (index, test) in file.tests.iter().enumerate() {
        let name = if test.name.is_empty() {
            format!("test {}", index + 1)
        } else {
            format!("test {:?}", test.name)
        };
        let own = Test { own: test, interval_ms, settings };
        match own.run(groups.clone()) {
            Ok(own) => faults.extend(own.into_iter().map(|fault| format!("{name}: {fault}"))),
            Err(cause) => faults.push(format!("{name}: {cause:#}")),
        }
    }
    Ok(faults)
}

fn length(key: &str, text: &str) -> anyhow::Result<i64> {
    length_ms(text).with_context(|| format!("{key}: {text:?} is no length of time"))
}

/// What is expected, each with its time.
fn timed<T>(all: &[T], time: impl Fn(&T) -> &String) -> anyhow::Result<Vec<(i64, &T)>> {
    all.iter().map(|own| Ok((length("eval_time", time(own))?, own))).collect()
}

/// The rules that are tested, in their order.
fn groups(
    file: &TestFile,
    path: &Path,
    interval_ms: i64,
    settings: &Settings,
) -> anyhow::Result<Vec<RuleGroup>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let paths = file.rule_files.iter();
    let paths = paths.map(|own| folder.join(own).to_string_lossy().into_owned()).collect();
    let mut groups = RuleSources { paths, interval_ms, ..RuleSources::default() }
        .read(&settings.promql_settings())?
        .groups;
    let place = |group: &RuleGroup| {
        let order = file.group_eval_order.iter().position(|own| *own == group.name);
        order.unwrap_or(usize::MAX)
    };
    groups.sort_by_key(place);
    Ok(groups)
}

struct Test<'a> {
    own: &'a TestGroup,
    interval_ms: i64,
    settings: &'a Settings,
}

impl Test<'_> {
    /// Says what is not as expected.
    fn run(&self, groups: Vec<RuleGroup>) -> anyhow::Result<Vec<String>> {
        let external = External {
            url: self.own.external_url.trim_end_matches('/').to_owned(),
            labels: self.own.external_labels.clone(),
        };
        let mut bench = Bench::new(groups, self.settings.promql_settings(), external)?;
        let (step_ms, input) = self.input()?;
        let alerts = timed(&self.own.alert_rule_test, |own| &own.eval_time)?;
        let expressions = timed(&self.own.promql_expr_test, |own| &own.eval_time)?;
        let mut taken = 0;
        let mut faults = Vec::new();
        let asked = alerts.iter().map(|own| own.0).chain(expressions.iter().map(|own| own.0));
        for at in self.times(asked)? {
            while (taken as i64) * step_ms <= at {
                let samples: Vec<_> = input
                    .iter()
                    .filter_map(|(labels, values)| Some((labels.clone(), (*values.get(taken)?)?)))
                    .collect();
                bench.add(&samples, UnixMillis(taken as i64 * step_ms))?;
                taken += 1;
            }
            if at % self.interval_ms == 0 {
                bench.evaluate(UnixMillis(at))?;
            }
            for (time, own) in &alerts {
                // What the last evaluation at or before that time found.
                if time - time % self.interval_ms == at {
                    faults.extend(check_alerts(own, &bench));
                }
            }
            for (_, own) in expressions.iter().filter(|(time, _)| *time == at) {
                faults.extend(self.check_expression(own, &bench, UnixMillis(at))?);
            }
        }
        Ok(faults)
    }

    /// The series, with a value for each step.
    #[expect(clippy::type_complexity, reason = "it is a list of series with their values")]
    fn input(&self) -> anyhow::Result<(i64, Vec<(Labels, Vec<Option<f64>>)>)> {
        let step_ms = length("interval", &self.own.interval)?;
        if step_ms < 1000 || self.interval_ms < 1000 {
            bail!("interval and evaluation_interval must be 1s or more");
        }
        let limits = self.settings.promql_settings().limits(&Budget::UNLIMITED);
        let mut input = Vec::new();
        for own in &self.own.input_series {
            input.push((series::labels(&own.series, &limits)?, series::values(&own.values)?));
        }
        Ok((step_ms, input))
    }

    /// When something is evaluated, up to the last time at which something is expected.
    fn times(&self, asked: impl Iterator<Item = i64>) -> anyhow::Result<BTreeSet<i64>> {
        let asked: Vec<_> = asked.collect();
        let last = asked.iter().copied().max().unwrap_or(0);
        if last / self.interval_ms > EVALUATIONS_MAX {
            bail!("eval_time is more than {EVALUATIONS_MAX} evaluations after the beginning");
        }
        let regular = (0..=last / self.interval_ms).map(|count| count * self.interval_ms);
        Ok(regular.chain(asked).collect())
    }

    fn check_expression(
        &self,
        own: &ExpressionTest,
        bench: &Bench,
        at: UnixMillis,
    ) -> anyhow::Result<Option<String>> {
        let limits = self.settings.promql_settings().limits(&Budget::UNLIMITED);
        let ExpressionTest { expr, eval_time, .. } = own;
        let mut expected = Vec::new();
        for sample in &own.exp_samples {
            expected.push((series::labels(&sample.labels, &limits)?, sample.value));
        }
        let found = match bench.ask(expr, at) {
            Ok(found) => found,
            Err(cause) => return Ok(Some(format!("expr {expr:?}, time {eval_time}: {cause}"))),
        };
        let mut found: Vec<_> = found.into_iter().map(|own| (own.labels, own.value)).collect();
        for samples in [&mut found, &mut expected] {
            samples.sort_by(|one, next| one.0.cmp(&next.0));
        }
        let is_same = |(own, other): (&(Labels, f64), &(Labels, f64))| {
            own.0 == other.0 && is_almost(own.1, other.1)
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

/// Whether two numbers are one but for what calculating loses, as Prometheus' own tests have it.
fn is_almost(own: f64, other: f64) -> bool {
    const PART: f64 = 1e-6;
    own == other
        || (own.is_nan() && other.is_nan())
        || (own - other).abs() <= PART * (own.abs() + other.abs()) / 2.0
}

fn check_alerts(own: &AlertTest, bench: &Bench) -> Option<String> {
    let AlertTest { eval_time, alertname, exp_alerts } = own;
    let mut expected: Vec<_> = exp_alerts
        .iter()
        .map(|own| {
            let mut labels = own.exp_labels.clone();
            labels.insert("alertname".to_owned(), alertname.clone());
            (labels, own.exp_annotations.clone())
        })
        .collect();
    let told = bench.told(alertname);
    let mut found: Vec<_> =
        told.into_iter().map(|own| (own.labels.clone(), own.annotations.clone())).collect();
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
