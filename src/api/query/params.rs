//! The parameters of queries.

use std::ops::Range;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::{
    model::{Span, UnixMillis, quoted_words, tag_pairs},
    query::{
        ChartRequest, Display, DocumentsForm, DocumentsRequest, QueryError, Rank, Resolution,
        Selector, SeriesMerge, SeriesToken, time_zone,
    },
};

/// The parameters that all queries share.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct Params {
    metric: Option<String>,
    /// Several metrics of a chart: `load,"a,b"`.
    metrics: Option<String>,
    /// `host=web1,core=0`
    tags: Option<String>,
    resolution: Option<String>,
    /// A duration up to now: `1h`.
    range: Option<String>,
    start: Option<String>,
    end: Option<String>,
    /// `avg,max`
    display: Option<String>,
    #[serde(default)]
    unfold: bool,
    form: Option<String>,
    tz: Option<String>,
    points: Option<usize>,
    #[serde(default)]
    merge: bool,
    /// `host,core`
    group_by: Option<String>,
    pub(super) top: Option<usize>,
    bottom: Option<usize>,
    /// The number that `top` and `bottom` compare.
    by: Option<String>,
    /// The time of a stored document.
    time: Option<String>,
    /// The last series of the previous page of an export.
    pub(super) after: Option<SeriesToken>,
    /// The newest series at the time of an export's first page.
    pub(super) upto: Option<SeriesToken>,
    /// True to include preallocated documents without samples.
    #[serde(default)]
    pub(super) shells: bool,
}

/// The parameters of every query of series.
pub(super) const SERIES_PARAMS: [&str; 2] = ["metric", "tags"];
/// The parameters of a query over a range, other than the parameters of series.
pub(super) const RANGE_PARAMS: [&str; 4] = ["resolution", "range", "start", "end"];
/// The parameters of charts other than series and a range.
const CHART_PARAMS: [&str; 9] =
    ["metrics", "display", "tz", "points", "merge", "group_by", "top", "bottom", "by"];

/// The parameters of documents other than series and a range.
const DOCUMENTS_PARAMS: [&str; 8] =
    ["display", "unfold", "form", "tz", "points", "merge", "group_by", "shells"];

/// The maximum number of metrics in a query that accepts several.
const METRICS_MAX: usize = 32;
const DEFAULT_RANGE: Span = Span::Fixed(3_600_000);

impl Params {
    /// Refuses parameters that an endpoint does not have; no parameter is ignored.
    pub(super) fn allow_only(&self, known: &[&[&str]]) -> Result<(), QueryError> {
        let set_params = [
            ("metric", self.metric.is_some()),
            ("metrics", self.metrics.is_some()),
            ("tags", self.tags.is_some()),
            ("resolution", self.resolution.is_some()),
            ("range", self.range.is_some()),
            ("start", self.start.is_some()),
            ("end", self.end.is_some()),
            ("display", self.display.is_some()),
            ("unfold", self.unfold),
            ("form", self.form.is_some()),
            ("tz", self.tz.is_some()),
            ("points", self.points.is_some()),
            ("merge", self.merge),
            ("group_by", self.group_by.is_some()),
            ("top", self.top.is_some()),
            ("bottom", self.bottom.is_some()),
            ("by", self.by.is_some()),
            ("time", self.time.is_some()),
            ("after", self.after.is_some()),
            ("upto", self.upto.is_some()),
            ("shells", self.shells),
        ];
        let known: Vec<_> = known.iter().copied().flatten().copied().collect();
        match set_params.into_iter().find(|(name, is_given)| *is_given && !known.contains(name)) {
            Some((other, _)) => Err(QueryError::Invalid(format!(
                "this query has no parameter {other}; it has {}",
                known.join(", ")
            ))),
            None => Ok(()),
        }
    }

    /// Returns the request for a chart.
    pub(super) fn chart(&self, now: UnixMillis) -> Result<ChartRequest, QueryError> {
        self.allow_only(&[&SERIES_PARAMS, &RANGE_PARAMS, &CHART_PARAMS])?;
        let (selector, others) = self.metric_selectors()?;
        Ok(ChartRequest {
            selector,
            others,
            resolution: self.resolution(),
            range: self.range(now)?,
            displays: self.displays()?,
            time_zone: self.time_zone()?,
            points: self.points()?,
            merge: self.merge(),
            rank: self.rank()?,
            spreads: true,
        })
    }

    /// Returns the request for documents.
    pub(super) fn documents(&self, now: UnixMillis) -> Result<DocumentsRequest, QueryError> {
        self.allow_only(&[&SERIES_PARAMS, &RANGE_PARAMS, &DOCUMENTS_PARAMS])?;
        Ok(DocumentsRequest {
            selector: self.metric_selector()?,
            resolution: self.resolution(),
            range: self.range(now)?,
            form: self.form()?,
            display: self.display_of_rows()?,
            time_zone: self.time_zone()?,
            points: self.points()?,
            merge: self.merge(),
            shells: self.shells_of_documents()?,
        })
    }

