//! What `$group` gathers of the documents of a group.
//!
//! Must never know: stages, or how many groups there are.

use std::collections::BTreeSet;

use super::{
    expression::{Expression, add},
    order::{Key, compare},
    quota::Taken,
    value::{Fields, Value},
};
use crate::query::QueryError;

/// How values become one.
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

const OPERATORS: [(&str, Operator); 11] = [
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

/// Those that are expressions, too: of a list, or of several values.
const OF_LISTS: [Operator; 6] = [
    Operator::Sum,
    Operator::Avg,
    Operator::Min,
    Operator::Max,
    Operator::StdDevPop,
    Operator::StdDevSamp,
];

/// One accumulator of a `$group`.
#[derive(Debug, Clone)]
pub(super) struct Accumulator {
    operator: Operator,
    expression: Expression,
}

/// What was gathered so far.
#[derive(Debug, Clone)]
pub(super) enum Gathered {
    Nothing,
    /// Sum and number.
    Numbers(Value, u64),
    Spread(Spread),
    One(Value),
    Many(Vec<Value>),
    Set(BTreeSet<Key>),
}

/// Mean and squares of the distances from it, by the method of Welford.
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

    /// `None` where fewer than `least` numbers were added.
    fn deviation(self, least: u64) -> Option<f64> {
        let divisor = self.n - least.min(self.n) + 1;
        (self.n >= least).then(|| (self.squares / divisor as f64).sqrt())
    }
}

impl Operator {
    pub(super) fn of_list(name: &str) -> Option<Self> {
        let found = OPERATORS.iter().find(|(known, own)| *known == name && OF_LISTS.contains(own));
        found.map(|(_, own)| *own)
    }

    pub(super) fn names_of_list() -> impl Iterator<Item = &'static str> {
        OPERATORS.iter().filter(|(_, own)| OF_LISTS.contains(own)).map(|(name, _)| *name)
    }

    /// What it makes of values that are there at once.
    pub(super) fn of_values(self, values: Vec<Value>) -> Value {
        let mut gathered = Gathered::Nothing;
        for value in values {
            self.gather(&mut gathered, Some(value));
        }
        self.finish(gathered)
    }
}

impl Accumulator {
    /// How many documents a group has.
    pub(super) fn count() -> Self {
        Self { operator: Operator::Sum, expression: Expression::Literal(Value::Int(1)) }
    }

    /// Reads `{$sum: "$x"}`.
    ///
    /// # Errors
    /// With what is not known and what is.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        let Value::Fields(fields) = value else {
            return Err("takes an accumulator such as {$sum: \"$total\"}".to_owned());
        };
        let Some((name, argument)) = fields.single() else {
            return Err("takes one accumulator".to_owned());
        };
        let known = OPERATORS.iter().find(|(known, _)| *known == name);
        let Some((_, operator)) = known else {
            let names: Vec<_> = OPERATORS.iter().map(|(known, _)| *known).collect();
            return Err(format!("{name} is not known; use one of {}", names.join(", ")));
        };
        let expression = match operator {
            Operator::Count => {
                if !matches!(argument, Value::Fields(fields) if fields.len() == 0) {
                    return Err("$count takes {}".to_owned());
                }
                Expression::Literal(Value::Int(1))
            }
            _ => Expression::parse(argument)?,
        };
        Ok(Self { operator: *operator, expression })
    }

    /// Takes in a document, and `taken` what is made on the way; returns the values that this holds
    /// in memory from now on, `None` when they nest too deep.
    pub(super) fn take(
        &self,
        gathered: &mut Gathered,
        document: &Fields,
        taken: &mut Taken<'_>,
    ) -> Result<Option<usize>, QueryError> {
        if self.operator == Operator::First && matches!(gathered, Gathered::One(_)) {
            return Ok(Some(0));
        }
        Ok(self.operator.gather(gathered, self.expression.evaluate(document, taken)?))
    }

    /// What the group shows.
    pub(super) fn finish(&self, gathered: Gathered) -> Value {
        self.operator.finish(gathered)
    }
}

impl Operator {
    fn gather(self, gathered: &mut Gathered, found: Option<Value>) -> Option<usize> {
        match self {
            Operator::StdDevPop | Operator::StdDevSamp => {
                let number = found.and_then(|value| value.counted()?.number());
                let mut spread =
                    if let Gathered::Spread(own) = gathered { *own } else { Spread::default() };
                if let Some(number) = number {
                    spread.add(number);
                }
                *gathered = Gathered::Spread(spread);
                Some(0)
            }
            Operator::Sum | Operator::Avg | Operator::Count => {
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
            Operator::Min | Operator::Max => {
                let Some(value) = found.filter(|value| *value != Value::Null) else {
                    return Some(0);
                };
                let is_better = match gathered {
                    Gathered::One(best) if self == Operator::Min => compare(&value, best).is_lt(),
                    Gathered::One(best) => compare(&value, best).is_gt(),
                    _ => true,
                };
                if is_better { hold(gathered, value) } else { Some(0) }
            }
            Operator::First | Operator::Last => hold(gathered, found.unwrap_or(Value::Null)),
            Operator::Push => {
                let Some(value) = found else { return Some(0) };
                if matches!(gathered, Gathered::Nothing) {
                    *gathered = Gathered::Many(Vec::new());
                }
                let Gathered::Many(values) = gathered else { return Some(0) };
                let size = value.size()?;
                values.push(value);
                Some(size)
            }
            Operator::AddToSet => {
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

    fn finish(self, gathered: Gathered) -> Value {
        match (self, gathered) {
            (Operator::StdDevPop, Gathered::Spread(spread)) => {
                spread.deviation(1).map_or(Value::Null, Value::Float)
            }
            (_, Gathered::Spread(spread)) => spread.deviation(2).map_or(Value::Null, Value::Float),
            (Operator::Avg, Gathered::Numbers(sum, n)) => {
                sum.number().map_or(Value::Null, |sum| Value::Float(sum / n as f64))
            }
            (_, Gathered::Numbers(sum, _)) => sum,
            (_, Gathered::One(value)) => value,
            (_, Gathered::Many(values)) => Value::List(values),
            (_, Gathered::Set(values)) => {
                Value::List(values.into_iter().map(|Key(value)| value).collect())
            }
            (Operator::Sum | Operator::Count, Gathered::Nothing) => Value::Int(0),
            (Operator::Push | Operator::AddToSet, Gathered::Nothing) => Value::List(Vec::new()),
            (_, Gathered::Nothing) => Value::Null,
        }
    }
}

fn hold(gathered: &mut Gathered, value: Value) -> Option<usize> {
    let size = value.size()?;
    *gathered = Gathered::One(value);
    // What is replaced is not counted back: a bound, not a measure. Single values cost nothing.
    Some(size - 1)
}
