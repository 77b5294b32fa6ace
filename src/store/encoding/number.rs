//! Conversion of doubles to whole numbers and back, bit for bit: exact decimals are multiplied by a
//! power of ten; all other doubles are replaced by their rank in the order of all doubles.
//!
//! Must never know: the meaning of the doubles.

const POWERS: [f64; 7] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6];
/// The largest number up to which every whole number is a double.
const WHOLE_MAX: u64 = 1 << 53;

/// Returns the rank of a double in the order of all doubles; the rank of -0.0 is the lowest. Zero
/// bits at the end of the double are zero bits at the end of the rank.
pub(crate) fn ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    if bits >= 0 { bits } else { (bits & i64::MAX).wrapping_neg() | zero_sign(bits) }
}

/// Returns the bit that distinguishes -0.0 from 0.0.
fn zero_sign(bits: i64) -> i64 {
    if bits == i64::MIN { i64::MIN } else { 0 }
}

/// Returns the double of a rank: the inverse of [`ordered`].
pub(crate) fn unordered(rank: i64) -> f64 {
    let bits = if rank >= 0 { rank } else { rank.wrapping_neg() | i64::MIN };
    f64::from_bits(bits as u64)
}

/// A rule that turns doubles into whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The exponent of the power of ten by which doubles are multiplied; [`Scale::ORDERED`] when
    /// the numbers are ranks.
    power: u8,
    /// The number of bits at the end that are zero in all numbers, and are cut off.
    pub(crate) shift: u8,
}

impl Scale {
    /// The power that stands for ranks.
    const ORDERED: u8 = POWERS.len() as u8;

    /// Returns the scale that represents all values exactly by the smallest numbers.
    pub(crate) fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let unshifted = Self::without_shift(&values);
        let bits = values.fold(0, |bits, value| bits | unshifted.number(value));
        Self { shift: if bits == 0 { 0 } else { bits.trailing_zeros() as u8 }, ..unshifted }
    }

    /// Returns the scale without a shift that represents all values exactly.
    pub(crate) fn without_shift(values: &(impl Iterator<Item = f64> + Clone)) -> Self {
        let mut power = 0;
        for value in values.clone() {
            while power < Self::ORDERED && !fits(value, power) {
                power += 1;
            }
        }
        // A power that a later value needs may be too large for an earlier value.
        if power > 0 && power < Self::ORDERED && !values.clone().all(|value| fits(value, power)) {
            power = Self::ORDERED;
        }
        Self { power, shift: 0 }
    }

    /// Returns the scale without a shift of the lower three bits of a power.
    pub(crate) fn from_power(power: u8) -> Self {
        Self { power: power & 7, shift: 0 }
    }

    /// Reads a scale; `None` when no scale has these bytes.
    pub(crate) fn from_bytes(power: u8, shift: u8) -> Option<Self> {
        (power <= Self::ORDERED && shift < 64).then_some(Self { power, shift })
    }

    /// Returns the exponent of the power of ten; 7 when the numbers are ranks.
    pub(crate) fn power(self) -> u8 {
        self.power
    }

    /// Returns the square of the factor from doubles to numbers; `None` when the numbers are ranks.
    pub(crate) fn squared_factor(self) -> Option<f64> {
        let factor = POWERS.get(usize::from(self.power))? / (1_u64 << self.shift) as f64;
        Some(factor * factor)
    }

    /// Returns true when the numbers are decimals, which can be added and subtracted.
    pub(crate) fn is_decimal(self) -> bool {
        self.power < Self::ORDERED
    }

    /// Returns the number of a double; a near number when the scale does not represent it exactly.
    pub(crate) fn number(self, value: f64) -> i64 {
        match POWERS.get(usize::from(self.power)) {
            Some(power) => nearest(value * power) >> self.shift,
            None => ordered(value) >> self.shift,
        }
    }

    /// Appends the doubles of numbers.
    pub(crate) fn doubles(self, numbers: impl Iterator<Item = i64>, out: &mut Vec<f64>) {
        match POWERS.get(usize::from(self.power)) {
            Some(power) => out.extend(numbers.map(|number| (number << self.shift) as f64 / power)),
            None => out.extend(numbers.map(|number| unordered(number << self.shift))),
        }
    }

    /// Returns the double of a number.
    pub(crate) fn double(self, number: i64) -> f64 {
        let number = number << self.shift;
        match POWERS.get(usize::from(self.power)) {
            Some(power) => number as f64 / power,
            None => unordered(number),
        }
    }
}

/// Returns the nearest whole number within the range of `i64`; 0 for NaN.
fn nearest(value: f64) -> i64 {
    (value + 0.5_f64.copysign(value)) as i64
}

/// Returns true when a value times a power of ten is a whole number that converts back to the
/// value.
fn fits(value: f64, power: u8) -> bool {
    let factor = POWERS[usize::from(power)];
    let number = nearest(value * factor);
    let restored = if power == 0 { number as f64 } else { number as f64 / factor };
    number.unsigned_abs() < WHOLE_MAX && restored.to_bits() == value.to_bits()
}
