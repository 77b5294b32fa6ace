//! The thread of a replica: it owns the state of the shard, sends the commands of the roles, and
//! waits for answers and requests.
//!
//! Seeding and applying block only this thread. Commands run as tasks of a tokio runtime, the
//! inserts of all replicas of a node in one task (`writer`). Must never know: settings, HTTP.

mod handle;
mod replicas;
mod spreader;
mod writer;

pub use handle::{Append, Query, ReplicaHandle, Status, StatusReader, Stopped};
pub use replicas::Replicas;
pub use spreader::Spreader;
pub use writer::Writer;

use std::{collections::VecDeque, ops::ControlFlow, sync::Arc, thread, time::Duration};

use crossbeam_channel::{Receiver, Sender, bounded, select};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::{
    clock::uptime_ms,
    replication::{
        medium::{Answer, Command, Fault, Medium},
        roles::{Event, Refusal, Replica, Ticket},
        runner::handle::{Request, Waiting},
        shard::Shard,
    },
};

/// The maximum number of requests that wait. More are refused as busy.
const REQUESTS_MAX: usize = 64;
/// The capacity of the queue of answers: a role has at most three commands in flight, and answers
/// to a few earlier roles may still come.
const ANSWERS_MAX: usize = 64;
/// The longest wait for an answer or a request.
const WAIT_MS_MAX: u64 = 500;
/// The time in which a stopping holder ends its lease.
const STOP_MS_MAX: u64 = 5000;

/// The answer to a command of a role.
type Answered = (Ticket, Result<Answer, Fault>);

/// The connections of a node that its replicas share.
#[derive(Clone)]
pub struct Connections {
    /// The runtime of the medium.
    pub runtime: Handle,
    /// The medium.
    pub medium: Arc<dyn Medium>,
    /// The task that gathers inserts.
    pub writer: Writer,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connections")
    }
}

/// Starts the thread of a replica. The thread ends when `on_event` breaks.
///
/// # Errors
/// The thread cannot be started.
pub fn start<S: Shard + Send + 'static>(
    replica: Replica,
    state: S,
    connections: Connections,
    mut on_event: impl FnMut(&Event, &S) -> ControlFlow<()> + Send + 'static,
) -> std::io::Result<ReplicaHandle<S>> {
    let (requests, received) = bounded(REQUESTS_MAX);
    let (answers, answered) = bounded(ANSWERS_MAX);
    let status = Arc::new(Mutex::new(Status::default()));
    let running = Running {
        replica,
        state,
        connections,
        answers,
        waiting: VecDeque::new(),
        in_flight: None,
        status: status.clone(),
        stops_at_ms: None,
        is_over: false,
    };
    let thread = thread::Builder::new()
        .name("replica".to_owned())
        .spawn(move || running.run(&received, &answered, &mut on_event))?;
    Ok(ReplicaHandle::new(requests, status, thread))
}

struct Running<S> {
    replica: Replica,
    state: S,
    connections: Connections,
    answers: Sender<Answered>,
    /// Records that are not proposed yet.
    waiting: VecDeque<Waiting<S>>,
    /// The sender of the proposed record.
    in_flight: Option<Waiting<S>>,
    status: Arc<Mutex<Status>>,
    /// The time at which a stop no longer waits for the end of the lease.
    stops_at_ms: Option<u64>,
    /// True when the receiver of events needs no more.
    is_over: bool,
}

