//! Values of gauges and deltas: min and max are near first and last, and the sum is near n times
//! the mean of first and last. The second moment of decimals is a fraction of n.
//!
//! Must never know: the times of samples.

use super::block::{Columns, Head, Reader, Values, Writer, chain, unchain};
use crate::store::{
    documents::segment::{buffers::Buffers, cursor::Misfit, stream::choose, times::Times},
    encoding::{
        moment,
        number::{Scale, ordered, unordered},
    },
};

/// The flag for first values that are stored as they are, not as differences from the previous last
/// value.
const LEVEL: u8 = 16;
/// The flag for second moments that are stored as ranks.
const RANKED: u8 = 32;
/// The bits at the end of such ranks that are left out, like the rounding errors of moments.
const RANK_SHIFT: u32 = 18;

/// Appends the values.
pub(super) fn write(values: &Values, times: &Times, buffers: &mut Buffers, out: &mut Vec<u8>) {
    if is_single(values, times) {
        return write_single(&values.first, buffers, out);
    }
    let Values { sum, min, max, first, last, m2 } = values;
    let scale = scale_of(values);
    let [mut firsts, mut lasts, mut steps, mut lengths, mut off, mut ulps, mut moments] =
        [(); 7].map(|()| buffers.whole.take());
    let moment_flag = number_moments(m2, &times.n, scale, &mut moments);
    firsts.extend(first.iter().map(|value| scale.number(*value)));
    lasts.extend(last.iter().map(|value| scale.number(*value)));
    let base = firsts.first().copied().unwrap_or(0);
    steps.extend_from_slice(&firsts);
    lengths.extend_from_slice(&lasts);
    unchain(base, &mut steps, &mut lengths);
    let mut writer = write_first_stream(scale, (base, moment_flag), (&firsts, &steps), out);
    writer.stream(&lengths);
    let ends = firsts.iter().zip(&lasts);
    let below = |(min, (first, last)): (&f64, (&i64, &i64))| {
        (*first.min(last)).wrapping_sub(scale.number(*min))
    };
    off.extend(min.iter().zip(ends.clone()).map(below));
    writer.stream(&off);
    let above = |(max, (first, last)): (&f64, (&i64, &i64))| {
        scale.number(*max).wrapping_sub(*first.max(last))
    };
    off.clear();
    off.extend(max.iter().zip(ends).map(above));
    writer.stream(&off);
    off.clear();
    for (index, sum) in sum.iter().enumerate() {
        let n = times.n[index];
        if scale.is_decimal() {
            let whole = scale.number(*sum);
            off.push(whole.wrapping_sub(middle(n, firsts[index], lasts[index])));
            ulps.push(ordered(*sum).wrapping_sub(ordered(scale.double(whole))));
        } else {
            off.push(0);
            let likely = mean_times(n, first[index], last[index]);
            ulps.push(ordered(*sum).wrapping_sub(ordered(likely)));
        }
    }
    writer.stream(&off);
    writer.stream(&ulps);
    writer.stream(&moments);
    buffers.whole.give([firsts, lasts, steps, lengths, off, ulps, moments]);
}

/// Returns true when each slot has one sample, from which all values follow.
fn is_single(values: &Values, times: &Times) -> bool {
    let Values { sum, min, max, first, last, m2: _ } = values;
    let differs = first.iter().zip(last).zip(sum.iter().zip(min.iter().zip(max)));
    let differs = differs.fold(0, |differs, ((first, last), (sum, (min, max)))| {
        let first = first.to_bits();
        let others = [last, sum, min, max].map(|value| value.to_bits() ^ first);
        others.into_iter().fold(differs, |differs, other| differs | other)
    });
    differs == 0 && times.n.iter().all(|n| *n == 1)
}

