//! Tags in the notation for people: `host=web1,core=0`.
//!
//! A name or a value with a comma, an equals sign or spaces at its ends is put in double quotes, in
//! which `\"` is a quote and `\\` a backslash: `mount="/a,b"`. Must never know: the callers, the
//! use of the tags.

/// Parses the pairs of a text, in their order; a tag may occur twice.
///
/// # Errors
/// The text is malformed; the error names the position.
pub fn tag_pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(',') {
            rest = after;
            continue;
        }
        let (name, after) = read_word(rest, |c| c == '=' || c == ',')?;
        let Some(after) = after.strip_prefix('=') else {
            return Err(format!("{name:?} is not name=value"));
        };
        let (value, after) = read_word(after, |c| c == ',')?;
        pairs.push((name, value));
        rest = after;
    }
    Ok(pairs)
}

/// Parses words between commas, with the same quotes as tags.
///
/// # Errors
/// The text is malformed; the error names the position.
pub fn quoted_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (found, after) = read_word(rest, |c| c == ',')?;
        words.extend(Some(found).filter(|found| !found.is_empty()));
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    Ok(words)
}

/// Splits the first word off a text; the rest is empty or begins with a character that ends words.
fn read_word(text: &str, ends: impl Fn(char) -> bool) -> Result<(String, &str), String> {
    let Some(inside) = text.trim_start().strip_prefix('"') else {
        let (word, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
        return Ok((word.trim().to_owned(), rest));
    };
    let mut word = String::new();
    let mut chars = inside.chars();
    loop {
        match chars.next() {
            Some('"') => break,
            Some('\\') => match chars.next() {
                Some(c @ ('"' | '\\')) => word.push(c),
                _ => return Err(format!("in {text:?} only \\\" and \\\\ may follow a backslash")),
            },
            Some(c) => word.push(c),
            None => return Err(format!("{text:?} has no quote at its end")),
        }
    }
    let rest = chars.as_str().trim_start();
    if rest.is_empty() || rest.starts_with(ends) {
        return Ok((word, rest));
    }
    Err(format!("{rest:?} follows a quote; put a comma between"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        assert_eq!(tag_pairs(text), Ok(expected), "{text}");
    }

    #[test]
    fn words_are_separated_by_commas() {
        for (text, expected) in [
            ("", Ok(&[][..])),
            ("load", Ok(&["load"])),
            (" a , ,b,", Ok(&["a", "b"])),
            (r#"a b,"c,\"d\"",e=f"#, Ok(&["a b", r#"c,"d""#, "e=f"])),
        ] {
            let expected =
                expected.map(|words: &[&str]| words.iter().map(|&w| w.to_owned()).collect());
            assert_eq!(quoted_words(text), expected, "{text}");
        }
        assert!(quoted_words(r#""a"b"#).is_err());
        assert!(quoted_words(r#"a,"b"#).is_err());
    }

    #[test]
    fn plain_pairs_are_separated_by_commas() {
        check("", &[]);
        check("host=web1,core=0", &[("host", "web1"), ("core", "0")]);
        check(" host = web 1 ,,core=", &[("host", "web 1"), ("core", "")]);
        check(r#"path=C:\,q=a=b"c"#, &[("path", r"C:\"), ("q", "a=b\"c")]);
    }

    #[test]
    fn quoted_texts_may_contain_any_character() {
        check(r#"host="a,b",core=0"#, &[("host", "a,b"), ("core", "0")]);
        check(r#""a=b, c" = " x " , d="\"\\""#, &[("a=b, c", " x "), ("d", "\"\\")]);
    }

    #[test]
    fn malformed_texts_are_refused_with_the_reason() {
        for (text, why) in [
            ("host", r#""host" is not name=value"#),
            ("a=1,host", r#""host" is not name=value"#),
            (r#"a="b"#, "has no quote at its end"),
            (r#"a="b"c"#, "follows a quote"),
            (r#"a="\n""#, "may follow a backslash"),
        ] {
            let fault = tag_pairs(text).unwrap_err();
            assert!(fault.contains(why), "{text}: {fault}");
        }
    }
}
