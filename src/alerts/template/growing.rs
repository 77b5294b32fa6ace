//! Functions whose result can be much longer than their arguments: each computes the maximum length
//! first and refuses a result that is too long before it is built.
//!
//! Must never know: which templates call them.

use std::{collections::BTreeMap, sync::Arc};

use gotmpl::{FuncMap, Template, Value};

use super::{
    allowance::{VALUE_BYTES_MAX, shown_bytes},
    fault,
    functions::{argument, string},
    patterns, text_value,
};

/// The maximum number of bytes that a byte becomes when it is quoted or escaped.
const ESCAPED: usize = 10;
/// The maximum number of bytes of the error text that a directive of `printf` adds.
const DIRECTIVE_BYTES: usize = 64;
/// The limit of the computed length, which is more than the actual length.
const COMPUTED_BYTES_MAX: usize = 16 * VALUE_BYTES_MAX;
/// The characters in a directive of `printf` other than digits.
const FLAGS: &str = "+-# .*[]";

/// Returns all functions; most of them replace Go's functions of the same name.
pub(super) fn growing_functions() -> FuncMap {
    let mut map = FuncMap::new();
    let mut add = |name: &str, function: fn(&[Value]) -> gotmpl::Result<Value>| {
        map.insert(name.to_owned(), Arc::new(function));
    };
    add("print", |args| call_go("print", args, total_bytes(args)?));
    add("println", |args| call_go("println", args, total_bytes(args)?));
    add("printf", |args| call_go("printf", args, printf_bytes_max(args)?));
    add("html", |args| Ok(text_value(&gotmpl::html_escape(&argument_to_escape(args)?))));
    add("js", |args| Ok(text_value(&gotmpl::js_escape(&argument_to_escape(args)?))));
    add("urlquery", |args| Ok(text_value(&gotmpl::url_encode(&argument_to_escape(args)?))));
    add("slice", slice);
    add("join", join);
    add("reReplaceAll", replace);
    map
}

fn too_long() -> gotmpl::TemplateError {
    fault(format!("a text is longer than {VALUE_BYTES_MAX} bytes"))
}

/// Returns the bytes of a value's text.
fn text_bytes(value: &Value) -> gotmpl::Result<usize> {
    shown_bytes(value, VALUE_BYTES_MAX).ok_or_else(too_long)
}

fn total_bytes(args: &[Value]) -> gotmpl::Result<usize> {
    args.iter().try_fold(0, |sum: usize, arg| Ok(sum + text_bytes(arg)?))
}

/// Returns the maximum length of the text of `printf`.
fn printf_bytes_max(args: &[Value]) -> gotmpl::Result<usize> {
    let format = string(args, 0)?;
    let args = args.get(1..).unwrap_or_default();
    let mut largest = 0;
    for arg in args {
        largest = text_bytes(arg)?.max(largest);
    }
    let integers = args.iter().filter_map(Value::as_int).map(i64::unsigned_abs);
    // A negative width counts by its absolute value, and widths are limited.
    let longest = integers.max().unwrap_or(0).min(u64::from(u16::MAX)) as usize;
    let mut sum = format.len() + total_bytes(args)? * ESCAPED;
    for directive in format.split('%').skip(1) {
        let end = directive.find(|c: char| !c.is_ascii_digit() && !FLAGS.contains(c));
        let parts = directive.get(..end.unwrap_or(directive.len())).unwrap_or_default();
        let digits = parts.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
        let widths = digits.map(|digits| digits.parse::<u16>().unwrap_or(u16::MAX));
        let widths: usize = widths.map(usize::from).sum();
        let stars = parts.matches('*').count() * longest;
        sum = sum
            .saturating_add(widths.saturating_add(stars))
            .saturating_add(largest * ESCAPED + DIRECTIVE_BYTES);
    }
    Ok(sum)
}

