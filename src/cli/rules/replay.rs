//! `granary rules replay`: a dry run of rules over the history of a running daemon: when each alert
//! would have been pending, fired and ended. Knows nothing of how samples are stored.

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
        Action, Alert, Ask, External, GroupState, LabelSet, Rule, RuleGroup, TemplateTime, Written,
        evaluate,
    },
    cli::{flags::AskArgs, progress, screen, table::table},
    clock::{Clock, SystemClock},
    config::Settings,
    kept::RuleSources,
    model::{Span, UnixMillis},
};
use answers::Answers;

/// Evaluations of one group, at most.
const STEPS_MAX: i64 = 200_000;
/// Evaluations whose samples are in memory at the same time.
const STEPS_AT_ONCE: i64 = 500;
/// Episodes that are remembered, at most.
const EPISODES_MAX: usize = 10_000;

/// The options of a replay.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    ask: AskArgs,
    /// Rule files, folders and patterns
    #[arg(required = true)]
    paths: Vec<String>,
    /// This long up to --end, such as 6h, 7d or 1mo
    #[arg(long, default_value = "1d")]
    range: Span,
    /// Until when: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds [default: now]
    #[arg(long, value_parser = UnixMillis::parse)]
    end: Option<UnixMillis>,
    /// Between evaluations, such as 5m [default: the interval of each group]
    #[arg(long)]
    step: Option<Span>,
}

/// A time in which an alert was pending, and perhaps fired. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq)]
struct Episode {
    group: String,
    labels: LabelSet,
    annotations: LabelSet,
    value: f64,
    pending_at: i64,
    fired_at: Option<i64>,
    /// `None`: it goes on at the end.
    ended_at: Option<i64>,
}

/// The result for all groups.
#[derive(Debug, Default)]
struct Replayed {
    episodes: Vec<Episode>,
    /// Why rules could not be evaluated, each with its first fault.
    faults: BTreeMap<String, String>,
    /// Episodes for which there was no room.
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
    replayed.episodes.sort_by_key(|own| own.pending_at);
    for (rule, fault) in &replayed.faults {
        screen::complain(&format!("{rule}: {fault}"));
    }
    if replayed.left_out > 0 {
        screen::complain(&format!("{} more episodes are left out", replayed.left_out));
    }
    let shown: Vec<_> = replayed.episodes.iter().map(Episode::to_json).collect();
    args.ask.print(&json!({ "episodes": shown }).to_string(), || Ok(table_of(&replayed)))
}

impl ReplayArgs {
    fn step_ms(&self, group: &RuleGroup) -> anyhow::Result<i64> {
        let step_ms = match self.step {
            None => group.interval_ms,
            Some(Span::Fixed(ms)) if ms >= 1000 && ms % 1000 == 0 => ms,
            Some(_) => bail!("--step: write whole seconds, such as 30s or 5m"),
        };
        Ok(step_ms)
    }
}

/// Evaluates one group at each step, from a start to an end.
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
        "group {:?}: {steps} evaluations are more than {STEPS_MAX}: replay a shorter --range, or with \
         --step 5m",
        group.name
    );
    let bar = progress::bar(steps.max(0).unsigned_abs());
    bar.set_message(group.name.clone());
    let mut state = GroupState::new(group);
    let mut written = vec![Written::default(); group.rules.len()];
    let mut open = BTreeMap::new();
    let mut step = 0;
    while step < steps {
        let count = STEPS_AT_ONCE.min(steps - step);
        let from = UnixMillis(first + step * step_ms);
        let answers = Answers::fetch(&ask.daemon, group, (from, count, step_ms))
            .with_context(|| format!("replay group {:?} from {from}", group.name))?;
        for at in (0..count).map(|own| from.plus(own * step_ms)) {
            let vector = |expression: &str, at: UnixMillis| answers.vector(expression, at);
            let (time, external) = (TemplateTime::default(), External::none());
            let asked = Ask { vector: &vector, query: None, time, external };
            let all = 0..group.rules.len();
            let run = evaluate(group, all, &mut state, &mut written, at, &asked);
            for (rule, report) in group.rules.iter().zip(&run.reports) {
                if let Some(error) = &report.error {
                    let place = format!("{}/{}", group.name, rule.name);
                    replayed.faults.entry(place).or_insert_with(|| format!("{at}: {error}"));
                }
            }
            for rule in &group.rules {
                let alerts = state.rules.get(&rule.key).map_or(&[][..], |own| &own.alerts);
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

/// The episodes that go on, by rule and labels.
type Open = BTreeMap<(String, LabelSet), Episode>;

/// Notes what an evaluation made of the alerts of a rule.
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
        if alert.state.is_told() && episode.fired_at.is_none() {
            episode.fired_at = Some(alert.fired_at.unwrap_or(alert.active_at));
            episode.annotations.clone_from(&alert.annotations);
        }
    }
    // What was pending and is not there any more is not remembered at all.
    let known: BTreeSet<_> = alerts.iter().map(|own| &own.labels).collect();
    let is_gone = |(key, labels): &(String, LabelSet)| *key == rule.key && !known.contains(labels);
    let gone: Vec<_> = open.keys().filter(|key| is_gone(key)).cloned().collect();
    for key in gone {
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
    let fired = replayed.episodes.iter().filter(|own| own.fired_at.is_some()).count();
    let totals = format!("fired {fired} times, only pending {}", replayed.episodes.len() - fired);
    if replayed.episodes.is_empty() {
        return totals;
    }
    let names = ["alert", "pending", "fired", "ended", "value", "labels"];
    let mut table = table(names.map(str::to_owned));
    for own in &replayed.episodes {
        let name = own.labels.get("alertname").map_or("", String::as_str);
        let time = |at: Option<i64>| at.map_or_else(String::new, |at| UnixMillis(at).to_string());
        let others = own.labels.iter().filter(|(name, _)| *name != "alertname");
        let others: Vec<_> = others.map(|(name, value)| format!("{name}={value}")).collect();
        let cells = [
            name,
            &time(Some(own.pending_at)),
            &time(own.fired_at),
            &time(own.ended_at),
            &own.value.to_string(),
            &others.join(" "),
        ];
        table.add_row(cells.map(screen::text));
    }
    format!("{table}\n{totals}")
}
