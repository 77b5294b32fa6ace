//! The tree of a query.
//!
//! Must never know: tokens, how anything is evaluated.

pub(crate) use super::value_type::ValueType;
use super::{
    duration_expr::DurationExpr,
    functions::Function,
    operator::{Aggregation, Operator},
    span::TextSpan,
};
use crate::{model::TagComparison, query::promql::value::windows::Extension};

/// An expression.
#[derive(Debug)]
pub(crate) enum Expr {
    /// `sum by (job) (up)`
    Aggregate(Aggregate),
    /// `a + on (job) b`
    Binary(Binary),
    /// `rate(up[5m])`
    Call(Call),
    /// `up[5m]`
    Matrix(MatrixSelector),
    /// `1`
    Number(Number),
    /// `(up)`
    Paren(Paren),
    /// `max(up)[1h:5m]`
    Subquery(Subquery),
    /// `"text"`
    Text(Text),
    /// `-up`
    Unary(Unary),
    /// `up`
    Vector(VectorSelector),
}

/// An aggregation over the labels of an instant vector.
#[derive(Debug)]
pub(crate) struct Aggregate {
    pub(crate) operation: Aggregation,
    pub(crate) input: Box<Expr>,
    /// The argument before the vector, for aggregations with a parameter.
    pub(crate) parameter: Option<Box<Expr>>,
    /// The labels that define the groups.
    pub(crate) grouping: Option<Grouping>,
    pub(crate) span: TextSpan,
}

/// Names of labels, which select these labels or all other labels.
#[derive(Debug)]
pub(crate) enum Grouping {
    /// `by` and `on`: these labels.
    Only(Vec<String>),
    /// `without` and `ignoring`: all other labels.
    Except(Vec<String>),
}

impl Grouping {
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::Only(names) | Self::Except(names) => names,
        }
    }

    /// Returns true for `by` and `on`, false for `without` and `ignoring`.
    pub(crate) fn is_only(&self) -> bool {
        matches!(self, Self::Only(_))
    }
}

/// Two operands and the operator between them.
#[derive(Debug)]
pub(crate) struct Binary {
    pub(crate) operator: Operator,
    /// The operand before the operator.
    pub(crate) left: Box<Expr>,
    /// The operand after the operator.
    pub(crate) right: Box<Expr>,
    /// The matching of series of the two operands.
    pub(crate) matching: Matching,
    /// True when a comparison returns 1 or 0 instead of keeping values.
    pub(crate) return_bool: bool,
    pub(crate) operator_span: TextSpan,
    pub(crate) span: TextSpan,
}

/// The matching of series of two operands.
#[derive(Debug, Default)]
pub(crate) struct Matching {
    /// The labels that must be equal; all labels when `None`.
    pub(crate) labels: Option<Grouping>,
    /// The operand that may have several series per match.
    pub(crate) many: ManySide,
    /// Labels that the result takes from the other operand.
    pub(crate) included: Vec<String>,
    /// The value of series that are missing on the left.
    pub(crate) fill_left: Option<f64>,
    /// The value of series that are missing on the right.
    pub(crate) fill_right: Option<f64>,
}

impl Matching {
    /// Returns true when missing series have a default value.
    pub(crate) fn has_fill(&self) -> bool {
        self.fill_left.is_some() || self.fill_right.is_some()
    }
}

/// The operand that may have several series per match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ManySide {
    /// Series match in pairs.
    #[default]
    Neither,
    /// The left operand (`group_left`).
    Left,
    /// The right operand (`group_right`).
    Right,
}

/// A call of a function.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: &'static Function,
    pub(crate) arguments: Vec<Expr>,
    pub(crate) span: TextSpan,
}

/// A range selector.
#[derive(Debug)]
pub(crate) struct MatrixSelector {
    /// The series, and their time shift.
    pub(crate) selector: VectorSelector,
    pub(crate) range: DurationExpr,
    pub(crate) span: TextSpan,
}

/// A number.
#[derive(Debug)]
pub(crate) struct Number {
    pub(crate) value: f64,
    /// True when the number is written as a duration: `5m` is 300.
    pub(crate) is_duration: bool,
    pub(crate) span: TextSpan,
}

/// An expression in parentheses.
#[derive(Debug)]
pub(crate) struct Paren {
    pub(crate) inner: Box<Expr>,
    pub(crate) span: TextSpan,
}

/// An expression evaluated at many times, for the windows of a function.
#[derive(Debug)]
pub(crate) struct Subquery {
    pub(crate) inner: Box<Expr>,
    pub(crate) range: DurationExpr,
    /// The step between the times; a default when `None`.
    pub(crate) step: Option<DurationExpr>,
    pub(crate) shift: Shift,
    pub(crate) span: TextSpan,
}

