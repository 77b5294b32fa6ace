//! Parsing of durations in brackets and after `offset`.

use super::{
    super::{
        duration_expr::{Calculation, Choice, DurationExpr, millis_of},
        operator::Operator,
        span::{SyntaxError, TextSpan},
        token::Token,
    },
    DEPTH_MAX, ParseResult, Parser,
    modifiers::DURATION_FORMS,
    too_deep,
};
use crate::query::promql::value::steps::QueryTimes;

/// A calculation with the height of its tree.
struct DurationNode {
    calculation: Calculation,
    height: usize,
}

/// The context of a duration, for messages.
#[derive(Clone, Copy)]
struct MessageContext<'c> {
    name: &'c str,
    expected: &'c str,
}

impl Parser<'_> {
    /// Reads a duration in brackets, where all operators belong to the duration.
    pub(super) fn duration(&mut self, name: &str, expected: &str) -> ParseResult<DurationExpr> {
        let start = self.span;
        let node =
            self.calculation(Operator::Add.precedence(), MessageContext { name, expected })?;
        to_duration(node, start.to(self.last))
    }

    /// Reads a duration after `offset`. Operators after the duration belong to the expression.
    pub(super) fn offset_duration(&mut self) -> ParseResult<DurationExpr> {
        let start = self.span;
        let context = MessageContext { name: "offset", expected: DURATION_FORMS };
        let is_negative = self.signs()?;
        let node = self.duration_operand(context)?;
        let node = if is_negative { negate(node, start)? } else { node };
        to_duration(node, start.to(self.last))
    }

    /// Reads signs. Returns true when they result in a minus.
    fn signs(&mut self) -> ParseResult<bool> {
        let mut is_negative = false;
        while let Token::Operator(Operator::Add | Operator::Subtract) = self.token {
            is_negative ^= self.token == Token::Operator(Operator::Subtract);
            self.advance()?;
        }
        Ok(is_negative)
    }

    /// Reads a calculation whose operators have at least the given precedence.
    fn calculation(
        &mut self,
        precedence_min: u8,
        context: MessageContext<'_>,
    ) -> ParseResult<DurationNode> {
        self.enter()?;
        let start = self.span;
        let mut left = if self.signs()? {
            let node = self.calculation(Operator::Power.precedence(), context)?;
            negate(node, start)?
        } else {
            self.duration_operand(context)?
        };
        while let Token::Operator(operator) = self.token
            && operator.precedence() >= precedence_min
            && operator != Operator::Atan2
        {
            let at = self.advance()?;
            let right = self.calculation(operator.right_precedence(), context)?;
            let height = left.height.max(right.height);
            let sides = (Box::new(left.calculation), Box::new(right.calculation));
            left = node_above(height, at, Calculation::Binary(operator, sides.0, sides.1))?;
        }
        self.leave();
        Ok(left)
    }

    fn duration_operand(&mut self, context: MessageContext<'_>) -> ParseResult<DurationNode> {
        let start = self.span;
        let calculation = match self.token {
            Token::Number(seconds) => Calculation::Seconds(seconds),
            Token::Duration(millis) => Calculation::Millis(millis),
            Token::LeftParen => {
                self.advance()?;
                let DurationNode { calculation, height } =
                    self.calculation(Operator::Add.precedence(), context)?;
                self.expect(Token::RightParen, context.name, "\")\"")?;
                return node_above(height, start, Calculation::Paren(Box::new(calculation)));
            }
            Token::Identifier | Token::Aggregation(_) => return self.duration_function(context),
            _ => return Err(self.unexpected_token(context.name, context.expected)),
        };
        self.advance()?;
        Ok(DurationNode { calculation, height: 0 })
    }

    /// Reads `step()`, `range()`, or the smaller or larger of two calculations.
    fn duration_function(&mut self, context: MessageContext<'_>) -> ParseResult<DurationNode> {
        let (start, name) = (self.span, self.token_text().to_ascii_lowercase());
        let choice = Choice::ALL.into_iter().find(|choice| choice.name() == name);
        let calculation = match name.as_str() {
            "step" => Calculation::Step,
            "range" => Calculation::Range,
            _ => {
                let unexpected = || self.unexpected_token(context.name, context.expected);
                let choice = choice.ok_or_else(unexpected)?;
                self.advance()?;
                return self.choice(choice, start, context);
            }
        };
        self.advance()?;
        self.expect(Token::LeftParen, context.name, "\"(\"")?;
        self.expect(Token::RightParen, context.name, "\")\"")?;
        Ok(DurationNode { calculation, height: 0 })
    }

    /// Reads both arguments of `min` and `max`.
    fn choice(
        &mut self,
        choice: Choice,
        start: TextSpan,
        context: MessageContext<'_>,
    ) -> ParseResult<DurationNode> {
        self.expect(Token::LeftParen, context.name, "\"(\"")?;
        let left = self.calculation(Operator::Add.precedence(), context)?;
        self.expect(Token::Comma, context.name, "\",\"")?;
        let right = self.calculation(Operator::Add.precedence(), context)?;
        self.expect(Token::RightParen, context.name, "\")\"")?;
        let height = left.height.max(right.height);
        let (left, right) = (Box::new(left.calculation), Box::new(right.calculation));
        node_above(height, start, Calculation::Choice(choice, left, right))
    }
}

fn negate(node: DurationNode, at: TextSpan) -> ParseResult<DurationNode> {
    match node.calculation {
        Calculation::Seconds(seconds) => {
            Ok(DurationNode { calculation: Calculation::Seconds(-seconds), ..node })
        }
        Calculation::Millis(millis) => {
            Ok(DurationNode { calculation: Calculation::Millis(-millis), ..node })
        }
        calculation => node_above(node.height, at, Calculation::Negative(Box::new(calculation))),
    }
}

/// Creates a node that is one level higher than its highest operand.
fn node_above(height: usize, at: TextSpan, calculation: Calculation) -> ParseResult<DurationNode> {
    let height = height + 1;
    if height > DEPTH_MAX { Err(too_deep(at)) } else { Ok(DurationNode { calculation, height }) }
}

/// Converts a calculation to a duration. A calculation that does not depend on the query's times
/// must be in range.
fn to_duration(node: DurationNode, span: TextSpan) -> ParseResult<DurationExpr> {
    let millis = match node.calculation {
        Calculation::Millis(millis) => Some(millis),
        Calculation::Seconds(seconds) => millis_of(seconds),
        calculation => {
            let is_constant = calculation.is_constant();
            let duration = DurationExpr::Computed(Box::new(calculation), span);
            if is_constant {
                duration.millis(QueryTimes::INSTANT)?;
            }
            return Ok(duration);
        }
    };
    millis.map(DurationExpr::Millis).ok_or_else(|| SyntaxError::new(span, "duration out of range"))
}
