//! Binary operators and aggregations: their names, and the precedence of operators.
//!
//! The source is Prometheus' grammar (`promql/parser/generated_parser.y`,
//! `docs/querying/operators.md`). Must never know: what operators compute.

use std::fmt;

use strum::VariantArray;

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(VariantArray))]
pub(crate) enum Operator {
    Or,
    And,
    Unless,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `</`: keeps the observations of a native histogram below a number.
    TrimUpper,
    /// `>/`: keeps the observations of a native histogram above a number.
    TrimLower,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Atan2,
    Power,
}

impl Operator {
    /// Returns the operator of a word in lower case.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        let words = [Self::And, Self::Or, Self::Unless, Self::Atan2];
        words.into_iter().find(|operator| operator.text() == word)
    }

    /// Returns the operator as it is written in a query.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Or => "or",
            Self::And => "and",
            Self::Unless => "unless",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::TrimUpper => "</",
            Self::TrimLower => ">/",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::Atan2 => "atan2",
            Self::Power => "^",
        }
    }

    /// Returns the precedence; operators with a larger number bind tighter.
    pub(super) fn precedence(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And | Self::Unless => 2,
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::Greater
            | Self::GreaterOrEqual
            | Self::TrimUpper
            | Self::TrimLower => 3,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide | Self::Modulo | Self::Atan2 => 5,
            Self::Power => 6,
        }
    }

    /// Returns the smallest precedence of operators within the right operand. All operators are
    /// left-associative, except `^`.
    pub(super) fn right_precedence(self) -> u8 {
        self.precedence() + u8::from(self != Self::Power)
    }

    /// Returns true for comparisons.
    pub(crate) fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::Less
                | Self::LessOrEqual
                | Self::Greater
                | Self::GreaterOrEqual
        )
    }

    /// Returns true for `and`, `or` and `unless`.
    pub(crate) fn is_set(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Unless)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// An aggregation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub(crate) enum Aggregation {
    Avg,
    Bottomk,
    Count,
    CountValues,
    Group,
    Limitk,
    LimitRatio,
    Max,
    Min,
    Quantile,
    Stddev,
    Stdvar,
    Sum,
    Topk,
}

impl Aggregation {
    /// Returns the aggregation of a word in lower case.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|aggregation| aggregation.name() == word)
    }

    /// Returns the aggregation's name in a query.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Avg => "avg",
            Self::Bottomk => "bottomk",
            Self::Count => "count",
            Self::CountValues => "count_values",
            Self::Group => "group",
            Self::Limitk => "limitk",
            Self::LimitRatio => "limit_ratio",
            Self::Max => "max",
            Self::Min => "min",
            Self::Quantile => "quantile",
            Self::Stddev => "stddev",
            Self::Stdvar => "stdvar",
            Self::Sum => "sum",
            Self::Topk => "topk",
        }
    }

    /// Returns true when the aggregation has a parameter before the vector.
    pub(super) fn has_parameter(self) -> bool {
        matches!(
            self,
            Self::Bottomk
                | Self::CountValues
                | Self::Limitk
                | Self::LimitRatio
                | Self::Quantile
                | Self::Topk
        )
    }
}

/// Returns the names of all aggregations.
#[cfg(test)]
pub(super) fn aggregation_names() -> Vec<&'static str> {
    Aggregation::VARIANTS.iter().map(|aggregation| aggregation.name()).collect()
}

/// Returns the texts of all operators.
#[cfg(test)]
pub(super) fn operator_texts() -> Vec<&'static str> {
    Operator::VARIANTS.iter().map(|operator| operator.text()).collect()
}
