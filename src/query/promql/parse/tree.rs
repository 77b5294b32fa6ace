//! The tree of a query as JSON, in the words of Prometheus' `parse_query`.
//!
//! Must never know: the store, how anything is evaluated.

use std::time::{Duration, UNIX_EPOCH};

use promql_parser::{
    label::{Labels, Matcher},
    parser::{
        AtModifier, BinaryExpr, Call, Expr, LabelModifier, Offset, VectorMatchCardinality,
        VectorSelector, value::ValueType,
    },
};
use serde_json::{Value, json};

use super::{guard::unmarked, parse};
use crate::{
    model::METRIC_TAG,
    query::promql::{request::PromqlLimits, value::error::PromqlError},
};

/// The tree of an expression.
///
/// # Errors
/// When the text is no expression.
pub fn promql_tree(query: &str, limits: &PromqlLimits<'_>) -> Result<Value, PromqlError> {
    Ok(tree(&parse(query, limits)?))
}

/// Recurses as deep as a query may nest.
fn tree(expression: &Expr) -> Value {
    match expression {
        Expr::Aggregate(own) => json!({
            "type": "aggregation", "op": own.op.to_string(), "expr": tree(&own.expr),
            "param": own.param.as_deref().map(tree),
            "grouping": own.modifier.as_ref().map_or_else(Vec::new, |by| names(by.labels())),
            "without": matches!(own.modifier, Some(LabelModifier::Exclude(_))),
        }),
        Expr::Unary(own) => json!({ "type": "unaryExpr", "op": "-", "expr": tree(&own.expr) }),
        Expr::Binary(own) => binary(own),
        Expr::Paren(own) => json!({ "type": "parenExpr", "expr": tree(&own.expr) }),
        Expr::Subquery(own) => {
            let (timestamp, start_or_end) = at(own.at.as_ref());
            json!({
                "type": "subquery", "expr": tree(&own.expr), "range": millis(own.range),
                "offset": offset(own.offset.as_ref()), "step": own.step.map_or(0, millis),
                "timestamp": timestamp, "startOrEnd": start_or_end,
            })
        }
        Expr::NumberLiteral(own) => json!({ "type": "numberLiteral", "val": number(own.val) }),
        Expr::StringLiteral(own) => json!({ "type": "stringLiteral", "val": own.val }),
        Expr::VectorSelector(own) => selector(own, "vectorSelector", None),
        Expr::MatrixSelector(own) => selector(&own.vs, "matrixSelector", Some(own.range)),
        Expr::Call(own) => call(own),
        // The parser makes none.
        Expr::Extension(_) => Value::Null,
    }
}

fn binary(own: &BinaryExpr) -> Value {
    let op = own.op.to_string();
    let is_vector = |side: &Expr| side.value_type() == ValueType::Vector;
    let modifier = own.modifier.as_ref();
    let matching = (is_vector(&own.lhs) && is_vector(&own.rhs)).then(|| {
        let by = modifier.and_then(|modifier| modifier.matching.as_ref());
        let (card, include) = match modifier.map(|modifier| &modifier.card) {
            _ if matches!(op.as_str(), "and" | "or" | "unless") => ("many-to-many", Vec::new()),
            Some(VectorMatchCardinality::ManyToMany) => ("many-to-many", Vec::new()),
            Some(VectorMatchCardinality::ManyToOne(include)) => ("many-to-one", names(include)),
            Some(VectorMatchCardinality::OneToMany(include)) => ("one-to-many", names(include)),
            Some(VectorMatchCardinality::OneToOne) | None => ("one-to-one", Vec::new()),
        };
        json!({
            "card": card, "include": include,
            "labels": by.map_or_else(Vec::new, |by| names(by.labels())),
            "on": matches!(by, Some(LabelModifier::Include(_))),
        })
    });
    json!({
        "type": "binaryExpr", "op": op, "lhs": tree(&own.lhs), "rhs": tree(&own.rhs),
        "matching": matching, "bool": modifier.is_some_and(|modifier| modifier.return_bool),
    })
}

fn call(own: &Call) -> Value {
    let types: Vec<_> = own.func.arg_types.iter().map(ToString::to_string).collect();
    let arguments: Vec<_> = own.args.args.iter().map(|argument| tree(argument)).collect();
    json!({
        "type": "call", "args": arguments,
        "func": {
            "name": own.func.name, "argTypes": types, "variadic": own.func.variadic,
            "returnType": own.func.return_type.to_string(),
        },
    })
}

fn selector(own: &VectorSelector, kind: &str, range: Option<Duration>) -> Value {
    let (timestamp, start_or_end) = at(own.at.as_ref());
    let named =
        own.name.iter().map(|name| json!({ "name": METRIC_TAG, "type": "=", "value": name }));
    let matchers: Vec<_> = own.matchers.matchers.iter().map(matcher).chain(named).collect();
    let mut selector = json!({
        "type": kind, "name": own.name.as_deref().unwrap_or_default(), "matchers": matchers,
        "offset": offset(own.offset.as_ref()), "timestamp": timestamp, "startOrEnd": start_or_end,
    });
    if let Some(range) = range {
        selector["range"] = json!(millis(range));
    }
    if !own.matchers.or_matchers.is_empty() {
        // Prometheus has no alternatives within braces.
        let sets = own.matchers.or_matchers.iter();
        let sets: Vec<Vec<_>> = sets.map(|set| set.iter().map(matcher).collect()).collect();
        selector["orMatchers"] = json!(sets);
    }
    selector
}

