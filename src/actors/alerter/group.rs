//! One running group of rules: its state, and the durability of its evaluations.
//!
//! Samples are stored first, then the state: after a crash in between, the same evaluation is due
//! again, its batches are duplicates, and the state becomes the same. Must never know: schedules,
//! expressions.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use super::{
    Shared,
    recording::{Numbering, Recording},
    stored::{StoredState, histories},
};
use crate::{
    alerts::{
        DueEvaluation, EvaluationQueries, GroupHistory, GroupRun, GroupState, RuleGroup,
        RuleReport, WrittenSeries, evaluate, skipped_evaluations, stages,
    },
    clock::Stopwatch,
    kept::{Acknowledge, AcknowledgeFault, AcknowledgeResult, GroupStatus, fault_of},
    model::{UnixMillis, own_sender, with_noun},
    store::Store,
    telemetry::Shortfall,
};

/// A running group.
#[derive(Debug)]
pub(super) struct RunningGroup {
    pub(super) group: RuleGroup,
    /// The ranges of rules that are evaluated together.
    stages: Vec<Range<usize>>,
    pub(super) id: String,
    sender: Arc<str>,
    pub(super) state: GroupState,
    stored: StoredState,
    /// True until the first evaluation since the start.
    is_first: bool,
    /// Past alerts of the group.
    pub(super) history: Arc<GroupHistory>,
    /// The series of each rule at its last evaluation.
    written: Vec<WrittenSeries>,
    missed: u64,
    /// The last evaluation before the clock was set back; the group waits until the clock reaches
    /// the time of that evaluation.
    waits_for: Option<UnixMillis>,
    is_failing: bool,
    /// The episode of the next review.
    pub(super) review_from: usize,
}

impl RunningGroup {
    /// Returns a group with its stored state, or with an empty state when none can be read.
    pub(super) fn open(group: RuleGroup, store: &Store) -> Self {
        let id = group.id();
        let (stored, read) = StoredState::open(&id, store);
        let state = read.unwrap_or_else(|| GroupState::new(&group));
        let written = group.rules.iter().map(|rule| state.series_of(&rule.key)).collect();
        let role = format!("rules/{}/{}", group.name, id.get(..8).unwrap_or_default());
        let sender = own_sender(&role);
        let history = histories(store).get(&id).unwrap_or_else(|cause| {
            tracing::error!(id, cause, "cannot read past alerts; the history starts empty");
            None
        });
        Self {
            stages: stages(&group),
            group,
            id,
            sender,
            state,
            stored,
            is_first: true,
            history: Arc::new(history.unwrap_or_default()),
            written,
            missed: 0,
            waits_for: None,
            is_failing: false,
            review_from: 0,
        }
    }

    /// Continues with reloaded rules; returns the series that no rule produces any more.
    pub(super) fn adopt(&mut self, group: RuleGroup) -> GroupRun {
        let before = std::mem::take(&mut self.written);
        let keys = self.group.rules.iter().map(|rule| rule.key.clone());
        let mut before: BTreeMap<_, _> = keys.zip(before).collect();
        let rules = group.rules.iter();
        self.written = rules.map(|rule| before.remove(&rule.key).unwrap_or_default()).collect();
        self.stages = stages(&group);
        self.group = group;
        GroupRun { ended: before.into_values().flatten().collect(), ..GroupRun::default() }
    }

    /// Returns all series of the group, to end them.
    pub(super) fn end(self, recording: &Recording) -> GroupRun {
        recording.health.set_shortfall(Shortfall::OwnSamples, &self.sender, None);
        let name = self.alerts_name();
        recording.health.set_shortfall(Shortfall::NotStored, &name, None);
        let ended = self.written.into_iter().flatten().collect();
        GroupRun { ended, ..GroupRun::default() }
    }

    /// Returns the name under which health reports that the group's alerts cannot be stored.
    fn alerts_name(&self) -> String {
        format!("alerts of {}", self.sender)
    }

    /// Notes once that the clock was set back; returns the number of evaluations that are missed
    /// until the clock reaches the last evaluation again.
    pub(super) fn follow_clock(&mut self, now: UnixMillis) -> u64 {
        let last = self.state.last();
        let missed = skipped_evaluations(self.group.interval_ms, last, now);
        if missed == 0 || self.waits_for == last {
            return 0;
        }
        self.waits_for = last;
        self.missed += missed;
        tracing::warn!(
            group = self.group.name,
            missed,
            until = last.map(|last| last.to_string()),
            "the clock was set back; the rules wait until it reaches their last evaluation"
        );
        missed
    }

