//! Series in Prometheus' text format, which has no form for native histograms.
//!
//! Must never know: requests, how samples are read.

use super::super::text_names::{NameFormat, push_escaped};
use crate::{
    model::{Kind, with_noun},
    query::SeriesReadings,
};

/// The text of series in order of their metrics.
#[derive(Debug)]
pub(super) struct Exposition {
    out: String,
    format: NameFormat,
    /// The metric whose type was written last.
    metric: Option<String>,
    /// The number of series of native histograms, for which the text format has no form.
    left_out: usize,
}

impl Exposition {
    pub(super) fn new(format: NameFormat) -> Self {
        Self { out: String::new(), format, metric: None, left_out: 0 }
    }

    /// Returns the allocated bytes.
    pub(super) fn capacity(&self) -> usize {
        self.out.capacity()
    }

    /// Reports the series that are left out, and returns the text.
    pub(super) fn finish(mut self) -> String {
        if self.left_out > 0 {
            let series = with_noun(self.left_out as u64, "series");
            self.out.extend([
                "# ",
                &series,
                " of native histograms left out: accept Protocol Buffers \
                 (scrape_native_histograms in Prometheus), or use remote read\n",
            ]);
        }
        self.out
    }

    /// Adds the newest sample of a series, with these labels.
    pub(super) fn push<'a>(
        &mut self,
        series: &SeriesReadings,
        labels: impl Iterator<Item = (&'a str, &'a str)>,
    ) {
        self.left_out += usize::from(!series.histograms.is_empty());
        let Some((at, value)) = series.readings.last() else { return };
        let metric = series.labels.metric();
        let out = &mut self.out;
        if self.metric.as_deref() != Some(metric) {
            let word = match series.kind {
                Kind::Counter => "counter",
                Kind::Gauge
                | Kind::Delta
                | Kind::Histogram
                | Kind::GaugeHistogram
                | Kind::DeltaHistogram => "gauge",
            };
            out.push_str("# TYPE ");
            self.format.push_metric(metric, out);
            out.push(' ');
            out.push_str(word);
            out.push('\n');
            self.metric = Some(metric.to_owned());
        }
        let mut separator = self.format.open(metric, out);
        for (name, value) in labels {
            out.push(separator);
            separator = ',';
            self.format.push_label(name, out);
            out.push_str("=\"");
            push_escaped(value, out);
            out.push('"');
        }
        out.push_str("} ");
        let number = match *value {
            value if value.is_nan() => "NaN".to_owned(),
            f64::INFINITY => "+Inf".to_owned(),
            f64::NEG_INFINITY => "-Inf".to_owned(),
            value => value.to_string(),
        };
        for part in [&number, " ", &at.to_string(), "\n"] {
            out.push_str(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::labels_of, *};
    use crate::query::Labels;

    /// The labels, the kind and the value of a series.
    type LabelsKindValue<'a> = (&'a [(&'a str, &'a str)], Kind, f64);

    fn text(format: NameFormat, all: &[LabelsKindValue<'_>]) -> String {
        let mut text = Exposition::new(format);
        for (labels, kind, value) in all {
            let pairs = labels.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let labels = Labels::new(pairs.collect());
            let (readings, histograms) = (vec![(1500, *value)], Vec::new());
            let series = SeriesReadings { labels, kind: *kind, readings, histograms };
            text.push(&series, labels_of(&series));
        }
        text.finish()
    }

    #[test]
    fn series_are_grouped_by_metric_with_its_type() {
        let all: &[LabelsKindValue<'_>] = &[
            (&[("__name__", "a_total"), ("host", "x\"y\\\n")], Kind::Counter, 2.0),
            (&[("__name__", "a_total"), ("instance", "z")], Kind::Counter, 0.5),
            (&[("__name__", "b.c"), ("service.name", "s")], Kind::Gauge, f64::NAN),
        ];
        assert_eq!(
            text(NameFormat::Underscores, all),
            "# TYPE a_total counter\n\
             a_total{host=\"x\\\"y\\\\\\n\",instance=\"\"} 2 1500\n\
             a_total{instance=\"z\"} 0.5 1500\n\
             # TYPE b_c gauge\nb_c{service_name=\"s\",instance=\"\"} NaN 1500\n"
        );
        let quoted =
            "# TYPE \"b.c\" gauge\n{\"b.c\",\"service.name\"=\"s\",instance=\"\"} NaN 1500\n";
        assert!(text(NameFormat::Utf8, all).ends_with(quoted), "{}", text(NameFormat::Utf8, all));
    }
}
