//! Definitions of series: each is known, new or beyond a limit.
//!
//! Must never know: the journal, batches.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;

use super::Appender;
use crate::{
    model::{
        DefinitionVerdict, Kind, METRIC_TAG, SeriesId, SeriesInfo, SeriesKey, split_stored_name,
    },
    store::limits::StoreLimits,
};

impl Appender {
    /// Decides on a definition, and notes a new series.
    pub(super) fn define(
        &self,
        info: &SeriesInfo,
        new_series: &mut NewSeries,
    ) -> DefinitionVerdict {
        let dictionary = self.store.all_series();
        let (project, sender) = (split_stored_name(&info.sender).0, &info.sender);
        let known = dictionary.find_of_sender(sender, &info.key);
        let known = known.and_then(|id| Some((id, dictionary.kind(id)?)));
        let new_of_project = new_series.of_project.get(project);
        let known = known.or_else(|| new_of_project?.by_key.get(&info.key).copied());
        let next = dictionary.id_count() + new_series.rows.len();
        let living = dictionary.len() + new_series.rows.len();
        let is_full = living >= self.limits.series_max || next >= StoreLimits::default().series_max;
        let sender_series = || {
            let new = new_series.by_sender.get(&info.sender).copied();
            dictionary.count_of_sender(&info.sender) + new.unwrap_or(0)
        };
        let is_project_full = || {
            self.project_limits.get(project).is_some_and(|series_max| {
                let new = new_of_project.map_or(0, |new| new.by_key.len());
                dictionary.count_beside_sender(sender) + new >= *series_max
            })
        };
        let is_metric_full = || {
            let metric = info.key.metric();
            self.metric_limits.of(metric).is_some_and(|series_max| {
                let new = new_of_project.and_then(|new| new.by_metric.get(metric).copied());
                let known = dictionary.count_with_tag(sender, METRIC_TAG, metric);
                known + new.unwrap_or(0) >= series_max
            })
        };
        match known {
            Some((id, kind)) if kind == info.kind => DefinitionVerdict::Known(id),
            Some((id, kind)) => DefinitionVerdict::KindConflict(id, kind),
            None if is_full => DefinitionVerdict::StoreLimit,
            None if sender_series() >= self.limits.sender_series_max => {
                DefinitionVerdict::SenderLimit
            }
            None if is_metric_full() => DefinitionVerdict::MetricLimit,
            None if is_project_full() => DefinitionVerdict::ProjectLimit,
            None => {
                let is_limited = self.metric_limits.of(info.key.metric()).is_some();
                DefinitionVerdict::Known(new_series.add(SeriesId(next as u32), info, is_limited))
            }
        }
    }
}

/// The new series of a group.
#[derive(Default)]
pub(super) struct NewSeries {
    /// The rows in the order of their ids, which follow the dictionary's last id.
    pub(super) rows: Vec<SeriesInfo>,
    by_sender: HashMap<Arc<str>, usize, RandomState>,
    of_project: HashMap<Box<str>, NewOfProject, RandomState>,
}

/// The new series of a project.
#[derive(Default)]
struct NewOfProject {
    by_key: HashMap<SeriesKey, (SeriesId, Kind), RandomState>,
    /// The numbers of new series of the metrics that have a limit.
    by_metric: HashMap<Box<str>, usize, RandomState>,
}

impl NewSeries {
    fn add(&mut self, id: SeriesId, info: &SeriesInfo, has_metric_limit: bool) -> SeriesId {
        let (project, _) = split_stored_name(&info.sender);
        if !self.of_project.contains_key(project) {
            self.of_project.insert(project.into(), NewOfProject::default());
        }
        if let Some(of_project) = self.of_project.get_mut(project) {
            of_project.by_key.insert(info.key.clone(), (id, info.kind));
            if has_metric_limit {
                *of_project.by_metric.entry(info.key.metric().into()).or_default() += 1;
            }
        }
        *self.by_sender.entry(info.sender.clone()).or_default() += 1;
        self.rows.push(info.clone());
        id
    }
}
