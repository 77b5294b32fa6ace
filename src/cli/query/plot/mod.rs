//! Charts drawn with Braille dots between two axes; gaps stay visible.

mod heat;

use std::fmt::Write as _;

use textplots::{Chart, Plot, Shape};

use super::view::View;
use crate::cli::{screen::fold, table::short};

/// The maximum number of series drawn; the table shows all series.
const SERIES_MAX: usize = 4;
/// The number of lines of a plot.
const LINES: usize = 10;
/// The maximum number of columns of a plot.
const COLUMNS_MAX: usize = 100;
/// The minimum number of columns of a plot.
const COLUMNS_MIN: usize = 40;
/// The number of dots of a character in each direction.
const DOTS_ACROSS: usize = 2;
const DOTS_DOWN: usize = 4;

/// Draws the first series of a chart. A single slot makes no line; the table shows it.
pub(super) fn chart(view: &View<'_>, columns: usize) -> String {
    let mut out = String::new();
    if view.rows.len() < 2 {
        return out;
    }
    let series = &view.answer.series;
    for (series, label) in series.iter().zip(&view.labels).take(SERIES_MAX) {
        let points = series.points.get(view.rows.clone()).unwrap_or_default();
        let values: Vec<_> = points.iter().map(|(_, value)| *value).collect();
        if view.labels.len() > 1 {
            writeln!(out, "{}", fold(label, columns)).unwrap_or_default();
        }
        let columns = columns.clamp(COLUMNS_MIN, COLUMNS_MAX);
        out.push_str(&match &series.distribution {
            Some(distribution) => heat::draw(view, distribution, columns),
            None => draw(view, &values, columns),
        });
    }
    if series.len() > SERIES_MAX {
        let more = series.len() - SERIES_MAX;
        writeln!(out, "in the table below: {more} more series\n").unwrap_or_default();
    }
    out
}

fn draw(view: &View<'_>, values: &[Option<f64>], columns: usize) -> String {
    let finite = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let (low, high) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low > high {
        return "  no samples\n\n".to_owned();
    }
    let (low, high) = axis(low, high);
    let ticks = [short(high), short(low / 2.0 + high / 2.0), short(low)];
    let margin = ticks.iter().map(String::len).max().unwrap_or(0);
    let across = columns - margin - 2;
    let (dots, last) = (((across - 1) * DOTS_ACROSS) as u32, (values.len() - 1) as f32);
    let open = view.rows.clone().position(|row| view.is_open(row)).unwrap_or(values.len());
    let runs = runs(values, open, low, high);
    let height = ((LINES - 1) * DOTS_DOWN) as u32;
    let mut chart = Chart::new_with_y_range(dots, height, 0.0, last.max(1.0), 0.0, 1.0);
    let shapes: Vec<_> = runs
        .iter()
        .map(|run| if run.len() == 1 { Shape::Points(run) } else { Shape::Lines(run) })
        .collect();
    let mut drawn = &mut chart;
    for shape in &shapes {
        drawn = drawn.lineplot(shape);
    }
    drawn.figures();
    let lines = drawn.frame();
    framed(lines.lines().map(str::to_owned), &ticks, margin) + &time_axis(view, margin, across)
}

/// Returns lines with the axis of values: its upper end, middle and lower end.
fn framed(lines: impl Iterator<Item = String>, ticks: &[String; 3], margin: usize) -> String {
    let mut out = String::new();
    for (index, line) in lines.enumerate() {
        let tick = match index {
            0 => &ticks[0],
            _ if index == LINES / 2 => &ticks[1],
            _ if index == LINES - 1 => &ticks[2],
            _ => "",
        };
        let joint = if tick.is_empty() { '│' } else { '┤' };
        writeln!(out, "{tick:>margin$} {joint}{}", line.trim_end()).unwrap_or_default();
    }
    out
}

/// Returns the axis of times with its first, middle and last time, and a mark at the open slot.
fn time_axis(view: &View<'_>, margin: usize, across: usize) -> String {
    let rows = &view.rows;
    let mut line: Vec<char> = vec!['─'; across];
    if let Some(open) = rows.clone().find(|row| view.is_open(*row)) {
        let column = (open - rows.start) * (across - 1) / (rows.len() - 1);
        line[column] = '*';
    }
    let line: String = line.into_iter().collect();
    let tick = |row: usize| view.times.tick(view.start(row));
    let (first, last) = (tick(rows.start), tick(rows.end - 1));
    let middle_row = rows.start + (rows.len() - 1) / 2;
    let middle = tick(middle_row);
    let center = (middle_row - rows.start) * (across - 1) / (rows.len() - 1);
    let mut ticks = first.clone();
    let from = center.saturating_sub(middle.len() / 2);
    let end = across.saturating_sub(last.len());
    if rows.len() > 2 && from > first.len() + 1 && from + middle.len() + 1 < end {
        ticks = format!("{ticks:<from$}{middle}");
    }
    if end > first.len() {
        ticks = format!("{ticks:<end$}{last}");
    }
    format!("{:margin$} └{line}\n{:margin$}  {ticks}\n\n", "", "")
}

/// Returns the bounds of the value axis: it starts at zero, unless the values are close together.
fn axis(low: f64, high: f64) -> (f64, f64) {
    let (low, high) = match (low, high) {
        (low, high) if low >= 0.0 && (low < high / 2.0 || low == high) => (0.0, high),
        (low, high) if high <= 0.0 && (high > low / 2.0 || low == high) => (low, 0.0),
        between => between,
    };
    if low == high { (low, low + 1.0) } else { (low, high) }
}

