//! Tests of the parser: trees, errors, spans, limits.

use super::*;
use crate::query::promql::syntax::format_expression;

fn read(text: &str) -> Result<String, String> {
    let parsed = parse(text, usize::MAX);
    parsed.map(|tree| format_expression(&tree)).map_err(|error| error.in_text(text))
}

/// Returns a tree as text with all parentheses, which show the shape of the tree.
fn shape(expression: &Expr) -> String {
    match expression {
        Expr::Binary(binary) => {
            format!("({} {} {})", shape(&binary.left), binary.operator, shape(&binary.right))
        }
        Expr::Unary(unary) => format!("(-{})", shape(&unary.inner)),
        _ => expression.to_string(),
    }
}

#[test]
fn operators_have_the_precedence_of_prometheus() {
    for (text, expected) in [
        ("a - b - c", "((a - b) - c)"),
        ("a ^ b ^ c", "(a ^ (b ^ c))"),
        ("a + b * c ^ d", "(a + (b * (c ^ d)))"),
        ("a or b and c unless d", "(a or ((b and c) unless d))"),
        ("a == b + c > d", "((a == (b + c)) > d)"),
        ("a atan2 b % c", "((a atan2 b) % c)"),
        ("-a ^ b * c", "((-(a ^ b)) * c)"),
        ("a ^ -b ^ c", "(a ^ (-(b ^ c)))"),
        ("-1 ^ 2", "(-(1 ^ 2))"),
        ("-1 + --2 - +x", "((-1 + 2) - x)"),
        ("a offset 1m ^ 2", "(a offset 1m ^ 2)"),
        ("a offset 2 ^ 2", "(a offset 2s ^ 2)"),
        ("or or and and unless", "(or or (and and unless))"),
    ] {
        assert_eq!(shape(&parse(text, usize::MAX).unwrap()), expected, "{text}");
    }
}

