//! `info`: joins the labels of info series, such as `target_info`, to the series they describe.
//!
//! As in Prometheus (docs/querying/functions.md), an info series describes the series with its
//! `instance` and `job`. Must never know: how series are read.

use std::{
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
};

use promql_parser::parser::Expr;

use crate::{
    model::METRIC_TAG,
    query::{
        MatchOperator, SeriesMatcher,
        promql::{
            Labels, PromqlError,
            evaluate::expression::{Evaluator, offset_ms},
            parse::matchers::{conditions_of, first_selector},
            value::{
                series::{ABSENT, Series, Value, is_present, join_same},
                steps::Grid,
            },
        },
        whole_pattern,
    },
};

/// The labels by which an info series is found.
const IDENTIFYING: [&str; 2] = ["instance", "job"];
/// The info series that is meant when none is named.
const DEFAULT_METRIC: &str = "target_info";

/// The metrics that are meant when it is only said which ones are not.
const ANY_METRIC: &str = ".+_info";

/// What the second argument of `info` asks for.
struct Wanted {
    /// Conditions on an info series, those on its metric's name first.
    matchers: Vec<SeriesMatcher>,
    /// How many of them are on the metric's name.
    on_metric: usize,
}

impl Wanted {
    fn metric(&self) -> &[SeriesMatcher] {
        &self.matchers[..self.on_metric]
    }

    /// Conditions on other labels: only these labels are joined, all when there are none.
    fn data(&self) -> &[SeriesMatcher] {
        &self.matchers[self.on_metric..]
    }
}

/// The info series that describe one `instance` and `job`, with the times of their samples.
type Described<'a> = HashMap<[&'a str; 2], Vec<&'a Series>>;

impl Evaluator<'_> {
    /// The series of the first argument with the labels that the second one asks for.
    pub(crate) fn info(
        &self,
        arguments: &[&Expr],
        grid: &Grid,
    ) -> Result<Vec<Series>, PromqlError> {
        let [base, rest @ ..] = arguments else {
            return Err(PromqlError::BadData("parse error: info needs an argument".to_owned()));
        };
        let times = self.sample_times(base, grid);
        let base = Value::Vector(self.vector(base, grid)?);
        let wanted = self.wanted(rest.first().copied())?;
        let held = self.hold(&base);
        let found = self.newest_times(&wanted.matchers, grid, &times)?;
        drop(held);
        let Value::Vector(base) = base else { return Ok(Vec::new()) };
        let is_info =
            |one: &Series| wanted.metric().iter().all(|own| own.matches(one.labels.metric()));
        let described = described(&base, &found, is_info);
        let mut out = Vec::with_capacity(base.len());
        for one in &base {
            self.check_time()?;
            if is_info(one) {
                // Info series themselves stay as they are.
                out.push(one.clone());
                continue;
            }
            let infos = described.get(&identity(&one.labels)).map_or(&[][..], Vec::as_slice);
            out.extend(joined(one, infos, &wanted)?);
            self.check_points(out.len(), grid.count)?;
        }
        join_same(out)
    }

    /// Which samples of info series count: those that lie where the first selector of the series
    /// that are described looks, by its `@` and `offset`.
    fn sample_times(&self, base: &Expr, grid: &Grid) -> RangeInclusive<i64> {
        let selector = first_selector(base);
        let at = selector.and_then(|selector| self.at(selector.at.as_ref()));
        let offset = selector.map_or(0, |selector| offset_ms(selector.offset.as_ref()));
        let (first, last) = (at.unwrap_or(grid.start), at.unwrap_or(grid.last()));
        first - offset - self.lookback_ms + 1..=last - offset
    }

    fn wanted(&self, argument: Option<&Expr>) -> Result<Wanted, PromqlError> {
        let given = match argument {
            None => Vec::new(),
            Some(Expr::VectorSelector(selector)) => {
                conditions_of(selector, self.limits)?.into_iter().flatten().collect()
            }
            Some(other) => {
                return Err(PromqlError::BadData(format!(
                    "parse error: expected label selectors only, got {other} in call to \"info\""
                )));
            }
        };
        let (mut matchers, data): (Vec<_>, Vec<_>) =
            given.into_iter().partition(|matcher: &SeriesMatcher| matcher.tag == METRIC_TAG);
        let says_which = |matcher: &SeriesMatcher| match matcher.operator {
            MatchOperator::Equal(_) | MatchOperator::Pattern(_) => true,
            MatchOperator::NotEqual(_) | MatchOperator::NotPattern(_) => false,
        };
        if matchers.is_empty() {
            matchers.push(SeriesMatcher::equal(METRIC_TAG, DEFAULT_METRIC));
        } else if !matchers.iter().any(says_which) {
            let pattern = whole_pattern(ANY_METRIC, self.limits)?;
            let operator = MatchOperator::Pattern(pattern);
            matchers.push(SeriesMatcher { tag: METRIC_TAG.to_owned(), operator });
        }
        let on_metric = matchers.len();
        matchers.extend(data);
        Ok(Wanted { matchers, on_metric })
    }
}

/// The info series by what they describe. Only those count that agree with some described series in
/// each identifying label that any of these has.
fn described<'a>(
    base: &[Series],
    found: &'a [Series],
    is_info: impl Fn(&Series) -> bool,
) -> Described<'a> {
    let mut values: [HashSet<&str>; 2] = [HashSet::new(), HashSet::new()];
    for one in base.iter().filter(|one| !is_info(one)) {
        for (values, value) in values.iter_mut().zip(identity(&one.labels)) {
            if !value.is_empty() {
                values.insert(value);
            }
        }
    }
    let mut described = Described::new();
    if values.iter().all(HashSet::is_empty) {
        return described;
    }
    for one in found {
        let identity = identity(&one.labels);
        let mut pairs = values.iter().zip(identity);
        if pairs.all(|(values, value)| values.is_empty() || values.contains(value)) {
            described.entry(identity).or_default().push(one);
        }
    }
    described
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
            let mut two = [&infos[*known].labels, &info.labels];
            two.sort();
            let [first, next] = two.map(|labels| format!("{labels} @ {}", (now * 1000.0).round()));
            return Err(PromqlError::Execution(format!(
                "found duplicate series for info metric: existing {first}, new {next}"
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
        |name: &str| wanted.data().is_empty() || wanted.data().iter().any(|own| own.tag == name);
    let mut joined = base.clone();
    for index in current {
        for (name, value) in infos[*index].labels.iter() {
            if name == METRIC_TAG || !is_wanted(name) || !base.get(name).is_empty() {
                continue;
            }
            let known = joined.get(name);
            if !known.is_empty() && known != value {
                return Err(PromqlError::Execution(format!("conflicting label: {name}")));
            }
            joined = joined.with(name, value);
        }
    }
    let may_be_without = wanted.data().iter().all(|matcher| matcher.matches(""));
    Ok((!current.is_empty() || may_be_without).then_some(joined))
}
