//! From the text of a query to its tree: bounded first, then parsed.
//!
//! What the parser lacks is replaced in the text (`extensions`); length, nesting and patterns are
//! bounded (`guard`); its complaints become Prometheus' (`messages`). Behind it, the tree is asked for
//! what a selector says (`selector`) and where calls stand in the text (`positions`). Must never know:
//! the store, how anything is evaluated.

pub(crate) mod durations;
mod extensions;
pub(crate) mod format;
mod guard;
mod literals;
mod messages;
pub(crate) mod positions;
pub(crate) mod rules;
pub(crate) mod selector;
pub(crate) mod tree;

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Once},
};

use promql_parser::parser::{self, Expr, Function, register_extra_functions, value::ValueType};

use crate::query::promql::{request::PromqlLimits, value::error::PromqlError};
use durations::QueryTimes;
use extensions::resolve;
use guard::{MARKS, mark_patterns};
use positions::Positions;

/// Parses a query within bounds, without lengths of time that are calculated. The values of other
/// matchers than `=` come marked (`guard.rs`).
pub(crate) fn parse(text: &str, limits: &PromqlLimits<'_>) -> Result<Expr, PromqlError> {
    check_length(text, limits)?;
    parse_within_depth(text, text)
}

/// A query that was parsed.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// Places go by the addresses of its nodes, so it stays where it is.
    pub(crate) tree: Arc<Expr>,
    pub(crate) positions: Positions,
}

impl Parsed {
    /// Parses a text whose length is bounded; complaints and places are those of the original.
    pub(crate) fn of(text: &str, original: &str) -> Result<Self, PromqlError> {
        let tree = Arc::new(parse_within_depth(text, original)?);
        let positions = Positions::of(&tree, original);
        Ok(Self { tree, positions })
    }
}

/// The same of a query at these times, with the places of its calls; one that was parsed lately is
/// taken as it is.
pub(crate) fn parse_at(
    text: &str,
    times: QueryTimes,
    limits: &PromqlLimits<'_>,
) -> Result<Arc<Parsed>, PromqlError> {
    check_length(text, limits)?;
    let resolved = resolve(text, times)?;
    let is_plain = *resolved == *text;
    let key = if is_plain { Cow::Borrowed(text) } else { format!("{resolved}\0{text}").into() };
    let remembered = limits.budget.remembered();
    if let Some(known) = remembered.and_then(|own| own.query(&key)) {
        return Ok(known);
    }
    let parsed = Arc::new(Parsed::of(&resolved, text)?);
    if let Some(remembered) = remembered {
        remembered.keep_query(&key, parsed.clone());
    }
    Ok(parsed)
}

fn check_length(text: &str, limits: &PromqlLimits<'_>) -> Result<(), PromqlError> {
    if text.len() > limits.query_bytes_max {
        return Err(PromqlError::BadData(format!(
            "the query has {} bytes, more than {}: shorten it or raise promql.query_bytes_max",
            text.len(),
            limits.query_bytes_max
        )));
    }
    Ok(())
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
        let cause = messages::of_prometheus(&MARKS.into_iter().fold(cause, plain));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::{
        parse::{guard::DEPTH_MAX, selector::series_matchers},
        tests::LIMITS,
    };

    #[test]
    fn text_is_bounded_before_it_is_parsed() {
        let check = |text: &str| parse(text, &LIMITS).map(|_| ()).map_err(|e| e.to_string());
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
            assert!(parse(text, &LIMITS).is_err(), "{text}");
        }
        assert!(series_matchers("{a=~\".*\"}", &LIMITS).is_err());
    }
}
