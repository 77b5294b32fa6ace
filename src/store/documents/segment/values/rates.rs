//! The smallest and the largest rate of a counter's slots: increases divided by milliseconds.
//!
//! The increase between readings with decimals differs from the exact increase by their rounding.
//! Must never know: the other values of a slot.

use super::{
    block::{Reader, Writer},
    gauge::add_ulps,
    known::{Known, Side, per_second},
};
use crate::store::{
    documents::segment::{
        cursor::{Misfit, put_varint},
        stream::choose,
        times::Times,
    },
    encoding::number::{Scale, ordered},
};

/// Flag of the smallest rate: each rate is stored as an increase and its milliseconds, not as a
/// difference from the predicted rate.
const PAIRS: u8 = 16;
/// Flag of the smallest rate. With [`PAIRS`], increases are stored as they are, not relative to the
/// predicted increases. Without [`PAIRS`], rates are pairs whose increases are rounded like
/// readings.
const PLAIN: u8 = 64;
/// The limit of increases in pairs, which prevents overflows.
const NUMBER_MAX: u64 = 1 << 53;
/// The jitter, in milliseconds in each direction, that is tried first.
const JITTER_MS: i64 = 24;
/// The number of rates without a pair that the encoding as pairs always accepts. Above this number,
/// it is abandoned when most rates so far have no pair.
const TRIED_MIN: usize = 16;
/// The maximum rounding error of an increase, in units: it is the error of two readings.
const ROUNDED_MAX: f64 = 4.0;
/// The maximum denominator of the fractions that are tried.
const MILLIS_MAX: f64 = 16_777_216.0;

/// The values that the rates of a series are computed from.
pub(super) struct Series<'a> {
    pub(super) known: &'a Known,
    pub(super) times: &'a Times,
    pub(super) scale: Scale,
    pub(super) last: &'a [f64],
    /// The first slot whose rates are read.
    pub(super) first_slot: usize,
}

/// The rounding of increases: to a whole number of units of a reading.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rounding {
    /// The increase is not rounded.
    None,
    /// The increase is the difference of two readings of about this size.
    Like(f64),
}

impl Rounding {
    /// Returns the size of a unit: the value of the last bit of a reading.
    fn unit(self) -> f64 {
        match self {
            Self::Like(reading) if reading.abs() < f64::MAX => {
                let size = reading.abs();
                f64::from_bits(size.to_bits() + 1) - size
            }
            Self::None | Self::Like(_) => 0.0,
        }
    }

    /// Returns the increase as the difference of two rounded readings, plus a number of units.
    fn apply(self, increase: f64, units: i64) -> f64 {
        match self {
            Self::None => increase,
            Self::Like(reading) => reading - (reading - increase) + units as f64 * self.unit(),
        }
    }
}

/// The encoded rates of one side.
#[derive(Default)]
pub(super) struct Rates {
    pub(super) flags: u8,
    /// The encoded increases or differences; 0 where the rate equals the predicted rate.
    numbers: Vec<i64>,
    /// The milliseconds of the pairs, minus the mean interval between readings.
    millis: Vec<i64>,
    /// The rounding errors of the pairs' increases; empty when increases are not rounded.
    rounded: Vec<i64>,
    /// The rates that have no pair, with their indexes.
    pub(super) raw: Vec<(usize, f64)>,
}

impl Rates {
    pub(super) fn of(side: Side, rates: &[f64], series: &Series<'_>) -> Self {
        let likely = series.known.likely(side);
        let off = rates
            .iter()
            .zip(likely)
            .map(|(value, likely)| ordered(*value).wrapping_sub(ordered(*likely)));
        let near = Self { numbers: off.collect(), ..Self::default() };
        if !series.scale.is_decimal() || near.numbers.iter().all(|number| *number == 0) {
            return near;
        }
        let exact = Self::pairs(side, rates, series, |_| Rounding::None);
        let rounded = (series.scale.power() > 0)
            .then(|| Self::pairs(side, rates, series, |index| Rounding::Like(series.last[index])));
        let pairs = [exact, rounded.flatten()].into_iter().flatten();
        match pairs.min_by_key(Self::bits) {
            Some(pairs) if pairs.raw.is_empty() || pairs.bits() < near.bits() => pairs,
            Some(_) | None => near,
        }
    }

