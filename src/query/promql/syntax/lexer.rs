//! The lexer, which splits the text of a query into tokens, one at a time.
//!
//! Different tokens are valid within braces and brackets, so the lexer tracks whether these are
//! open. The source is Prometheus' lexer (promql/parser/lex.go). Must never know: the grammar.

use super::{
    literal::{self, Quantity},
    operator::Operator,
    span::{SyntaxError, TextSpan},
    token::{Keyword, Token},
};

/// Reads tokens from the left.
pub(super) struct Lexer<'a> {
    text: &'a str,
    /// The index of the byte after the last token.
    at: usize,
    parens: usize,
    in_braces: bool,
    in_brackets: bool,
    /// The value of the last [`Token::Text`].
    value: String,
}

impl<'a> Lexer<'a> {
    /// Creates a lexer for a whole query, which must have at most `u32::MAX` bytes.
    pub(super) fn new(text: &'a str) -> Self {
        let value = String::new();
        Self { text, at: 0, parens: 0, in_braces: false, in_brackets: false, value }
    }

    /// Takes the value of the text token that was read last.
    pub(super) fn take_value(&mut self) -> String {
        std::mem::take(&mut self.value)
    }

    /// Reads the next token and its span.
    pub(super) fn next(&mut self) -> Result<(Token, TextSpan), SyntaxError> {
        self.skip_blanks();
        let start = self.at;
        let token = match self.peek() {
            None => self.end(),
            Some(letter) if self.in_braces => self.in_braces(letter),
            Some(letter) if self.in_brackets => self.in_brackets(letter),
            Some(letter) => self.token_outside_braces(letter),
        };
        let span = TextSpan { start: start as u32, end: self.at as u32 };
        match token {
            Ok(token) => Ok((token, span)),
            Err(message) => Err(SyntaxError::new(span, message)),
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Consumes a letter if it is the next letter. Returns true when it was.
    fn eat(&mut self, letter: char) -> bool {
        let is_next = self.rest().starts_with(letter);
        self.at += if is_next { letter.len_utf8() } else { 0 };
        is_next
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest().trim_ascii_start();
            let comment = rest.strip_prefix('#');
            let end = comment.map(|comment| comment.find(['\n', '\r']).unwrap_or(comment.len()));
            self.at = self.text.len() - rest.len() + end.map_or(0, |end| end + 1);
            if end.is_none() {
                return;
            }
        }
    }

    fn end(&self) -> Result<Token, String> {
        let problem = match self {
            _ if self.in_braces => "unexpected end of input inside braces",
            _ if self.parens > 0 => "unclosed left parenthesis",
            _ if self.in_brackets => "unclosed left bracket",
            _ => return Ok(Token::End),
        };
        Err(problem.to_owned())
    }

    fn token_outside_braces(&mut self, letter: char) -> Result<Token, String> {
        if letter.is_ascii_alphabetic() || matches!(letter, '_' | ':') {
            return Ok(self.word());
        }
        if let Some(token) = self.arithmetic(letter)? {
            return Ok(token);
        }
        self.at += letter.len_utf8();
        Ok(match letter {
            '"' | '\'' | '`' => self.string(letter)?,
            '{' => {
                self.in_braces = true;
                Token::LeftBrace
            }
            '[' => {
                self.in_brackets = true;
                Token::LeftBracket
            }
            '@' => Token::At,
            '=' if self.rest().starts_with('~') => {
                return Err("unexpected character after '=': '~'".to_owned());
            }
            '=' if self.eat('=') => Token::Operator(Operator::Equal),
            '=' => Token::Assign,
            '!' if self.eat('=') => Token::Operator(Operator::NotEqual),
            '!' => return Err(self.error_after("unexpected character after '!'")),
            '<' if self.eat('/') => Token::Operator(Operator::TrimUpper),
            '>' if self.eat('/') => Token::Operator(Operator::TrimLower),
            '<' if self.eat('=') => Token::Operator(Operator::LessOrEqual),
            '<' => Token::Operator(Operator::Less),
            '>' if self.eat('=') => Token::Operator(Operator::GreaterOrEqual),
            '>' => Token::Operator(Operator::Greater),
            '}' => return Err("unexpected right brace '}'".to_owned()),
            ']' => return Err("unexpected right bracket ']'".to_owned()),
            _ => return Err(format!("unexpected character: {letter:?}")),
        })
    }

    /// Reads a token that is valid both within brackets and outside of them.
    fn arithmetic(&mut self, letter: char) -> Result<Option<Token>, String> {
        let second = self.rest().chars().nth(1);
        let is_number = letter == '.' && second.is_some_and(|second| second.is_ascii_digit());
        if letter.is_ascii_digit() || is_number {
            return self.number().map(Some);
        }
        let token = match letter {
            ',' => Token::Comma,
            '+' => Token::Operator(Operator::Add),
            '-' => Token::Operator(Operator::Subtract),
            '*' => Token::Operator(Operator::Multiply),
            '/' => Token::Operator(Operator::Divide),
            '%' => Token::Operator(Operator::Modulo),
            '^' => Token::Operator(Operator::Power),
            '(' => {
                self.parens += 1;
                Token::LeftParen
            }
            ')' => {
                let remaining = self.parens.checked_sub(1);
                self.parens = remaining.ok_or("unexpected right parenthesis ')'")?;
                Token::RightParen
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(token))
    }

    fn in_brackets(&mut self, letter: char) -> Result<Token, String> {
        if letter.is_ascii_alphabetic() || letter == '_' {
            let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            self.take_while(word);
            return Ok(Token::Identifier);
        }
        if let Some(token) = self.arithmetic(letter)? {
            return Ok(token);
        }
        match letter {
            ':' => self.at += 1,
            ']' => {
                self.at += 1;
                self.in_brackets = false;
                return Ok(Token::RightBracket);
            }
            _ => return Err(format!("unexpected character in duration expression: {letter:?}")),
        }
        Ok(Token::Colon)
    }

    fn in_braces(&mut self, letter: char) -> Result<Token, String> {
        if letter.is_ascii_alphabetic() || letter == '_' {
            self.take_while(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            return Ok(Token::Identifier);
        }
        self.at += letter.len_utf8();
        Ok(match letter {
            ',' => Token::Comma,
            '"' | '\'' | '`' => self.string(letter)?,
            '=' if self.eat('~') => Token::Pattern,
            '=' => Token::Assign,
            '!' if self.eat('~') => Token::NotPattern,
            '!' if self.eat('=') => Token::Operator(Operator::NotEqual),
            '!' => return Err(self.error_after("unexpected character after '!' inside braces")),
            '{' => return Err("unexpected left brace '{'".to_owned()),
            '}' => {
                self.in_braces = false;
                Token::RightBrace
            }
            _ => return Err(format!("unexpected character inside braces: {letter:?}")),
        })
    }

    fn error_after(&self, problem: &str) -> String {
        self.peek().map_or_else(
            || format!("{problem}: end of input"),
            |letter| format!("{problem}: {letter:?}"),
        )
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|letter| !belongs(letter)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn word(&mut self) -> Token {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':');
        let token = Token::of_word(self.take_while(is_part));
        let is_fill =
            matches!(token, Token::Keyword(Keyword::Fill | Keyword::FillLeft | Keyword::FillRight));
        // Metrics may have these names.
        let is_name = is_fill && !self.rest().trim_ascii_start().starts_with('(');
        if is_name { Token::Identifier } else { token }
    }

    fn number(&mut self) -> Result<Token, String> {
        let bytes = self.rest().as_bytes();
        let is_hex = matches!(bytes, [b'0', b'x' | b'X', ..]);
        let mut end = 0;
        let mut is_plain = !is_hex;
        while let Some(byte) = bytes.get(end) {
            let is_sign = matches!(byte, b'+' | b'-');
            // A sign belongs to the number only after the letter of an exponent.
            let is_exponent = is_plain && end > 0 && matches!(bytes[end - 1], b'e' | b'E');
            let is_part = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
            if !(is_part || is_sign && is_exponent) {
                break;
            }
            is_plain &= byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b'e' | b'E');
            end += 1;
        }
        let text = self.rest().get(..end).unwrap_or_default();
        self.at += end;
        Ok(match literal::quantity(text)? {
            Quantity::Number(value) => Token::Number(value),
            Quantity::Millis(millis) => Token::Duration(millis),
        })
    }

    /// Reads the rest of a text after its opening quote.
    fn string(&mut self, quote: char) -> Result<Token, String> {
        let rest = self.rest();
        if quote == '`' {
            let (value, _) = rest.split_once('`').ok_or("unterminated raw string")?;
            self.at += value.len() + 1;
            value.clone_into(&mut self.value);
            return Ok(Token::Text);
        }
        let (mut chars, mut bytes) = (rest.chars(), Vec::new());
        loop {
            match chars.next() {
                None | Some('\n') => return Err("unterminated quoted string".to_owned()),
                Some('\\') => literal::unescape(quote, &mut chars, &mut bytes)?,
                Some(letter) if letter == quote => break,
                Some(letter) => {
                    bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
        self.at = self.text.len() - chars.as_str().len();
        self.value = literal::text_of(bytes);
        Ok(Token::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<String>, String> {
        let mut lexer = Lexer::new(text);
        let mut out = Vec::new();
        loop {
            match lexer.next().map_err(|error| error.in_text(text))? {
                (Token::End, _) => return Ok(out),
                (Token::Text, _) => out.push(format!("{:?}", lexer.take_value())),
                (_, span) => out.push(span.text_in(text).to_owned()),
            }
        }
    }

    #[test]
    fn queries_are_split_into_tokens() {
        for (text, expected) in [
            ("a:b{c=~'d'}[1h:5m]", "a:b|{|c|=~|\"d\"|}|[|1h|:|5m|]"),
            ("1e+5-5e-3+0x1e+2", "1e+5|-|5e-3|+|0x1e|+|2"),
            ("a<=b!=c == d#e\n>=f", "a|<=|b|!=|c|==|d|>=|f"),
            ("x[step()*4 : max(1,.5)]", "x|[|step|(|)|*|4|:|max|(|1|,|.5|)|]"),
            ("{or!=\"\",b!~`\\w\"`}", "{|or|!=|\"\"|,|b|!~|\"\\\\w\\\"\"|}"),
        ] {
            assert_eq!(tokens(text).map(|all| all.join("|")), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn strings_support_the_escapes_of_go() {
        for (text, expected) in [
            (r#""a\303\251b""#, "a\u{e9}b"),
            (r#""\xc3\xa9""#, "\u{e9}"),
            (r#""\xff""#, "\u{10ffff}"),
            (r#""\xc3x""#, "\u{10ffc3}x"),
            (r#"'\x41\101\\xff\'"'"#, "AA\\xff'\""),
            (r#""\u20ac\U0001f600\a\v""#, "\u{20ac}\u{1f600}\u{7}\u{b}"),
            ("`\\xff\"'\n`", "\\xff\"'\n"),
        ] {
            let mut lexer = Lexer::new(text);
            assert!(matches!(lexer.next(), Ok((Token::Text, _))), "{text}");
            assert_eq!(lexer.take_value(), expected, "{text}");
        }
    }

    #[test]
    fn invalid_queries_are_refused_in_the_words_of_prometheus() {
        for (text, expected) in [
            ("1 !~ 1", "1:3: parse error: unexpected character after '!': '~'"),
            ("1 =~ 1", "1:3: parse error: unexpected character after '=': '~'"),
            (".", "1:1: parse error: unexpected character: '.'"),
            ("é", "1:1: parse error: unexpected character: 'é'"),
            ("(1))", "1:4: parse error: unexpected right parenthesis ')'"),
            ("((1)", "1:5: parse error: unclosed left parenthesis"),
            ("x[5m", "1:5: parse error: unclosed left bracket"),
            ("x[\"5m\"]", "1:3: parse error: unexpected character in duration expression: '\"'"),
            ("x]", "1:2: parse error: unexpected right bracket ']'"),
            ("x}", "1:2: parse error: unexpected right brace '}'"),
            ("x{", "1:3: parse error: unexpected end of input inside braces"),
            ("x{1}", "1:3: parse error: unexpected character inside braces: '1'"),
            ("{{schema:0}}", "1:2: parse error: unexpected left brace '{'"),
            ("\"a\nb\"", "1:1: parse error: unterminated quoted string"),
            ("`a", "1:1: parse error: unterminated raw string"),
            (r#""\q""#, "1:1: parse error: unknown escape sequence U+0071 'q'"),
            (r#""\xg0""#, "1:1: parse error: illegal character U+0067 'g' in escape sequence"),
            (r#""\xf"#, "1:1: parse error: escape sequence not terminated"),
            (r#""\400""#, "1:1: parse error: escape sequence is an invalid Unicode code point"),
            (r#""\ud800""#, "1:1: parse error: escape sequence is an invalid Unicode code point"),
        ] {
            assert_eq!(tokens(text), Err(expected.to_owned()), "{text}");
        }
    }
}
