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

use super::{STACK_BYTES, SharedState, State};
use crate::{board::ScrapeTask, conversion::Report, memory::Samples, target::AssignedTarget};

/// The maximum number of workers: this many targets can hang without delaying others.
const WORKERS_MAX: usize = 64;
/// The interval at which the scheduler reads the wall clock, to detect clock steps and suspends,
/// and tries again to start a thread.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The name of the problem that no thread can be started.
const THREADS_OBJECT: &str = "scrape threads";

/// The queue from which the workers take targets.
pub(super) type TaskQueue = Arc<Mutex<Receiver<ScrapeTask>>>;

/// Passes due targets to workers, and starts a worker when none is idle.
pub(super) fn run_scheduler(shared: &Arc<SharedState>) {
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
        let wait_time = match next {
            Ok(task) => {
                state.idle -= 1;
                // A worker is waiting, so the channel has room.
                drop(sender.send(task));
                continue;
            }
            Err(due) => {
                due.map_or(CLOCK_CHECK_INTERVAL, |due| Duration::from_millis(due.abs_diff(now)))
            }
        };
        state = shared.wait(state, wait_time.min(CLOCK_CHECK_INTERVAL));
    }
}

/// Starts a worker. Returns false when the limit is reached or the thread cannot be started.
pub(super) fn start_worker(
    shared: &Arc<SharedState>,
    state: &mut State,
    queue: &TaskQueue,
    stack_bytes: usize,
) -> bool {
    if state.workers >= WORKERS_MAX {
        return false;
    }
    let (shared, queue) = (Arc::clone(shared), Arc::clone(queue));
    let builder = thread::Builder::new().name("scrape".to_owned()).stack_size(stack_bytes);
    let spawned = builder.spawn(move || run_worker(&shared, &queue));
    if let Err(cause) = &spawned {
        error!(%cause, workers = state.workers, "cannot start a thread to scrape; targets wait");
    }
    let fault = spawned.as_ref().err().map(|cause| format!("cannot start a thread: {cause}"));
    state.board.set_fault(THREADS_OBJECT.to_owned(), fault);
    if spawned.is_ok() {
        state.workers += 1;
        state.idle += 1;
    }
    spawned.is_ok()
}

/// Scrapes targets until the end.
fn run_worker(shared: &SharedState, queue: &Mutex<Receiver<ScrapeTask>>) {
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
fn scrape(shared: &SharedState, task: &mut ScrapeTask) -> (Samples, Option<String>) {
    let watch = Stopwatch::start();
    let time_ms = task.time_ms;
    let AssignedTarget { index, target } = task.assigned_target.clone();
    let (job, client) = &shared.jobs[index];
    let series = &mut task.series;
    let response = client.get(job, &target).map_err(|cause| (0, cause));
    let converted = response.and_then(|(format, mut response)| {
        series.convert((job, &target), &shared.external_labels, (&mut *response, format), time_ms)
    });
    let seconds = watch.elapsed().as_secs_f64();
    let (mut samples, report, problem) = match converted {
        Ok(converted) => {
            let (samples_scraped, samples_kept, series_added) =
                (converted.samples_scraped, converted.samples_kept, converted.series_added);
            let report =
                Report { is_up: true, seconds, samples_scraped, samples_kept, series_added };
            (converted.samples, report, None)
        }
        Err((samples_scraped, cause)) => {
            let report =
                Report { is_up: false, seconds, samples_scraped, samples_kept: 0, series_added: 0 };
            (series.end_all(time_ms), report, Some(cause))
        }
    };
    series.report(&target, &shared.external_labels, report, time_ms, &mut samples);
    samples.readings.shrink_to_fit();
    (samples, problem)
}
