//! Where calls and their arguments stand in a query's text, for messages.
//!
//! The parser keeps no positions. Calls are found in the text in the order in which a walk through
//! the tree meets them, the caller before its arguments; where the two differ nothing is said. Must
//! never know: values.

use std::collections::HashMap;

use promql_parser::parser::Expr;

/// Words before a parenthesis that call nothing.
const NO_CALLS: [&str; 16] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
    "bool",
    "and",
    "or",
    "unless",
    "atan2",
    "offset",
    "fill",
    "fill_left",
    "fill_right",
    "anchored",
];
/// Words that stand between the name of an aggregation and its arguments.
const GROUPINGS: [&str; 2] = ["by", "without"];

/// A call in the text: its name, and where it and its arguments begin.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    name: String,
    start: usize,
    arguments: Vec<usize>,
}

/// The calls of a query by their nodes.
#[derive(Debug, Default)]
pub(crate) struct Positions(HashMap<usize, Vec<String>>);

impl Positions {
    /// Finds the calls of a tree in the text that it was parsed from.
    pub(crate) fn of(expression: &Expr, text: &str) -> Self {
        let mut nodes = Vec::new();
        walk(expression, &mut nodes);
        let found = calls(text);
        if found.len() != nodes.len() {
            return Self::default();
        }
        let mut places = HashMap::new();
        for ((node, name), call) in nodes.into_iter().zip(found) {
            if name != call.name {
                return Self::default();
            }
            let all = std::iter::once(call.start).chain(call.arguments);
            places.insert(node, all.map(|at| line_and_column(text, at)).collect());
        }
        Self(places)
    }

    /// `line:column` of a call or an aggregation, and behind that of each of its arguments; empty when
    /// that is not known.
    pub(crate) fn of_node<T>(&self, node: &T) -> &[String] {
        self.0.get(&node_of(node)).map_or(&[], Vec::as_slice)
    }
}

/// Where a name is called first, for complaints of the parser.
pub(crate) fn first_call(text: &str, name: &str) -> Option<String> {
    let found = calls(text).into_iter().find(|call| call.name == name)?;
    Some(line_and_column(text, found.start))
}

fn node_of<T>(node: &T) -> usize {
    std::ptr::from_ref(node).addr()
}

/// The calls and aggregations of a tree, with their names.
fn walk(expression: &Expr, nodes: &mut Vec<(usize, String)>) {
    match expression {
        Expr::Aggregate(aggregate) => {
            nodes.push((node_of(aggregate), aggregate.op.to_string()));
            if let Some(parameter) = &aggregate.param {
                walk(parameter, nodes);
            }
            walk(&aggregate.expr, nodes);
        }
        Expr::Call(call) => {
            nodes.push((node_of(call), call.func.name.to_owned()));
            call.args.args.iter().for_each(|argument| walk(argument, nodes));
        }
        Expr::Binary(binary) => {
            walk(&binary.lhs, nodes);
            walk(&binary.rhs, nodes);
        }
        Expr::Unary(inner) => walk(&inner.expr, nodes),
        Expr::Paren(inner) => walk(&inner.expr, nodes),
        Expr::Subquery(inner) => walk(&inner.expr, nodes),
        Expr::NumberLiteral(_)
        | Expr::StringLiteral(_)
        | Expr::VectorSelector(_)
        | Expr::MatrixSelector(_)
        | Expr::Extension(_) => {}
    }
}

/// Counted from 1, columns in bytes, as in Prometheus.
fn line_and_column(text: &str, at: usize) -> String {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    let line = before.split(|byte| *byte == b'\n').count();
    let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    format!("{line}:{}", at - begin + 1)
}

