//! Aggregations of a part of the series, such as those of one shard, whose states can be merged
//! with those of other parts.
//!
//! The result is that of the aggregation of all series at once, except for the last bits of sums:
//! a sum and its compensation are added to those of the parts before it, always in the same order.
//! Must never know: the store, where the parts are.

use super::{
    Aggregator,
    fold::{Fold, FoldedGroups, Maximum, MemberCount, Minimum, Presence},
    numbers,
    topk::PickedSeries,
};
use crate::query::{
    Labels, QueryError,
    promql::{
        context::{Context, bounds::KeptMemory},
        syntax::{operator::Aggregation, tree::Grouping},
        value::{
            numbers::{Mean, Sum},
            series::{Series, Value},
        },
    },
    wire::{count, put_count, put_value, take, value},
};

/// An aggregation of numbers whose state can be sent. Native histograms are not supported.
pub(crate) trait PartialAggregator {
    /// Adds a part of the input. The series of the parts are in order.
    fn add(&mut self, series: Vec<Series>) -> Result<(), QueryError>;

    /// Returns the approximate number of series of the result so far.
    fn series_count(&self) -> usize;

    /// Writes the state.
    fn encode(self: Box<Self>, out: &mut Vec<u8>) -> Result<(), QueryError>;

    /// Adds the state of other series. Returns `None` when its bytes are damaged.
    fn merge(&mut self, bytes: &[u8]) -> Option<Result<(), QueryError>>;

    /// Returns the result.
    fn finish(self: Box<Self>) -> Result<Vec<Series>, QueryError>;
}

/// Creates an aggregation of a part; `None` when its states cannot be merged.
pub(crate) fn partial_aggregator<'a>(
    operation: Aggregation,
    grouping: Option<&'a Grouping>,
    parameter: Option<Value>,
    context: &'a Context<'a>,
) -> Result<Option<Box<dyn PartialAggregator + 'a>>, QueryError> {
    Ok(Some(match operation {
        Aggregation::Avg => folded(grouping, context, Mean::mean),
        Aggregation::Sum => folded(grouping, context, Sum::total),
        Aggregation::Count => folded(grouping, context, |MemberCount(count): &_| *count),
        Aggregation::Group => folded(grouping, context, |_: &Presence| 1.0),
        Aggregation::Max => folded(grouping, context, |Maximum(value): &_| *value),
        Aggregation::Min => folded(grouping, context, |Minimum(value): &_| *value),
        Aggregation::Topk | Aggregation::Bottomk | Aggregation::Limitk => {
            let numbers = numbers(parameter)?;
            let new = move || PickedSeries::new(operation, &numbers, grouping, context);
            Box::new(PartialPick { picked: new(), others: Vec::new(), new: Box::new(new), context })
        }
        Aggregation::CountValues
        | Aggregation::LimitRatio
        | Aggregation::Quantile
        | Aggregation::Stddev
        | Aggregation::Stdvar => return Ok(None),
    }))
}

/// Returns true when the states of an aggregation can be merged.
pub(crate) fn is_mergeable(operation: Aggregation) -> bool {
    use Aggregation::{
        Avg, Bottomk, Count, CountValues, Group, LimitRatio, Limitk, Max, Min, Quantile, Stddev,
        Stdvar, Sum, Topk,
    };
    match operation {
        Avg | Bottomk | Count | Group | Limitk | Max | Min | Sum | Topk => true,
        CountValues | LimitRatio | Quantile | Stddev | Stdvar => false,
    }
}

fn folded<'a, F: State + 'a>(
    grouping: Option<&'a Grouping>,
    context: &'a Context<'a>,
    result: fn(&F) -> f64,
) -> Box<dyn PartialAggregator + 'a> {
    let folded = FoldedGroups::new(grouping, context, move |_, state: F| result(&state));
    let memory = context.bounds.keep();
    Box::new(PartialFold { folded, firsts: Vec::new(), first_bytes: 0, memory })
}

/// A state that can be sent and merged.
trait State: Fold + Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn read(bytes: &mut &[u8]) -> Option<Self>;
    fn merge(&mut self, other: Self);
}

impl State for Sum {
    fn put(&self, out: &mut Vec<u8>) {
        for part in self.parts() {
            put_value(part, out);
        }
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self::of_parts([value(bytes)?, value(bytes)?]))
    }
    fn merge(&mut self, other: Self) {
        self.add_all(other);
    }
}

impl State for Mean {
    fn put(&self, out: &mut Vec<u8>) {
        let (parts, incremental) = self.parts();
        for part in parts {
            put_value(part, out);
        }
        out.push(u8::from(incremental));
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let parts = [value(bytes)?, value(bytes)?, value(bytes)?];
        let [incremental] = take(bytes)?;
        Some(Self::of_parts(parts, incremental == 1))
    }
    fn merge(&mut self, other: Self) {
        self.add_all(other);
    }
}

