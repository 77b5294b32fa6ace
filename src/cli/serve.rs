//! `granary serve` and `granary check-config`.

use std::{io::Write, path::PathBuf, process::ExitCode};

use clap::Args;

use super::screen::print_error;
use crate::{
    config::{Overrides, SettingsSource, bounds},
    daemon::{self, ExitReason, ReloadSources},
    model::with_causes,
    telemetry,
};

/// Run the daemon until SIGTERM or SIGINT
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Check the settings, and print the effective settings, and the limits that follow from them
#[derive(Debug, Args)]
pub(super) struct CheckConfigArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Debug, Args)]
struct SettingsArgs {
    /// Settings in TOML; missing keys have their defaults. `GRANARY__SECTION__KEY` in the
    /// environment overrides them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data directory [default: `storage.data_dir`]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Address and port to listen on [default: `server.listen`]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

impl SettingsArgs {
    fn source(&self) -> SettingsSource {
        let overrides = Overrides { listen: self.listen.clone(), data_dir: self.data_dir.clone() };
        SettingsSource { file: self.config.clone(), overrides }
    }
}

pub(super) fn serve(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let source = args.settings.source();
    let settings = source.load()?;
    let logging = telemetry::init_logging(settings.log.format, &settings.log.filter)
        .map_err(anyhow::Error::msg)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
    let changed = settings.changed.join(", ");
    tracing::info!(changed, "changed settings; see granary check-config for all");
    for note in &settings.notes {
        tracing::warn!("settings: {note}");
    }
    Ok(match daemon::run(settings, ReloadSources { source, logging })? {
        ExitReason::Signal => ExitCode::SUCCESS,
        ExitReason::RoleDied(_) | ExitReason::StoreInUse => ExitCode::FAILURE,
    })
}

pub(super) fn check_config(args: &CheckConfigArgs) -> anyhow::Result<ExitCode> {
    let settings = args.settings.source().load()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}\n# Limits that follow from settings:", settings.as_toml.join("\n"))?;
    for limit in bounds::derived(&settings) {
        writeln!(out, "# {limit}")?;
    }
    settings.notes.iter().for_each(|note| print_error(&format!("warning: {note}")));
    // Perhaps only the daemon's user may read the files, or they are on another machine.
    if let Some(Err(fault)) = settings.tls_files().map(|files| files.read()) {
        print_error(&format!("warning: {}", with_causes(&fault)));
    }
    Ok(ExitCode::SUCCESS)
}
