//! Tests of axes.

use super::*;

#[test]
fn ticks_are_round_numbers_with_few_digits() {
    let check = |low: f64, high: f64, expected: &[&str]| {
        let labels: Vec<_> = Axis { low, high }.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(labels, expected, "{low} to {high}");
    };
    check(0.0, 1.0, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    check(-1.0, 9.0, &["0", "2", "4", "6", "8"]);
    check(0.0, 90.0, &["0", "20", "40", "60", "80"]);
    check(0.0, 4e9, &["0", "1G", "2G", "3G", "4G"]);
    check(1_500.0, 1_504.0, &["1.500k", "1.501k", "1.502k", "1.503k", "1.504k"]);
    check(0.0, f64::INFINITY, &[]);
}

#[test]
fn an_axis_without_a_range_still_has_one() {
    let range = |numbers: &[f64]| {
        let axis = Axis::of(numbers.iter().copied());
        (axis.low, axis.high)
    };
    assert_eq!(range(&[]), (0.0, 1.0));
    assert_eq!(range(&[5.0, 5.0]), (4.0, 6.0));
    assert_eq!(range(&[3.0, -2.0, 7.0]), (-2.0, 7.0));
    assert_eq!(Axis::of([f64::MIN, f64::MAX].into_iter()).position(0.0), 0.0);
}
