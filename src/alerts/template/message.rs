//! Texts of notifications: Go's templates with Alertmanager's variables, methods and functions, and
//! Granary's default texts.
//!
//! Must never know: receivers, how anything is sent.

use std::{collections::BTreeMap, sync::Arc};

use gotmpl::{FuncMap, TemplateError, Value, html, parse::ListNode};
use jiff::tz::TimeZone;

use super::{
    BoundedText, ITERATIONS_MAX, MAIN, MISSING_KEY, TreeReader,
    allowance::{Allowance, TemplateTime, check_nested},
    functions::string,
    labels_value, methods, text_value,
    times::{self, NO_TIME},
    trees,
};
use crate::{
    alerts::{Message, MessageAlert},
    model::UnixMillis,
};

/// The maximum size of an expanded text, in bytes.
const EXPANDED_BYTES_MAX: usize = 256 << 10;
const DEFAULTS: &str = include_str!("defaults.tmpl");

/// The templates of notifications.
#[derive(Debug, Clone, Default)]
pub struct MessageTemplates {
    defined: BTreeMap<String, ListNode>,
}

impl MessageTemplates {
    /// Parses template files.
    ///
    /// # Errors
    /// The first fault in the files.
    pub fn new(files: &[String]) -> Result<Self, String> {
        let mut templates = Self { defined: BTreeMap::new() };
        let mut needed = TreeReader::default();
        for file in std::iter::once(DEFAULTS).chain(files.iter().map(String::as_str)) {
            let (_, defined) = trees(file)?;
            for mut definition in defined {
                methods::rewrite(&mut definition.body);
                needed.read_invoked(&mut definition.body);
                templates.defined.insert(definition.name.to_string(), definition.body);
            }
        }
        needed
            .missing(&functions(false, &Message::default()), &templates.defined)
            .map_or(Ok(templates), Err)
    }

    /// Checks that a text can be parsed and that all names in it are known.
    ///
    /// # Errors
    /// The fault of the text.
    pub fn check(&self, template: &str) -> Result<(), String> {
        self.parsed(template).map(drop)
    }

    /// Expands a text for a message.
    ///
    /// # Errors
    /// When the text cannot be expanded.
    pub fn expand(&self, template: &str, message: &Message) -> Result<String, String> {
        if !template.contains("{{") {
            return Ok(template.to_owned());
        }
        let main = self.parsed(template)?;
        let base = gotmpl::Template::new("")
            .max_range_iters(ITERATIONS_MAX)
            .funcs(functions(false, message));
        let all = self.defined.iter().map(|(name, tree)| (name.as_str(), tree));
        let base = all.fold(base, |base, (name, tree)| base.add_parse_tree(name, tree.clone()));
        let base = base.add_parse_tree(MAIN, main);
        expanded(|out| base.execute_template_fmt(out, MAIN, &data(message)))
    }

    /// Expands a text for a message and escapes its values for HTML.
    ///
    /// # Errors
    /// When the text cannot be expanded.
    pub fn expand_html(&self, template: &str, message: &Message) -> Result<String, String> {
        let main = self.parsed(template)?;
        let build = || {
            let base = html::Template::new("").max_range_iters(ITERATIONS_MAX);
            let mut base = base.funcs(functions(true, message));
            for (name, tree) in &self.defined {
                base = base.add_parse_tree(name, tree.clone())?;
            }
            base.add_parse_tree(MAIN, main)?.parse(&format!("{{{{ template {MAIN:?} . }}}}"))
        };
        let built = build().map_err(|cause: TemplateError| cause.to_string())?;
        expanded(|out| built.execute_fmt(out, &data(message)))
    }

    fn parsed(&self, template: &str) -> Result<ListNode, String> {
        let (mut main, defined) = trees(template)?;
        if !defined.is_empty() {
            return Err(
                "templates can only be defined in the files that the setting `templates` names"
                    .to_owned(),
            );
        }
        let mut needed = TreeReader::default();
        methods::rewrite(&mut main);
        needed.read_tree(&mut main, &[]);
        needed.missing(&functions(false, &Message::default()), &self.defined).map_or(Ok(main), Err)
    }
}

fn expanded(run: impl FnOnce(&mut BoundedText) -> gotmpl::Result<()>) -> Result<String, String> {
    let mut out = BoundedText::new(EXPANDED_BYTES_MAX);
    let outcome = run(&mut out);
    if out.is_over {
        return Err(format!("more than {EXPANDED_BYTES_MAX} bytes"));
    }
    outcome.map_err(|cause| cause.to_string())?;
    Ok(out.text.replace(MISSING_KEY, ""))
}

