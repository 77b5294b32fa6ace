//! The life of an agent: start, rounds, ordered stop.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::Duration,
};

use granary_protocol::Ping;
use tracing::{error, info, warn};

use crate::{
    AgentArgs, Readings, Source, TlsFiles,
    client::{Client, Token},
    clock::{Stopwatch, unix_ms},
    logging,
    own_metrics::OwnMetrics,
    pinger::Pinger,
    plan::{Plan, Planned, Planner},
    print,
    problems::Problems,
    refs::Refs,
    relabel::Rule,
    report::Totals,
    schedule::Schedule,
    self_metrics,
    sender::{FLUSH_DEADLINE, Sender},
    signals::{self, Word},
    spool::{Spool, SpoolError, Usage, set_aside},
    watched::Watched,
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
    /// The certificates cannot be read.
    #[error("--ca-file {0}")]
    Tls(String),
    /// The agent's own metrics cannot be shown.
    #[error("--metrics-listen {address}")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// What is to be collected cannot be started.
    #[error("{0}")]
    Plan(String),
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

/// Collects what the planner says, and says again at SIGHUP, until a signal, or for `--rounds`.
///
/// # Errors
/// As [`run`].
pub fn run_planned(
    program: &str,
    args: &AgentArgs,
    planner: &mut dyn Planner,
) -> Result<(), AgentError> {
    logging::init(args.log_format);
    let Plan { sources, rules } = planner.plan(&[]).map_err(AgentError::Plan)?;
    let mut running = Vec::new();
    for planned in sources {
        if let Planned::New(start) = planned {
            running.push(start().map_err(|cause| AgentError::Plan(cause.to_string()))?);
        }
    }
    run_with(program, args, running, rules, Some(planner))
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
    sources: Vec<Box<dyn Source>>,
) -> Result<(), AgentError> {
    logging::init(args.log_format);
    run_with(program, args, sources, Vec::new(), None)
}

fn run_with(
    program: &str,
    args: &AgentArgs,
    mut sources: Vec<Box<dyn Source>>,
    rules: Vec<Rule>,
    planner: Option<&mut dyn Planner>,
) -> Result<(), AgentError> {
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
    let result = deliver(program, args, Collected { sources, rules, planner }, &folder);
    if let Err(AgentError::Spool(error)) = &result
        && error.is_damage()
    {
        set_aside(&folder, error)?;
    }
    result
}

/// What is collected now, and who says what is next.
struct Collected<'a> {
    sources: Vec<Box<dyn Source>>,
    rules: Vec<Rule>,
    planner: Option<&'a mut dyn Planner>,
}

/// Starts the sender, samples until stopped, and stops in order.
fn deliver(
    program: &str,
    args: &AgentArgs,
    Collected { sources, rules, planner }: Collected<'_>,
    folder: &std::path::Path,
) -> Result<(), AgentError> {
    let agent = args.agent_name();
    let client = client(args)?;
    let words = signals::words().map_err(system("handle signals"))?;
    let spool = Spool::open(folder, &agent, args.spool_max_bytes, unix_ms())?;
    let spool = Arc::new(spool.with_age_max(args.spool_max_age));
    let totals = Arc::new(Totals::default());
    let schedule = Schedule::new(args.interval);
    let sender = Sender::new(
        Arc::clone(&spool),
        client,
        Arc::clone(&totals),
        agent.clone(),
        args.report.clone(),
        schedule.send_delay(&agent),
    );
    let watched = Watched::new(args.interval);
    let about = about(program, &agent, args, &sources);
    let pinger = Pinger::new(about, args.interval, watched.clone());
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

    let shown = match args.metrics_listen {
        None => None,
        Some(address) => {
            let show = OwnMetrics::listen(address, Arc::clone(&totals), Arc::clone(&spool));
            Some(show.map_err(|cause| AgentError::Metrics { address, cause })?)
        }
    };
    let url = args.url.join(",");
    info!(agent, url, interval = ?args.interval, sources = sources.len(), "started");
    let mut sampler = Sampler {
        problems: Problems::default(),
        refs: Refs::new(&spool.all_definitions()?, rules),
        readings: Readings::new(args.tags.clone()),
        watched,
        dropping: false,
        started_ms: unix_ms(),
        schedule,
        agent,
        spool,
        totals,
        bytes_max: args.spool_max_bytes,
        sources,
        planner,
    };
    let is_alive = || !thread.is_finished();
    let sampled = sampler.run(args.rounds, &words, &announce, &is_alive);
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
    drop(shown);
    sampled.and(sent)
}

