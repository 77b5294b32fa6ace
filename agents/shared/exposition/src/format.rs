//! The exposition formats.

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format, version 0.0.4: timestamps in milliseconds.
    Prometheus,
    /// The OpenMetrics text format: timestamps in seconds, and an explicit end.
    OpenMetrics,
    /// Prometheus' Protocol Buffers format, with length-prefixed messages.
    Protobuf,
}

impl Format {
    /// Returns true when a `Content-Type` names a format.
    pub fn is_named(content_type: &str) -> bool {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let is_text = media_type.eq_ignore_ascii_case("text/plain");
        is_text || Self::of_content_type(content_type) != Self::Prometheus
    }

    /// Returns the format of a `Content-Type`, or Prometheus' text format for unknown types, as
    /// Prometheus does.
    pub fn of_content_type(content_type: &str) -> Self {
        let mut parts = content_type.split(';').map(|part| part.trim().to_ascii_lowercase());
        let media_type = parts.next().unwrap_or_default();
        let is_delimited = parts.any(|part| part == "encoding=delimited");
        match &*media_type {
            "application/openmetrics-text" => Self::OpenMetrics,
            "application/vnd.google.protobuf" if is_delimited => Self::Protobuf,
            _ => Self::Prometheus,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_determines_the_format() {
        let check = |text: &str, expected| assert_eq!(Format::of_content_type(text), expected);
        check("text/plain; version=0.0.4; charset=utf-8", Format::Prometheus);
        check("application/openmetrics-text; version=1.0.0", Format::OpenMetrics);
        let proto = "io.prometheus.client.MetricFamily";
        check(
            &format!("application/vnd.google.protobuf; proto={proto}; encoding=delimited"),
            Format::Protobuf,
        );
        check(
            &format!("application/vnd.google.protobuf; proto={proto}; encoding=text"),
            Format::Prometheus,
        );
        check("", Format::Prometheus);
        for (text, is_named) in [("text/plain", true), ("", false), ("application/json", false)] {
            assert_eq!(Format::is_named(text), is_named);
        }
        assert!(Format::is_named("application/openmetrics-text; version=1.0.0"));
    }
}
