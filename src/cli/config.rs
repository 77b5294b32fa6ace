//! `granary config`: compares the settings in use with the settings that a reload would read.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use serde_json::json;

use super::{flags::ClientArgs, http::read, screen, table::table};
use crate::{
    config::{self, Difference, SettingsSource},
    kept::{KeptSetting, ReloadAnswer, SettingChange, SettingsAnswer},
};

/// Compare the settings of a running daemon with a file, or with those that a reload would read
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary config diff
  granary config diff --config /etc/granary/granary.toml

Without --config, the daemon reads its own file and environment, checks them together with the rule
files, and reports what a reload would change. With --config, the file and the environment of this
command are compared with the settings in use. Nothing is changed.")]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show what a reload would change, and what needs a restart
    Diff {
        #[command(flatten)]
        ask: ClientArgs,
        /// Settings in TOML to compare with
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

pub(super) fn config(args: &ConfigArgs) -> anyhow::Result<ExitCode> {
    let ConfigCommand::Diff { ask, config } = &args.command;
    let answer = match config {
        None => ask.daemon.post_path_json("-/reload?dry_run=true", &json!({}))?,
        Some(file) => {
            let source = SettingsSource { file: Some(file.clone()), ..SettingsSource::default() };
            let (file, running) = (source.load()?, ask.daemon.get("admin/settings", &[])?);
            let SettingsAnswer { settings, flags } = read(&running)?;
            let found = config::compare(settings, &file, &flags)?;
            let Difference { changed, reopens, kept } = found;
            serde_json::to_string(&ReloadAnswer { rules: 0, changed, reopens, kept })?
        }
    };
    ask.print(&answer, || Ok(shown(&read(&answer)?)))
}

fn shown(answer: &ReloadAnswer) -> String {
    let ReloadAnswer { changed, kept, reopens, .. } = answer;
    if changed.is_empty() && kept.is_empty() {
        return "a reload would change no setting".to_owned();
    }
    let mut table = table(["setting", "in use", "new", "applies"].map(str::to_owned));
    let row = |change: &SettingChange, applies: &str| {
        [&change.key, &change.from, &change.to, applies].map(screen::text)
    };
    for change in changed {
        table.add_row(row(change, "with a reload"));
    }
    for KeptSetting { change, reason } in kept {
        table.add_row(row(change, &format!("with a restart: {reason}")));
    }
    let note = if *reopens {
        "\nthe reload opens the store again: requests wait until it is open"
    } else {
        ""
    };
    format!("{table}{note}")
}
