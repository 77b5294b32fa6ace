//! Linear regression over a window: `deriv` and `predict_linear`.
//!
//! All samples of a merged cell count, as if they were evenly spaced and on a straight line from
//! the first value to the last, around their mean. The readings of a counter are assumed to be on
//! that line; of a cell in which a counter was reset, only the first and the last reading count.
//! Must never know: the store, the tree.

use crate::{
    model::Kind,
    query::promql::value::{numbers::Sum, portion::Portion, windows::Window},
};

/// Returns the slope per second.
pub(super) fn deriv(window: &Window<'_>) -> Option<f64> {
    let origin = window.portions().next()?.first().at as i64;
    regression(window, origin).map(|(slope, _)| slope)
}

/// Returns the predicted value a number of seconds after the evaluation.
pub(super) fn predict(window: &Window<'_>, arguments: &[f64]) -> Option<f64> {
    let ahead = arguments.first().copied().unwrap_or(f64::NAN);
    let (slope, value) = regression(window, window.frame.evaluated_at)?;
    Some(slope * ahead + value)
}

/// Returns the slope per second and the value at `origin` of the line through the window, by least
/// squares.
fn regression(window: &Window<'_>, origin: i64) -> Option<(f64, f64)> {
    let mut sums = Regression { constant: true, ..Regression::default() };
    for portion in window.portions() {
        let (cell, is_counter) = (portion.cell, window.kind_of(portion.cell) == Kind::Counter);
        if portion.steps() == 0 {
            let reading = portion.first();
            sums.add_sample(seconds_after(origin, reading.at), reading.value);
        } else if !is_counter {
            let (first, sum) = (portion.first().value, portion.sum());
            sums.add_portion(&portion, origin, sum, cell.min == first && cell.max == first);
        } else if cell.first <= cell.last {
            let (first, last) = (portion.first().value, portion.last().value);
            let sum = f64::from(portion.count()) * (first + (last - first) / 2.0);
            sums.add_portion(&portion, origin, sum, first == last);
        } else {
            let known =
                [(portion.has_first(), portion.first()), (portion.has_last(), portion.last())];
            for (_, reading) in known.into_iter().filter(|(has, _)| *has) {
                sums.add_sample(seconds_after(origin, reading.at), reading.value);
            }
        }
    }
    let first = sums.first.filter(|_| sums.n >= 2.0)?;
    if sums.constant {
        let known = !first.is_infinite();
        return Some(if known { (0.0, first) } else { (f64::NAN, f64::NAN) });
    }
    let n = sums.n;
    let [x, y, xy, xx] = [sums.x, sums.y, sums.xy, sums.xx].map(|sum| sum.total());
    let slope = (xy - x * y / n) / (xx - x * x / n);
    Some((slope, y / n - slope * x / n))
}

/// The sums of a regression: x is seconds, y the value.
#[derive(Default)]
struct Regression {
    n: f64,
    x: Sum,
    y: Sum,
    xy: Sum,
    xx: Sum,
    first: Option<f64>,
    /// True when all values are equal.
    constant: bool,
}

impl Regression {
    fn add_sample(&mut self, x: f64, y: f64) {
        self.constant &= *self.first.get_or_insert(y) == y;
        self.n += 1.0;
        self.x.add(x);
        self.y.add(y);
        self.xy.add(x * y);
        self.xx.add(x * x);
    }

    /// Adds the samples of a portion, of which several have the sum `y`.
    fn add_portion(&mut self, portion: &Portion<'_>, origin: i64, y: f64, is_constant: bool) {
        let (first, last) = (portion.first(), portion.last());
        self.constant &= *self.first.get_or_insert(first.value) == first.value && is_constant;
        let n = f64::from(portion.count());
        let duration = (last.at - first.at) / 1000.0;
        let middle = seconds_after(origin, first.at) + duration / 2.0;
        // The squared distances of n evenly spaced times from their mean.
        let squares = duration * duration * n * (n + 1.0) / (12.0 * (n - 1.0));
        let slope = if duration > 0.0 { (last.value - first.value) / duration } else { 0.0 };
        self.n += n;
        self.x.add(n * middle);
        self.y.add(y);
        self.xy.add(middle * y + slope * squares);
        self.xx.add(n * middle * middle + squares);
    }
}

