//! Native histograms in scripts (`{{schema:0 sum:5 count:4 buckets:[1 2 1]}}`): their notation,
//! their message in remote write, and their comparison with an answer.

use serde_json::Value;

use super::notation::parse_number;
use crate::protobuf::{bytes, double, int, message, varint};

/// The schema of custom bounds.
const CUSTOM: i32 = -53;

/// A native histogram of a script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Histogram {
    pub(crate) schema: i32,
    pub(crate) count: f64,
    pub(crate) sum: f64,
    pub(crate) zero_count: f64,
    pub(crate) zero_threshold: f64,
    pub(crate) positive: Side,
    pub(crate) negative: Side,
    pub(crate) custom_bounds: Vec<f64>,
    /// The number of the hint in remote write.
    pub(crate) hint: i64,
}

/// Neighbouring buckets from an index on; in scripts, the first bucket ends at 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Side {
    pub(crate) offset: i32,
    pub(crate) counts: Vec<f64>,
}

impl Side {
    /// Adds the counts of other buckets, several times.
    fn add(&mut self, other: &Self, factor: f64) {
        if other.counts.is_empty() {
            return;
        }
        if self.counts.is_empty() {
            self.offset = other.offset;
        }
        let first = self.offset.min(other.offset);
        let end = |side: &Self| side.offset + side.counts.len() as i32;
        let last = end(self).max(end(other));
        let mut counts = vec![0.0; (last - first) as usize];
        for (side, factor) in [(&*self, 1.0), (other, factor)] {
            for (count, at) in side.counts.iter().zip(side.offset - first..) {
                counts[at as usize] += count * factor;
            }
        }
        *self = Self { offset: first, counts };
    }

    /// Adds up neighbouring buckets to those of a coarser schema.
    fn lower(&mut self, steps: i32) {
        let all = std::mem::take(self);
        for (count, index) in all.counts.into_iter().zip(all.offset..) {
            // In scripts, index 0 is the bucket that ends at 1, which stays one of them.
            let offset = ((index - 1) >> steps) + 1;
            self.add(&Self { offset, counts: vec![count] }, 1.0);
        }
    }
}

