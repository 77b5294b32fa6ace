//! Doubles as whole numbers, bit for bit: exact decimals by what they are multiples of, any others
//! in the order of their values.
//!
//! Must never know: which column they are of.

const POWERS: [f64; 7] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6];
/// Every whole number up to it is a double.
const WHOLE_MAX: u64 = 1 << 53;

/// A double's place in the order of all; -0.0 is before all. Zeros at the end stay zeros.
pub(crate) fn ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    if bits >= 0 { bits } else { (bits & i64::MAX).wrapping_neg() | zero_sign(bits) }
}

/// The number that tells -0.0 from 0.0.
fn zero_sign(bits: i64) -> i64 {
    if bits == i64::MIN { i64::MIN } else { 0 }
}

/// The inverse of [`ordered`].
pub(crate) fn unordered(place: i64) -> f64 {
    let bits = if place >= 0 { place } else { place.wrapping_neg() | i64::MIN };
    f64::from_bits(bits as u64)
}

/// A rule that turns doubles into whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    /// 10 to this is what they are multiplied with; [`Scale::ORDERED`] when by order.
    power: u8,
    /// Bits that are zero in all.
    pub(crate) shift: u8,
}

impl Scale {
    /// The power of values that are not multiplied: their place in the order of all doubles.
    const ORDERED: u8 = POWERS.len() as u8;

    /// Returns the scale that fits all values, and leaves the numbers smallest.
    pub(crate) fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let bare = Self::without_shift(&values);
        let set = values.fold(0, |set, value| set | bare.number(value));
        Self { shift: if set == 0 { 0 } else { set.trailing_zeros() as u8 }, ..bare }
    }

    /// Returns the scale that fits all values and keeps each of their bits.
    pub(crate) fn without_shift(values: &(impl Iterator<Item = f64> + Clone)) -> Self {
        let mut power = 0;
        for value in values.clone() {
            while power < Self::ORDERED && !fits(value, power) {
                power += 1;
            }
        }
        // A larger power may be too large for those before.
        if power > 0 && power < Self::ORDERED && !values.clone().all(|value| fits(value, power)) {
            power = Self::ORDERED;
        }
        Self { power, shift: 0 }
    }

    /// Returns the scale of a power of three bits.
    pub(crate) fn from_power(power: u8) -> Self {
        Self { power: power & 7, shift: 0 }
    }

    /// Reads a scale; `None` when no scale is written so.
    pub(crate) fn from_bytes(power: u8, shift: u8) -> Option<Self> {
        (power <= Self::ORDERED && shift < 64).then_some(Self { power, shift })
    }

    /// The part of it that says what numbers are multiplied with.
    pub(crate) fn power(self) -> u8 {
        self.power
    }

    /// Returns whether numbers are multiples, which may be added and subtracted.
    pub(crate) fn is_decimal(self) -> bool {
        self.power < Self::ORDERED
    }

    /// The number of a double that fits, or of one near it.
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

    /// The double of a number.
    pub(crate) fn double(self, number: i64) -> f64 {
        let number = number << self.shift;
        match POWERS.get(usize::from(self.power)) {
            Some(power) => number as f64 / power,
            None => unordered(number),
        }
    }
}

/// The whole number that is nearest, as far as there is one.
fn nearest(value: f64) -> i64 {
    (value + 0.5_f64.copysign(value)) as i64
}

/// Returns whether a value times a power of ten is a whole number from which it comes back.
fn fits(value: f64, power: u8) -> bool {
    let by = POWERS[usize::from(power)];
    let number = nearest(value * by);
    let again = if power == 0 { number as f64 } else { number as f64 / by };
    number.unsigned_abs() < WHOLE_MAX && again.to_bits() == value.to_bits()
}
