//! Parsing of operands: literals, parentheses, calls, aggregations and the names of metrics.

use super::{
    super::{
        functions::function,
        operator::{Aggregation, Operator},
        span::{SyntaxError, TextSpan},
        token::{Keyword, Token},
        tree::{Aggregate, Call, Expr, Number, Paren, Shift, Text, VectorSelector},
    },
    Node, ParseResult, Parser, node_above,
};

/// The arguments of a call, with the height of the highest tree.
struct Arguments {
    all: Vec<Expr>,
    height: usize,
}

impl Parser<'_> {
    /// Reads an operand without its modifiers.
    pub(super) fn operand(&mut self) -> ParseResult<Node> {
        let start = self.span;
        match self.token {
            Token::LeftParen => self.paren(),
            Token::Aggregation(operation) => {
                let name = self.token_text();
                self.advance()?;
                let is_name = !matches!(
                    self.token,
                    Token::LeftParen | Token::Keyword(Keyword::By | Keyword::Without)
                );
                if is_name { self.selector(name, start) } else { self.aggregate(operation, start) }
            }
            Token::Identifier => {
                let name = self.token_text();
                self.advance()?;
                let is_call = self.token == Token::LeftParen;
                if is_call { self.call(name, start) } else { self.selector(name, start) }
            }
            Token::MetricIdentifier
            | Token::Operator(Operator::And | Operator::Or | Operator::Unless)
            | Token::Keyword(
                Keyword::By
                | Keyword::Without
                | Keyword::Offset
                | Keyword::Anchored
                | Keyword::Smoothed,
            ) => {
                let name = self.token_text();
                self.advance()?;
                self.selector(name, start)
            }
            Token::LeftBrace => self.selector("", start),
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> ParseResult<Node> {
        let expression = match self.token {
            Token::Number(value) => self.number(value, false)?,
            Token::Duration(millis) => self.number(millis as f64 / 1000.0, true)?,
            Token::Text => {
                let value = self.lexer.take_value();
                Expr::Text(Text { value, span: self.advance()? })
            }
            _ => return Err(self.unexpected_token("", "")),
        };
        Ok(Node::new(expression, 0))
    }

    fn number(&mut self, value: f64, is_duration: bool) -> ParseResult<Expr> {
        Ok(Expr::Number(Number { value, is_duration, span: self.advance()? }))
    }

    fn paren(&mut self) -> ParseResult<Node> {
        let opening = self.advance()?;
        let inner = self.expression(0)?;
        let span = opening.to(self.expect(Token::RightParen, "", "")?);
        node_above(inner.height, opening, Expr::Paren(Paren { inner: inner.expression, span }))
    }

    /// Reads the matchers of a selector; the name may be empty.
    fn selector(&mut self, name: &str, start: TextSpan) -> ParseResult<Node> {
        let has_braces = self.token == Token::LeftBrace;
        let alternatives = if has_braces { self.matchers()? } else { vec![Vec::new()] };
        let selector = VectorSelector {
            name: (!name.is_empty()).then(|| name.to_owned()),
            alternatives,
            shift: Shift::default(),
            extension: None,
            span: start.to(self.last),
        };
        Ok(Node::new(Expr::Vector(selector), 0))
    }

    fn call(&mut self, name: &str, start: TextSpan) -> ParseResult<Node> {
        let Arguments { all: arguments, height } = self.arguments()?;
        let function = function(name).ok_or_else(|| {
            SyntaxError::new(start, format!("unknown function with name {name:?}"))
        })?;
        let span = start.to(self.last);
        node_above(height, start, Expr::Call(Call { function, arguments, span }))
    }

    fn arguments(&mut self) -> ParseResult<Arguments> {
        self.advance()?;
        let mut arguments = Arguments { all: Vec::new(), height: 0 };
        if self.eat(Token::RightParen)? {
            return Ok(arguments);
        }
        loop {
            let Node { expression, height } = self.expression(0)?;
            arguments.all.push(*expression);
            arguments.height = arguments.height.max(height);
            if self.token != Token::Comma {
                self.expect(Token::RightParen, "", "")?;
                return Ok(arguments);
            }
            let comma = self.advance()?;
            if self.token == Token::RightParen {
                let problem = "trailing commas not allowed in function call args";
                return Err(SyntaxError::new(comma, problem));
            }
        }
    }

    /// Reads an aggregation after its name. The grouping is before or after the arguments.
    fn aggregate(&mut self, operation: Aggregation, start: TextSpan) -> ParseResult<Node> {
        let is_grouping = |token| matches!(token, Token::Keyword(Keyword::By | Keyword::Without));
        let mut grouping = None;
        if is_grouping(self.token) {
            grouping = Some(self.grouping(Keyword::By)?);
        }
        if self.token != Token::LeftParen {
            return Err(self.unexpected_token("aggregation", ""));
        }
        let Arguments { all: mut arguments, height } = self.arguments()?;
        if grouping.is_none() && is_grouping(self.token) {
            grouping = Some(self.grouping(Keyword::By)?);
        }
        let span = start.to(self.last);
        let (wanted, found) = (1 + usize::from(operation.has_parameter()), arguments.len());
        if found == 0 {
            let problem = "no arguments for aggregate expression provided";
            return Err(SyntaxError::new(span, problem));
        }
        let input = arguments.pop().filter(|_| wanted == found).ok_or_else(|| {
            let problem = format!(
                "wrong number of arguments for aggregate expression provided, expected {wanted}, \
                 got {found}"
            );
            SyntaxError::new(span, problem)
        })?;
        let (input, parameter) = (Box::new(input), arguments.pop().map(Box::new));
        let aggregate = Aggregate { operation, input, parameter, grouping, span };
        node_above(height, start, Expr::Aggregate(aggregate))
    }
}
