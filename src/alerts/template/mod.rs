//! Templates of labels and annotations: Go's, with Prometheus' functions and variables
//! (`prometheus.io/docs/prometheus/latest/configuration/template_reference`).
//!
//! gotmpl evaluates them within bounds. Must never know: alerts, how a query is answered.

mod functions;
mod humanize;
mod message;
mod methods;
mod times;

use std::{collections::BTreeMap, fmt, sync::Arc};

use gotmpl::{Template, TemplateError, Value};

use crate::query::{Labels, VectorSample};
pub use message::MessageTemplates;

/// What answers a query that a template asks.
pub type TemplateQuery = Arc<dyn Fn(&str) -> Result<Vec<VectorSample>, String> + Send + Sync>;

/// The variables that stand before every template.
const VARIABLES: &str = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}\
                         {{$externalURL := .ExternalURL}}{{$value := .Value}}";
/// What gotmpl writes for a key that is not there.
const NOTHING: &str = "<no value>";
/// Turns of all loops of one template.
const TURNS_MAX: u64 = 10_000;
/// Bytes that a template may become.
const EXPANDED_BYTES_MAX: usize = 16 << 10;

/// What templates about one series are expanded with.
pub struct Expanding {
    data: Value,
    query: Option<TemplateQuery>,
}

impl Expanding {
    /// With the labels of a series and its value.
    pub fn new(labels: &Labels, value: f64, query: Option<TemplateQuery>) -> Self {
        let labels = labels.iter().map(|(name, value)| (name.into(), text(value)));
        let own: BTreeMap<Arc<str>, Value> = [
            ("Labels".into(), Value::Map(Arc::new(labels.collect()))),
            ("ExternalLabels".into(), Value::Map(Arc::default())),
            ("ExternalURL".into(), text("")),
            ("Value".into(), Value::Float(value)),
        ]
        .into();
        Self { data: Value::Map(Arc::new(own)), query }
    }

    /// The text that a template becomes; what cannot be expanded says why, as in Prometheus.
    pub fn expand(&self, template: &str) -> String {
        if !template.contains("{{") {
            return template.to_owned();
        }
        let mut text = Bounded::new(EXPANDED_BYTES_MAX);
        let expanded = parsed(template, self.query.clone())
            .and_then(|template| template.execute_fmt(&mut text, &self.data));
        match expanded {
            _ if text.is_over => {
                format!("<error expanding template: more than {EXPANDED_BYTES_MAX} bytes>")
            }
            // What a label that is not there is in Prometheus: nothing.
            Ok(()) => text.text.replace(NOTHING, ""),
            Err(cause) => format!("<error expanding template: {cause}>"),
        }
    }

    /// Checks that a template can be read, before anything is known to expand it with.
    ///
    /// # Errors
    /// With what is wrong.
    pub fn check(template: &str) -> Result<(), String> {
        if !template.contains("{{") {
            return Ok(());
        }
        let something = VectorSample { labels: Labels::default(), at: 0, value: 0.0 };
        let query: TemplateQuery = Arc::new(move |_| Ok(vec![something.clone()]));
        let expanding = Self::new(&Labels::default(), 0.0, Some(query.clone()));
        let expanded = parsed(template, Some(query))
            .map_err(|cause| cause.to_string())?
            .execute_fmt(&mut Bounded::new(EXPANDED_BYTES_MAX), &expanding.data);
        match expanded {
            // Only these are wrong whatever is known.
            Err(
                cause @ (TemplateError::UndefinedFunction(_) | TemplateError::UndefinedVariable(_)),
            ) => Err(cause.to_string()),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// A text of so many bytes at most; nothing more is taken.
#[derive(Debug)]
struct Bounded {
    text: String,
    is_over: bool,
    bytes_max: usize,
}

impl Bounded {
    fn new(bytes_max: usize) -> Self {
        Self { text: String::new(), is_over: false, bytes_max }
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.is_over |= self.text.len() + text.len() > self.bytes_max;
        if self.is_over {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

fn parsed(template: &str, query: Option<TemplateQuery>) -> gotmpl::Result<Template> {
    Template::new("")
        .max_range_iters(TURNS_MAX)
        .funcs(functions::all(query))
        .parse(&format!("{VARIABLES}{template}"))
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::new(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    /// The cases of Prometheus' own documentation and tests that rule files use.
    #[test]
    fn templates_become_what_they_become_in_prometheus() {
        let own = labels(&[("instance", "web1:9100"), ("job", "node")]);
        let asked = labels(&[("__name__", "metric"), ("instance", "a")]);
        let query: TemplateQuery = Arc::new(move |text| match text {
            "metric" => Ok(vec![VectorSample { labels: asked.clone(), at: 0, value: 11.0 }]),
            "none" => Ok(Vec::new()),
            other => Err(format!("{other} cannot be asked")),
        });
        let expanding = Expanding::new(&own, 1234.5, Some(query));
        let check = |template: &str, expected: &str| {
            assert_eq!(expanding.expand(template), expected, "{template}");
        };
        check("plain", "plain");
        check("{{ $labels.instance }} of job {{ $labels.job }}", "web1:9100 of job node");
        check("{{ .Labels.instance }} {{ .Value }}", "web1:9100 1234.5");
        check("{{ $value }}", "1234.5");
        check("{{ printf \"%.1f\" $value }}%", "1234.5%");
        check("{{ $value | humanize }}", "1.234k");
        check("{{ 0.1234 | humanizePercentage }}", "12.34%");
        check("{{ humanize1024 1048576.0 }}", "1Mi");
        check("{{ 899.99 | humanizeDuration }}", "14m 59s");
        check("{{ 1435065584.128 | humanizeTimestamp }}", "2015-06-23 13:19:44.128 +0000 UTC");
        check("{{ $labels.instance | stripPort }}", "web1");
        check("{{ \"foo.bar.com:80\" | stripDomain }}", "foo:80");
        check("{{ reReplaceAll \"(a)b\" \"x$1\" \"ab\" }}", "xa");
        check("{{ \"aa bb\" | title }} {{ toUpper \"x\" }} {{ toLower \"Y\" }}", "Aa Bb X y");
        check("{{ if match \"we.\" $labels.instance }}yes{{ else }}no{{ end }}", "yes");
        check("{{ query \"metric\" | first | value }}", "11");
        check("{{ range query \"metric\" }}{{ .Labels.instance }}={{ .Value }}{{ end }}", "a=11");
        check("{{ with query \"none\" }}some{{ else }}none{{ end }}", "none");
        check("{{ query \"metric\" | first | label \"instance\" }}", "a");
        check("{{ $labels.nothing }}", "");
        check("{{ $externalLabels.a }}{{ $externalURL }}", "");
        check("{{ tableLink \"up\" }}", "/graph?g0.expr=up&g0.tab=1");
        let failed = expanding.expand("{{ query \"bad\" }}");
        assert!(failed.starts_with("<error expanding template"), "{failed}");
        assert!(expanding.expand("{{ query \"none\" | first }}").contains("error expanding"));
        let endless = expanding.expand("{{ range 1000000 }}aaaa{{ end }}");
        assert!(endless.starts_with("<error expanding template"), "{}", endless.len());
        assert!(Expanding::check("{{ $labels.x").is_err());
        assert!(Expanding::check("{{ unknown_function 1 }}").is_err());
        assert!(Expanding::check("{{ $lables.x }}").is_err());
        assert_eq!(Expanding::check("{{ range query \"up\" }}{{ end }}"), Ok(()));
    }
}