/// What talks to the daemons.
fn client(args: &AgentArgs) -> Result<Client, AgentError> {
    let read = |path: &PathBuf| {
        Token::read(path).map_err(|cause| AgentError::Token { path: path.clone(), cause })
    };
    let token = args.token_file.as_ref().map(read).transpose()?;
    let files = TlsFiles { ca: args.ca_file.as_deref(), ..TlsFiles::default() };
    Ok(Client::new(&args.url, token, files.read().map_err(AgentError::Tls)?))
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

fn sample_all(sources: &mut [Box<dyn Source>], now_ms: i64, readings: &mut Readings) {
    for source in sources {
        if let Err(cause) = source.sample(now_ms, readings) {
            readings.problem(source.name(), cause);
        }
    }
}

/// Everything the sampling thread owns.
struct Sampler<'a> {
    sources: Vec<Box<dyn Source>>,
    planner: Option<&'a mut dyn Planner>,
    agent: String,
    spool: Arc<Spool>,
    totals: Arc<Totals>,
    schedule: Schedule,
    problems: Problems,
    refs: Refs,
    readings: Readings,
    watched: Watched,
    dropping: bool,
    started_ms: i64,
    bytes_max: u64,
}

impl Sampler<'_> {
    fn run(
        &mut self,
        rounds_max: Option<u64>,
        words: &Receiver<Word>,
        announce: &SyncSender<()>,
        is_sender_alive: &dyn Fn() -> bool,
    ) -> Result<(), AgentError> {
        let mut last = None;
        while rounds_max.is_none_or(|max| self.totals.rounds.get() < max) {
            let Some(tick) = self.wait_for_tick(last, words)? else {
                self.last_round(last)?;
                break;
            };
            let missed = last.map_or(0, |last| self.schedule.missed_between(last, tick));
            if missed > 0 {
                self.totals.ticks_missed.add(missed);
                let total = self.totals.ticks_missed.get();
                warn!(missed, total, "rounds were missed: the host slept or a source was slow");
            }
            last = Some(tick);
            self.round(tick)?;
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
    fn last_round(&mut self, last: Option<i64>) -> Result<(), AgentError> {
        let mut has_more = false;
        for source in &mut self.sources {
            has_more |= source.stop();
        }
        if has_more {
            let after = last.map_or(i64::MIN, |last| last + 1);
            self.round(unix_ms().max(after))?;
        }
        Ok(())
    }

    /// Asks the planner again. Sources that end give what they still have, and those that begin are
    /// started after it. A plan that cannot be made changes nothing.
    fn plan_again(&mut self, last: Option<i64>) -> Result<(), AgentError> {
        let running: Vec<_> = self.sources.iter().map(|source| source.name()).collect();
        let Some(planner) = &mut self.planner else {
            info!("this agent has no settings that can be read again");
            return Ok(());
        };
        let Plan { sources, rules } = match planner.plan(&running) {
            Ok(plan) => plan,
            Err(fault) => {
                error!(fault, "the settings cannot be used; all goes on as it was");
                return Ok(());
            }
        };
        let mut before = std::mem::take(&mut self.sources);
        let mut starts = Vec::new();
        for planned in sources {
            match planned {
                Planned::New(start) => starts.push(start),
                Planned::Running(name) => {
                    let at = before.iter().position(|source| source.name() == name);
                    self.sources.extend(at.map(|at| before.remove(at)));
                }
            }
        }
        let staying = std::mem::replace(&mut self.sources, before);
        self.last_round(last)?;
        self.sources = staying;
        self.refs.set_rules(rules);
        for start in starts {
            match start() {
                Ok(source) => self.sources.push(source),
                Err(cause) => error!(cause, "cannot start; the rest goes on"),
            }
        }
        let sources: Vec<_> = self.sources.iter().map(|source| source.name()).collect();
        info!(?sources, "goes on with new settings");
        Ok(())
    }

    /// Sleeps until a tick is due; none when the agent is to stop.
    fn wait_for_tick(
        &mut self,
        last: Option<i64>,
        words: &Receiver<Word>,
    ) -> Result<Option<i64>, AgentError> {
        let mut now = unix_ms();
        // After a slow round the tick that is due now is taken, not the next one.
        let mut tick = self.schedule.next_after(last.map_or(now, |last| last.min(now)));
        while now < tick {
            let left = Duration::from_millis(tick.abs_diff(now)).min(CLOCK_CHECKED_EVERY);
            match words.recv_timeout(left) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Word::PlanAgain) => self.plan_again(last)?,
                Ok(Word::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
            now = unix_ms();
            // A clock that stepped back has an earlier next tick.
            tick = tick.min(self.schedule.next_after(now));
        }
        match words.try_recv() {
            Ok(Word::Stop) => return Ok(None),
            Ok(Word::PlanAgain) => self.plan_again(last)?,
            Err(_) => {}
        }
        Ok(Some(self.schedule.due(tick, now)))
    }

    /// Samples once and stores the batch.
    fn round(&mut self, tick: i64) -> Result<(), AgentError> {
        let watch = Stopwatch::start();
        self.readings.clear();
        sample_all(&mut self.sources, tick, &mut self.readings);
        self.watched.set(self.readings.take_watched());
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
