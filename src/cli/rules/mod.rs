//! `granary rules`: checks and tests rule files, and replays them over past samples.

mod replay;
mod unit;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::{Args, Subcommand};

use super::screen;
use crate::{
    alerts::{Action, FileFault, LabelSet},
    config::{self, Overrides, Settings},
    kept::{RuleSet, RuleSources, read_routing},
    model::with_noun,
};

/// Check rule files in Prometheus' format, and run their tests
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary rules check deploy/rules/granary.yml
  granary rules check /etc/granary/rules '/etc/granary/more/*.rules'
  granary rules test deploy/granary_test.yml
  granary rules notifications deploy/notifications.yml
  granary rules notifications deploy/notifications.yml alertname=High severity=page

  granary rules replay /etc/granary/rules/new.yml --range 7d

Only replay needs a running daemon. The exit code is 1 when a check or a test fails.")]
pub(super) struct RulesArgs {
    #[command(subcommand)]
    command: RulesCommand,
}

#[derive(Debug, Subcommand)]
enum RulesCommand {
    /// Check rule files, and report each fault with its location
    Check {
        /// Files, folders (their *.yml and *.yaml are read) and patterns
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Check a file of notifications, and show the receivers of an alert
    Notifications {
        /// The file, in Alertmanager's format
        file: PathBuf,
        /// Labels of an alert, such as severity=page
        labels: Vec<String>,
    },
    /// Show when alerts would have fired over the history of a running daemon
    Replay(replay::ReplayArgs),
    /// Run unit tests in promtool's format
    Test {
        /// Files with tests
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

pub(super) fn rules(args: &RulesArgs) -> anyhow::Result<ExitCode> {
    let settings = config::load(None, &Overrides::default())?;
    match &args.command {
        RulesCommand::Check { paths } => {
            let sources =
                RuleSources { paths: paths.clone(), notifications: None, ..settings.rules.clone() };
            let set = sources.read(&settings.promql_settings())?;
            screen::print(&render(&set))
        }
        RulesCommand::Notifications { file, labels } => notifications(file, labels),
        RulesCommand::Replay(args) => replay::replay(args, &settings),
        RulesCommand::Test { files } => test(files, &settings),
    }
}

fn notifications(file: &Path, labels: &[String]) -> anyhow::Result<ExitCode> {
    let routing = read_routing(file).map_err(|faults| {
        let lines: Vec<_> = faults.iter().map(FileFault::to_string).collect();
        anyhow::anyhow!("{}", lines.join("\n"))
    })?;
    if labels.is_empty() {
        let integrations: usize =
            routing.receivers.iter().map(|receiver| receiver.integrations.len()).sum();
        let (routes, receivers) = (routing.routes.len(), routing.receivers.len());
        return screen::print(&format!(
            "{}, {} with {}",
            with_noun(routes, "route"),
            with_noun(receivers, "receiver"),
            with_noun(integrations, "integration")
        ));
    }
    let pair = |text: &String| {
        let (name, value) = text.split_once('=')?;
        Some((name.to_owned(), value.trim_matches('"').to_owned()))
    };
    let labels: Option<LabelSet> = labels.iter().map(pair).collect();
    let labels = labels.context("labels must have the form severity=page")?;
    let lines = routing.routes_of(&labels).into_iter().filter_map(|index| {
        let route = routing.routes.get(index)?;
        let name =
            |index: usize| routing.receivers.get(index).map(|receiver| receiver.name.as_str());
        let escalations = route.escalations.iter().filter_map(|escalation| {
            Some(format!(", after {} s {}", escalation.after_ms / 1000, name(escalation.receiver)?))
        });
        let later: String = escalations.collect();
        let grouped = match route.group_by.as_deref() {
            None => "each alert separately".to_owned(),
            Some([]) => "all in one group".to_owned(),
            Some(names) => format!("grouped by {}", names.join(", ")),
        };
        Some(format!("{}{later}, {grouped}, route {}", name(route.receiver)?, route.key))
    });
    screen::print(&screen::lines(&lines.collect::<Vec<_>>().join("\n")))
}

fn test(files: &[PathBuf], settings: &Settings) -> anyhow::Result<ExitCode> {
    let mut all_passed = true;
    for file in files {
        let faults = unit::run(file, settings)?;
        all_passed &= faults.is_empty();
        let verdict = if faults.is_empty() { "SUCCESS" } else { "FAILED" };
        let lines: Vec<_> =
            faults.iter().map(|fault| format!("\n{}", screen::lines(fault))).collect();
        screen::print(&format!("{}: {verdict}{}", file.display(), lines.concat()))?;
    }
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn render(set: &RuleSet) -> String {
    let rules = || set.groups.iter().flat_map(|group| &group.rules);
    let alerting = rules().filter(|rule| matches!(rule.action, Action::Alert(_))).count();
    let recording = rules().count() - alerting;
    let (groups, alerting) = (set.groups.len(), with_noun(alerting, "alerting rule"));
    format!(
        "{}: {alerting}, {}",
        with_noun(groups, "group"),
        with_noun(recording, "recording rule")
    )
}
