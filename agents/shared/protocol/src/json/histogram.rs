//! A native histogram in JSON: numbers, and buckets as pairs of an index and a count.

use std::fmt;

use granary_histogram::{Bucket, CUSTOM_BOUNDS, Histogram, ResetHint};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, SeqAccess, Visitor},
};

/// The maximum number of buckets on one side, as for histograms of every other protocol.
const BUCKETS_MAX: usize = 16 * 1024;
/// The first integer that a float cannot distinguish from the next one.
const INTEGER_END: f64 = 9_007_199_254_740_992.0;

/// A histogram with its JSON form, for example
/// `{"schema":3,"count":3,"sum":2.5,"zero_count":1,"positive":[[-2,2]]}`. Fields that are 0 or
/// empty can be omitted, and so can the count, which is the sum of the buckets by default. When it
/// is read, it is checked, and becomes what is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonHistogram(pub Histogram);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<JsonNumber>,
    sum: JsonNumber,
    #[serde(default, skip_serializing_if = "JsonNumber::is_zero")]
    zero_threshold: JsonNumber,
    #[serde(default, skip_serializing_if = "JsonNumber::is_zero")]
    zero_count: JsonNumber,
    #[serde(default, skip_serializing_if = "Limited::is_empty")]
    positive: Limited<(i32, JsonNumber)>,
    #[serde(default, skip_serializing_if = "Limited::is_empty")]
    negative: Limited<(i32, JsonNumber)>,
    #[serde(default, skip_serializing_if = "Limited::is_empty")]
    custom_bounds: Limited<JsonNumber>,
    #[serde(default, skip_serializing_if = "Hint::is_unknown")]
    reset_hint: Hint,
}

/// The sender's knowledge of resets.
#[derive(Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Hint {
    #[default]
    Unknown,
    Reset,
    NotReset,
    Gauge,
}

impl Hint {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    fn hint(self) -> ResetHint {
        match self {
            Self::Unknown => ResetHint::Unknown,
            Self::Reset => ResetHint::Reset,
            Self::NotReset => ResetHint::NotReset,
            Self::Gauge => ResetHint::Gauge,
        }
    }

    fn of(hint: ResetHint) -> Self {
        match hint {
            ResetHint::Unknown => Self::Unknown,
            ResetHint::Reset => Self::Reset,
            ResetHint::NotReset => Self::NotReset,
            ResetHint::Gauge => Self::Gauge,
        }
    }
}

impl Serialize for JsonHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(histogram) = self;
        let side = |buckets: &[Bucket]| {
            Limited(buckets.iter().map(|one| (one.index, JsonNumber(one.count))).collect())
        };
        let bounds = histogram.custom_bounds.iter().copied().map(JsonNumber);
        let fields = Fields {
            schema: Some(histogram.schema.into()),
            count: Some(JsonNumber(histogram.count)),
            sum: JsonNumber(histogram.sum),
            zero_threshold: JsonNumber(histogram.zero_threshold),
            zero_count: JsonNumber(histogram.zero_count),
            positive: side(&histogram.positive),
            negative: side(&histogram.negative),
            custom_bounds: Limited(bounds.collect()),
            reset_hint: Hint::of(histogram.hint),
        };
        fields.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::deserialize(deserializer)?;
        let side = |Limited(buckets): Limited<(i32, JsonNumber)>| -> Vec<Bucket> {
            let bucket = |(index, JsonNumber(count))| Bucket { index, count };
            buckets.into_iter().map(bucket).collect()
        };
        let custom_bounds: Vec<f64> =
            fields.custom_bounds.0.into_iter().map(|bound| bound.0).collect();
        let custom = (!custom_bounds.is_empty()).then_some(i32::from(CUSTOM_BOUNDS));
        let schema = fields
            .schema
            .or(custom)
            .ok_or_else(|| D::Error::custom("schema is missing: give -4 to 8, or custom_bounds"))?;
        let mut histogram = Histogram {
            zero_threshold: fields.zero_threshold.0,
            zero_count: fields.zero_count.0,
            sum: fields.sum.0,
            positive: side(fields.positive),
            negative: side(fields.negative),
            custom_bounds: custom_bounds.into(),
            hint: fields.reset_hint.hint(),
            ..Histogram::default()
        };
        let buckets = histogram.positive.iter().chain(&histogram.negative);
        let total = || buckets.map(|bucket| bucket.count).sum::<f64>() + histogram.zero_count;
        histogram.count = fields.count.map_or_else(total, |count| count.0);
        histogram.checked_parts(schema).map(Self).map_err(D::Error::custom)
    }
}

/// A number, or one of the texts `NaN`, `+Inf` and `-Inf`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct JsonNumber(pub(super) f64);

impl JsonNumber {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_zero(&self) -> bool {
        self.0.to_bits() == 0
    }
}

impl Serialize for JsonNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = self.0;
        let is_negative_zero = number == 0.0 && number.is_sign_negative();
        match number {
            f64::INFINITY => serializer.serialize_str("+Inf"),
            f64::NEG_INFINITY => serializer.serialize_str("-Inf"),
            _ if number.is_nan() => serializer.serialize_str("NaN"),
            _ if number.trunc() == number && number.abs() < INTEGER_END && !is_negative_zero => {
                serializer.serialize_i64(number as i64)
            }
            _ => serializer.serialize_f64(number),
        }
    }
}

