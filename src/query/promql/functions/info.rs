//! `info`, which adds the labels of info series, such as `target_info`, to the series that they
//! describe.
//!
//! An info series describes the series with the same `instance` and `job`, as in Prometheus
//! (docs/querying/functions.md). Must never know: how series are read, the tree.

use std::collections::{HashMap, HashSet};

use crate::query::{Labels, QueryError};
use crate::{
    model::METRIC_TAG,
    query::{
        MatchOperator, SeriesMatcher,
        promql::{
            context::{Context, bounds::Bounds},
            value::series::{ABSENT, Series, is_present, join_same},
        },
    },
};

/// The labels that identify an info series.
const IDENTIFYING_LABELS: [&str; 2] = ["instance", "job"];
/// The default info metric.
const DEFAULT_METRIC: &str = "target_info";

/// The pattern of info metrics that is used when the matchers only exclude names.
const ANY_METRIC: &str = ".+_info";

/// The info series that the second argument of `info` selects.
pub(crate) struct InfoSelector {
    /// The matchers, with matchers on the metric's name first.
    matchers: Vec<SeriesMatcher>,
    /// Number of matchers on the metric's name.
    metric_matchers: usize,
}

impl InfoSelector {
    /// Creates a selector, with a default matcher when no matcher selects a metric's name.
    pub(crate) fn new(
        requested: Vec<SeriesMatcher>,
        bounds: &Bounds<'_>,
    ) -> Result<Self, QueryError> {
        let (mut matchers, data): (Vec<_>, Vec<_>) =
            requested.into_iter().partition(|matcher: &SeriesMatcher| matcher.tag == METRIC_TAG);
        let is_positive = |matcher: &SeriesMatcher| match matcher.operator {
            MatchOperator::Equal(_) | MatchOperator::Pattern(_) => true,
            MatchOperator::NotEqual(_) | MatchOperator::NotPattern(_) => false,
        };
        if matchers.is_empty() {
            matchers.push(SeriesMatcher::equal(METRIC_TAG, DEFAULT_METRIC));
        } else if !matchers.iter().any(is_positive) {
            let operator = MatchOperator::Pattern(bounds.pattern(ANY_METRIC)?);
            matchers.push(SeriesMatcher { tag: METRIC_TAG.to_owned(), operator });
        }
        let metric_matchers = matchers.len();
        matchers.extend(data);
        Ok(Self { matchers, metric_matchers })
    }

    /// Returns all matchers.
    pub(crate) fn matchers(&self) -> &[SeriesMatcher] {
        &self.matchers
    }

    fn is_info(&self, series: &Series) -> bool {
        self.matchers[..self.metric_matchers]
            .iter()
            .all(|matcher| matcher.matches(series.labels.metric()))
    }

    /// Returns the matchers on other labels. Only labels with a matcher are added; without
    /// matchers, all labels are added.
    fn data_matchers(&self) -> &[SeriesMatcher] {
        &self.matchers[self.metric_matchers..]
    }
}

/// The info series for each pair of `instance` and `job`. Their values are the times of their
/// samples.
type InfoSeriesByTarget<'a> = HashMap<[&'a str; 2], Vec<&'a Series>>;

/// Adds the labels of info series to the series of `base`. The values of `found` are the times of
/// the info samples.
pub(crate) fn add_info_labels(
    base: &[Series],
    found: &[Series],
    selector: &InfoSelector,
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    let by_target = infos_by_target(base, found, |entry| selector.is_info(entry));
    let mut out = Vec::with_capacity(base.len());
    for entry in base {
        context.bounds.check_time()?;
        if selector.is_info(entry) {
            // Info series themselves stay unchanged.
            out.push(entry.clone());
            continue;
        }
        let infos = by_target.get(&identity(&entry.labels)).map_or(&[][..], Vec::as_slice);
        out.extend(with_info_labels(entry, infos, selector)?);
        context.bounds.check_points(out.len(), context.steps.count)?;
    }
    join_same(out)
}

