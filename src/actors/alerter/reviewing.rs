//! Reviews of ended episodes, one at a time: late samples may change the result of their
//! evaluations.
//!
//! Must never know: the choice of evaluations to repeat, the revision of an episode.

use std::time::Duration;

use super::{Shared, group::RunningGroup, groups::Groups};
use crate::{
    alerts::{EvaluationQueries, GroupHistory, ReviewTerms, TemplateTime, next_to_review},
    clock::Stopwatch,
    model::{GranularityIndex, UnixMillis},
    store::Store,
};

/// The shortest interval between two reviews, in milliseconds.
const REVIEW_INTERVAL_MS: i64 = 5000;
/// The time limit of a review, and thus the longest delay that it causes to evaluations.
const REVIEW_TIME_MAX: Duration = Duration::from_secs(1);

impl Shared {
    /// Reviews one episode of one group.
    pub(super) fn review(&self, groups: &mut Groups) {
        let now = self.clock.now();
        let reviewed = &mut groups.reviewed;
        if groups.all.is_empty() || now.since(reviewed.at).abs() < REVIEW_INTERVAL_MS {
            return;
        }
        let store = &self.recording.store;
        let generation = store.dictionary().generation();
        if reviewed.generation != Some(generation) {
            // Samples of deleted or renamed series are not found under the old names, so only
            // evaluations from now on can be repeated.
            (reviewed.generation, reviewed.since) = (Some(generation), now);
        }
        reviewed.count += 1;
        let since = reviewed.since;
        let index_of_turn = reviewed.count % groups.all.len();
        // A group that is being evaluated is skipped until its next turn.
        let Some(running) = &mut groups.all[index_of_turn].running else { return };
        reviewed.at = now;
        let finest = store.granularity(GranularityIndex::FINEST);
        let lookback_ms = self.promql.get().lookback.as_millis() as i64;
        let kept_since = finest.retention().before(now).plus(lookback_ms);
        let known_since = kept_since.max(since).0;
        let terms = ReviewTerms { slot_ms: finest.width_ms, lookback_ms, known_since };
        let watch = Stopwatch::start();
        let vector = |expression: &str, at: UnixMillis| {
            self.vector(expression, at, REVIEW_TIME_MAX.saturating_sub(watch.elapsed()))
        };
        let (time, external) = (TemplateTime::default(), &self.rules.external());
        let queries = EvaluationQueries { vector: &vector, query: None, time, external };
        if running.review(terms, &queries, now, store) {
            self.rules.note_history(&running.id, &running.history);
        }
    }
}

impl RunningGroup {
    /// Repeats evaluations of one episode, and revises the episode when late samples change the
    /// results. Returns true if they did.
    fn review(
        &mut self,
        terms: ReviewTerms,
        queries: &EvaluationQueries<'_>,
        now: UnixMillis,
        store: &Store,
    ) -> bool {
        let known = (&self.state, &*self.history);
        let Some(review) = next_to_review(&self.group, known, terms, self.review_from) else {
            return false;
        };
        let index = review.index;
        self.review_from = index + 1;
        // A failed review is repeated later.
        let Ok(Some(revision)) = review.make(queries) else { return false };
        let mut history = GroupHistory::clone(&self.history);
        history.revise(index, revision);
        self.keep_history(history, now, store);
        true
    }
}
