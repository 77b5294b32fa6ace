//! The metric, labels and kind of a series, from its text and the target's settings.
//!
//! Must never know: values, which series are known.

use granary_agent_kit::{
    Series,
    relabel::{self, Labels},
};
use granary_exposition::{Families, Names, parts};
use granary_protocol::Kind;

use crate::{config::Job, target::Target};

const NAME: &str = "__name__";

/// The target of the samples, with its job and the external labels.
pub(super) struct TargetContext<'a> {
    pub(super) job: &'a Job,
    pub(super) target: &'a Target,
    pub(super) external_labels: &'a Labels,
}

impl TargetContext<'_> {
    /// Parses the text of a series of numbers, or of `histograms` of a kind. Returns `None` when
    /// the rules drop it.
    pub(super) fn parse_series(
        &self,
        series: &[u8],
        histograms: Option<Kind>,
        families: &Families,
    ) -> Result<Option<Series>, String> {
        let parts = parts(series, Names::Valid)?;
        if parts.metric.is_empty() {
            return Err("a sample has no metric".to_owned());
        }
        let family = families.find(&parts.metric).cloned().unwrap_or_default();
        let kind = histograms.unwrap_or_else(|| family.kind_of(&parts.metric));
        let unit = family.unit_of(&parts.metric);
        let mut labels: Labels = parts.labels.into_iter().collect();
        labels.set(NAME, parts.metric);
        self.check_limits(&labels)?;
        self.add_target_labels(&mut labels);
        if !relabel::apply(&self.job.metric_relabel_configs, &mut labels) {
            return Ok(None);
        }
        let metric = labels.get(NAME).to_owned();
        if metric.is_empty() {
            return Ok(None);
        }
        labels.set(NAME, "");
        add_missing(&mut labels, self.external_labels);
        Ok(Some(Series::new(metric, pairs(&labels), kind, unit)))
    }

    /// Adds the target's labels. A label of the sample with the same name is renamed to
    /// `exported_NAME`; with `honor_labels`, it takes precedence instead.
    fn add_target_labels(&self, labels: &mut Labels) {
        let target = &self.target.labels;
        if self.job.honor_labels {
            add_missing(labels, target);
            return;
        }
        let mut renamed_labels = Vec::new();
        for (name, value) in target.iter() {
            let sample_value = labels.get(name).to_owned();
            if !sample_value.is_empty() {
                renamed_labels.push((name, sample_value));
            }
            labels.set(name, value);
        }
        // Shorter names come first, so that a new name is not renamed again.
        renamed_labels.sort_by_key(|(name, _)| name.len());
        for (name, value) in renamed_labels {
            let mut free_name = format!("exported_{name}");
            while labels.has(&free_name) {
                free_name = format!("exported_{free_name}");
            }
            labels.set(&free_name, value);
        }
    }

    fn check_limits(&self, labels: &Labels) -> Result<(), String> {
        let job = self.job;
        let is_over = |found: usize, limit: u64| limit > 0 && found as u64 > limit;
        let count = labels.iter().len() + self.target.labels.iter().len();
        if is_over(count, job.label_limit) {
            return Err(format!(
                "{count} labels, more than the label_limit of {}",
                job.label_limit
            ));
        }
        for (name, value) in labels.iter() {
            let limit = job.label_name_length_limit;
            if is_over(name.len(), limit) {
                return Err(format!(
                    "a label's name is longer than label_name_length_limit, {limit}"
                ));
            }
            let limit = job.label_value_length_limit;
            if is_over(value.len(), limit) {
                return Err(format!(
                    "the value of {name} is longer than label_value_length_limit, {limit}"
                ));
            }
        }
        Ok(())
    }
}

pub(super) fn add_missing(labels: &mut Labels, additional: &Labels) {
    for (name, value) in additional.iter() {
        if !labels.has(name) {
            labels.set(name, value);
        }
    }
}

pub(super) fn pairs(labels: &Labels) -> Vec<(String, String)> {
    labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
