//! The cell: the aggregate of one slot, a commutative monoid.
//!
//! `merge` is associative and commutative, and [`Cell::EMPTY`] is its identity; only the last
//! bits of `sum` and `m2` may depend on the order. Everything else in Granary follows from that.
//!
//! Gauges may contain NaN and infinite values. Sums follow Prometheus: a sum that includes NaN, or
//! infinities of both signs, is NaN. `min` and `max` ignore NaN if there is a number.

/// The aggregate of the samples of one series in one slot.
///
/// Offsets are milliseconds from the start of the slot. For gauges and deltas, `sum`, `min` and
/// `max` aggregate the values. For counters, `sum` is the total increase, `min` and `max` are the
/// smallest and largest per-second rates between neighbouring readings (infinite while there is no
/// neighbour), and `first` and `last` are raw readings.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// The number of samples; 0 means that the slot is empty.
    pub n: u32,
    /// The offset of the first sample.
    pub first_at: u32,
    /// The offset of the last sample.
    pub last_at: u32,
    /// The sum of values, or the total increase.
    pub sum: f64,
    /// The smallest value, or the smallest rate.
    pub min: f64,
    /// The largest value, or the largest rate.
    pub max: f64,
    /// The value of the first sample in time; the smaller one of two at the same time.
    pub first: f64,
    /// The value of the last sample in time; the larger one of two at the same time.
    pub last: f64,
    /// The second central moment: the sum of the squared deviations of the values from their mean.
    /// It is 0 where it follows from the other numbers, for counters, and where it is unknown; see
    /// [`Cell::second_moment`].
    pub m2: f64,
}

/// The difference of moments that is attributed to the order of merges, relative to the moment, and
/// relative to the sum of the squared values.
const MOMENT_TOLERANCE: (f64, f64) = (1e-9, 1e-14);

/// NaN equals NaN: comparisons of cells mean equal content.
impl PartialEq for Cell {
    fn eq(&self, other: &Self) -> bool {
        let whole = |cell: &Self| (cell.n, cell.first_at, cell.last_at);
        let floats = |cell: &Self| [cell.sum, cell.min, cell.max, cell.first, cell.last];
        let same = |(a, b): (f64, f64)| a == b || a.is_nan() && b.is_nan();
        whole(self) == whole(other)
            && floats(self).into_iter().zip(floats(other)).all(same)
            && self.has_moment_of(other)
    }
}

impl Cell {
    /// Returns true when the moments of two cells with the same content are equal but for rounding.
    pub fn has_moment_of(&self, other: &Self) -> bool {
        let (of_moment, of_squares) = MOMENT_TOLERANCE;
        let squares = self.sum * self.sum / f64::from(self.n.max(1));
        let tolerance = of_moment * self.m2.max(other.m2) + of_squares * squares;
        self.m2 == other.m2 || (self.m2 - other.m2).abs() <= tolerance
    }
}

impl Default for Cell {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Cell {
    /// The identity of `merge`: the cell of an empty slot.
    pub const EMPTY: Self = Self {
        n: 0,
        first_at: 0,
        last_at: 0,
        sum: 0.0,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        first: 0.0,
        last: 0.0,
        m2: 0.0,
    };

    /// Returns the cell of one sample of a gauge or delta.
    pub fn single(offset: u32, value: f64) -> Self {
        Self {
            n: 1,
            first_at: offset,
            last_at: offset,
            sum: value,
            min: value,
            max: value,
            first: value,
            last: value,
            m2: 0.0,
        }
    }

    /// Returns the cell of one reading of a counter. `rate` is per second, `None` without a
    /// neighbour.
    pub fn reading(offset: u32, value: f64, increase: f64, rate: Option<f64>) -> Self {
        Self {
            sum: increase,
            min: rate.unwrap_or(f64::INFINITY),
            max: rate.unwrap_or(f64::NEG_INFINITY),
            ..Self::single(offset, value)
        }
    }

    /// Returns a cell without samples that corrects a slot after a late reading: it changes the
    /// total increase by the part that the late reading takes from the reading after it, and adds
    /// the new rate of that later reading.
    pub fn correction(increase: f64, rate: Option<f64>) -> Self {
        Self {
            sum: increase,
            min: rate.unwrap_or(f64::INFINITY),
            max: rate.unwrap_or(f64::NEG_INFINITY),
            ..Self::EMPTY
        }
    }

