//! The parser of Prometheus' test scripts: blocks of `load`, `clear`, and `eval` with an
//! expectation.

use super::notation::{Series, parse_duration, parse_number, unquote};

/// A block of a script.
#[derive(Debug)]
pub(crate) enum Block {
    /// Series, and the interval of their samples.
    Load {
        line: usize,
        step: i64,
        series: Vec<Series>,
        /// Converts classic histograms to native ones.
        with_histograms: bool,
    },
    Clear,
    Eval(Box<Eval>),
    /// A block that cannot be parsed, with its line, its beginning, and the reason.
    Unread {
        line: usize,
        head: String,
        cause: String,
    },
}

/// The evaluation times of a query.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EvalTime {
    Instant(i64),
    Range { start: i64, end: i64, step: i64 },
}

/// The kind of comparison with an expected text.
#[derive(Debug, Clone)]
pub(crate) enum ExpectedText {
    Any,
    Exact(String),
    Pattern(String),
}

/// A query and its expected answer.
#[derive(Debug)]
pub(crate) struct Eval {
    pub(crate) line: usize,
    pub(crate) expression: String,
    pub(crate) when: EvalTime,
    pub(crate) expected: Expected,
}

#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) ordered: bool,
    pub(crate) fail: Option<ExpectedText>,
    pub(crate) warnings: Vec<ExpectedText>,
    pub(crate) infos: Vec<ExpectedText>,
    pub(crate) no_warnings: bool,
    pub(crate) no_infos: bool,
    pub(crate) scalar: Option<f64>,
    pub(crate) string: Option<String>,
    /// Start and step of the samples of a range vector.
    pub(crate) range: Option<(i64, i64)>,
    pub(crate) series: Vec<Series>,
}

/// Reads a script.
pub(crate) fn parse(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_end = |line: &str| line.is_empty() || line.starts_with('#');
    let mut blocks = Vec::new();
    let mut next_line = 0;
    while let Some(head) = lines.get(next_line) {
        let line = next_line + 1;
        next_line += 1;
        if is_end(head) {
            continue;
        }
        let body: Vec<_> =
            lines[next_line..].iter().copied().take_while(|line| !is_end(line)).collect();
        let word = head.split_whitespace().next().unwrap_or_default();
        let block = match word {
            "clear" => Ok(Block::Clear),
            "load" | "load_with_nhcb" => {
                next_line += body.len();
                let (word, step) = head.split_at(word.len());
                parse_load(line, step.trim(), &body, word == "load_with_nhcb")
            }
            _ if word.starts_with("eval") => {
                next_line += body.len();
                parse_eval(line, head, &body).map(|eval| Block::Eval(Box::new(eval)))
            }
            _ => Err(format!("not known: {word}")),
        };
        let unreadable = |cause| Block::Unread { line, head: (*head).to_owned(), cause };
        blocks.push(block.unwrap_or_else(unreadable));
    }
    blocks
}

fn parse_load(
    line: usize,
    step: &str,
    body: &[&str],
    with_histograms: bool,
) -> Result<Block, String> {
    let step = parse_duration(step).ok_or_else(|| format!("no step: {step}"))?;
    let series: Result<_, _> = body.iter().map(|line| Series::parse(line)).collect();
    Ok(Block::Load { line, step, series: series?, with_histograms })
}

fn parse_eval(line: usize, head: &str, body: &[&str]) -> Result<Eval, String> {
    let (word, rest) = split_word(head);
    let mut expected = Expected::default();
    match word.strip_prefix("eval").unwrap_or_default() {
        "" => {}
        "_fail" => expected.fail = Some(ExpectedText::Any),
        "_ordered" => expected.ordered = true,
        "_warn" => expected.warnings.push(ExpectedText::Any),
        "_info" => expected.infos.push(ExpectedText::Any),
        other => return Err(format!("eval{other}")),
    }
    let (when, expression) = eval_time(rest)?;
    for line in body {
        read_expectation(line, &mut expected)?;
    }
    Ok(Eval { line, expression: expression.to_owned(), when, expected })
}

fn eval_time(text: &str) -> Result<(EvalTime, &str), String> {
    let time = |text: &str| parse_duration(text).ok_or_else(|| format!("no time: {text}"));
    let (kind, rest) = split_word(text);
    if kind == "instant" {
        let Some(rest) = rest.strip_prefix("at ") else { return Ok((EvalTime::Instant(0), rest)) };
        let (next_line, expression) = split_word(rest.trim_start());
        return Ok((EvalTime::Instant(time(next_line)?), expression));
    }
    let mut rest = rest;
    let mut times = [0; 3];
    for (seconds, name) in times.iter_mut().zip(["from", "to", "step"]) {
        let (found, tail) = split_word(rest);
        if found != name {
            return Err(format!("no {name}: {rest}"));
        }
        let (text, tail) = split_word(tail);
        *seconds = time(text)?;
        rest = tail;
    }
    let [start, end, step] = times;
    Ok((EvalTime::Range { start, end, step }, rest))
}

