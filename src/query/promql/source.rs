//! From the text of a query to its tree: bounded first, then parsed.
//!
//! The parser recurses as deep as a query nests and compiles every pattern that it meets, so the
//! text is read once before: its length, its nesting and its patterns have bounds. Patterns are
//! handed past the parser as plain values with a mark, and are compiled within bounds later.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Once,
};

use promql_parser::{
    label::{self, MatchOp},
    parser::{self, Expr, Function, VectorSelector, register_extra_functions, value::ValueType},
};

use super::{
    PromqlError, PromqlLimits,
    durations::{QueryTimes, REACH_LABEL, resolve},
    literals, positions, wording,
};
use crate::{
    model::METRIC_TAG,
    query::{MatchOperator, SeriesMatcher, whole_pattern},
};

/// How deep operators and parentheses may nest: what a small stack holds in any build.
const DEPTH_MAX: usize = 128;

/// Before the value of a matcher that is more than `=`: the parser sees `=` only, so that it
/// compiles no pattern, and leaves it to others what must not be empty.
pub(super) const MARKS: [(&str, &str); 3] =
    [("=~", "\u{1}=~\u{1}"), ("!~", "\u{1}!~\u{1}"), ("!=", "\u{1}!=\u{1}")];

/// The operator and the value of a matcher that the parser has read.
pub(super) fn unmarked(value: &str) -> (&'static str, &str) {
    let marked = |(operator, mark)| Some((operator, value.strip_prefix(mark)?));
    MARKS.into_iter().find_map(marked).unwrap_or(("=", value))
}

/// Parses a query within bounds; with the times of a query also lengths of time that are calculated.
/// The values of other matchers than `=` come with [`MARKS`] before them.
pub(super) fn parse(
    text: &str,
    times: Option<QueryTimes>,
    limits: &PromqlLimits<'_>,
) -> Result<Expr, PromqlError> {
    if text.len() > limits.query_bytes_max {
        return Err(PromqlError::BadData(format!(
            "the query has {} bytes, more than {}: shorten it or raise promql.query_bytes_max",
            text.len(),
            limits.query_bytes_max
        )));
    }
    let resolved = times.map_or(Ok(text.into()), |times| resolve(text, times))?;
    parse_within_depth(&resolved, text)
}

/// The same for a text whose length is bounded; complaints name places in the original.
fn parse_within_depth(text: &str, original: &str) -> Result<Expr, PromqlError> {
    let marked = mark_patterns(text)?;
    know_more_functions();
    // The parser has panicked on odd input before; a query must not end a worker.
    let parsed = catch_unwind(AssertUnwindSafe(|| parser::parse(&marked)))
        .unwrap_or_else(|_| Err("the parser cannot read this query".to_owned()));
    parsed.map_err(|cause| {
        let plain = |text: String, (_, mark): (&str, &str)| text.replace(mark, "");
        let cause = wording::of_prometheus(&MARKS.into_iter().fold(cause, plain));
        // Of calls it is known where they stand.
        let called = OF_CALLS.iter().find_map(|before| {
            let (name, _) = cause.split_once(before)?.1.split_once('"')?;
            positions::first_call(original, name)
        });
        let place = called.map_or_else(String::new, |place| place + ": ");
        PromqlError::BadData(format!("{place}parse error: {cause}"))
    })
}

/// What stands before the name of a call in a complaint.
const OF_CALLS: [&str; 3] = ["in call to \"", "in call to function \"", "function with name \""];

/// Functions that Prometheus knew under another name.
fn know_more_functions() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let arguments = vec![ValueType::Matrix, ValueType::Scalar, ValueType::Scalar];
        let own = Function::new("holt_winters", arguments, 0, ValueType::Vector, false);
        // It fails only for names that are built in, and this is not.
        drop(register_extra_functions(vec![own]));
    });
}

/// Reads the text once: bounds the tree's depth, and marks patterns.
fn mark_patterns(text: &str) -> Result<String, PromqlError> {
    let mut out = String::with_capacity(text.len() + 64);
    let mut depth = Depth::default();
    let mut mark_next = "";
    let mut chars = text.chars().peekable();
    while let Some(now) = chars.next() {
        match now {
            '"' | '\'' | '`' => {
                literals::copy_string(now, std::mem::take(&mut mark_next), &mut chars, &mut out);
            }
            '#' => while chars.next_if(|next| *next != '\n').is_some() {},
            '=' | '!' if depth.now.braces => {
                let next = chars.next_if(|next| matches!((now, next), (_, '~') | ('!', '=')));
                let operator = [Some(now), next].into_iter().flatten().collect::<String>();
                let marked = MARKS.into_iter().find(|(own, _)| *own == operator);
                mark_next = marked.map_or("", |(_, mark)| mark);
                out.push(if marked.is_some() { '=' } else { now });
            }
            '0'..='9' if !out.ends_with(in_name) => {
                mark_next = "";
                let number = literals::number(now, &mut chars);
                number.chars().for_each(|now| depth.see(now));
                out.push_str(&number);
            }
            _ => {
                if !now.is_whitespace() {
                    mark_next = "";
                }
                depth.see(now);
                out.push(now);
            }
        }
    }
    let deepest = depth.deepest();
    if deepest > DEPTH_MAX {
        return Err(PromqlError::BadData(format!(
            "the query nests {deepest} operators and parentheses, more than {DEPTH_MAX}: split it"
        )));
    }
    Ok(out)
}

