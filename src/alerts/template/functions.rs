//! The functions of Prometheus' templates that Go does not have.
//!
//! Must never know: whose labels and values they are called with.

use std::sync::Arc;

use gotmpl::{FuncMap, Value, ValueFunc};

use super::{
    TemplateQuery,
    allowance::{Allowance, check_nested},
    fault, humanize, patterns, text,
};
use crate::{alerts::external::graph_path, query::VectorSample};

/// The approximate size of a query's sample without its labels, and of a label without its texts.
const SAMPLE_BYTES: usize = 256;

/// Returns these functions, except those that make long texts or name the daemon's address.
pub(super) fn all(query: Option<TemplateQuery>, allowance: &Arc<Allowance>) -> FuncMap {
    let mut map = FuncMap::new();
    let mut add = |name: &str, own: ValueFunc| drop(map.insert(name.to_owned(), own));
    let allowance = allowance.clone();
    add("query", Arc::new(move |args| run(query.as_ref(), &allowance, args)));
    add("first", Arc::new(first));
    add("label", Arc::new(|args| labels_of(args, 1)?.index(&argument(args, 0)?)));
    add("value", Arc::new(|args| sample_field(args, 0, "Value")));
    add("strvalue", Arc::new(|args| labels_of(args, 0)?.index(&text("__value__"))));
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
                args.iter().enumerate().map(|(at, own)| (format!("arg{at}").into(), own.clone()));
            let made = Value::Map(Arc::new(named.collect()));
            check_nested(&made).map(|()| made)
        }),
    );
    map
}

pub(super) fn argument(args: &[Value], index: usize) -> gotmpl::Result<Value> {
    args.get(index).cloned().ok_or_else(|| fault("an argument is missing"))
}

pub(super) fn string(args: &[Value], index: usize) -> gotmpl::Result<String> {
    let found = argument(args, index)?;
    found.as_str().map(str::to_owned).ok_or_else(|| fault("an argument is no text"))
}

/// Numbers may be given as texts.
fn number(args: &[Value]) -> gotmpl::Result<f64> {
    let found = argument(args, 0)?;
    let read = found.as_float().or_else(|| found.as_str()?.trim().parse().ok());
    read.ok_or_else(|| fault("an argument is no number"))
}

fn on_text(own: impl Fn(&str) -> String + Send + Sync + 'static) -> ValueFunc {
    Arc::new(move |args| Ok(text(&own(&string(args, 0)?))))
}

fn on_number(own: fn(f64) -> String) -> ValueFunc {
    Arc::new(move |args| Ok(text(&own(number(args)?))))
}

fn run(
    query: Option<&TemplateQuery>,
    allowance: &Allowance,
    args: &[Value],
) -> gotmpl::Result<Value> {
    let query = query.ok_or_else(|| fault("nothing can be asked here"))?;
    let expression = string(args, 0)?;
    let found = allowance.asking(|| query(&expression))?.map_err(fault)?;
    for sample in &found {
        let labels = sample.labels.iter();
        let bytes = labels.map(|(name, value)| name.len() + value.len() + SAMPLE_BYTES / 2);
        allowance.take(SAMPLE_BYTES + bytes.sum::<usize>())?;
    }
    Ok(Value::List(found.iter().map(sample).collect()))
}

fn sample(own: &VectorSample) -> Value {
    let labels = own.labels.iter().map(|(name, value)| (name.into(), text(value)));
    let labels = Value::Map(Arc::new(labels.collect()));
    let fields = [("Labels".into(), labels), ("Value".into(), Value::Float(own.value))];
    Value::Map(Arc::new(fields.into()))
}

fn first(args: &[Value]) -> gotmpl::Result<Value> {
    let Value::List(all) = argument(args, 0)? else { return Err(fault("first: no list")) };
    all.first().cloned().ok_or_else(|| fault("first() called on vector with no elements"))
}

fn sample_field(args: &[Value], index: usize, name: &str) -> gotmpl::Result<Value> {
    let own = argument(args, index)?;
    own.field(name).cloned().ok_or_else(|| fault("an argument is no sample of a query"))
}

fn labels_of(args: &[Value], index: usize) -> gotmpl::Result<Value> {
    sample_field(args, index, "Labels")
}

fn sort_by_label(args: &[Value]) -> gotmpl::Result<Value> {
    let name = string(args, 0)?;
    let Value::List(all) = argument(args, 1)? else { return Err(fault("sortByLabel: no list")) };
    let mut all = all.to_vec();
    let key = |own: &Value| {
        let labels = own.field("Labels").and_then(|labels| labels.field(&name));
        labels.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    all.sort_by_key(key);
    Ok(Value::List(all.into()))
}

fn title(own: &str) -> String {
    let mut out = String::with_capacity(own.len());
    let mut is_first = true;
    for c in own.chars() {
        if is_first {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
        is_first = c.is_whitespace();
    }
    out
}

fn strip_port(own: &str) -> String {
    own.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or_else(
        || own.to_owned(),
        |(host, _)| host.trim_start_matches('[').trim_end_matches(']').to_owned(),
    )
}

fn strip_domain(own: &str) -> String {
    let (host, port) = own.split_once(':').map_or((own, None), |(host, port)| (host, Some(port)));
    if own.matches(':').count() > 1 || host.parse::<std::net::IpAddr>().is_ok() {
        return own.to_owned();
    }
    let host = host.split('.').next().unwrap_or_default();
    port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