    pub(in crate::api) fn selector(&self) -> Result<Selector, QueryError> {
        selector(self.metric.as_deref(), self.tags.as_deref())
    }

    /// Returns the selector of a query that requires a metric.
    pub(super) fn metric_selector(&self) -> Result<Selector, QueryError> {
        if self.metric.is_none() {
            return Err(QueryError::Invalid("metric is missing; add metric=NAME".to_owned()));
        }
        self.selector()
    }

    /// Returns the selector of a query that accepts several metrics, and the names of all but the
    /// first.
    pub(super) fn metric_selectors(&self) -> Result<(Selector, Vec<String>), QueryError> {
        let Some(metrics) = &self.metrics else { return Ok((self.metric_selector()?, Vec::new())) };
        let refused = |message: String| Err(QueryError::Invalid(message));
        if self.metric.is_some() {
            return refused("set metric or metrics, not both".to_owned());
        }
        let mut names = match quoted_words(metrics) {
            Ok(names) => names.into_iter(),
            Err(cause) => return refused(format!("metrics: {cause}")),
        };
        if names.len() > METRICS_MAX {
            return refused(format!("metrics: {} exceed the limit of {METRICS_MAX}", names.len()));
        }
        let Some(first) = names.next() else {
            return refused("metrics: no name is given; use metrics=NAME,NAME".to_owned());
        };
        Ok((selector(Some(&first), self.tags.as_deref())?, names.collect()))
    }

    pub(super) fn resolution(&self) -> Resolution {
        let parsed = self.resolution.as_deref().unwrap_or("auto").parse();
        parsed.unwrap_or_else(|never: std::convert::Infallible| match never {})
    }

    /// Returns the granularity that the resolution names.
    pub(super) fn granularity(&self) -> Option<String> {
        self.resolution.clone().filter(|name| name != "auto")
    }

    /// Returns the requested time, by default now.
    pub(super) fn time(&self, now: UnixMillis) -> Result<UnixMillis, QueryError> {
        self.time.as_deref().map_or(Ok(now), |text| time("time", text))
    }

    pub(super) fn displays(&self) -> Result<Vec<Display>, QueryError> {
        let words = list(self.display.as_deref());
        words.map(|word| word.parse().map_err(QueryError::Invalid)).collect()
    }

    /// Returns the number that rows show.
    pub(super) fn display_of_rows(&self) -> Result<Option<Display>, QueryError> {
        let message = match (&self.displays()?[..], self.form()?) {
            ([], _) => return Ok(None),
            ([display], DocumentsForm::Rows) => return Ok(Some(*display)),
            (_, DocumentsForm::Rows) => "display: set one",
            (_, DocumentsForm::Nested | DocumentsForm::Levels) => {
                "display only applies to rows: add form=rows; documents contain all numbers"
            }
        };
        Err(QueryError::Invalid(message.to_owned()))
    }

    pub(super) fn form(&self) -> Result<DocumentsForm, QueryError> {
        match (self.form.as_deref(), self.unfold) {
            (None | Some("nested"), false) => Ok(DocumentsForm::Nested),
            (None | Some("rows"), true) | (Some("rows"), false) => Ok(DocumentsForm::Rows),
            (Some("levels"), false) => Ok(DocumentsForm::Levels),
            (Some(form @ ("nested" | "levels")), true) => {
                Err(QueryError::Invalid(format!("set unfold=true or form={form}, not both")))
            }
            (Some(form), _) => Err(QueryError::Invalid(format!(
                "form={form:?} is not supported; use nested, levels or rows"
            ))),
        }
    }

    /// Returns whether a query of documents includes shells.
    pub(super) fn shells_of_documents(&self) -> Result<bool, QueryError> {
        if self.shells && self.form()? != DocumentsForm::Nested {
            let message =
                "shells=true only applies to form=nested; rows contain empty slots anyway";
            return Err(QueryError::Invalid(message.to_owned()));
        }
        Ok(self.shells)
    }

    pub(super) fn time_zone(&self) -> Result<Option<TimeZone>, QueryError> {
        self.tz.as_deref().map(time_zone).transpose().map_err(QueryError::Invalid)
    }

    pub(super) fn points(&self) -> Result<Option<usize>, QueryError> {
        at_least_one("points", self.points)
    }

    pub(super) fn merge(&self) -> SeriesMerge {
        let names: Vec<_> = list(self.group_by.as_deref()).map(str::to_owned).collect();
        match (names.is_empty(), self.merge) {
            (false, _) => SeriesMerge::By(names),
            (true, true) => SeriesMerge::All,
            (true, false) => SeriesMerge::Nothing,
        }
    }

    pub(super) fn rank(&self) -> Result<Option<Rank>, QueryError> {
        let by = self.by.as_deref().map(str::parse).transpose().map_err(QueryError::Invalid)?;
        let (top, bottom) = (at_least_one("top", self.top)?, at_least_one("bottom", self.bottom)?);
        match (top, bottom) {
            (None, None) if by.is_some() => {
                Err(QueryError::Invalid("by needs top=N or bottom=N".to_owned()))
            }
            (None, None) => Ok(None),
            (Some(count), None) => Ok(Some(Rank { count, by, lowest: false })),
            (None, Some(count)) => Ok(Some(Rank { count, by, lowest: true })),
            (Some(_), Some(_)) => {
                Err(QueryError::Invalid("set top or bottom, not both".to_owned()))
            }
        }
    }