/// A text.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) value: String,
    pub(crate) span: TextSpan,
}

/// An expression with its sign changed.
#[derive(Debug)]
pub(crate) struct Unary {
    pub(crate) inner: Box<Expr>,
    pub(crate) span: TextSpan,
}

/// A selector of series.
#[derive(Debug)]
pub(crate) struct VectorSelector {
    /// The name before the braces.
    pub(crate) name: Option<String>,
    /// The sets of matchers, at least one. A series is selected when it fulfils all matchers of a
    /// set.
    pub(crate) alternatives: Vec<Vec<Matcher>>,
    pub(crate) shift: Shift,
    /// The extension beyond the windows.
    pub(crate) extension: Option<Extension>,
    /// The span from the name to the last modifier; within a range selector, up to the brackets.
    pub(crate) span: TextSpan,
}

/// A condition on the value of a label.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Matcher {
    pub(crate) label: String,
    pub(crate) comparison: TagComparison,
    /// The value, or the pattern, which is not compiled.
    pub(crate) value: String,
}

/// The time shift of a selector or a subquery.
#[derive(Debug, Default)]
pub(crate) struct Shift {
    /// The offset into the past.
    pub(crate) offset: Option<DurationExpr>,
    /// The time that replaces the evaluation time.
    pub(crate) at: Option<AtTime>,
}

/// The time of an `@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtTime {
    /// `@ start()`
    Start,
    /// `@ end()`
    End,
    /// Milliseconds since 1970.
    Millis(i64),
}

impl Expr {
    /// Returns the span of the expression.
    pub(crate) fn span(&self) -> TextSpan {
        match self {
            Self::Aggregate(Aggregate { span, .. })
            | Self::Binary(Binary { span, .. })
            | Self::Call(Call { span, .. })
            | Self::Matrix(MatrixSelector { span, .. })
            | Self::Number(Number { span, .. })
            | Self::Paren(Paren { span, .. })
            | Self::Subquery(Subquery { span, .. })
            | Self::Text(Text { span, .. })
            | Self::Unary(Unary { span, .. })
            | Self::Vector(VectorSelector { span, .. }) => *span,
        }
    }

    /// Returns the type of the expression's value.
    pub(crate) fn value_type(&self) -> ValueType {
        match self {
            Self::Aggregate(_) | Self::Vector(_) => ValueType::Vector,
            Self::Matrix(_) | Self::Subquery(_) => ValueType::Matrix,
            Self::Number(_) => ValueType::Scalar,
            Self::Text(_) => ValueType::Text,
            Self::Call(call) => call.function.result,
            Self::Paren(Paren { inner, .. }) | Self::Unary(Unary { inner, .. }) => {
                inner.value_type()
            }
            Self::Binary(Binary { left, right, .. }) => {
                let is_scalar = |side: &Self| side.value_type() == ValueType::Scalar;
                if is_scalar(left) && is_scalar(right) {
                    ValueType::Scalar
                } else {
                    ValueType::Vector
                }
            }
        }
    }

    /// Returns the expression without the parentheses around it.
    pub(crate) fn without_parens(&self) -> &Self {
        let mut expression = self;
        while let Self::Paren(paren) = expression {
            expression = &paren.inner;
        }
        expression
    }

    /// Returns the selector of an expression that is an instant or range selector, with or without
    /// parentheses.
    pub(crate) fn as_selector(&self) -> Option<&VectorSelector> {
        match self.without_parens() {
            Self::Vector(selector) => Some(selector),
            Self::Matrix(matrix) => Some(&matrix.selector),
            Self::Aggregate(_)
            | Self::Binary(_)
            | Self::Call(_)
            | Self::Number(_)
            | Self::Paren(_)
            | Self::Subquery(_)
            | Self::Text(_)
            | Self::Unary(_) => None,
        }
    }

    /// Returns the operands and arguments of the expression.
    pub(crate) fn children(&self) -> Vec<&Self> {
        match self {
            Self::Aggregate(Aggregate { input, parameter, .. }) => {
                std::iter::once(input).chain(parameter).map(|child| &**child).collect()
            }
            Self::Binary(Binary { left, right, .. }) => vec![left, right],
            Self::Call(call) => call.arguments.iter().collect(),
            Self::Paren(Paren { inner, .. })
            | Self::Subquery(Subquery { inner, .. })
            | Self::Unary(Unary { inner, .. }) => vec![inner],
            Self::Matrix(_) | Self::Number(_) | Self::Text(_) | Self::Vector(_) => Vec::new(),
        }
    }

    /// Returns all selectors within the expression.
    pub(crate) fn selectors(&self) -> Vec<&VectorSelector> {
        match self.as_selector() {
            Some(selector) => vec![selector],
            None => self.children().into_iter().flat_map(Self::selectors).collect(),
        }
    }
}
