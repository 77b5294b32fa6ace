//! The syntax of Graphite's targets (graphite.readthedocs.io, "The Render URL API"): patterns of
//! paths, calls of functions, and pipes.
//!
//! Must never know: series, what a function computes.

use crate::query::QueryError;

/// The maximum depth of nested calls in the text, and the maximum number of pipes in a target; both
/// nest calls, and each call is a level of recursion.
const DEPTH_MAX: usize = 32;
/// The maximum length of a target in bytes.
const TARGET_BYTES_MAX: usize = 64 << 10;

/// A parsed target, or an argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    /// A pattern of paths.
    Path(String),
    /// A call of a function.
    Call(Call),
    Number(f64),
    Text(String),
    Bool(bool),
    /// `None`.
    Nothing,
}

/// A call with its positional arguments in order, and its named arguments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) function: String,
    pub(super) arguments: Vec<Expr>,
    pub(super) named: Vec<(String, Expr)>,
}

/// Parses a target.
///
/// # Errors
/// When the target is malformed; the message contains the position.
pub(super) fn parse(target: &str) -> Result<Expr, QueryError> {
    if target.len() > TARGET_BYTES_MAX {
        return Err(QueryError::Invalid(format!(
            "a target of {} bytes exceeds the limit of {TARGET_BYTES_MAX}",
            target.len()
        )));
    }
    let mut parser = Parser { text: target, position: 0, depth: 0, pipes: 0 };
    let expr = parser.piped_expression()?;
    parser.skip_spaces();
    if parser.position < target.len() {
        return Err(parser.fault("the end of the target"));
    }
    Ok(expr)
}

struct Parser<'a> {
    text: &'a str,
    /// The index of the next byte.
    position: usize,
    depth: usize,
    /// The number of pipes so far; pipes also nest calls.
    pipes: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_spaces(&mut self) {
        self.position += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, character: char) -> bool {
        self.skip_spaces();
        let is_next = self.peek() == Some(character);
        self.position += usize::from(is_next) * character.len_utf8();
        is_next
    }

    fn fault(&self, expected: &str) -> QueryError {
        let found: String = self.rest().chars().take(20).collect();
        let position = self.text.chars().count() - self.rest().chars().count() + 1;
        let found = if found.is_empty() { "the end".to_owned() } else { format!("{found:?}") };
        QueryError::Invalid(format!(
            "target {:?}: expected {expected} at character {position}, found {found}",
            self.text.chars().take(200).collect::<String>()
        ))
    }

    /// Parses an expression and the calls that it is piped into.
    fn piped_expression(&mut self) -> Result<Expr, QueryError> {
        let mut expr = self.expr()?;
        while self.eat('|') {
            self.pipes += 1;
            if self.pipes > DEPTH_MAX {
                return Err(self.fault(&format!("at most {DEPTH_MAX} pipes")));
            }
            let Expr::Call(mut call) = self.expr()? else {
                return Err(self.fault("a call of a function before this"));
            };
            call.arguments.insert(0, expr);
            expr = Expr::Call(call);
        }
        Ok(expr)
    }

    fn expr(&mut self) -> Result<Expr, QueryError> {
        self.skip_spaces();
        match self.peek() {
            Some('"' | '\'') => self.quoted_text().map(Expr::Text),
            Some(_) => {
                let word = self.word()?;
                if self.eat('(') {
                    return self.call(word);
                }
                Ok(path_or_literal(word))
            }
            None => Err(self.fault("a path or a function")),
        }
    }

    fn quoted_text(&mut self) -> Result<String, QueryError> {
        let quote = self.peek().unwrap_or('"');
        let Some((inside, _)) = self.rest().get(1..).and_then(|rest| rest.split_once(quote)) else {
            return Err(self.fault("a closing quote"));
        };
        self.position += inside.len() + 2;
        Ok(inside.to_owned())
    }

    /// Reads a pattern, a name or a number: everything up to whitespace or a separator. A comma
    /// within braces and any separator within brackets belong to the word.
    fn word(&mut self) -> Result<&'a str, QueryError> {
        let (rest, mut braces, mut brackets) = (self.rest(), 0_usize, 0_usize);
        let mut end = rest.len();
        for (at, c) in rest.char_indices() {
            match c {
                '{' => braces += 1,
                '}' => braces = braces.saturating_sub(1),
                '[' => brackets += 1,
                ']' => brackets = brackets.saturating_sub(1),
                ',' if braces > 0 => {}
                '(' | ')' | ',' | '|' | '"' | '\'' if brackets == 0 => {
                    end = at;
                    break;
                }
                c if c.is_whitespace() => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        if end == 0 {
            return Err(self.fault("a path or a function"));
        }
        if braces > 0 || brackets > 0 {
            return Err(self.fault("closed braces and brackets after this"));
        }
        self.position += end;
        Ok(rest.get(..end).unwrap_or_default())
    }

    fn call(&mut self, function: &str) -> Result<Expr, QueryError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault(&format!("at most {DEPTH_MAX} nested calls")));
        }
        let function = function.to_owned();
        let mut call = Call { function, arguments: Vec::new(), named: Vec::new() };
        if !self.eat(')') {
            loop {
                match self.name_of_argument() {
                    Some(name) => call.named.push((name, self.piped_expression()?)),
                    None => call.arguments.push(self.piped_expression()?),
                }
                if self.eat(')') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.fault("a comma or a closing parenthesis"));
                }
            }
        }
        self.depth -= 1;
        Ok(Expr::Call(call))
    }

    /// Reads `name=` before an argument. In a path with tags (`a;host=x`), a semicolon precedes the
    /// `=`, so the text before it is no name.
    fn name_of_argument(&mut self) -> Option<String> {
        self.skip_spaces();
        let (name, _) = self.rest().split_once('=')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let name = is_name.then(|| name.to_owned())?;
        self.position += name.len() + 1;
        Some(name)
    }
}