    fn bits(&self) -> usize {
        let streams = [&self.numbers, &self.millis, &self.rounded];
        let streams = streams.into_iter().filter(|stream| !stream.is_empty());
        streams.map(|stream| choose(stream).bits()).sum::<usize>() + self.raw.len() * 72
    }

    /// Encodes rates as pairs; `None` when too many rates have no pair.
    fn pairs(
        side: Side,
        rates: &[f64],
        series: &Series<'_>,
        rounding: impl Fn(usize) -> Rounding,
    ) -> Option<Self> {
        let Series { known, times, scale, .. } = *series;
        let mut hint = 0;
        let (mut plain, mut relative) = (vec![0; rates.len()], vec![0; rates.len()]);
        let mut encoded = Self::default();
        for (index, rate) in rates.iter().enumerate() {
            if rate.to_bits() == known.likely(side)[index].to_bits() {
                continue;
            }
            let step = known.step[index];
            let Some(pair) = Pair::of(*rate, scale, [hint, step], rounding(index)) else {
                encoded.raw.push((index, *rate));
                if encoded.raw.len() > TRIED_MIN.max(encoded.millis.len()) {
                    return None;
                }
                continue;
            };
            hint = pair.ms;
            let bound = known.bound(side, index, times.n[index]);
            let off = match side {
                Side::Min => bound.wrapping_sub(pair.number),
                Side::Max => pair.number.wrapping_sub(bound),
            };
            // Zero means that the rate equals the predicted rate.
            plain[index] = past_zero(pair.number);
            relative[index] = past_zero(off);
            encoded.millis.push(pair.ms - step);
            if rounding(index) != Rounding::None {
                encoded.rounded.push(pair.rounded);
            }
        }
        if encoded.rounded.is_empty() {
            let is_plain = choose(&plain).bits() < choose(&relative).bits();
            encoded.flags = PAIRS | if is_plain { PLAIN } else { 0 };
            encoded.numbers = if is_plain { plain } else { relative };
        } else {
            (encoded.flags, encoded.numbers) = (PLAIN, relative);
        }
        Some(encoded)
    }

    /// Appends the streams.
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.stream(&self.numbers);
        writer.stream(&self.millis);
        if !self.rounded.is_empty() {
            choose(&self.rounded).write(writer.out());
        }
    }

    /// Appends the rates that have no pair.
    pub(super) fn write_raw(&self, out: &mut Vec<u8>) {
        put_varint(self.raw.len() as u64, out);
        for (index, rate) in &self.raw {
            put_varint(*index as u64, out);
            out.extend_from_slice(&rate.to_bits().to_le_bytes());
        }
    }
}

/// Maps whole numbers to whole numbers other than zero.
fn past_zero(number: i64) -> i64 {
    if number >= 0 { number.wrapping_add(1) } else { number }
}

/// Returns the inverse of [`past_zero`].
fn before_zero(number: i64) -> i64 {
    if number > 0 || number == i64::MIN { number.wrapping_sub(1) } else { number }
}

/// An increase and milliseconds whose quotient is a rate.
struct Pair {
    /// The increase as a scaled number.
    number: i64,
    /// The rounding error of the increase in units.
    rounded: i64,
    ms: i64,
}

impl Pair {
    /// Finds the pair of a rate; tries the predicted milliseconds first.
    fn of(rate: f64, scale: Scale, likely_ms: [i64; 2], rounding: Rounding) -> Option<Self> {
        if !rate.is_finite() {
            return None;
        }
        let check = |ms: i64| Self::check(rate, scale, ms, rounding);
        if let Some(found) = likely_ms.into_iter().find_map(check) {
            return Some(found);
        }
        let target = rate / scale.double(1) / 1000.0;
        let near = 1e-6 + ROUNDED_MAX * rounding.unit() / scale.double(1);
        let around = likely_ms[1] - JITTER_MS..=likely_ms[1] + JITTER_MS;
        let is_near = |ms: &i64| {
            let number = target * *ms as f64;
            let off = number - ((number + 0.5) as i64) as f64;
            off.abs() < near
        };
        if let Some(found) = around.filter(is_near).find_map(check) {
            return Some(found);
        }
        // The best approximations of the target by fractions: its continued fraction.
        let step = likely_ms[1].max(1) as f64;
        let (mut rest, mut denominator, mut before) = (target, 1.0_f64, 0.0_f64);
        for _ in 0..24 {
            let part = rest - rest.floor();
            let multiple = (step / denominator).round().max(1.0);
            if let Some(found) = check((denominator * multiple) as i64) {
                return Some(found);
            }
            if part < 1e-12 {
                return None;
            }
            rest = 1.0 / part;
            (denominator, before) = (rest.floor() * denominator + before, denominator);
            if denominator > MILLIS_MAX {
                return None;
            }
        }
        None
    }

