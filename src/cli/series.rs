//! `granary series`: list, delete, rename and merge series of a running daemon.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{
    flags::{ClientArgs, SelectorArgs},
    http::read,
    table,
};
use crate::{
    model::{tag_pairs, with_noun},
    query::{ChangeAnswer, ChangedSeries, ErasureAnswer, NewName, SeriesAnswer},
};

/// List, delete, rename or merge the series of a running daemon
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary series list --tags host=web1
  granary series delete --tags host=web1 --dry-run
  granary series delete --metric page_views --start 2026-11-21T08:00:00Z --end 2026-11-21T09:00:00Z
  granary series rename --tags host=web1 --set host=db1
  granary series merge --tags host=db1 --set role=db --dry-run

Deleted series disappear at once; retention frees the space of their documents later. With a start
and an end, only the samples in between are deleted, at every resolution. Renamed series
keep their history. A sender that continues under the old name starts a new, empty series. Merged
series become one series with the history of all: where several series have samples, all count. A
merge cannot be undone.")]
pub(super) struct SeriesArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    command: SeriesCommand,
}

#[derive(Debug, Subcommand)]
enum SeriesCommand {
    /// List the matching series
    List(SelectorArgs),
    /// Delete the matching series with all their data or, with a start and an end, their samples in
    /// a range of time
    Delete(DeleteArgs),
    /// Rename matching series to another metric or other tags: either all series or none
    Rename(NewKeyArgs),
    /// Rename matching series to another metric or other tags, and merge series with equal names,
    /// including existing series
    Merge(NewKeyArgs),
}

/// A selection of series to delete, or of the samples to delete.
#[derive(Debug, Args)]
struct DeleteArgs {
    #[command(flatten)]
    selected: SelectorArgs,
    /// Delete only samples, from this time on: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds
    #[arg(long, requires = "end")]
    start: Option<String>,
    /// The end of the samples, exclusive
    #[arg(long, requires = "start")]
    end: Option<String>,
    /// Only show what would be deleted
    #[arg(long)]
    dry_run: bool,
}

/// A selection of series, with their new metric and tags.
#[derive(Debug, Args)]
struct NewKeyArgs {
    #[command(flatten)]
    selected: SelectorArgs,
    /// The new metric
    #[arg(long, value_name = "METRIC", required_unless_present = "set")]
    set_metric: Option<String>,
    /// New values of tags, such as host=db1; an empty value removes the tag
    #[arg(long, value_name = "TAGS")]
    set: Option<String>,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
}

impl NewKeyArgs {
    fn body(&self) -> anyhow::Result<Value> {
        let Self { selected, set_metric, set, dry_run } = self;
        let set = json!({ "metric": set_metric, "tags": tags(set.as_deref())? });
        Ok(json!({ "selector": selector(selected)?, "set": set, "dry_run": dry_run }))
    }
}

pub(super) fn series(args: &SeriesArgs) -> anyhow::Result<ExitCode> {
    let change = |path: &str, body: &Value, done: &str| {
        let answer = args.client.daemon.post_json(path, body)?;
        args.client.print(&answer, || Ok(render(&read(&answer)?, done)))
    };
    match &args.command {
        SeriesCommand::List(selected) => list(&args.client, selected),
        SeriesCommand::Delete(DeleteArgs { selected, start: Some(start), end, dry_run }) => {
            let selector = selector(selected)?;
            let body =
                json!({ "selector": selector, "start": start, "end": end, "dry_run": dry_run });
            let answer = args.client.daemon.post_json("admin/series/delete", &body)?;
            args.client.print(&answer, || Ok(render_erasure(&read(&answer)?)))
        }
        SeriesCommand::Delete(DeleteArgs { selected, dry_run, .. }) => {
            let body = json!({ "selector": selector(selected)?, "dry_run": dry_run });
            change("admin/series/delete", &body, "deleted")
        }
        SeriesCommand::Rename(key) => change("admin/series/rename", &key.body()?, "renamed"),
        SeriesCommand::Merge(key) => change("admin/series/merge", &key.body()?, "merged"),
    }
}

/// Lists the matching series.
pub(super) fn list(client: &ClientArgs, selected: &SelectorArgs) -> anyhow::Result<ExitCode> {
    let answer = client.daemon.get("series", &selected.pairs().collect::<Vec<_>>())?;
    client.print(&answer, || Ok(table::series(&read(&answer)?)))
}

/// Returns the selector of a request's body.
pub(super) fn selector(selected: &SelectorArgs) -> anyhow::Result<Value> {
    Ok(json!({ "metric": selected.metric, "tags": tags(selected.tags.tags.as_deref())? }))
}

fn tags(text: Option<&str>) -> anyhow::Result<BTreeMap<String, String>> {
    let mut tags = BTreeMap::new();
    for (name, value) in tag_pairs(text.unwrap_or_default()).map_err(anyhow::Error::msg)? {
        if tags.contains_key(&name) {
            bail!("tag {name} is given twice");
        }
        tags.insert(name, value);
    }
    Ok(tags)
}

/// Formats the result of a change, or of its dry run.
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
    let renamed = answer
        .series
        .iter()
        .any(|changed| changed.renamed_to.is_some() || changed.merged_into.is_some());
    let list = if renamed { renamings(&answer.series) } else { table::series(&listed) };
    format!("{list}\n{total} series would be {done}; nothing was changed")
}

/// Formats the result of deleting samples, or of its dry run.
fn render_erasure(answer: &ErasureAnswer) -> String {
    let ErasureAnswer { total, dry_run, start, end, cells, resolutions } = answer;
    let range = format!("from {} to {}", start.0, end.0);
    if !dry_run {
        let cells = with_noun(*cells, "cell");
        return format!("deleted samples of {total} series {range}: changed {cells}");
    }
    let titles = ["resolution", "cells", "samples", "recomputed cells"];
    let mut table = table::table(titles.map(str::to_owned));
    for level in resolutions {
        let [cells, samples, recomputed] =
            [level.cells, level.samples, level.recomputed].map(|count| count.to_string());
        table.add_row([level.resolution.clone(), cells, samples, recomputed]);
    }
    format!("{table}\nsamples of {total} series {range} would be deleted; nothing was changed")
}

fn renamings(series: &[ChangedSeries]) -> String {
    let line = |changed: &ChangedSeries| {
        let name = |to: &NewName| table::name_of(&to.metric, &to.tags);
        let to = changed.renamed_to.as_ref().map(|to| format!("-> {}", name(to)));
        let into = changed.merged_into.as_ref().map(|to| format!("merged into {}", name(to)));
        Some(format!("{} {}", table::name(&changed.series), to.or(into)?))
    };
    series.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}
