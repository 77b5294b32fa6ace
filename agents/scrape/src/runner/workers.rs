//! The threads that scrape. They are started as they are needed, up to a bound; when all of them are
//! busy, what is due waits.

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
use crate::{answer::Report, board::Ticket, memory::Samples, target::Assigned};

/// Threads that scrape, at most: so many targets may hang without delaying others.
const WORKERS_MAX: usize = 64;
/// The wall clock is looked at this often while waiting, to notice steps and suspends; and a thread
/// that could not be started is tried again.
const CLOCK_CHECKED_EVERY: Duration = Duration::from_secs(5);
/// Where it is said that no thread can be started.
const THREADS: &str = "threads that scrape";

/// What a thread takes next, by one of those that wait.
pub(super) type Tickets = Arc<Mutex<Receiver<Ticket>>>;

/// Hands what is due to a thread that scrapes, and starts one when none is free.
pub(super) fn hand_out(shared: &Arc<Shared>) {
    let (give, take) = sync_channel(WORKERS_MAX);
    let tickets = Arc::new(Mutex::new(take));
    let mut state = shared.state();
    while !state.has_ended {
        let now = unix_ms();
        // Without one, what is due stays so: each says when it has come back.
        let has_one = !state.board.is_due(now)
            || state.idle > 0
            || start_worker(shared, &mut state, &tickets, STACK_BYTES);
        let next = if has_one { state.board.next(now) } else { Err(None) };
        let left = match next {
            Ok(ticket) => {
                state.idle -= 1;
                // There is one that waits: the channel has room.
                drop(give.send(ticket));
                continue;
            }
            Err(due) => {
                due.map_or(CLOCK_CHECKED_EVERY, |due| Duration::from_millis(due.abs_diff(now)))
            }
        };
        state = shared.wait(state, left.min(CLOCK_CHECKED_EVERY));
    }
}

/// Starts a thread, which waits then; false when there are as many as may be, or the system gives
/// none.
pub(super) fn start_worker(
    shared: &Arc<Shared>,
    state: &mut State,
    tickets: &Tickets,
    stack_bytes: usize,
) -> bool {
    if state.workers >= WORKERS_MAX {
        return false;
    }
    let (own, take) = (Arc::clone(shared), Arc::clone(tickets));
    let builder = thread::Builder::new().name("scrape".to_owned()).stack_size(stack_bytes);
    let started = builder.spawn(move || work(&own, &take));
    if let Err(cause) = &started {
        error!(%cause, workers = state.workers, "cannot start a thread to scrape; targets wait");
    }
    let fault = started.as_ref().err().map(|cause| format!("cannot start one: {cause}"));
    state.board.set_fault(THREADS.to_owned(), fault);
    if started.is_ok() {
        state.workers += 1;
        state.idle += 1;
    }
    started.is_ok()
}

/// Scrapes what it is given until the end.
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

/// One scrape with its reports.
fn scrape(shared: &Shared, ticket: &mut Ticket) -> (Samples, Option<String>) {
    let watch = Stopwatch::start();
    let time_ms = ticket.time_ms;
    let Assigned { index, target } = ticket.assigned.clone();
    let (job, client) = &shared.jobs[index];
    let shown = &mut ticket.shown;
    let answer = client.get(job, &target).map_err(|cause| (0, cause));
    let taken = answer.and_then(|(format, mut answer)| {
        shown.take((job, &target), &shared.external, (&mut *answer, format), time_ms)
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
            (shown.end_all(time_ms), report, Some(cause))
        }
    };
    shown.report(&target, &shared.external, report, time_ms, &mut samples);
    samples.readings.shrink_to_fit();
    (samples, problem)
}
