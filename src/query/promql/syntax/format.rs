//! Formatting of expressions; long expressions span several lines.
//!
//! The layout follows Prometheus' `format_query` (`promql/parser/prettier_rules.md`). Must never
//! know: tokens, values.

use super::{
    display::{AggregateHead, BinaryHead, Window},
    tree::{Expr, Unary},
};

/// Maximum length of an expression on one line.
const LINE_BYTES_MAX: usize = 100;
const INDENT: &str = "  ";

/// Formats an expression; long expressions span several lines.
pub(crate) fn format_expression(expression: &Expr) -> String {
    let mut out = String::new();
    write_lines(expression, 0, &mut out);
    out
}

/// Appends an expression, indented by its level.
fn write_lines(expression: &Expr, level: usize, out: &mut String) {
    let line = expression.to_string();
    let is_split = line.len() > LINE_BYTES_MAX;
    let indent = INDENT.repeat(level);
    let start = out.len();
    match expression {
        Expr::Unary(Unary { inner, .. }) => {
            write_lines(inner, level, out);
            let inner = out.split_off(start);
            out.push_str(&indent);
            out.push('-');
            out.push_str(inner.trim_start());
        }
        Expr::Subquery(subquery) => {
            write_lines(&subquery.inner, level, out);
            out.push_str(&Window(subquery).to_string());
        }
        Expr::Aggregate(aggregate) if is_split => {
            let arguments = aggregate.parameter.iter().chain([&aggregate.input]);
            let head = AggregateHead(aggregate).to_string();
            write_block(&head, arguments.map(|argument| &**argument), level, out);
        }
        Expr::Call(call) if is_split => {
            write_block(call.function.name, call.arguments.iter(), level, out);
        }
        Expr::Paren(paren) if is_split => {
            write_block("", std::iter::once(&*paren.inner), level, out);
        }
        Expr::Binary(binary) if is_split => {
            write_lines(&binary.left, level + 1, out);
            let head = BinaryHead(binary).to_string();
            for part in ["\n", &indent, &head, "\n"] {
                out.push_str(part);
            }
            write_lines(&binary.right, level + 1, out);
        }
        Expr::Aggregate(_)
        | Expr::Binary(_)
        | Expr::Call(_)
        | Expr::Matrix(_)
        | Expr::Number(_)
        | Expr::Paren(_)
        | Expr::Text(_)
        | Expr::Vector(_) => {
            out.push_str(&indent);
            out.push_str(&line);
        }
    }
}

/// Appends arguments in parentheses, each on lines of its own.
fn write_block<'e>(
    head: &str,
    arguments: impl Iterator<Item = &'e Expr>,
    level: usize,
    out: &mut String,
) {
    let indent = INDENT.repeat(level);
    for part in [&indent, head, "("] {
        out.push_str(part);
    }
    for (index, argument) in arguments.enumerate() {
        out.push_str(if index > 0 { ",\n" } else { "\n" });
        write_lines(argument, level + 1, out);
    }
    for part in ["\n", &indent, ")"] {
        out.push_str(part);
    }
}
