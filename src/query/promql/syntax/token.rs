//! The tokens of a query, and their descriptions in messages.
//!
//! The source is Prometheus' lexer (promql/parser/lex.go). Must never know: the grammar.

use super::operator::{Aggregation, Operator};

/// A token. Operators, aggregations and keywords are case-insensitive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Token {
    /// The end of the text.
    End,
    /// A word that is not another token.
    Identifier,
    /// A word with a colon.
    MetricIdentifier,
    /// A number.
    Number(f64),
    /// A duration, in milliseconds.
    Duration(i64),
    /// Text in quotes; the lexer keeps its value.
    Text,
    Comma,
    /// `:` within brackets
    Colon,
    LeftParen,
    RightParen,
    LeftBrace,
    RightBrace,
    LeftBracket,
    RightBracket,
    At,
    Assign,
    Pattern,
    NotPattern,
    /// A binary operator; in braces only `!=`.
    Operator(Operator),
    /// The name of an aggregation.
    Aggregation(Aggregation),
    /// A keyword.
    Keyword(Keyword),
}

/// A keyword of the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    Anchored,
    Bool,
    By,
    Fill,
    FillLeft,
    FillRight,
    GroupLeft,
    GroupRight,
    Ignoring,
    Offset,
    On,
    Smoothed,
    Without,
}

const KEYWORDS: [(&str, Keyword); 13] = [
    ("anchored", Keyword::Anchored),
    ("bool", Keyword::Bool),
    ("by", Keyword::By),
    ("fill", Keyword::Fill),
    ("fill_left", Keyword::FillLeft),
    ("fill_right", Keyword::FillRight),
    ("group_left", Keyword::GroupLeft),
    ("group_right", Keyword::GroupRight),
    ("ignoring", Keyword::Ignoring),
    ("offset", Keyword::Offset),
    ("on", Keyword::On),
    ("smoothed", Keyword::Smoothed),
    ("without", Keyword::Without),
];

/// Returns the names of all keywords.
#[cfg(test)]
pub(super) fn keyword_names() -> Vec<&'static str> {
    KEYWORDS.iter().map(|(name, _)| *name).collect()
}

/// Length of the longest word that is not a plain identifier.
const WORD_BYTES_MAX: usize = 12;

impl Token {
    /// Returns the token of a word outside of braces.
    pub(super) fn of_word(word: &str) -> Self {
        if word.contains(':') {
            return Self::MetricIdentifier;
        }
        if word.len() > WORD_BYTES_MAX {
            return Self::Identifier;
        }
        let word = word.to_ascii_lowercase();
        let keyword = || KEYWORDS.iter().find(|(name, _)| *name == word);
        match word.as_str() {
            "inf" => Self::Number(f64::INFINITY),
            "nan" => Self::Number(f64::NAN),
            _ => Operator::of_word(&word)
                .map(Self::Operator)
                .or_else(|| Aggregation::of_word(&word).map(Self::Aggregation))
                .or_else(|| keyword().map(|(_, keyword)| Self::Keyword(*keyword)))
                .unwrap_or(Self::Identifier),
        }
    }

    /// Describes the token for a message, with its text.
    pub(super) fn description(self, text: &str) -> String {
        let quoted = || {
            let begin: String = text.chars().take(10).collect();
            if begin.len() < text.len() { format!("{begin:?}...") } else { format!("{text:?}") }
        };
        match self {
            Self::End => "end of input".to_owned(),
            Self::Identifier => format!("identifier {text:?}"),
            Self::MetricIdentifier => format!("metric identifier {text:?}"),
            Self::Number(_) => format!("number {}", quoted()),
            Self::Duration(_) => format!("duration {}", quoted()),
            Self::Text => format!("string {}", quoted()),
            Self::Operator(_) | Self::At | Self::Pattern | Self::NotPattern => {
                format!("<op:{text}>")
            }
            Self::Aggregation(_) => format!("<aggr:{text}>"),
            Self::Keyword(_) => format!("<{text}>"),
            Self::Comma
            | Self::Colon
            | Self::LeftParen
            | Self::RightParen
            | Self::LeftBrace
            | Self::RightBrace
            | Self::LeftBracket
            | Self::RightBracket
            | Self::Assign => quoted(),
        }
    }
}
