//! Values of counters: what was counted lies between readings, and a rate is an increase in a number
//! of milliseconds.
//!
//! Must never know: whether they are a counter's.

use super::{
    cursor::{Misfit, put_varint},
    gauge::add_ulps,
    rates::{self, Rates, Series, Side},
    scratch::Scratch,
    times::Times,
    values::{Columns, Head, Reader, Values, Writer, chain, unchain},
};
use crate::store::number::{Scale, ordered};

/// Time is measured up to here, so that no hostile number is taken for one.
const PASSED_MAX: i64 = 1 << 50;

/// What is known of each slot before its rates are.
pub(super) struct Known {
    /// Number of the increase up to the first reading, and from there to the last.
    before: Vec<i64>,
    within: Vec<i64>,
    /// The increase.
    sum: Vec<f64>,
    /// Of each side the likely rate.
    likely: [Vec<f64>; 2],
    /// Milliseconds between readings, in the mean.
    pub(super) step: Vec<i64>,
}

impl Known {
    fn of(
        numbers: (Vec<i64>, Vec<i64>),
        values: (&[f64], &[f64]),
        base: f64,
        times: &Times,
        passed: impl Iterator<Item = i64>,
        scratch: &mut Scratch,
    ) -> Self {
        let (before, within) = numbers;
        let (first, last) = values;
        let count = first.len();
        let [sum, min, max] = [(); 3].map(|()| scratch.doubles.take());
        let mut known =
            Self { before, within, sum, likely: [min, max], step: scratch.whole.take() };
        known.step.reserve(count);
        let columns = std::iter::once(&mut known.sum).chain(&mut known.likely);
        columns.for_each(|column| column.reserve(count));
        let mut previous = base;
        for (index, passed) in passed.take(count).enumerate() {
            let (first, last, n) = (first[index], last[index], times.n[index]);
            let length = i64::from(times.last_at[index]) - i64::from(times.first_at[index]);
            let increase = increase(first, previous);
            let rate = per_second(increase, passed);
            let (mut sum, mut rates) = (increase, [rate; 2]);
            if n > 1 {
                let within = self::increase(last, first);
                sum += within;
                if n == 2 {
                    let second = per_second(within, length);
                    rates = [Side::Min.pick(rate, second), Side::Max.pick(rate, second)];
                }
            }
            known.sum.push(sane(sum));
            known.likely[0].push(rates[0]);
            known.likely[1].push(rates[1]);
            known.step.push((passed + length) / i64::from(n.max(1)));
            previous = last;
        }
        known
    }

    /// What the number of an increase is taken from.
    pub(super) fn bound(&self, side: Side, index: usize, n: u32) -> i64 {
        let (before, within) = (self.before[index], self.within[index]);
        if n < 2 { before } else { side.bound(before, within / i64::from(n - 1)) }
    }

    /// Gives the columns back that are not needed any more.
    fn give_back(self, scratch: &mut Scratch) {
        let Self { before, within, sum, likely, step } = self;
        scratch.whole.give([before, within, step]);
        scratch.doubles.give(likely.into_iter().chain([sum]));
    }

    pub(super) fn likely(&self, side: Side) -> &[f64] {
        &self.likely[side.shift() as usize]
    }
}

/// As the model counts: a decrease tells of a reset.
fn increase(value: f64, before: f64) -> f64 {
    if value < before { value } else { value - before }
}

pub(super) fn per_second(increase: f64, passed_ms: i64) -> f64 {
    sane(increase / (passed_ms as f64 / 1000.0))
}

