//! Values of gauges and deltas: min and max lie around first and last, and the sum near as many times
//! their mean.
//!
//! Must never know: when samples came.

use super::{
    cursor::Misfit,
    stream::choose,
    times::Times,
    values::{Columns, Head, Reader, Values, Writer, chain, unchain},
};
use crate::store::number::{Scale, ordered, unordered};

/// First values are as they are, not steps from the last before.
const LEVEL: u8 = 16;

/// Appends the values.
pub(super) fn write(values: &Values, times: &Times, out: &mut Vec<u8>) {
    let Values { sum, min, max, first, last } = values;
    let scale = scale_of(values);
    let numbers = |column: &[f64]| column.iter().map(|v| scale.number(*v)).collect::<Vec<_>>();
    let (firsts, lasts) = (numbers(first), numbers(last));
    let base = firsts.first().copied().unwrap_or(0);
    let (steps, lengths) = unchain(base, &firsts, &lasts);
    let (levels, steps) = (choose(&firsts), choose(&steps));
    let is_level = levels.bits() < steps.bits();
    let head = if is_level {
        Head { scale, flags: LEVEL, base: 0 }
    } else {
        Head { scale, flags: 0, base }
    };
    let mut writer = Writer::new(head, false, out);
    writer.chosen(if is_level { &levels } else { &steps });
    writer.stream(&lengths);
    let ends = firsts.iter().zip(&lasts);
    let below = |(min, (first, last)): (&f64, (&i64, &i64))| {
        (*first.min(last)).wrapping_sub(scale.number(*min))
    };
    writer.stream(&min.iter().zip(ends.clone()).map(below).collect::<Vec<_>>());
    let above = |(max, (first, last)): (&f64, (&i64, &i64))| {
        scale.number(*max).wrapping_sub(*first.max(last))
    };
    writer.stream(&max.iter().zip(ends).map(above).collect::<Vec<_>>());
    let (mut rests, mut ulps) = (Vec::new(), Vec::new());
    for (index, sum) in sum.iter().enumerate() {
        let n = times.n[index];
        if scale.is_decimal() {
            let whole = scale.number(*sum);
            rests.push(whole.wrapping_sub(middle(n, firsts[index], lasts[index])));
            ulps.push(ordered(*sum).wrapping_sub(ordered(scale.double(whole))));
        } else {
            rests.push(0);
            let likely = mean_times(n, first[index], last[index]);
            ulps.push(ordered(*sum).wrapping_sub(ordered(likely)));
        }
    }
    writer.stream(&rests);
    writer.stream(&ulps);
}

fn scale_of(values: &Values) -> Scale {
    let Values { min, max, first, last, .. } = values;
    let is_first = |column: &Vec<f64>| {
        column.iter().zip(first).all(|(own, first)| own.to_bits() == first.to_bits())
    };
    if [min, max, last].into_iter().all(is_first) {
        return Scale::of(first.iter().copied());
    }
    Scale::of([first, last, min, max].into_iter().flatten().copied())
}

/// `n` times the mean of two numbers.
fn middle(n: u32, first: i64, last: i64) -> i64 {
    first.wrapping_add(last).wrapping_mul(i64::from(n)) >> 1
}

/// `n` times the mean of two doubles.
fn mean_times(n: u32, first: f64, last: f64) -> f64 {
    let likely = f64::from(n) * (first + last) / 2.0;
    // What bits a NaN gets is not the same on all machines.
    if n == 1 || likely.is_nan() { first } else { likely }
}

/// Reads the values.
pub(super) fn read(
    head: Head,
    reader: &mut Reader<'_, '_>,
    times: &Times,
    limit: usize,
    wanted: Columns,
) -> Result<Values, Misfit> {
    let scale = head.scale;
    let count = times.count();
    let zeros = || vec![0; limit];
    let mut firsts = reader.stream(count, true)?.unwrap_or_else(zeros);
    let lengths = reader.stream(count, true)?;
    let is_point = lengths.is_none();
    let mut lasts = lengths.unwrap_or_else(zeros);
    if head.flags & LEVEL == 0 {
        chain(head.base, &mut firsts, &mut lasts);
    } else {
        lasts.iter_mut().zip(&firsts).for_each(|(last, first)| *last = last.wrapping_add(*first));
    }
    let doubles = |numbers: &[i64]| numbers.iter().map(|v| scale.double(*v)).collect::<Vec<_>>();
    let mut values = Values { first: doubles(&firsts), ..Values::default() };
    let Values { first, last, .. } = &mut values;
    *last = if is_point { first.clone() } else { doubles(&lasts) };
    let below = reader.stream(count, wanted.has(Columns::MIN))?;
    if wanted.has(Columns::MIN) {
        values.min = match below {
            None if is_point => values.first.clone(),
            below => {
                let mut numbers = below.unwrap_or_else(zeros);
                for (own, (first, last)) in numbers.iter_mut().zip(firsts.iter().zip(&lasts)) {
                    *own = (*first.min(last)).wrapping_sub(*own);
                }
                doubles(&numbers)
            }
        };
    }
    let above = reader.stream(count, wanted.has(Columns::MAX))?;
    if wanted.has(Columns::MAX) {
        values.max = match above {
            None if is_point => values.first.clone(),
            above => {
                let mut numbers = above.unwrap_or_else(zeros);
                for (own, (first, last)) in numbers.iter_mut().zip(firsts.iter().zip(&lasts)) {
                    *own = (*first.max(last)).wrapping_add(*own);
                }
                doubles(&numbers)
            }
        };
    }
    if wanted.has(Columns::SUM) {
        values.sum = read_sum(head, reader, times, (&firsts, &lasts), &values)?;
    }
    Ok(values)
}

fn read_sum(
    head: Head,
    reader: &mut Reader<'_, '_>,
    times: &Times,
    (firsts, lasts): (&[i64], &[i64]),
    values: &Values,
) -> Result<Vec<f64>, Misfit> {
    let (scale, count) = (head.scale, times.count());
    let rests = reader.stream(count, true)?;
    let ulps = reader.stream(count, true)?;
    let mut sums = Vec::with_capacity(firsts.len());
    if scale.is_decimal() {
        let ends = firsts.iter().zip(lasts);
        sums.extend(times.n.iter().zip(ends).map(|(n, (first, last))| middle(*n, *first, *last)));
        if let Some(rests) = rests {
            sums.iter_mut().zip(rests).for_each(|(sum, rest)| *sum = rest.wrapping_add(*sum));
        }
        let mut sums: Vec<f64> = sums.into_iter().map(|sum| scale.double(sum)).collect();
        add_ulps(&mut sums, ulps);
        return Ok(sums);
    }
    let ends = values.first.iter().zip(&values.last);
    let likely = times.n.iter().zip(ends).map(|(n, (first, last))| mean_times(*n, *first, *last));
    let mut sums: Vec<f64> = likely.collect();
    add_ulps(&mut sums, ulps);
    Ok(sums)
}

/// Moves each double on by so many.
pub(super) fn add_ulps(values: &mut [f64], ulps: Option<Vec<i64>>) {
    for (value, ulps) in values.iter_mut().zip(ulps.into_iter().flatten()) {
        *value = unordered(ordered(*value).wrapping_add(ulps));
    }
}