/// Returns Prometheus' and Alertmanager's functions and the methods, for one expansion.
fn functions(is_html: bool, message: &Message) -> FuncMap {
    let allowance = Allowance::new(&TemplateTime::default());
    let mut map = methods::functions();
    let mut add = |name: &str, function: fn(&[Value]) -> gotmpl::Result<Value>| {
        map.insert(name.to_owned(), Arc::new(function));
    };
    add("trimSpace", |args| Ok(text_value(string(args, 0)?.trim())));
    add("date", times::date);
    add("tz", times::tz);
    add("stringSlice", |args| {
        let list = Value::List(args.into());
        check_nested(&list).map(|()| list)
    });
    let mut bound = super::functions(None, &allowance, (&message.external_url, ""));
    bound.extend(allowance.with_limits(map));
    if is_html {
        let safe_html = |args: &[Value]| Ok(html::HTML::from(string(args, 0)?.as_str()).into());
        bound.insert("safeHtml".to_owned(), Arc::new(safe_html));
    }
    bound
}

/// Returns Alertmanager's variables.
fn data(message: &Message) -> Value {
    let alerts = message.alerts.iter().map(alert);
    let (labels, annotations) = message.common();
    map([
        ("Receiver", text_value(&message.receiver)),
        ("Status", text_value(message.status())),
        ("Alerts", Value::List(alerts.collect())),
        ("GroupLabels", labels_value(&message.group_labels)),
        ("CommonLabels", labels_value(&labels)),
        ("CommonAnnotations", labels_value(&annotations)),
        ("ExternalURL", text_value(&message.external_url)),
        ("TruncatedAlerts", Value::Int(message.unlisted_count() as i64)),
    ])
}

fn alert(alert: &MessageAlert) -> Value {
    map([
        ("Status", text_value(alert.status())),
        ("Labels", labels_value(&alert.labels)),
        ("Annotations", labels_value(&alert.annotations)),
        ("StartsAt", text_value(&time_text(Some(alert.starts_at)))),
        ("EndsAt", text_value(&time_text(alert.ends_at))),
        ("GeneratorURL", text_value(&alert.generator_url)),
        ("Fingerprint", text_value(&alert.fingerprint())),
        ("AcknowledgedBy", text_value(alert.acknowledged_by.as_deref().unwrap_or_default())),
    ])
}

fn time_text(at: Option<i64>) -> String {
    let at = at.map(|at| UnixMillis(at).timestamp().to_zoned(TimeZone::UTC));
    at.map_or_else(|| NO_TIME.to_owned(), |at| times::go_time_text(&at))
}

fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter().map(|(name, value)| (name.into(), value));
    Value::Map(Arc::new(fields.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::LabelSet;

    fn message() -> Message {
        let labels = |text: &str| -> LabelSet {
            let pair = |part: &str| {
                part.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
            };
            text.split(' ').filter_map(pair).collect()
        };
        let alert = |host: &str, ends_at: Option<i64>| MessageAlert {
            labels: labels(&format!("alertname=High host={host} severity=page")),
            annotations: [("summary".to_owned(), format!("{host} <is> high"))].into(),
            starts_at: 1_795_305_600_000,
            ends_at,
            acknowledged_by: ends_at.is_none().then(|| "ann".to_owned()),
            generator_url: format!("https://example.org/graph?g0.expr={host}&g0.tab=1"),
            ..MessageAlert::default()
        };
        Message {
            receiver: "team".to_owned(),
            alerts: vec![alert("a", None), alert("b", Some(1_795_309_200_000))],
            group_labels: labels("severity=page alertname=High"),
            group_key: "{}:{}".to_owned(),
            external_url: "https://example.org/granary".to_owned(),
            ..Message::default()
        }
    }

    #[test]
    fn alertmanagers_variables_methods_and_functions_are_supported() {
        let templates =
            MessageTemplates::new(
                &["{{ define \"one\" }}<{{ .Labels.host }}>{{ end }}".to_owned()],
            );
        let templates = templates.unwrap();
        let check = |template: &str, expected: &str| {
            assert_eq!(templates.check(template), Ok(()), "{template}");
            let expanded = templates.expand(template, &message());
            assert_eq!(expanded, Ok(expected.to_owned()), "{template}");
        };
        check("plain", "plain");
        check("{{ .Status | toUpper }}:{{ .Alerts.Firing | len }}", "FIRING:1");
        check("{{ .GroupLabels.SortedPairs.Values | join \" \" }}", "High page");
        check("{{ (.CommonLabels.Remove .GroupLabels.Names).Names | join \",\" }}", "");
        check(
            "{{ with .CommonLabels.Remove (stringSlice \"alertname\") }}{{ .severity }}{{ end }}",
            "page",
        );
        check("{{ range .Alerts.Resolved }}{{ template \"one\" . }}{{ end }}", "<b>");
        check("{{ range .Alerts }}{{ .Status }} {{ end }}", "firing resolved ");
        check(
            "{{ range .CommonLabels.SortedPairs }}{{ .Name }}={{ .Value }};{{ end }}",
            "alertname=High;severity=page;",
        );
        check(
            "{{ (index .Alerts 0).StartsAt.Format \"02 Jan 06 15:04 MST\" }}",
            "22 Nov 26 00:00 UTC",
        );
        check("{{ (index .Alerts 0).StartsAt }}", "2026-11-22 00:00:00 +0000 UTC");
        check(
            "{{ (index .Alerts 0).EndsAt.IsZero }} {{ (index .Alerts 1).EndsAt.Unix }}",
            "true 1795309200",
        );
        check("{{ $a := index .Alerts 0 }}{{ $a.StartsAt.Format \"2006-01-02\" }}", "2026-11-22");
        let of_first =
            |pipeline: &str| format!("{{{{ (index .Alerts 0).StartsAt | {pipeline} }}}}");
        check(&of_first("date \"15:04\""), "00:00");
        check(&of_first("tz \"Europe/Paris\""), "2026-11-22 01:00:00 +0100 CET");
        check(&of_first("tz \"Europe/Paris\" | date \"15:04 MST -0700\""), "01:00 CET +0100");
        check(&of_first("tz \"Europe/Paris\" | tz \"UTC\""), "2026-11-22 00:00:00 +0000 UTC");
        check("{{ .CommonAnnotations.summary }}{{ .CommonLabels.none }}", "");
        check("{{ (index .Alerts 0).AcknowledgedBy }}", "ann");
        check("{{ match \"te.m\" .Receiver }}", "true");
        check(
            "{{ .ExternalURL }} {{ externalURL }}",
            &["https://example.org/granary"; 2].join(" "),
        );
        check(
            "{{ (index .Alerts 0).GeneratorURL }}",
            "https://example.org/graph?g0.expr=a&g0.tab=1",
        );
    }

    #[test]
    fn values_of_alerts_are_escaped_in_html() {
        let templates = MessageTemplates::new(&[]).unwrap();
        let template = "{{ range .Alerts.Firing }}<p>{{ .Annotations.summary }}</p>{{ end }}";
        let expanded = templates.expand_html(template, &message()).unwrap();
        assert_eq!(expanded, "<p>a &lt;is&gt; high</p>");
        let safe = templates.expand_html("{{ safeHtml \"<b>\" }}", &message()).unwrap();
        assert_eq!(safe, "<b>");
    }

    #[test]
    fn the_default_texts_list_firing_and_ended_alerts() {
        let templates = MessageTemplates::new(&[]).unwrap();
        let expand = |name: &str| {
            templates.expand(&format!("{{{{ template \"granary.{name}\" . }}}}"), &message())
        };
        assert_eq!(expand("title").unwrap(), "[FIRING:1] High page");
        let text = expand("text").unwrap();
        for part in [
            "a <is> high",
            "b <is> high",
            "acknowledged by ann",
            "host=a",
            "Ended",
            "\nhttps://example.org/granary/alerts",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let html = templates.expand_html("{{ template \"granary.html\" . }}", &message()).unwrap();
        assert!(html.contains("a &lt;is&gt; high") && html.contains("2026-11-22"), "{html}");
        for link in ["graph?g0.expr=a&amp;g0.tab=1\"", "\"https://example.org/granary/alerts\""] {
            assert!(html.contains(link), "{link} in {html}");
        }
        let message = Message { external_url: String::new(), ..message() };
        let text = templates.expand("{{ template \"granary.text\" . }}", &message).unwrap();
        assert!(!text.contains("/alerts"), "{text}");
    }

    #[test]
    fn unknown_names_are_reported_before_anything_is_sent() {
        let templates = MessageTemplates::new(&[]).unwrap();
        let check = |template: &str, expected: &str| {
            let message = templates.check(template).unwrap_err();
            assert!(message.contains(expected), "{template}: {message}");
        };
        check("{{ if .None }}{{ lookup 1 }}{{ end }}", "lookup");
        check("{{ template \"slack.default.title\" . }}", "slack.default.title");
        check("{{ .Status", "");
        check("{{ define \"x\" }}{{ end }}", "files");
        assert!(MessageTemplates::new(&["{{ define \"x\" }}{{ y }}{{ end }}".to_owned()]).is_err());
        assert!(
            templates.expand("{{ (index .Alerts 0).StartsAt | tz \"Mars\" }}", &message()).is_err()
        );
        check("{{ since .StartsAt }}", "since");
        let endless = "{{ range 100000 }}{{ printf \"%0200d\" 1 }}{{ end }}";
        assert!(templates.expand(endless, &message()).is_err());
    }
}
