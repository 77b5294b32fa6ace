//! Templates of labels and annotations: Go's templates with Prometheus' functions and variables
//! (`prometheus.io/docs/prometheus/latest/configuration/template_reference`).
//!
//! The library gotmpl evaluates them; `allowance` limits their time and memory. Must never know:
//! alerts, how a query is answered.

mod allowance;
mod functions;
mod growing;
mod humanize;
mod message;
mod methods;
mod patterns;
mod reading;
mod times;

use std::{collections::BTreeMap, fmt, sync::Arc};

use gotmpl::{
    FuncMap, Template, TemplateError, Value,
    parse::{DefineNode, ListNode, Parser},
};

use super::{ExternalIdentity, LabelSet};
use crate::query::{Labels, VectorSample};
use allowance::Allowance;
pub use allowance::TemplateTime;
pub use message::MessageTemplates;
use reading::{CHECK, TreeReader};

/// The function that answers the queries of a template.
pub type TemplateQuery = Arc<dyn Fn(&str) -> Result<Vec<VectorSample>, String> + Send + Sync>;

/// The declarations of variables that precede every template.
const VARIABLES: &str = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}\
                         {{$externalURL := .ExternalURL}}{{$value := .Value}}";
/// The name of the text that is expanded; no template can invoke it.
const MAIN: &str = "main text";
/// The maximum size of a template, in bytes.
const TEMPLATE_BYTES_MAX: usize = 64 << 10;
/// The text that gotmpl writes for a missing key.
const MISSING_KEY: &str = "<no value>";
/// The maximum number of iterations of all loops of one template.
const ITERATIONS_MAX: u64 = 10_000;
/// The maximum size of an expanded template, in bytes.
const EXPANDED_BYTES_MAX: usize = 16 << 10;

/// Returns the error of a function, which ends the expansion.
fn fault(message: impl Into<String>) -> TemplateError {
    TemplateError::Exec(message.into())
}

/// The data of templates about one series.
pub struct TemplateData {
    data: Value,
    query: Option<TemplateQuery>,
    time: TemplateTime,
    /// The external URL and its path.
    address: (String, String),
}

impl TemplateData {
    /// Returns the data for the labels and the value of a series, within the time of an evaluation.
    pub fn new(
        labels: &Labels,
        value: f64,
        query: Option<TemplateQuery>,
        time: &TemplateTime,
        external: &ExternalIdentity,
    ) -> Self {
        let labels = labels.iter().map(|(name, value)| (name.into(), text_value(value)));
        let variables: BTreeMap<Arc<str>, Value> = [
            ("Labels".into(), Value::Map(Arc::new(labels.collect()))),
            ("ExternalLabels".into(), labels_value(&external.labels)),
            ("ExternalURL".into(), text_value(&external.url)),
            ("Value".into(), Value::Float(value)),
        ]
        .into();
        let (url, prefix) = (external.url.clone(), external.path_prefix().to_owned());
        Self {
            data: Value::Map(Arc::new(variables)),
            query,
            time: time.clone(),
            address: (url, prefix),
        }
    }

    /// Expands a template; if that fails, the text describes the error, as in Prometheus.
    pub fn expand(&self, template: &str) -> String {
        if !template.contains("{{") {
            return template.to_owned();
        }
        let allowance = Allowance::new(&self.time);
        let (url, prefix) = (self.address.0.as_str(), self.address.1.as_str());
        let functions = functions(self.query.clone(), &allowance, (url, prefix));
        let mut text = BoundedText::new(EXPANDED_BYTES_MAX);
        let expanded = parse_trees(template, &functions).and_then(|trees| {
            let template = Template::new("").max_range_iters(ITERATIONS_MAX).funcs(functions);
            let template = trees
                .into_iter()
                .fold(template, |template, (name, tree)| template.add_parse_tree(&name, tree));
            let written = template.execute_template_fmt(&mut text, MAIN, &self.data);
            written.map_err(|cause| cause.to_string())
        });
        match expanded {
            _ if text.is_over => {
                format!("<error expanding template: more than {EXPANDED_BYTES_MAX} bytes>")
            }
            // A missing label is empty in Prometheus.
            Ok(()) => text.text.replace(MISSING_KEY, ""),
            Err(cause) => format!("<error expanding template: {cause}>"),
        }
    }

    /// Checks that a template can be parsed, without executing it, because any client may send it.
    ///
    /// # Errors
    /// The fault of the template.
    pub fn check(template: &str) -> Result<(), String> {
        if !template.contains("{{") {
            return Ok(());
        }
        let allowance = Allowance::new(&TemplateTime::default());
        parse_trees(template, &functions(None, &allowance, ("", ""))).map(drop)
    }
}