#[test]
fn every_construct_is_parsed_and_formatted() {
    for (text, expected) in [
        ("foo:bar{}", "foo:bar"),
        ("sum", "sum"),
        ("smoothed + anchored", "smoothed + anchored"),
        ("fill_left + fill", "fill_left + fill"),
        ("{\"a.b\", c='d',}", r#"{__name__="a.b",c="d"}"#),
        (r#"a{"b c"!~"d"}"#, r#"a{"b c"!~"d"}"#),
        (r#"{a="b" or c="d", e=~"f" OR g!="h"}"#, r#"{a="b" or c="d", e=~"f" or g!="h"}"#),
        (r#"{or="a", on="b"}"#, r#"{on="b",or="a"}"#),
        ("x offset -5m @ 1.5", "x @ 1.500 offset -5m"),
        ("x @ -1m offset 0", "x @ -60.000 offset 0s"),
        ("x[90d] @ Start()", "x[90d] @ start()"),
        ("(x)[2w:] @ end ( ) offset 1h", "(x)[2w:] @ end() offset 1h"),
        ("x[300] smoothed offset 1m", "x[5m] smoothed offset 1m"),
        ("x offset 1m ANCHORED", "x anchored offset 1m"),
        ("rate(x[step() * 4])", "rate(x[step() * 4])"),
        (
            "x[ MIN(range(), 2h) : -(1-5)+max_of(1,.5) ]",
            "x[min(range(), 2h):-(1 - 5) + max_of(1, 0.5)]",
        ),
        ("x offset (5m + 30s) * 2", "x offset (5m + 30s) * 2"),
        ("x offset -step() - y", "x offset -step() - y"),
        ("sum by(a, sum,\"b c\",)(x)", r#"sum by (a, sum, "b c") (x)"#),
        ("topk(3, x) without ()", "topk without () (3, x)"),
        ("a > bool on (b) group_left(c,) d", "a > bool on (b) group_left (c) d"),
        ("a * ignoring (b) group_right d", "a * ignoring (b) group_right () d"),
        ("a + on() fill_right(-1) fill_left(Inf) b", "a + on () fill_left (Inf) fill_right (-1) b"),
        ("a + fill(+0x10) b", "a + fill (16) b"),
        ("x > -5m # five\n#minutes", "x > -5m"),
        (
            r#"label_replace(x, "\xff\n", `\d`, '"', "")"#,
            r#"label_replace(x, "\xff\n", "\\d", "\"", "")"#,
        ),
        ("info(x, {})", "info(x, {})"),
        ("time() + -Inf", "time() + -Inf"),
    ] {
        assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        // A formatted query does not change when it is formatted again.
        assert_eq!(read(expected).as_deref(), Ok(expected), "{expected}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn syntax_errors_use_the_words_of_prometheus() {
    for (text, expected) in [
        ("", "unknown position: parse error: no expression found in input"),
        ("# only a comment", "1:1: parse error: no expression found in input"),
        ("1+", "1:3: parse error: unexpected end of input"),
        ("a +\n *1", "2:2: parse error: unexpected <op:*>"),
        ("@@", "1:1: parse error: unexpected <op:@>"),
        ("a b", "1:3: parse error: unexpected identifier \"b\""),
        ("a b:c", "1:3: parse error: unexpected metric identifier \"b:c\""),
        ("a \"b\"", "1:3: parse error: unexpected string \"\\\"b\\\"\""),
        ("a 1000000000000", "1:3: parse error: unexpected number \"1000000000\"..."),
        ("()", "1:2: parse error: unexpected \")\""),
        ("sum by", "1:7: parse error: unexpected end of input in grouping opts, expected \"(\""),
        (
            "sum by (==) (x)",
            "1:9: parse error: unexpected <op:==> in grouping opts, expected label",
        ),
        (
            "sum by (a,,) (x)",
            "1:11: parse error: unexpected \",\" in grouping opts, expected label",
        ),
        (
            "sum by (a b) (x)",
            "1:11: parse error: unexpected identifier \"b\" in grouping opts, expected \",\" or \")\"",
        ),
        ("sum by (a) x", "1:12: parse error: unexpected identifier \"x\" in aggregation"),
        ("sum(x) by (a) by (b)", "1:15: parse error: unexpected <by>"),
        ("sum()", "1:1: parse error: no arguments for aggregate expression provided"),
        (
            "1 + topk(x)",
            "1:5: parse error: wrong number of arguments for aggregate expression provided, expected 2, got 1",
        ),
        ("rate(x[5m],)", "1:11: parse error: trailing commas not allowed in function call args"),
        ("1 + none(x)", "1:5: parse error: unknown function with name \"none\""),
        ("a - on(b) ignoring(c) d", "1:11: parse error: unexpected <ignoring>"),
        ("a * group_left b", "1:5: parse error: unexpected <group_left>"),
        (
            "a + fill(b) c",
            "1:10: parse error: unexpected identifier \"b\" in fill modifier, expected number",
        ),
        (
            "x{a}",
            "1:4: parse error: unexpected \"}\" in label matching, expected label matching operator",
        ),
        (
            "x{,}",
            "1:3: parse error: unexpected \",\" in label matching, expected identifier or \"}\"",
        ),
        ("x{a==\"b\"}", "1:5: parse error: unexpected \"=\" in label matching, expected string"),
        (
            "x{a=\"b\" c}",
            "1:9: parse error: unexpected identifier \"c\" in label matching, expected \",\" or \"}\"",
        ),
        (
            "x[]",
            "1:3: parse error: unexpected \"]\" in subquery or range selector, expected number, duration, step(), or range()",
        ),
        (
            "x[up + 1m]",
            "1:3: parse error: unexpected identifier \"up\" in subquery or range selector, expected number, duration, step(), or range()",
        ),
        (
            "x[5m 5m]",
            "1:6: parse error: unexpected duration \"5m\" in subquery or range, expected \":\" or \"]\"",
        ),
        ("x[5m:1m:1m]", "1:8: parse error: unexpected \":\" in subquery selector, expected \"]\""),
        (
            "x[step]",
            "1:7: parse error: unexpected \"]\" in subquery or range selector, expected \"(\"",
        ),
        ("x[0]", "1:3: parse error: duration must be greater than 0"),
        ("x[1h:5m-5m]", "1:6: parse error: duration must be greater than 0"),
        ("x[5m/0]", "1:3: parse error: division by zero"),
        ("x[5m%0]", "1:3: parse error: modulo by zero"),
        ("x[9^999+1]", "1:3: parse error: duration out of range"),
        ("(x)[5m]", "1:4: parse error: ranges only allowed for vector selectors"),
        ("x offset 1m[5m]", "1:12: parse error: no offset modifiers allowed before range"),
        ("x @ 5[5m]", "1:6: parse error: no @ modifiers allowed before range"),
        (
            "x offset",
            "1:9: parse error: unexpected end of input in offset, expected number, duration, step(), or range()",
        ),
        ("x offset 1m offset 2m", "1:1: parse error: offset may not be set multiple times"),
        (
            "1 offset 1m",
            "1:1: parse error: offset modifier must be preceded by an instant vector selector or range vector selector or a subquery",
        ),
        ("x @ b", "1:5: parse error: unexpected identifier \"b\" in @, expected timestamp"),
        ("x @ 1e300", "1:1: parse error: timestamp out of bounds for @ modifier: 1e300"),
        ("x @ 1 @ 2", "1:1: parse error: @ <timestamp> may not be set multiple times"),
        (
            "x anchored smoothed",
            "1:1: parse error: anchored and smoothed modifiers cannot be used together",
        ),
        ("x[5m:] smoothed", "1:1: parse error: smoothed modifier is not supported for subqueries"),
    ] {
        assert_eq!(read(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn spans_cover_the_text_of_their_expressions() {
    let text = "sum by (a) (rate(x{b=\"(\"}[step()] offset 5m)) / -2";
    let tree = parse(text, usize::MAX).unwrap();
    let mut seen = Vec::new();
    let mut pending = vec![&tree];
    while let Some(expression) = pending.pop() {
        seen.push(expression.span().text_in(text));
        pending.extend(expression.children().into_iter().rev());
    }
    let selector = "x{b=\"(\"}[step()] offset 5m";
    let (rate, sum) = (format!("rate({selector})"), format!("sum by (a) (rate({selector}))"));
    assert_eq!(seen, [text, &sum, &rate, selector, "-2"]);
}

#[test]
fn deep_queries_are_parsed_on_a_small_stack_and_deeper_queries_are_refused() {
    const STACK_BYTES: usize = 1 << 20;
    let parse_all = || {
        for text in ["(", "-", "sum(", "abs(", "!", "a[", "x[(", "1+", "1 or ", "1-(", "a[1m:"] {
            for times in [200, 1000, 100_000] {
                let refused = read(&text.repeat(times)).unwrap_err();
                assert!(
                    refused.contains("split it")
                        || times < 1000
                        || text == "!"
                        || text.contains('['),
                    "{refused}"
                );
            }
            // The stack does not overflow.
            read(&text.repeat(DEPTH_MAX / 2)).unwrap_err();
        }
        for (open, close) in [("(", ")"), ("-(", ")"), ("abs(", ")"), ("1^(", ")")] {
            let nested = |depth: usize| format!("{}x{}", open.repeat(depth), close.repeat(depth));
            let levels = if open.len() == 2 || open == "1^(" { 2 } else { 1 };
            read(&nested(DEPTH_MAX / levels)).unwrap();
            assert!(
                read(&nested(DEPTH_MAX / levels + 1)).unwrap_err().contains("split it"),
                "{open}"
            );
        }
        read(&format!("1{}", "+1".repeat(DEPTH_MAX))).unwrap();
        assert!(read(&format!("1{}", "+1".repeat(DEPTH_MAX + 1))).is_err());
        let duration = |depth| format!("x[{}1{}]", "(".repeat(depth), ")".repeat(depth));
        read(&duration(DEPTH_MAX)).unwrap();
        assert!(read(&duration(DEPTH_MAX + 1)).unwrap_err().contains("split it"));
        assert!(read(&format!("x[1{}]", "+1".repeat(5000))).unwrap_err().contains("split it"));
    };
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(parse_all).unwrap().join().unwrap();
    // Adjacent parts are not nested.
    read(&format!("label_join(up, {}\"x\")", "\"a\", ".repeat(500))).unwrap();
    read(&format!("up{{{}}}", "a=\"b\", c!=\"d\", ".repeat(300))).unwrap();
    let refusal = parse(&"x".repeat(100), 99).unwrap_err().message;
    assert!(refusal.contains("100 bytes") && refusal.contains("shorten it"), "{refusal}");
}

#[test]
fn invalid_queries_cause_no_panic() {
    for text in
        ["x[", "x offset (", "[", "offset", "x offset -", "\"", "x[`]", "é[é+é]", "))", "@ start("]
    {
        let _no_panic = read(text);
    }
}
