//! The threads: one that knows the time and hands out what is due, those that scrape, and one for
//! each job whose targets change.
//!
//! What they share is behind one lock, and changes under it: whoever looks and then waits misses
//! nothing.

mod discovered;
mod workers;

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use granary_agent_kit::relabel::Labels;
use tracing::error;

use self::{discovered::Discovered, workers::hand_out};
use crate::{
    board::Board,
    config::{Config, Job},
    fetch::Client,
    memory::Memory,
};

/// The work of each thread is shallow; TLS needs the most.
const STACK_BYTES: usize = 512 << 10;

/// What the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// For the clock, and for a round by itself: a target came, went or was scraped, or it is the
    /// end.
    changed: Condvar,
    /// For those who look for targets: it is the end.
    ended: Condvar,
    jobs: Vec<(Arc<Job>, Arc<Client>)>,
    external: Labels,
}

/// What changes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) board: Board,
    has_ended: bool,
    /// Jobs whose sources were not asked yet.
    unasked: usize,
    /// Threads that scrape, and those of them that wait.
    workers: usize,
    idle: usize,
}

/// The running threads.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl State {
    /// Whether each source of targets was asked once.
    pub(crate) fn has_asked_all(&self) -> bool {
        self.unasked == 0
    }
}

impl Shared {
    fn new(config: &Config, memory_max: usize) -> io::Result<Self> {
        let client = |job: &Job| {
            let client = Client::new(job)
                .map_err(|cause| io::Error::other(format!("job {:?}: {cause}", job.job_name)))?;
            Ok((Arc::new(job.clone()), Arc::new(client)))
        };
        let jobs: Vec<_> = config.jobs().iter().map(client).collect::<io::Result<_>>()?;
        Ok(Self {
            state: Mutex::new(State {
                board: Board::new(Memory::new(memory_max)),
                has_ended: false,
                unasked: jobs.len(),
                workers: 0,
                idle: 0,
            }),
            changed: Condvar::new(),
            ended: Condvar::new(),
            jobs,
            external: config.external_labels().iter().collect(),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves whole entries: they are put in and taken out as one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something changes, at most `span`.
    pub(crate) fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        span: Duration,
    ) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, span);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Waits until a source of targets is to be asked again; false at the end.
    fn wait_for_sources(&self, found: &Discovered) -> bool {
        let mut state = self.state();
        while !state.has_ended {
            let left = found.left();
            if left.is_zero() {
                return true;
            }
            let waited = self.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// Notes that a job's sources were asked for the first time.
    fn asked_first(&self) {
        self.state().unasked -= 1;
        self.wake();
    }
}

impl Runner {
    /// Starts to scrape what the settings say.
    ///
    /// # Errors
    /// When a certificate cannot be read, or the system gives no thread.
    pub(crate) fn start(config: &Config, memory_max: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(config, memory_max)?);
        let mut runner = Self { shared: Arc::clone(&shared), threads: Vec::new() };
        for index in 0..shared.jobs.len() {
            runner.discover(index)?;
        }
        runner.spawn("scrape-clock", move || hand_out(&shared))?;
        Ok(runner)
    }

    /// Ends the threads: no scrape begins, and those that wait for an answer are left behind.
    pub(crate) fn stop(&mut self) {
        self.shared.state().has_ended = true;
        self.shared.wake();
        self.shared.ended.notify_all();
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

    /// Asks a job's sources for targets: what stands in the settings at once, the others again and
    /// again in a thread of the job.
    fn discover(&mut self, index: usize) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let mut found = Discovered::new(index, &shared.jobs[index].0);
        if found.is_fixed() {
            found.ask_all(&shared);
            shared.asked_first();
            return Ok(());
        }
        self.spawn("scrape-targets", move || {
            found.ask_all(&shared);
            shared.asked_first();
            while shared.wait_for_sources(&found) {
                found.ask_all(&shared);
            }
        })
    }
}

#[cfg(test)]
mod tests;