/// Appends the values of slots with one sample each: all streams but the first contain zeros.
fn write_single(first: &[f64], buffers: &mut Buffers, out: &mut Vec<u8>) {
    let scale = Scale::of(first.iter().copied());
    let [mut firsts, mut steps] = [(); 2].map(|()| buffers.whole.take());
    firsts.extend(first.iter().map(|value| scale.number(*value)));
    let base = firsts.first().copied().unwrap_or(0);
    let before = std::iter::once(&base).chain(&firsts);
    steps.extend(firsts.iter().zip(before).map(|(number, before)| number.wrapping_sub(*before)));
    write_first_stream(scale, (base, 0), (&firsts, &steps), out);
    buffers.whole.give([firsts, steps]);
}

/// Appends the head and the stream of first values: either as they are, or as differences from the
/// previous last values, whichever is shorter.
fn write_first_stream<'a>(
    scale: Scale,
    (base, flags): (i64, u8),
    (firsts, steps): (&[i64], &[i64]),
    out: &'a mut Vec<u8>,
) -> Writer<'a> {
    let (levels, chain) = (choose(firsts), choose(steps));
    let is_level = levels.bits() < chain.bits();
    let head = if is_level {
        Head { scale, flags: LEVEL | flags, base: 0 }
    } else {
        Head { scale, flags, base }
    };
    let mut writer = Writer::new(head, false, out);
    writer.chosen(if is_level { &levels } else { &chain });
    writer
}

/// Appends the numbers of second moments; returns [`RANKED`] when they are ranks.
fn number_moments(m2: &[f64], n: &[u32], scale: Scale, numbers: &mut Vec<i64>) -> u8 {
    if m2.iter().all(|m2| *m2 == 0.0) {
        return 0;
    }
    let all = m2.iter().zip(n);
    numbers.extend(all.map_while(|(m2, n)| moment::number(*m2, *n, scale)));
    if numbers.len() == m2.len() {
        return 0;
    }
    numbers.clear();
    let rounded = |m2: &f64| (ordered(*m2) + (1 << (RANK_SHIFT - 1))) >> RANK_SHIFT;
    numbers.extend(m2.iter().map(rounded));
    RANKED
}

fn scale_of(values: &Values) -> Scale {
    let Values { min, max, first, last, .. } = values;
    let is_first = |column: &Vec<f64>| {
        column.iter().zip(first).all(|(value, first)| value.to_bits() == first.to_bits())
    };
    if [min, max, last].into_iter().all(is_first) {
        return Scale::of(first.iter().copied());
    }
    Scale::of([first, last, min, max].into_iter().flatten().copied())
}

/// Returns `n` times the mean of two numbers.
fn middle(n: u32, first: i64, last: i64) -> i64 {
    first.wrapping_add(last).wrapping_mul(i64::from(n)) >> 1
}

/// Returns `n` times the mean of two doubles.
fn mean_times(n: u32, first: f64, last: f64) -> f64 {
    let likely = f64::from(n) * (first + last) / 2.0;
    // The bits of a computed NaN differ between machines.
    if n == 1 || likely.is_nan() { first } else { likely }
}

/// The numbers of the first and the last samples.
struct Ends {
    scale: Scale,
    firsts: Vec<i64>,
    lasts: Vec<i64>,
    /// True when the first and the last number of every slot are equal.
    is_point: bool,
}

impl Ends {
    fn read(head: Head, reader: &mut Reader<'_, '_>, count: usize) -> Result<Self, Misfit> {
        let mut firsts = reader.numbers(count)?;
        let lengths = reader.stream(count, true)?;
        let is_point = lengths.is_none();
        let mut lasts = lengths.unwrap_or_else(|| reader.zeros());
        if head.flags & LEVEL == 0 {
            chain(head.base, &mut firsts, &mut lasts);
        } else {
            lasts
                .iter_mut()
                .zip(&firsts)
                .for_each(|(last, first)| *last = last.wrapping_add(*first));
        }
        Ok(Self { scale: head.scale, firsts, lasts, is_point })
    }

    fn pairs(&self) -> impl Iterator<Item = (i64, i64)> {
        self.firsts.iter().copied().zip(self.lasts.iter().copied())
    }