/// Groups info series by the pair that they describe. An info series only counts when its
/// identifying labels match the labels of a series in `base`.
fn infos_by_target<'a>(
    base: &[Series],
    found: &'a [Series],
    is_info: impl Fn(&Series) -> bool,
) -> InfoSeriesByTarget<'a> {
    let mut values: [HashSet<&str>; 2] = [HashSet::new(), HashSet::new()];
    for entry in base.iter().filter(|entry| !is_info(entry)) {
        for (values, value) in values.iter_mut().zip(identity(&entry.labels)) {
            if !value.is_empty() {
                values.insert(value);
            }
        }
    }
    let mut by_target = InfoSeriesByTarget::new();
    if values.iter().all(HashSet::is_empty) {
        return by_target;
    }
    for entry in found {
        let identity = identity(&entry.labels);
        let mut pairs = values.iter().zip(identity);
        if pairs.all(|(values, value)| values.is_empty() || values.contains(value)) {
            by_target.entry(identity).or_default().push(entry);
        }
    }
    by_target
}

fn identity(labels: &Labels) -> [&str; 2] {
    IDENTIFYING_LABELS.map(|name| labels.get(name))
}

/// Returns one series for each set of labels over time.
fn with_info_labels(
    base: &Series,
    infos: &[&Series],
    selector: &InfoSelector,
) -> Result<Vec<Series>, QueryError> {
    let mut out: Vec<(Vec<usize>, Option<Series>)> = Vec::new();
    for time in (0..base.values.len()).filter(|time| base.is_at(*time)) {
        let current = newest_infos(infos, time)?;
        let known = out.iter().position(|(known, _)| *known == current);
        let index = known.unwrap_or(out.len());
        if known.is_none() {
            let labels = joined_labels(&base.labels, &current, infos, selector)?;
            let (drop_metric, values) = (base.drop_metric, vec![ABSENT; base.values.len()]);
            out.push((current, labels.map(|labels| Series::new(labels, drop_metric, values))));
        }
        if let Some(series) = &mut out[index].1 {
            series.copy(time, base);
        }
    }
    Ok(out.into_iter().filter_map(|(_, series)| series).collect())
}

/// Returns the newest info series of each metric at a time.
fn newest_infos(infos: &[&Series], time: usize) -> Result<Vec<usize>, QueryError> {
    let mut newest: Vec<usize> = Vec::new();
    for (index, info) in infos.iter().enumerate().filter(|(_, info)| is_present(info.values[time]))
    {
        let has_same_metric =
            |other: &&mut usize| infos[**other].labels.metric() == info.labels.metric();
        let Some(known) = newest.iter_mut().find(has_same_metric) else {
            newest.push(index);
            continue;
        };
        let (before, now) = (infos[*known].values[time], info.values[time]);
        if before.total_cmp(&now).is_eq() {
            let mut both_labels = [&infos[*known].labels, &info.labels];
            both_labels.sort();
            let [first, next] =
                both_labels.map(|labels| format!("{labels} @ {}", (now * 1000.0).round()));
            return Err(QueryError::Execution(format!(
                "found duplicate series for info metric: existing {first}, new {next}"
            )));
        }
        if now > before {
            *known = index;
        }
    }
    Ok(newest)
}

/// Adds the labels of its info series to the labels of a series. Returns `None` when a matcher
/// excludes a series without info labels.
fn joined_labels(
    base: &Labels,
    current: &[usize],
    infos: &[&Series],
    selector: &InfoSelector,
) -> Result<Option<Labels>, QueryError> {
    let is_added = |name: &str| {
        selector.data_matchers().is_empty()
            || selector.data_matchers().iter().any(|matcher| matcher.tag == name)
    };
    let mut joined = base.clone();
    for index in current {
        for (name, value) in infos[*index].labels.iter() {
            if name == METRIC_TAG || !is_added(name) || !base.get(name).is_empty() {
                continue;
            }
            let known = joined.get(name);
            if !known.is_empty() && known != value {
                return Err(QueryError::Execution(format!("conflicting label: {name}")));
            }
            joined = joined.with(name, value);
        }
    }
    let may_be_without = selector.data_matchers().iter().all(|matcher| matcher.matches(""));
    Ok((!current.is_empty() || may_be_without).then_some(joined))
}