impl<'de> Deserialize<'de> for JsonNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = JsonNumber;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a number, "NaN", "+Inf" or "-Inf""#)
            }

            fn visit_f64<E>(self, number: f64) -> Result<JsonNumber, E> {
                Ok(JsonNumber(number))
            }

            fn visit_i64<E>(self, number: i64) -> Result<JsonNumber, E> {
                Ok(JsonNumber(number as f64))
            }

            fn visit_u64<E>(self, number: u64) -> Result<JsonNumber, E> {
                Ok(JsonNumber(number as f64))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<JsonNumber, E> {
                match text {
                    "NaN" => Ok(JsonNumber(f64::NAN)),
                    "+Inf" => Ok(JsonNumber(f64::INFINITY)),
                    "-Inf" => Ok(JsonNumber(f64::NEG_INFINITY)),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(Number)
    }
}

/// A list that is refused as soon as it has more entries than the maximum.
#[derive(Debug)]
struct Limited<T>(Vec<T>);

impl<T> Default for Limited<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Limited<T> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Serialize> Serialize for Limited<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Limited<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(Vec<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = Limited<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Limited<T>, A::Error> {
                while let Some(entry) = seq.next_element()? {
                    if self.0.len() == BUCKETS_MAX {
                        return Err(A::Error::custom(format!(
                            "more than {BUCKETS_MAX} buckets or bounds; use fewer"
                        )));
                    }
                    self.0.push(entry);
                }
                Ok(Limited(self.0))
            }
        }

        deserializer.deserialize_seq(List(Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Histogram, String> {
        serde_json::from_str(text)
            .map(|JsonHistogram(histogram)| histogram)
            .map_err(|cause| cause.to_string())
    }

    #[test]
    fn a_histogram_is_written_without_zeros_and_read_with_defaults() {
        let mut sketch = Histogram { hint: ResetHint::Gauge, ..Histogram::empty(2) };
        (sketch.count, sketch.sum, sketch.zero_count) = (3.0, f64::NAN, 1.0);
        sketch.zero_threshold = 1e-40;
        sketch.negative = vec![Bucket { index: -3, count: 0.5 }];
        sketch.positive = vec![Bucket { index: 7, count: 1.5 }];
        let text = serde_json::to_string(&JsonHistogram(sketch.clone())).unwrap();
        assert_eq!(
            text,
            r#"{"schema":2,"count":3,"sum":"NaN","zero_threshold":1e-40,"zero_count":1,"positive":[[7,1.5]],"negative":[[-3,0.5]],"reset_hint":"gauge"}"#
        );
        assert_eq!(read(&text), Ok(sketch));
        let custom =
            read(r#"{"sum": 7, "custom_bounds": [0.5, 2], "positive": [[2, 4], [0, 1], [2, 2]]}"#);
        let custom = custom.unwrap();
        assert_eq!((custom.schema, custom.count, custom.sum), (CUSTOM_BOUNDS, 7.0, 7.0));
        let bucket = |index, count| Bucket { index, count };
        assert_eq!(custom.positive, [bucket(0, 1.0), bucket(2, 6.0)]);
    }

    #[test]
    fn a_faulty_histogram_is_refused_with_its_fault() {
        let expect_fault = |text: &str, part: &str| {
            let fault = read(text).unwrap_err();
            assert!(fault.contains(part), "{part} in {fault}");
        };
        expect_fault(r#"{"schema": 3}"#, "missing field `sum`");
        expect_fault(r#"{"sum": 1}"#, "schema is missing");
        expect_fault(r#"{"schema": 99, "sum": 1}"#, "schema 99 does not exist");
        expect_fault(r#"{"schema": 3, "sum": 1, "count": -1}"#, "a count is -1");
        expect_fault(r#"{"schema": 3, "sum": 1, "count": "Inf"}"#, "a number, \"NaN\"");
        expect_fault(r#"{"schema": 3, "sum": 1, "positive": [[1]]}"#, "invalid length 1");
        expect_fault(r#"{"schema": 3, "sum": 1, "custom_bounds": [1]}"#, "custom bounds");
        expect_fault(r#"{"schema": 3, "sum": 1, "buckets": []}"#, "unknown field `buckets`");
        let many = vec!["[1,1]"; BUCKETS_MAX + 1].join(",");
        expect_fault(
            &format!(r#"{{"schema": 3, "sum": 1, "positive": [{many}]}}"#),
            "more than 16384 buckets or bounds",
        );
    }

    proptest! {
        #[test]
        fn histograms_come_back(
            schema in -4..=8_i8,
            counts in prop::collection::btree_map(-500..500_i32, prop_oneof![
                (1..1_000_000_u32).prop_map(f64::from), 1e-9..1e300_f64,
            ], 0..40),
            sum in prop::num::f64::ANY,
            zeros in 0..5_u8,
        ) {
            // Bounds of coarser schemas are further apart.
            let index = |index: i32| if schema < 4 { index / 40 } else { index };
            let mut histogram = Histogram { sum, zero_count: zeros.into(), ..Histogram::empty(schema) };
            histogram.positive =
                counts.iter().map(|(at, count)| Bucket { index: index(*at), count: *count }).collect();
            histogram.count = histogram.positive.iter().map(|one| one.count).sum::<f64>();
            prop_assume!(histogram.count.is_finite());
            let histogram = histogram.checked_parts(schema.into()).unwrap();
            let text = serde_json::to_string(&JsonHistogram(histogram.clone())).unwrap();
            prop_assert_eq!(read(&text), Ok(histogram));
        }

        #[test]
        fn any_text_is_a_histogram_or_a_fault(text in r#"[{}\[\]",:0-9a-z_ -]{0,60}"#) {
            drop(read(&text));
        }
    }
}
