//! The threads: one that knows the time and hands out what is due, those that scrape, and one for
//! each source of targets that changes.
//!
//! Threads that scrape are started as they are needed, up to a bound; when all of them are busy, what
//! is due waits.

use std::{
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use granary_agent_kit::{Stopwatch, relabel::Labels, unix_ms};
use tracing::error;

use crate::{
    answer::Report,
    board::{Board, Ticket},
    config::{Config, Job},
    discovery::{Resolver, Source},
    fetch::Client,
    target::{Assigned, Target},
};

/// Threads that scrape, at most: so many targets may hang without delaying others.
pub(crate) const WORKERS_MAX: usize = 64;
/// Their work is shallow; TLS needs the most.
const STACK_BYTES: usize = 512 << 10;
/// The wall clock is looked at this often while waiting, to notice steps and suspends.
const CLOCK_CHECKED_EVERY: Duration = Duration::from_secs(5);
/// A buffer that one long answer has grown is given back.
const BODY_BYTES_KEPT: usize = 1 << 20;

/// What the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    board: Mutex<Board>,
    /// Something on the board has changed, or it is the end.
    changed: Condvar,
    ends: AtomicBool,
    jobs: Vec<(Arc<Job>, Arc<Client>)>,
    external: Labels,
    /// Jobs whose sources were not asked yet.
    unasked: AtomicUsize,
    /// Threads that scrape, and those of them that wait.
    workers: AtomicUsize,
    idle: AtomicUsize,
}

/// The running threads.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Shared {
    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        // A panic leaves whole entries: they are put in and taken out as one.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    /// Waits until something changes, at most `span`.
    pub(crate) fn wait<'a>(
        &self,
        board: MutexGuard<'a, Board>,
        span: Duration,
    ) -> MutexGuard<'a, Board> {
        let waited = self.changed.wait_timeout(board, span);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Whether each source of targets was asked once.
    pub(crate) fn has_asked_all(&self) -> bool {
        self.unasked.load(Ordering::Acquire) == 0
    }

    /// Notes that a job's sources were asked for the first time.
    fn asked_first(&self) {
        let board = self.board();
        self.unasked.fetch_sub(1, Ordering::Release);
        drop(board);
        self.wake();
    }
}

impl Runner {
    /// Starts to scrape what the settings say.
    ///
    /// # Errors
    /// When a certificate cannot be read, or the system gives no thread.
    pub(crate) fn start(config: &Config) -> io::Result<Self> {
        let client = |job: &Job| {
            let client = Client::new(job)
                .map_err(|cause| io::Error::other(format!("job {:?}: {cause}", job.job_name)))?;
            Ok((Arc::new(job.clone()), Arc::new(client)))
        };
        let jobs: Vec<_> = config.jobs().iter().map(client).collect::<io::Result<_>>()?;
        let shared = Arc::new(Shared {
            board: Mutex::default(),
            changed: Condvar::new(),
            ends: AtomicBool::new(false),
            external: config.external_labels().iter().collect(),
            unasked: AtomicUsize::new(jobs.len()),
            jobs,
            workers: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
        });
        let mut runner = Self { shared: Arc::clone(&shared), threads: Vec::new() };
        for index in 0..shared.jobs.len() {
            runner.discover(index)?;
        }
        runner.spawn("scrape-clock", move || hand_out(&shared))?;
        Ok(runner)
    }

    /// Ends the threads: no scrape begins, and those that wait for an answer are left behind.
    pub(crate) fn stop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        self.shared.wake();
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
        if found.sources.iter().all(|(source, _)| source.interval().is_none()) {
            found.ask_all(&shared);
            shared.asked_first();
            return Ok(());
        }
        self.spawn("scrape-targets", move || {
            let mut is_first = true;
            while !shared.has_ended() {
                found.ask_all(&shared);
                if std::mem::take(&mut is_first) {
                    shared.asked_first();
                }
                let watch = Stopwatch::start();
                let mut board = shared.board();
                while !shared.has_ended() && !watch.left_of(found.interval()).is_zero() {
                    board = shared.wait(board, watch.left_of(found.interval()));
                }
            }
        })
    }
}

/// The targets that each source of a job named last.
struct Discovered {
    index: usize,
    job: Arc<Job>,
    sources: Vec<(Source, Vec<Labels>)>,
    /// Since each source was asked.
    asked: Vec<Option<Stopwatch>>,
}

impl Discovered {
    fn new(index: usize, job: &Arc<Job>) -> Self {
        let sources: Vec<_> = Source::of(job).into_iter().map(|own| (own, Vec::new())).collect();
        let asked = vec![None; sources.len()];
        Self { index, job: Arc::clone(job), sources, asked }
    }

    /// How long until the first source is to be asked again.
    fn interval(&self) -> Duration {
        let left = |((source, _), asked): (&(Source, _), &Option<Stopwatch>)| {
            Some(asked.map_or(Duration::ZERO, |watch| {
                watch.left_of(source.interval().unwrap_or(Duration::MAX))
            }))
        };
        self.sources.iter().zip(&self.asked).filter_map(left).min().unwrap_or(Duration::MAX)
    }

    /// Asks the sources that are due and assigns what is new.
    fn ask_all(&mut self, shared: &Shared) {
        let resolver = Resolver::of_this_machine();
        let mut has_changed = false;
        let name = &self.job.job_name;
        for (at, (source, last)) in self.sources.iter_mut().enumerate() {
            let is_due = self.asked[at].is_none_or(|watch| {
                source.interval().is_some_and(|interval| watch.left_of(interval).is_zero())
            });
            if !is_due {
                continue;
            }
            self.asked[at] = Some(Stopwatch::start());
            let asked = source.ask(&resolver);
            let place = format!("targets of job {name:?}, source {at}");
            shared.board().set_fault(place, asked.as_ref().err().cloned());
            if let Ok(Some(found)) = asked {
                has_changed |= *last != found || found.is_empty();
                *last = found;
            }
        }
        if has_changed {
            self.assign(shared);
        }
    }

