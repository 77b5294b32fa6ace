//! A chart drawn with Braille dots; gaps stay gaps.

use textplots::{Chart, Plot, Shape};

use super::table;
use crate::query::{ChartAnswer, ChartSeries};

/// Series drawn, at most; the table has all.
const SERIES_MAX: usize = 4;
/// Dots across and down; a character has two by four.
const WIDTH: u32 = 140;
const HEIGHT: u32 = 40;

/// Draws the first series of a chart.
pub(super) fn chart(answer: &ChartAnswer) -> String {
    let mut out = String::new();
    for series in answer.series.iter().take(SERIES_MAX) {
        out.push_str(&draw(series));
    }
    out
}

fn draw(series: &ChartSeries) -> String {
    let width = series.points.len().max(2) as f32;
    let runs = runs(&series.points);
    let mut out = format!("{}  {}\n", table::name(&series.series), series.display);
    if runs.is_empty() {
        out.push_str("  no samples\n");
        return out;
    }
    let mut chart = Chart::new(WIDTH, HEIGHT, 0.0, width - 1.0);
    let shapes: Vec<_> = runs
        .iter()
        .map(|run| if run.len() == 1 { Shape::Points(run) } else { Shape::Lines(run) })
        .collect();
    let mut drawn = &mut chart;
    for shape in &shapes {
        drawn = drawn.lineplot(shape);
    }
    drawn.axis();
    drawn.figures();
    out.push_str(&drawn.to_string());
    out.push('\n');
    out
}

/// The filled stretches between empty slots, by slot number.
fn runs(points: &[(i64, Option<f64>)]) -> Vec<Vec<(f32, f32)>> {
    let mut runs: Vec<Vec<(f32, f32)>> = Vec::new();
    let mut open = false;
    for (index, (_, value)) in points.iter().enumerate() {
        match value {
            Some(value) if open => {
                if let Some(run) = runs.last_mut() {
                    run.push((index as f32, *value as f32));
                }
            }
            Some(value) => runs.push(vec![(index as f32, *value as f32)]),
            None => {}
        }
        open = value.is_some();
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_slot_breaks_the_line_and_a_zero_does_not() {
        let points = [(0, Some(1.0)), (1, Some(0.0)), (2, None), (3, Some(2.0))];
        assert_eq!(runs(&points), [vec![(0.0, 1.0), (1.0, 0.0)], vec![(3.0, 2.0)]]);
    }
}
