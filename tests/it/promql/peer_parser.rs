//! The parser compared with the crate promql-parser: both return equal trees, except for the listed
//! texts that only one of them accepts.

use granary::query::{format_promql, promql_tree};
use promql_parser::{
    label::{Labels, Matcher},
    parser::{
        AtModifier, BinaryExpr, Call, Expr, LabelModifier, Offset, VectorMatchCardinality,
        VectorSelector, value::ValueType,
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::LIMITS;

/// Texts that only promql-parser accepts: a part of our error, and the reason.
const ONLY_THEIRS: [(&str, &str); 12] = [
    ("duration must be greater than 0", "it accepts durations of 0 seconds"),
    ("duration out of range", "it accepts any duration"),
    ("value out of range", "it reads 1e400 as infinity"),
    ("timestamp out of bounds", "it accepts times beyond 64 bits of seconds"),
    ("expected label selectors only", "it accepts any vector as info's second argument"),
    ("in call to function \"exp\"", "it accepts exp(Inf)"),
    ("in call to function \"l", "it accepts ln(0), log2(-1)"),
    ("filling in missing series", "it does not check fill modifiers"),
    ("non-empty matcher", "it tests compiled patterns, we test later; it counts != as non-empty"),
    ("in aggregation parameter", "it does not check limitk and limit_ratio"),
    ("split it", "it has no bound of depth"),
    ("bad number or duration syntax", "it reads 0x as 0 in a duration"),
];

/// Texts that only our parser accepts: a part of the error of promql-parser, and the reason.
const ONLY_OURS: [(&str, &str); 10] = [
    ("invalid promql query", "anchored, smoothed, {or =\"a\"}, duration expressions, offset 0"),
    ("duration must be greater than 0", "it refuses 0s as a number and as an offset"),
    ("bad number or duration syntax", "underscores between digits"),
    ("ParseFloatError", "01e5 is a decimal number"),
    ("inside brackets", "duration expressions"),
    ("non-empty matcher", "info's second argument may be {}, and patterns are tested later"),
    ("illegal regex", "patterns are compiled later"),
    ("unknown escape sequence", "a text in backticks has no escapes"),
    ("invalid syntax", "a text in backticks may contain any quote"),
    ("not a valid duration", "underscores between digits"),
];

/// Returns a tree of promql-parser as the JSON that the endpoint `parse_query` returns.
fn peer_tree_json(expression: &Expr) -> Value {
    match expression {
        Expr::Aggregate(node) => json!({
            "type": "aggregation", "op": node.op.to_string(), "expr": peer_tree_json(&node.expr),
            "param": node.param.as_deref().map(peer_tree_json),
            "grouping": node.modifier.as_ref().map_or_else(Vec::new, |by| names(by.labels())),
            "without": matches!(node.modifier, Some(LabelModifier::Exclude(_))),
        }),
        Expr::Unary(node) => {
            json!({ "type": "unaryExpr", "op": "-", "expr": peer_tree_json(&node.expr) })
        }
        Expr::Binary(node) => binary(node),
        Expr::Paren(node) => json!({ "type": "parenExpr", "expr": peer_tree_json(&node.expr) }),
        Expr::Subquery(node) => {
            let (timestamp, start_or_end) = at(node.at.as_ref());
            json!({
                "type": "subquery", "expr": peer_tree_json(&node.expr), "range": to_millis(node.range),
                "offset": offset(node.offset.as_ref()), "step": node.step.map_or(0, to_millis),
                "timestamp": timestamp, "startOrEnd": start_or_end,
            })
        }
        Expr::NumberLiteral(node) => {
            json!({ "type": "numberLiteral", "val": number_text(node.val) })
        }
        Expr::StringLiteral(node) => json!({ "type": "stringLiteral", "val": node.val }),
        Expr::VectorSelector(node) => selector(node, "vectorSelector"),
        Expr::MatrixSelector(node) => {
            let mut selector = selector(&node.vs, "matrixSelector");
            selector["range"] = json!(to_millis(node.range));
            selector
        }
        Expr::Call(node) => call(node),
        Expr::Extension(_) => Value::Null,
    }
}

fn binary(node: &BinaryExpr) -> Value {
    let op = node.op.to_string();
    let is_vector = |side: &Expr| side.value_type() == ValueType::Vector;
    let modifier = node.modifier.as_ref();
    let matching = (is_vector(&node.lhs) && is_vector(&node.rhs)).then(|| {
        let by = modifier.and_then(|modifier| modifier.matching.as_ref());
        let (card, include) = match modifier.map(|modifier| &modifier.card) {
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
        "type": "binaryExpr", "op": op, "lhs": peer_tree_json(&node.lhs), "rhs": peer_tree_json(&node.rhs),
        "matching": matching, "bool": modifier.is_some_and(|modifier| modifier.return_bool),
    })
}

fn call(node: &Call) -> Value {
    let types: Vec<_> = node.func.arg_types.iter().map(ToString::to_string).collect();
    let arguments: Vec<_> =
        node.args.args.iter().map(|argument| peer_tree_json(argument)).collect();
    json!({
        "type": "call", "args": arguments,
        "func": {
            "name": node.func.name, "argTypes": types, "variadic": node.func.variadic,
            "returnType": node.func.return_type.to_string(),
        },
    })
}

fn selector(node: &VectorSelector, kind: &str) -> Value {
    let (timestamp, start_or_end) = at(node.at.as_ref());
    let name_matcher =
        node.name.iter().map(|name| json!({ "name": "__name__", "type": "=", "value": name }));
    let matchers: Vec<_> = node.matchers.matchers.iter().map(matcher).chain(name_matcher).collect();
    let mut selector = json!({
        "type": kind, "name": node.name.as_deref().unwrap_or_default(), "matchers": matchers,
        "offset": offset(node.offset.as_ref()), "timestamp": timestamp, "startOrEnd": start_or_end,
    });
    if !node.matchers.or_matchers.is_empty() {
        let sets = node.matchers.or_matchers.iter();
        let sets: Vec<Vec<_>> = sets.map(|set| set.iter().map(matcher).collect()).collect();
        selector["orMatchers"] = json!(sets);
    }
    selector
}

fn matcher(node: &Matcher) -> Value {
    json!({ "name": node.name, "type": node.op.to_string(), "value": node.value })
}

fn names(labels: &Labels) -> Vec<&str> {
    labels.labels.iter().map(String::as_str).collect()
}

fn to_millis(length: std::time::Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

fn offset(offset: Option<&Offset>) -> i64 {
    match offset {
        None => 0,
        Some(Offset::Pos(length)) => to_millis(*length),
        Some(Offset::Neg(length)) => -to_millis(*length),
    }
}

fn at(modifier: Option<&AtModifier>) -> (Option<i64>, Option<&'static str>) {
    match modifier {
        None => (None, None),
        Some(AtModifier::Start) => (None, Some("start")),
        Some(AtModifier::End) => (None, Some("end")),
        Some(AtModifier::At(time)) => {
            let since = time.duration_since(std::time::UNIX_EPOCH);
            (Some(since.map_or_else(|before| -to_millis(before.duration()), to_millis)), None)
        }
    }
}

fn number_text(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => value.to_string(),
    }
}

/// Returns the tree or error of promql-parser, which panics on durations out of range.
fn peer_tree(text: &str) -> Result<Value, String> {
    std::panic::catch_unwind(|| promql_parser::parser::parse(text))
        .unwrap_or_else(|_| Err("invalid promql query: a panic".to_owned()))
        .map(|expression| peer_tree_json(&expression))
}

/// Returns the difference between the results of the two parsers, unless it is listed.
fn find_difference(text: &str) -> Option<String> {
    let ours = promql_tree(text, &LIMITS).map_err(|error| error.to_string());
    let is_known = |open_error: &str, known: &[(&str, &str)]| {
        known.iter().any(|(words, _)| open_error.contains(words))
    };
    match (peer_tree(text), &ours) {
        (Ok(theirs), Ok(ours)) if theirs != *ours => Some(format!("theirs {theirs}\nours {ours}")),
        (Ok(_), Err(open_error)) if !is_known(open_error, &ONLY_THEIRS) => {
            Some(format!("only we refuse: {open_error}"))
        }
        (Err(open_error), Ok(_)) if !is_known(&open_error, &ONLY_OURS) => {
            Some(format!("only they refuse: {open_error}"))
        }
        (_, Ok(ours)) => {
            let formatted = format_promql(text, &LIMITS).unwrap_or_default();
            // The formatter sorts matchers.
            let reparsed =
                promql_tree(&formatted, &LIMITS).map(|reparsed| sort_matchers(&reparsed));
            let is_same = reparsed.as_ref().ok() == Some(&sort_matchers(ours));
            (!is_same).then(|| format!("{formatted} is read as {reparsed:?}"))
        }
        _ => None,
    }
}

fn sort_matchers(tree: &Value) -> Value {
    match tree {
        Value::Object(parts) => parts
            .iter()
            .map(|(name, part)| match (name.as_str(), part) {
                ("matchers", Value::Array(matchers)) => {
                    let mut matchers = matchers.clone();
                    matchers.sort_by_key(Value::to_string);
                    (name.clone(), Value::Array(matchers))
                }
                _ => (name.clone(), sort_matchers(part)),
            })
            .collect(),
        Value::Array(parts) => parts.iter().map(sort_matchers).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => tree.clone(),
    }
}

/// Fragments of the language, valid and invalid.
const FRAGMENTS: [&str; 84] = [
    "x",
    "a:b",
    "sum",
    "topk",
    "count_values",
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
    "bool",
    "fill",
    "fill_left",
    "fill_right",
    "offset",
    "and",
    "or",
    "unless",
    "atan2",
    "start",
    "end",
    "step",
    "inf",
    "NaN",
    "rate",
    "time",
    "abs",
    "vector",
    "scalar",
    "label_join",
    "no_function",
    "(",
    ")",
    "(",
    ")",
    "(",
    ")",
    "{",
    "}",
    "{",
    "}",
    "[",
    "]",
    "[5m]",
    "[1h:5m]",
    "[10m:]",
    ",",
    ":",
    "@",
    "@ 5",
    "@ start()",
    "=",
    "==",
    "!=",
    "=~",
    "!~",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "1",
    "017",
    "0x1f",
    ".5",
    "1e3",
    "5m",
    "1h30m",
    "0s",
    "\"a\"",
    "'b'",
    "`\\d`",
    "\"\\x41\"",
    "a=\"b\"",
    "c=~\"d|e\"",
    "\"f\"",
    "# g\n",
    " ",
];

fn any_fragments() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(FRAGMENTS.as_slice());
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.join(" "))
}

/// Generates texts that follow the grammar, with mostly matching types.
#[expect(clippy::too_many_lines, reason = "a table of the grammar")]
fn any_expression() -> impl Strategy<Value = String> {
    let selector = prop::sample::select(
        [
            "x",
            "a:b",
            "sum",
            "offset",
            "and",
            "{a=\"b\"}",
            "x{a!=\"b\",c=~'d|e',}",
            "{\"f g\"}",
            "x{a!~`.+`}",
            "start",
            "{a=\"b\" or c=\"d\", e=\"f\"}",
            "fill",
            "x{}",
            "x{by=\"on\"}",
        ]
        .as_slice(),
    );
    let modifiers = prop::sample::select(
        ["", "", " offset 5m", " offset -1h30m", " @ 5", " @ -1.5", " @ end()", " offset 10 @ 1m"]
            .as_slice(),
    );
    let selector =
        (selector, modifiers).prop_map(|(selector, modifiers)| format!("{selector}{modifiers}"));
    let literal = prop::sample::select(["1", "-2.5", "0x1F", "017", "Inf", "5m", "-0s"].as_slice());
    let leaf = prop_oneof![3 => selector, 1 => literal.prop_map(str::to_owned)];
    leaf.prop_recursive(6, 40, 3, |inner| {
        let operator = prop::sample::select(
            [
                "+",
                "-",
                "*",
                "/",
                "%",
                "^",
                "atan2",
                "and",
                "or",
                "unless",
                "> bool",
                "==",
                "!=",
                "<= on(a)",
                "/ ignoring (a, b) group_left (c)",
                "* on() group_right",
                "+ fill(0)",
                "- on (a) fill_left (-1) fill_right(NaN)",
                "AND on(a)",
            ]
            .as_slice(),
        );
        let wrapper = prop::sample::select(
            [
                ("(", ")"),
                ("-", ""),
                ("+", ""),
                ("abs(", ")"),
                ("sum(", ") by (a)"),
                ("count without (b,) (", ")"),
                ("topk by (by) (3, ", ")"),
                ("max_over_time(", "[1h:5m])"),
                ("quantile(0.9, ", ")"),
                ("count_values(\"v\", ", ")"),
                ("rate(x[5m]) + (", ")"),
                ("label_replace(", ", \"a\", '$1', `b`, \"(.*)\")"),
                ("(", ")[10m:] offset 1m"),
                ("scalar(", ")"),
                ("vector(", ")"),
                ("round(", ", 5)"),
                ("avg_over_time(", "[90])"),
            ]
            .as_slice(),
        );
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
            (wrapper, inner)
                .prop_map(|((before, behind), inner)| format!("{before}{inner}{behind}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// Both parsers return equal trees, or the difference is listed.
    #[test]
    fn expressions_are_parsed_as_by_promql_parser(text in any_expression()) {
        prop_assert_eq!(find_difference(&text), None, "{}", text);
    }

    #[test]
    fn invalid_texts_are_refused_as_by_promql_parser(text in any_fragments()) {
        prop_assert_eq!(find_difference(&text), None, "{}", text);
    }
}
