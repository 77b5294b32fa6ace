//! Parsing of label names in parentheses, and of matchers in braces.

use super::{
    super::{
        operator::Operator,
        token::{Keyword, Token},
        tree::{Grouping, Matcher},
    },
    ParseResult, Parser,
};
use crate::model::{METRIC_TAG, TagComparison};

const GROUPING: &str = "grouping opts";
const MATCHING: &str = "label matching";

impl Parser<'_> {
    /// Reads `by`, `without`, `on` or `ignoring`, and the labels. `only` is the keyword that
    /// selects these labels.
    pub(super) fn grouping(&mut self, only: Keyword) -> ParseResult<Grouping> {
        let is_only = self.token == Token::Keyword(only);
        self.advance()?;
        let names = self.label_names()?;
        Ok(if is_only { Grouping::Only(names) } else { Grouping::Except(names) })
    }

    /// Reads names of labels in parentheses. Keywords and operators are valid names here.
    pub(super) fn label_names(&mut self) -> ParseResult<Vec<String>> {
        self.expect(Token::LeftParen, GROUPING, "\"(\"")?;
        let mut names = Vec::new();
        while self.token != Token::RightParen {
            let name = match self.token {
                Token::Text => self.lexer.take_value(),
                Token::Identifier
                | Token::Aggregation(_)
                | Token::Keyword(_)
                | Token::Operator(
                    Operator::And | Operator::Or | Operator::Unless | Operator::Atan2,
                ) => self.token_text().to_owned(),
                _ => return Err(self.unexpected_token(GROUPING, "label")),
            };
            names.push(name);
            self.advance()?;
            if !self.eat(Token::Comma)? && self.token != Token::RightParen {
                return Err(self.unexpected_token(GROUPING, "\",\" or \")\""));
            }
        }
        self.advance()?;
        Ok(names)
    }

    /// Reads matchers in braces: sets of matchers, separated by `or`.
    pub(super) fn matchers(&mut self) -> ParseResult<Vec<Vec<Matcher>>> {
        self.advance()?;
        let (mut sets, mut set) = (Vec::new(), Vec::new());
        while self.token != Token::RightBrace {
            set.push(self.matcher()?);
            if self.token == Token::Identifier && self.token_text().eq_ignore_ascii_case("or") {
                self.advance()?;
                sets.push(std::mem::take(&mut set));
                if self.token == Token::RightBrace {
                    return Err(self.unexpected_token(MATCHING, "identifier"));
                }
            } else if !self.eat(Token::Comma)? && self.token != Token::RightBrace {
                return Err(self.unexpected_token(MATCHING, "\",\" or \"}\""));
            }
        }
        self.advance()?;
        sets.push(set);
        Ok(sets)
    }

    fn matcher(&mut self) -> ParseResult<Matcher> {
        let is_quoted = self.token == Token::Text;
        let label = match self.token {
            Token::Text => self.lexer.take_value(),
            Token::Identifier => self.token_text().to_owned(),
            _ => return Err(self.unexpected_token(MATCHING, "identifier or \"}\"")),
        };
        self.advance()?;
        let comparison = match self.token {
            Token::Assign => TagComparison::Equal,
            Token::Operator(Operator::NotEqual) => TagComparison::NotEqual,
            Token::Pattern => TagComparison::Pattern,
            Token::NotPattern => TagComparison::NotPattern,
            // A text alone is the name of a metric.
            _ if is_quoted => {
                let (value, label) = (label, METRIC_TAG.to_owned());
                return Ok(Matcher { label, comparison: TagComparison::Equal, value });
            }
            _ => return Err(self.unexpected_token(MATCHING, "label matching operator")),
        };
        self.advance()?;
        if self.token != Token::Text {
            return Err(self.unexpected_token(MATCHING, "string"));
        }
        let value = self.lexer.take_value();
        self.advance()?;
        Ok(Matcher { label, comparison, value })
    }
}
