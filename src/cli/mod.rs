//! The command line: one file or folder for each command.

mod alerts;
mod audit;
mod cardinality;
mod cert;
mod clock;
mod cluster;
mod config;
mod diagnose;
mod downgrade;
mod export;
mod flags;
mod hosts;
mod http;
mod import;
mod key;
mod migrate;
mod offline;
mod plan;
mod preallocate;
mod progress;
mod query;
mod ready;
mod rebuild;
mod rules;
mod screen;
mod senders;
mod series;
mod serve;
mod silence;
mod snapshot;
mod table;
mod tail;
mod update;
mod user;
mod verify;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};

/// A monitoring store that aggregates every sample at 1m, 5m, 1h and 1d.
#[derive(Debug, Parser)]
#[command(version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    CheckConfig(serve::CheckConfigArgs),
    Config(config::ConfigArgs),
    Query(query::QueryArgs),
    Series(series::SeriesArgs),
    Cardinality(cardinality::CardinalityArgs),
    Senders(senders::SendersArgs),
    Hosts(hosts::HostsArgs),
    Alerts(alerts::AlertsArgs),
    Silence(silence::SilenceArgs),
    Rules(rules::RulesArgs),
    Tail(tail::TailArgs),
    Update(update::UpdateArgs),
    Key(key::KeyArgs),
    Audit(audit::AuditArgs),
    User(user::UserArgs),
    Ready(ready::ReadyArgs),
    Diagnose(diagnose::DiagnoseArgs),
    Verify(verify::VerifyArgs),
    Plan(plan::PlanArgs),
    Preallocate(preallocate::PreallocateArgs),
    Clock(clock::ClockArgs),
    Cert(cert::CertArgs),
    Cluster(cluster::ClusterArgs),
    Snapshot(snapshot::SnapshotArgs),
    Restore(snapshot::RestoreArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Rebuild(rebuild::RebuildArgs),
    Downgrade(downgrade::DowngradeArgs),
    /// Write man pages and shell completions into a folder.
    #[command(hide = true)]
    WriteManual {
        /// The folder, which is created
        folder: PathBuf,
    },
    Migrate(migrate::MigrateArgs),
}

/// Runs the command that the arguments name.
pub fn run() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => serve::serve(&args),
        Command::CheckConfig(args) => serve::check_config(&args),
        Command::Config(args) => config::config(&args),
        Command::Query(args) => query::query(&args),
        Command::Series(args) => series::series(&args),
        Command::Cardinality(args) => cardinality::cardinality(&args),
        Command::Senders(args) => senders::senders(&args),
        Command::Hosts(args) => hosts::hosts(&args),
        Command::Alerts(args) => alerts::alerts(&args),
        Command::Silence(args) => silence::silence(&args),
        Command::Rules(args) => rules::rules(&args),
        Command::Tail(args) => tail::tail(&args),
        Command::Update(args) => update::update(&args),
        Command::Key(args) => key::key(&args),
        Command::Audit(args) => audit::audit(&args),
        Command::User(args) => user::user(&args),
        Command::Ready(args) => ready::ready(&args),
        Command::Diagnose(args) => diagnose::diagnose(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Plan(args) => plan::plan(&args),
        Command::Preallocate(args) => preallocate::preallocate(&args),
        Command::Clock(args) => clock::clock(&args),
        Command::Cert(args) => cert::cert(&args),
        Command::Cluster(args) => cluster::cluster(&args),
        Command::Snapshot(args) => snapshot::snapshot(&args),
        Command::Restore(args) => snapshot::restore(&args),
        Command::Import(args) => import::import(&args),
        Command::Export(args) => export::export(&args),
        Command::Rebuild(args) => rebuild::rebuild(&args),
        Command::Downgrade(args) => downgrade::downgrade(&args),
        Command::WriteManual { folder } => granary_manual::write(Cli::command(), &folder)
            .map(|()| ExitCode::SUCCESS)
            .with_context(|| format!("write into {}", folder.display())),
        Command::Migrate(args) => migrate::migrate(&args),
    };
    result.unwrap_or_else(|cause| {
        screen::print_error(&format!("granary: {cause:#}"));
        ExitCode::FAILURE
    })
}