/// Returns the seconds from a time in Unix milliseconds to a later one.
fn seconds_after(origin: i64, at: f64) -> f64 {
    (at - origin as f64) / 1000.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Cell, UnixMillis};
    use crate::query::promql::value::{
        cells::{TimedCell, cells_of_readings},
        windows::{Cursor, Frame},
    };
    use crate::store::Slot;

    fn window(all: &[TimedCell], to: i64) -> Window<'_> {
        let frame = Frame::of_minutes(0, to);
        Cursor::default().window(all, Kind::Gauge, frame)
    }

    proptest! {
        #[test]
        fn a_line_is_the_same_through_cells_and_through_their_samples(
            slope in -50.0..50.0_f64, start in -1e3..1e3_f64, step in 5..20_i64, count in 2..60_i64
        ) {
            let growing = cells_of_readings(
                Kind::Counter,
                (0..count).map(|i| ((i + 1) * step, 1e4 + slope.abs() * ((i + 1) * step) as f64)),
            );
            let counter = Cursor::default()
                .window(&growing, Kind::Counter, Frame::of_minutes(0, count * step * 1000));
            prop_assert!((deriv(&counter).unwrap() - slope.abs()).abs() < 1e-6);
            let at = |i: i64| (i + 1) * step * 1000;
            let value = |i: i64| start + slope * (at(i) as f64 / 1000.0);
            let samples: Vec<_> = (0..count).map(|i| TimedCell::sample(at(i), value(i))).collect();
            let mut slots: Vec<Slot> = Vec::new();
            for i in 0..count {
                let slot = UnixMillis(at(i) / 60_000 * 60_000);
                let cell = Cell::single((at(i) - slot.0) as u32, value(i));
                match slots.last_mut().filter(|last| last.start == slot) {
                    Some(last) => last.cell.merge(&cell),
                    None => slots.push(Slot { start: slot, cell }),
                }
            }
            let mut cells = Vec::new();
            crate::query::promql::value::cells::append_cells(&mut slots, Kind::Gauge, &mut cells);
            let to = at(count);
            for found in [deriv(&window(&samples, to)), deriv(&window(&cells, to))] {
                prop_assert!((found.unwrap() - slope).abs() < 1e-6, "{found:?} {slope}");
            }
            let ahead = [samples, cells].map(|all| predict(&window(&all, to), &[60.0]).unwrap());
            prop_assert!((ahead[0] - ahead[1]).abs() < 1e-5, "{ahead:?}");
        }

        #[test]
        fn slots_count_by_their_samples(
            slots in prop::collection::vec((1..8_i64, -9..9_i64, -9..9_i64), 2..20)
        ) {
            // The samples of a slot are evenly spaced on a line of their own.
            let (mut samples, mut cells) = (Vec::new(), Vec::new());
            for (minute, (n, start, slope)) in (0..).zip(&slots) {
                let at = |i: i64| minute * 60_000 + 1000 + i * 7000;
                let value = |i: i64| (start + slope * i) as f64;
                let own: Vec<_> = (0..*n).map(|i| TimedCell::sample(at(i), value(i))).collect();
                let mut cell = Cell::EMPTY;
                (0..*n).for_each(|i| cell.merge(&Cell::single((i * 7000) as u32, value(i))));
                let slot = Slot { start: UnixMillis(at(0)), cell };
                crate::query::promql::value::cells::append_cells(
                    &mut vec![slot],
                    Kind::Gauge,
                    &mut cells,
                );
                samples.extend(own);
            }
            let to = slots.len() as i64 * 60_000;
            let [expected, found] = [&samples, &cells].map(|all| deriv(&window(all, to)).unwrap());
            prop_assert!((expected - found).abs() <= 1e-9 * expected.abs().max(0.01), "{expected} {found}");
            let [expected, found] =
                [&samples, &cells].map(|all| predict(&window(all, to), &[60.0]).unwrap());
            prop_assert!((expected - found).abs() <= 1e-9 * expected.abs().max(1.0), "{expected} {found}");
        }
    }
}
