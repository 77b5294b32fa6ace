//! The parameters of a request, from its query string and from a form in its body.
//!
//! Must never know: what the parameters select. Invalid parameters get Prometheus' errors.

use std::time::Duration;

use actix_web::web::Query;

use super::{
    fault::Fault,
    times::{duration_ms, time_ms},
};
use crate::query::STEPS_MAX;

/// Names and values in the order of the request: first the body, then the query string.
#[derive(Debug, Default)]
pub(in crate::api) struct Params(Vec<(String, String)>);

/// Start, end and step of a range query, in Unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) step_ms: i64,
}

impl Params {
    /// Returns the bytes that parsed parameters take: each has two strings.
    pub(in crate::api) fn memory(query: &str, form: &[u8]) -> usize {
        let pairs = query.bytes().chain(form.iter().copied()).filter(|byte| *byte == b'&').count();
        // Twice for the growing list, and once more for parsing.
        query.len() + form.len() + 4 * (pairs + 2) * size_of::<(String, String)>()
    }

    /// Reads the query string and the body. A body that is not a form is refused.
    pub(in crate::api) fn read(query: &str, form: &[u8]) -> Result<Self, Fault> {
        let form = std::str::from_utf8(form).map_err(Fault::bad_data)?;
        let mut all = Vec::new();
        for text in [form, query] {
            let pairs = Query::<Vec<(String, String)>>::from_query(text);
            all.extend(pairs.map_err(Fault::bad_data)?.into_inner());
        }
        Ok(Self(all))
    }

    /// Returns the first non-empty value; an empty value counts as missing.
    pub(in crate::api) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, value)| key == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// Returns every value of a repeated parameter.
    pub(in crate::api) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the PromQL expression.
    pub(super) fn query(&self) -> &str {
        self.get("query").unwrap_or_default()
    }

    /// Returns a time, if it is present.
    pub(super) fn time(&self, name: &str) -> Result<Option<i64>, Fault> {
        let read = |text: &str| {
            let cause =
                || Fault::parameter(name, format!("cannot parse {text:?} to a valid timestamp"));
            time_ms(text).ok_or_else(cause)
        };
        self.get(name).map(read).transpose()
    }

    /// Returns a duration, if it is present.
    pub(super) fn duration(&self, name: &str) -> Result<Option<i64>, Fault> {
        let read = |text: &str| {
            let cause =
                || Fault::parameter(name, format!("cannot parse {text:?} to a valid duration"));
            duration_ms(text).ok_or_else(cause)
        };
        self.get(name).map(read).transpose()
    }

    /// Returns start, end and step after Prometheus' checks.
    pub(super) fn steps(&self) -> Result<Steps, Fault> {
        let needed = |name: &str| {
            let cause = || Fault::parameter(name, r#"cannot parse "" to a valid timestamp"#);
            self.time(name)?.ok_or_else(cause)
        };
        let (start, end) = (needed("start")?, needed("end")?);
        if end < start {
            return Err(Fault::parameter("end", "end timestamp must not be before start time"));
        }
        let missing = || Fault::parameter("step", r#"cannot parse "" to a valid duration"#);
        let step_ms = self.duration("step")?.ok_or_else(missing)?;
        if step_ms <= 0 {
            return Err(Fault::parameter(
                "step",
                "zero or negative query resolution step widths are not accepted. Try a positive \
                 integer",
            ));
        }
        if (end - start) / step_ms > STEPS_MAX as i64 {
            return Err(Fault::bad_data(
                "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the \
                 query resolution (?step=XX)",
            ));
        }
        Ok(Steps { start, end, step_ms })
    }

    /// Returns the maximum number of elements in the answer; `None` means all.
    pub(super) fn limit(&self) -> Result<Option<usize>, Fault> {
        self.number("limit")
    }

    /// Returns a non-negative whole number; 0 counts as missing.
    pub(in crate::api) fn number(&self, name: &str) -> Result<Option<usize>, Fault> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number: i64 = text.parse().map_err(|_| {
            Fault::parameter(name, format!("cannot parse {text:?} to a whole number"))
        })?;
        let limit = usize::try_from(number)
            .map_err(|_| Fault::parameter(name, format!("{name} must be non-negative")))?;
        Ok((limit > 0).then_some(limit))
    }

    /// Returns the timeout of the query: the requested timeout, but at most `longest`.
    pub(super) fn timeout(&self, longest: Duration) -> Result<Duration, Fault> {
        let requested = self.duration("timeout")?.unwrap_or(i64::MAX);
        Ok(Duration::from_millis(requested.max(0) as u64).min(longest))
    }
}

