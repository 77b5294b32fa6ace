//! Function calls: which argument is what, and who computes.
//!
//! Must never know: how documents are read.

use promql_parser::{
    label::MatchOp,
    parser::{Call, Expr, VectorSelector},
};

use super::expression::{Evaluator, Matrix, is_matrix};
use crate::{
    model::{Kind, METRIC_TAG},
    policy::query_plan::Detail,
    query::promql::{
        Labels, PromqlError,
        functions::{
            histograms, labels, maths,
            over_time::{self, WindowFunction},
            rates,
        },
        parse::{extensions::REACH_LABEL, guard::unmarked},
        selectors::{extended::reaching, instant::Take},
        value::{
            numbers::{larger, smaller},
            series::{ABSENT, Series, Value, is_present},
            steps::Grid,
        },
    },
};

impl Evaluator<'_> {
    /// What a function call comes to.
    pub(crate) fn call(&self, call: &Call, grid: &Grid) -> Result<Value, PromqlError> {
        let name = call.func.name;
        let arguments: Vec<&Expr> = call.args.args.iter().map(|argument| &**argument).collect();
        let window = over_time::function(name).or_else(|| rates::function(name));
        if let Some(function) = window {
            return Ok(Value::Vector(self.window_call(call, function, &arguments, grid)?));
        }
        if let Some(values) = self.scalar_call(name, &arguments, grid)? {
            return Ok(Value::Scalar(values));
        }
        let first = arguments.first().copied();
        let vector = || self.vector(argument(first, name)?, grid);
        Ok(Value::Vector(match name {
            "absent" => {
                let found = vector()?;
                absent(&selector_labels(argument(first, name)?), &found, grid)
            }
            "absent_over_time" => self.absent_over_time(argument(first, name)?, grid)?,
            "info" => self.info(&arguments, grid)?,
            "timestamp" => self.timestamp(argument(first, name)?, grid)?,
            "vector" => {
                let values = self.scalar(argument(first, name)?, grid)?;
                vec![Series { labels: Labels::default(), drop_metric: false, values }]
            }
            "label_replace" | "label_join" => {
                let texts = self.texts(arguments.get(1..).unwrap_or_default(), grid)?;
                if name == "label_join" {
                    labels::join(vector()?, &texts, self.limits)?
                } else {
                    labels::replace(vector()?, &texts, self.limits)?
                }
            }
            "sort" | "sort_desc" | "sort_by_label" | "sort_by_label_desc" if self.is_range() => {
                self.warn_of_sort(call);
                vector()?
            }
            "sort" | "sort_desc" => labels::sorted(vector()?, grid, name == "sort"),
            "sort_by_label" | "sort_by_label_desc" => {
                let names = self.texts(arguments.get(1..).unwrap_or_default(), grid)?;
                labels::sorted_by(vector()?, grid, &names, name == "sort_by_label")
            }
            "histogram_quantile" => self.histogram_quantile(call, &arguments, grid)?,
            "histogram_quantiles" => self.histogram_quantiles(call, &arguments, grid)?,
            "histogram_fraction" => {
                let [low, high] = [0, 1]
                    .map(|index| self.scalar(argument(arguments.get(index).copied(), name)?, grid));
                let series = self.vector(argument(arguments.get(2).copied(), name)?, grid)?;
                histograms::fractions(&low?, &high?, &series, grid, &mut self.notes.borrow_mut())
            }
            // Native histograms are not stored; of floats these give nothing.
            "histogram_avg" | "histogram_count" | "histogram_stddev" | "histogram_stdvar"
            | "histogram_sum" => vector().map(|_| Vec::new())?,
            _ => self.number_call(name, &arguments, grid)?,
        }))
    }

    fn histogram_quantile(
        &self,
        call: &Call,
        arguments: &[&Expr],
        grid: &Grid,
    ) -> Result<Vec<Series>, PromqlError> {
        let [quantiles, buckets] = arguments else { return Err(missing("histogram_quantile")) };
        let quantiles = self.scalar(quantiles, grid)?;
        let series = self.vector(buckets, grid)?;
        self.check_quantiles(&quantiles, self.positions.of_argument(call, 0));
        let mut notes = self.notes.borrow_mut();
        notes.at(self.positions.of_argument(call, 1));
        let found = histograms::quantiles(&quantiles, &series, grid, &mut notes);
        notes.at(None);
        Ok(found)
    }

    /// `histogram_quantiles`: the buckets, the label that tells quantiles apart, and the quantiles.
    fn histogram_quantiles(
        &self,
        call: &Call,
        arguments: &[&Expr],
        grid: &Grid,
    ) -> Result<Vec<Series>, PromqlError> {
        let [buckets, label, quantiles @ ..] = arguments else {
            return Err(missing("histogram_quantiles"));
        };
        let texts = self.texts(&[*label], grid)?;
        let quantiles =
            quantiles.iter().map(|one| self.scalar(one, grid)).collect::<Result<Vec<_>, _>>()?;
        let series = self.vector(buckets, grid)?;
        self.check_points(series.len() * quantiles.len(), grid.count)?;
        for (index, own) in quantiles.iter().enumerate() {
            self.check_quantiles(own, self.positions.of_argument(call, index + 2));
        }
        let mut notes = self.notes.borrow_mut();
        histograms::several_quantiles(&texts.concat(), &quantiles, &series, grid, &mut notes)
    }

    /// Whether the query asks for several times.
    fn is_range(&self) -> bool {
        self.end != self.query.start
    }

    fn warn_of_sort(&self, call: &Call) {
        let text =
            "sort is ineffective for range queries since results are always ordered by labels";
        let mut notes = self.notes.borrow_mut();
        notes.at(self.positions.of_call(call));
        notes.warn(|| text.to_owned());
        notes.at(None);
    }

    /// Warns of quantiles that are none.
    pub(crate) fn check_quantiles(&self, quantiles: &[f64], place: Option<String>) {
        let mut notes = self.notes.borrow_mut();
        notes.at(place);
        for q in quantiles {
            over_time::check_quantile(*q, &mut notes);
        }
        notes.at(None);
    }

    /// Functions over windows.
    fn window_call(
        &self,
        call: &Call,
        function: WindowFunction,
        arguments: &[&Expr],
        grid: &Grid,
    ) -> Result<Vec<Series>, PromqlError> {
        let name = call.func.name;
        if let Some(reaching) = arguments.iter().find_map(|argument| reaching(argument)) {
            return self.reaching_call(name, reaching, grid);
        }
        let (mut matrix, mut numbers) = (None, Vec::new());
        for argument in arguments {
            if is_matrix(argument) {
                matrix = Some(self.matrix(argument, grid, over_time::detail(name))?);
            } else {
                numbers.push(self.scalar(argument, grid)?);
            }
        }
        let Some(matrix) = matrix else { return Err(missing(name)) };
        let mut at_time = vec![0.0; numbers.len()];
        self.notes.borrow_mut().at(self.positions.of_argument(call, 0));
        let series = self.over_windows(&matrix, grid, |window, index| {
            for (own, all) in at_time.iter_mut().zip(&numbers) {
                *own = all[index];
            }
            function(window, &at_time, &mut self.notes.borrow_mut())
        });
        if let (Ok(series), "rate" | "increase") = (&series, name) {
            self.inform_of_gauges(&matrix, series);
        }
        self.notes.borrow_mut().at(None);
        let mut series = series?;
        if !matches!(name, "last_over_time" | "first_over_time") {
            for one in &mut series {
                one.drop_metric = true;
            }
        }
        Ok(series)
    }

    /// Tells of series under `rate` that are no counters, by their names as Prometheus does.
    fn inform_of_gauges(&self, matrix: &Matrix, answered: &[Series]) {
        let counters = ["_total", "_sum", "_count", "_bucket"];
        let gauges = matrix.loaded.series.iter().filter(|one| one.kind == Kind::Gauge);
        let mut metrics: Vec<_> = gauges.map(|one| one.labels.metric()).collect();
        metrics.dedup();
        for metric in metrics {
            let counts = metric.is_empty() || counters.iter().any(|end| metric.ends_with(end));
            if !counts && answered.iter().any(|one| one.labels.metric() == metric) {
                self.notes.borrow_mut().inform(|| {
                    format!(
                        "metric might not be a counter, name does not end in \
                         _total/_sum/_count/_bucket: {metric:?}"
                    )
                });
            }
        }
    }

    /// Functions that give one number for each time.
    fn scalar_call(
        &self,
        name: &str,
        arguments: &[&Expr],
        grid: &Grid,
    ) -> Result<Option<Vec<f64>>, PromqlError> {
        let seconds = |millis: i64| millis as f64 / 1000.0;
        let constant = |number: f64| Ok(Some(vec![number; grid.count]));
        match name {
            "time" => Ok(Some(grid.times().map(seconds).collect())),
            "pi" => constant(std::f64::consts::PI),
            "start" => constant(seconds(self.query.start)),
            "end" => constant(seconds(self.end)),
            "range" => constant(seconds(self.end - self.query.start)),
            "step" if self.query.count < 2 => constant(0.0),
            "step" => constant(seconds(self.query.step)),
            "min_of" | "max_of" => {
                let one = self.scalar(argument(arguments.first().copied(), name)?, grid)?;
                let next = self.scalar(argument(arguments.get(1).copied(), name)?, grid)?;
                let choose = if name == "min_of" { smaller } else { larger };
                Ok(Some(one.into_iter().zip(next).map(|(one, next)| choose(one, next)).collect()))
            }
            "scalar" => {
                let series = self.vector(argument(arguments.first().copied(), name)?, grid)?;
                Ok(Some((0..grid.count).map(|at| only_value(&series, at)).collect()))
            }
            _ => Ok(None),
        }
    }

    /// Functions from number to number.
    fn number_call(
        &self,
        name: &str,
        arguments: &[&Expr],
        grid: &Grid,
    ) -> Result<Vec<Series>, PromqlError> {
        if let Some(function) = maths::of_time(name) {
            let of_now = || {
                let values = grid.times().map(|at| at as f64 / 1000.0).collect();
                vec![Series { labels: Labels::default(), drop_metric: false, values }]
            };
            let series =
                arguments.first().map_or_else(|| Ok(of_now()), |a| self.vector(a, grid))?;
            return Ok(mapped(series, |_, value| function(value)));
        }
        let series = self.vector(argument(arguments.first().copied(), name)?, grid)?;
        if let Some(function) = maths::of_one(name) {
            return Ok(mapped(series, |_, value| function(value)));
        }
        let others = arguments.get(1..).unwrap_or_default();
        let numbers: Vec<Vec<f64>> =
            others.iter().map(|one| self.scalar(one, grid)).collect::<Result<_, _>>()?;
        let function = maths::of_several(name).ok_or_else(|| {
            PromqlError::Execution(format!("the function {name} is not supported here"))
        })?;
        let mut at_time = [f64::NAN; 2];
        Ok(mapped(series, |at, value| {
            for (own, all) in at_time.iter_mut().zip(&numbers) {
                *own = all[at];
            }
            function(value, &at_time[..numbers.len().min(2)])
        }))
    }

    /// `timestamp`: of a selector the sample's time, of anything else the evaluation time.
    fn timestamp(&self, argument: &Expr, grid: &Grid) -> Result<Vec<Series>, PromqlError> {
        let mut inner = argument;
        while let Expr::Paren(paren) = inner {
            inner = &paren.expr;
        }
        if let Expr::VectorSelector(selector) = inner {
            let series = self.instant(selector, grid, Take::Time)?;
            return Ok(mapped(series, |_, value| value));
        }
        let series = self.vector(argument, grid)?;
        Ok(mapped(series, |at, _| grid.at(at) as f64 / 1000.0))
    }

    fn absent_over_time(&self, argument: &Expr, grid: &Grid) -> Result<Vec<Series>, PromqlError> {
        let matrix = self.matrix(argument, grid, Detail::Aggregates)?;
        let found = self.over_windows(&matrix, grid, |_, _| Ok(Some(1.0)))?;
        Ok(absent(&selector_labels(argument), &found, grid))
    }

    fn texts(&self, arguments: &[&Expr], grid: &Grid) -> Result<Vec<String>, PromqlError> {
        let text = |argument: &&Expr| match self.value(argument, grid)? {
            Value::Text(text) => Ok(text),
            Value::Scalar(_) | Value::Vector(_) => {
                Err(PromqlError::BadData(format!("parse error: {argument} is no string")))
            }
        };
        arguments.iter().map(text).collect()
    }
}

