//! `info`: joins the labels of info series, such as `target_info`, to the series they describe.
//!
//! As in Prometheus (docs/querying/functions.md), an info series describes the series with its
//! `instance` and `job`. Must never know: how series are read.

use std::collections::HashMap;

use promql_parser::parser::{Expr, VectorSelector};

use super::{
    Labels, PromqlError,
    columns::{ABSENT, Grid, Series, is_present, join_same},
    evaluate::Evaluator,
    source::matchers_of,
};
use crate::{query::SeriesMatcher, store::METRIC_TAG};

/// The labels by which an info series is found.
const IDENTIFYING: [&str; 2] = ["instance", "job"];
/// The info series that is meant when none is named.
const DEFAULT_METRIC: &str = "target_info";

/// What the second argument of `info` asks for.
struct Wanted {
    selector: VectorSelector,
    /// Conditions on the metric's name.
    metric: Vec<SeriesMatcher>,
    /// Conditions on other labels: only these labels are joined, all when there are none.
    data: Vec<SeriesMatcher>,
}

/// The info series that describe one `instance` and `job`, with the times of their samples.
type Described<'a> = HashMap<[&'a str; 2], Vec<&'a Series>>;

impl Evaluator<'_> {
    /// The series of the first argument with the labels that the second one asks for.
    pub(super) fn info(
        &self,
        arguments: &[&Expr],
        grid: &Grid,
    ) -> Result<Vec<Series>, PromqlError> {
        let [base, rest @ ..] = arguments else {
            return Err(PromqlError::BadData("parse error: info needs an argument".to_owned()));
        };
        let base = self.vector(base, grid)?;
        let wanted = self.wanted(rest.first().copied())?;
        let found = self.instant(&wanted.selector, grid, true)?;
        let mut described = Described::new();
        for one in &found {
            described.entry(identity(&one.labels)).or_default().push(one);
        }
        let mut out = Vec::with_capacity(base.len());
        for one in base {
            self.check_time()?;
            if wanted.metric.iter().all(|matcher| matcher.matches(one.labels.metric())) {
                // Info series themselves stay as they are.
                out.push(one);
                continue;
            }
            let infos = described.get(&identity(&one.labels)).map_or(&[][..], Vec::as_slice);
            out.extend(joined(&one, infos, &wanted)?);
        }
        join_same(out)
    }

    fn wanted(&self, argument: Option<&Expr>) -> Result<Wanted, PromqlError> {
        let mut selector = match argument {
            None => VectorSelector::from(DEFAULT_METRIC),
            Some(Expr::VectorSelector(selector)) => selector.clone(),
            Some(other) => {
                return Err(PromqlError::BadData(format!(
                    "parse error: expected label selectors only, got {other} in call to \"info\""
                )));
            }
        };
        let named = selector.matchers.matchers.iter().any(|matcher| matcher.name == METRIC_TAG);
        if selector.name.is_none() && !named {
            selector.name = Some(DEFAULT_METRIC.to_owned());
        }
        let all = matchers_of(&selector, self.limits)?.into_iter().flatten();
        let (metric, data) = all.partition(|matcher| matcher.tag == METRIC_TAG);
        Ok(Wanted { selector, metric, data })
    }
}

fn identity(labels: &Labels) -> [&str; 2] {
    IDENTIFYING.map(|name| labels.get(name))
}

/// One series for each set of labels that it has over time.
fn joined(base: &Series, infos: &[&Series], wanted: &Wanted) -> Result<Vec<Series>, PromqlError> {
    let mut out: Vec<(Vec<usize>, Option<Series>)> = Vec::new();
    for (time, value) in base.values.iter().enumerate().filter(|(_, value)| is_present(**value)) {
        let current = current(infos, time)?;
        let known = out.iter().position(|(known, _)| *known == current);
        let place = known.unwrap_or(out.len());
        if known.is_none() {
            let labels = labels(&base.labels, &current, infos, wanted)?;
            let (drop_metric, values) = (base.drop_metric, vec![ABSENT; base.values.len()]);
            out.push((current, labels.map(|labels| Series { labels, drop_metric, values })));
        }
        if let Some(series) = &mut out[place].1 {
            series.values[time] = *value;
        }
    }
    Ok(out.into_iter().filter_map(|(_, series)| series).collect())
}

/// The newest info series of each metric at a time.
fn current(infos: &[&Series], time: usize) -> Result<Vec<usize>, PromqlError> {
    let mut newest: Vec<usize> = Vec::new();
    for (index, info) in infos.iter().enumerate().filter(|(_, info)| is_present(info.values[time]))
    {
        let same = |other: &&mut usize| infos[**other].labels.metric() == info.labels.metric();
        let Some(known) = newest.iter_mut().find(same) else {
            newest.push(index);
            continue;
        };
        let (before, now) = (infos[*known].values[time], info.values[time]);
        if before.total_cmp(&now).is_eq() {
            return Err(PromqlError::Execution(format!(
                "found duplicate series for info metric: {} and {}",
                infos[*known].labels, info.labels
            )));
        }
        if now > before {
            *known = index;
        }
    }
    Ok(newest)
}

/// The labels of a series with those of its info series; `None` when conditions on labels rule out
/// a series without any.
fn labels(
    base: &Labels,
    current: &[usize],
    infos: &[&Series],
    wanted: &Wanted,
) -> Result<Option<Labels>, PromqlError> {
    let is_wanted =
        |name: &str| wanted.data.is_empty() || wanted.data.iter().any(|own| own.tag == name);
    let mut joined = base.clone();
    let mut is_any = false;
    for index in current {
        for (name, value) in infos[*index].labels.iter() {
            if name == METRIC_TAG || !is_wanted(name) || !base.get(name).is_empty() {
                continue;
            }
            let known = joined.get(name);
            if !known.is_empty() && known != value {
                return Err(PromqlError::Execution(format!("conflicting label: {name}")));
            }
            is_any = true;
            joined = joined.with(name, value);
        }
    }
    let may_be_without = wanted.data.iter().all(|matcher| matcher.matches(""));
    Ok((is_any || may_be_without).then_some(joined))
}