fn matcher(own: &Matcher) -> Value {
    let (operator, value) = unmarked(&own.value);
    json!({ "name": own.name, "type": operator, "value": value })
}

fn names(labels: &Labels) -> Vec<&str> {
    labels.labels.iter().map(String::as_str).collect()
}

fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

fn offset(own: Option<&Offset>) -> i64 {
    match own {
        None => 0,
        Some(Offset::Pos(length)) => millis(*length),
        Some(Offset::Neg(length)) => -millis(*length),
    }
}

/// The time of an `@`, or the word in its place.
fn at(own: Option<&AtModifier>) -> (Option<i64>, Option<&'static str>) {
    match own {
        None => (None, None),
        Some(AtModifier::Start) => (None, Some("start")),
        Some(AtModifier::End) => (None, Some("end")),
        Some(AtModifier::At(time)) => {
            let since = time.duration_since(UNIX_EPOCH);
            (Some(since.map_or_else(|before| -millis(before.duration()), millis)), None)
        }
    }
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::tests::LIMITS;

    fn named(name: &str) -> Value {
        json!({
            "type": "vectorSelector", "name": name, "offset": 0, "timestamp": null,
            "startOrEnd": null,
            "matchers": [{ "name": "__name__", "type": "=", "value": name }],
        })
    }

    /// Answers of Prometheus 3 (docs, "Parsing a PromQL expressions into a abstract syntax tree", and
    /// `web/api/v1/translate_ast.go`).
    #[test]
    fn trees_have_the_words_of_prometheus() {
        let check = |query: &str, expected: &Value| {
            assert_eq!(promql_tree(query, &LIMITS).unwrap(), *expected, "{query}");
        };
        let matching = |card: &str, labels: &[&str], on: bool, include: &[&str]| json!({ "card": card, "labels": labels, "on": on, "include": include });
        let pair = |op: &str, matching: &Value, bool: bool| {
            json!({ "type": "binaryExpr", "op": op, "lhs": named("foo"), "rhs": named("bar"),
                    "matching": matching, "bool": bool })
        };
        check("foo/bar", &pair("/", &matching("one-to-one", &[], false, &[]), false));
        check("foo and bar", &pair("and", &matching("many-to-many", &[], false, &[]), false));
        let left = matching("many-to-one", &["a", "b"], true, &["c"]);
        check("foo > bool on(a, b) group_left(c) bar", &pair(">", &left, true));
        let scaled = json!({ "type": "binaryExpr", "op": "*", "lhs": named("foo"), "bool": false,
            "rhs": { "type": "numberLiteral", "val": "1.5" }, "matching": null });
        check("foo * 1.5", &scaled);
        let matchers = json!([
            { "name": "a", "type": "=~", "value": "x|y" },
            { "name": "b", "type": "!=", "value": "" },
            { "name": "__name__", "type": "=", "value": "foo" },
        ]);
        let rate = json!({
            "type": "call",
            "func": { "name": "rate", "argTypes": ["matrix"], "variadic": 0, "returnType": "vector" },
            "args": [{ "type": "matrixSelector", "name": "foo", "range": 300_000, "offset": -60_000,
                       "matchers": matchers, "timestamp": 1_600_000_000_500_i64, "startOrEnd": null }],
        });
        let sum = json!({ "type": "aggregation", "op": "sum", "expr": rate, "param": null,
                          "grouping": ["a"], "without": true });
        let query = r#"sum without(a) (rate(foo{a=~"x|y",b!=""}[5m] offset -1m @ 1600000000.5))"#;
        check(query, &sum);
        let top = json!({ "type": "aggregation", "op": "topk", "grouping": [], "without": false,
            "param": { "type": "numberLiteral", "val": "3" },
            "expr": { "type": "parenExpr", "expr": { "type": "unaryExpr", "op": "-",
                      "expr": named("foo") } } });
        check("topk(3, (-foo))", &top);
        let subquery = json!({ "type": "call", "args": [{ "type": "subquery", "expr": named("foo"),
                "range": 3_600_000, "step": 60_000, "offset": 0, "timestamp": null,
                "startOrEnd": "end" }],
            "func": { "name": "max_over_time", "argTypes": ["matrix"], "variadic": 0,
                      "returnType": "vector" } });
        check("max_over_time(foo[1h:1m] @ end())", &subquery);
        check("\"a\"", &json!({ "type": "stringLiteral", "val": "a" }));
        assert!(promql_tree("sum(", &LIMITS).is_err());
    }
}
