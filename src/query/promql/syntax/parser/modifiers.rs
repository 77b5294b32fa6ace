//! Parsing of modifiers after an operand: ranges, subqueries, `offset`, `@`, `anchored` and
//! `smoothed`.

use super::{
    super::{
        duration_expr::DurationExpr,
        literal::MILLIS_MAX,
        operator::Operator,
        span::{SyntaxError, TextSpan},
        token::{Keyword, Token},
        tree::{AtTime, Expr, MatrixSelector, Shift, Subquery},
    },
    Node, ParseResult, Parser, node_above,
};
use crate::query::promql::value::{steps::QueryTimes, windows::Extension};

/// The valid forms of a duration, for messages.
pub(super) const DURATION_FORMS: &str = "number, duration, step(), or range()";

impl Parser<'_> {
    /// Reads an operand and its modifiers.
    pub(super) fn operand_with_modifiers(&mut self) -> ParseResult<Node> {
        let mut node = self.operand()?;
        loop {
            match self.token {
                Token::LeftBracket => node = self.range_or_subquery(node)?,
                Token::Keyword(Keyword::Offset) => self.offset(&mut node.expression)?,
                Token::At => self.parse_at(&mut node.expression)?,
                Token::Keyword(Keyword::Anchored) => {
                    self.extend(&mut node.expression, Extension::Anchored)?;
                }
                Token::Keyword(Keyword::Smoothed) => {
                    self.extend(&mut node.expression, Extension::Smoothed)?;
                }
                _ => return Ok(node),
            }
        }
    }

    /// Reads the range of a selector, or the range and the step of a subquery.
    fn range_or_subquery(&mut self, node: Node) -> ParseResult<Node> {
        let opening = self.advance()?;
        let range = self.positive_duration("subquery or range selector", DURATION_FORMS)?;
        if !self.eat(Token::Colon)? {
            let close = self.expect(Token::RightBracket, "subquery or range", "\":\" or \"]\"")?;
            return matrix(node, range, opening.to(close));
        }
        let step = if self.token == Token::RightBracket {
            None
        } else {
            const EXPECTED: &str = "number, duration, step(), range(), or \"]\"";
            Some(self.positive_duration("subquery selector", EXPECTED)?)
        };
        let close = self.expect(Token::RightBracket, "subquery selector", "\"]\"")?;
        let span = node.expression.span().to(close);
        let (inner, shift) = (node.expression, Shift::default());
        node_above(
            node.height,
            opening,
            Expr::Subquery(Subquery { inner, range, step, shift, span }),
        )
    }

    /// Reads a duration. A duration that does not depend on the query's times must be positive.
    fn positive_duration(&mut self, context: &str, expected: &str) -> ParseResult<DurationExpr> {
        let start = self.span;
        let duration = self.duration(context, expected)?;
        let is_constant = match &duration {
            DurationExpr::Millis(_) => true,
            DurationExpr::Computed(calculation, _) => calculation.is_constant(),
        };
        if is_constant {
            let placed = |error| SyntaxError { span: start.to(self.last), ..error };
            duration.positive_millis(QueryTimes::INSTANT).map_err(placed)?;
        }
        Ok(duration)
    }

    fn offset(&mut self, expression: &mut Expr) -> ParseResult<()> {
        self.advance()?;
        let offset = self.offset_duration()?;
        let last = self.last;
        let shift = shift_of(expression, "offset modifier")?;
        if shift.offset.replace(offset).is_some() {
            let problem = "offset may not be set multiple times";
            return Err(SyntaxError::new(expression.span(), problem));
        }
        expression.extend_to(last);
        Ok(())
    }

    fn parse_at(&mut self, expression: &mut Expr) -> ParseResult<()> {
        self.advance()?;
        let at = self.time(expression.span())?;
        let last = self.last;
        let shift = shift_of(expression, "@ modifier")?;
        if shift.at.replace(at).is_some() {
            let problem = "@ <timestamp> may not be set multiple times";
            return Err(SyntaxError::new(expression.span(), problem));
        }
        expression.extend_to(last);
        Ok(())
    }

    /// Reads the time of an `@`.
    fn time(&mut self, selector: TextSpan) -> ParseResult<AtTime> {
        const CONTEXT: (&str, &str) = ("@", "timestamp");
        if self.token == Token::Identifier {
            let at = match self.token_text().to_ascii_lowercase().as_str() {
                "start" => AtTime::Start,
                "end" => AtTime::End,
                _ => return Err(self.unexpected_token(CONTEXT.0, CONTEXT.1)),
            };
            self.advance()?;
            self.expect(Token::LeftParen, CONTEXT.0, CONTEXT.1)?;
            self.expect(Token::RightParen, CONTEXT.0, CONTEXT.1)?;
            return Ok(at);
        }
        let is_negative = self.token == Token::Operator(Operator::Subtract);
        if is_negative || self.token == Token::Operator(Operator::Add) {
            self.advance()?;
        }
        let seconds = match self.token {
            Token::Number(value) => value,
            Token::Duration(millis) => millis as f64 / 1000.0,
            _ => return Err(self.unexpected_token(CONTEXT.0, CONTEXT.1)),
        };
        self.advance()?;
        let seconds = if is_negative { -seconds } else { seconds };
        if seconds.is_nan() || seconds.abs() >= i64::MAX as f64 {
            let problem = format!("timestamp out of bounds for @ modifier: {seconds:e}");
            return Err(SyntaxError::new(selector, problem));
        }
        let millis = (seconds * 1000.0).round().clamp(-(MILLIS_MAX as f64), MILLIS_MAX as f64);
        Ok(AtTime::Millis(millis as i64))
    }

    /// Reads `anchored` or `smoothed`.
    fn extend(&mut self, expression: &mut Expr, extension: Extension) -> ParseResult<()> {
        let name = self.token_text();
        self.advance()?;
        let (last, span) = (self.last, expression.span());
        let current = match expression {
            Expr::Vector(selector) => &mut selector.extension,
            Expr::Matrix(matrix) => &mut matrix.selector.extension,
            Expr::Subquery(_) => {
                let problem = format!("{name} modifier is not supported for subqueries");
                return Err(SyntaxError::new(span, problem));
            }
            _ => {
                let problem = format!("{name} modifier must be preceded by a selector");
                return Err(SyntaxError::new(span, problem));
            }
        };
        if current.replace(extension).is_some_and(|before| before != extension) {
            let problem = "anchored and smoothed modifiers cannot be used together";
            return Err(SyntaxError::new(span, problem));
        }
        expression.extend_to(last);
        Ok(())
    }
}

