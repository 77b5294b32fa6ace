//! A target, made of discovered labels: its URL, its schedule, and the labels of its samples
//! (prometheus.io, "Configuration", `relabel_configs`).
//!
//! Must never know: requests and responses.

use std::time::Duration;

use granary_agent_kit::relabel::{self, Labels};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::{Job, parse_span};

/// The characters that are not escaped in a query.
const UNESCAPED_IN_QUERY: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A scraped endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The URL of the target.
    pub(crate) url: String,
    /// The labels of samples and reports.
    pub(crate) labels: Labels,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
}

impl Target {
    /// Applies a job's rules to discovered labels. Returns `None` when they drop the target.
    pub(crate) fn new(job: &Job, discovered: &Labels) -> Result<Option<Self>, String> {
        let mut labels = discovered.clone();
        let millis = |span: Duration| format!("{}ms", span.as_millis());
        let mut set_if_missing = |name: &str, value: String| {
            if !labels.has(name) {
                labels.set(name, value);
            }
        };
        set_if_missing("job", job.job_name.clone());
        set_if_missing("__scrape_interval__", millis(job.interval()));
        set_if_missing("__scrape_timeout__", millis(job.timeout()));
        set_if_missing("__metrics_path__", job.metrics_path.clone());
        set_if_missing("__scheme__", job.scheme.as_str().to_owned());
        for (name, values) in &job.params {
            if let Some(first) = values.first() {
                set_if_missing(&format!("__param_{name}"), first.clone());
            }
        }
        if !relabel::apply(&job.relabel_configs, &mut labels) {
            return Ok(None);
        }
        let address = host_and_port(&labels)?;
        let (interval, timeout) = parse_times(&labels)?;
        let url = format!(
            "{}://{address}{}{}",
            labels.get("__scheme__"),
            with_leading_slash(labels.get("__metrics_path__")),
            query_string(job, &labels)
        );
        if !labels.has("instance") {
            labels.set("instance", address);
        }
        labels.retain(|name| !name.starts_with("__"));
        Ok(Some(Self { url, labels, interval, timeout }))
    }

    /// Returns a hash that identifies the target, and determines its offset in the interval.
    pub(crate) fn hash(&self) -> u64 {
        let mut text = self.url.clone();
        for (name, value) in self.labels.iter() {
            text.push('\0');
            text.push_str(name);
            text.push('\0');
            text.push_str(value);
        }
        xxh3_64(text.as_bytes())
    }

    /// Returns the time of the next scrape after `now_ms`. The offset of a target in its interval
    /// follows from its hash, so that targets are spread evenly, and the offset is the same after a
    /// restart and in every agent.
    pub(crate) fn next_after(&self, now_ms: i64) -> i64 {
        let interval = i64::try_from(self.interval.as_millis()).unwrap_or(i64::MAX).max(1);
        let offset = (self.hash() % interval.unsigned_abs()).cast_signed();
        let rounds = now_ms.saturating_sub(offset).div_euclid(interval).saturating_add(1);
        rounds.saturating_mul(interval).saturating_add(offset)
    }
}

/// Returns host and port; the scheme implies a default port.
fn host_and_port(labels: &Labels) -> Result<String, String> {
    let address = labels.get("__address__");
    if address.is_empty() {
        return Err("a target has no __address__".to_owned());
    }
    if address.contains(['/', '?', '#', '@']) || address.contains(char::is_whitespace) {
        return Err(format!("{address:?} is not host:port"));
    }
    let port = match labels.get("__scheme__") {
        "http" => 80,
        "https" => 443,
        other => return Err(format!("{other:?} is not a scheme; use http or https")),
    };
    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(if has_port { address.to_owned() } else { format!("{address}:{port}") })
}

fn parse_times(labels: &Labels) -> Result<(Duration, Duration), String> {
    let parse = |name: &str| {
        let text = labels.get(name);
        parse_span(text).filter(|span| !span.is_zero()).ok_or_else(|| format!("{name} is {text:?}"))
    };
    let (interval, timeout) = (parse("__scrape_interval__")?, parse("__scrape_timeout__")?);
    if timeout > interval {
        return Err(format!("a timeout of {timeout:?} is longer than the interval {interval:?}"));
    }
    Ok((interval, timeout))
}

