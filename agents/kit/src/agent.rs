//! The life of an agent: start, rounds, ordered stop.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::Duration,
};

use granary_protocol::Ping;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use tracing::{error, info, warn};

use crate::{
    AgentArgs, Readings, Source,
    client::{Client, read_token},
    clock::{Stopwatch, unix_ms},
    logging,
    pinger::Pinger,
    print,
    problems::Problems,
    refs::Refs,
    report::Totals,
    schedule::Schedule,
    self_metrics,
    sender::{FLUSH_DEADLINE, Sender},
    spool::{Spool, SpoolError, Usage, set_aside},
};

/// The wall clock is looked at this often while waiting, to notice steps and suspends.
const CLOCK_CHECKED_EVERY: Duration = Duration::from_secs(5);
/// Above the flush deadline, for the last commit.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// A round announces itself to the sender; full means that it knows already.
const ROUNDS_ANNOUNCED_MAX: usize = 1;

/// Why an agent ended otherwise than asked.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The spool cannot be used.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The token cannot be read.
    #[error("--token-file {}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        cause: io::Error,
    },
    /// Signals cannot be handled, a thread cannot be started, or output cannot be written.
    #[error("{operation}")]
    System {
        /// What was being done.
        operation: &'static str,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The sending thread panicked.
    #[error("the sending thread died; this is a bug")]
    SenderDied,
}

fn system(operation: &'static str) -> impl FnOnce(io::Error) -> AgentError {
    move |cause| AgentError::System { operation, cause }
}

/// Samples the sources and delivers what they read until a signal, or for `--rounds`.
///
/// `program` names the agent's kind, such as `host`, and with it the default spool folder.
///
/// # Errors
/// When it cannot start, or cannot go on: the caller ends with a failure and is restarted.
pub fn run(
    program: &str,
    args: &AgentArgs,
    mut sources: Vec<Box<dyn Source>>,
) -> Result<(), AgentError> {
    logging::init(args.log_format);
    if args.print {
        let mut readings = Readings::new(args.tags.clone());
        for source in &mut sources {
            if let Err(cause) = source.sample_alone(unix_ms(), &mut readings) {
                readings.problem(source.name(), cause);
            }
        }
        return print::print_table(&mut io::stdout().lock(), &readings)
            .map_err(system("write to standard output"));
    }
    let folder = args.spool_folder(program);
    let result = deliver(program, args, &mut sources, &folder);
    if let Err(AgentError::Spool(error)) = &result
        && error.is_damage()
    {
        set_aside(&folder, error)?;
    }
    result
}

/// Starts the sender, samples until stopped, and stops in order.
fn deliver(
    program: &str,
    args: &AgentArgs,
    sources: &mut [Box<dyn Source>],
    folder: &std::path::Path,
) -> Result<(), AgentError> {
    let agent = args.agent_name();
    let token = match &args.token_file {
        Some(path) => Some(
            read_token(path).map_err(|cause| AgentError::Token { path: path.clone(), cause })?,
        ),
        None => None,
    };
    let stop = stop_on_signal()?;
    let spool = Arc::new(Spool::open(folder, &agent, args.spool_max_bytes, unix_ms())?);
    let totals = Arc::new(Totals::default());
    let schedule = Schedule::new(args.interval);
    let sender = Sender::new(
        Arc::clone(&spool),
        Client::new(&args.url, token.as_deref()),
        Arc::clone(&totals),
        agent.clone(),
        args.report.clone(),
        schedule.send_delay(&agent),
    );
    let pinger = Pinger::new(about(program, &agent, args, sources), args.interval);
    let (announce, rounds) = sync_channel(ROUNDS_ANNOUNCED_MAX);
    let (done, sender_done) = sync_channel(1);
    let thread = thread::Builder::new()
        .name("sender".to_owned())
        .spawn(move || {
            let result = sender.run(&rounds, pinger);
            // Nobody listens any more when the agent has given up waiting.
            drop(done.send(result));
        })
        .map_err(system("start the sending thread"))?;

    info!(agent, url = args.url, interval = ?args.interval, sources = sources.len(), "started");
    let mut sampler = Sampler {
        problems: Problems::default(),
        refs: Refs::new(&spool.all_definitions()?, Vec::new()),
        readings: Readings::new(args.tags.clone()),
        dropping: false,
        started_ms: unix_ms(),
        schedule,
        agent,
        spool,
        totals,
        bytes_max: args.spool_max_bytes,
    };
    let is_alive = || !thread.is_finished();
    let sampled = sampler.run(sources, args.rounds, &stop, &announce, &is_alive);
    drop(announce);
    let sent = match sender_done.recv_timeout(FLUSH_DEADLINE + STOP_GRACE) {
        Ok(result) => result.map_err(AgentError::from),
        Err(RecvTimeoutError::Timeout) => {
            warn!("the sender is late; what it was sending stays in the spool");
            Ok(())
        }
        Err(RecvTimeoutError::Disconnected) => Err(AgentError::SenderDied),
    };
    sampler.log_totals();
    sampled.and(sent)
}

/// What the agent says of itself in each ping.
fn about(program: &str, agent: &str, args: &AgentArgs, sources: &[Box<dyn Source>]) -> Ping {
    let tags: BTreeMap<_, _> = args.tags.iter().cloned().collect();
    Ping {
        agent: agent.to_owned(),
        host: tags.get("host").cloned(),
        program: program.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: unix_ms(),
        booted: sources.iter().find_map(|source| source.booted_ms()),
        interval_ms: u64::try_from(args.interval.as_millis()).unwrap_or(u64::MAX),
        sent: 0,
        tags,
    }
}

