//! Binary operators and aggregations: their names, and how tightly operators bind.
//!
//! The source is Prometheus' grammar (`promql/parser/generated_parser.y`,
//! `docs/querying/operators.md`). Must never know: what they compute.

use std::fmt;

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantArray))]
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
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Atan2,
    Power,
}

impl Operator {
    /// The operator of a word in lower case.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        let words = [Self::And, Self::Or, Self::Unless, Self::Atan2];
        words.into_iter().find(|operator| operator.text() == word)
    }

    /// The operator as it is written in a query.
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
            | Self::GreaterOrEqual => 3,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide | Self::Modulo | Self::Atan2 => 5,
            Self::Power => 6,
        }
    }

    /// The smallest precedence of operators within the right operand. All operators group from the
    /// left, except `^`.
    pub(super) fn right_precedence(self) -> u8 {
        self.precedence() + u8::from(self != Self::Power)
    }

    /// Returns true for comparisons.
    pub(crate) fn is_comparison(self) -> bool {
        self.precedence() == Self::Equal.precedence()
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// The aggregations, their names, and whether a parameter comes before the vector.
const AGGREGATIONS: [(Aggregation, &str, bool); 14] = [
    (Aggregation::Avg, "avg", false),
    (Aggregation::Bottomk, "bottomk", true),
    (Aggregation::Count, "count", false),
    (Aggregation::CountValues, "count_values", true),
    (Aggregation::Group, "group", false),
    (Aggregation::Limitk, "limitk", true),
    (Aggregation::LimitRatio, "limit_ratio", true),
    (Aggregation::Max, "max", false),
    (Aggregation::Min, "min", false),
    (Aggregation::Quantile, "quantile", true),
    (Aggregation::Stddev, "stddev", false),
    (Aggregation::Stdvar, "stdvar", false),
    (Aggregation::Sum, "sum", false),
    (Aggregation::Topk, "topk", true),
];

impl Aggregation {
    /// The aggregation of a word in lower case.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        let found = AGGREGATIONS.iter().find(|(_, name, _)| *name == word);
        found.map(|(aggregation, ..)| *aggregation)
    }

    /// The aggregation's name in a query.
    pub(crate) fn name(self) -> &'static str {
        AGGREGATIONS[self as usize].1
    }

    /// Returns true when the aggregation has a parameter before the vector.
    pub(super) fn has_parameter(self) -> bool {
        AGGREGATIONS[self as usize].2
    }
}

/// The names of all aggregations.
#[cfg(test)]
pub(super) fn aggregation_names() -> Vec<&'static str> {
    AGGREGATIONS.iter().map(|(_, name, _)| *name).collect()
}

/// The texts of all operators.
#[cfg(test)]
pub(super) fn operator_texts() -> Vec<&'static str> {
    <Operator as strum::VariantArray>::VARIANTS.iter().map(|operator| operator.text()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregations_are_listed_in_the_order_of_their_declaration() {
        for (index, (aggregation, name, _)) in AGGREGATIONS.into_iter().enumerate() {
            assert_eq!((aggregation as usize, aggregation.name()), (index, name));
        }
    }
}