    /// Evaluates the group and stores the result. When the daemon stops meanwhile, the evaluation
    /// is discarded, and is due again after the start.
    pub(super) async fn evaluate(
        &mut self,
        due: DueEvaluation,
        queries: &EvaluationQueries<'_>,
        shared: &Shared,
        now: UnixMillis,
    ) -> Option<GroupStatus> {
        let Shared { recording, metrics, in_flight, .. } = shared;
        let watch = Stopwatch::start();
        self.state.resume(&self.group, due, std::mem::take(&mut self.is_first));
        let mut state = self.state.clone();
        state.adapt_to(&self.group, due);
        let mut reports: Vec<(RuleReport, f64)> = Vec::new();
        let mut lost = None;
        for (stage, rules) in self.stages.iter().cloned().enumerate() {
            let watch = Stopwatch::start();
            let written = &mut self.written;
            let run = evaluate(&self.group, rules, &mut state, written, due.at, queries);
            if in_flight.is_stopping() {
                return None;
            }
            let sender = self.sender.clone();
            let set_back = &mut state.set_back;
            let numbering = Numbering { sender, at: due.at, stage, set_back };
            let sampled_at = due.at.plus(-self.group.query_offset_ms);
            if let Some(part) = recording.write(&run, sampled_at, numbering).await {
                lost = Some(part);
            }
            let seconds_each = watch.seconds() / run.reports.len().max(1) as f64;
            reports.extend(run.reports.into_iter().map(|report| (report, seconds_each)));
        }
        state.last = due.at.0;
        self.missed += due.missed;
        metrics.rule_evaluations.inc_by(reports.len() as u64);
        let failed = reports.iter().filter(|(report, _)| report.error.is_some()).count();
        metrics.rule_evaluation_failures.inc_by(failed as u64);
        metrics.rule_group_evaluations_missed.inc_by(due.missed);
        // Past alerts are stored before the state: after a crash, a repeated evaluation adds
        // nothing.
        self.store_ended_episodes(&state, now, &recording.store);
        self.state = state;
        let unstored = self.store_state(now);
        let name = self.alerts_name();
        recording.health.set_shortfall(Shortfall::NotStored, &name, unstored);
        let fault =
            lost.map(|lost| format!("lost {}: {}", with_noun(lost.count, "sample"), lost.cause));
        let mut errors = reports.iter().filter_map(|(report, _)| report.error.clone());
        let fault = fault.or_else(|| errors.next());
        self.log_change(fault.as_deref());
        let seconds = watch.seconds();
        metrics.rule_group_duration.observe(seconds);
        Some(GroupStatus {
            state: self.state.clone(),
            history: self.history.clone(),
            evaluated_at: Some(now),
            seconds,
            missed: self.missed,
            reports,
        })
    }

    /// Stores the episodes that an evaluation ended. After a failure they stay in memory, and are
    /// stored with the next episodes.
    fn store_ended_episodes(&mut self, after: &GroupState, now: UnixMillis, store: &Store) {
        let ended = self.history.newly_ended(&self.state, after);
        if ended.is_empty() {
            return;
        }
        let mut history = GroupHistory::clone(&self.history);
        history.add(ended, after.last);
        self.keep_history(history, now, store);
    }

    /// Stores past alerts. After a failure they stay in memory.
    pub(super) fn keep_history(
        &mut self,
        mut history: GroupHistory,
        now: UnixMillis,
        store: &Store,
    ) {
        history.drop_oldest_to_fit();
        if let Some(fault) = fault_of(histories(store).put(&self.id, &history, now)) {
            let group = &self.group.name;
            tracing::error!(group, fault, "cannot store past alerts; they stay in memory");
        }
        self.history = Arc::new(history);
    }

    /// Acknowledges alerts; returns the number of alerts.
    pub(super) fn acknowledge(
        &mut self,
        acknowledge_request: &Acknowledge,
        now: UnixMillis,
    ) -> AcknowledgeResult {
        let mut count = 0;
        for alert in self.state.rules.values_mut().flat_map(|rule| &mut rule.alerts) {
            if acknowledge_request.is_about(alert) {
                alert.acknowledged.clone_from(&acknowledge_request.by);
                count += 1;
            }
        }
        if count == 0 {
            return Ok(0);
        }
        self.store_state(now).map_or(Ok(count), |fault| Err(AcknowledgeFault::Unstored(fault)))
    }

    /// Ends expired acknowledgements; returns true if there were any. If the state cannot be
    /// stored, it is stored with the next evaluation, and the acknowledgements end again after a
    /// crash.
    pub(super) fn end_acknowledgements(&mut self, now: UnixMillis) -> bool {
        let mut has_expired = false;
        for alert in self.state.rules.values_mut().flat_map(|rule| &mut rule.alerts) {
            if alert
                .acknowledged
                .as_ref()
                .is_some_and(|acknowledgement| acknowledgement.is_expired(now))
            {
                alert.acknowledged = None;
                has_expired = true;
            }
        }
        if has_expired {
            drop(self.store_state(now));
        }
        has_expired
    }

    /// Stores the state; returns the reason of a failure. The state then stays in memory, and the
    /// next evaluation retries.
    fn store_state(&mut self, now: UnixMillis) -> Option<String> {
        let fault = self.stored.put(&self.state, now)?;
        tracing::error!(
            group = self.group.name,
            fault,
            "cannot store alerts; the next evaluation retries"
        );
        Some(fault)
    }

    /// Logs once that the group fails, and once that it recovered.
    fn log_change(&mut self, fault: Option<&str>) {
        let group = &self.group.name;
        match fault {
            Some(fault) if !self.is_failing => {
                tracing::warn!(group, fault, "the evaluation of rules failed");
            }
            None if self.is_failing => tracing::info!(group, "rules can be evaluated again"),
            Some(_) | None => {}
        }
        self.is_failing = fault.is_some();
    }
}
