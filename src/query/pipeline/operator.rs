//! Operators that combine several values into one, for `$group` and for expressions.
//!
//! Must never know: stages, documents, expressions.

use std::collections::BTreeSet;

use super::{
    expression::arithmetic::add,
    order::{Key, compare},
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
const OF_LISTS: [Operator; 6] = [
    Operator::Sum,
    Operator::Avg,
    Operator::Min,
    Operator::Max,
    Operator::StdDevPop,
    Operator::StdDevSamp,
];

/// The intermediate result of an operator.
#[derive(Debug, Clone)]
pub(super) enum Gathered {
    Nothing,
    /// The sum and the number of values.
    Numbers(Value, u64),
    Spread(Spread),
    One(Value),
    Many(Vec<Value>),
    Set(BTreeSet<Key>),
}

/// The mean and the sum of squared distances from it, by Welford's method.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spread {
    n: u64,
    mean: f64,
    squares: f64,
}

impl Spread {
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
    pub(super) fn of_list(name: &str) -> Option<Self> {
        let found = OPERATORS
            .iter()
            .find(|(known, operator)| *known == name && OF_LISTS.contains(operator));
        found.map(|(_, operator)| *operator)
    }

    pub(super) fn names_of_list() -> impl Iterator<Item = &'static str> {
        OPERATORS.iter().filter(|(_, operator)| OF_LISTS.contains(operator)).map(|(name, _)| *name)
    }

    /// Combines values that are all available.
    pub(super) fn of_values(self, values: Vec<Value>) -> Value {
        let mut gathered = Gathered::Nothing;
        for value in values {
            self.gather(&mut gathered, Some(value));
        }
        self.finish(gathered)
    }

    pub(super) fn gather(self, gathered: &mut Gathered, found: Option<Value>) -> Option<usize> {
        match self {
            Self::StdDevPop | Self::StdDevSamp => {
                let number = found.and_then(|value| value.counted()?.number());
                let mut spread = if let Gathered::Spread(spread) = gathered {
                    *spread
                } else {
                    Spread::default()
                };
                if let Some(number) = number {
                    spread.add(number);
                }
                *gathered = Gathered::Spread(spread);
                Some(0)
            }
            Self::Sum | Self::Avg | Self::Count => {
                let number = found.and_then(|value| value.counted());
                let Some(number) = number else { return Some(0) };
                match gathered {
                    Gathered::Numbers(sum, n) => {
                        *sum = add(sum, &number);
                        *n += 1;
                    }
                    _ => *gathered = Gathered::Numbers(number, 1),
                }
                Some(0)
            }
            Self::Min | Self::Max => {
                let Some(value) = found.filter(|value| *value != Value::Null) else {
                    return Some(0);
                };
                let is_better = match gathered {
                    Gathered::One(best) if self == Self::Min => compare(&value, best).is_lt(),
                    Gathered::One(best) => compare(&value, best).is_gt(),
                    _ => true,
                };
                if is_better { hold(gathered, value) } else { Some(0) }
            }
            Self::First | Self::Last => hold(gathered, found.unwrap_or(Value::Null)),
            Self::Push => {
                let Some(value) = found else { return Some(0) };
                if matches!(gathered, Gathered::Nothing) {
                    *gathered = Gathered::Many(Vec::new());
                }
                let Gathered::Many(values) = gathered else { return Some(0) };
                let size = value.size()?;
                values.push(value);
                Some(size)
            }
            Self::AddToSet => {
                let Some(value) = found else { return Some(0) };
                if matches!(gathered, Gathered::Nothing) {
                    *gathered = Gathered::Set(BTreeSet::new());
                }
                let Gathered::Set(values) = gathered else { return Some(0) };
                let size = value.size()?;
                Some(if values.insert(Key(value)) { size } else { 0 })
            }
        }
    }

    pub(super) fn finish(self, gathered: Gathered) -> Value {
        match (self, gathered) {
            (Self::StdDevPop, Gathered::Spread(spread)) => {
                spread.deviation(1).map_or(Value::Null, Value::Float)
            }
            (_, Gathered::Spread(spread)) => spread.deviation(2).map_or(Value::Null, Value::Float),
            (Self::Avg, Gathered::Numbers(sum, n)) => {
                sum.number().map_or(Value::Null, |sum| Value::Float(sum / n as f64))
            }
            (_, Gathered::Numbers(sum, _)) => sum,
            (_, Gathered::One(value)) => value,
            (_, Gathered::Many(values)) => Value::List(values),
            (_, Gathered::Set(values)) => {
                Value::List(values.into_iter().map(|Key(value)| value).collect())
            }
            (Self::Sum | Self::Count, Gathered::Nothing) => Value::Int(0),
            (Self::Push | Self::AddToSet, Gathered::Nothing) => Value::List(Vec::new()),
            (_, Gathered::Nothing) => Value::Null,
        }
    }
}

fn hold(gathered: &mut Gathered, value: Value) -> Option<usize> {
    let size = value.size()?;
    *gathered = Gathered::One(value);
    // The size of a replaced value is not subtracted: the quota is an upper bound. Single values
    // are free.
    Some(size - 1)
}