/// Calls one of Go's functions, which gotmpl only offers inside templates.
fn call_go(name: &str, args: &[Value], computed: usize) -> gotmpl::Result<Value> {
    if computed > COMPUTED_BYTES_MAX {
        return Err(too_long());
    }
    let mut call = format!("{{{{{name}");
    let mut data = BTreeMap::<Arc<str>, Value>::new();
    for (at, arg) in args.iter().enumerate() {
        let field = format!("a{at}");
        call.push_str(" .");
        call.push_str(&field);
        data.insert(field.into(), arg.clone());
    }
    let template = Template::new("").parse(&(call + "}}"))?;
    let expanded = template.execute_to_string(&Value::Map(Arc::new(data)))?;
    if expanded.len() > VALUE_BYTES_MAX { Err(too_long()) } else { Ok(text_value(&expanded)) }
}

/// Returns the only argument of a function that escapes, as a text.
fn argument_to_escape(args: &[Value]) -> gotmpl::Result<String> {
    let value = argument(args, 0)?;
    if text_bytes(&value)? * ESCAPED > COMPUTED_BYTES_MAX {
        return Err(too_long());
    }
    Ok(if matches!(value, Value::Nil) { super::MISSING_KEY.to_owned() } else { value.to_string() })
}

/// Cuts a list or a text as Go does. The function is replaced because the result is a new text
/// whose bytes count.
fn slice(args: &[Value]) -> gotmpl::Result<Value> {
    let position = |index: usize| {
        let Some(index) = args.get(index) else { return Ok(None) };
        index.as_int().map(Some).ok_or_else(|| fault("slice: an index is not a number"))
    };
    let (start, end, most) = (position(1)?, position(2)?, position(3)?);
    let value = argument(args, 0)?;
    let is_beyond = match (&value, most) {
        (_, None) => false,
        (Value::List(list), Some(most)) => {
            end.is_some_and(|end| end > most) || usize::try_from(most).is_ok_and(|n| n > list.len())
        }
        _ => true,
    };
    if args.len() > 4 || is_beyond {
        return Err(fault("slice: the indexes are out of range"));
    }
    value.slice(start, end)
}

fn join(args: &[Value]) -> gotmpl::Result<Value> {
    let separator = string(args, 0)?;
    let value = argument(args, 1)?;
    let Value::List(all) = &value else { return Err(fault("join: the argument is not a list")) };
    let separators = separator.len().saturating_mul(all.len());
    if text_bytes(&value)?.saturating_add(separators) > COMPUTED_BYTES_MAX {
        return Err(too_long());
    }
    let parts: Vec<_> = all.iter().map(ToString::to_string).collect();
    Ok(text_value(&parts.join(&separator)))
}

