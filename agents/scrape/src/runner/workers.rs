//! The worker threads. They are started on demand, up to a limit; when all are busy, due targets
//! wait.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, sync_channel},
    },
    thread,
    time::Duration,
};

use granary_agent_kit::{Stopwatch, unix_ms};
use tracing::error;

use super::{RunnerState, STACK_BYTES, State};
use crate::{board::ScrapeTask, conversion::Report, memory::Samples, target::AssignedTarget};

/// The maximum number of workers: this many targets can hang without delaying others.
const WORKERS_MAX: usize = 64;
/// The interval at which the scheduler reads the wall clock, to detect clock steps and suspends,
/// and tries again to start a thread.
const CLOCK_CHECKED_EVERY: Duration = Duration::from_secs(5);
/// The name of the problem that no thread can be started.
const THREADS: &str = "scrape threads";

/// The queue from which the workers take targets.
pub(super) type TaskQueue = Arc<Mutex<Receiver<ScrapeTask>>>;

/// Passes due targets to workers, and starts a worker when none is idle.
pub(super) fn run_scheduler(shared: &Arc<RunnerState>) {
    let (sender, receiver) = sync_channel(WORKERS_MAX);
    let queue = Arc::new(Mutex::new(receiver));
    let mut state = shared.state();
    while !state.has_ended {
        let now = unix_ms();
        // Without an idle worker, due targets wait; each worker reports when it is idle.
        let has_worker = !state.board.is_due(now)
            || state.idle > 0
            || start_worker(shared, &mut state, &queue, STACK_BYTES);
        let next = if has_worker { state.board.next_task(now) } else { Err(None) };
        let left = match next {
            Ok(task) => {
                state.idle -= 1;
                // A worker is waiting, so the channel has room.
                drop(sender.send(task));
                continue;
            }
            Err(due) => {
                due.map_or(CLOCK_CHECKED_EVERY, |due| Duration::from_millis(due.abs_diff(now)))
            }
        };
        state = shared.wait(state, left.min(CLOCK_CHECKED_EVERY));
    }
}

/// Starts a worker. Returns false when the limit is reached or the thread cannot be started.
pub(super) fn start_worker(
    shared: &Arc<RunnerState>,
    state: &mut State,
    queue: &TaskQueue,
    stack_bytes: usize,
) -> bool {
    if state.workers >= WORKERS_MAX {
        return false;
    }
    let (shared, queue) = (Arc::clone(shared), Arc::clone(queue));
    let builder = thread::Builder::new().name("scrape".to_owned()).stack_size(stack_bytes);
    let started = builder.spawn(move || run_worker(&shared, &queue));
    if let Err(cause) = &started {
        error!(%cause, workers = state.workers, "cannot start a thread to scrape; targets wait");
    }
    let fault = started.as_ref().err().map(|cause| format!("cannot start a thread: {cause}"));
    state.board.set_fault(THREADS.to_owned(), fault);
    if started.is_ok() {
        state.workers += 1;
        state.idle += 1;
    }
    started.is_ok()
}

/// Scrapes targets until the end.
fn run_worker(shared: &RunnerState, queue: &Mutex<Receiver<ScrapeTask>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut task) = next else { return };
        let (samples, problem) = scrape(shared, &mut task);
        let now_ms = task.time_ms;
        let mut state = shared.state();
        state.board.finish(task, samples, problem, now_ms);
        state.idle += 1;
        drop(state);
        shared.wake();
    }
}

/// Scrapes a target, and adds the reports of the scrape.
fn scrape(shared: &RunnerState, task: &mut ScrapeTask) -> (Samples, Option<String>) {
    let watch = Stopwatch::start();
    let time_ms = task.time_ms;
    let AssignedTarget { index, target } = task.assigned_target.clone();
    let (job, client) = &shared.jobs[index];
    let series = &mut task.series;
    let answer = client.get(job, &target).map_err(|cause| (0, cause));
    let converted = answer.and_then(|(format, mut answer)| {
        series.convert((job, &target), &shared.external, (&mut *answer, format), time_ms)
    });
    let seconds = watch.elapsed().as_secs_f64();
    let (mut samples, report, problem) = match converted {
        Ok(converted) => {
            let (scraped, kept, added) = (converted.scraped, converted.kept, converted.added);
            let report = Report { is_up: true, seconds, scraped, kept, added };
            (converted.samples, report, None)
        }
        Err((scraped, cause)) => {
            let report = Report { is_up: false, seconds, scraped, kept: 0, added: 0 };
            (series.end_all(time_ms), report, Some(cause))
        }
    };
    series.report(&target, &shared.external, report, time_ms, &mut samples);
    samples.readings.shrink_to_fit();
    (samples, problem)
}
