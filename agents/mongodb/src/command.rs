//! The command that samples the MongoDB servers of its options.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use granary_agent_kit::{AgentArgs, Source};

use crate::{MongoDb, Settings, TargetSettings, parse_span};

/// Sample the MongoDB servers that options name, without a settings file: standalone servers,
/// members of replica sets, arbiters, config servers and routers.
///
/// The user in a URI needs the role clusterMonitor, and the role read on the database local for the
/// oplog.
#[derive(Debug, Args)]
pub struct MongoDbArgs {
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

/// Runs the command until it is stopped.
///
/// # Errors
/// An option is invalid, or the agent cannot run.
pub fn run(args: MongoDbArgs) -> anyhow::Result<()> {
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