/// A text with a maximum size; more text is refused.
#[derive(Debug)]
struct BoundedText {
    text: String,
    is_over: bool,
    bytes_max: usize,
}

impl BoundedText {
    fn new(bytes_max: usize) -> Self {
        Self { text: String::new(), is_over: false, bytes_max }
    }
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.is_over |= self.text.len() + text.len() > self.bytes_max;
        if self.is_over {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// Returns the parse trees of a template and of the templates that it defines.
fn parse_trees(template: &str, functions: &FuncMap) -> Result<BTreeMap<String, ListNode>, String> {
    if template.len() > TEMPLATE_BYTES_MAX {
        return Err(format!("the template has more than {TEMPLATE_BYTES_MAX} bytes: shorten it"));
    }
    let (mut main, defined) = trees(&format!("{VARIABLES}{template}"))?;
    let mut reading = TreeReader::default();
    let mut trees = BTreeMap::new();
    for mut definition in defined {
        reading.read_invoked(&mut definition.body);
        trees.insert(definition.name.to_string(), definition.body);
    }
    reading.read_tree(&mut main, &[]);
    trees.insert(MAIN.to_owned(), main);
    reading.missing(functions, &trees).map_or(Ok(trees), Err)
}

fn trees(text: &str) -> Result<(ListNode, Vec<DefineNode>), String> {
    let parsed = Parser::new(text, "{{", "}}").and_then(Parser::parse);
    parsed.map_err(|cause| cause.to_string())
}

/// Returns Prometheus' functions, Go's functions that produce texts, and the function that checks
/// the limits. `externalURL` and `pathPrefix` return the external URL and its path.
fn functions(
    query: Option<TemplateQuery>,
    allowance: &Arc<Allowance>,
    (url, prefix): (&str, &str),
) -> FuncMap {
    let mut map = functions::prometheus_functions(query, allowance);
    for (name, fixed) in [("externalURL", url), ("pathPrefix", prefix)] {
        let fixed = text_value(fixed);
        map.insert(name.to_owned(), Arc::new(move |_| Ok(fixed.clone())));
    }
    map.extend(growing::growing_functions());
    map.insert(CHECK.to_owned(), Arc::new(|_| Ok(Value::Nil)));
    allowance.with_limits(map)
}

fn text_value(text: &str) -> Value {
    Value::String(text.into())
}

fn labels_value(labels: &LabelSet) -> Value {
    Value::Map(Arc::new(
        labels.iter().map(|(name, value)| (name.as_str().into(), text_value(value))).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::new(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    /// The examples of Prometheus' documentation and tests that rule files use.
    #[test]
    fn templates_expand_as_in_prometheus() {
        let web1 = labels(&[("instance", "web1:9100"), ("job", "node")]);
        let answer = labels(&[("__name__", "metric"), ("instance", "a")]);
        let query: TemplateQuery = Arc::new(move |text| match text {
            "metric" => {
                let labels = answer.clone();
                Ok(vec![VectorSample { labels, at: 0, value: 11.0, histogram: None }])
            }
            "none" => Ok(Vec::new()),
            other => Err(format!("{other} cannot be queried")),
        });
        let external = ExternalIdentity {
            url: "https://example.org/granary".to_owned(),
            labels: [("region".to_owned(), "eu".to_owned())].into(),
        };
        let time = TemplateTime::default();
        let data = TemplateData::new(&web1, 1234.5, Some(query), &time, &external);
        let check = |template: &str, expected: &str| {
            assert_eq!(data.expand(template), expected, "{template}");
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
        check("{{ $externalLabels.a }}{{ $externalLabels.region }}", "eu");
        check("{{ $externalURL }} {{ externalURL }}", &[external.url.as_str(); 2].join(" "));
        check("{{ .ExternalURL }} {{ .ExternalLabels.region }}", &format!("{} eu", external.url));
        check("{{ pathPrefix }}", "/granary");
        check("{{ tableLink \"up\" }}", "/graph?g0.expr=up&g0.tab=1");
        let failed = data.expand("{{ query \"bad\" }}");
        assert!(failed.starts_with("<error expanding template"), "{failed}");
        assert!(data.expand("{{ query \"none\" | first }}").contains("error expanding"));
        let endless = data.expand("{{ range 1000000 }}aaaa{{ end }}");
        assert!(endless.starts_with("<error expanding template"), "{}", endless.len());
        assert!(TemplateData::check("{{ $labels.x").is_err());
        assert!(TemplateData::check("{{ unknown_function 1 }}").is_err());
        assert!(TemplateData::check("{{ $lables.x }}").is_err());
        assert_eq!(TemplateData::check("{{ range query \"up\" }}{{ end }}"), Ok(()));
    }

    /// Each of these templates could end the daemon or block it forever, from a rule file or from a
    /// check.
    #[test]
    fn no_template_exceeds_its_limits() {
        let time = TemplateTime::default();
        let data =
            TemplateData::new(&labels(&[("a", "b")]), 1.0, None, &time, ExternalIdentity::none());
        let twice = |n: u32| {
            let next = n + 1;
            let invoked = format!("{{{{template \"t{next}\"}}}}");
            [format!("{{{{define \"t{n}\"}}}}"), invoked.clone(), invoked, "{{end}}".to_owned()]
                .concat()
        };
        let laughs = (0..60).map(twice).collect::<Vec<_>>().concat();
        let endless = [
            // Texts that double in size.
            r#"{{ $x := "aaaaaaaaaa" }}{{ range 40 }}{{ $x = printf "%s%s" $x $x }}{{ end }}"#,
            r#"{{ $x := "aaaaaaaaaa" }}{{ range 40 }}{{ $x = print $x $x }}{{ end }}"#,
            r#"{{ $x := "<" }}{{ range 40 }}{{ $x = html $x }}{{ end }}{{ range 9000 }}{{ $x = js (printf "%q" $x) }}{{ end }}"#,
            r#"{{ $x := "a" }}{{ range 40 }}{{ $x = reReplaceAll "." "$0$0" $x }}{{ end }}"#,
            r#"{{ range 10000 }}{{ $x := printf "%060000d" 1 }}{{ end }}"#,
            // Nested lists, which are small until they are shown, and deep ones.
            r#"{{ $x := "a" }}{{ range 40 }}{{ $x = args $x $x }}{{ end }}{{ printf "%v" $x }}"#,
            r#"{{ $x := "a" }}{{ range 10000 }}{{ $x = args $x }}{{ end }}"#,
            r#"{{ define "t" }}{{ with .arg0 }}{{ template "t" . }}{{ template "t" . }}{{ end }}{{ end }}{{ $x := args "a" }}{{ range 30 }}{{ $x = args $x }}{{ end }}{{ template "t" $x }}"#,
            // Templates that invoke themselves or others repeatedly.
            r#"{{ define "t" }}{{ if . }}{{ template "t" (slice . 1) }}{{ template "t" (slice . 1) }}{{ end }}{{ end }}{{ template "t" "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" }}"#,
            &format!("{laughs}{{{{define \"t60\"}}}}{{{{end}}}}{{{{template \"t0\"}}}}"),
            // Patterns that take long to compile.
            r#"{{ range 9000 }}{{ if match (printf "(\\pL{1,5}){1,%d}" .) "x" }}{{ end }}{{ end }}"#,
        ];
        let watch = crate::clock::Stopwatch::start();
        for template in endless {
            assert_eq!(TemplateData::check(template), Ok(()), "{template}");
            let expanded = data.expand(template);
            assert!(expanded.starts_with("<error expanding template"), "{template}: {expanded}");
        }
        assert!(watch.elapsed().as_secs() < 40, "{:?}", watch.elapsed());
        let spent = data.expand("{{ range 100 }}{{ end }}{{ toUpper \"x\" }}");
        assert!(spent == "X" || spent.contains("all templates of the evaluation"), "{spent}");
        let too_long = format!("{{{{ 1 }}}}{}", "x".repeat(TEMPLATE_BYTES_MAX));
        assert!(TemplateData::check(&too_long).is_err());
    }

    #[test]
    fn unknown_names_are_found_without_executing_the_template() {
        let accepted =
            |template: &str| assert_eq!(TemplateData::check(template), Ok(()), "{template}");
        accepted(
            "{{ range $i, $x := query \"up\" }}{{ $i }}{{ $x.Value }}{{ $y := 1 }}{{ $y }}{{ end }}",
        );
        accepted("{{ if $z := .Value }}{{ $z }}{{ else }}{{ $z }}{{ end }}");
        accepted("{{ define \"t\" }}{{ $.x }}{{ end }}{{ template \"t\" args 1 2 }}");
        accepted("{{ with $labels }}{{ .x | printf \"%s\" }}{{ end }}{{ break }}");
        let refused = |template: &str, expected: &str| {
            let cause = TemplateData::check(template).unwrap_err();
            assert!(cause.contains(expected), "{template}: {cause}");
        };
        refused("{{ if false }}{{ $x }}{{ end }}", "$x");
        refused("{{ range 1 }}{{ $x := 1 }}{{ end }}{{ $x }}", "$x");
        refused("{{ if $z := 1 }}{{ end }}{{ $z }}", "$z");
        refused("{{ $x = 1 }}", "$x");
        refused("{{ define \"t\" }}{{ $labels }}{{ end }}", "$labels");
        refused("{{ if false }}{{ printf \"%v\" (nothing 1) }}{{ end }}", "nothing");
        refused("{{ template \"t\" }}", "\"t\"");
    }
}