/// Whether a digit after this belongs to a name.
fn in_name(before: char) -> bool {
    before.is_alphanumeric() || matches!(before, '_' | ':')
}

const OPERATOR_WORDS: [&str; 4] = ["and", "or", "unless", "atan2"];
/// One more than the longest of them has.
const OPERATOR_WORD_BYTES_MAX: usize = 7;

/// How deep the tree of a text may become: a chain of operators is as deep as it is long.
#[derive(Default)]
struct Depth {
    /// The groups that are open.
    open: Vec<Level>,
    now: Level,
    word: String,
}

#[derive(Default)]
struct Level {
    braces: bool,
    operators: usize,
    /// The deepest group within the current argument, and the deepest argument before.
    inner: usize,
    before: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.before.max(self.operators + self.inner)
    }
}

impl Depth {
    fn see(&mut self, now: char) {
        if now.is_alphanumeric() || now == '_' {
            // Longer words are no operators.
            if self.word.len() < OPERATOR_WORD_BYTES_MAX {
                self.word.push(now.to_ascii_lowercase());
            }
            return;
        }
        let operator = OPERATOR_WORDS.contains(&self.word.as_str()) && !self.now.braces;
        self.now.operators += usize::from(operator);
        self.word.clear();
        match now {
            '(' | '[' | '{' => {
                let level = Level { braces: now == '{', ..Level::default() };
                self.open.push(std::mem::replace(&mut self.now, level));
            }
            ')' | ']' | '}' => {
                let inner = self.now.depth() + 1;
                self.now = self.open.pop().unwrap_or_default();
                // A bracket makes the expression before it one deeper, as an operator does.
                self.now.operators += usize::from(now == ']');
                self.now.inner = self.now.inner.max(inner);
            }
            ',' => {
                let before = self.now.depth();
                let braces = self.now.braces;
                self.now = Level { braces, before, ..Level::default() };
            }
            // A matcher is no operator.
            _ if self.now.braces => {}
            '+' | '-' | '*' | '/' | '%' | '^' | '<' | '>' | '=' | '!' => self.now.operators += 1,
            _ => {}
        }
    }

    /// Groups that are never closed count, too: the text may still be parsed.
    fn deepest(mut self) -> usize {
        while !self.open.is_empty() {
            self.see(')');
        }
        self.now.depth()
    }
}

/// The matchers of a series selector such as `up{job="a"}`, for lists of series: one set for each
/// alternative.
///
/// # Errors
/// When it is no selector, or all of its matchers match an empty value.
pub fn series_matchers(
    selector: &str,
    limits: &PromqlLimits<'_>,
) -> Result<Vec<Vec<SeriesMatcher>>, PromqlError> {
    let expression = parse(selector, None, limits)?;
    let Expr::VectorSelector(selector) = &expression else {
        return Err(PromqlError::BadData(format!(
            "parse error: {selector} is no series selector: write metric{{label=\"value\"}}"
        )));
    };
    matchers_of(selector, limits)
}

/// The first selector within an expression.
pub(super) fn first_selector(expression: &Expr) -> Option<&VectorSelector> {
    match expression {
        Expr::VectorSelector(selector) => Some(selector),
        Expr::MatrixSelector(matrix) => Some(&matrix.vs),
        Expr::Paren(inner) => first_selector(&inner.expr),
        Expr::Unary(inner) => first_selector(&inner.expr),
        Expr::Subquery(inner) => first_selector(&inner.expr),
        Expr::Aggregate(inner) => {
            first_selector(&inner.expr).or_else(|| first_selector(inner.param.as_deref()?))
        }
        Expr::Binary(inner) => first_selector(&inner.lhs).or_else(|| first_selector(&inner.rhs)),
        Expr::Call(call) => call.args.args.iter().find_map(|argument| first_selector(argument)),
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => None,
    }
}

