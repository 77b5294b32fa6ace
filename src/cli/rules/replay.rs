//! `granary rules replay`: evaluates rules over the history of a running daemon, and lists when
//! each alert would have been pending, fired and ended.

mod answers;

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::{
    alerts::{
        Action, Alert, EvaluationQueries, ExternalIdentity, GroupState, LabelSet, Rule, RuleGroup,
        TemplateTime, WrittenSeries, evaluate,
    },
    cli::{flags::AskArgs, progress, screen, table::table},
    clock::{Clock, SystemClock},
    config::Settings,
    kept::RuleSources,
    model::{Span, UnixMillis, with_noun},
};
use answers::Answers;

/// The maximum number of evaluations of a group.
const STEPS_MAX: i64 = 200_000;
/// The number of evaluations whose samples are in memory at the same time.
const STEPS_PER_FETCH: i64 = 500;
/// The maximum number of listed episodes.
const EPISODES_MAX: usize = 10_000;

/// The options of a replay.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    ask: AskArgs,
    /// Rule files, folders and patterns
    #[arg(required = true)]
    paths: Vec<String>,
    /// Duration up to --end, such as 6h, 7d or 1mo
    #[arg(long, default_value = "1d")]
    range: Span,
    /// End: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds [default: now]
    #[arg(long, value_parser = UnixMillis::parse)]
    end: Option<UnixMillis>,
    /// Time between evaluations, such as 5m [default: the interval of each group]
    #[arg(long)]
    step: Option<Span>,
}

/// A period in which an alert was pending or firing. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq)]
struct Episode {
    group: String,
    labels: LabelSet,
    annotations: LabelSet,
    value: f64,
    pending_at: i64,
    fired_at: Option<i64>,
    /// The time at which the alert ended; `None` when it was active at the end.
    ended_at: Option<i64>,
}

/// The result for all groups.
#[derive(Debug, Default)]
struct Replayed {
    episodes: Vec<Episode>,
    /// The first error of each rule that could not be evaluated.
    faults: BTreeMap<String, String>,
    /// The number of episodes beyond the limit.
    left_out: usize,
}

pub(super) fn replay(args: &ReplayArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let paths = args.paths.clone();
    let sources = RuleSources { paths, notifications: None, ..settings.rules.clone() };
    let set = sources.read(&settings.promql_settings())?;
    let end = args.end.unwrap_or_else(|| SystemClock.now());
    let start = args.range.before(end);
    let mut replayed = Replayed::default();
    for mut group in set.groups {
        group.rules.retain(|rule| matches!(rule.action, Action::Alert(_)));
        if !group.rules.is_empty() {
            let step_ms = args.step_ms(&group)?;
            replay_group(&args.ask, &group, (start, end, step_ms), &mut replayed)?;
        }
    }
    replayed.episodes.sort_by_key(|episode| episode.pending_at);
    for (rule, fault) in &replayed.faults {
        screen::print_error(&format!("{rule}: {fault}"));
    }
    if replayed.left_out > 0 {
        screen::print_error(&format!(
            "not listed: {}",
            with_noun(replayed.left_out, "more episode")
        ));
    }
    let shown: Vec<_> = replayed.episodes.iter().map(Episode::to_json).collect();
    args.ask.print(&json!({ "episodes": shown }).to_string(), || Ok(table_of(&replayed)))
}

impl ReplayArgs {
    fn step_ms(&self, group: &RuleGroup) -> anyhow::Result<i64> {
        let step_ms = match self.step {
            None => group.interval_ms,
            Some(Span::Fixed(ms)) if ms >= 1000 && ms % 1000 == 0 => ms,
            Some(_) => bail!("--step must be in whole seconds, such as 30s or 5m"),
        };
        Ok(step_ms)
    }
}

