//! Reviews of episodes: whether late samples would have changed an episode.
//!
//! A review repeats some of the episode's evaluations: at whole slots of the finest granularity,
//! where the stored cells determine the latest sample. Evaluations next to an end are left out,
//! because a sample that is late by less than an interval only moves the end by one evaluation.
//! When a series returns, the store no longer shows when it had ended, so samples count as missing
//! only after the lookback. Must never know: where episodes are stored, when reviews run.

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use super::{
    Action, AlertPolicy, AlertState, Episode, EvaluationQueries, GroupHistory, GroupState,
    LabelSet, NoData, Revision, Rule, RuleGroup, evaluation,
};
use crate::{
    model::UnixMillis,
    query::{Budget, ExpressionLimits, durations_of_plain_promql},
};

/// The maximum number of repeated evaluations of a part of an episode.
const EVALUATIONS_MAX: usize = 16;
/// The limits of parsing; the expressions were checked when their rule file was read.
const LIMITS: ExpressionLimits<'static> = ExpressionLimits {
    series_max: 1,
    points_max: 1,
    steps_max: 1,
    query_bytes_max: usize::MAX,
    regex_bytes_max: 1 << 20,
    budget: &Budget::UNLIMITED,
};
/// The time after the end of an episode in which it is reviewed, in milliseconds.
const REVIEWED_MS: i64 = 24 * 3_600_000;

/// The terms that decide at which times an evaluation can be repeated.
#[derive(Debug, Clone, Copy)]
pub struct ReviewTerms {
    /// The width of the finest slots, in milliseconds.
    pub slot_ms: i64,
    /// The lookback: the age up to which a sample counts, in milliseconds.
    pub lookback_ms: i64,
    /// The time since which these slots exist and the series are unchanged, Unix milliseconds.
    pub known_since: i64,
}

/// The times of the evaluations of an episode that are repeated.
#[derive(Debug, PartialEq)]
struct Plan<'a> {
    rule: &'a Rule,
    policy: &'a AlertPolicy,
    /// Times at which the alert was active.
    active: Vec<i64>,
    /// Times at which nothing was measured.
    missing: Vec<i64>,
    /// Times after the alert had ended: if it is active at all of them, it would have fired.
    over: Vec<i64>,
}

/// An episode to review.
#[derive(Debug)]
pub struct Review<'a> {
    /// The index of the episode in the history.
    pub index: usize,
    group: &'a RuleGroup,
    labels: &'a LabelSet,
    plan: Plan<'a>,
}

/// Returns the first episode at or after an index in the history that can be reviewed now.
pub fn next_to_review<'a>(
    group: &'a RuleGroup,
    (state, history): (&GroupState, &'a GroupHistory),
    terms: ReviewTerms,
    from: usize,
) -> Option<Review<'a>> {
    let count = history.episodes().len();
    (0..count).map(|index| (from + index) % count).find_map(|index| {
        let episode = history.episodes().get(index).filter(|episode| episode.revised.is_none())?;
        let plan = plan(group, (state, history), terms, episode)?;
        Some(Review { index, group, labels: &episode.labels, plan })
    })
}

impl Review<'_> {
    /// Repeats evaluations of the episode; returns the first difference.
    ///
    /// # Errors
    /// When an evaluation fails.
    pub fn make(&self, queries: &EvaluationQueries<'_>) -> Result<Option<Revision>, String> {
        let Self { group, labels, plan, .. } = self;
        let found = |at: i64| {
            evaluation::find_series(group, (plan.rule, plan.policy), UnixMillis(at), queries)
        };
        for &at in &plan.active {
            if !found(at)?.active.contains_key(*labels) {
                return Ok(Some(Revision { at, active: false }));
            }
        }
        for &at in &plan.missing {
            if found(at)?.is_measured(labels) {
                return Ok(Some(Revision { at, active: false }));
            }
        }
        for &at in &plan.over {
            if !found(at)?.active.contains_key(*labels) {
                return Ok(None);
            }
        }
        Ok(plan.over.last().map(|at| Revision { at: *at, active: true }))
    }
}

