//! The form of the answer that a scraper prefers, from its `Accept` header.
//!
//! Must never know: series.

use super::super::text_names::NameFormat;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text(NameFormat),
    /// Messages of Protocol Buffers, which also contain native histograms.
    Messages(NameFormat),
}

impl Form {
    /// Returns the form that the header prefers: text, unless it lists messages with at least the
    /// same quality.
    pub(super) fn from_accept(accept: &str) -> Self {
        let names = NameFormat::from_accept(accept);
        let (mut text, mut messages) = (0.0_f64, 0.0_f64);
        for range in accept.split(',') {
            let mut words = range.split(';').map(str::trim);
            let media_type = words.next().unwrap_or_default();
            let (mut quality, mut is_delimited, mut has_families) = (1.0, false, false);
            for word in words {
                match word {
                    "encoding=delimited" => is_delimited = true,
                    "proto=io.prometheus.client.MetricFamily" => has_families = true,
                    other => {
                        let number = other.strip_prefix("q=").map(str::parse);
                        quality = number.and_then(Result::ok).unwrap_or(quality);
                    }
                }
            }
            match media_type {
                "application/vnd.google.protobuf" if is_delimited && has_families => {
                    messages = messages.max(quality);
                }
                "text/plain" | "text/*" | "*/*" => text = text.max(quality),
                _ => {}
            }
        }
        if messages > 0.0 && messages >= text { Self::Messages(names) } else { Self::Text(names) }
    }

    /// Returns the `Content-Type` of the answer.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text(names) => names.content_type(),
            Self::Messages(NameFormat::Underscores) => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited; escaping=underscores"
            }
            Self::Messages(NameFormat::Utf8) => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited; escaping=allow-utf-8"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sent_to_a_scraper_that_prefers_them() {
        let check = |accept: &str, expected| assert_eq!(Form::from_accept(accept), expected);
        let messages = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                        encoding=delimited";
        let (plain, utf8) = (NameFormat::Underscores, NameFormat::Utf8);
        check("", Form::Text(plain));
        check("*/*", Form::Text(plain));
        check(messages, Form::Messages(plain));
        // The header of Prometheus with native histograms, and one without.
        let text = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                    text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        check(&format!("{messages};escaping=allow-utf-8;q=0.6,{text}"), Form::Messages(utf8));
        check(text, Form::Text(utf8));
        check(&format!("text/plain;q=0.5,{messages};q=0.4"), Form::Text(plain));
        check(&format!("{messages};q=0"), Form::Text(plain));
        check("application/vnd.google.protobuf;encoding=text", Form::Text(plain));
    }
}
