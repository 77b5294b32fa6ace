//! Groups on their way: which are evaluated now, side by side, and what each may ask.
//!
//! A group that is evaluated is away: rules that were read meanwhile and acknowledgements wait for it,
//! and nothing else does. Must never know: how an evaluation is made durable.

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
    group::Running,
    groups::{Evaluated, Groups},
};
use crate::{
    alerts::{Answered, Ask, Due, TemplateQuery, TemplateTime, due},
    kept::GroupStatus,
    model::UnixMillis,
    query::{Waiter, evaluate_vector},
};

/// Groups that are evaluated at the same time; others wait, the one first that was evaluated first.
const AT_ONCE: usize = 8;

/// The evaluations and queries in other threads, which a stop ends.
#[derive(Debug)]
pub(super) struct UnderWay {
    is_stopping: AtomicBool,
    places: Arc<Semaphore>,
    queries: Mutex<BTreeMap<u64, Waiter>>,
    count: AtomicU64,
}

impl Default for UnderWay {
    fn default() -> Self {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        Self { is_stopping: false.into(), places, queries: Mutex::default(), count: 0.into() }
    }
}

impl UnderWay {
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Ends all queries, and waits until no group is evaluated.
    pub(super) async fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.queries.lock().clear();
        // It is never closed.
        drop(self.places.acquire_many(AT_ONCE as u32).await);
    }

    /// Asks something that a stop ends.
    fn during<T>(&self, waiter: Waiter, ask: impl FnOnce() -> T) -> T {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let mut queries = self.queries.lock();
        if !self.is_stopping() {
            queries.insert(number, waiter);
        }
        drop(queries);
        let answer = ask();
        self.queries.lock().remove(&number);
        answer
    }
}

impl Shared {
    /// Takes back what was evaluated, and begins with what is due.
    pub(super) async fn go_on(self: &Arc<Self>, groups: &mut Groups) {
        let mut evaluated = std::mem::take(&mut groups.evaluated);
        while let Some(one) = groups.under_way.try_join_next() {
            evaluated.push(one);
        }
        let mut is_any = !evaluated.is_empty();
        for one in evaluated {
            match one {
                Ok((running, status)) => self.take_back(groups, running, status).await,
                Err(cause) if cause.is_panic() => panic::resume_unwind(cause.into_panic()),
                // The runtime ends.
                Err(_) => {}
            }
        }
        let loaded = self.rules.loaded();
        if loaded.generation != groups.generation {
            self.adopt(groups, loaded).await;
            is_any = true;
        }
        if is_any {
            self.rules.count_alerts();
        }
        self.acknowledge(groups);
        self.end_acknowledgements(groups);
        // Rules may ask for them.
        groups.hosts.write(&self.hosts, &self.recording).await;
        // Before groups are away again.
        self.review(groups);
        self.begin(groups);
    }

    async fn take_back(
        &self,
        groups: &mut Groups,
        mut running: Box<Running>,
        status: Option<GroupStatus>,
    ) {
        let Some(place) = groups.all.iter_mut().find(|own| own.id == running.id) else {
            // Its rules are gone.
            let ended = running.end(&self.recording);
            return self.end(groups, ended).await;
        };
        // It may be there anew, when its rules were gone meanwhile.
        if place.running.is_some() {
            return;
        }
        if let Some(status) = status {
            self.rules.note(&running.id, status);
        }
        let is_same = running.group == place.group;
        let ended = (!is_same).then(|| running.adopt(place.group.clone()));
        place.running = Some(running);
        if let Some(ended) = ended {
            self.end(groups, ended).await;
        }
    }

    /// Begins with the groups that are due, the one first that was evaluated first.
    fn begin(self: &Arc<Self>, groups: &mut Groups) {
        if self.under_way.is_stopping() {
            return;
        }
        let now = self.clock.now();
        let mut all: Vec<(usize, Due, i64)> = Vec::new();
        for (at, place) in groups.all.iter_mut().enumerate() {
            let Some(running) = &mut place.running else { continue };
            self.metrics.rule_group_evaluations_missed.inc_by(running.follow_clock(now));
            if let Some(due) = due(running.group.interval_ms, running.state.last(), now) {
                all.push((at, due, running.state.last));
            }
        }
        all.sort_by_key(|(.., last)| *last);
        for (at, due, _) in all {
            let Ok(permit) = self.under_way.places.clone().try_acquire_owned() else { return };
            let Some(running) = groups.all.get_mut(at).and_then(|own| own.running.take()) else {
                continue;
            };
            let (shared, runtime) = (self.clone(), Handle::current());
            groups.under_way.spawn_blocking(move || {
                let evaluated = runtime.block_on(shared.evaluate(running, due, now));
                drop(permit);
                evaluated
            });
        }
    }

    async fn evaluate(
        self: Arc<Self>,
        mut running: Box<Running>,
        due: Due,
        now: UnixMillis,
    ) -> Evaluated {
        let time_max = Duration::from_millis(running.group.interval_ms.unsigned_abs())
            .min(self.promql.timeout);
        let vector = |expression: &str, at: UnixMillis| self.vector(expression, at, time_max);
        let shared = self.clone();
        let query: TemplateQuery =
            Arc::new(move |expression| shared.vector(expression, due.at, time_max));
        let (time, external) = (TemplateTime::default(), self.rules.external());
        let ask = Ask { vector: &vector, query: Some(query), time, external };
        let status = running.evaluate(due, &ask, &self, now).await;
        (running, status)
    }

    /// The series of an expression at a time.
    pub(super) fn vector(&self, expression: &str, at: UnixMillis, time_max: Duration) -> Answered {
        let budget = self.resources.budget(time_max);
        self.under_way.during(budget.waiter(), || {
            if self.under_way.is_stopping() {
                return Err("the daemon is stopping".to_owned());
            }
            let (store, moment) = (&self.recording.store, self.clock.moment());
            evaluate_vector(store, &budget, &self.promql, expression, at, moment)
        })
    }
}