    /// Returns the smallest or the largest values. `value` computes each of them from the first
    /// value, the last value and an offset.
    fn side(
        &self,
        off: Option<Vec<i64>>,
        reader: &mut Reader<'_, '_>,
        value: impl Fn(i64, i64, i64) -> i64,
    ) -> Vec<f64> {
        let Some(off) = off else {
            return reader
                .doubles(self.scale, self.pairs().map(|(first, last)| value(first, last, 0)));
        };
        let pairs = self.pairs().zip(&off);
        let side =
            reader.doubles(self.scale, pairs.map(|((first, last), off)| value(first, last, *off)));
        reader.recycle([off]);
        side
    }
}

/// Reads the values.
pub(super) fn read(
    head: Head,
    reader: &mut Reader<'_, '_>,
    times: &Times,
    wanted: Columns,
) -> Result<Values, Misfit> {
    let (scale, count) = (head.scale, times.count());
    let ends = Ends::read(head, reader, count)?;
    let mut values = Values::default();
    // Without decimals, the sums are computed from the first and last values.
    if wanted.has_any(Columns::ENDS) || !scale.is_decimal() {
        values.first = reader.doubles(scale, ends.firsts.iter().copied());
        values.last = if ends.is_point {
            reader.copy(&values.first)
        } else {
            reader.doubles(scale, ends.lasts.iter().copied())
        };
    }
    let below = reader.stream(count, wanted.has_any(Columns::MIN))?;
    if wanted.has_any(Columns::MIN) {
        values.min = ends.side(below, reader, |first, last, off| first.min(last).wrapping_sub(off));
    }
    let above = reader.stream(count, wanted.has_any(Columns::MAX))?;
    if wanted.has_any(Columns::MAX) {
        values.max = ends.side(above, reader, |first, last, off| first.max(last).wrapping_add(off));
    }
    if wanted.has_any(Columns::SUM) {
        values.sum = read_sum(reader, times, &ends, &values)?;
    } else if wanted.has_any(Columns::MOMENT) {
        reader.stream(count, false)?;
        reader.stream(count, false)?;
    }
    if wanted.has_any(Columns::MOMENT)
        && let Some(moments) = reader.stream(count, true)?
    {
        values.m2 = reader.buffers.doubles.take();
        if head.flags & RANKED == 0 {
            let numbers = moments.iter().zip(&times.n);
            values.m2.extend(numbers.map(|(number, n)| moment::moment(*number, *n, scale)));
        } else {
            let ranks = moments.iter().map(|rank| rank.wrapping_shl(RANK_SHIFT));
            values.m2.extend(ranks.map(|rank| unordered(rank).max(0.0)));
        }
        reader.recycle([moments]);
    }
    reader.recycle([ends.firsts, ends.lasts]);
    Ok(values)
}

fn read_sum(
    reader: &mut Reader<'_, '_>,
    times: &Times,
    ends: &Ends,
    values: &Values,
) -> Result<Vec<f64>, Misfit> {
    let count = times.count();
    let rests = reader.stream(count, true)?;
    let ulps = reader.stream(count, true)?;
    let likely = times.n.iter().zip(ends.pairs());
    let likely = likely.map(|(n, (first, last))| middle(*n, first, last));
    let mut sums = match &rests {
        _ if !ends.scale.is_decimal() => {
            let doubles = values.first.iter().zip(&values.last);
            let likely = times.n.iter().zip(doubles);
            let mut sums = reader.buffers.doubles.take();
            sums.extend(likely.map(|(n, (first, last))| mean_times(*n, *first, *last)));
            sums
        }
        None => reader.doubles(ends.scale, likely),
        Some(rests) => {
            let sums = likely.zip(rests).map(|(likely, rest)| rest.wrapping_add(likely));
            reader.doubles(ends.scale, sums)
        }
    };
    add_ulps(&mut sums, ulps.as_deref());
    reader.recycle(rests.into_iter().chain(ulps));
    Ok(sums)
}

/// Moves each double by a number of steps in the order of all doubles.
pub(super) fn add_ulps(values: &mut [f64], ulps: Option<&[i64]>) {
    for (value, ulps) in values.iter_mut().zip(ulps.into_iter().flatten()) {
        *value = unordered(ordered(*value).wrapping_add(*ulps));
    }
}
