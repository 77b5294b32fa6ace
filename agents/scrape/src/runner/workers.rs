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

use super::{STACK_BYTES, Shared, State};
use crate::{board::Ticket, conversion::Report, memory::Samples, target::Assigned};

/// The maximum number of workers: this many targets can hang without delaying others.
const WORKERS_MAX: usize = 64;
/// The interval at which the scheduler reads the wall clock, to detect clock steps and suspends,
/// and tries again to start a thread.
const CLOCK_CHECKED_EVERY: Duration = Duration::from_secs(5);
/// The place of the problem that no thread can be started.
const THREADS: &str = "scrape threads";

/// The queue from which the workers take targets.
pub(super) type Tickets = Arc<Mutex<Receiver<Ticket>>>;

/// Passes due targets to workers, and starts a worker when none is idle.
pub(super) fn hand_out(shared: &Arc<Shared>) {
    let (sender, receiver) = sync_channel(WORKERS_MAX);
    let tickets = Arc::new(Mutex::new(receiver));
    let mut state = shared.state();
    while !state.has_ended {
        let now = unix_ms();
        // Without an idle worker, due targets wait; each worker reports when it is idle.
        let has_worker = !state.board.is_due(now)
            || state.idle > 0
            || start_worker(shared, &mut state, &tickets, STACK_BYTES);
        let next = if has_worker { state.board.next(now) } else { Err(None) };
        let left = match next {
            Ok(ticket) => {
                state.idle -= 1;
                // A worker is waiting, so the channel has room.
                drop(sender.send(ticket));
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
    shared: &Arc<Shared>,
    state: &mut State,
    tickets: &Tickets,
    stack_bytes: usize,
) -> bool {
    if state.workers >= WORKERS_MAX {
        return false;
    }
    let (shared, tickets) = (Arc::clone(shared), Arc::clone(tickets));
    let builder = thread::Builder::new().name("scrape".to_owned()).stack_size(stack_bytes);
    let started = builder.spawn(move || work(&shared, &tickets));
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
fn work(shared: &Shared, tickets: &Mutex<Receiver<Ticket>>) {
    loop {
        let next = tickets.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut ticket) = next else { return };
        let (samples, problem) = scrape(shared, &mut ticket);
        let now_ms = ticket.time_ms;
        let mut state = shared.state();
        state.board.done(ticket, samples, problem, now_ms);
        state.idle += 1;
        drop(state);
        shared.wake();
    }
}

/// Scrapes a target, and adds the reports of the scrape.
fn scrape(shared: &Shared, ticket: &mut Ticket) -> (Samples, Option<String>) {
    let watch = Stopwatch::start();
    let time_ms = ticket.time_ms;
    let Assigned { index, target } = ticket.assigned.clone();
    let (job, client) = &shared.jobs[index];
    let series = &mut ticket.series;
    let answer = client.get(job, &target).map_err(|cause| (0, cause));
    let taken = answer.and_then(|(format, mut answer)| {
        series.take((job, &target), &shared.external, (&mut *answer, format), time_ms)
    });
    let seconds = watch.elapsed().as_secs_f64();
    let (mut samples, report, problem) = match taken {
        Ok(taken) => {
            let (scraped, kept, added) = (taken.scraped, taken.kept, taken.added);
            let report = Report { is_up: true, seconds, scraped, kept, added };
            (taken.samples, report, None)
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
