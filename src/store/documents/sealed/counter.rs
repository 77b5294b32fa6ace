//! Values of counters: what was counted lies between readings, and a rate is an increase in a number
//! of milliseconds.
//!
//! Must never know: whether they are a counter's.

use super::{
    cursor::{Misfit, put_varint},
    gauge::add_ulps,
    number::{Scale, ordered},
    stream::choose,
    times::Times,
    values::{Columns, Head, Reader, Values, Writer, chain, unchain},
};

/// Of the smallest rate: it is an increase and its milliseconds, not a double near the likely one.
const PAIRS: u8 = 16;
/// Of it: increases are as they are, not less what is likely.
const PLAIN: u8 = 64;
/// Time is measured up to here, so that no hostile number is taken for one.
const PASSED_MAX: i64 = 1 << 50;
/// Increases in pairs, so that nothing overflows.
const NUMBER_MAX: u64 = 1 << 53;
/// Of jitter, so many ms each way are looked through first.
const JITTER_MS: i64 = 24;
/// Rates that are tried before it is given up to find increases behind them.
const TRIED_MIN: usize = 16;
/// Denominators that are looked for.
const MILLIS_MAX: f64 = 16_777_216.0;

/// The smallest or the largest rate of each slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Min,
    Max,
}

impl Side {
    /// Where its flags lie beside those of the smallest.
    fn shift(self) -> u32 {
        match self {
            Self::Min => 0,
            Self::Max => 1,
        }
    }

    fn pick(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Min if other < one => other,
            Self::Max if other > one => other,
            Self::Min | Self::Max => one,
        }
    }

    /// What an increase is likely to be at least, or at most.
    fn bound(self, one: i64, other: i64) -> i64 {
        match self {
            Self::Min => one.min(other),
            Self::Max => one.max(other),
        }
    }
}

/// What is known of each slot before its rates are.
struct Known {
    /// Number of the increase up to the first reading, and from there to the last.
    before: Vec<i64>,
    within: Vec<i64>,
    /// The increase.
    sum: Vec<f64>,
    /// Of each side the likely rate.
    likely: [Vec<f64>; 2],
    /// Milliseconds between readings, in the mean.
    step: Vec<i64>,
}