/// Evaluates a group at each step of a range.
fn replay_group(
    ask: &AskArgs,
    group: &RuleGroup,
    (start, end, step_ms): (UnixMillis, UnixMillis, i64),
    replayed: &mut Replayed,
) -> anyhow::Result<()> {
    let first = start.0.div_euclid(step_ms) * step_ms + step_ms;
    let steps = (end.0 - first).div_euclid(step_ms) + 1;
    ensure!(
        steps <= STEPS_MAX,
        "group {:?}: {steps} evaluations exceed the limit of {STEPS_MAX}: use a shorter --range, or \
          --step 5m",
        group.name
    );
    let bar = progress::bar(steps.max(0).unsigned_abs());
    bar.set_message(group.name.clone());
    let mut state = GroupState::new(group);
    let mut written = vec![WrittenSeries::default(); group.rules.len()];
    let mut open = BTreeMap::new();
    let mut step = 0;
    while step < steps {
        let count = STEPS_PER_FETCH.min(steps - step);
        let from = UnixMillis(first + step * step_ms);
        let answers = Answers::fetch(&ask.daemon, group, (from, count, step_ms))
            .with_context(|| format!("replay group {:?} from {from}", group.name))?;
        for at in (0..count).map(|step| from.plus(step * step_ms)) {
            let vector = |expression: &str, at: UnixMillis| answers.vector(expression, at);
            let (time, external) = (TemplateTime::default(), ExternalIdentity::none());
            let context = EvaluationQueries { vector: &vector, query: None, time, external };
            let all = 0..group.rules.len();
            let run = evaluate(group, all, &mut state, &mut written, at, &context);
            for (rule, report) in group.rules.iter().zip(&run.reports) {
                if let Some(error) = &report.error {
                    let place = format!("{}/{}", group.name, rule.name);
                    replayed.faults.entry(place).or_insert_with(|| format!("{at}: {error}"));
                }
            }
            for rule in &group.rules {
                let alerts = state.rules.get(&rule.key).map_or(&[][..], |rule| &rule.alerts);
                follow((group, rule), alerts, at, &mut open, replayed);
            }
            bar.inc(1);
        }
        step += count;
    }
    for episode in open.into_values() {
        replayed.keep(episode);
    }
    bar.finish_and_clear();
    Ok(())
}

/// The episodes that have not ended, by rule and labels.
type Open = BTreeMap<(String, LabelSet), Episode>;

/// Updates the episodes of a rule after an evaluation.
fn follow(
    (group, rule): (&RuleGroup, &Rule),
    alerts: &[Alert],
    at: UnixMillis,
    open: &mut Open,
    replayed: &mut Replayed,
) {
    for alert in alerts {
        let key = (rule.key.clone(), alert.labels.clone());
        if !alert.is_active() {
            if let Some(episode) = open.remove(&key) {
                replayed.keep(Episode { ended_at: Some(at.0), ..episode });
            }
            continue;
        }
        let episode = open.entry(key).or_insert_with(|| Episode {
            group: group.name.clone(),
            labels: alert.labels.clone(),
            annotations: LabelSet::new(),
            value: alert.value,
            pending_at: alert.active_at,
            fired_at: None,
            ended_at: None,
        });
        episode.value = alert.value;
        if alert.state.is_notified() && episode.fired_at.is_none() {
            episode.fired_at = Some(alert.fired_at.unwrap_or(alert.active_at));
            episode.annotations.clone_from(&alert.annotations);
        }
    }
    // Pending alerts that do not fire disappear without a resolved state.
    let known: BTreeSet<_> = alerts.iter().map(|alert| &alert.labels).collect();
    let has_ended =
        |(key, labels): &(String, LabelSet)| *key == rule.key && !known.contains(labels);
    let ended: Vec<_> = open.keys().filter(|key| has_ended(key)).cloned().collect();
    for key in ended {
        if let Some(episode) = open.remove(&key) {
            replayed.keep(Episode { ended_at: Some(at.0), ..episode });
        }
    }
}

impl Replayed {
    fn keep(&mut self, episode: Episode) {
        if self.episodes.len() < EPISODES_MAX {
            self.episodes.push(episode);
        } else {
            self.left_out += 1;
        }
    }
}

impl Episode {
    fn to_json(&self) -> Value {
        let time = |at: i64| UnixMillis(at).to_string();
        json!({
            "group": self.group,
            "labels": self.labels,
            "annotations": self.annotations,
            "value": self.value.to_string(),
            "pendingAt": time(self.pending_at),
            "firedAt": self.fired_at.map(time),
            "endedAt": self.ended_at.map(time),
        })
    }
}

fn table_of(replayed: &Replayed) -> String {
    let fired = replayed.episodes.iter().filter(|episode| episode.fired_at.is_some()).count();
    let totals = format!("{fired} fired, {} only pending", replayed.episodes.len() - fired);
    if replayed.episodes.is_empty() {
        return totals;
    }
    let names = ["alert", "pending", "fired", "ended", "value", "labels"];
    let mut table = table(names.map(str::to_owned));
    for episode in &replayed.episodes {
        let name = episode.labels.get("alertname").map_or("", String::as_str);
        let time = |at: Option<i64>| at.map_or_else(String::new, |at| UnixMillis(at).to_string());
        let others = episode.labels.iter().filter(|(name, _)| *name != "alertname");
        let others: Vec<_> = others.map(|(name, value)| format!("{name}={value}")).collect();
        let cells = [
            name,
            &time(Some(episode.pending_at)),
            &time(episode.fired_at),
            &time(episode.ended_at),
            &episode.value.to_string(),
            &others.join(" "),
        ];
        table.add_row(cells.map(screen::text));
    }
    format!("{table}\n{totals}")
}
