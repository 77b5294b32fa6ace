//! Heat maps of histograms: the darker a character, the more observations.

use super::{LINES, framed, time_axis};
use crate::{
    cli::{query::view::View, table::short},
    query::Distribution,
};

/// Characters for no observations, and for few to many.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// The value axis: logarithmic, unless some observations are negative.
struct ValueAxis {
    low: f64,
    high: f64,
    is_log: bool,
}

impl ValueAxis {
    fn new(buckets: &[(f64, f64)]) -> Self {
        let is_log =
            buckets.iter().all(|(lower, upper)| *lower >= 0.0 || is_around_zero(*lower, *upper));
        // Zero has no place on a logarithmic axis: its bucket is in the lowest line.
        let has_place =
            |lower: f64, upper: f64| !(is_around_zero(lower, upper) || is_log && upper <= 0.0);
        let drawn = buckets.iter().filter(|(lower, upper)| has_place(*lower, *upper));
        let low_of = |(lower, upper): &(f64, f64)| match *lower {
            // Half of the smallest number would be zero.
            lower if is_log && lower <= 0.0 => (upper / 2.0).max(f64::from_bits(1)),
            lower => lower,
        };
        let low = drawn.clone().map(low_of).fold(f64::INFINITY, f64::min);
        let high = drawn.map(|(_, upper)| *upper).fold(f64::NEG_INFINITY, f64::max);
        if low < high {
            Self { low, high, is_log }
        } else {
            Self { low: 0.0, high: 1.0, is_log: false }
        }
    }

    /// Returns the place of a value, from 0 at the lower end to 1.
    fn place(&self, value: f64) -> f64 {
        let place = match self.is_log {
            true if value <= self.low => 0.0,
            true => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
            // The halves avoid an overflow of the length of the axis.
            false => (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0),
        };
        place.clamp(0.0, 1.0)
    }

    fn middle(&self) -> f64 {
        if self.is_log {
            self.low.sqrt() * self.high.sqrt()
        } else {
            self.low / 2.0 + self.high / 2.0
        }
    }
}

fn is_around_zero(lower: f64, upper: f64) -> bool {
    lower < 0.0 && upper > 0.0
}

/// Returns finite bounds: an infinite bucket extends by its other bound.
fn finite((lower, upper): &(Option<f64>, Option<f64>)) -> (f64, f64) {
    if let Some(lower) = *lower {
        return (lower, upper.unwrap_or((lower * 2.0).clamp(0.0, f64::MAX)));
    }
    let upper = upper.unwrap_or(0.0);
    ((upper * 2.0).clamp(f64::MIN, 0.0), upper)
}

/// Draws the observations of a line of histograms.
pub(super) fn draw(view: &View<'_>, distribution: &Distribution, columns: usize) -> String {
    let slots = distribution.counts.get(view.rows.clone()).unwrap_or_default();
    let buckets: Vec<_> = distribution.bounds.iter().map(finite).collect();
    if buckets.is_empty() || slots.is_empty() {
        return "  no samples\n\n".to_owned();
    }
    let axis = ValueAxis::new(&buckets);
    let ticks = [short(axis.high), short(axis.middle()), short(axis.low)];
    let margin = ticks.iter().map(String::len).max().unwrap_or(0);
    let across = columns - margin - 2;
    let shares = line_shares(&axis, &buckets);
    let cells: Vec<_> = (0..across).map(|column| mean(slots, column, across, &shares)).collect();
    let most = cells.iter().flatten().copied().fold(0.0, f64::max);
    let lines =
        (0..LINES).rev().map(|line| cells.iter().map(|cell| shade(cell[line], most)).collect());
    framed(lines, &ticks, margin) + &time_axis(view, margin, across)
}

/// Returns for each bucket the lines that it covers, from the bottom, with the part in each.
fn line_shares(axis: &ValueAxis, buckets: &[(f64, f64)]) -> Vec<Vec<(usize, f64)>> {
    let shares = |(lower, upper): &(f64, f64)| {
        let [from, to] = [*lower, *upper].map(|bound| axis.place(bound) * LINES as f64);
        if to - from <= f64::EPSILON {
            return vec![((from as usize).min(LINES - 1), 1.0)];
        }
        let lines = from as usize..(to.ceil() as usize).min(LINES);
        let part = |line: usize| (to.min(line as f64 + 1.0) - from.max(line as f64)) / (to - from);
        lines.map(|line| (line, part(line))).collect()
    };
    buckets.iter().map(shares).collect()
}

