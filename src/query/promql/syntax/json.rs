//! The tree of a query as JSON, in the format of Prometheus' `parse_query`.
//!
//! The source is Prometheus (`web/api/v1/translate_ast.go`). Must never know: tokens, values.

use serde_json::{Value, json as object};

use super::{
    duration_expr::DurationExpr,
    tree::{
        Aggregate, AtTime, Binary, Call, Expr, Grouping, ManySide, Matcher, Number, Paren, Shift,
        Subquery, Text, Unary, ValueType, VectorSelector,
    },
};
use crate::{model::METRIC_TAG, query::promql::value::steps::QueryTimes};

/// Returns the tree of an expression. The parser limits the depth of the recursion.
pub(crate) fn json(expression: &Expr) -> Value {
    match expression {
        Expr::Aggregate(Aggregate { operation, input, parameter, grouping, .. }) => object!({
            "type": "aggregation", "op": operation.name(), "expr": json(input),
            "param": parameter.as_deref().map(json),
            "grouping": grouping.as_ref().map_or(&[][..], Grouping::names),
            "without": grouping.as_ref().is_some_and(|grouping| !grouping.is_only()),
        }),
        Expr::Unary(Unary { inner, .. }) => {
            object!({ "type": "unaryExpr", "op": "-", "expr": json(inner) })
        }
        Expr::Binary(binary) => binary_json(binary),
        Expr::Paren(Paren { inner, .. }) => object!({ "type": "parenExpr", "expr": json(inner) }),
        Expr::Subquery(Subquery { inner, range, step, shift, .. }) => {
            let (timestamp, start_or_end) = at_json(shift);
            object!({
                "type": "subquery", "expr": json(inner), "range": millis(Some(range)).max(0),
                "offset": millis(shift.offset.as_ref()), "step": millis(step.as_ref()).max(0),
                "timestamp": timestamp, "startOrEnd": start_or_end,
            })
        }
        Expr::Number(Number { value, .. }) => {
            object!({ "type": "numberLiteral", "val": float(*value) })
        }
        Expr::Text(Text { value, .. }) => object!({ "type": "stringLiteral", "val": value }),
        Expr::Vector(selector) => selector_json(selector, "vectorSelector"),
        Expr::Matrix(matrix) => {
            let mut selector = selector_json(&matrix.selector, "matrixSelector");
            selector["range"] = object!(millis(Some(&matrix.range)).max(0));
            selector
        }
        Expr::Call(Call { function, arguments, .. }) => object!({
            "type": "call", "args": arguments.iter().map(json).collect::<Vec<_>>(),
            "func": {
                "name": function.name,
                "argTypes": function.arguments.iter().copied().map(type_name).collect::<Vec<_>>(),
                "variadic": function.variadic,
                "returnType": type_name(function.result),
            },
        }),
    }
}

fn binary_json(binary: &Binary) -> Value {
    let Binary { operator, left, right, matching, return_bool, .. } = binary;
    let is_vector = |side: &Expr| side.value_type() == ValueType::Vector;
    let labels = matching.labels.as_ref();
    let matching = (is_vector(left) && is_vector(right)).then(|| {
        let card = match matching.many {
            _ if operator.is_set() => "many-to-many",
            ManySide::Left => "many-to-one",
            ManySide::Right => "one-to-many",
            ManySide::Neither => "one-to-one",
        };
        object!({
            "card": card, "include": matching.included,
            "labels": labels.map_or(&[][..], Grouping::names),
            "on": labels.is_some_and(Grouping::is_only),
        })
    });
    object!({
        "type": "binaryExpr", "op": operator.text(), "lhs": json(left), "rhs": json(right),
        "matching": matching, "bool": return_bool,
    })
}

fn selector_json(selector: &VectorSelector, kind: &str) -> Value {
    let VectorSelector { name, alternatives, shift, .. } = selector;
    let (timestamp, start_or_end) = at_json(shift);
    let all = |set: &Vec<Matcher>| set.iter().map(matcher_json).collect::<Vec<_>>();
    let mut selector = object!({
        "type": kind, "name": name.as_deref().unwrap_or_default(),
        "offset": millis(shift.offset.as_ref()), "timestamp": timestamp, "startOrEnd": start_or_end,
    });
    let mut matchers = Vec::new();
    match alternatives.as_slice() {
        [set] => matchers = all(set),
        // Prometheus has no alternatives within braces.
        sets => selector["orMatchers"] = sets.iter().map(all).collect(),
    }
    let named = name.iter().map(|name| object!({ "name": METRIC_TAG, "type": "=", "value": name }));
    selector["matchers"] = matchers.into_iter().chain(named).collect();
    selector
}

