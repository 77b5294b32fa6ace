//! The evaluation of a parsed target to lines.
//!
//! Must never know: HTTP, how names are found, how numbers are read.

use super::{
    arguments::Arguments,
    context::Context,
    functions,
    line::Line,
    syntax::{Call, Expr},
};
use crate::query::QueryError;

/// Evaluates an expression.
///
/// # Errors
/// When a function is unknown, an argument is missing or wrong, or a limit is exceeded.
pub(super) fn evaluate(expr: &Expr, context: &Context<'_>) -> Result<Vec<Line>, QueryError> {
    match expr {
        Expr::Path(pattern) => context.lines_of_path(pattern),
        Expr::Call(call) => evaluate_call(call, context),
        Expr::Number(_) | Expr::Text(_) | Expr::Bool(_) | Expr::Nothing => {
            Err(QueryError::Invalid(format!("{expr} is not a series: use a path or a function")))
        }
    }
}

fn evaluate_call(call: &Call, context: &Context<'_>) -> Result<Vec<Line>, QueryError> {
    context.limits.budget.check()?;
    let function = functions::find(&call.function).ok_or_else(|| {
        QueryError::Invalid(format!(
            "the function {} is not supported; the supported functions are {}",
            call.function,
            functions::names().join(", ")
        ))
    })?;
    // Each function reserves the memory of the lines that it creates.
    function(&Arguments { call, context })
}
