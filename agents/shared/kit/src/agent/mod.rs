//! The life cycle of an agent: start, rounds, clean stop.

mod delivery;
mod error;
mod sampler;

use std::{
    collections::BTreeMap,
    env,
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use granary_protocol::Ping;
use tracing::info;

pub use self::error::AgentError;
use self::{
    delivery::{Delivery, DeliveryParts},
    error::system_error,
    sampler::Sampler,
};
use crate::{
    AgentArgs, ClockOf, Readings, Source,
    clock::{
        schedule::Schedule,
        skew::{SKEW_MAX_MS, describe_skew},
        unix_ms, wall_base_ms,
    },
    program::{logging, signals},
    reporting::{
        metrics_port::{MetricsServer, ServedMetrics},
        print,
    },
    sampling::{
        plan::{Plan, PlannedSource, Planner},
        problems::Problems,
        relabel::Rule,
        watched::WatchedHosts,
    },
    sending::{address::without_user, client::Client, key::Token, pinger::Pinger},
    spool::set_aside,
};

/// The variable with the daemon's key, when there is no file.
const KEY_VARIABLE: &str = "GRANARY_KEY";
/// The time for the last commit, in addition to the flush deadline.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// The timeout of a daemon's answer to `--print`.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs the planner's sources until a signal arrives, or for `--rounds` rounds. SIGHUP requests a
/// new plan from the planner.
///
/// # Errors
/// Returns the errors of [`run`].
pub fn run_planned(
    program: &str,
    args: &AgentArgs,
    planner: &mut dyn Planner,
) -> Result<(), AgentError> {
    logging::init(args.log_format);
    let Plan { sources, rules } = planner.plan(&[]).map_err(AgentError::Plan)?;
    let mut started_sources = Vec::new();
    for planned in sources {
        if let PlannedSource::New(start) = planned {
            started_sources.push(start().map_err(|cause| AgentError::Plan(cause.to_string()))?);
        }
    }
    run_with(program, args, started_sources, rules, Some(planner))
}

/// Samples the sources and delivers their readings until a signal arrives, or for `--rounds`
/// rounds.
///
/// `program` names the agent's kind, such as `host`, and with it the default spool folder.
///
/// # Errors
/// The agent cannot start or continue. The caller exits with a failure, so that a
/// supervisor such as systemd restarts the agent.
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
        print::print_table(&mut io::stdout().lock(), &readings)
            .map_err(system_error("write to standard output"))?;
        return if planner.is_some() { check_daemons(args) } else { Ok(()) };
    }
    let result = deliver(program, args, CollectionPlan { sources, rules, planner });
    if let Err(AgentError::Spool { folder, cause }) = &result
        && cause.is_damage()
    {
        let fault = |cause| AgentError::Spool { folder: folder.clone(), cause };
        set_aside(folder, cause).map_err(fault)?;
    }
    result
}

/// Checks that each daemon answers and that its clock agrees with this host's. No sample is sent.
fn check_daemons(args: &AgentArgs) -> Result<(), AgentError> {
    let mut failed = Vec::new();
    for url in args.url.iter().chain(&args.also) {
        let client = client(args, std::slice::from_ref(url))?;
        let outcome = client.ping(Vec::new(), CHECK_TIMEOUT);
        let ahead_ms = client.clock().ahead_ms(wall_base_ms()).unwrap_or(0);
        let is_wrong = ahead_ms.unsigned_abs() >= SKEW_MAX_MS && args.clock == ClockOf::Host;
        let verdict = match outcome {
            Err(cause) => Err(cause),
            Ok(()) if is_wrong => {
                Err(format!("this host's clock is {}: samples would wait", describe_skew(ahead_ms)))
            }
            Ok(()) if ahead_ms == 0 => Ok("answers, clocks agree".to_owned()),
            Ok(()) => Ok(format!("answers; this host's clock is {}", describe_skew(ahead_ms))),
        };
        let url = client.url();
        match verdict {
            Ok(verdict) => writeln!(io::stdout(), "daemon {url}: {verdict}")
                .map_err(system_error("write to standard output"))?,
            Err(cause) => failed.push(format!("daemon {url}: {cause}")),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(AgentError::Daemons(failed.join("; "))) }
}

/// The sources and rules at the start, and the planner that replaces them later.
struct CollectionPlan<'a> {
    sources: Vec<Box<dyn Source>>,
    rules: Vec<Rule>,
    planner: Option<&'a mut dyn Planner>,
}