/// Reads the parameters of every query, for fuzzing.
pub(crate) fn fuzz_params(text: &str) {
    let Ok(params) = Params::read(text, b"") else { return };
    if let Ok(steps) = params.steps() {
        assert!(
            steps.start <= steps.end
                && (steps.end - steps.start) / steps.step_ms <= STEPS_MAX as i64
        );
    }
    let longest = Duration::from_secs(120);
    assert!(params.timeout(longest).is_ok_and(|timeout| timeout <= longest) || !text.is_empty());
    assert!(params.limit().is_ok() || params.get("limit").is_some());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(query: &str) -> Result<Steps, String> {
        let params = Params::read(query, b"").map_err(|fault| fault.to_string())?;
        params.steps().map_err(|fault| fault.to_string())
    }

    #[test]
    fn the_body_comes_before_the_query_string_and_repeats_are_kept() {
        let query = "query=late&match%5B%5D=a&limit=";
        let params = Params::read(query, b"query=sum(up)+%2B+1&match[]=b&match[]=c%7B%7D").unwrap();
        assert_eq!(params.query(), "sum(up) + 1");
        assert_eq!(params.all("match[]").collect::<Vec<_>>(), ["b", "c{}", "a"]);
        assert_eq!(params.limit().unwrap(), None);
        assert!(Params::read("", b"\xff").is_err());
    }

    #[test]
    fn steps_are_checked_with_the_messages_of_prometheus() {
        let read = steps("start=10&end=70.5&step=1m").unwrap();
        assert_eq!(read, Steps { start: 10_000, end: 70_500, step_ms: 60_000 });
        assert!(steps("start=0&end=11000&step=1").is_ok());
        let check = |query: &str, part: &str| {
            let message = steps(query).unwrap_err();
            assert!(message.contains(part), "{query}: {message}");
        };
        check("start=0&end=11001&step=1", "exceeded maximum resolution of 11,000 points");
        check("end=1&step=1", r#"invalid parameter "start": cannot parse "" to a valid timestamp"#);
        check("start=2&end=1&step=1", "end timestamp must not be before start time");
        check("start=1&end=2&step=0", "zero or negative query resolution step widths");
        check("start=1&end=2&step=soon", r#"cannot parse "soon" to a valid duration"#);
    }

    #[test]
    fn a_timeout_can_only_be_shortened() {
        let timeout = |query: &str| {
            Params::read(query, b"").unwrap().timeout(Duration::from_secs(120)).map_err(drop)
        };
        assert_eq!(timeout(""), Ok(Duration::from_secs(120)));
        assert_eq!(timeout("timeout=5s"), Ok(Duration::from_secs(5)));
        assert_eq!(timeout("timeout=1h"), Ok(Duration::from_secs(120)));
        assert_eq!(timeout("timeout=-1"), Ok(Duration::ZERO));
        assert_eq!(timeout("timeout=x"), Err(()));
    }

    #[test]
    fn limits_are_whole_numbers() {
        let limit = |query: &str| Params::read(query, b"").unwrap().limit().map_err(drop);
        assert_eq!(limit("limit=5"), Ok(Some(5)));
        assert_eq!(limit("limit=0"), Ok(None));
        assert_eq!(limit("limit=-1"), Err(()));
        assert_eq!(limit("limit=some"), Err(()));
    }
}