fn path_or_literal(word: &str) -> Expr {
    match word {
        "true" | "True" => return Expr::Bool(true),
        "false" | "False" => return Expr::Bool(false),
        "None" | "none" => return Expr::Nothing,
        _ => {}
    }
    let is_number = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let number = word.parse::<f64>().ok().filter(|number| is_number && number.is_finite());
    number.map_or_else(|| Expr::Path(word.to_owned()), Expr::Number)
}

impl std::fmt::Display for Expr {
    /// Formats an expression as a target.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => f.write_str(path),
            Self::Number(number) => write!(f, "{number}"),
            // A text cannot contain the quotes that surround it.
            Self::Text(text) if text.contains('\'') => write!(f, "\"{text}\""),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Nothing => f.write_str("None"),
            Self::Call(call) => {
                let all = call.arguments.iter().map(ToString::to_string);
                let named = call.named.iter().map(|(name, value)| format!("{name}={value}"));
                let all: Vec<_> = all.chain(named).collect();
                write!(f, "{}({})", call.function, all.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn targets_are_parsed() {
        let check = |target: &str, expected: &str| {
            assert_eq!(parse(target).unwrap().to_string(), expected, "{target}");
        };
        for same in [
            "servers.*.cpu.{idle,user}",
            "a[1-3].b?;host=x",
            "alias(a.b,'x, y (z)')",
            "alias(a.b,\"it's\")",
            "sumSeries(scale(a.*,0.5),b)",
            "movingAverage(a,5,xFilesFactor=0.5)",
            "summarize(a,'1h','sum',true)",
            "randomWalk()",
            "1min.load",
        ] {
            check(same, same);
        }
        check(" alias( a.b , \"x\" ) ", "alias(a.b,'x')");
        check("a.b | scale(-2e1)|alias('x')", "alias(scale(a.b,-20),'x')");
        check("f(None,True)", "f(None,true)");
    }

    #[test]
    fn errors_contain_their_position() {
        let check = |target: &str, part: &str| {
            let message = parse(target).unwrap_err().to_string();
            assert!(message.contains(part), "{target}: {message}");
        };
        check("", "expected a path or a function at character 1, found the end");
        check("alias(a,'x'", "a comma or a closing parenthesis at character 12");
        check("alias(a,'x)", "a closing quote at character 9");
        check("a b", "the end of the target at character 3");
        check("a.{b,c", "closed braces");
        check("a|b", "a call of a function");
        check(&"f(".repeat(40), "at most 32 nested calls");
        check(&"a".repeat(70_000), "exceeds the limit of 65536");
    }

    proptest! {
        #[test]
        fn a_formatted_target_parses_to_the_same_expression(text in r#"[a-c.*{},()'"|=\[\] 1é-]{0,40}"#) {
            if let Ok(expr) = parse(&text) {
                prop_assert_eq!(parse(&expr.to_string()).unwrap(), expr);
            }
        }
    }
}