    fn assign(&self, shared: &Shared) {
        let name = &self.job.job_name;
        let (mut targets, mut fault) = (Vec::new(), None);
        for labels in self.sources.iter().flat_map(|(_, last)| last) {
            match Target::new(&self.job, labels) {
                Ok(Some(target)) => targets.push(Assigned { index: self.index, target }),
                Ok(None) => {}
                Err(problem) => fault = Some(problem),
            }
        }
        let limit = self.job.target_limit;
        if limit > 0 && targets.len() as u64 > limit {
            fault = Some(format!(
                "{} targets, more than the target_limit of {limit}: none is scraped",
                targets.len()
            ));
            targets.clear();
        }
        let mut board = shared.board();
        board.set_fault(format!("targets of job {name:?}"), fault);
        board.assign(self.index, targets, unix_ms());
        drop(board);
        shared.wake();
    }
}

/// Hands what is due to a thread that scrapes, and starts one when none is free.
fn hand_out(shared: &Arc<Shared>) {
    let (give, take) = sync_channel(WORKERS_MAX);
    let take = Arc::new(Mutex::new(take));
    let mut board = shared.board();
    while !shared.has_ended() {
        let now = unix_ms();
        let free = if board.is_due(now) { shared.reserve_worker() } else { Some(Worker::None) };
        let left = match free {
            // All are busy: each says when it has come back.
            None => CLOCK_CHECKED_EVERY,
            Some(worker) => match board.next(now) {
                Ok(ticket) => {
                    start_or_give(shared, worker, ticket, &give, &take);
                    continue;
                }
                Err(due) => {
                    shared.release_worker(worker);
                    due.map_or(CLOCK_CHECKED_EVERY, |due| Duration::from_millis(due.abs_diff(now)))
                }
            },
        };
        board = shared.wait(board, left.min(CLOCK_CHECKED_EVERY));
    }
}

/// Who scrapes what is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worker {
    /// Nobody is asked for.
    None,
    /// A thread that waits.
    Idle,
    /// One that is to be started.
    New,
}

impl Shared {
    /// A thread that waits, or room for another; none when all are busy.
    fn reserve_worker(&self) -> Option<Worker> {
        let take_one = |idle: usize| idle.checked_sub(1);
        if self.idle.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok() {
            return Some(Worker::Idle);
        }
        let add_one = |started: usize| (started < WORKERS_MAX).then_some(started + 1);
        let room = self.workers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add_one);
        room.is_ok().then_some(Worker::New)
    }

    fn release_worker(&self, worker: Worker) {
        match worker {
            Worker::None => {}
            Worker::Idle => drop(self.idle.fetch_add(1, Ordering::Relaxed)),
            Worker::New => drop(self.workers.fetch_sub(1, Ordering::Relaxed)),
        }
    }
}

fn start_or_give(
    shared: &Arc<Shared>,
    worker: Worker,
    ticket: Ticket,
    give: &SyncSender<Ticket>,
    take: &Arc<Mutex<Receiver<Ticket>>>,
) {
    if worker != Worker::New {
        // There is one that waits: the channel has room.
        drop(give.send(ticket));
        return;
    }
    let (own, tickets) = (Arc::clone(shared), Arc::clone(take));
    let builder = thread::Builder::new().name("scrape".to_owned()).stack_size(STACK_BYTES);
    if let Err(cause) = builder.spawn(move || work(&own, ticket, &tickets)) {
        shared.release_worker(worker);
        error!(%cause, "cannot start a thread to scrape; a target is lost until the next start");
    }
}

/// Scrapes what it is given until the end.
fn work(shared: &Shared, first: Ticket, tickets: &Mutex<Receiver<Ticket>>) {
    let mut body = Vec::new();
    let mut ticket = first;
    loop {
        scrape(shared, ticket, &mut body);
        body.shrink_to(BODY_BYTES_KEPT);
        shared.idle.fetch_add(1, Ordering::Relaxed);
        shared.wake();
        let next = tickets.lock().unwrap_or_else(PoisonError::into_inner).recv();
        ticket = match next {
            Ok(next) => next,
            Err(_) => return,
        };
    }
}

/// One scrape with its reports.
fn scrape(shared: &Shared, mut ticket: Ticket, body: &mut Vec<u8>) {
    let watch = Stopwatch::start();
    let Ticket { time_ms, .. } = ticket;
    let Assigned { index, target } = ticket.assigned.clone();
    let (job, client) = &shared.jobs[index];
    let shown = &mut ticket.shown;
    let answer = client.get(job, &target, body).map_err(|cause| (0, cause));
    let taken = answer
        .and_then(|format| shown.take((job, &target), &shared.external, (body, format), time_ms));
    let (mut readings, problem) = match taken {
        Ok(taken) => {
            let report = Report {
                is_up: true,
                seconds: watch.elapsed().as_secs_f64(),
                scraped: taken.scraped,
                kept: taken.kept,
                added: taken.added,
            };
            let mut readings = taken.readings;
            readings.extend(shown.report(&target, &shared.external, report, time_ms));
            (readings, None)
        }
        Err((scraped, cause)) => {
            let seconds = watch.elapsed().as_secs_f64();
            let report = Report { is_up: false, seconds, scraped, kept: 0, added: 0 };
            let mut readings = shown.end_all(time_ms);
            readings.extend(shown.report(&target, &shared.external, report, time_ms));
            (readings, Some(cause))
        }
    };
    readings.shrink_to_fit();
    shared.board().done(ticket, readings, problem, time_ms);
}
