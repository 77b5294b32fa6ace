//! The daemon's address and labels for other programs and people, like Prometheus'
//! `--web.external-url` and `external_labels`.
//!
//! Must never know: where the address and labels are configured, receivers.

use super::LabelSet;

/// The external address and labels of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExternalIdentity {
    /// The address of the page, without a slash at the end; when it is empty, messages have no
    /// links.
    pub url: String,
    /// Labels that every outgoing alert has.
    pub labels: LabelSet,
}

impl ExternalIdentity {
    /// Returns an empty address without labels.
    pub fn none() -> &'static Self {
        static NONE: ExternalIdentity =
            ExternalIdentity { url: String::new(), labels: LabelSet::new() };
        &NONE
    }

    /// Adds the external labels to the labels of an alert, which take precedence.
    pub fn add_labels(&self, labels: &LabelSet) -> LabelSet {
        let mut all = self.labels.clone();
        all.extend(labels.iter().map(|(name, value)| (name.clone(), value.clone())));
        all
    }

    /// Returns the link to an expression; empty when the page has no address.
    pub fn table_link(&self, expression: &str) -> String {
        if self.url.is_empty() {
            return String::new();
        }
        format!("{}{}", self.url, graph_path(expression, 1))
    }

    /// Returns the host of the address, such as `example.org` in
    /// `https://example.org:7117/granary`.
    pub fn host(&self) -> Option<&str> {
        let authority = self.url.split_once("://")?.1.split('/').next()?;
        let is_port = |port: &str| port.bytes().all(|c| c.is_ascii_digit());
        let name = authority.rsplit_once(':').filter(|(_, port)| is_port(port));
        Some(name.map_or(authority, |(name, _)| name))
    }

    /// Returns the path of the address, such as `/granary` of `https://example.org/granary`.
    pub fn path_prefix(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("")
    }
}

/// Returns Prometheus' path of an expression, as a chart (tab 0) or a table (tab 1).
pub(super) fn graph_path(expression: &str, tab: u8) -> String {
    format!("/graph?g0.expr={}&g0.tab={tab}", query_escaped(expression))
}

/// Returns a text as the value of a query parameter, escaped like Go's `url.QueryEscape`.
pub fn query_escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            b' ' => escaped.push('+'),
            _ => escaped.extend(["%", &format!("{byte:02X}")]),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_labels_have_the_form_of_prometheus() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let labels = [pair("region", "eu"), pair("severity", "none")].into();
        let external = ExternalIdentity { url: "https://example.org/granary".to_owned(), labels };
        assert_eq!(
            external.table_link("up == 0"),
            "https://example.org/granary/graph?g0.expr=up+%3D%3D+0&g0.tab=1"
        );
        assert_eq!((external.path_prefix(), external.host()), ("/granary", Some("example.org")));
        let with_port =
            ExternalIdentity { url: "http://[::1]:7117".to_owned(), ..ExternalIdentity::default() };
        assert_eq!(with_port.host(), Some("[::1]"));
        let alert = [pair("alertname", "Down"), pair("severity", "page")].into();
        let expected: LabelSet =
            [pair("alertname", "Down"), pair("region", "eu"), pair("severity", "page")].into();
        assert_eq!(external.add_labels(&alert), expected);
        let empty = ExternalIdentity::none();
        assert_eq!((empty.table_link("up"), empty.path_prefix()), (String::new(), ""));
    }
}
