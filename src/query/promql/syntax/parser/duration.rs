//! Parsing of lengths of time in brackets and after `offset`.

use super::{
    super::{
        length::{Calculation, Length, Pick, millis_of},
        operator::Operator,
        span::{Span, SyntaxError},
        token::Token,
    },
    DEPTH_MAX, Parsed, Parser,
    modifiers::LENGTH,
    too_deep,
};
use crate::query::promql::value::steps::QueryTimes;

/// A calculation with the height of its tree.
struct Part {
    calculation: Calculation,
    height: usize,
}

/// The place of a duration, for messages.
#[derive(Clone, Copy)]
struct Context<'c> {
    name: &'c str,
    expected: &'c str,
}

impl Parser<'_> {
    /// Reads a length of time in brackets, where all operators belong to the length.
    pub(super) fn length(&mut self, name: &str, expected: &str) -> Parsed<Length> {
        let start = self.span;
        let part = self.calculation(Operator::Add.precedence(), Context { name, expected })?;
        finished(part, start.to(self.last))
    }

    /// Reads a length of time after `offset`. Operators after the length belong to the expression.
    pub(super) fn offset_length(&mut self) -> Parsed<Length> {
        let start = self.span;
        let context = Context { name: "offset", expected: LENGTH };
        let is_negative = self.signs()?;
        let part = self.part(context)?;
        let part = if is_negative { negative(part, start)? } else { part };
        finished(part, start.to(self.last))
    }

    /// Reads signs. Returns true when they result in a minus.
    fn signs(&mut self) -> Parsed<bool> {
        let mut is_negative = false;
        while let Token::Operator(Operator::Add | Operator::Subtract) = self.token {
            is_negative ^= self.token == Token::Operator(Operator::Subtract);
            self.advance()?;
        }
        Ok(is_negative)
    }

    /// Reads a calculation whose operators have at least the given precedence.
    fn calculation(&mut self, precedence_min: u8, context: Context<'_>) -> Parsed<Part> {
        self.enter()?;
        let start = self.span;
        let mut left = if self.signs()? {
            let part = self.calculation(Operator::Power.precedence(), context)?;
            negative(part, start)?
        } else {
            self.part(context)?
        };
        while let Token::Operator(operator) = self.token
            && operator.precedence() >= precedence_min
            && operator != Operator::Atan2
        {
            let at = self.advance()?;
            let right = self.calculation(operator.right_precedence(), context)?;
            let height = left.height.max(right.height);
            let sides = (Box::new(left.calculation), Box::new(right.calculation));
            left = above(height, at, Calculation::Binary(operator, sides.0, sides.1))?;
        }
        self.leave();
        Ok(left)
    }

    fn part(&mut self, context: Context<'_>) -> Parsed<Part> {
        let start = self.span;
        let calculation = match self.token {
            Token::Number(seconds) => Calculation::Seconds(seconds),
            Token::Duration(millis) => Calculation::Millis(millis),
            Token::LeftParen => {
                self.advance()?;
                let Part { calculation, height } =
                    self.calculation(Operator::Add.precedence(), context)?;
                self.expect(Token::RightParen, context.name, "\")\"")?;
                return above(height, start, Calculation::Paren(Box::new(calculation)));
            }
            Token::Identifier | Token::Aggregation(_) => return self.called(context),
            _ => return Err(self.unexpected(context.name, context.expected)),
        };
        self.advance()?;
        Ok(Part { calculation, height: 0 })
    }

    /// Reads `step()`, `range()`, or the smaller or larger of two calculations.
    fn called(&mut self, context: Context<'_>) -> Parsed<Part> {
        let (start, name) = (self.span, self.word().to_ascii_lowercase());
        let pick = Pick::ALL.into_iter().find(|pick| pick.name() == name);
        let calculation = match name.as_str() {
            "step" => Calculation::Step,
            "range" => Calculation::Range,
            _ => {
                let unexpected = || self.unexpected(context.name, context.expected);
                let pick = pick.ok_or_else(unexpected)?;
                self.advance()?;
                return self.pick(pick, start, context);
            }
        };
        self.advance()?;
        self.expect(Token::LeftParen, context.name, "\"(\"")?;
        self.expect(Token::RightParen, context.name, "\")\"")?;
        Ok(Part { calculation, height: 0 })
    }

    /// Reads both arguments of `min` and `max`.
    fn pick(&mut self, pick: Pick, start: Span, context: Context<'_>) -> Parsed<Part> {
        self.expect(Token::LeftParen, context.name, "\"(\"")?;
        let left = self.calculation(Operator::Add.precedence(), context)?;
        self.expect(Token::Comma, context.name, "\",\"")?;
        let right = self.calculation(Operator::Add.precedence(), context)?;
        self.expect(Token::RightParen, context.name, "\")\"")?;
        let height = left.height.max(right.height);
        let (left, right) = (Box::new(left.calculation), Box::new(right.calculation));
        above(height, start, Calculation::Pick(pick, left, right))
    }
}

fn negative(part: Part, at: Span) -> Parsed<Part> {
    match part.calculation {
        Calculation::Seconds(seconds) => {
            Ok(Part { calculation: Calculation::Seconds(-seconds), ..part })
        }
        Calculation::Millis(millis) => {
            Ok(Part { calculation: Calculation::Millis(-millis), ..part })
        }
        calculation => above(part.height, at, Calculation::Negative(Box::new(calculation))),
    }
}

/// Creates a part that is one level higher than its highest operand.
fn above(height: usize, at: Span, calculation: Calculation) -> Parsed<Part> {
    let height = height + 1;
    if height > DEPTH_MAX { Err(too_deep(at)) } else { Ok(Part { calculation, height }) }
}

/// Converts a calculation to a length. A calculation that does not depend on the query's times must
/// be in range.
fn finished(part: Part, span: Span) -> Parsed<Length> {
    let millis = match part.calculation {
        Calculation::Millis(millis) => Some(millis),
        Calculation::Seconds(seconds) => millis_of(seconds),
        calculation => {
            let is_constant = calculation.is_constant();
            let length = Length::Computed(Box::new(calculation), span);
            if is_constant {
                length.millis(QueryTimes::INSTANT)?;
            }
            return Ok(length);
        }
    };
    millis.map(Length::Millis).ok_or_else(|| SyntaxError::new(span, "duration out of range"))
}