impl Histogram {
    /// Reads the text between the double braces.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut histogram = Self {
            schema: 0,
            count: 0.0,
            sum: 0.0,
            zero_count: 0.0,
            zero_threshold: 0.0,
            positive: Side::default(),
            negative: Side::default(),
            custom_bounds: Vec::new(),
            hint: 0,
        };
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (name, tail) = rest.split_once(':').ok_or_else(|| format!("no name: {rest}"))?;
            let tail = tail.trim_start();
            let (value, tail) = if let Some(list) = tail.strip_prefix('[') {
                list.split_once(']').ok_or_else(|| format!("a list without an end: {rest}"))?
            } else {
                tail.split_at(tail.find(char::is_whitespace).unwrap_or(tail.len()))
            };
            histogram.set(name.trim(), value.trim())?;
            rest = tail.trim_start();
        }
        Ok(histogram)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let read = |text: &str| parse_number(text).ok_or_else(|| format!("no number: {text}"));
        let list = || value.split_whitespace().map(read).collect::<Result<Vec<_>, _>>();
        match name {
            "schema" => self.schema = read(value)? as i32,
            "count" => self.count = read(value)?,
            "sum" => self.sum = read(value)?,
            "z_bucket" => self.zero_count = read(value)?,
            "z_bucket_w" => self.zero_threshold = read(value)?,
            "offset" => self.positive.offset = read(value)? as i32,
            "n_offset" => self.negative.offset = read(value)? as i32,
            "buckets" => self.positive.counts = list()?,
            "n_buckets" => self.negative.counts = list()?,
            "custom_values" => self.custom_bounds = list()?,
            "counter_reset_hint" => {
                self.hint = match value {
                    "unknown" => 0,
                    "reset" => 1,
                    "not_reset" => 2,
                    "gauge" => 3,
                    _ => return Err(format!("no hint: {value}")),
                }
            }
            _ => return Err(format!("not known in a histogram: {name}")),
        }
        Ok(())
    }

    /// Adds another histogram of compatible buckets, or subtracts it with a factor of -1.
    pub(crate) fn add(&mut self, other: &Self, factor: f64) -> Result<(), String> {
        let mut other = other.clone();
        if self.custom_bounds != other.custom_bounds {
            return Err("a step with other custom bounds".to_owned());
        }
        let schema = self.schema.min(other.schema);
        for side in [&mut *self, &mut other] {
            let steps = side.schema - schema;
            side.positive.lower(steps);
            side.negative.lower(steps);
            side.schema = schema;
        }
        self.count += factor * other.count;
        self.sum += factor * other.sum;
        self.zero_count += factor * other.zero_count;
        self.zero_threshold = self.zero_threshold.max(other.zero_threshold);
        self.positive.add(&other.positive, factor);
        self.negative.add(&other.negative, factor);
        Ok(())
    }

    /// Returns the message `Histogram` of remote write with counts as doubles.
    pub(crate) fn message(&self, at: i64) -> Vec<u8> {
        let zigzag = |value: i32| i64::from((value << 1) ^ (value >> 31));
        let packed = |values: &[f64]| -> Vec<u8> {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        message(|out| {
            double(2, self.count, out);
            double(3, self.sum, out);
            int(4, zigzag(self.schema), out);
            double(5, self.zero_threshold, out);
            double(7, self.zero_count, out);
            for (side, spans, counts) in [(&self.negative, 8, 10), (&self.positive, 11, 13)] {
                if side.counts.is_empty() {
                    continue;
                }
                let span = message(|out| {
                    int(1, zigzag(side.offset), out);
                    varint(2 << 3, out);
                    varint(side.counts.len() as u64, out);
                });
                bytes(spans, &span, out);
                bytes(counts, &packed(&side.counts), out);
            }
            int(14, self.hint, out);
            int(15, at, out);
            if self.schema == CUSTOM {
                bytes(16, &packed(&self.custom_bounds), out);
            }
        })
    }

    /// Returns the difference from a histogram in JSON.
    pub(crate) fn check(
        &self,
        found: &Value,
        almost_equal: impl Fn(f64, f64) -> bool,
    ) -> Result<(), String> {
        let differs = |what: &str| Err(format!("{what}: {found}, not {self:?}"));
        let number = |value: &Value| value.as_str().and_then(parse_number).unwrap_or(f64::NAN);
        if !almost_equal(self.count, number(&found["count"])) {
            return differs("count");
        }
        if !almost_equal(self.sum, number(&found["sum"])) {
            return differs("sum");
        }
        let buckets: Vec<_> = found["buckets"].as_array().into_iter().flatten().collect();
        let expected = self.buckets();
        if buckets.len() != expected.len() {
            return differs("buckets");
        }
        for (found_bucket, (rule, numbers)) in buckets.iter().zip(expected) {
            let is_same = numbers.iter().zip(1..).all(|(expected, index)| {
                almost_equal(*expected, number(&found_bucket[index as usize]))
            });
            if found_bucket[0].as_u64() != Some(rule) || !is_same {
                return differs("a bucket");
            }
        }
        Ok(())
    }

    /// Returns the buckets with observations as JSON has them: the rule of their bounds, both
    /// bounds and the count.
    fn buckets(&self) -> Vec<(u64, [f64; 3])> {
        let indexed = |side: &Side| -> Vec<(i32, f64)> {
            let offset = side.offset;
            side.counts.iter().enumerate().map(|(at, count)| (offset + at as i32, *count)).collect()
        };
        let bound = |index: i32| (f64::from(index) * (-f64::from(self.schema)).exp2()).exp2();
        let mut all = Vec::new();
        for (index, count) in indexed(&self.negative).into_iter().rev() {
            all.push((1, [-bound(index), -bound(index - 1), count]));
        }
        all.push((3, [-self.zero_threshold, self.zero_threshold, self.zero_count]));
        for (index, count) in indexed(&self.positive) {
            if self.schema == CUSTOM {
                let at = |index: i32, beyond: f64| {
                    let index = usize::try_from(index).ok();
                    index.and_then(|at| self.custom_bounds.get(at)).copied().unwrap_or(beyond)
                };
                let rule = if index == 0 { 3 } else { 0 };
                let bounds = [at(index - 1, f64::NEG_INFINITY), at(index, f64::INFINITY)];
                all.push((rule, [bounds[0], bounds[1], count]));
            } else {
                all.push((0, [bound(index - 1), bound(index), count]));
            }
        }
        all.retain(|(_, [.., count])| *count != 0.0);
        all
    }
}

#[test]
fn histograms_of_scripts_are_read_added_and_compared() {
    let parse = |text: &str| Histogram::parse(text).unwrap();
    let mut histogram = parse("schema:0 sum:5 count:4 buckets:[1 2 1] offset:-1");
    histogram.add(&parse("sum:2 count:1 buckets:[1] offset:3"), 2.0).unwrap();
    assert_eq!((histogram.sum, histogram.count), (9.0, 6.0));
    assert_eq!(histogram.positive.counts, [1.0, 2.0, 1.0, 0.0, 2.0]);
    let answer = serde_json::json!({
        "count": "6", "sum": "9",
        "buckets": [
            [0, "0.25", "0.5", "1"], [0, "0.5", "1", "2"], [0, "1", "2", "1"], [0, "4", "8", "2"]
        ],
    });
    assert_eq!(histogram.check(&answer, |left, right| left.total_cmp(&right).is_eq()), Ok(()));
    let other = serde_json::json!({"count": "6", "sum": "9"});
    assert!(histogram.check(&other, |left, right| left.total_cmp(&right).is_eq()).is_err());
    let custom = parse("schema:-53 custom_values:[5 10] buckets:[1] counter_reset_hint:gauge");
    assert_eq!(custom.buckets(), [(3, [f64::NEG_INFINITY, 5.0, 1.0])]);
    assert_eq!(custom.hint, 3);
    assert!(Histogram::parse("surprise:1").is_err() && Histogram::parse("sum").is_err());
}