impl State for MemberCount {
    fn put(&self, out: &mut Vec<u8>) {
        put_value(self.0, out);
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        value(bytes).map(Self)
    }
    fn merge(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl State for Presence {
    fn put(&self, _: &mut Vec<u8>) {}
    fn read(_: &mut &[u8]) -> Option<Self> {
        Some(Self)
    }
    fn merge(&mut self, _: Self) {}
}

impl State for Maximum {
    fn put(&self, out: &mut Vec<u8>) {
        put_value(self.0, out);
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        value(bytes).map(Self)
    }
    fn merge(&mut self, other: Self) {
        self.update(other.0);
    }
}

impl State for Minimum {
    fn put(&self, out: &mut Vec<u8>) {
        put_value(self.0, out);
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        value(bytes).map(Self)
    }
    fn merge(&mut self, other: Self) {
        self.update(other.0);
    }
}

/// Groups whose states can be merged. Their order is that of their first series, as without parts.
struct PartialFold<'a, F> {
    folded: FoldedGroups<'a, F>,
    /// The labels of the first series of each group.
    firsts: Vec<Labels>,
    first_bytes: usize,
    memory: KeptMemory<'a>,
}

impl<F: State> PartialFold<'_, F> {
    /// Keeps the labels of a series if it is the first one of its group.
    fn keep_first(&mut self, series: &Series) -> Result<(), QueryError> {
        let (position, labels) = (self.folded.position_of(series), &series.labels);
        match self.firsts.get_mut(position) {
            Some(known) if *known <= *labels => return Ok(()),
            Some(known) => {
                self.first_bytes = self.first_bytes + labels.bytes() - known.bytes();
                self.memory.resize(self.first_bytes)?;
                *known = labels.clone();
            }
            None => {
                self.first_bytes += labels.bytes();
                self.memory.resize(self.first_bytes)?;
                self.firsts.push(labels.clone());
            }
        }
        Ok(())
    }
}

impl<F: State> PartialAggregator for PartialFold<'_, F> {
    fn add(&mut self, series: Vec<Series>) -> Result<(), QueryError> {
        self.folded.add_all(&series)?;
        series.iter().try_for_each(|entry| self.keep_first(entry))
    }

    fn series_count(&self) -> usize {
        self.folded.series_count()
    }

    fn encode(self: Box<Self>, out: &mut Vec<u8>) -> Result<(), QueryError> {
        put_count(self.firsts.len(), out);
        for ((drop_metric, states), first) in self.folded.into_states().zip(&self.firsts) {
            first.encode(out);
            out.push(u8::from(drop_metric));
            for state in states {
                out.push(u8::from(state.is_some()));
                if let Some(state) = state {
                    state.put(out);
                }
            }
        }
        Ok(())
    }

    fn merge(&mut self, mut bytes: &[u8]) -> Option<Result<(), QueryError>> {
        let bytes = &mut bytes;
        for _ in 0..count(bytes)? {
            let first = Labels::decode(bytes)?;
            let [drop_metric] = take(bytes)?;
            let member = Series::new(first, drop_metric == 1, Vec::new());
            let states = match self.folded.states_of(&member) {
                Ok(states) => states,
                Err(cause) => return Some(Err(cause)),
            };
            for state in states.iter_mut() {
                if take(bytes)? == [1] {
                    let other = F::read(bytes)?;
                    match state {
                        Some(state) => state.merge(other),
                        None => *state = Some(other),
                    }
                }
            }
            if let Err(cause) = self.keep_first(&member) {
                return Some(Err(cause));
            }
        }
        Some(Ok(()))
    }

    fn finish(self: Box<Self>) -> Result<Vec<Series>, QueryError> {
        let series = self.folded.into_series()?;
        let mut ordered: Vec<_> = self.firsts.into_iter().zip(series).collect();
        ordered.sort_by(|(one, _), (other, _)| one.cmp(other));
        let series = ordered.into_iter().map(|(_, series)| series);
        Ok(series.filter(Series::has_values).collect())
    }
}

/// Picked series: those of each part are the candidates of the whole.
struct PartialPick<'a> {
    picked: PickedSeries<'a>,
    others: Vec<Series>,
    new: Box<dyn Fn() -> PickedSeries<'a> + 'a>,
    context: &'a Context<'a>,
}

impl PartialAggregator for PartialPick<'_> {
    fn add(&mut self, series: Vec<Series>) -> Result<(), QueryError> {
        self.picked.add(series)
    }

    fn series_count(&self) -> usize {
        self.picked.series_count()
    }

    fn encode(self: Box<Self>, out: &mut Vec<u8>) -> Result<(), QueryError> {
        let series = Box::new(self.picked).finish()?;
        put_count(series.len(), out);
        for entry in series {
            entry.labels.encode(out);
            out.push(u8::from(entry.drop_metric));
            for value in entry.values {
                put_value(value, out);
            }
        }
        Ok(())
    }

    fn merge(&mut self, mut bytes: &[u8]) -> Option<Result<(), QueryError>> {
        let (bytes, steps) = (&mut bytes, self.context.steps.count);
        for _ in 0..count(bytes)? {
            let labels = Labels::decode(bytes)?;
            let needed = labels.bytes() + size_of::<Series>() + steps * size_of::<f64>();
            if let Err(cause) = self.context.bounds.reserve(needed) {
                return Some(Err(cause));
            }
            let [drop_metric] = take(bytes)?;
            let values = (0..steps).map(|_| value(bytes)).collect::<Option<Vec<_>>>()?;
            self.others.push(Series::new(labels, drop_metric == 1, values));
        }
        Some(Ok(()))
    }

    fn finish(self: Box<Self>) -> Result<Vec<Series>, QueryError> {
        let mut candidates = Box::new(self.picked).finish()?;
        candidates.extend(self.others);
        // Among equal values, the first series is picked.
        candidates.sort_by(|one, other| one.labels.cmp(&other.labels));
        let mut picked = (self.new)();
        picked.add(candidates)?;
        Box::new(picked).finish()
    }
}