fn matrix(node: Node, range: DurationExpr, brackets: TextSpan) -> ParseResult<Node> {
    let problem = match &*node.expression {
        Expr::Vector(selector) if selector.shift.offset.is_some() => {
            "no offset modifiers allowed before range"
        }
        Expr::Vector(selector) if selector.shift.at.is_some() => {
            "no @ modifiers allowed before range"
        }
        Expr::Vector(_) => "",
        _ => "ranges only allowed for vector selectors",
    };
    match *node.expression {
        Expr::Vector(selector) if problem.is_empty() => {
            let span = selector.span.to(brackets);
            let expression = Expr::Matrix(MatrixSelector { selector, range, span });
            Ok(Node::new(expression, node.height))
        }
        _ => Err(SyntaxError::new(brackets, problem)),
    }
}

fn shift_of<'e>(expression: &'e mut Expr, modifier: &str) -> ParseResult<&'e mut Shift> {
    let span = expression.span();
    match expression {
        Expr::Vector(selector) => Ok(&mut selector.shift),
        Expr::Matrix(matrix) => Ok(&mut matrix.selector.shift),
        Expr::Subquery(subquery) => Ok(&mut subquery.shift),
        _ => {
            let problem = format!(
                "{modifier} must be preceded by an instant vector selector or range vector \
                 selector or a subquery"
            );
            Err(SyntaxError::new(span, problem))
        }
    }
}

impl Expr {
    /// Extends the span of a selector or a subquery to the end of a modifier.
    fn extend_to(&mut self, last: TextSpan) {
        let span = match self {
            Self::Vector(selector) => &mut selector.span,
            Self::Matrix(matrix) => &mut matrix.span,
            Self::Subquery(subquery) => &mut subquery.span,
            _ => return,
        };
        span.end = last.end;
    }
}
