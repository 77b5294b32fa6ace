//! The bounds of exponential buckets.

use std::sync::LazyLock;

use super::{SCHEMA_MAX, SCHEMA_MIN};

/// The number of buckets between two powers of 2 at the finest schema.
const FRACTIONS: usize = 1 << SCHEMA_MAX;

/// The bounds between 1 and 2 at the finest schema, without 2.
static BOUNDS: LazyLock<[f64; FRACTIONS]> =
    LazyLock::new(|| std::array::from_fn(|step| (step as f64 / FRACTIONS as f64).exp2()));

/// Returns the upper bound of a bucket with positive bounds: base^index. Like in Prometheus, the
/// bucket of the largest numbers ends at the largest number, and buckets after it at infinity.
/// A schema that is not exponential returns NaN.
pub fn upper_bound(schema: i8, index: i32) -> f64 {
    bound(schema, i64::from(index))
}

/// Returns the lower bound of a bucket with positive bounds.
pub(crate) fn lower_bound(schema: i8, index: i32) -> f64 {
    bound(schema, i64::from(index) - 1)
}

fn bound(schema: i8, index: i64) -> f64 {
    if !(SCHEMA_MIN..=SCHEMA_MAX).contains(&schema) {
        return f64::NAN;
    }
    let (fraction, exponent) = if schema <= 0 {
        (1.0, index << -schema)
    } else {
        let step = (index & ((1 << schema) - 1)) << (SCHEMA_MAX - schema);
        (BOUNDS[step as usize], index >> schema)
    };
    match exponent {
        1024 if fraction == 1.0 => f64::MAX,
        1024.. => f64::INFINITY,
        -1022..1024 => fraction * f64::from_bits(((exponent + 1023) as u64) << 52),
        // Subnormal numbers, and 0.
        _ => fraction * (exponent.max(-2000) as f64).exp2(),
    }
}

/// Returns the index of the bucket of a positive number. Infinity has the bucket after that of the
/// largest number.
pub fn bucket_index(schema: i8, value: f64) -> i32 {
    if value == f64::INFINITY {
        return bucket_index(schema, f64::MAX).saturating_add(1);
    }
    // The logarithm is at most one bucket off, and the bounds decide.
    let mut index = (value.log2() * f64::from(schema).exp2()).ceil() as i32;
    while upper_bound(schema, index) < value {
        index += 1;
    }
    while lower_bound(schema, index) >= value && lower_bound(schema, index) > 0.0 {
        index -= 1;
    }
    index
}
