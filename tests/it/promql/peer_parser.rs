//! Our parser beside the crate promql-parser: trees are the same where both accept a text, and what
//! only one of them accepts is known.

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

/// Words of the refusal where only promql-parser accepts a text, and why we refuse it.
const ONLY_THEIRS: [(&str, &str); 12] = [
    ("duration must be greater than 0", "it accepts numbers of no seconds"),
    ("duration out of range", "it accepts any length of time"),
    ("value out of range", "it reads 1e400 as infinity"),
    ("timestamp out of bounds", "it accepts times beyond 64 bits of seconds"),
    ("expected label selectors only", "it accepts any vector as info's second argument"),
    ("in call to function \"exp\"", "it accepts exp(Inf)"),
    ("in call to function \"l", "it accepts ln(0), log2(-1)"),
    ("filling in missing series", "it does not check fill modifiers"),
    ("non-empty matcher", "it asks compiled patterns, we ask them later; it takes != as non-empty"),
    ("in aggregation parameter", "it does not check limitk and limit_ratio"),
    ("split it", "it has no bound of depth"),
    ("bad number or duration syntax", "it reads 0x as 0 in a length of time"),
];

/// Words of the refusal where only we accept a text, and why promql-parser refuses it.
const ONLY_OURS: [(&str, &str); 10] = [
    ("invalid promql query", "anchored, smoothed, {or =\"a\"}, calculated lengths, offset 0"),
    ("duration must be greater than 0", "it refuses 0s as a number and as an offset"),
    ("bad number or duration syntax", "underscores between digits"),
    ("ParseFloatError", "01e5 is a decimal number"),
    ("inside brackets", "calculated lengths of time"),
    ("non-empty matcher", "info's second argument may be {}, and patterns are asked later"),
    ("illegal regex", "patterns are compiled later"),
    ("unknown escape sequence", "a text in backticks has no escapes"),
    ("invalid syntax", "a text in backticks may contain any quote"),
    ("not a valid duration", "underscores between digits"),
];

/// The tree of promql-parser in the words of `parse_query`.
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
        Expr::VectorSelector(own) => selector(own, "vectorSelector"),
        Expr::MatrixSelector(own) => {
            let mut selector = selector(&own.vs, "matrixSelector");
            selector["range"] = json!(millis(own.range));
            selector
        }
        Expr::Call(own) => call(own),
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

fn selector(own: &VectorSelector, kind: &str) -> Value {
    let (timestamp, start_or_end) = at(own.at.as_ref());
    let named =
        own.name.iter().map(|name| json!({ "name": "__name__", "type": "=", "value": name }));
    let matchers: Vec<_> = own.matchers.matchers.iter().map(matcher).chain(named).collect();
    let mut selector = json!({
        "type": kind, "name": own.name.as_deref().unwrap_or_default(), "matchers": matchers,
        "offset": offset(own.offset.as_ref()), "timestamp": timestamp, "startOrEnd": start_or_end,
    });
    if !own.matchers.or_matchers.is_empty() {
        let sets = own.matchers.or_matchers.iter();
        let sets: Vec<Vec<_>> = sets.map(|set| set.iter().map(matcher).collect()).collect();
        selector["orMatchers"] = json!(sets);
    }
    selector
}

fn matcher(own: &Matcher) -> Value {
    json!({ "name": own.name, "type": own.op.to_string(), "value": own.value })
}

fn names(labels: &Labels) -> Vec<&str> {
    labels.labels.iter().map(String::as_str).collect()
}

fn millis(length: std::time::Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

fn offset(own: Option<&Offset>) -> i64 {
    match own {
        None => 0,
        Some(Offset::Pos(length)) => millis(*length),
        Some(Offset::Neg(length)) => -millis(*length),
    }
}

fn at(own: Option<&AtModifier>) -> (Option<i64>, Option<&'static str>) {
    match own {
        None => (None, None),
        Some(AtModifier::Start) => (None, Some("start")),
        Some(AtModifier::End) => (None, Some("end")),
        Some(AtModifier::At(time)) => {
            let since = time.duration_since(std::time::UNIX_EPOCH);
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

/// Their tree, or their refusal; the crate panics on lengths of time that are out of range.
fn theirs(text: &str) -> Result<Value, String> {
    std::panic::catch_unwind(|| promql_parser::parser::parse(text))
        .unwrap_or_else(|_| Err("invalid promql query: a panic".to_owned()))
        .map(|expression| tree(&expression))
}

/// What is wrong with the two answers to a text.
fn difference(text: &str) -> Option<String> {
    let ours = promql_tree(text, &LIMITS).map_err(|error| error.to_string());
    let is_known = |refusal: &str, known: &[(&str, &str)]| {
        known.iter().any(|(words, _)| refusal.contains(words))
    };
    match (theirs(text), &ours) {
        (Ok(theirs), Ok(ours)) if theirs != *ours => Some(format!("theirs {theirs}\nours {ours}")),
        (Ok(_), Err(refusal)) if !is_known(refusal, &ONLY_THEIRS) => {
            Some(format!("only we refuse: {refusal}"))
        }
        (Err(refusal), Ok(_)) if !is_known(&refusal, &ONLY_OURS) => {
            Some(format!("only they refuse: {refusal}"))
        }
        (_, Ok(ours)) => {
            let written = format_promql(text, &LIMITS).unwrap_or_default();
            // Matchers are written in order.
            let again = promql_tree(&written, &LIMITS).map(|again| sorted(&again));
            let is_same = again.as_ref().ok() == Some(&sorted(ours));
            (!is_same).then(|| format!("{written} is read as {again:?}"))
        }
        _ => None,
    }
}

fn sorted(tree: &Value) -> Value {
    match tree {
        Value::Object(parts) => parts
            .iter()
            .map(|(name, part)| match (name.as_str(), part) {
                ("matchers", Value::Array(matchers)) => {
                    let mut matchers = matchers.clone();
                    matchers.sort_by_key(Value::to_string);
                    (name.clone(), Value::Array(matchers))
                }
                _ => (name.clone(), sorted(part)),
            })
            .collect(),
        Value::Array(parts) => parts.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => tree.clone(),
    }
}

/// Pieces of the language, and of what is nearly the language.
const PIECES: [&str; 84] = [
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

fn soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES.as_slice());
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.join(" "))
}

/// A text that follows the grammar, with types that mostly fit.
#[expect(clippy::too_many_lines, reason = "a table of the grammar")]
fn expression() -> impl Strategy<Value = String> {
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
    let shift = prop::sample::select(
        ["", "", " offset 5m", " offset -1h30m", " @ 5", " @ -1.5", " @ end()", " offset 10 @ 1m"]
            .as_slice(),
    );
    let selector = (selector, shift).prop_map(|(selector, shift)| format!("{selector}{shift}"));
    let literal = prop::sample::select(["1", "-2.5", "0x1F", "017", "Inf", "5m"].as_slice());
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
        let around = prop::sample::select(
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
            (around, inner)
                .prop_map(|((before, behind), inner)| format!("{before}{inner}{behind}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// The tree is the same, and what only one parser accepts is known.
    #[test]
    fn expressions_are_read_as_promql_parser_reads_them(text in expression()) {
        prop_assert_eq!(difference(&text), None, "{}", text);
    }

    #[test]
    fn broken_texts_are_refused_where_promql_parser_refuses_them(text in soup()) {
        prop_assert_eq!(difference(&text), None, "{}", text);
    }
}
