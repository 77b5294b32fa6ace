//! Second central moments as whole numbers. When all values of a cell are whole numbers on a scale,
//! n times its moment is one, too. It takes few bytes and is exact, while a computed moment has
//! rounding errors in its last bits.
//!
//! Must never know: where moments are stored, and the values of a cell.

use super::number::Scale;

/// The relative rounding error of a computed moment.
const ROUNDING: f64 = 1e-10;

/// Returns the whole number of a moment of `n` values; `None` when the values are no whole numbers
/// on this scale.
pub(crate) fn number(m2: f64, n: u32, scale: Scale) -> Option<i64> {
    if m2 == 0.0 {
        return Some(0);
    }
    let number = (m2 * f64::from(n) * scale.squared_factor()?).round();
    let is_whole = number >= 1.0 && number < i64::MAX as f64;
    let number = if is_whole { number as i64 } else { return None };
    is_same(moment(number, n, scale), m2).then_some(number)
}

/// Returns the moment of a whole number; 0 when the scale or `n` has none.
pub(crate) fn moment(number: i64, n: u32, scale: Scale) -> f64 {
    let unit = scale.squared_factor().unwrap_or(0.0) * f64::from(n);
    if unit > 0.0 && number > 0 { number as f64 / unit } else { 0.0 }
}

/// Returns true when two moments differ by no more than rounding errors.
pub(crate) fn is_same(m2: f64, other: f64) -> bool {
    m2 == other || (m2 - other).abs() <= ROUNDING * m2.max(other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Cell;

    proptest! {
        #[test]
        fn the_moment_of_decimals_is_a_whole_number(
            values in prop::collection::vec(-99_999..99_999_i64, 3..200), power in 0..5_u8
        ) {
            let unit = 10_f64.powi(power.into());
            let values: Vec<_> = values.into_iter().map(|value| value as f64 / unit).collect();
            let mut cell = Cell::EMPTY;
            for value in &values {
                cell.merge(&Cell::single(0, *value));
            }
            let scale = Scale::without_shift(&values.iter().copied());
            let whole = number(cell.m2, cell.n, scale).expect("a whole number");
            prop_assert!(is_same(moment(whole, cell.n, scale), cell.m2));
            if let Some(larger) = number(cell.m2 * (1.0 + 1e-9), cell.n, scale) {
                prop_assert!(larger > whole || cell.m2 == 0.0, "{larger}");
            }
        }
    }

    #[test]
    fn zero_bits_at_the_end_of_all_values_are_left_out() {
        let pages = [2_000_000_000_000.0, 2_000_000_004_096.0, 2_000_000_016_384.0];
        let mut cell = Cell::EMPTY;
        for value in pages {
            cell.merge(&Cell::single(0, value));
        }
        let scale = Scale::of(pages.into_iter());
        // Three times the moment of 0, 1 and 4.
        assert_eq!((scale.shift, number(cell.m2, 3, scale)), (12, Some(26)));
        assert_eq!(moment(26, 3, scale), 26.0 / 3.0 * 4096.0 * 4096.0);
    }

    #[test]
    fn other_moments_have_no_whole_number() {
        let tenths = Scale::without_shift(&[0.1, 0.2].into_iter());
        assert_eq!(number(0.0, 5, tenths), Some(0));
        assert_eq!(number(0.0001, 3, tenths), None);
        assert_eq!(number(f64::INFINITY, 3, tenths), None);
        assert_eq!(number(1e300, 3, tenths), None);
        let ranks = Scale::without_shift(&[1.0 / 3.0].into_iter());
        assert_eq!((number(2.0, 3, ranks), moment(7, 3, ranks)), (None, 0.0));
        assert_eq!(moment(7, 0, tenths), 0.0);
    }
}
