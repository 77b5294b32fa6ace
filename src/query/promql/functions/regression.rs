//! Linear regression over a window: `deriv` and `predict_linear`.
//!
//! For merged cells of gauges, all samples count, as if they were evenly spaced and on a straight
//! line from the first value to the last, around their mean. For other kinds, the known readings
//! count. Must never know: the store, the tree.

use super::window::seconds;
use crate::{
    model::Kind,
    query::promql::value::{numbers::Sum, portion::Portion, windows::Window},
};

/// Returns the slope per second.
pub(super) fn deriv(window: &Window<'_>) -> Option<f64> {
    let (origin, _) = window.readings().next()?;
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
    if window.kind == Kind::Gauge {
        window.portions().for_each(|portion| sums.add_portion(&portion, origin));
    } else {
        for (at, value) in window.readings() {
            sums.add_sample(seconds(at - origin), value);
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

    fn add_portion(&mut self, portion: &Portion<'_>, origin: i64) {
        let (first, last) = (portion.first(), portion.last());
        let start = (first.at - origin as f64) / 1000.0;
        if portion.steps() == 0 {
            return self.add_sample(start, first.value);
        }
        let value = *self.first.get_or_insert(first.value);
        self.constant &= portion.cell.min == value && portion.cell.max == value;
        let n = f64::from(portion.count());
        let duration = (last.at - first.at) / 1000.0;
        let middle = start + duration / 2.0;
        // The squared distances of n evenly spaced times from their mean.
        let squares = duration * duration * n * (n + 1.0) / (12.0 * (n - 1.0));
        let slope = if duration > 0.0 { (last.value - first.value) / duration } else { 0.0 };
        let sum = portion.sum();
        self.n += n;
        self.x.add(n * middle);
        self.y.add(sum);
        self.xy.add(middle * sum + slope * squares);
        self.xx.add(n * middle * middle + squares);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Cell, UnixMillis};
    use crate::query::promql::value::{
        cells::TimedCell,
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
    }
}