impl Known {
    fn of(
        numbers: (Vec<i64>, Vec<i64>),
        values: (&[f64], &[f64]),
        base: f64,
        times: &Times,
        passed: impl Iterator<Item = i64>,
    ) -> Self {
        let (before, within) = numbers;
        let (first, last) = values;
        let count = first.len();
        let mut known = Self {
            before,
            within,
            sum: Vec::with_capacity(count),
            likely: [Vec::with_capacity(count), Vec::with_capacity(count)],
            step: Vec::with_capacity(count),
        };
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
    fn bound(&self, side: Side, index: usize, n: u32) -> i64 {
        let (before, within) = (self.before[index], self.within[index]);
        if n < 2 { before } else { side.bound(before, within / i64::from(n - 1)) }
    }

    fn likely(&self, side: Side) -> &[f64] {
        &self.likely[side.shift() as usize]
    }
}

/// As the model counts: a decrease tells of a reset.
fn increase(value: f64, before: f64) -> f64 {
    if value < before { value } else { value - before }
}

fn per_second(increase: f64, passed_ms: i64) -> f64 {
    sane(increase / (passed_ms as f64 / 1000.0))
}

/// What bits a NaN gets is not the same on all machines.
fn sane(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// Appends the values.
pub(super) fn write(values: &Values, times: &Times, width_ms: i64, out: &mut Vec<u8>) {
    let Values { sum, min, max, first, last } = values;
    let scale = Scale::of(first.iter().chain(last).copied());
    let numbers = |column: &[f64]| column.iter().map(|v| scale.number(*v)).collect::<Vec<_>>();
    let (firsts, lasts) = (numbers(first), numbers(last));
    let base = base_of(scale, last, sum);
    let (before, within) = unchain(base, &firsts, &lasts);
    let first_passed = first_passed(values, scale.double(base), times, width_ms);
    let passed = times.passed_before(width_ms, first_passed);
    let known = Known::of((before, within), (first, last), scale.double(base), times, passed);
    let sides = [(Side::Min, min), (Side::Max, max)];
    let rates = sides.map(|(side, column)| Rates::of(side, column, &known, times, scale));
    let flags = rates[0].flags | rates[1].flags << 1;
    let mut writer = Writer::new(Head { scale, flags, base }, true, out);
    put_varint(first_passed as u64, writer.out());
    writer.stream(&known.before);
    writer.stream(&known.within);
    let off = |(own, likely): (&f64, &f64)| ordered(*own).wrapping_sub(ordered(*likely));
    writer.stream(&sum.iter().zip(&known.sum).map(off).collect::<Vec<_>>());
    for own in &rates {
        writer.stream(&own.numbers);
        writer.stream(&own.millis);
    }
    if writer.mark(rates.iter().any(|own| !own.raw.is_empty())) {
        for own in &rates {
            own.write_raw(writer.out());
        }
    }
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

/// The rates of one side, as they are written.
struct Rates {
    flags: u8,
    /// 0 where it is the likely one.
    numbers: Vec<i64>,
    /// Of pairs that are not: milliseconds, less the mean.
    millis: Vec<i64>,
    /// Those that are none of it, as they are.
    raw: Vec<(usize, f64)>,
}

impl Rates {
    fn of(side: Side, rates: &[f64], known: &Known, times: &Times, scale: Scale) -> Self {
        let likely = known.likely(side);
        let off = rates
            .iter()
            .zip(likely)
            .map(|(own, likely)| ordered(*own).wrapping_sub(ordered(*likely)));
        let near = Self { flags: 0, numbers: off.collect(), millis: Vec::new(), raw: Vec::new() };
        if !scale.is_decimal() || near.numbers.iter().all(|own| *own == 0) {
            return near;
        }
        match Self::pairs(side, rates, known, times, scale) {
            Some(pairs) if pairs.raw.is_empty() || pairs.bits() < near.bits() => pairs,
            Some(_) | None => near,
        }
    }

    fn bits(&self) -> usize {
        let streams = [&self.numbers, &self.millis].into_iter().filter(|own| !own.is_empty());
        streams.map(|own| choose(own).bits()).sum::<usize>() + self.raw.len() * 72
    }

    /// `None` when most rates are no such pairs.
    fn pairs(
        side: Side,
        rates: &[f64],
        known: &Known,
        times: &Times,
        scale: Scale,
    ) -> Option<Self> {
        let mut hint = 0;
        let (mut plain, mut less) = (vec![0; rates.len()], vec![0; rates.len()]);
        let (mut millis, mut raw) = (Vec::new(), Vec::new());
        for (index, rate) in rates.iter().enumerate() {
            if rate.to_bits() == known.likely(side)[index].to_bits() {
                continue;
            }
            let step = known.step[index];
            let Some((number, ms)) = pair(*rate, scale, [hint, step]) else {
                raw.push((index, *rate));
                if raw.len() > TRIED_MIN.max(millis.len()) {
                    return None;
                }
                continue;
            };
            hint = ms;
            let bound = known.bound(side, index, times.n[index]);
            let off = match side {
                Side::Min => bound.wrapping_sub(number),
                Side::Max => number.wrapping_sub(bound),
            };
            // Zero says that it is the likely one.
            plain[index] = past_zero(number);
            less[index] = past_zero(off);
            millis.push(ms - step);
        }
        let is_plain = choose(&plain).bits() < choose(&less).bits();
        let flags = PAIRS | if is_plain { PLAIN } else { 0 };
        Some(Self { flags, numbers: if is_plain { plain } else { less }, millis, raw })
    }

    fn write_raw(&self, out: &mut Vec<u8>) {
        put_varint(self.raw.len() as u64, out);
        for (index, rate) in &self.raw {
            put_varint(*index as u64, out);
            out.extend_from_slice(&rate.to_bits().to_le_bytes());
        }
    }
}

/// Leaves out zero.
fn past_zero(number: i64) -> i64 {
    if number >= 0 { number.wrapping_add(1) } else { number }
}

fn before_zero(number: i64) -> i64 {
    if number > 0 || number == i64::MIN { number.wrapping_sub(1) } else { number }
}

/// An increase, as its number, and milliseconds that make a rate.
fn pair(rate: f64, scale: Scale, likely_ms: [i64; 2]) -> Option<(i64, i64)> {
    if !rate.is_finite() {
        return None;
    }
    let check = |ms: i64| {
        if ms <= 0 {
            return None;
        }
        let number = scale.number(rate * (ms as f64 / 1000.0));
        let is_it = number.unsigned_abs() < NUMBER_MAX
            && per_second(scale.double(number), ms).to_bits() == rate.to_bits();
        is_it.then_some((number, ms))
    };
    if let Some(found) = likely_ms.into_iter().find_map(check) {
        return Some(found);
    }
    let target = rate / scale.double(1) / 1000.0;
    let around = likely_ms[1] - JITTER_MS..=likely_ms[1] + JITTER_MS;
    let is_near = |ms: &i64| {
        let number = target * *ms as f64;
        let off = number - ((number + 0.5) as i64) as f64;
        off.abs() < 1e-6
    };
    if let Some(found) = around.filter(is_near).find_map(check) {
        return Some(found);
    }
    // The fractions that are nearest to it, by smaller and smaller parts.
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

/// Reads the values.
pub(super) fn read(
    head: Head,
    reader: &mut Reader<'_, '_>,
    times: &Times,
    width_ms: i64,
    limit: usize,
    wanted: Columns,
) -> Result<Values, Misfit> {
    let (scale, count) = (head.scale, times.count());
    let first_passed = reader.from.varint()? as i64;
    if !(0..PASSED_MAX).contains(&first_passed) {
        return Err(reader.from.misfit());
    }
    let zeros = || vec![0; limit];
    let before = reader.stream(count, true)?.unwrap_or_else(zeros);
    let lengths = reader.stream(count, true)?;
    let is_point = lengths.is_none();
    let within = lengths.unwrap_or_else(zeros);
    let (mut firsts, mut lasts) = (before.clone(), within.clone());
    chain(head.base, &mut firsts, &mut lasts);
    let doubles = |numbers: &[i64]| numbers.iter().map(|v| scale.double(*v)).collect::<Vec<_>>();
    let first = doubles(&firsts);
    let last = if is_point { first.clone() } else { doubles(&lasts) };
    let mut values = Values { first, last, ..Values::default() };
    if wanted == Columns::ENDS {
        return Ok(values);
    }
    let passed = times.passed_before(width_ms, first_passed);
    let ends = (&values.first[..], &values.last[..]);
    let known = Known::of((before, within), ends, scale.double(head.base), times, passed);
    let off = reader.stream(count, wanted.has(Columns::SUM))?;
    if wanted.has(Columns::SUM) {
        values.sum.clone_from(&known.sum);
        add_ulps(&mut values.sum, off);
    }
    values.min = read_rates(head, reader, times, &known, Side::Min)?;
    values.max = read_rates(head, reader, times, &known, Side::Max)?;
    if reader.is_there() {
        read_raw(reader, count, &mut values.min)?;
        read_raw(reader, count, &mut values.max)?;
    }
    Ok(values)
}

fn read_rates(
    head: Head,
    reader: &mut Reader<'_, '_>,
    times: &Times,
    known: &Known,
    side: Side,
) -> Result<Vec<f64>, Misfit> {
    let flags = head.flags >> side.shift();
    let mut rates = known.likely(side).to_vec();
    if flags & PAIRS == 0 {
        add_ulps(&mut rates, reader.stream(times.count(), true)?);
        reader.is_there();
        return Ok(rates);
    }
    let Some(numbers) = reader.whole_stream(times.count())? else {
        reader.is_there();
        return Ok(rates);
    };
    let pairs = numbers.iter().filter(|number| **number != 0).count();
    let mut millis = reader.whole_stream(pairs)?.unwrap_or_else(|| vec![0; pairs]).into_iter();
    for (index, (rate, number)) in rates.iter_mut().zip(numbers).enumerate() {
        if number == 0 {
            continue;
        }
        let off = before_zero(number);
        let number = if flags & PLAIN != 0 {
            off
        } else {
            let bound = known.bound(side, index, times.n[index]);
            match side {
                Side::Min => bound.wrapping_sub(off),
                Side::Max => bound.wrapping_add(off),
            }
        };
        let ms = millis.next().unwrap_or(0).wrapping_add(known.step[index]);
        *rate = per_second(head.scale.double(number), ms);
    }
    Ok(rates)
}

fn read_raw(reader: &mut Reader<'_, '_>, count: usize, rates: &mut [f64]) -> Result<(), Misfit> {
    for _ in 0..reader.from.varint()?.min(count as u64) {
        let index = reader.from.varint()? as usize;
        let rate = f64::from_bits(reader.from.word()?);
        match rates.get_mut(index) {
            Some(own) => *own = rate,
            None if index < count => {}
            None => return Err(reader.from.misfit()),
        }
    }
    Ok(())
}
