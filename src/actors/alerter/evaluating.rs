//! Evaluation of groups in parallel, and the queries of each.
//!
//! Only reloaded rules and acknowledgements wait for a group that is being evaluated. Must never
//! know: the durability of an evaluation.

use std::{
    collections::BTreeMap,
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::Semaphore};

use super::{
    Shared,
    group::RunningGroup,
    groups::{EvaluatedGroup, Groups},
};
use crate::{
    alerts::{
        DueEvaluation, EvaluationQueries, ExpressionResult, TemplateQuery, TemplateTime, due,
    },
    kept::GroupStatus,
    model::UnixMillis,
    query::{Waiter, evaluate_vector},
};

/// The maximum number of groups that are evaluated at the same time; among waiting groups, the
/// group with the oldest evaluation is next.
const EVALUATIONS_MAX: usize = 8;

/// The evaluations and queries that run in other threads, which a stop cancels.
#[derive(Debug)]
pub(super) struct ActiveEvaluations {
    is_stopping: AtomicBool,
    permits: Arc<Semaphore>,
    queries: Mutex<BTreeMap<u64, Waiter>>,
    count: AtomicU64,
}

impl Default for ActiveEvaluations {
    fn default() -> Self {
        let permits = Arc::new(Semaphore::new(EVALUATIONS_MAX));
        Self { is_stopping: false.into(), permits, queries: Mutex::default(), count: 0.into() }
    }
}

impl ActiveEvaluations {
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Cancels all queries, and waits until no group is being evaluated.
    pub(super) async fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.queries.lock().clear();
        // The semaphore is never closed.
        drop(self.permits.acquire_many(EVALUATIONS_MAX as u32).await);
    }

    /// Runs a query that a stop cancels.
    fn run_query<T>(&self, waiter: Waiter, query: impl FnOnce() -> T) -> T {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let mut queries = self.queries.lock();
        if !self.is_stopping() {
            queries.insert(number, waiter);
        }
        drop(queries);
        let answer = query();
        self.queries.lock().remove(&number);
        answer
    }
}

impl Shared {
    /// Finishes the evaluations that ended, and starts the groups that are due.
    pub(super) async fn advance(self: &Arc<Self>, groups: &mut Groups) {
        let mut evaluated = std::mem::take(&mut groups.evaluated);
        while let Some(evaluation) = groups.in_flight.try_join_next() {
            evaluated.push(evaluation);
        }
        let mut is_changed = !evaluated.is_empty();
        for evaluation in evaluated {
            match evaluation {
                Ok((running, status)) => self.finish(groups, running, status).await,
                Err(cause) if cause.is_panic() => panic::resume_unwind(cause.into_panic()),
                // The runtime is shutting down.
                Err(_) => {}
            }
        }
        self.rules.settle_texts();
        let loaded = self.rules.loaded();
        if loaded.generation != groups.generation {
            self.adopt(groups, loaded).await;
            is_changed = true;
        }
        if is_changed {
            self.rules.count_alerts();
        }
        self.acknowledge(groups);
        self.end_acknowledgements(groups);
        // The rules may query the series of hosts.
        groups.hosts.write(&self.hosts, &self.recording).await;
        // Reviews need idle groups.
        self.review(groups);
        self.start_due(groups);
    }

    async fn finish(
        &self,
        groups: &mut Groups,
        mut running: Box<RunningGroup>,
        status: Option<GroupStatus>,
    ) {
        let Some(entry) = groups.all.iter_mut().find(|entry| entry.id == running.id) else {
            // The group's rules were removed.
            let ended = running.end(&self.recording);
            return self.end(groups, ended).await;
        };
        // A group with the same id exists if its rules were removed and added again meanwhile.
        if entry.running.is_some() {
            return;
        }
        if let Some(status) = status {
            self.rules.note_status(&running.id, status);
        }
        let is_current = running.group == entry.group;
        let ended = (!is_current).then(|| running.adopt(entry.group.clone()));
        entry.running = Some(running);
        if let Some(ended) = ended {
            self.end(groups, ended).await;
        }
    }

    /// Starts the groups that are due, the group with the oldest evaluation first.
    fn start_due(self: &Arc<Self>, groups: &mut Groups) {
        if self.in_flight.is_stopping() {
            return;
        }
        let now = self.clock.now();
        let mut all: Vec<(usize, DueEvaluation, i64)> = Vec::new();
        for (index, entry) in groups.all.iter_mut().enumerate() {
            let Some(running) = &mut entry.running else { continue };
            self.metrics.rule_group_evaluations_missed.inc_by(running.follow_clock(now));
            if let Some(due) = due(running.group.interval_ms, running.state.last(), now) {
                all.push((index, due, running.state.last));
            }
        }
        all.sort_by_key(|(.., last)| *last);
        for (index, due, _) in all {
            let Ok(permit) = self.in_flight.permits.clone().try_acquire_owned() else { return };
            let Some(running) = groups.all.get_mut(index).and_then(|entry| entry.running.take())
            else {
                continue;
            };
            let (shared, runtime) = (self.clone(), Handle::current());
            groups.in_flight.spawn_blocking(move || {
                let evaluated = runtime.block_on(shared.evaluate(running, due, now));
                drop(permit);
                evaluated
            });
        }
    }

    async fn evaluate(
        self: Arc<Self>,
        mut running: Box<RunningGroup>,
        due: DueEvaluation,
        now: UnixMillis,
    ) -> EvaluatedGroup {
        let time_max = Duration::from_millis(running.group.interval_ms.unsigned_abs())
            .min(self.promql.get().timeout);
        let vector = |expression: &str, at: UnixMillis| self.vector(expression, at, time_max);
        let shared = self.clone();
        let query: TemplateQuery =
            Arc::new(move |expression| shared.vector(expression, due.at, time_max));
        let (time, external) = (TemplateTime::default(), &self.rules.external());
        let queries = EvaluationQueries { vector: &vector, query: Some(query), time, external };
        let status = running.evaluate(due, &queries, &self, now).await;
        (running, status)
    }

    /// Returns the series of an expression at a time.
    pub(super) fn vector(
        &self,
        expression: &str,
        at: UnixMillis,
        time_max: Duration,
    ) -> ExpressionResult {
        let budget = self.resources.budget(time_max);
        self.in_flight.run_query(budget.waiter(), || {
            if self.in_flight.is_stopping() {
                return Err("the daemon is stopping".to_owned());
            }
            let (store, moment) = (&self.recording.store, self.clock.moment());
            evaluate_vector(store, &budget, &self.promql.get(), expression, at, moment)
        })
    }
}