    /// Returns the pair with these milliseconds, if its quotient is exactly the rate.
    fn check(rate: f64, scale: Scale, ms: i64, rounding: Rounding) -> Option<Self> {
        if ms <= 0 {
            return None;
        }
        let increase = rate * (ms as f64 / 1000.0);
        let number = scale.number(increase);
        if number.unsigned_abs() >= NUMBER_MAX {
            return None;
        }
        let (exact, unit) = (scale.double(number), rounding.unit());
        let is_exact = |units: i64| {
            let increase = rounding.apply(exact, units);
            per_second(increase, ms).to_bits() == rate.to_bits()
        };
        if unit == 0.0 {
            return is_exact(0).then_some(Self { number, rounded: 0, ms });
        }
        let off = (increase - rounding.apply(exact, 0)) / unit;
        if off.abs() > ROUNDED_MAX {
            return None;
        }
        let near = off.round() as i64;
        let rounded = [near, near - 1, near + 1].into_iter().find(|units| is_exact(*units))?;
        Some(Self { number, rounded, ms })
    }
}

/// Reads the rates of one side, except the rates that have no pair.
pub(super) fn read(
    side: Side,
    flags: u8,
    series: &Series<'_>,
    reader: &mut Reader<'_, '_>,
) -> Result<Vec<f64>, Misfit> {
    let Series { known, times, scale, last, first_slot } = *series;
    let (flags, count) = (flags >> side.shift(), times.count());
    let mut rates = known.likely(side).to_vec();
    let is_rounded = flags & (PAIRS | PLAIN) == PLAIN;
    if flags & (PAIRS | PLAIN) == 0 {
        let ulps = reader.stream(count, true)?;
        add_ulps(&mut rates, ulps.as_deref());
        reader.recycle(ulps);
        reader.is_there();
        return Ok(rates);
    }
    let Some(numbers) = reader.whole_stream(count)? else {
        reader.is_there();
        return Ok(rates);
    };
    let pairs = numbers.iter().filter(|number| **number != 0).count();
    let mut millis = reader.whole_stream(pairs)?.unwrap_or_default().into_iter();
    let rounded = if is_rounded { reader.unmarked_stream(pairs)? } else { Vec::new() };
    let mut rounded = rounded.into_iter();
    for (index, (rate, number)) in rates.iter_mut().zip(numbers).enumerate() {
        if number == 0 {
            continue;
        }
        let (millis, units) = (millis.next().unwrap_or(0), rounded.next().unwrap_or(0));
        if index < first_slot {
            continue;
        }
        let off = before_zero(number);
        let number = if is_rounded || flags & PLAIN == 0 {
            let bound = known.bound(side, index, times.n[index]);
            match side {
                Side::Min => bound.wrapping_sub(off),
                Side::Max => bound.wrapping_add(off),
            }
        } else {
            off
        };
        let ms = millis.wrapping_add(known.step[index]);
        let rounding = if is_rounded { Rounding::Like(last[index]) } else { Rounding::None };
        let increase = rounding.apply(scale.double(number), units);
        *rate = per_second(increase, ms);
    }
    Ok(rates)
}

/// Reads the rates that have no pair.
pub(super) fn read_raw(
    reader: &mut Reader<'_, '_>,
    count: usize,
    rates: &mut [f64],
) -> Result<(), Misfit> {
    for _ in 0..reader.from.varint()?.min(count as u64) {
        let index = reader.from.varint()? as usize;
        let rate = f64::from_bits(reader.from.word()?);
        match rates.get_mut(index) {
            Some(known) => *known = rate,
            None if index < count => {}
            None => return Err(reader.from.misfit()),
        }
    }
    Ok(())
}