fn argument<'e>(found: Option<&'e Expr>, name: &str) -> Result<&'e Expr, PromqlError> {
    found.ok_or_else(|| missing(name))
}

fn missing(name: &str) -> PromqlError {
    PromqlError::BadData(format!("parse error: an argument is missing in the call to {name:?}"))
}

/// Applies a function to every value; the metric's name no longer fits then.
fn mapped(mut series: Vec<Series>, mut function: impl FnMut(usize, f64) -> f64) -> Vec<Series> {
    for one in &mut series {
        one.drop_metric = true;
        for (at, value) in one.values.iter_mut().enumerate() {
            if is_present(*value) {
                *value = function(at, *value);
            }
        }
    }
    series.retain(Series::has_values);
    series
}

/// The value of the only series that has one; NaN when none or several have.
fn only_value(series: &[Series], at: usize) -> f64 {
    let mut there = series.iter().map(|one| one.values[at]).filter(|value| is_present(*value));
    match (there.next(), there.next()) {
        (Some(value), None) => value,
        _ => f64::NAN,
    }
}

/// 1 where no series has a value.
fn absent(labels: &Labels, found: &[Series], grid: &Grid) -> Vec<Series> {
    let missing = |at: usize| !found.iter().any(|one| is_present(one.values[at]));
    let values = (0..grid.count).map(|at| if missing(at) { 1.0 } else { ABSENT }).collect();
    let series = Series { labels: labels.clone(), drop_metric: false, values };
    if series.has_values() { vec![series] } else { Vec::new() }
}

/// The labels that a selector names a single value of.
fn selector_labels(expression: &Expr) -> Labels {
    let selector: &VectorSelector = match expression {
        Expr::Paren(inner) => return selector_labels(&inner.expr),
        Expr::VectorSelector(selector) => selector,
        Expr::MatrixSelector(matrix) => &matrix.vs,
        Expr::Aggregate(_)
        | Expr::Unary(_)
        | Expr::Binary(_)
        | Expr::Subquery(_)
        | Expr::NumberLiteral(_)
        | Expr::StringLiteral(_)
        | Expr::Call(_)
        | Expr::Extension(_) => return Labels::default(),
    };
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for matcher in &selector.matchers.matchers {
        if [METRIC_TAG, REACH_LABEL].contains(&matcher.name.as_str()) {
            continue;
        }
        let equal = matches!(matcher.op, MatchOp::Equal) && unmarked(&matcher.value).0 == "=";
        // A label named twice has no single value.
        if let Some(place) = pairs.iter().position(|(name, _)| *name == matcher.name) {
            pairs[place].1 = "";
        } else {
            pairs.push((&matcher.name, if equal { &matcher.value } else { "" }));
        }
    }
    Labels::new(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
}