fn with_leading_slash(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

/// Returns the query parameters of the job; labels override the first value of each.
fn query_string(job: &Job, labels: &Labels) -> String {
    let mut pairs = Vec::new();
    let mut add = |name: &str, value: &str| {
        let encode = |text| utf8_percent_encode(text, UNESCAPED_IN_QUERY).to_string();
        pairs.push(format!("{}={}", encode(name), encode(value)));
    };
    for (label, value) in labels.iter() {
        if let Some(name) = label.strip_prefix("__param_") {
            add(name, value);
            let rest = job.params.get(name).into_iter().flatten().skip(1);
            rest.for_each(|value| add(name, value));
        }
    }
    let separator = if labels.get("__metrics_path__").contains('?') { '&' } else { '?' };
    if pairs.is_empty() { String::new() } else { format!("{separator}{}", pairs.join("&")) }
}

/// A target and the index of its job.
#[derive(Debug, Clone)]
pub(crate) struct AssignedTarget {
    pub(crate) index: usize,
    pub(crate) target: Target,
}

#[cfg(test)]
mod tests {
    use granary_agent_kit::relabel::Rule;
    use proptest::prelude::*;

    use super::*;
    use crate::config::Config;

    fn job(yaml: &str) -> Job {
        let text = format!("scrape_configs:\n- job_name: j\n{yaml}");
        Config::parse(&text, "".into()).unwrap().jobs()[0].clone()
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().copied().collect()
    }

    #[test]
    fn labels_become_a_url_an_interval_and_labels_of_samples() {
        let test_job = job(
            "  params: {module: [a b, c], x: [y]}\n  scrape_interval: 20s\n  metrics_path: /m\n",
        );
        let found = labels(&[("__address__", "h:1"), ("__meta_a", "b"), ("env", "e")]);
        let target = Target::new(&test_job, &found).unwrap().unwrap();
        assert_eq!(target.url, "http://h:1/m?module=a%20b&module=c&x=y");
        assert_eq!(target.labels, labels(&[("env", "e"), ("instance", "h:1"), ("job", "j")]));
        assert_eq!((target.interval.as_secs(), target.timeout.as_secs()), (20, 10));
        let plain = job("  scheme: https\n");
        let target = Target::new(&plain, &labels(&[("__address__", "h")])).unwrap().unwrap();
        assert_eq!(target.url, "https://h:443/metrics");
    }

    #[test]
    fn rules_drop_and_rewrite_targets() {
        let rules = "  relabel_configs:
  - {source_labels: [__address__], target_label: __param_target}
  - {source_labels: [__param_target], target_label: instance}
  - {target_label: __address__, replacement: 'proxy:9115'}
  - {source_labels: [instance], regex: 'bad.*', action: drop}
  - {target_label: __scrape_interval__, replacement: 1m}\n";
        let test_job = job(rules);
        let target = Target::new(&test_job, &labels(&[("__address__", "db:5")])).unwrap().unwrap();
        assert_eq!(target.url, "http://proxy:9115/metrics?target=db%3A5");
        assert_eq!(target.labels.get("instance"), "db:5");
        assert_eq!(target.interval.as_secs(), 60);
        assert_eq!(Target::new(&test_job, &labels(&[("__address__", "bad:5")])), Ok(None));
        for (name, value) in [
            ("__address__", ""),
            ("__address__", "a/b:1"),
            ("__scheme__", "ftp"),
            ("__scrape_timeout__", "3m"),
            ("__scrape_interval__", "soon"),
        ] {
            let mut test_job = job("");
            let rule = serde_json::json!([{"target_label": name, "replacement": value}]);
            test_job.relabel_configs = serde_json::from_value::<Vec<Rule>>(rule).unwrap();
            assert!(Target::new(&test_job, &labels(&[("__address__", "h:1")])).is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn the_offset_of_a_target_is_fixed(name in "[a-z]{1,8}", now in 0..4_000_000_000_000_i64) {
            let target = Target::new(&job(""), &labels(&[("__address__", &name)])).unwrap().unwrap();
            let next = target.next_after(now);
            prop_assert!(next > now && next <= now + 60_000);
            prop_assert_eq!(target.next_after(next), next + 60_000);
            prop_assert_eq!(target.next_after(next - 1), next);
        }
    }

    #[test]
    fn a_thousand_targets_are_spread_evenly() {
        let test_job = job("");
        let first_scrape_ms = |n: u32| {
            let found = labels(&[("__address__", &format!("web{n}:9100"))]);
            Target::new(&test_job, &found).unwrap().unwrap().next_after(0)
        };
        let early = (0..1000).filter(|n| first_scrape_ms(*n) < 15_000).count();
        assert!((180..320).contains(&early), "{early} of 1000 in the first quarter");
    }
}
