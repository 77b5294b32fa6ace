//! The compact encoding of one cell's values in a row, bit for bit.
//!
//! Exact decimals become whole numbers, as in segments, and most values are stored as differences
//! from other values of the same cell, so that a cell is read without its neighbours. FORMAT.md
//! describes the bytes. Must never know: the times of samples, the series of a cell.

mod read;
mod write;

pub(super) use read::decode;
pub(super) use write::encode;

use crate::{
    model::Cell,
    store::encoding::number::{Scale, ordered},
};

/// Positions of the values in a shape.
const FIRST: u32 = 0;
const LAST: u32 = 1;
const MIN: u32 = 2;
const MAX: u32 = 3;
const SUM: u32 = 4;
/// The number of values of a cell.
const VALUES: u32 = 5;
/// The bit of a shape that is set when min and max are rates.
const RATES: u32 = 8;
/// The largest code of a value that is stored as a difference; the code is the number of bytes.
/// Larger codes are 7 plus the number of bytes of a double.
const DELTA_MAX: u32 = 8;
/// The largest code of a sum that is stored as a difference; the code is the number of bytes. The
/// next codes are for differences with a correction.
const SUM_DELTA_MAX: u32 = 7;
/// The maximum number of bytes of a sum's difference with a correction.
const OFF_DELTA_MAX: u32 = 4;
/// The codes of sums that are stored as doubles, and their numbers of bytes.
const SUM_BARE: [(u32, usize); 3] = [(13, 2), (14, 5), (15, 8)];
/// The upper four bits of a rate's byte when its increase is the sum.
const OF_SUM: u8 = 15;
/// The upper four bits of a rate's byte when its increase has a correction of 0.
const NOT_OFF: i64 = 7;

/// The shape of a cell: the power of its values, and the code of each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shape(u32);

impl Shape {
    pub(super) const BYTES: usize = 3;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, _] = self.0.to_le_bytes();
        [a, b, c]
    }

    pub(super) fn from_bytes([a, b, c]: [u8; Self::BYTES]) -> Self {
        Self(u32::from_le_bytes([a, b, c, 0]))
    }

    fn new(scale: Scale, has_rates: bool) -> Self {
        Self(u32::from(scale.power()) | if has_rates { RATES } else { 0 })
    }

    fn set(&mut self, value: u32, code: u32) {
        self.0 |= code << (4 * (value + 1));
    }

    fn code(self, value: u32) -> u32 {
        self.0 >> (4 * (value + 1)) & 0xf
    }

    pub(super) fn has_rates(self) -> bool {
        self.0 & RATES != 0
    }

    /// Returns true when all values of a level follow from the first.
    fn is_single(self) -> bool {
        self.0 >> (4 * (LAST + 1)) == 0 && !self.has_rates()
    }

    pub(super) fn scale(self) -> Scale {
        Scale::from_power((self.0 & 7) as u8)
    }

    /// Returns the number of bytes of the cell's values.
    pub(super) fn length(self) -> usize {
        (FIRST..VALUES).map(|value| length(value, self.code(value))).sum()
    }
}

/// The numbers of bytes by code: first for values, then for sums.
const LENGTHS: [[u8; 16]; 2] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4, 5, 6, 7, 8],
    [0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 2, 5, 8],
];

fn length(value: u32, code: u32) -> usize {
    LENGTHS[usize::from(value == SUM)][code as usize & 0xf].into()
}

/// The values of a cell from which the other values are predicted.
struct Known {
    n: u32,
    scale: Scale,
    first: i64,
    last: i64,
    first_value: f64,
    last_value: f64,
}

impl Known {
    /// Returns the likely number of the sum.
    fn likely_sum(&self, has_rates: bool) -> i64 {
        if has_rates {
            // The increase up to the first reading is unknown.
            return if self.n > 1 { self.last.wrapping_sub(self.first) } else { 0 };
        }
        if self.scale.is_decimal() {
            return self.first.wrapping_add(self.last).wrapping_mul(i64::from(self.n)) >> 1;
        }
        let likely = f64::from(self.n) * (self.first_value + self.last_value) / 2.0;
        // The bits of a computed NaN differ between machines.
        if self.n <= 1 || likely.is_nan() { self.first } else { ordered(likely) }
    }

    /// Returns the increase of a number: rounded like a difference from the last reading, plus
    /// `units` times the distance from the last reading to the next larger double.
    fn increase(&self, number: i64, units: i64) -> f64 {
        let exact = self.scale.double(number);
        if self.scale.power() == 0 || !self.scale.is_decimal() {
            return exact;
        }
        let unit = f64::from_bits(self.last_value.abs().to_bits() + 1) - self.last_value.abs();
        self.last_value - (self.last_value - exact) + units as f64 * unit
    }

    /// Returns the number and the correction in units of an increase; `None` when no number and
    /// correction produce an increase that `is_exact` accepts.
    fn number_of(&self, increase: f64, is_exact: impl Fn(f64) -> bool) -> Option<(i64, i64)> {
        if !self.scale.is_decimal() {
            return None;
        }
        let number = self.scale.number(increase);
        let uncorrected = self.increase(number, 0);
        if is_exact(uncorrected) {
            return Some((number, 0));
        }
        let unit = self.increase(number, 1) - uncorrected;
        let units = ((increase - uncorrected) / unit).round();
        // The comparison is false for NaN.
        let units = if units.abs() <= NOT_OFF as f64 { units as i64 } else { return None };
        is_exact(self.increase(number, units)).then_some((number, units))
    }
}

/// Returns the number of the mean increase from one reading to the next.
fn likely_increase(cell: &Cell, known: &Known) -> i64 {
    known.scale.number(cell.sum) / i64::from(cell.n.max(1))
}