/// Reads one expected line.
fn read_expectation(line: &str, expected: &mut Expected) -> Result<(), String> {
    if let Some(rest) = line.strip_prefix("expect ") {
        let (word, rest) = split_word(rest.trim_start());
        match word {
            "ordered" => expected.ordered = true,
            "fail" => expected.fail = Some(expected_text(rest)),
            "warn" => expected.warnings.push(expected_text(rest)),
            "info" => expected.infos.push(expected_text(rest)),
            "no_warn" => expected.no_warnings = true,
            "no_info" => expected.no_infos = true,
            "string" => expected.string = Some(unquote(rest)?),
            "range" => {
                let times = rest.strip_prefix("vector ").ok_or("no vector behind range")?;
                let (EvalTime::Range { start, step, .. }, _) =
                    eval_time(&format!("range {times} -"))?
                else {
                    return Err(format!("no range: {rest}"));
                };
                expected.range = Some((start, step));
            }
            other => return Err(format!("expect {other} is not known")),
        }
    } else if let Some(rest) = line.strip_prefix("expected_fail_message ") {
        expected.fail = Some(ExpectedText::Exact(rest.trim().to_owned()));
    } else if let Some(rest) = line.strip_prefix("expected_fail_regexp ") {
        expected.fail = Some(ExpectedText::Pattern(rest.trim().to_owned()));
    } else if let Some(scalar) = parse_number(line) {
        expected.scalar = Some(scalar);
    } else {
        expected.series.push(Series::parse(line)?);
    }
    Ok(())
}

fn expected_text(rest: &str) -> ExpectedText {
    if let Some(exact) = rest.strip_prefix("msg:") {
        return ExpectedText::Exact(exact.trim().to_owned());
    }
    match rest.strip_prefix("regex:") {
        Some(pattern) => ExpectedText::Pattern(pattern.trim().to_owned()),
        None => ExpectedText::Any,
    }
}

/// Returns the first word and the rest of a text.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_start())
}

#[test]
fn scripts_are_read_block_by_block() {
    let script = "# A remark.\nload 5m\n  a 1x3\n  b{c=\"d\"} _ 2\n\nclear\n\
        eval instant at 10m sum(a)\n  expect ordered\n  expect warn msg: w 1\n  {} 4\n\n\
        eval_fail instant at 1m1s a[\n\n\
        eval range from 0 to 10m step 5m a\n  a 1 1 1\n# end\n\
        eval instant at 1m a[5m]\n  expect range vector from 10s to 1m step 10s\n  a 1 2\n\n\
        eval instant at 1m \"x\"\n  expect string \"x\"\n\neval instant at 1m 2\n  2\n";
    let blocks = parse(script);
    let Block::Load { line: 2, step: 300_000, series, with_histograms: false } = &blocks[0] else {
        panic!("{blocks:?}")
    };
    assert_eq!(series.iter().map(|series| series.items.len()).collect::<Vec<_>>(), [4, 2]);
    assert!(matches!(blocks[1], Block::Clear));
    let evals: Vec<_> = blocks[2..]
        .iter()
        .map(|block| match block {
            Block::Eval(eval) => eval,
            Block::Load { .. } | Block::Clear | Block::Unread { .. } => panic!("{block:?}"),
        })
        .collect();
    let lines: Vec<_> = evals.iter().map(|eval| (eval.line, eval.expression.as_str())).collect();
    assert_eq!(
        lines,
        [(7, "sum(a)"), (12, "a["), (14, "a"), (17, "a[5m]"), (21, "\"x\""), (24, "2")]
    );
    assert!(evals[0].expected.ordered && evals[0].expected.warnings.len() == 1);
    assert!(matches!(evals[1].when, EvalTime::Instant(61_000)) && evals[1].expected.fail.is_some());
    assert!(matches!(evals[2].when, EvalTime::Range { start: 0, end: 600_000, step: 300_000 }));
    assert_eq!(evals[3].expected.range, Some((10_000, 10_000)));
    assert_eq!(evals[4].expected.string.as_deref(), Some("x"));
    assert_eq!(evals[5].expected.scalar, Some(2.0));
    let unreadable =
        parse("nonsense\neval instant at 1m 1\n  expect surprise\n\nload soon\n a 1\n");
    assert!(
        matches!(
            unreadable[..],
            [
                Block::Unread { line: 1, .. },
                Block::Unread { line: 2, .. },
                Block::Unread { line: 5, .. }
            ]
        ),
        "{unreadable:?}"
    );
}