/// Returns the evaluations of an episode that can be repeated; `None` when none can be, or when it
/// is too early.
fn plan<'a>(
    group: &'a RuleGroup,
    (state, history): (&GroupState, &GroupHistory),
    terms: ReviewTerms,
    episode: &Episode,
) -> Option<Plan<'a>> {
    let (active_at, resolved_at) = (episode.active_at?, episode.resolved_at?);
    let rule_state = state.rules.get(&episode.rule)?;
    let rule = group.rules.iter().find(|rule| rule.key == episode.rule)?;
    let Action::Alert(policy) = &rule.action else { return None };
    let (interval_ms, slot_ms) = (group.interval_ms, terms.slot_ms);
    if group.query_offset_ms % slot_ms != 0
        || state.last - resolved_at > REVIEWED_MS
        || active_at < terms.known_since
    {
        return None;
    }
    // The queries of templates are only answered for one time.
    let is_same = episode.version != 0
        && episode.version == group.version_of(rule)
        && !rule.labels.values().any(|text| text.contains("query"));
    if !is_same {
        return None;
    }
    let step_ms = interval_ms / gcd(interval_ms, slot_ms) * slot_ms;
    let before_end = resolved_at - 2 * interval_ms;
    let mut plan = Plan { rule, policy, active: Vec::new(), missing: Vec::new(), over: Vec::new() };
    if episode.state == AlertState::NoData {
        plan.missing = times(active_at + terms.lookback_ms..=before_end, step_ms);
    } else {
        let ends_with_series = policy.no_data == NoData::Ok && policy.keep_firing_ms == 0;
        let until = if ends_with_series && policy.recover.is_none() {
            before_end
        } else {
            episode.fired_at.min(before_end)
        };
        // A pending alert is active, unless it stays pending because samples are missing.
        let began_at = if policy.no_data == NoData::Ok { active_at } else { episode.fired_at };
        plan.active = times(began_at..=until, step_ms);
        let over_at = resolved_at + terms.lookback_ms;
        plan.over = times(over_at..=over_at + policy.for_ms + step_ms - 1, step_ms);
    }
    let last = plan.over.last().copied().unwrap_or(resolved_at);
    // An alert fires only if each evaluation finds it active, so all of them must be repeated.
    let is_each = step_ms == interval_ms && plan.over.len() < EVALUATIONS_MAX;
    if !is_each || rule_state.since > resolved_at || began_again(episode, rule_state, history, last)
    {
        plan.over.clear();
    }
    let first = active_at - terms.known_since;
    if state.last < last + 2 * interval_ms || !is_exact(rule, policy, slot_ms, first) {
        return None;
    }
    let has_evaluations =
        [&plan.active, &plan.missing, &plan.over].iter().any(|times| !times.is_empty());
    has_evaluations.then_some(plan)
}

/// Returns whether a repeated evaluation reads the same cells as the original one: each expression
/// is plain, and looks back by whole slots and by at most `longest_ms`.
fn is_exact(rule: &Rule, policy: &AlertPolicy, slot_ms: i64, longest_ms: i64) -> bool {
    let is_whole = |length: &i64| length % slot_ms == 0 && *length <= longest_ms;
    let mut expressions = [Some(&rule.expression), policy.measured.as_ref()].into_iter().flatten();
    expressions.all(|text| {
        let lengths = durations_of_plain_promql(text, &LIMITS).ok().flatten();
        lengths.is_some_and(|lengths| lengths.iter().all(is_whole))
    })
}

/// Returns whether the alert was active again between an episode's end and a time.
fn began_again(
    episode: &Episode,
    rule_state: &super::RuleState,
    history: &GroupHistory,
    until: i64,
) -> bool {
    let after = episode.resolved_at..=Some(until);
    let episodes = history.episodes().iter().filter(|other| {
        other.rule == episode.rule
            && other.labels == episode.labels
            && after.contains(&other.active_at)
    });
    let present = rule_state.alerts.iter().filter(|other| {
        other.is_active() && other.labels == episode.labels && other.active_at <= until
    });
    episodes.count() + present.count() > 0
}

/// Returns the multiples of a step within a range: all of them, or an evenly spaced selection.
fn times(range: RangeInclusive<i64>, step_ms: i64) -> Vec<i64> {
    let (from, to) = range.into_inner();
    let first = from + (-from).rem_euclid(step_ms);
    if first > to {
        return Vec::new();
    }
    let count = ((to - first) / step_ms + 1) as usize;
    let stride = count.div_ceil(EVALUATIONS_MAX);
    (0..count).step_by(stride).map(|index| first + index as i64 * step_ms).collect()
}

fn gcd(left: i64, right: i64) -> i64 {
    if right == 0 { left.max(1) } else { gcd(right, left % right) }
}
