//! `granary rules`: whether rule files can be used, do what their tests expect, and when their alerts would
//! have fired.

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
    alerts::{Action, LabelSet, RuleFault},
    config::{self, Overrides, Settings},
    kept::{RuleSet, RuleSources, read_routing},
    model::counted,
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

All but replay need no running daemon. The exit code is 1 when anything is wrong.")]
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
    /// Say what is wrong with a file of notifications, and who is told of an alert
    Notifications {
        /// The file, in Alertmanager's format
        file: PathBuf,
        /// Labels of an alert, such as severity=page
        labels: Vec<String>,
    },
    /// Say when alerts would have fired over the history of a running daemon
    Replay(replay::ReplayArgs),
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
            let sources =
                RuleSources { paths: paths.clone(), notifications: None, ..settings.rules.clone() };
            let set = sources.read(&settings.promql_settings())?;
            screen::print(&shown(&set))
        }
        What::Notifications { file, labels } => notifications(file, labels),
        What::Replay(args) => replay::replay(args, &settings),
        What::Test { files } => test(files, &settings),
    }
}

fn notifications(file: &Path, labels: &[String]) -> anyhow::Result<ExitCode> {
    let routing = read_routing(file).map_err(|faults| {
        let lines: Vec<_> = faults.iter().map(RuleFault::to_string).collect();
        anyhow::anyhow!("{}", lines.join("\n"))
    })?;
    if labels.is_empty() {
        let ways: usize = routing.receivers.iter().map(|own| own.integrations.len()).sum();
        let (routes, receivers) = (routing.routes.len(), routing.receivers.len());
        return screen::print(&format!(
            "{}, {} with {}",
            counted(routes, "route"),
            counted(receivers, "receiver"),
            counted(ways, "integration")
        ));
    }
    let pair = |text: &String| {
        let (name, value) = text.split_once('=')?;
        Some((name.to_owned(), value.trim_matches('"').to_owned()))
    };
    let labels: Option<LabelSet> = labels.iter().map(pair).collect();
    let labels = labels.context("write labels as severity=page")?;
    let lines = routing.routes_of(&labels).into_iter().filter_map(|place| {
        let route = routing.routes.get(place)?;
        let name = |place: usize| routing.receivers.get(place).map(|own| own.name.as_str());
        let escalations = route.escalations.iter().filter_map(|own| {
            Some(format!(", after {} s {}", own.after_ms / 1000, name(own.receiver)?))
        });
        let later: String = escalations.collect();
        let grouped = match route.group_by.as_deref() {
            None => "each alert by itself".to_owned(),
            Some([]) => "all in one group".to_owned(),
            Some(names) => format!("grouped by {}", names.join(", ")),
        };
        Some(format!("{}{later}, {grouped}, route {}", name(route.receiver)?, route.key))
    });
    screen::print(&screen::lines(&lines.collect::<Vec<_>>().join("\n")))
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
    let (groups, alerting) = (set.groups.len(), counted(alerting, "alerting rule"));
    format!("{}: {alerting}, {}", counted(groups, "group"), counted(recording, "recording rule"))
}