/// Replaces matches of a pattern. Go and the library regex both support `$1` and `${1}`, and read
/// `$1x` as the name of a group.
fn replace(args: &[Value]) -> gotmpl::Result<Value> {
    let (found, replacement) = (string(args, 2)?, string(args, 1)?);
    let pattern = patterns::compiled(&string(args, 0)?)?;
    let groups = replacement.matches('$').count();
    let (mut output, mut rest) = (String::new(), 0);
    for captures in pattern.captures_iter(&found) {
        let Some(whole) = captures.get(0) else { break };
        let longest = replacement.len().saturating_add(groups.saturating_mul(whole.len()));
        output.push_str(found.get(rest..whole.start()).unwrap_or_default());
        if output.len().saturating_add(longest) > VALUE_BYTES_MAX {
            return Err(too_long());
        }
        captures.expand(&replacement, &mut output);
        rest = whole.end();
    }
    output.push_str(found.get(rest..).unwrap_or_default());
    if output.len() > VALUE_BYTES_MAX { Err(too_long()) } else { Ok(text_value(&output)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, args: &[Value]) -> gotmpl::Result<String> {
        growing_functions()[name](args).map(|value| value.to_string())
    }

    /// Returns the result of Go's function in gotmpl.
    fn in_go_alone(name: &str, args: &[Value]) -> String {
        let references: Vec<_> = (0..args.len()).map(|at| format!("(index . {at})")).collect();
        let template = format!("{{{{{name} {}}}}}", references.join(" "));
        let data = Value::List(args.into());
        Template::new("").parse(&template).unwrap().execute_to_string(&data).unwrap()
    }

    #[test]
    fn results_equal_those_of_gos_functions() {
        let list = Value::List([text_value("a"), Value::Int(3)].into());
        let values = [
            text_value("x <b>\n\u{1}é"),
            Value::Int(-7),
            Value::Float(2.5),
            Value::Nil,
            list.clone(),
        ];
        for value in values {
            for name in ["print", "println", "html", "js", "urlquery"] {
                let args = [value.clone()];
                assert_eq!(call(name, &args).unwrap(), in_go_alone(name, &args), "{name}");
            }
            for format in ["%v", "%5v|", "%-8v|", "%q", "%s", "%d", "%.1f", "%x", "100%% %v", "%"] {
                let args = [text_value(format), value.clone()];
                assert_eq!(
                    call("printf", &args).unwrap(),
                    in_go_alone("printf", &args),
                    "{format}"
                );
            }
        }
        let stars =
            [text_value("%*d|%-*d|%[1]d %[2]d %.*f"), Value::Int(5), Value::Int(42), Value::Int(3)];
        assert_eq!(call("printf", &stars).unwrap(), in_go_alone("printf", &stars));
        let numbers = |numbers: &[i64]| numbers.iter().map(|n| Value::Int(*n)).collect::<Vec<_>>();
        for (value, bounds) in [(text_value("abcdef"), vec![1, 3]), (list.clone(), vec![0, 1, 2])] {
            for count in 0..=bounds.len() {
                let args = [vec![value.clone()], numbers(&bounds[..count])].concat();
                assert_eq!(call("slice", &args).unwrap(), in_go_alone("slice", &args));
            }
        }
        for wrong in [vec![7], vec![-1], vec![3, 1], vec![0, 1, 1]] {
            assert!(
                call("slice", &[vec![text_value("abcdef")], numbers(&wrong)].concat()).is_err()
            );
        }
        assert!(call("slice", &[vec![list], numbers(&[0, 2, 1])].concat()).is_err());
    }

    #[test]
    fn results_that_are_too_long_are_refused_before_they_are_built() {
        let long_value = text_value(&"x".repeat(VALUE_BYTES_MAX / 2));
        let ones = Value::List(vec![text_value("1"); 2000].into());
        let check = |name: &str, args: &[Value]| {
            let refused = call(name, args).unwrap_err().to_string();
            assert!(refused.contains("longer than"), "{name}: {refused}");
        };
        check("print", &[long_value.clone(), long_value.clone(), long_value.clone()]);
        check("println", &[long_value.clone(), long_value.clone()]);
        check(
            "printf",
            &[text_value("%s%s%s"), long_value.clone(), long_value.clone(), long_value.clone()],
        );
        check("printf", &[text_value(&"%[1]s".repeat(20_000)), long_value.clone()]);
        check("printf", &[text_value(&"%060000d".repeat(10_000)), Value::Int(1)]);
        check("printf", &[text_value(&"%[1]*[1]d".repeat(10_000)), Value::Int(i64::MIN)]);
        check("html", &[text_value(&"<".repeat(VALUE_BYTES_MAX * 2))]);
        check("join", &[long_value.clone(), ones]);
        check("reReplaceAll", &[text_value("x"), long_value.clone(), long_value.clone()]);
        check("reReplaceAll", &[text_value("x+"), text_value(&"$0".repeat(60_000)), long_value]);
        let short = [text_value("(a)b"), text_value("[$1]"), text_value("abab")];
        assert_eq!(call("reReplaceAll", &short).unwrap(), "[a][a]");
    }
}