/// Returns the mean number of observations of a column's slots, by line.
fn mean(
    slots: &[Vec<f64>],
    column: usize,
    across: usize,
    shares: &[Vec<(usize, f64)>],
) -> [f64; LINES] {
    let slot_at = |column: usize| column * slots.len() / across;
    let (first, next) = (slot_at(column), slot_at(column + 1));
    let slots = &slots[first..next.max(first + 1)];
    let mut cells = [0.0; LINES];
    for counts in slots {
        for (count, lines) in counts.iter().zip(shares) {
            for (line, part) in lines {
                cells[*line] += count * part / slots.len() as f64;
            }
        }
    }
    cells
}

/// Returns the character for a number of observations; few observations are visible, too.
fn shade(count: f64, most: f64) -> char {
    let dark = SHADES.len() - 1;
    if count <= 0.0 || most <= 0.0 {
        return SHADES[0];
    }
    SHADES[(((count / most).sqrt() * dark as f64).ceil() as usize).clamp(1, dark)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_drawn_at_its_place_on_a_logarithmic_axis() {
        let buckets = [(-1e-9, 1e-9), (0.001, 0.01), (0.01, 10.0)];
        let axis = ValueAxis::new(&buckets);
        assert_eq!((axis.low, axis.high, axis.is_log), (0.001, 10.0, true));
        assert!((axis.middle() - 0.1).abs() < 1e-9);
        let shares = line_shares(&axis, &buckets);
        assert_eq!(shares[0], [(0, 1.0)]);
        for (bucket, lines) in [(1, 0..3), (2, 2..10)] {
            assert_eq!(
                shares[bucket].iter().map(|(line, _)| *line).collect::<Vec<_>>(),
                lines.collect::<Vec<_>>()
            );
            assert!((shares[bucket].iter().map(|(_, part)| part).sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn extreme_buckets_have_an_axis() {
        let infinite = [(None, Some(0.5)), (Some(0.5), None)].map(|bounds| finite(&bounds));
        assert_eq!(infinite, [(0.0, 0.5), (0.5, 1.0)]);
        for buckets in [
            vec![(-f64::MAX, -1.0), (1.0, f64::MAX)],
            vec![(-4.0, -2.0)],
            vec![(-1e-9, 1e-9)],
            vec![(0.0, 0.0)],
            vec![(0.0, 0.0), (1.0, 2.0)],
            vec![(0.0, f64::from_bits(1)), (1.0, 2.0)],
            vec![finite(&(None, None))],
        ] {
            let axis = ValueAxis::new(&buckets);
            assert!(axis.low < axis.high && axis.middle().is_finite(), "{buckets:?}");
            for lines in line_shares(&axis, &buckets) {
                assert!(lines.iter().all(|(line, _)| *line < LINES), "{buckets:?}");
                let sum: f64 = lines.iter().map(|(_, part)| part).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{buckets:?}: {lines:?}");
            }
        }
    }

    #[test]
    fn few_observations_are_visible_and_none_are_not() {
        let shades: String =
            [0.0, 1e-9, 0.2, 0.5, 1.0].iter().map(|count| shade(*count, 1.0)).collect();
        assert_eq!(shades, " ░▒▓█");
        assert_eq!(shade(0.0, 0.0), ' ');
    }

    #[test]
    fn a_column_has_the_mean_of_its_slots() {
        let shares = [vec![(0, 1.0)], vec![(1, 0.5), (2, 0.5)]];
        let slots = [vec![2.0, 4.0], vec![], vec![6.0, 0.0], vec![0.0, 0.0]];
        let cells = |across: usize| {
            (0..across).map(|column| mean(&slots, column, across, &shares)[0]).collect::<Vec<_>>()
        };
        assert_eq!(cells(2), [1.0, 3.0]);
        assert_eq!(cells(8), [2.0, 2.0, 0.0, 0.0, 6.0, 6.0, 0.0, 0.0]);
        assert_eq!(mean(&slots, 0, 4, &shares)[..3], [2.0, 2.0, 2.0]);
    }
}