/// Starts the senders, samples until a stop is requested, and shuts down cleanly.
fn deliver(
    program: &str,
    args: &AgentArgs,
    CollectionPlan { sources, rules, planner }: CollectionPlan<'_>,
) -> Result<(), AgentError> {
    let agent = args.agent_name();
    let signals = signals::signal_requests().map_err(system_error("handle signals"))?;
    let watched = WatchedHosts::new(args.interval);
    let shared_ping_fields = shared_ping_fields(program, &agent, args, &sources);
    let start = |urls: &[String], folder: PathBuf, report: Option<PathBuf>| {
        let client = client(args, urls)?;
        let pinger = Pinger::new(shared_ping_fields.clone(), args.interval, watched.clone());
        let parts = DeliveryParts { client, folder, report, pinger, rules: rules.clone() };
        Delivery::start(parts, args, &agent)
    };
    let folder = args.spool_folder(program);
    let first = start(&args.url, folder.clone(), args.report.clone())?;
    let metrics_server = match args.metrics_listen {
        None => None,
        Some(address) => {
            let (totals, spool) = (Arc::clone(&first.totals), Arc::clone(&first.spool));
            let served = ServedMetrics { totals, spool, clock: Arc::clone(&first.clock) };
            let server = MetricsServer::listen(address, served);
            Some(server.map_err(|cause| AgentError::Metrics { address, cause })?)
        }
    };
    let also = args.also.iter();
    let also =
        also.map(|url| start(std::slice::from_ref(url), folder.join(also_folder_name(url)), None));
    let deliveries: Vec<_> =
        std::iter::once(Ok(first)).chain(also).collect::<Result<_, AgentError>>()?;
    let all =
        |urls: &[String]| urls.iter().map(|url| without_user(url)).collect::<Vec<_>>().join(",");
    let (url, also) = (all(&args.url), all(&args.also));
    info!(agent, url, also, interval = ?args.interval, sources = sources.len(), "started");
    let mut sampler = Sampler {
        problems: Problems::default(),
        readings: Readings::new(args.tags.clone()),
        watched,
        started_ms: unix_ms(),
        schedule: Schedule::new(args.interval),
        agent: agent.clone(),
        totals: deliveries.first().map(|delivery| Arc::clone(&delivery.totals)).unwrap_or_default(),
        deliveries,
        sources,
        planner,
    };
    let sampled = sampler.run(args.rounds, &signals);
    sampler.deliveries.iter_mut().for_each(Delivery::close_rounds);
    // The agent waits for every delivery, even when another delivery has failed.
    let sent: Vec<_> = sampler.deliveries.iter().map(Delivery::wait_for_end).collect();
    drop(metrics_server);
    sampled.and(sent.into_iter().collect())
}

/// Returns the name of the spool folder of an additional daemon.
fn also_folder_name(url: &str) -> String {
    let safe = |letter: char| {
        if letter.is_ascii_alphanumeric() || ".-".contains(letter) { letter } else { '_' }
    };
    let url = without_user(url);
    let (_, address) = url.split_once("://").unwrap_or(("", &url));
    format!("also-{}", address.chars().map(safe).collect::<String>())
}

/// Creates the HTTP client for the daemons.
fn client(args: &AgentArgs, urls: &[String]) -> Result<Client, AgentError> {
    let read = |path: &PathBuf| {
        Token::read(path).map_err(|cause| AgentError::Token { path: path.clone(), cause })
    };
    let token = match (&args.token_file, env::var(KEY_VARIABLE)) {
        (Some(path), _) => Some(read(path)?),
        (None, Ok(text)) => Some(Token::of_text(&text).map_err(AgentError::Key)?),
        (None, Err(_)) => None,
    };
    let https = args.https.settings();
    let is_plain = |url: &&String| url.starts_with("http://");
    if let Some(url) = urls.iter().find(is_plain).filter(|_| !https.pins.is_empty()) {
        let fault = format!("--pin: {} does not begin with https://", without_user(url));
        return Err(AgentError::Tls(fault));
    }
    Client::new(urls, token, https).map_err(AgentError::Tls)
}

/// Returns a ping with the fields that all pings of this agent share.
fn shared_ping_fields(
    program: &str,
    agent: &str,
    args: &AgentArgs,
    sources: &[Box<dyn Source>],
) -> Ping {
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
        absent: false,
        ending: false,
    }
}

#[cfg(test)]
mod tests;
