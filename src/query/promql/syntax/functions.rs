//! The functions of the language: their names, and the types of their arguments and results.
//!
//! The source is Prometheus (promql/parser/functions.go, docs/querying/functions.md), except for
//! `forecast` and `forecast_until`. Must never know: what the functions compute.

use super::value_type::ValueType::{self, Matrix, Scalar, Text, Vector};

/// The signature of a function.
#[derive(Debug)]
pub(crate) struct Function {
    /// The name in a query.
    pub(crate) name: &'static str,
    /// The types of the arguments. The last type applies to all further arguments.
    pub(crate) arguments: &'static [ValueType],
    /// The number of arguments: 0 means one argument for each type. Otherwise the last type is
    /// optional and may be repeated; a positive number limits its occurrences.
    pub(crate) variadic: i8,
    /// The type of the result.
    pub(crate) result: ValueType,
}

/// Returns the function with a name.
pub(super) fn function(name: &str) -> Option<&'static Function> {
    let index = FUNCTIONS.binary_search_by(|function| function.name.cmp(name)).ok()?;
    Some(&FUNCTIONS[index])
}

const fn signature(
    name: &'static str,
    arguments: &'static [ValueType],
    variadic: i8,
    result: ValueType,
) -> Function {
    Function { name, arguments, variadic, result }
}

/// Describes a function from an instant vector to an instant vector.
const fn mapping(name: &'static str) -> Function {
    signature(name, &[Vector], 0, Vector)
}

/// Describes a function from a range vector to an instant vector.
const fn range_function(name: &'static str) -> Function {
    signature(name, &[Matrix], 0, Vector)
}

/// Describes a function that returns a part of a time, by default of the evaluation time.
const fn calendar(name: &'static str) -> Function {
    signature(name, &[Vector], 1, Vector)
}

/// Describes a function without arguments that returns a number.
const fn number(name: &'static str) -> Function {
    signature(name, &[], 0, Scalar)
}

/// All functions, by name.
static FUNCTIONS: [Function; 94] = [
    mapping("abs"),
    mapping("absent"),
    range_function("absent_over_time"),
    mapping("acos"),
    mapping("acosh"),
    mapping("asin"),
    mapping("asinh"),
    mapping("atan"),
    mapping("atanh"),
    range_function("avg_over_time"),
    mapping("ceil"),
    range_function("changes"),
    signature("clamp", &[Vector, Scalar, Scalar], 0, Vector),
    signature("clamp_max", &[Vector, Scalar], 0, Vector),
    signature("clamp_min", &[Vector, Scalar], 0, Vector),
    mapping("cos"),
    mapping("cosh"),
    range_function("count_over_time"),
    calendar("day_of_month"),
    calendar("day_of_week"),
    calendar("day_of_year"),
    calendar("days_in_month"),
    mapping("deg"),
    range_function("delta"),
    range_function("deriv"),
    signature("double_exponential_smoothing", &[Matrix, Scalar, Scalar], 0, Vector),
    number("end"),
    mapping("exp"),
    range_function("first_over_time"),
    mapping("floor"),
    signature("forecast", &[Matrix, Scalar, Scalar], 1, Vector),
    signature("forecast_until", &[Matrix, Scalar, Scalar], 1, Vector),
    mapping("histogram_avg"),
    mapping("histogram_count"),
    signature("histogram_fraction", &[Scalar, Scalar, Vector], 0, Vector),
    signature("histogram_quantile", &[Scalar, Vector], 0, Vector),
    signature("histogram_quantiles", &[Vector, Text, Scalar, Scalar], 9, Vector),
    mapping("histogram_stddev"),
    mapping("histogram_stdvar"),
    mapping("histogram_sum"),
    signature("holt_winters", &[Matrix, Scalar, Scalar], 0, Vector),
    calendar("hour"),
    range_function("idelta"),
    range_function("increase"),
    signature("info", &[Vector, Vector], 1, Vector),
    signature("integral", &[Matrix, Scalar], 1, Vector),
    range_function("irate"),
    signature("label_join", &[Vector, Text, Text, Text], -1, Vector),
    signature("label_replace", &[Vector, Text, Text, Text, Text], 0, Vector),
    range_function("last_over_time"),
    mapping("ln"),
    mapping("log10"),
    mapping("log2"),
    range_function("mad_over_time"),
    signature("max_of", &[Scalar, Scalar], 0, Scalar),
    range_function("max_over_time"),
    signature("min_of", &[Scalar, Scalar], 0, Scalar),
    range_function("min_over_time"),
    calendar("minute"),
    calendar("month"),
    number("pi"),
    signature("predict_linear", &[Matrix, Scalar], 0, Vector),
    range_function("present_over_time"),
    signature("quantile_over_time", &[Scalar, Matrix], 0, Vector),
    mapping("rad"),
    number("range"),
    range_function("rate"),
    range_function("resets"),
    signature("round", &[Vector, Scalar], 1, Vector),
    signature("scalar", &[Vector], 0, Scalar),
    mapping("sgn"),
    mapping("sin"),
    mapping("sinh"),
    mapping("sort"),
    signature("sort_by_label", &[Vector, Text], -1, Vector),
    signature("sort_by_label_desc", &[Vector, Text], -1, Vector),
    mapping("sort_desc"),
    mapping("sqrt"),
    number("start"),
    mapping("start_timestamp"),
    range_function("stddev_over_time"),
    range_function("stdvar_over_time"),
    number("step"),
    range_function("sum_over_time"),
    mapping("tan"),
    mapping("tanh"),
    number("time"),
    mapping("timestamp"),
    range_function("ts_of_first_over_time"),
    range_function("ts_of_last_over_time"),
    range_function("ts_of_max_over_time"),
    range_function("ts_of_min_over_time"),
    signature("vector", &[Scalar], 0, Vector),
    calendar("year"),
];

/// Returns the names of all functions.
#[cfg(test)]
pub(super) fn names() -> Vec<&'static str> {
    FUNCTIONS.iter().map(|function| function.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_name() {
        assert!(FUNCTIONS.is_sorted_by(|function, next| function.name < next.name));
        assert!(FUNCTIONS.iter().all(|listed| function(listed.name).is_some()));
        assert!(function("RATE").is_none() && function("").is_none());
    }
}
