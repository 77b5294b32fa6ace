//! The sampling loop: it waits for each tick, samples the sources and stores the readings in the
//! spool.
//!
//! Must never know: how batches are delivered.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use tracing::{error, info, warn};

use super::{AgentError, delivery::Delivery};
use crate::{
    Readings, Source,
    clock::{Stopwatch, schedule::Schedule, unix_ms, wall_base_ms},
    program::signals::SignalRequest,
    reporting::{self_metrics, totals::Totals},
    sampling::{
        plan::{Plan, PlannedSource, Planner},
        problems::Problems,
        watched::WatchedHosts,
    },
};

/// The interval at which the agent reads the wall clock while it waits for a tick, to detect clock
/// steps and suspends.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(5);

fn sample_all(sources: &mut [Box<dyn Source>], now_ms: i64, readings: &mut Readings) {
    for source in sources {
        if let Err(cause) = source.sample(now_ms, readings) {
            readings.problem(source.name(), cause);
        }
    }
}

/// The state of the sampling thread.
pub(super) struct Sampler<'a> {
    pub(super) sources: Vec<Box<dyn Source>>,
    pub(super) planner: Option<&'a mut dyn Planner>,
    pub(super) agent: String,
    /// The totals of the first delivery.
    pub(super) totals: Arc<Totals>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) schedule: Schedule,
    pub(super) problems: Problems,
    pub(super) readings: Readings,
    pub(super) watched: WatchedHosts,
    pub(super) started_ms: i64,
}

impl Sampler<'_> {
    /// Samples until a stop is requested, or for `rounds_max` rounds.
    pub(super) fn run(
        &mut self,
        rounds_max: Option<u64>,
        signals: &Receiver<SignalRequest>,
    ) -> Result<(), AgentError> {
        let mut last = None;
        while rounds_max.is_none_or(|max| self.totals.rounds.get() < max) {
            let Some(tick) = self.wait_for_tick(last, signals)? else {
                self.store_last_round(last)?;
                // An agent with `--rounds` does not report its end: a scheduler starts it again.
                self.watched.record_stop();
                break;
            };
            let missed = last.map_or(0, |last| self.schedule.missed_between(last, tick));
            if missed > 0 {
                self.totals.ticks_missed.add(missed);
                let total = self.totals.ticks_missed.get();
                warn!(
                    missed,
                    total, "rounds were missed: the host was suspended or a source was slow"
                );
            }
            last = Some(tick);
            self.run_round(tick)?;
            if !self.deliveries.iter().all(Delivery::announce_round) {
                break;
            }
        }
        Ok(())
    }

    /// Stops the sources and stores the data that they received since the last tick, with the
    /// current time.
    fn store_last_round(&mut self, last: Option<i64>) -> Result<(), AgentError> {
        let mut has_more = false;
        for source in &mut self.sources {
            has_more |= source.stop();
        }
        if has_more {
            let after = last.map_or(i64::MIN, |last| last + 1);
            self.run_round(unix_ms().max(after))?;
        }
        Ok(())
    }

    /// Asks the planner for a new plan. Sources that end deliver their last readings before new
    /// sources start. When the planner fails, the old plan stays in force.
    fn reload_plan(&mut self, last: Option<i64>) -> Result<(), AgentError> {
        let running: Vec<_> = self.sources.iter().map(|source| source.name()).collect();
        let Some(planner) = &mut self.planner else {
            info!("this agent has no settings file to reload");
            return Ok(());
        };
        let Plan { sources, rules } = match planner.plan(&running) {
            Ok(plan) => plan,
            Err(fault) => {
                error!(fault, "the settings are invalid; the old settings stay in force");
                return Ok(());
            }
        };
        let mut old_sources = std::mem::take(&mut self.sources);
        let mut starts = Vec::new();
        for planned in sources {
            match planned {
                PlannedSource::New(start) => starts.push(start),
                PlannedSource::Running(name) => {
                    let index = old_sources.iter().position(|source| source.name() == name);
                    self.sources.extend(index.map(|index| old_sources.remove(index)));
                }
            }
        }
        let kept_sources = std::mem::replace(&mut self.sources, old_sources);
        self.store_last_round(last)?;
        self.sources = kept_sources;
        self.watched.record_reload();
        for delivery in &mut self.deliveries {
            delivery.set_rules(rules.clone());
        }
        for start in starts {
            match start() {
                Ok(source) => self.sources.push(source),
                Err(cause) => error!(cause, "cannot start a source; the other sources continue"),
            }
        }
        let sources: Vec<_> = self.sources.iter().map(|source| source.name()).collect();
        info!(?sources, "applied the new settings");
        Ok(())
    }

    /// Sleeps until the next tick. Returns `None` when the agent has to stop.
    fn wait_for_tick(
        &mut self,
        last: Option<i64>,
        signals: &Receiver<SignalRequest>,
    ) -> Result<Option<i64>, AgentError> {
        let mut now = unix_ms();
        // After a slow round, the overdue tick runs now.
        let mut tick = self.schedule.next_after(last.map_or(now, |last| last.min(now)));
        while now < tick {
            let time_left = Duration::from_millis(tick.abs_diff(now)).min(CLOCK_CHECK_INTERVAL);
            match signals.recv_timeout(time_left) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(SignalRequest::PlanAgain) => self.reload_plan(last)?,
                Ok(SignalRequest::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
            now = unix_ms();
            // After the clock stepped back, the next tick is earlier.
            tick = tick.min(self.schedule.next_after(now));
        }
        match signals.try_recv() {
            Ok(SignalRequest::Stop) => return Ok(None),
            Ok(SignalRequest::PlanAgain) => self.reload_plan(last)?,
            Err(_) => {}
        }
        Ok(Some(self.schedule.due(tick, now)))
    }

    /// Samples once and stores the batch.
    fn run_round(&mut self, tick: i64) -> Result<(), AgentError> {
        let watch = Stopwatch::start();
        self.readings.clear();
        sample_all(&mut self.sources, tick, &mut self.readings);
        self.watched.set(self.readings.take_watched());
        let first = self.deliveries.first();
        let spool_usage = first.map(|delivery| delivery.spool.usage()).unwrap_or_default();
        let ahead_ms = first.and_then(|delivery| delivery.clock.ahead_ms(wall_base_ms()));
        let sampled_in = watch.elapsed();
        let (agent, totals) = (&self.agent, &self.totals);
        self_metrics::add(
            &mut self.readings,
            agent,
            totals,
            spool_usage,
            sampled_in,
            self.started_ms,
        );
        if let Some(ahead_ms) = ahead_ms {
            let (tags, ahead) = ([("host", &**agent)], ahead_ms as f64 / 1000.0);
            self.readings.gauge("agent_clock_ahead_seconds", "seconds", &tags, ahead);
        }
        let mut problems = self.readings.problems().clone();
        if self.readings.not_finite() > 0 {
            let cause = format!("{} this round", self.readings.not_finite());
            problems.insert("values that are not finite".to_owned(), cause);
        }
        let round = (agent.as_str(), tick);
        for delivery in &mut self.deliveries {
            delivery.store(round, &self.readings, &mut problems)?;
        }
        self.problems.update(problems, tick);
        Ok(())
    }
}
