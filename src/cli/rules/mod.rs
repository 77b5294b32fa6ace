//! `granary rules`: whether rule files can be used, and do what their tests expect. Knows nothing of a
//! running daemon.

mod unit;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};

use super::screen;
use crate::{
    alerts::{Action, RuleSet, RuleSources},
    config::{self, Overrides, Settings},
};

/// Check rule files in Prometheus' format, and run their tests
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary rules check deploy/rules/granary.yml
  granary rules check /etc/granary/rules '/etc/granary/more/*.rules'
  granary rules test deploy/granary_test.yml

It needs no running daemon. The exit code is 1 when anything is wrong.")]
pub(super) struct RulesArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say what is wrong with rule files, each fault with its place
    Check {
        /// Files, folders, whose *.yml and *.yaml are read, and patterns
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Run unit tests in the format of promtool's
    Test {
        /// Files of tests
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

pub(super) fn rules(args: &RulesArgs) -> anyhow::Result<ExitCode> {
    let settings = config::load(None, &Overrides::default())?;
    match &args.what {
        What::Check { paths } => {
            let sources = RuleSources { paths: paths.clone(), ..settings.rules };
            let set = sources.read(&settings.promql)?;
            screen::print(&shown(&set))
        }
        What::Test { files } => test(files, &settings),
    }
}

fn test(files: &[PathBuf], settings: &Settings) -> anyhow::Result<ExitCode> {
    let mut is_well = true;
    for file in files {
        let faults = unit::run(file, settings)?;
        is_well &= faults.is_empty();
        let verdict = if faults.is_empty() { "SUCCESS" } else { "FAILED" };
        let lines: Vec<_> =
            faults.iter().map(|fault| format!("\n{}", screen::lines(fault))).collect();
        screen::print(&format!("{}: {verdict}{}", file.display(), lines.concat()))?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn shown(set: &RuleSet) -> String {
    let rules = || set.groups.iter().flat_map(|group| &group.rules);
    let alerting = rules().filter(|rule| matches!(rule.action, Action::Alert(_))).count();
    let recording = rules().count() - alerting;
    format!("{} groups: {alerting} rules with alerts, {recording} that record", set.groups.len())
}
