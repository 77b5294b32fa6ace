//! `granary series`: list, delete and rename series of a running daemon.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{http, query::table, screen};
use crate::query::{ChangeAnswer, ChangedSeries, SeriesAnswer};

/// List, delete or rename the series of a running daemon
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary series list --tags host=web1
  granary series delete --tags host=web1 --dry-run
  granary series rename --tags host=web1 --set host=db1

A deleted series is gone at once; the space of its documents comes back with retention. A renamed
one keeps its history. A sender that goes on under the old name begins a new, empty series.")]
pub(super) struct SeriesArgs {
    /// Where the daemon listens
    #[arg(long, env = "GRANARY_URL", default_value = http::DEFAULT_URL, value_parser = http::url, global = true)]
    url: String,
    /// Print the daemon's JSON answer
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The series that match
    List(Which),
    /// Delete the series that match, with all that was kept of them
    Delete {
        #[command(flatten)]
        which: Which,
        /// Only show what would go
        #[arg(long)]
        dry_run: bool,
    },
    /// Give the series that match another metric or other tags; all of them or none
    Rename {
        #[command(flatten)]
        which: Which,
        /// The new metric
        #[arg(long, value_name = "METRIC", required_unless_present = "set")]
        set_metric: Option<String>,
        /// New values of tags, such as host=db1; an empty value takes the tag away
        #[arg(long, value_name = "TAGS")]
        set: Option<String>,
        /// Only show what would be renamed
        #[arg(long)]
        dry_run: bool,
    },
}

/// Which series.
#[derive(Debug, Args)]
struct Which {
    /// Name of the metric; any when left out
    #[arg(long)]
    metric: Option<String>,
    /// Tags that must match, such as host=web1,core=0
    #[arg(long)]
    tags: Option<String>,
}

impl Which {
    fn json(&self) -> anyhow::Result<Value> {
        Ok(json!({ "metric": self.metric, "tags": tags(self.tags.as_deref())? }))
    }
}

pub(super) fn series(args: &SeriesArgs) -> anyhow::Result<ExitCode> {
    let change = |path: &str, body: &Value, done: &str| -> anyhow::Result<String> {
        let answer = http::post_json(&args.url, path, body)?;
        if args.json {
            return Ok(answer);
        }
        Ok(render(&serde_json::from_str(&answer).context("read the answer")?, done))
    };
    let text = match &args.what {
        What::List(which) => {
            let given = [("metric", &which.metric), ("tags", &which.tags)];
            let pairs = given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
            let answer = http::get(&args.url, "series", &pairs.collect::<Vec<_>>())?;
            if args.json { answer } else { table::series(&serde_json::from_str(&answer)?) }
        }
        What::Delete { which, dry_run } => {
            let body = json!({ "selector": which.json()?, "dry_run": dry_run });
            change("admin/series/delete", &body, "deleted")?
        }
        What::Rename { which, set_metric, set, dry_run } => {
            let set = json!({ "metric": set_metric, "tags": tags(set.as_deref())? });
            let body = json!({ "selector": which.json()?, "set": set, "dry_run": dry_run });
            change("admin/series/rename", &body, "renamed")?
        }
    };
    if args.json { screen::print_json(&text) } else { screen::print(&text) }
}

fn tags(text: Option<&str>) -> anyhow::Result<BTreeMap<String, String>> {
    let mut tags = BTreeMap::new();
    for pair in text.iter().flat_map(|text| text.split(',')).filter(|pair| !pair.is_empty()) {
        let (name, value) =
            pair.split_once('=').with_context(|| format!("{pair:?} is not name=value"))?;
        if tags.insert(name.trim().to_owned(), value.trim().to_owned()).is_some() {
            bail!("tag {} is given twice", name.trim());
        }
    }
    Ok(tags)
}

/// What was done, or would be.
fn render(answer: &ChangeAnswer, done: &str) -> String {
    let total = answer.total;
    if !answer.dry_run {
        return format!("{done} {total} series");
    }
    let listed = SeriesAnswer {
        total,
        series: answer.series.iter().map(|changed| changed.series.clone()).collect(),
        notes: Vec::new(),
    };
    let renamed = answer.series.iter().any(|changed| changed.renamed_to.is_some());
    let list = if renamed { renamings(&answer.series) } else { table::series(&listed) };
    format!("{list}\n{total} series would be {done}; nothing was changed")
}

fn renamings(series: &[ChangedSeries]) -> String {
    let line = |changed: &ChangedSeries| {
        let to = changed.renamed_to.as_ref()?;
        let to = table::name_of(&to.metric, &to.tags);
        Some(format!("{} -> {to}", table::name(&changed.series)))
    };
    series.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}
