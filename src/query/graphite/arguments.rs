//! The arguments of a call: lines, numbers, texts and spans of time.
//!
//! Must never know: what a function computes.

use super::{
    aggregation::Aggregation,
    context::Context,
    line::Line,
    syntax::{Call, Expr},
    times::offset_seconds,
};
use crate::query::QueryError;

/// The arguments of a call, and the context of their evaluation.
pub(super) struct Arguments<'a> {
    pub(super) call: &'a Call,
    pub(super) context: &'a Context<'a>,
}

impl<'a> Arguments<'a> {
    pub(super) fn fault(&self, message: &str) -> QueryError {
        QueryError::Invalid(format!("{}: {message}", self.call.function))
    }

    /// Returns the name of the function.
    pub(super) fn function(&self) -> &'a str {
        &self.call.function
    }

    /// Returns an argument by its index or its name.
    pub(super) fn get(&self, index: usize, name: &str) -> Option<&'a Expr> {
        let named = || self.call.named.iter().find(|(known, _)| known == name);
        let found = self.call.arguments.get(index).or_else(|| named().map(|(_, value)| value));
        found.filter(|value| **value != Expr::Nothing)
    }

    /// Returns the lines of an argument.
    pub(super) fn lines(&self, index: usize) -> Result<Vec<Line>, QueryError> {
        self.lines_in_context(index, self.context)
    }

    /// Returns the lines of an argument in another context.
    pub(super) fn lines_in_context(
        &self,
        index: usize,
        context: &Context<'_>,
    ) -> Result<Vec<Line>, QueryError> {
        let names = ["seriesList", "seriesList2"];
        match self.get(index, names.get(index).copied().unwrap_or_default()) {
            Some(expr @ (Expr::Path(_) | Expr::Call(_))) => (context.evaluate)(expr, context),
            _ => Err(self.fault(&format!("argument {} must be a series", index + 1))),
        }
    }

    /// Returns the lines of all arguments.
    pub(super) fn all_lines(&self) -> Result<Vec<Line>, QueryError> {
        let mut all = self.lines(0)?;
        for index in 1..self.call.arguments.len() {
            all.extend(self.lines(index)?);
        }
        Ok(all)
    }

    pub(super) fn number(&self, index: usize, name: &str) -> Result<f64, QueryError> {
        self.optional_number(index, name)?
            .ok_or_else(|| self.fault(&format!("argument {} ({name}) must be a number", index + 1)))
    }

    pub(super) fn optional_number(
        &self,
        index: usize,
        name: &str,
    ) -> Result<Option<f64>, QueryError> {
        match self.get(index, name) {
            None => Ok(None),
            Some(Expr::Number(number)) => Ok(Some(*number)),
            // Grafana quotes numbers of some functions.
            Some(Expr::Text(text)) if text.parse::<f64>().is_ok_and(f64::is_finite) => {
                Ok(text.parse().ok())
            }
            Some(_) => {
                Err(self.fault(&format!("argument {} ({name}) must be a number", index + 1)))
            }
        }
    }

    /// Returns a count, or `default` when it is missing.
    pub(super) fn count(
        &self,
        index: usize,
        name: &str,
        default: usize,
    ) -> Result<usize, QueryError> {
        let number = self.optional_number(index, name)?;
        Ok(number.map_or(default, |number| number.max(0.0) as usize))
    }

    pub(super) fn text(&self, index: usize, name: &str) -> Result<&'a str, QueryError> {
        match self.get(index, name) {
            Some(Expr::Text(text) | Expr::Path(text)) => Ok(text),
            _ => Err(self.fault(&format!("argument {} ({name}) must be a text", index + 1))),
        }
    }

    /// Returns a text, or `default` when it is missing.
    pub(super) fn text_or(
        &self,
        index: usize,
        name: &str,
        default: &'a str,
    ) -> Result<&'a str, QueryError> {
        if self.get(index, name).is_none() { Ok(default) } else { self.text(index, name) }
    }

    pub(super) fn flag(&self, index: usize, name: &str) -> bool {
        matches!(self.get(index, name), Some(Expr::Bool(true)))
    }

    /// Returns an aggregation by its name.
    pub(super) fn aggregation(
        &self,
        index: usize,
        name: &str,
        default: &'a str,
    ) -> Result<Aggregation, QueryError> {
        Aggregation::named(self.text_or(index, name, default)?)
    }

    /// Returns a positive span of time in seconds.
    pub(super) fn seconds(&self, index: usize, name: &str) -> Result<i64, QueryError> {
        let text = self.text(index, name)?;
        let seconds = offset_seconds(text).map(i64::abs).filter(|seconds| *seconds > 0);
        seconds.ok_or_else(|| {
            let index = index + 1;
            self.fault(&format!("argument {index} ({name}) is {text:?}; use a span such as '1h'"))
        })
    }

    /// Returns the arguments from an index on as nodes: parts of the path by number, or tags by
    /// name.
    pub(super) fn nodes(&self, from: usize) -> Result<Vec<Node<'a>>, QueryError> {
        let nodes = self.call.arguments.iter().skip(from).map(|argument| match argument {
            Expr::Number(index) => Ok(Node::Part(*index as i64)),
            Expr::Text(tag) | Expr::Path(tag) => Ok(Node::Tag(tag)),
            Expr::Call(_) | Expr::Bool(_) | Expr::Nothing => {
                Err(self.fault("a node must be a number or the name of a tag"))
            }
        });
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        if nodes.is_empty() {
            return Err(self.fault("add the nodes, such as 1, or the names of tags"));
        }
        Ok(nodes)
    }
}

/// A part of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node<'a> {
    /// A part of the path, from 0, or from the end when negative.
    Part(i64),
    /// The value of a tag.
    Tag(&'a str),
}

/// Returns the path within a name, without the functions around the path and without tags.
pub(super) fn path_of(name: &str) -> &str {
    let inner = name.rsplit('(').next().unwrap_or(name);
    let end = inner.find([',', ')', ';']).unwrap_or(inner.len());
    inner.get(..end).unwrap_or(inner).trim_matches(['\'', '"'])
}

/// Returns the values of nodes joined by dots.
pub(super) fn key_of(line: &Line, nodes: &[Node<'_>]) -> String {
    let parts: Vec<_> = path_of(&line.name).split('.').collect();
    let value = |node: &Node<'_>| match node {
        Node::Part(index) => {
            let from_end = usize::try_from(-*index).ok().filter(|from_end| *from_end > 0);
            let index = match from_end {
                Some(from_end) => parts.len().checked_sub(from_end),
                None => usize::try_from(*index).ok(),
            };
            index.and_then(|index| parts.get(index).copied())
        }
        Node::Tag(tag) => line.tags.get(*tag).map(String::as_str),
    };
    let values: Vec<_> = nodes.iter().filter_map(value).collect();
    values.join(".")
}
