//! The operators `$percentile` and `$median`, for `$group` and for expressions.
//!
//! Up to [`EXACT_MAX`] numbers, the result is the number of the nearest rank. More numbers become a
//! histogram, whose percentiles are at most 1 % off, and histograms among the values are merged
//! with it. Must never know: stages.

use super::{distribution, value::Value};
use crate::model::{Histogram, observation};

/// The maximum number of numbers that are held one by one.
const EXACT_MAX: usize = 1000;
/// The maximum number of percentiles.
const SHARES_MAX: usize = 100;

/// The percentiles of an operator.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Percentiles {
    /// The share of values up to each percentile, from 0 to 1.
    shares: Vec<f64>,
    /// True for the median, which is a number and not a list.
    is_median: bool,
}

/// The values so far.
#[derive(Debug, Clone, Default)]
pub(super) struct PercentileState {
    /// The numbers, while they are few and there is no histogram.
    numbers: Vec<f64>,
    /// The number of values that are NaN. They precede all numbers, as in MongoDB, and are in no
    /// bucket of the histogram.
    nans: usize,
    histogram: Option<Box<Histogram>>,
}

pub(super) const NAMES: [&str; 2] = ["$percentile", "$median"];

impl Percentiles {
    /// Parses the argument of an operator; returns the percentiles and the input, or `None` for
    /// another operator.
    ///
    /// # Errors
    /// When the argument is invalid.
    pub(super) fn parse<'v>(
        name: &str,
        argument: &'v Value,
    ) -> Result<Option<(Self, &'v Value)>, String> {
        let is_median = match name {
            "$median" => true,
            "$percentile" => false,
            _ => return Ok(None),
        };
        let known: &[&str] =
            if is_median { &["input", "method"] } else { &["input", "p", "method"] };
        let example = if is_median {
            "{input: \"$value\", method: \"approximate\"}"
        } else {
            "{input: \"$value\", p: [0.5, 0.99], method: \"approximate\"}"
        };
        let Value::Fields(fields) = argument else { return Err(format!("{name} takes {example}")) };
        if let Some((other, _)) = fields.iter().find(|(field, _)| !known.contains(&&***field)) {
            return Err(format!("{name}: {other} is not known; use {}", known.join(", ")));
        }
        let method = fields.get("method").map(|method| method.as_text().map(AsRef::as_ref));
        if !matches!(method, None | Some(Some("approximate"))) {
            return Err(format!("{name}: method must be \"approximate\""));
        }
        let Some(input) = fields.get("input") else {
            return Err(format!("{name}: input is missing; it takes {example}"));
        };
        let shares = if is_median { vec![0.5] } else { shares(fields.get("p"))? };
        Ok(Some((Self { shares, is_median }, input)))
    }

    /// Returns the number of percentiles.
    pub(super) fn len(&self) -> usize {
        self.shares.len()
    }

    /// Returns the list of percentiles, or the median; `Null` without values.
    pub(super) fn finish(&self, mut state: PercentileState) -> Value {
        state.numbers.sort_by(f64::total_cmp);
        let value = |share: &f64| state.percentile(*share).map_or(Value::Null, Value::Float);
        match &self.shares[..] {
            [share] if self.is_median => value(share),
            shares => Value::List(shares.iter().map(value).collect()),
        }
    }
}

impl PercentileState {
    /// Adds a value; all but numbers and histograms are ignored. Returns by how many values the
    /// state has grown.
    pub(super) fn add(&mut self, value: &Value) -> usize {
        if let Value::Fields(fields) = value {
            return distribution::from_fields(fields).map_or(0, |found| self.merge(found));
        }
        let number = value.to_number().and_then(|value| value.number());
        number.map_or(0, |number| self.push(number))
    }

    fn push(&mut self, number: f64) -> usize {
        if number.is_nan() {
            self.nans += 1;
            return 0;
        }
        if self.histogram.is_none() && self.numbers.len() < EXACT_MAX {
            self.numbers.push(number);
            return 1;
        }
        self.merge(observation(number))
    }

    fn merge(&mut self, added: Histogram) -> usize {
        let mut before = self.histogram.as_deref().map_or(0, distribution::size_of);
        for number in std::mem::take(&mut self.numbers) {
            self.merge_one(observation(number));
            // These numbers are already counted.
            before += 1;
        }
        self.merge_one(added);
        let after = self.histogram.as_deref().map_or(0, distribution::size_of);
        after.saturating_sub(before)
    }

    fn merge_one(&mut self, added: Histogram) {
        match &mut self.histogram {
            Some(histogram) => histogram.merge(&added),
            None => self.histogram = Some(Box::new(added)),
        }
    }