/// A channel that gets a word at SIGTERM or SIGINT.
fn stop_on_signal() -> Result<Receiver<()>, AgentError> {
    let (stop, stopped) = sync_channel(1);
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(system("handle signals"))?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                info!(signal, "stopping");
                if let Err(TrySendError::Disconnected(())) = stop.try_send(()) {
                    return;
                }
            }
        })
        .map_err(system("start the signal thread"))?;
    Ok(stopped)
}

fn sample_all(sources: &mut [Box<dyn Source>], now_ms: i64, readings: &mut Readings) {
    for source in sources {
        if let Err(cause) = source.sample(now_ms, readings) {
            readings.problem(source.name(), cause);
        }
    }
}

/// Everything the sampling thread owns.
struct Sampler {
    agent: String,
    spool: Arc<Spool>,
    totals: Arc<Totals>,
    schedule: Schedule,
    problems: Problems,
    refs: Refs,
    readings: Readings,
    dropping: bool,
    started_ms: i64,
    bytes_max: u64,
}

impl Sampler {
    fn run(
        &mut self,
        sources: &mut [Box<dyn Source>],
        rounds_max: Option<u64>,
        stop: &Receiver<()>,
        announce: &SyncSender<()>,
        is_sender_alive: &dyn Fn() -> bool,
    ) -> Result<(), AgentError> {
        let mut last = None;
        while rounds_max.is_none_or(|max| self.totals.rounds.get() < max) {
            let Some(tick) = self.wait_for_tick(last, stop) else {
                self.last_round(sources, last)?;
                break;
            };
            let missed = last.map_or(0, |last| self.schedule.missed_between(last, tick));
            if missed > 0 {
                self.totals.ticks_missed.add(missed);
                let total = self.totals.ticks_missed.get();
                warn!(missed, total, "rounds were missed: the host slept or a source was slow");
            }
            last = Some(tick);
            self.round(sources, tick)?;
            if !is_sender_alive() {
                error!("the sending thread ended early");
                break;
            }
            // Full: the sender has not yet looked at the round before; it will find both.
            if let Err(TrySendError::Disconnected(())) = announce.try_send(()) {
                break;
            }
        }
        Ok(())
    }

    /// What sources took in since the last tick is stored, at the time that it is.
    fn last_round(
        &mut self,
        sources: &mut [Box<dyn Source>],
        last: Option<i64>,
    ) -> Result<(), AgentError> {
        let mut has_more = false;
        for source in sources.iter_mut() {
            has_more |= source.stop();
        }
        if has_more {
            let after = last.map_or(i64::MIN, |last| last + 1);
            self.round(sources, unix_ms().max(after))?;
        }
        Ok(())
    }

    /// Sleeps until a tick is due; none when the agent is to stop.
    fn wait_for_tick(&self, last: Option<i64>, stop: &Receiver<()>) -> Option<i64> {
        let mut now = unix_ms();
        // After a slow round the tick that is due now is taken, not the next one.
        let mut tick = self.schedule.next_after(last.map_or(now, |last| last.min(now)));
        while now < tick {
            let left = Duration::from_millis(tick.abs_diff(now)).min(CLOCK_CHECKED_EVERY);
            match stop.recv_timeout(left) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
            }
            now = unix_ms();
            // A clock that stepped back has an earlier next tick.
            tick = tick.min(self.schedule.next_after(now));
        }
        if stop.try_recv().is_ok() { None } else { Some(self.schedule.due(tick, now)) }
    }

    /// Samples once and stores the batch.
    fn round(&mut self, sources: &mut [Box<dyn Source>], tick: i64) -> Result<(), AgentError> {
        let watch = Stopwatch::start();
        self.readings.clear();
        sample_all(sources, tick, &mut self.readings);
        let waiting = self.spool.usage()?;
        let sampled_in = watch.elapsed();
        let (agent, totals) = (&self.agent, &self.totals);
        self_metrics::add(&mut self.readings, agent, totals, waiting, sampled_in, self.started_ms);
        let mut problems = self.readings.problems().clone();
        if self.readings.not_finite() > 0 {
            let cause = format!("{} this round", self.readings.not_finite());
            problems.insert("values that are not finite".to_owned(), cause);
        }
        let mut batch = self.refs.batch(agent, tick, &self.readings, &mut problems);
        self.problems.update(problems);
        let appended = self.spool.append(&mut batch)?;
        totals.rounds.add(1);
        totals.samples_collected.add(batch.values.len() as u64);
        totals.batches_dropped.add(appended.dropped_batches);
        totals.samples_dropped.add(appended.dropped_samples);
        self.log_dropping(appended.dropped_batches, waiting);
        Ok(())
    }

    fn log_dropping(&mut self, dropped: u64, waiting: Usage) {
        let batches = self.totals.batches_dropped.get();
        let samples = self.totals.samples_dropped.get();
        if dropped > 0 && !self.dropping {
            self.dropping = true;
            warn!(batches, samples, "the spool is full; the oldest batches are being dropped");
        } else if self.dropping && waiting.bytes < self.bytes_max / 10 * 9 {
            self.dropping = false;
            warn!(batches, samples, "the spool has room again; these were dropped in all");
        }
    }

    fn log_totals(&self) {
        let totals = &self.totals;
        info!(
            rounds = totals.rounds.get(),
            samples_collected = totals.samples_collected.get(),
            batches_acknowledged = totals.batches_acknowledged.get(),
            samples_acknowledged = totals.samples_acknowledged.get(),
            samples_duplicate = totals.samples_duplicate.get(),
            samples_refused = totals.samples_refused.get(),
            batches_dropped = totals.batches_dropped.get(),
            batches_rejected = totals.batches_rejected.get(),
            ticks_missed = totals.ticks_missed.get(),
            "stopped"
        );
    }
}

#[cfg(test)]
mod tests;