/// What bits a NaN gets is not the same on all machines.
fn sane(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// Appends the values.
pub(super) fn write(
    values: &Values,
    times: &Times,
    width_ms: i64,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) {
    let Values { sum, min, max, first, last } = values;
    let scale = Scale::of(first.iter().chain(last).copied());
    let base = base_of(scale, last, sum);
    let [mut before, mut within, mut off] = [(); 3].map(|()| scratch.whole.take());
    before.extend(first.iter().map(|value| scale.number(*value)));
    within.extend(last.iter().map(|value| scale.number(*value)));
    unchain(base, &mut before, &mut within);
    let first_passed = first_passed(values, scale.double(base), times, width_ms);
    let passed = times.passed_before(width_ms, first_passed);
    let (numbers, ends) = ((before, within), (&first[..], &last[..]));
    let known = Known::of(numbers, ends, scale.double(base), times, passed, scratch);
    let sides = [(Side::Min, min), (Side::Max, max)];
    let series = Series { known: &known, times, scale, last };
    let rates = sides.map(|(side, column)| Rates::of(side, column, &series));
    let flags = rates[0].flags | rates[1].flags << 1;
    let mut writer = Writer::new(Head { scale, flags, base }, true, out);
    put_varint(first_passed as u64, writer.out());
    writer.stream(&known.before);
    writer.stream(&known.within);
    let likely = sum.iter().zip(&known.sum);
    off.extend(likely.map(|(own, likely)| ordered(*own).wrapping_sub(ordered(*likely))));
    writer.stream(&off);
    for own in &rates {
        own.write(&mut writer);
    }
    if writer.mark(rates.iter().any(|own| !own.raw.is_empty())) {
        for own in &rates {
            own.write_raw(writer.out());
        }
    }
    scratch.whole.give([off]);
    known.give_back(scratch);
}

/// The last reading before the first slot, as its increase tells.
fn base_of(scale: Scale, last: &[f64], sum: &[f64]) -> i64 {
    let (Some(last), Some(sum)) = (last.first(), sum.first()) else { return 0 };
    let base = last - sum;
    if base.is_finite() { scale.number(base) } else { 0 }
}

/// Milliseconds from the last reading before the first slot to the first reading.
fn first_passed(values: &Values, base: f64, times: &Times, width_ms: i64) -> i64 {
    let usual = times.passed_before(width_ms, 0).nth(1).unwrap_or(0);
    let (Some(first), Some(rate), Some(1)) =
        (values.first.first(), values.min.first(), times.n.first())
    else {
        return usual.max(0);
    };
    let increase = increase(*first, base);
    if per_second(increase, usual).to_bits() == rate.to_bits() {
        return usual.max(0);
    }
    let passed = (increase / rate * 1000.0).round();
    if passed >= 0.0 && passed < PASSED_MAX as f64 { passed as i64 } else { usual.max(0) }
}

/// Reads the values.
pub(super) fn read(
    head: Head,
    reader: &mut Reader<'_, '_>,
    times: &Times,
    width_ms: i64,
    wanted: Columns,
) -> Result<Values, Misfit> {
    let (scale, count) = (head.scale, times.count());
    let first_passed = reader.from.varint()? as i64;
    if !(0..PASSED_MAX).contains(&first_passed) {
        return Err(reader.from.misfit());
    }
    let before = reader.numbers(count)?;
    let lengths = reader.stream(count, true)?;
    let is_point = lengths.is_none();
    let within = lengths.unwrap_or_else(|| reader.zeros());
    let [mut firsts, mut lasts] = [&before, &within].map(|own| {
        let mut copy = reader.scratch.whole.take();
        copy.extend_from_slice(own);
        copy
    });
    chain(head.base, &mut firsts, &mut lasts);
    let first = reader.doubles(scale, firsts.iter().copied());
    let last =
        if is_point { reader.copy(&first) } else { reader.doubles(scale, lasts.iter().copied()) };
    reader.give_back([firsts, lasts]);
    let mut values = Values { first, last, ..Values::default() };
    if wanted == Columns::ENDS {
        reader.give_back([before, within]);
        return Ok(values);
    }
    let passed = times.passed_before(width_ms, first_passed);
    let ends = (&values.first[..], &values.last[..]);
    let (numbers, base) = ((before, within), scale.double(head.base));
    let known = Known::of(numbers, ends, base, times, passed, reader.scratch);
    let off = reader.stream(count, wanted.has_any(Columns::SUM))?;
    if wanted.has_any(Columns::SUM) {
        values.sum = reader.copy(&known.sum);
        add_ulps(&mut values.sum, off.as_deref());
        reader.give_back(off);
    }
    if wanted.has_any(Columns::RATES) {
        let series = Series { known: &known, times, scale, last: &values.last };
        values.min = rates::read(Side::Min, head.flags, &series, reader)?;
        values.max = rates::read(Side::Max, head.flags, &series, reader)?;
        if reader.is_there() {
            rates::read_raw(reader, count, &mut values.min)?;
            rates::read_raw(reader, count, &mut values.max)?;
        }
    }
    known.give_back(reader.scratch);
    Ok(values)
}
