//! The program: it parses the arguments and runs the agent.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use granary_agent_kit::{AgentArgs, Source};
use granary_agent_mongodb::{MongoDb, Settings, TargetSettings, parse_span};

/// Samples MongoDB servers for granary: standalone servers, members of replica sets, arbiters,
/// config servers and routers, many from one agent.
///
/// The user in a URI needs the role clusterMonitor, and the role read on the database local for the
/// oplog.
#[derive(Debug, Parser)]
#[command(name = "granary-agent-mongodb", version)]
struct Args {
    /// URI of a server, or of several with the same credentials; can be repeated. A password in it
    /// is visible in the process list: use --targets instead
    #[arg(long = "target", value_name = "mongodb://HOST")]
    targets: Vec<Target>,
    /// Sample all members, shards, config servers and routers that the servers of --target report
    #[arg(long, conflicts_with = "file")]
    discover: bool,
    /// TOML file of servers: [[target]] with uri, and optionally host, tags and discover
    #[arg(long = "targets", value_name = "FILE", conflicts_with = "targets")]
    file: Option<PathBuf>,
    /// Time limit of a server's round [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    timeout: Option<Duration>,
    /// Interval of queries for the sizes of all databases, or off [default: 20m]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    databases_every: Option<Duration>,
    /// Number of collections with series, the largest ones of each server; 0 for none [default: 200]
    #[arg(long, value_name = "N")]
    collections_max: Option<usize>,
    #[command(flatten)]
    agent: AgentArgs,
}

/// A URI that is never printed.
#[derive(Debug, Clone)]
struct Target(TargetSettings);

impl From<String> for Target {
    fn from(uri: String) -> Self {
        Self(TargetSettings::new(uri))
    }
}

fn main() -> ExitCode {
    granary_agent_kit::exit_code("granary-agent-mongodb", start(Args::parse()))
}

fn start(args: Args) -> anyhow::Result<()> {
    let mut settings = match &args.file {
        Some(file) => Settings::read(file)?,
        None => Settings::default(),
    };
    let targets = args.targets.into_iter().map(|target| target.0);
    settings
        .targets
        .extend(targets.map(|target| TargetSettings { discover: args.discover, ..target }));
    settings.timeout = args.timeout.unwrap_or(settings.timeout);
    settings.databases_every = args.databases_every.unwrap_or(settings.databases_every);
    settings.collections_max = args.collections_max.unwrap_or(settings.collections_max);
    let sources: Vec<Box<dyn Source>> =
        vec![Box::new(MongoDb::new(&settings, args.agent.interval)?)];
    Ok(granary_agent_kit::run("mongodb", &args.agent, sources)?)
}
