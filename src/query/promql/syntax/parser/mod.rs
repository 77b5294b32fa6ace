//! Parsing of tokens to a tree, by recursive descent and operator precedence.
//!
//! Two limits bound the depth. The parser checks the depth of its recursion before it descends, and
//! the height of an operand's tree before it adds a node on top. Chains of operators grow without
//! recursion, but their trees are as high as the chains are long. Must never know: types, values.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a parser refuses every token that it does not name"
)]

mod duration;
mod labels;
mod modifiers;
mod operand;
#[cfg(test)]
mod tests;

use super::{
    check::check,
    lexer::Lexer,
    operator::Operator,
    span::{SyntaxError, TextSpan},
    token::{Keyword, Token},
    tree::{Binary, Expr, ManySide, Matching, Unary},
};

/// Maximum nesting of operators and parentheses, which fits a small stack in any build.
pub(crate) const DEPTH_MAX: usize = 128;
/// Levels of recursion without a node: the whole query, and a number after its sign.
const LEVELS_WITHOUT_NODE: usize = 2;

/// Parses and checks a query.
///
/// # Errors
/// When the text has more than `bytes_max` bytes, nests too deep, or is not an expression.
pub(crate) fn parse(text: &str, bytes_max: usize) -> Result<Expr, SyntaxError> {
    let bytes_max = bytes_max.min(u32::MAX as usize);
    if text.len() > bytes_max {
        let problem =
            format!("the query has {} bytes, more than {bytes_max}: shorten it", text.len());
        return Err(SyntaxError::new(TextSpan::default(), problem));
    }
    let mut parser = Parser::new(text)?;
    if parser.token == Token::End {
        return Err(SyntaxError::new(TextSpan::default(), "no expression found in input"));
    }
    let Node { expression, .. } = parser.expression(0)?;
    if parser.token != Token::End {
        return Err(parser.unexpected_token("", ""));
    }
    check(&expression)?;
    Ok(*expression)
}

/// A parser, which reads one token ahead.
struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The next token.
    token: Token,
    /// The span of the next token.
    span: TextSpan,
    /// The span of the previous token.
    last: TextSpan,
    /// The current depth of recursion.
    depth: usize,
}

/// An expression with the height of its tree.
struct Node {
    /// The expression, in a box, so that the frames of the recursion stay small.
    expression: Box<Expr>,
    height: usize,
}

impl Node {
    fn new(expression: Expr, height: usize) -> Self {
        Self { expression: Box::new(expression), height }
    }
}