/// All calls of a text, in the order of their names.
fn calls(text: &str) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    // What each open parenthesis is: the arguments of a call, or nothing of that.
    let mut open: Vec<Option<usize>> = Vec::new();
    // The call whose arguments are to come, and whether the next ones are labels.
    let (mut called, mut labels) = (None, false);
    let mut expects = None;
    let mut at = 0;
    while let Some(now) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let skipped = skip(text, at, now);
        if skipped > at && now != '(' && now != ')' && now != ',' {
            let is_space = now.is_whitespace() || now == '#';
            if !is_space && let Some(call) = expects.take() {
                let call: &mut Found = &mut found[call];
                call.arguments.push(at);
            }
            if now.is_alphabetic() || now == '_' {
                let word = text.get(at..skipped).unwrap_or_default().to_ascii_lowercase();
                let behind = text.get(skipped..).unwrap_or_default().trim_start();
                let grouped = GROUPINGS
                    .iter()
                    .any(|own| starts_with_word(behind, own) && !NO_CALLS.contains(&&*word));
                let is_time = text.get(..at).unwrap_or_default().trim_end().ends_with('@');
                labels = NO_CALLS.contains(&word.as_str());
                if !labels && !is_time && (behind.starts_with('(') || grouped) {
                    called = Some(found.len());
                    found.push(Found { name: word, start: at, arguments: Vec::new() });
                }
            }
            at = skipped;
            continue;
        }
        match now {
            '(' => {
                if let Some(call) = expects.take() {
                    let call: &mut Found = &mut found[call];
                    call.arguments.push(at);
                }
                let own = if labels { None } else { called.take() };
                labels = false;
                open.push(own);
                expects = own;
            }
            ')' => {
                open.pop();
                expects = None;
            }
            _ => expects = open.last().copied().flatten(),
        }
        at += 1;
    }
    found
}

fn starts_with_word(text: &str, word: &str) -> bool {
    let head = text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
    let tail = text.get(word.len()..).and_then(|tail| tail.chars().next());
    head && !tail.is_some_and(|next| next.is_alphanumeric() || next == '_' || next == ':')
}

/// Where that ends which begins here and is looked at as a whole.
fn skip(text: &str, at: usize, now: char) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let until = |end: Option<usize>| at + end.unwrap_or(rest.len());
    match now {
        '(' | ')' | ',' => at,
        '#' => until(rest.find('\n')),
        '"' | '\'' | '`' => {
            let mut escaped = false;
            let is_end = |(_, own): &(usize, char)| {
                let ends = *own == now && !escaped;
                escaped = *own == '\\' && now != '`' && !escaped;
                ends
            };
            until(rest.char_indices().skip(1).find(is_end).map(|(end, _)| end + 1))
        }
        '{' => {
            let mut end = 1;
            while let Some(next) = rest.get(end..).and_then(|rest| rest.chars().next()) {
                match next {
                    '}' => return at + end + 1,
                    '"' | '\'' | '`' => end = skip(text, at + end, next) - at,
                    _ => end += next.len_utf8(),
                }
            }
            at + rest.len()
        }
        '[' => until(rest.find(']').map(|end| end + 1)),
        _ if now.is_alphanumeric() || now == '_' => {
            until(rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':' | '.'))))
        }
        _ => at + now.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::{parse, tests::LIMITS};

    #[test]
    fn calls_are_found_where_they_stand() {
        for (text, expected) in [
            ("rate(foo[5m])", vec!["rate 1:1 1:6"]),
            ("sum by (a) (rate(x{b=\"(\"}[step()]))", vec!["sum 1:1 1:13", "rate 1:13 1:18"]),
            (
                "# rate(\n  histogram_quantile (0.5,\n\tsum(x) by (le))",
                vec!["histogram_quantile 2:3 2:23 3:2", "sum 3:2 3:6"],
            ),
            ("a * on (b) group_left (c) (abs(d @ start()))", vec!["abs 1:28 1:32"]),
            ("quantile(0.9, (x))", vec!["quantile 1:1 1:10 1:15"]),
            ("time() + x offset 5m", vec!["time 1:1"]),
        ] {
            let shown = |call: Found| {
                let all = std::iter::once(call.start).chain(call.arguments);
                let places: Vec<_> = all.map(|at| line_and_column(text, at)).collect();
                format!("{} {}", call.name, places.join(" "))
            };
            assert_eq!(calls(text).into_iter().map(shown).collect::<Vec<_>>(), expected, "{text}");
        }
        let text = "sum(rate(x[5m])) / sum(rate(y[5m]))";
        let tree = parse::parse(text, &LIMITS).unwrap();
        assert_eq!(Positions::of(&tree, text).0.len(), 4);
        assert!(Positions::of(&tree, "sum(x)").0.is_empty());
        for odd in ["(", "rate(", "{", "\"", "[", "é(", "a(,", "))", "@ start("] {
            let _no_panic = calls(odd);
        }
    }
}
