//! Operators that combine several values into one, for `$group` and for expressions.
//!
//! Must never know: stages, documents, expressions.

use std::collections::BTreeSet;

use super::{
    arithmetic::add,
    order::{GroupKey, compare},
    percentiles::PercentileState,
    value::Value,
};

/// An operator that combines values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Sum,
    Avg,
    Min,
    Max,
    First,
    Last,
    Push,
    AddToSet,
    Count,
    StdDevPop,
    StdDevSamp,
}

pub(super) const OPERATORS: [(&str, Operator); 11] = [
    ("$sum", Operator::Sum),
    ("$avg", Operator::Avg),
    ("$min", Operator::Min),
    ("$max", Operator::Max),
    ("$first", Operator::First),
    ("$last", Operator::Last),
    ("$push", Operator::Push),
    ("$addToSet", Operator::AddToSet),
    ("$count", Operator::Count),
    ("$stdDevPop", Operator::StdDevPop),
    ("$stdDevSamp", Operator::StdDevSamp),
];

/// The operators that are also expressions, over a list or several arguments.
const IN_EXPRESSIONS: [Operator; 6] = [
    Operator::Sum,
    Operator::Avg,
    Operator::Min,
    Operator::Max,
    Operator::StdDevPop,
    Operator::StdDevSamp,
];

/// The intermediate result of an operator.
#[derive(Debug, Clone)]
pub(super) enum AccumulatorState {
    Nothing,
    /// The sum and the number of values.
    Numbers(Value, u64),
    Deviation(Deviation),
    One(Value),
    Many(Vec<Value>),
    Set(BTreeSet<GroupKey>),
    Percentiles(PercentileState),
}

/// The mean and the sum of squared distances from the mean, by Welford's method.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Deviation {
    n: u64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    fn add(&mut self, number: f64) {
        self.n += 1;
        let distance = number - self.mean;
        self.mean += distance / self.n as f64;
        self.squares += distance * (number - self.mean);
    }

    /// Returns the standard deviation; `None` when there are fewer than `least` numbers.
    fn deviation(self, least: u64) -> Option<f64> {
        let divisor = self.n - least.min(self.n) + 1;
        (self.n >= least).then(|| (self.squares / divisor as f64).sqrt())
    }
}

impl Operator {
    pub(super) fn named_in_expressions(name: &str) -> Option<Self> {
        let found = OPERATORS
            .iter()
            .find(|(known, operator)| *known == name && IN_EXPRESSIONS.contains(operator));
        found.map(|(_, operator)| *operator)
    }

    pub(super) fn names_in_expressions() -> impl Iterator<Item = &'static str> {
        OPERATORS
            .iter()
            .filter(|(_, operator)| IN_EXPRESSIONS.contains(operator))
            .map(|(name, _)| *name)
    }

    /// Combines values that are all available.
    pub(super) fn combine(self, values: Vec<Value>) -> Value {
        let mut accumulated = AccumulatorState::Nothing;
        for value in values {
            self.accumulate(&mut accumulated, Some(value));
        }
        self.finish(accumulated)
    }

    /// Adds a value. Returns by how many values the result has grown; `None` when they are nested
    /// too deeply.
    pub(super) fn accumulate(
        self,
        accumulated: &mut AccumulatorState,
        found: Option<Value>,
    ) -> Option<usize> {
        match self {
            Self::StdDevPop | Self::StdDevSamp => {
                let number = found.and_then(|value| value.to_number()?.number());
                let mut deviation = if let AccumulatorState::Deviation(deviation) = accumulated {
                    *deviation
                } else {
                    Deviation::default()
                };
                if let Some(number) = number {
                    deviation.add(number);
                }
                *accumulated = AccumulatorState::Deviation(deviation);
                Some(0)
            }
            Self::Sum | Self::Avg | Self::Count => {
                let number = found.and_then(|value| value.to_number());
                let Some(number) = number else { return Some(0) };
                match accumulated {
                    AccumulatorState::Numbers(sum, n) => {
                        *sum = add(sum, &number);
                        *n += 1;
                    }
                    _ => *accumulated = AccumulatorState::Numbers(number, 1),
                }
                Some(0)
            }
            Self::Min | Self::Max => {
                let Some(value) = found.filter(|value| *value != Value::Null) else {
                    return Some(0);
                };
                let is_better = match accumulated {
                    AccumulatorState::One(best) if self == Self::Min => {
                        compare(&value, best).is_lt()
                    }
                    AccumulatorState::One(best) => compare(&value, best).is_gt(),
                    _ => true,
                };
                if is_better { replace(accumulated, value) } else { Some(0) }
            }
            Self::First | Self::Last => replace(accumulated, found.unwrap_or(Value::Null)),
            Self::Push => {
                let Some(value) = found else { return Some(0) };
                if matches!(accumulated, AccumulatorState::Nothing) {
                    *accumulated = AccumulatorState::Many(Vec::new());
                }
                let AccumulatorState::Many(values) = accumulated else { return Some(0) };
                let size = value.size()?;
                values.push(value);
                Some(size)
            }
            Self::AddToSet => {
                let Some(value) = found else { return Some(0) };
                if matches!(accumulated, AccumulatorState::Nothing) {
                    *accumulated = AccumulatorState::Set(BTreeSet::new());
                }
                let AccumulatorState::Set(values) = accumulated else { return Some(0) };
                let size = value.size()?;
                Some(if values.insert(GroupKey(value)) { size } else { 0 })
            }
        }
    }

    pub(super) fn finish(self, accumulated: AccumulatorState) -> Value {
        match (self, accumulated) {
            (Self::StdDevPop, AccumulatorState::Deviation(deviation)) => {
                deviation.deviation(1).map_or(Value::Null, Value::Float)
            }
            (_, AccumulatorState::Deviation(deviation)) => {
                deviation.deviation(2).map_or(Value::Null, Value::Float)
            }
            (Self::Avg, AccumulatorState::Numbers(sum, n)) => {
                sum.number().map_or(Value::Null, |sum| Value::Float(sum / n as f64))
            }
            (_, AccumulatorState::Numbers(sum, _)) => sum,
            (_, AccumulatorState::One(value)) => value,
            (_, AccumulatorState::Many(values)) => Value::List(values),
            (_, AccumulatorState::Set(values)) => {
                Value::List(values.into_iter().map(|GroupKey(value)| value).collect())
            }
            (Self::Sum | Self::Count, AccumulatorState::Nothing) => Value::Int(0),
            (Self::Push | Self::AddToSet, AccumulatorState::Nothing) => Value::List(Vec::new()),
            (_, AccumulatorState::Nothing | AccumulatorState::Percentiles(_)) => Value::Null,
        }
    }
}

fn replace(accumulated: &mut AccumulatorState, value: Value) -> Option<usize> {
    let size = value.size()?;
    *accumulated = AccumulatorState::One(value);
    // The size of a replaced value is not subtracted: the quota is an upper bound. Single values
    // are free.
    Some(size - 1)
}