type ParseResult<T> = Result<T, SyntaxError>;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> ParseResult<Self> {
        let mut lexer = Lexer::new(text);
        let (token, span) = lexer.next()?;
        Ok(Self { text, lexer, token, span, last: TextSpan::default(), depth: 0 })
    }

    /// Consumes the next token and returns its span.
    fn advance(&mut self) -> ParseResult<TextSpan> {
        self.last = self.span;
        (self.token, self.span) = self.lexer.next()?;
        Ok(self.last)
    }

    /// Consumes the next token if it equals `token`. Returns true when it does.
    fn eat(&mut self, token: Token) -> ParseResult<bool> {
        let is_next = self.token == token;
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn eat_keyword(&mut self, keyword: Keyword) -> ParseResult<bool> {
        self.eat(Token::Keyword(keyword))
    }

    /// Consumes the next token, which must equal `token`.
    fn expect(&mut self, token: Token, context: &str, expected: &str) -> ParseResult<TextSpan> {
        if self.token == token {
            self.advance()
        } else {
            Err(self.unexpected_token(context, expected))
        }
    }

    /// Returns the text of the next token.
    fn token_text(&self) -> &'a str {
        self.span.text_in(self.text)
    }

    /// Returns an error about the next token.
    fn unexpected_token(&self, context: &str, expected: &str) -> SyntaxError {
        let mut problem = format!("unexpected {}", self.token.description(self.token_text()));
        if !context.is_empty() {
            problem += " in ";
            problem += context;
        }
        if !expected.is_empty() {
            problem += ", expected ";
            problem += expected;
        }
        SyntaxError::new(self.span, problem)
    }

    /// Enters a level of recursion before its first token is read.
    fn enter(&mut self) -> ParseResult<()> {
        self.depth += 1;
        let is_deep = self.depth > DEPTH_MAX + LEVELS_WITHOUT_NODE;
        if is_deep { Err(too_deep(self.span)) } else { Ok(()) }
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Reads an expression whose operators have at least the given precedence.
    fn expression(&mut self, precedence_min: u8) -> ParseResult<Node> {
        self.enter()?;
        let mut left = self.signed_operand()?;
        while let Token::Operator(operator) = self.token
            && operator.precedence() >= precedence_min
        {
            left = self.binary(left, operator)?;
        }
        self.leave();
        Ok(left)
    }

    fn binary(&mut self, left: Node, operator: Operator) -> ParseResult<Node> {
        let operator_span = self.advance()?;
        let return_bool = self.eat_keyword(Keyword::Bool)?;
        let matching = self.parse_matching()?;
        let right = self.expression(operator.right_precedence())?;
        let height = left.height.max(right.height);
        let (left, right) = (left.expression, right.expression);
        let span = left.span().to(right.span());
        let binary = Binary { operator, left, right, matching, return_bool, operator_span, span };
        node_above(height, operator_span, Expr::Binary(binary))
    }

    /// Reads the modifiers that define how series of two operands match.
    fn parse_matching(&mut self) -> ParseResult<Matching> {
        let mut matching = Matching::default();
        if matches!(self.token, Token::Keyword(Keyword::On | Keyword::Ignoring)) {
            matching.labels = Some(self.grouping(Keyword::On)?);
            matching.many = match self.token {
                Token::Keyword(Keyword::GroupLeft) => ManySide::Left,
                Token::Keyword(Keyword::GroupRight) => ManySide::Right,
                _ => ManySide::Neither,
            };
            if matching.many != ManySide::Neither {
                self.advance()?;
                if self.token == Token::LeftParen {
                    matching.included = self.label_names()?;
                }
            }
        }
        if self.eat_keyword(Keyword::Fill)? {
            let value = self.fill_value()?;
            (matching.fill_left, matching.fill_right) = (Some(value), Some(value));
            return Ok(matching);
        }
        loop {
            let side = match self.token {
                Token::Keyword(Keyword::FillLeft) => &mut matching.fill_left,
                Token::Keyword(Keyword::FillRight) => &mut matching.fill_right,
                _ => return Ok(matching),
            };
            if side.is_some() {
                return Err(self.unexpected_token("", ""));
            }
            self.advance()?;
            *side = Some(self.fill_value()?);
        }
    }

    fn fill_value(&mut self) -> ParseResult<f64> {
        const CONTEXT: &str = "fill modifier";
        self.expect(Token::LeftParen, CONTEXT, "\"(\"")?;
        let is_negative = self.token == Token::Operator(Operator::Subtract);
        if is_negative || self.token == Token::Operator(Operator::Add) {
            self.advance()?;
        }
        let Token::Number(value) = self.token else {
            return Err(self.unexpected_token(CONTEXT, "number"));
        };
        self.advance()?;
        self.expect(Token::RightParen, CONTEXT, "\")\"")?;
        Ok(if is_negative { -value } else { value })
    }

    /// Reads an operand with its signs. `^` takes precedence over signs. A plus has no effect.
    fn signed_operand(&mut self) -> ParseResult<Node> {
        let is_sign = |token| matches!(token, Token::Operator(Operator::Add | Operator::Subtract));
        if !is_sign(self.token) {
            return self.operand_with_modifiers();
        }
        let mut minuses = Vec::new();
        while is_sign(self.token) {
            if self.token == Token::Operator(Operator::Subtract) {
                minuses.push(self.span);
            }
            if minuses.len() > DEPTH_MAX {
                return Err(too_deep(self.span));
            }
            self.advance()?;
        }
        let mut node = self.expression(Operator::Power.precedence())?;
        for minus in minuses.into_iter().rev() {
            node = negate(minus, node)?;
        }
        Ok(node)
    }
}

fn negate(minus: TextSpan, node: Node) -> ParseResult<Node> {
    let Node { mut expression, height } = node;
    if let Expr::Number(number) = &mut *expression {
        number.value = -number.value;
        number.span.start = minus.start;
        return Ok(Node { expression, height });
    }
    let span = minus.to(expression.span());
    node_above(height, minus, Expr::Unary(Unary { inner: expression, span }))
}

/// Creates a node above trees of the given height.
fn node_above(height: usize, at: TextSpan, expression: Expr) -> ParseResult<Node> {
    let height = height + 1;
    if height > DEPTH_MAX { Err(too_deep(at)) } else { Ok(Node::new(expression, height)) }
}

fn too_deep(at: TextSpan) -> SyntaxError {
    let problem =
        format!("the query nests more than {DEPTH_MAX} operators and parentheses: split it");
    SyntaxError::new(at, problem)
}