/// The matchers of a selector of the tree, one set for each alternative.
pub(super) fn matchers_of(
    selector: &VectorSelector,
    limits: &PromqlLimits<'_>,
) -> Result<Vec<Vec<SeriesMatcher>>, PromqlError> {
    let sets = conditions_of(selector, limits)?;
    if sets.iter().any(|set| set.iter().all(|matcher| matcher.matches(""))) {
        return Err(PromqlError::BadData(
            "parse error: vector selector must contain at least one non-empty matcher".to_owned(),
        ));
    }
    Ok(sets)
}

/// The same, also where nothing but empty values is asked for.
pub(super) fn conditions_of(
    selector: &VectorSelector,
    limits: &PromqlLimits<'_>,
) -> Result<Vec<Vec<SeriesMatcher>>, PromqlError> {
    let alternatives = if selector.matchers.or_matchers.is_empty() {
        std::slice::from_ref(&selector.matchers.matchers)
    } else {
        &selector.matchers.or_matchers
    };
    let name = selector.name.as_deref().map(|name| SeriesMatcher::equal(METRIC_TAG, name));
    alternatives
        .iter()
        .map(|own| {
            let mut set: Vec<_> = name.iter().cloned().collect();
            for matcher in own.iter().filter(|matcher| matcher.name != REACH_LABEL) {
                set.push(matcher_of(matcher, limits)?);
            }
            Ok(set)
        })
        .collect()
}

fn matcher_of(
    matcher: &label::Matcher,
    limits: &PromqlLimits<'_>,
) -> Result<SeriesMatcher, PromqlError> {
    let compile = |pattern| whole_pattern(pattern, limits);
    let (operator, value) = unmarked(&matcher.value);
    let operator = match (&matcher.op, operator) {
        (MatchOp::Equal, "=~") | (MatchOp::Re(_), _) => MatchOperator::Pattern(compile(value)?),
        (MatchOp::Equal, "!~") | (MatchOp::NotRe(_), _) => {
            MatchOperator::NotPattern(compile(value)?)
        }
        (MatchOp::Equal, "!=") | (MatchOp::NotEqual, _) => {
            MatchOperator::NotEqual(value.to_owned())
        }
        (MatchOp::Equal, _) => MatchOperator::Equal(value.to_owned()),
    };
    Ok(SeriesMatcher { tag: matcher.name.clone(), operator })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::tests::LIMITS;

    #[test]
    fn patterns_are_not_compiled_by_the_parser() {
        let all = series_matchers(r#"up{a=~"x|y", b!~ '(?i)z', c="=~", d != "q"}"#, &LIMITS);
        let all = all.unwrap();
        let check = |values: [&str; 4]| {
            let tags = ["a", "b", "c", "d"];
            tags.iter().zip(values).all(|(tag, value)| {
                let of_tag = all[0].iter().filter(|matcher| matcher.tag == *tag);
                of_tag.clone().count() == 1 && of_tag.clone().all(|m| m.matches(value))
            })
        };
        assert!(check(["x", "", "=~", ""]));
        assert!(!check(["xy", "", "=~", ""]));
        assert!(!check(["x", "Z", "=~", ""]));
    }

    #[test]
    fn text_is_bounded_before_it_is_parsed() {
        let check = |text: &str| parse(text, None, &LIMITS).map(|_| ()).map_err(|e| e.to_string());
        for text in ["(", "-", "sum(", "!", "a[", "1+", "1 or ", "1-(", "a[1m:"] {
            for times in [1000, 100_000] {
                let refused = check(&text.repeat(times)).unwrap_err();
                assert!(refused.contains("split it") || refused.contains("bytes"), "{refused}");
            }
            let _no_overflow = check(&text.repeat(DEPTH_MAX / 2));
        }
        assert_eq!(check(&format!("1{}", "+1".repeat(DEPTH_MAX))), Ok(()));
        assert!(check(&format!("1{}", "+1".repeat(DEPTH_MAX + 1))).is_err());
        // What lies side by side is not deep.
        let wide = format!("label_join(up, {}\"x\")", "\"a\", ".repeat(500));
        assert_eq!(check(&wide), Ok(()));
        let matchers = "a=\"b\", c!=\"d\", ".repeat(300);
        assert_eq!(check(&format!("up{{{matchers}}}")), Ok(()));
    }

    #[test]
    fn odd_text_is_refused_without_a_panic() {
        for text in [
            "",
            "#",
            "up{",
            "up{a=~\"(\"",
            "\"",
            "up offset 99999999999999y",
            "x[1e400]",
            "x !~ 1",
            "x =~ 1",
            "{a=~\".*\"}}",
        ] {
            assert!(parse(text, None, &LIMITS).is_err(), "{text}");
        }
        assert!(series_matchers("{a=~\".*\"}", &LIMITS).is_err());
    }
}
