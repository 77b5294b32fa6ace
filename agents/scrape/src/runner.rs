//! The threads of the scraper: the scheduler, the workers, and a discovery thread for each job with
//! changing targets.
//!
//! One lock protects the shared state, and conditions signal its changes, so that a waiting thread
//! misses no change.

mod job_sources;
mod workers;

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use granary_agent_kit::relabel::Labels;
use tracing::error;

use self::{job_sources::JobSources, workers::run_scheduler};
use crate::{
    board::Board,
    config::{Config, Job, Shard},
    fetch::Client,
    memory::Memory,
};

/// The stack size of a thread; TLS needs most of it.
const STACK_BYTES: usize = 512 << 10;

/// The shared state of the threads.
#[derive(Debug)]
pub(crate) struct SharedState {
    state: Mutex<State>,
    /// The condition for the scheduler and for single rounds: targets changed, a scrape ended, or
    /// the scraper stops.
    changed: Condvar,
    /// The condition for discovery threads: the scraper stops.
    stopping: Condvar,
    jobs: Vec<(Arc<Job>, Arc<Client>)>,
    /// The memory limit of targets and their discovery.
    memory: Arc<Memory>,
    external_labels: Labels,
    shard: Shard,
}

/// The mutable state.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) board: Board,
    has_ended: bool,
    /// The number of jobs whose sources were not queried yet.
    unqueried_jobs: usize,
    /// The number of workers, and of idle workers.
    workers: usize,
    idle: usize,
}

/// The running threads.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) shared: Arc<SharedState>,
    threads: Vec<JoinHandle<()>>,
}

impl State {
    /// Returns true when all sources of targets were queried once.
    pub(crate) fn has_queried_all(&self) -> bool {
        self.unqueried_jobs == 0
    }
}

impl SharedState {
    fn new(config: &Config, memory_max: usize) -> io::Result<Self> {
        let client = |job: &Job| {
            let client = Client::new(job)
                .map_err(|cause| io::Error::other(format!("job {:?}: {cause}", job.job_name)))?;
            Ok((Arc::new(job.clone()), Arc::new(client)))
        };
        let jobs: Vec<_> = config.jobs().iter().map(client).collect::<io::Result<_>>()?;
        let memory = Memory::new(memory_max);
        Ok(Self {
            state: Mutex::new(State {
                board: Board::new(Arc::clone(&memory)),
                has_ended: false,
                unqueried_jobs: jobs.len(),
                workers: 0,
                idle: 0,
            }),
            changed: Condvar::new(),
            stopping: Condvar::new(),
            jobs,
            memory,
            external_labels: config.external_labels().iter().collect(),
            shard: config.shard(),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, up to `timeout`.
    pub(crate) fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        timeout: Duration,
    ) -> MutexGuard<'a, State> {
        let wait_result = self.changed.wait_timeout(state, timeout);
        wait_result.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Waits until a source of targets is due. Returns false at the end.
    fn wait_for_sources(&self, sources: &JobSources) -> bool {
        let mut state = self.state();
        while !state.has_ended {
            let time_left = sources.time_left();
            if time_left.is_zero() {
                return true;
            }
            let wait_result = self.stopping.wait_timeout(state, time_left);
            state = wait_result.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// Records that a job's sources were queried for the first time.
    fn note_first_query(&self) {
        self.state().unqueried_jobs -= 1;
        self.wake();
    }
}

impl Runner {
    /// Starts the threads.
    ///
    /// # Errors
    /// A certificate is unreadable, or a thread cannot be started.
    pub(crate) fn start(config: &Config, memory_max: usize) -> io::Result<Self> {
        let shared = Arc::new(SharedState::new(config, memory_max)?);
        let mut runner = Self { shared: Arc::clone(&shared), threads: Vec::new() };
        for index in 0..shared.jobs.len() {
            runner.discover(index)?;
        }
        runner.spawn("scrape-clock", move || run_scheduler(&shared))?;
        Ok(runner)
    }

    /// Stops the threads: no new scrape starts, and threads that wait for a response are abandoned.
    pub(crate) fn stop(&mut self) {
        self.shared.state().has_ended = true;
        self.shared.wake();
        self.shared.stopping.notify_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                error!("a thread of the scraper has panicked");
            }
        }
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let builder = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
        self.threads.push(builder.spawn(run)?);
        Ok(())
    }

    /// Queries a job's sources for targets: static lists once, other sources periodically in a
    /// thread of the job.
    fn discover(&mut self, index: usize) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let mut sources = JobSources::new(index, &shared.jobs[index].0, &shared.memory);
        if sources.is_constant() {
            sources.refresh_due(&shared);
            shared.note_first_query();
            return Ok(());
        }
        self.spawn("scrape-targets", move || {
            sources.refresh_due(&shared);
            shared.note_first_query();
            while shared.wait_for_sources(&sources) {
                sources.refresh_due(&shared);
            }
        })
    }
}

#[cfg(test)]
mod tests;