fn matcher_json(matcher: &Matcher) -> Value {
    let Matcher { label, comparison, value } = matcher;
    object!({ "name": label, "type": comparison.operator(), "value": value })
}

/// Returns a duration in milliseconds, as for an instant query; 0 when it is missing or invalid.
fn millis(duration: Option<&DurationExpr>) -> i64 {
    let duration = duration.map(|duration| duration.millis(QueryTimes::INSTANT));
    duration.and_then(Result::ok).unwrap_or_default()
}

/// Returns the time of an `@`, or `start` or `end` instead.
fn at_json(shift: &Shift) -> (Option<i64>, Option<&'static str>) {
    match shift.at {
        None => (None, None),
        Some(AtTime::Start) => (None, Some("start")),
        Some(AtTime::End) => (None, Some("end")),
        Some(AtTime::Millis(millis)) => (Some(millis), None),
    }
}

fn float(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => value.to_string(),
    }
}

fn type_name(value: ValueType) -> &'static str {
    match value {
        ValueType::Scalar => "scalar",
        ValueType::Vector => "vector",
        ValueType::Matrix => "matrix",
        ValueType::Text => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::{super::parser::parse, *};

    fn tree(query: &str) -> Result<Value, super::super::span::SyntaxError> {
        parse(query, usize::MAX).map(|expression| json(&expression))
    }

    fn named(name: &str) -> Value {
        object!({
            "type": "vectorSelector", "name": name, "offset": 0, "timestamp": null,
            "startOrEnd": null,
            "matchers": [{ "name": "__name__", "type": "=", "value": name }],
        })
    }

    /// Answers of Prometheus 3 (docs, "Parsing a PromQL expressions into a abstract syntax tree",
    /// and `web/api/v1/translate_ast.go`).
    #[test]
    fn trees_equal_answers_of_prometheus() {
        let check = |query: &str, expected: &Value| {
            assert_eq!(tree(query).unwrap(), *expected, "{query}");
        };
        let matching = |card: &str, labels: &[&str], on: bool, include: &[&str]| object!({ "card": card, "labels": labels, "on": on, "include": include });
        let pair = |op: &str, matching: &Value, bool: bool| {
            object!({ "type": "binaryExpr", "op": op, "lhs": named("foo"), "rhs": named("bar"),
                    "matching": matching, "bool": bool })
        };
        check("foo/bar", &pair("/", &matching("one-to-one", &[], false, &[]), false));
        check("foo and bar", &pair("and", &matching("many-to-many", &[], false, &[]), false));
        let left = matching("many-to-one", &["a", "b"], true, &["c"]);
        check("foo > bool on(a, b) group_left(c) bar", &pair(">", &left, true));
        let scaled = object!({ "type": "binaryExpr", "op": "*", "lhs": named("foo"), "bool": false,
            "rhs": { "type": "numberLiteral", "val": "1.5" }, "matching": null });
        check("foo * 1.5", &scaled);
        let matchers = object!([
            { "name": "a", "type": "=~", "value": "x|y" },
            { "name": "b", "type": "!=", "value": "" },
            { "name": "__name__", "type": "=", "value": "foo" },
        ]);
        let rate = object!({
            "type": "call",
            "func": { "name": "rate", "argTypes": ["matrix"], "variadic": 0, "returnType": "vector" },
            "args": [{ "type": "matrixSelector", "name": "foo", "range": 300_000, "offset": -60_000,
                       "matchers": matchers, "timestamp": 1_600_000_000_500_i64, "startOrEnd": null }],
        });
        let sum = object!({ "type": "aggregation", "op": "sum", "expr": rate, "param": null,
                          "grouping": ["a"], "without": true });
        let query = r#"sum without(a) (rate(foo{a=~"x|y",b!=""}[5m] offset -1m @ 1600000000.5))"#;
        check(query, &sum);
        let top = object!({ "type": "aggregation", "op": "topk", "grouping": [], "without": false,
            "param": { "type": "numberLiteral", "val": "3" },
            "expr": { "type": "parenExpr", "expr": { "type": "unaryExpr", "op": "-",
                      "expr": named("foo") } } });
        check("topk(3, (-foo))", &top);
        let subquery = object!({ "type": "call", "args": [{ "type": "subquery", "expr": named("foo"),
                "range": 3_600_000, "step": 60_000, "offset": 0, "timestamp": null,
                "startOrEnd": "end" }],
            "func": { "name": "max_over_time", "argTypes": ["matrix"], "variadic": 0,
                      "returnType": "vector" } });
        check("max_over_time(foo[1h:1m] @ end())", &subquery);
        check("\"a\"", &object!({ "type": "stringLiteral", "val": "a" }));
        assert!(tree("sum(").is_err());
    }
}
