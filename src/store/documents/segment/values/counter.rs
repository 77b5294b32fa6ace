//! Values of counters: a sum is the increase between readings, and a rate is an increase divided by
//! a number of milliseconds.
//!
//! Must never know: how counters are recognized.

use super::{
    block::{Columns, Head, Reader, Values, Writer, chain, unchain},
    gauge::add_ulps,
    known::{Known, Side, increase_of, per_second},
    rates::{self, Rates, Series},
};
use crate::store::{
    documents::segment::{
        buffers::Buffers,
        cursor::{Misfit, put_varint},
        times::Times,
    },
    encoding::number::{Scale, ordered},
};

/// The limit of stored milliseconds; larger numbers are refused as damage.
const PASSED_MAX: i64 = 1 << 50;

/// Appends the values.
pub(super) fn write(
    values: &Values,
    times: &Times,
    width_ms: i64,
    buffers: &mut Buffers,
    out: &mut Vec<u8>,
) {
    let Values { sum, min, max, first, last, .. } = values;
    let scale = Scale::of(first.iter().chain(last).copied());
    let base = base_of(scale, last, sum);
    let [mut before, mut within, mut off] = [(); 3].map(|()| buffers.whole.take());
    before.extend(first.iter().map(|value| scale.number(*value)));
    within.extend(last.iter().map(|value| scale.number(*value)));
    unchain(base, &mut before, &mut within);
    let first_passed = first_passed(values, scale.double(base), times, width_ms);
    let passed = times.passed_before(width_ms, first_passed);
    let (numbers, ends) = ((before, within), (&first[..], &last[..]));
    let base_value = scale.double(base);
    let known = Known::of((numbers, ends), base_value, times, (passed, 0), buffers);
    let sides = [(Side::Min, min), (Side::Max, max)];
    let series = Series { known: &known, times, scale, last, first_slot: 0 };
    let rates = sides.map(|(side, column)| Rates::of(side, column, &series));
    let flags = rates[0].flags | rates[1].flags << 1;
    let mut writer = Writer::new(Head { scale, flags, base }, true, out);
    put_varint(first_passed as u64, writer.out());
    writer.stream(&known.before);
    writer.stream(&known.within);
    let likely = sum.iter().zip(&known.sum);
    off.extend(likely.map(|(value, likely)| ordered(*value).wrapping_sub(ordered(*likely))));
    writer.stream(&off);
    for rate in &rates {
        rate.write(&mut writer);
    }
    if writer.mark(rates.iter().any(|rate| !rate.raw.is_empty())) {
        for rate in &rates {
            rate.write_raw(writer.out());
        }
    }
    buffers.whole.give([off]);
    known.recycle(buffers);
}

/// Returns the last reading before the first slot, which follows from the increase of that slot.
fn base_of(scale: Scale, last: &[f64], sum: &[f64]) -> i64 {
    let (Some(last), Some(sum)) = (last.first(), sum.first()) else { return 0 };
    let base = last - sum;
    if base.is_finite() { scale.number(base) } else { 0 }
}

/// Returns the milliseconds from the last reading before the first slot to the first reading.
fn first_passed(values: &Values, base: f64, times: &Times, width_ms: i64) -> i64 {
    let usual = times.passed_before(width_ms, 0).nth(1).unwrap_or(0);
    let (Some(first), Some(rate), Some(1)) =
        (values.first.first(), values.min.first(), times.n.first())
    else {
        return usual.max(0);
    };
    let increase = increase_of(*first, base);
    if per_second(increase, usual).to_bits() == rate.to_bits() {
        return usual.max(0);
    }
    let passed = (increase / rate * 1000.0).round();
    if passed >= 0.0 && passed < PASSED_MAX as f64 { passed as i64 } else { usual.max(0) }
}

/// Reads the values. The increases and rates of slots before `first_slot` can be anything.
pub(super) fn read(
    head: Head,
    reader: &mut Reader<'_, '_>,
    (times, width_ms): (&Times, i64),
    first_slot: usize,
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
    let [mut firsts, mut lasts] = [&before, &within].map(|column| {
        let mut copy = reader.buffers.whole.take();
        copy.extend_from_slice(column);
        copy
    });
    chain(head.base, &mut firsts, &mut lasts);
    let first = reader.doubles(scale, firsts.iter().copied());
    let last =
        if is_point { reader.copy(&first) } else { reader.doubles(scale, lasts.iter().copied()) };
    reader.recycle([firsts, lasts]);
    let mut values = Values { first, last, ..Values::default() };
    if wanted == Columns::ENDS {
        reader.recycle([before, within]);
        return Ok(values);
    }
    let passed = times.passed_before(width_ms, first_passed);
    let ends = (&values.first[..], &values.last[..]);
    let (numbers, base) = ((before, within), scale.double(head.base));
    let known = Known::of((numbers, ends), base, times, (passed, first_slot), reader.buffers);
    let off = reader.stream(count, wanted.has_any(Columns::SUM))?;
    if wanted.has_any(Columns::SUM) {
        values.sum = reader.copy(&known.sum);
        add_ulps(&mut values.sum, off.as_deref());
        reader.recycle(off);
    }
    if wanted.has_any(Columns::RATES) {
        let series = Series { known: &known, times, scale, last: &values.last, first_slot };
        values.min = rates::read(Side::Min, head.flags, &series, reader)?;
        values.max = rates::read(Side::Max, head.flags, &series, reader)?;
        if reader.is_there() {
            rates::read_raw(reader, count, &mut values.min)?;
            rates::read_raw(reader, count, &mut values.max)?;
        }
    }
    known.recycle(reader.buffers);
    Ok(values)
}