    /// Returns the percentile of a share of the values, of which the numbers are sorted; `None`
    /// without values.
    fn percentile(&self, share: f64) -> Option<f64> {
        let nans = self.nans as f64;
        let of_numbers = self.histogram.as_ref().map_or(self.numbers.len() as f64, |all| all.count);
        let rank = share * (nans + of_numbers);
        if self.nans > 0 && rank <= nans {
            return Some(f64::NAN);
        }
        match &self.histogram {
            Some(histogram) if histogram.count > 0.0 => {
                Some(histogram.quantile(((rank - nans) / histogram.count).clamp(0.0, 1.0)))
            }
            Some(_) => None,
            None => {
                let index = (rank.ceil() as usize).saturating_sub(1).checked_sub(self.nans)?;
                self.numbers.get(index).copied()
            }
        }
    }
}

fn shares(list: Option<&Value>) -> Result<Vec<f64>, String> {
    let problem =
        || format!("$percentile: p must be a list of 1 to {SHARES_MAX} numbers from 0 to 1");
    let Some(Value::List(values)) = list else { return Err(problem()) };
    let share = |value: &Value| value.number().filter(|share| (0.0..=1.0).contains(share));
    let shares: Option<Vec<f64>> = values.iter().map(share).collect();
    shares.filter(|shares| (1..=SHARES_MAX).contains(&shares.len())).ok_or_else(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentiles(shares: &[f64], values: &[Value]) -> Value {
        let mut state = PercentileState::default();
        for value in values {
            state.add(value);
        }
        Percentiles { shares: shares.to_vec(), is_median: false }.finish(state)
    }

    fn numbers(all: impl IntoIterator<Item = i64>) -> Vec<Value> {
        all.into_iter().map(Value::Int).collect()
    }

    #[test]
    fn few_numbers_give_the_nearest_rank_and_other_values_are_ignored() {
        // The examples of MongoDB's manual.
        let floats = |all: &[f64]| Value::List(all.iter().copied().map(Value::Float).collect());
        let found = percentiles(&[0.5, 0.75, 0.9, 0.95], &numbers([62, 81, 80]));
        assert_eq!(found, floats(&[80.0, 81.0, 81.0, 81.0]));
        assert_eq!(percentiles(&[0.95], &numbers([62, 60, 67, 64, 60])), floats(&[67.0]));
        let mixed = [numbers([3, 1]), vec![Value::Null, Value::Bool(true), Value::text("x")]];
        assert_eq!(percentiles(&[0.0, 1.0], &mixed.concat()), floats(&[1.0, 3.0]));
        assert_eq!(percentiles(&[0.5], &[Value::Null]), Value::List(vec![Value::Null]));
        let median = Percentiles { shares: vec![0.5], is_median: true };
        assert_eq!(median.finish(PercentileState::default()), Value::Null);
        let with_nan = [Value::Float(f64::NAN), Value::Int(4)];
        assert_eq!(percentiles(&[1.0], &with_nan), floats(&[4.0]));
    }

    #[test]
    fn nan_precedes_few_and_many_numbers() {
        for count in [900, 2000] {
            let nans = vec![Value::Float(f64::NAN); count / 20];
            let values = [numbers(1..=count as i64), nans].concat();
            let Value::List(found) = percentiles(&[0.0, 0.04, 0.99], &values) else { panic!() };
            let found: Vec<_> = found.iter().map(|value| value.number().unwrap()).collect();
            assert!(found[0].is_nan() && found[1].is_nan(), "{found:?}");
            let exact = 0.99 * values.len() as f64 - (count / 20) as f64;
            assert!((found[2] / exact - 1.0).abs() < 0.01, "{found:?} {exact}");
        }
        let Value::List(found) = percentiles(&[1.0], &[Value::Float(f64::NAN)]) else { panic!() };
        assert!(found[0].number().unwrap().is_nan());
    }

    #[test]
    fn many_numbers_and_histograms_are_within_one_percent_in_bounded_memory() {
        let mut sketch = Histogram::sketch();
        for value in 1..=5000 {
            sketch.observe(f64::from(value), 1.0);
        }
        let histogram = Value::Fields(distribution::to_fields(&sketch));
        let mut values = numbers(5001..=10_000);
        values.insert(2500, histogram);
        let Value::List(found) = percentiles(&[0.01, 0.5, 0.99], &values) else { panic!() };
        for (found, exact) in found.iter().zip([100.0, 5000.0, 9900.0]) {
            let found = found.number().unwrap();
            assert!((found / exact - 1.0).abs() < 0.01, "{found} {exact}");
        }
        let mut state = PercentileState::default();
        let held: usize = numbers(1..=100_000).iter().map(|value| state.add(value)).sum();
        assert!(held < 2 * EXACT_MAX && state.numbers.is_empty(), "{held}");
    }
}
