//! The functions that Prometheus adds to Go's templates.
//!
//! Must never know: the labels and values that they are called with.

use std::sync::Arc;

use gotmpl::{FuncMap, Value, ValueFunc};

use super::{
    TemplateQuery,
    allowance::{Allowance, check_nested},
    fault, humanize, patterns, text_value,
};
use crate::{alerts::external::graph_path, query::VectorSample};

/// The approximate size of a sample in addition to its labels; half of it also counts per label.
const SAMPLE_BYTES: usize = 256;

/// Returns all functions, except those that produce long texts and those that return the daemon's
/// URL.
pub(super) fn prometheus_functions(
    query: Option<TemplateQuery>,
    allowance: &Arc<Allowance>,
) -> FuncMap {
    let mut map = FuncMap::new();
    let mut add = |name: &str, function: ValueFunc| drop(map.insert(name.to_owned(), function));
    let allowance = allowance.clone();
    add("query", Arc::new(move |args| run(query.as_ref(), &allowance, args)));
    add("first", Arc::new(first));
    add("label", Arc::new(|args| labels_of(args, 1)?.index(&argument(args, 0)?)));
    add("value", Arc::new(|args| sample_field(args, 0, "Value")));
    add("strvalue", Arc::new(|args| labels_of(args, 0)?.index(&text_value("__value__"))));
    add("sortByLabel", Arc::new(sort_by_label));
    add(
        "match",
        Arc::new(|args| {
            let pattern = patterns::compiled(&string(args, 0)?)?;
            Ok(Value::Bool(pattern.is_match(&string(args, 1)?)))
        }),
    );
    add("title", on_text(title));
    add("toUpper", on_text(str::to_uppercase));
    add("toLower", on_text(str::to_lowercase));
    add("stripPort", on_text(strip_port));
    add("stripDomain", on_text(strip_domain));
    add("graphLink", on_text(|expression| graph_path(expression, 0)));
    add("tableLink", on_text(|expression| graph_path(expression, 1)));
    add("safeHtml", on_text(str::to_owned));
    add("humanize", on_number(humanize::thousands));
    add("humanize1024", on_number(humanize::binary));
    add("humanizeDuration", on_number(humanize::duration));
    add("humanizePercentage", on_number(humanize::percentage));
    add("humanizeTimestamp", on_number(humanize::timestamp));
    add(
        "args",
        Arc::new(|args| {
            let named =
                args.iter().enumerate().map(|(at, arg)| (format!("arg{at}").into(), arg.clone()));
            let map = Value::Map(Arc::new(named.collect()));
            check_nested(&map).map(|()| map)
        }),
    );
    map
}

pub(super) fn argument(args: &[Value], index: usize) -> gotmpl::Result<Value> {
    args.get(index).cloned().ok_or_else(|| fault("an argument is missing"))
}

pub(super) fn string(args: &[Value], index: usize) -> gotmpl::Result<String> {
    let found = argument(args, index)?;
    found.as_str().map(str::to_owned).ok_or_else(|| fault("an argument is not a text"))
}

/// Returns the first argument as a number, which may be written as a text.
fn number(args: &[Value]) -> gotmpl::Result<f64> {
    let found = argument(args, 0)?;
    let read = found.as_float().or_else(|| found.as_str()?.trim().parse().ok());
    read.ok_or_else(|| fault("an argument is not a number"))
}

fn on_text(function: impl Fn(&str) -> String + Send + Sync + 'static) -> ValueFunc {
    Arc::new(move |args| Ok(text_value(&function(&string(args, 0)?))))
}

fn on_number(function: fn(f64) -> String) -> ValueFunc {
    Arc::new(move |args| Ok(text_value(&function(number(args)?))))
}

fn run(
    query: Option<&TemplateQuery>,
    allowance: &Allowance,
    args: &[Value],
) -> gotmpl::Result<Value> {
    let query = query.ok_or_else(|| fault("queries are not available here"))?;
    let expression = string(args, 0)?;
    let found = allowance.querying(|| query(&expression))?.map_err(fault)?;
    for sample in &found {
        let labels = sample.labels.iter();
        let bytes = labels.map(|(name, value)| name.len() + value.len() + SAMPLE_BYTES / 2);
        allowance.spend(SAMPLE_BYTES + bytes.sum::<usize>())?;
    }
    Ok(Value::List(found.iter().map(sample).collect()))
}

fn sample(sample: &VectorSample) -> Value {
    let labels = sample.labels.iter().map(|(name, value)| (name.into(), text_value(value)));
    let labels = Value::Map(Arc::new(labels.collect()));
    let fields = [("Labels".into(), labels), ("Value".into(), Value::Float(sample.value))];
    Value::Map(Arc::new(fields.into()))
}

fn first(args: &[Value]) -> gotmpl::Result<Value> {
    let Value::List(all) = argument(args, 0)? else {
        return Err(fault("first: the argument is not a list"));
    };
    all.first().cloned().ok_or_else(|| fault("first() called on vector with no elements"))
}

fn sample_field(args: &[Value], index: usize, name: &str) -> gotmpl::Result<Value> {
    let sample = argument(args, index)?;
    sample.field(name).cloned().ok_or_else(|| fault("an argument is not a sample of a query"))
}

fn labels_of(args: &[Value], index: usize) -> gotmpl::Result<Value> {
    sample_field(args, index, "Labels")
}

fn sort_by_label(args: &[Value]) -> gotmpl::Result<Value> {
    let name = string(args, 0)?;
    let Value::List(all) = argument(args, 1)? else {
        return Err(fault("sortByLabel: the argument is not a list"));
    };
    let mut all = all.to_vec();
    let key = |sample: &Value| {
        let labels = sample.field("Labels").and_then(|labels| labels.field(&name));
        labels.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    all.sort_by_key(key);
    Ok(Value::List(all.into()))
}

fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_first = true;
    for c in text.chars() {
        if is_first {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
        is_first = c.is_whitespace();
    }
    out
}

fn strip_port(address: &str) -> String {
    address.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or_else(
        || address.to_owned(),
        |(host, _)| host.trim_start_matches('[').trim_end_matches(']').to_owned(),
    )
}

fn strip_domain(address: &str) -> String {
    let (host, port) =
        address.split_once(':').map_or((address, None), |(host, port)| (host, Some(port)));
    if address.matches(':').count() > 1 || host.parse::<std::net::IpAddr>().is_ok() {
        return address.to_owned();
    }
    let host = host.split('.').next().unwrap_or_default();
    port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