    pub(super) fn range(&self, now: UnixMillis) -> Result<Range<UnixMillis>, QueryError> {
        let end = self.end.as_deref().map_or(Ok(now), |text| time("end", text))?;
        let start = match (&self.start, &self.range) {
            (Some(_), Some(_)) => {
                let message = "set start and end, or range, not both";
                return Err(QueryError::Invalid(message.to_owned()));
            }
            (Some(start), None) => time("start", start)?,
            (None, range) => {
                let span = range.as_deref().map_or(Ok(DEFAULT_RANGE), |text| {
                    text.parse().map_err(|cause| QueryError::Invalid(format!("range: {cause}")))
                })?;
                span.before(end)
            }
        };
        if start >= end {
            return Err(QueryError::Invalid(format!("start {start} is not before end {end}")));
        }
        Ok(start..end)
    }
}

/// Splits a text at commas.
fn list(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.into_iter().flat_map(|text| text.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

fn at_least_one(name: &str, number: Option<usize>) -> Result<Option<usize>, QueryError> {
    if number == Some(0) {
        return Err(QueryError::Invalid(format!("{name}=0 shows nothing; use 1 or more")));
    }
    Ok(number)
}

/// Reads `metric=` and `tags=`; see [`tag_pairs`].
pub(in crate::api) fn selector(
    metric: Option<&str>,
    tags: Option<&str>,
) -> Result<Selector, QueryError> {
    let tags = tag_pairs(tags.unwrap_or_default())
        .map_err(|cause| QueryError::Invalid(format!("tags: {cause}")))?;
    Ok(Selector { metric: metric.map(str::to_owned), tags })
}

/// Reads a query string as the handlers do, for fuzzing.
pub(crate) fn fuzz_query(text: &str, now: UnixMillis) {
    let Ok(params) = actix_web::web::Query::<Params>::from_query(text) else { return };
    if let Ok(range) = params.range(now) {
        assert!(range.start < range.end);
    }
    let selector = params.selector();
    assert!(selector.is_ok() || params.tags.is_some());
    if let Ok((_, others)) = params.metric_selectors() {
        assert!(others.len() < METRICS_MAX);
    }
    assert!(params.displays().is_ok() || params.display.is_some());
    assert!(params.time_zone().is_ok() || params.tz.is_some());
    if let Ok(Some(rank)) = params.rank() {
        assert!(rank.count > 0 && params.top.or(params.bottom) == Some(rank.count));
    }
    if let SeriesMerge::By(names) = params.merge() {
        assert!(!names.is_empty());
    }
}

/// Reads `start=`, which is now by default, and `end=`.
pub(in crate::api) fn range_between(
    start: Option<&str>,
    end: &str,
    now: UnixMillis,
) -> Result<Range<UnixMillis>, QueryError> {
    let start = start.map_or(Ok(now), |text| time("start", text))?;
    let end = time("end", end)?;
    if start >= end {
        return Err(QueryError::Invalid(format!("start {start} is not before end {end}")));
    }
    Ok(start..end)
}

/// Parses a time, see [`UnixMillis::parse`]; the error names the parameter.
pub(super) fn time(name: &str, text: &str) -> Result<UnixMillis, QueryError> {
    UnixMillis::parse(text).map_err(|cause| QueryError::Invalid(format!("{name}={cause}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_accepts_one_metric_or_several() {
        let read = |text: &str| {
            let params = actix_web::web::Query::<Params>::from_query(text).unwrap();
            let (first, others) = params.metric_selectors().map_err(|cause| cause.to_string())?;
            Ok::<_, String>((first.metric.unwrap_or_default(), others))
        };
        let named = |first: &str, others: &[&str]| {
            Ok((first.to_owned(), others.iter().map(|&name| name.to_owned()).collect()))
        };
        assert_eq!(read("metric=a,b"), named("a,b", &[]));
        assert_eq!(read("metrics=a,b&tags=host=x"), named("a", &["b"]));
        assert_eq!(read("metrics=%22a,b%22"), named("a,b", &[]));
        for wrong in ["", "metric=a&metrics=b", "metrics=", "metrics=%22a", "metrics=a&tags=b"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read(&format!("metrics={}", vec!["a"; 33].join(","))).is_err());
    }

    #[test]
    fn times_are_read_in_every_documented_form() {
        let expected = 1_763_712_000_000;
        for text in ["1763712000", "1763712000000", "1763712000.0", "2025-11-21T08:00:00Z"] {
            assert_eq!(time("start", text).unwrap(), UnixMillis(expected), "{text}");
        }
        assert_eq!(time("start", "2025-11-21").unwrap(), UnixMillis(expected - 8 * 3_600_000));
        for text in ["", "yesterday", "NaN", "1e300", "-5"] {
            assert!(time("start", text).is_err(), "{text}");
        }
    }
}