    /// Returns true when the cell changes nothing: it has neither samples nor a correction.
    pub fn is_empty(&self) -> bool {
        self.n == 0 && self.sum == 0.0 && self.max == f64::NEG_INFINITY
    }

    /// Adds another cell of the same slot.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            self.correct(other);
            return;
        }
        if self.n == 0 {
            let correction = *self;
            *self = *other;
            self.correct(&correction);
            return;
        }
        // The moment of two samples follows from the samples.
        let m2 = if self.n.max(other.n) > 1 { self.merged_m2(other) } else { 0.0 };
        self.n = self.n.saturating_add(other.n);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.m2 = if self.min < self.max { m2 } else { 0.0 };
        let earlier = (other.first_at, other.first);
        if earlier.0 < self.first_at
            || (earlier.0 == self.first_at && earlier.1.total_cmp(&self.first).is_lt())
        {
            (self.first_at, self.first) = earlier;
        }
        let later = (other.last_at, other.last);
        if later.0 > self.last_at
            || (later.0 == self.last_at && later.1.total_cmp(&self.last).is_gt())
        {
            (self.last_at, self.last) = later;
        }
    }

    /// Returns the moment of the merged cell, as in Chan et al., "Updating Formulae and
    /// a Pairwise Algorithm for Computing Sample Variances" (1979); 0 when it is unknown.
    #[inline]
    fn merged_m2(&self, other: &Self) -> f64 {
        // A reading of a counter ends here.
        let Some(other_m2) = other.level_moment() else { return 0.0 };
        let Some(m2) = self.level_moment() else { return 0.0 };
        let (n, other_n) = (f64::from(self.n), f64::from(other.n));
        // The distance of the means, times both counts: exact for whole numbers.
        let distance = other.sum * n - self.sum * other_n;
        let merged = m2 + other_m2 + distance * distance / (n * other_n * (n + other_n));
        if merged.is_normal() { merged } else { 0.0 }
    }

    /// Returns the moment of a cell of values; `None` when it is unknown, and for a cell of a
    /// counter, whose sum does not follow from its readings.
    #[inline]
    fn level_moment(&self) -> Option<f64> {
        let is_level = |value: f64| self.min <= value && value <= self.max;
        let (m2, has_sum) = match self.n {
            1 => (0.0, self.sum == self.first),
            2 => (self.moment_of_two(), self.sum == self.first + self.last),
            n if self.min == self.max => {
                let expected = f64::from(n) * self.min;
                (0.0, (self.sum - expected).abs() <= MOMENT_TOLERANCE.0 * expected.abs())
            }
            // Only cells of values have a moment.
            _ => return (self.m2 > 0.0).then_some(self.m2),
        };
        (has_sum && is_level(self.first) && is_level(self.last)).then_some(m2)
    }

    fn moment_of_two(&self) -> f64 {
        (self.last - self.first) * (self.last - self.first) / 2.0
    }

    /// Returns the sum of the squared deviations of the values of a gauge or delta from their mean;
    /// `None` when it is unknown, as in files that were written without it.
    pub fn second_moment(&self) -> Option<f64> {
        match self.n {
            0 | 1 => Some(0.0),
            2 => Some(self.moment_of_two()),
            _ if self.min == self.max => Some(0.0),
            _ => (self.m2 > 0.0).then_some(self.m2),
        }
    }

    /// Merges a cell without samples.
    fn correct(&mut self, correction: &Self) {
        if !correction.is_empty() {
            self.m2 = 0.0;
        }
        self.sum += correction.sum;
        // In a correction without a rate, min is above max; these infinities must not replace NaN.
        if correction.min <= correction.max {
            self.min = self.min.min(correction.min);
            self.max = self.max.max(correction.max);
        }
    }

    /// Returns the cell as part of a wider slot that begins `millis` earlier.
    pub fn shifted(mut self, millis: u32) -> Self {
        self.first_at = self.first_at.saturating_add(millis);
        self.last_at = self.last_at.saturating_add(millis);
        self
    }

    /// Returns the mean of the values; `None` for an empty slot.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / f64::from(self.n))
    }

    /// Returns sum, min, max, first and last for JSON: `None` where there is no finite number.
    pub fn finite_numbers(&self) -> [Option<f64>; 5] {
        [self.sum, self.min, self.max, self.first, self.last]
            .map(|number| number.is_finite().then_some(number))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cell(is_counter: bool) -> impl Strategy<Value = Cell> {
        // Multiples of a half, so that sums are exact in any order. No increase equals a reading.
        (0..6_u32, 0..1000_u32, -9..9_i32).prop_map(move |(n, at, value)| match n {
            0 => Cell::EMPTY,
            4 if is_counter => {
                Cell::correction(f64::from(value), (at % 2 == 0).then_some(f64::from(at)))
            }
            _ if is_counter => Cell::reading(at, f64::from(value), 2.5, Some(f64::from(value))),
            5 => Cell::single(at, [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][at as usize % 3]),
            _ => Cell::single(at, f64::from(value)),
        })
    }

    fn cells() -> impl Strategy<Value = [Cell; 3]> {
        any::<bool>().prop_flat_map(|is_counter| [(); 3].map(|()| cell(is_counter)))
    }

    fn merged(a: Cell, b: Cell) -> Cell {
        let mut out = a;
        out.merge(&b);
        out
    }

    proptest! {
        #[test]
        fn merge_is_a_commutative_monoid([a, b, c] in cells()) {
            prop_assert_eq!(merged(a, b), merged(b, a));
            prop_assert_eq!(merged(merged(a, b), c), merged(a, merged(b, c)));
            prop_assert_eq!(merged(a, Cell::EMPTY), a);
            prop_assert_eq!(merged(Cell::EMPTY, a), a);
        }

        #[test]
        fn the_second_moment_is_that_of_the_samples_in_any_order_of_merges(
            values in prop::collection::vec((-1e3..1e3_f64, any::<prop::sample::Index>()), 1..40),
            offset in prop::sample::select(&[0.0, 1e6, -1e9][..]),
        ) {
            // Each value joins one of the cells, and the cells are merged in another order.
            let mut cells = vec![Cell::EMPTY; 5];
            for (at, (value, index)) in (0..).zip(&values) {
                index.get_mut(&mut cells[..]).merge(&Cell::single(at, offset + value));
            }
            let all = cells.into_iter().rev().fold(Cell::EMPTY, merged);
            let values: Vec<_> = values.iter().map(|(value, _)| offset + value).collect();
            let mean = values.iter().map(|value| value - offset).sum::<f64>() / values.len() as f64;
            let squares = values.iter().map(|value| (value - offset - mean).powi(2));
            let expected = squares.sum::<f64>();
            // Values near 1e9 are rounded to 1e-7.
            let rounding = offset.abs() * 1e-13 * 1e3 * values.len() as f64;
            let found = all.second_moment().unwrap();
            prop_assert!(
                (found - expected).abs() <= 1e-9 * expected + rounding,
                "{found} instead of {expected}"
            );
        }
    }

    #[test]
    fn only_cells_of_several_different_values_store_a_moment() {
        let cell = |values: &[f64]| {
            (0..)
                .zip(values)
                .fold(Cell::EMPTY, |cell, (at, value)| merged(cell, Cell::single(at, *value)))
        };
        assert_eq!(cell(&[1.0, 3.0]).m2, 0.0);
        assert_eq!(cell(&[1.0, 3.0]).second_moment(), Some(2.0));
        assert_eq!((cell(&[0.1; 7]).m2, cell(&[0.1; 7]).second_moment()), (0.0, Some(0.0)));
        assert_eq!((cell(&[1.0, 2.0, 3.0]).m2, cell(&[1.0, 2.0, f64::NAN]).m2), (2.0, 0.0));
        assert_eq!(cell(&[f64::MAX, -f64::MAX, 0.0]).m2, 0.0);
        // An unknown moment stays unknown.
        let unknown = Cell { m2: 0.0, ..cell(&[1.0, 2.0, 3.0]) };
        assert_eq!(merged(unknown, cell(&[7.0])).second_moment(), None);
        let mut counter = Cell::reading(0, 100.0, 2.0, Some(2.0));
        (1..5).for_each(|at| counter.merge(&Cell::reading(at, 101.0, 2.0, Some(3.0))));
        assert_eq!(counter.m2, 0.0);
    }

    #[test]
    fn a_real_zero_is_not_empty() {
        assert!(!Cell::single(0, 0.0).is_empty());
        assert_eq!(Cell::single(0, 0.0).mean(), Some(0.0));
        assert_eq!(Cell::EMPTY.mean(), None);
    }
}