impl<S: Shard + Send + 'static> Running<S> {
    fn run(
        mut self,
        requests: &Receiver<Request<S>>,
        answered: &Receiver<Answered>,
        on_event: &mut impl FnMut(&Event, &S) -> ControlFlow<()>,
    ) -> Stopped {
        loop {
            let now_ms = now_ms();
            if self.is_over {
                self.publish_status();
                let has_lease = self.replica.has_lease();
                return if has_lease { Stopped::WithLease } else { Stopped::InOrder };
            }
            self.propose_next();
            let commands = self.replica.poll(now_ms, &self.state);
            // The end of a lease must not be sent while the status says that this node answers.
            self.publish_status();
            for (ticket, command) in commands {
                self.send(ticket, command);
            }
            if let Some(stopped) = self.stopped(now_ms) {
                return stopped;
            }
            let due_ms = self
                .replica
                .next_due_ms()
                .map_or(WAIT_MS_MAX, |due| due.saturating_sub(now_ms).clamp(1, WAIT_MS_MAX));
            select! {
                recv(answered) -> answer => {
                    if let Ok((ticket, outcome)) = answer {
                        self.accept(ticket, outcome, on_event);
                    }
                }
                recv(requests) -> request => match request {
                    Ok(request) => self.serve(request),
                    // All handles are gone.
                    Err(_) => self.begin_stop(),
                },
                default(Duration::from_millis(due_ms)) => {}
            }
        }
    }

    /// Sends a command. Its answer comes through the channel of answers.
    fn send(&self, ticket: Ticket, command: Command) {
        let answers = self.answers.clone();
        // An answer without a receiver is one to a stopped replica.
        let reply = move |outcome| drop(answers.send((ticket, outcome)));
        if let Command::Insert(_) = command {
            self.connections.writer.insert(command, Box::new(reply));
            return;
        }
        let pending = self.connections.medium.execute(command);
        self.connections.runtime.spawn(async move { reply(pending.await) });
    }

    fn accept(
        &mut self,
        ticket: Ticket,
        outcome: Result<Answer, Fault>,
        on_event: &mut impl FnMut(&Event, &S) -> ControlFlow<()>,
    ) {
        if let Err(Fault(text)) = &outcome {
            self.status.lock().last_fault = Some(text.clone());
        }
        for event in self.replica.accept(now_ms(), ticket, outcome, &mut self.state) {
            self.is_over |= on_event(&event, &self.state).is_break();
            match event {
                Event::Committed { .. } => self.finish(Ok(())),
                // A record that was not confirmed may be in the log: its sender comes again, and
                // the next holder recognizes what was applied.
                Event::Fenced | Event::Damaged(_) | Event::Stopped => {
                    self.finish(Err(Refusal::NoHolder));
                }
                Event::Foreign(text) => self.status.lock().foreign = Some(text),
                Event::Took { .. } | Event::Seeded | Event::NotSeeded(_) => {}
            }
        }
    }

    fn finish(&mut self, outcome: Result<(), Refusal>) {
        if let Some(waiting) = self.in_flight.take() {
            waiting.answer(outcome);
        }
    }

    fn serve(&mut self, request: Request<S>) {
        match request {
            Request::Append(waiting) if self.waiting.len() >= REQUESTS_MAX => {
                waiting.answer(Err(Refusal::Busy));
            }
            Request::Append(waiting) => self.waiting.push_back(waiting),
            Request::Query(query) => query(&self.state, self.replica.may_answer(now_ms())),
            // A replica that stops stays without an assignment.
            Request::Assign { .. } if self.stops_at_ms.is_some() => {}
            Request::Assign { rank, joins } => self.replica.assign(rank, joins),
            Request::OtherProcess => self.replica.note_other_process(),
            Request::HandOver => self.replica.hand_over(),
            Request::Strike(node) => self.replica.strike(node),
            Request::Stop => self.begin_stop(),
        }
    }

    /// Proposes the next record, or refuses all while none can be proposed.
    fn propose_next(&mut self) {
        let is_refusing = self.replica.epoch().is_none() || self.stops_at_ms.is_some();
        if is_refusing || self.replica.is_unsure() {
            let refusal = if is_refusing { Refusal::NoHolder } else { Refusal::Busy };
            self.waiting.drain(..).for_each(|waiting| waiting.answer(Err(refusal)));
        }
        while self.replica.is_ready()
            && let Some(mut waiting) = self.waiting.pop_front()
        {
            let Some(bytes) = waiting.build(&self.state) else {
                // Everything in the record was applied before.
                waiting.answer(Ok(()));
                continue;
            };
            match self.replica.propose(&bytes, &self.state) {
                Ok(()) => self.in_flight = Some(waiting),
                Err(refusal) => waiting.answer(Err(refusal)),
            }
        }
    }

    fn begin_stop(&mut self) {
        self.replica.assign(None, false);
        self.replica.hand_over();
        self.stops_at_ms.get_or_insert_with(|| now_ms() + STOP_MS_MAX);
    }

    fn stopped(&mut self, now_ms: u64) -> Option<Stopped> {
        let until_ms = self.stops_at_ms?;
        if !self.replica.has_lease() {
            return Some(Stopped::InOrder);
        }
        (now_ms >= until_ms).then(|| {
            self.finish(Err(Refusal::NoHolder));
            Stopped::WithLease
        })
    }

    fn publish_status(&self) {
        let mut status = self.status.lock();
        status.epoch = self.replica.epoch();
        status.applied = self.state.applied();
        status.durable = self.state.durable_floor();
        status.answers_until_ms = self.replica.answers_until_ms();
        status.counters = self.replica.counters();
        status.caught_up_ms = self.replica.caught_up_ms();
        if status.caught_up_ms.is_some() {
            status.foreign = None;
        }
        if status.row.as_ref() != self.replica.row() {
            status.row = self.replica.row().cloned();
        }
    }
}

/// Returns the time of the machine since its start, in milliseconds. Suspended time counts: a
/// suspended holder has lost its lease.
pub fn now_ms() -> u64 {
    uptime_ms().max(0) as u64
}