/// Splits values at gaps: each run contains slot numbers and positions on the axis. No line leads
/// to the `open` slot, because its value is incomplete.
fn runs(values: &[Option<f64>], open: usize, low: f64, high: f64) -> Vec<Vec<(f32, f32)>> {
    let mut runs: Vec<Vec<(f32, f32)>> = Vec::new();
    let mut continues = false;
    // The halves avoid an overflow of the length of the axis.
    let length = high / 2.0 - low / 2.0;
    for (index, value) in values.iter().enumerate() {
        let value = value.filter(|value| value.is_finite());
        let part = value.map(|value| ((value / 2.0 - low / 2.0) / length) as f32);
        match part {
            Some(part) if continues && index != open => {
                if let Some(run) = runs.last_mut() {
                    run.push((index as f32, part));
                }
            }
            Some(part) => runs.push(vec![(index as f32, part)]),
            None => {}
        }
        continues = part.is_some();
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::Kind,
        query::{ChartAnswer, ChartSeries, Distribution, SeriesEntry},
    };

    const MINUTE: i64 = 60_000;

    fn answer(values: &[Option<f64>]) -> ChartAnswer {
        let start = 1_795_000_020_000;
        let points: Vec<_> =
            (start..).step_by(MINUTE as usize).zip(values.iter().copied()).collect();
        let end = start + MINUTE * values.len() as i64;
        let tags = [("host".to_owned(), "web1".to_owned())].into();
        let series =
            SeriesEntry { metric: "load".into(), tags, kind: Kind::Gauge, unit: "percent".into() };
        let (display, distribution) = ("avg".into(), None);
        let series = ChartSeries { series, merged: None, display, points, distribution };
        ChartAnswer {
            resolution: "1m".into(),
            time_zone: None,
            start,
            end,
            incomplete_from: Some(end - MINUTE),
            series: vec![series],
            notes: Vec::new(),
        }
    }

    #[test]
    fn an_empty_slot_breaks_the_line_and_a_zero_does_not() {
        let values = [Some(1.0), Some(0.0), None, Some(2.0), Some(f64::NAN)];
        assert_eq!(runs(&values, 5, 0.0, 2.0), [vec![(0.0, 0.5), (1.0, 0.0)], vec![(3.0, 1.0)]]);
        // No line leads to the open slot.
        assert_eq!(runs(&values[..2], 1, 0.0, 2.0), [vec![(0.0, 0.5)], vec![(1.0, 0.0)]]);
    }

    #[test]
    fn a_plot_has_times_and_numbers_on_its_axes_and_fits() {
        let mut values = vec![None; 54];
        values.extend([1.0, 2.0, 3.0, 2.0, 1.0, 4.0].map(Some));
        let answer = answer(&values);
        let plot = chart(&View::new(&answer), 80);
        let lines: Vec<_> = plot.lines().collect();
        assert_eq!(lines.len(), LINES + 3, "{plot}");
        assert!(lines[0].starts_with("4 ┤") && lines[9].starts_with("0 ┤"), "{plot}");
        assert!(lines[10].ends_with("──*"), "{plot}");
        let ticks: Vec<_> = lines[11].split_whitespace().collect();
        assert_eq!(ticks, ["12:01", "12:03", "12:06"], "{plot}");
        for columns in [10, 40, 80, 200] {
            let plot = chart(&View::new(&answer), columns);
            let most = columns.clamp(COLUMNS_MIN, COLUMNS_MAX);
            assert!(plot.lines().all(|line| line.chars().count() <= most), "{columns}\n{plot}");
        }
    }

    #[test]
    fn a_heat_map_has_numbers_and_times_on_its_axes_and_fits() {
        let mut answer = answer(&[Some(3.0), None, Some(5.0)]);
        let counts = vec![vec![2.0, 1.0], vec![], vec![0.0, 5.0]];
        let bounds = vec![(Some(0.01), Some(0.1)), (Some(0.1), None)];
        answer.series[0].distribution = Some(Distribution { bounds, counts });
        let plot = chart(&View::new(&answer), 80);
        let lines: Vec<_> = plot.lines().collect();
        assert_eq!(lines.len(), LINES + 3, "{plot}");
        assert!(lines[0].starts_with("    0.2 ┤") && lines[5].starts_with("0.04472 ┤"), "{plot}");
        assert!(lines[9].starts_with("   0.01 ┤▒") && lines[1].ends_with('█'), "{plot}");
        // The slot without samples is empty.
        let middle = lines[0].chars().nth(45);
        assert_eq!(middle, Some(' '), "{plot}");
        for columns in [10, 40, 80, 200] {
            let plot = chart(&View::new(&answer), columns);
            let most = columns.clamp(COLUMNS_MIN, COLUMNS_MAX);
            assert!(plot.lines().all(|line| line.chars().count() <= most), "{columns}\n{plot}");
        }
    }

    #[test]
    fn extreme_numbers_are_drawn() {
        let most = f64::MAX;
        for values in [
            vec![Some(5.0), Some(5.0)],
            vec![Some(0.0), Some(0.0), None],
            vec![Some(-3.0), Some(-1.0)],
            vec![Some(-most), Some(most), Some(1e-300)],
            vec![Some(f64::NAN), Some(f64::INFINITY)],
            vec![Some(1e-320), Some(0.0)],
            vec![Some(1e6), Some(1e6 + 1e-3)],
        ] {
            let plot = chart(&View::new(&answer(&values)), 80);
            assert!(plot.lines().all(|line| line.chars().count() <= 80), "{values:?}\n{plot}");
        }
    }
}
