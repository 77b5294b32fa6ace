//! `granary plan`: estimates the resources of a fleet, and compares them with this machine.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use serde_json::{Value, json};

use super::{
    screen,
    table::{right, short, table},
};
use crate::{
    config::{self, Overrides, Settings},
    model::{RetentionRule, Span, with_noun},
    policy::fleet_plan::{Fleet, Machine, Plan, PlanBounds, PlannedHistograms},
    store::DiskSpace,
};

/// The number of series of the host agent on a machine with two cores, a disk, two file systems and
/// three network interfaces, including the agent's own; docs/sizing.md has the same number.
const HOST_SERIES: u64 = 212;
/// The buckets of latencies with three different shapes, in clients' default resolution.
const HISTOGRAM_BUCKETS: u64 = 75;
/// The exit code when this machine is too small.
const TOO_SMALL: u8 = 2;

/// Estimate the resources of a fleet: memory, disk of each granularity, writes and cores
///
/// The estimate needs no daemon. Retention and limits come from the settings; the costs of a slot
/// and a series were measured, see docs/sizing.md. Exits with 2 when this machine is too small.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  granary plan --hosts 50
  granary plan --hosts 50 --metrics 100 --interval 1m --after 30d --json
  granary plan --hosts 50 --config granary.toml --rule-series debug=500

A running daemon reports the number of each rule's series as \"rules\" in /api/v1/storage, and on the
page under Storage.")]
pub(super) struct PlanArgs {
    /// Number of machines
    #[arg(long)]
    hosts: u64,
    /// Series of each machine; the host agent sends 212 on a machine with two cores
    #[arg(long, default_value_t = HOST_SERIES)]
    metrics: u64,
    /// Native histograms among the series of each machine
    #[arg(long, default_value_t = 0)]
    histograms: u64,
    /// Buckets of a native histogram that have observations
    #[arg(long, default_value_t = HISTOGRAM_BUCKETS)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000))]
    buckets: u64,
    /// Time between two samples of a series; the default is the interval of the host agent
    #[arg(long, default_value = "10s")]
    interval: Span,
    /// Age of the fleet, such as 30d [default: when all retentions are reached]
    #[arg(long)]
    after: Option<Span>,
    /// Series that a rule of retention selects, of all machines together, such as debug=5000
    #[arg(long, value_name = "RULE=COUNT", value_parser = rule_series)]
    rule_series: Vec<(String, u64)>,
    /// Settings in TOML, as for `granary serve`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data directory [default: `storage.data_dir`]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn plan(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    let overrides = Overrides { listen: None, data_dir: args.data_dir.clone() };
    let settings = config::load(args.config.as_deref(), &overrides)?;
    let interval_ms = args.interval.longest_ms();
    let fleet = Fleet { hosts: args.hosts, metrics: args.metrics, interval_ms };
    let bounds = PlanBounds {
        checkpoint_interval_ms: settings.storage.checkpoint_interval.as_millis() as i64,
        cell_bytes_max: config::bounds::CHECKPOINT_BOUNDS.cell_bytes_max,
        cache_bytes_max: settings.storage.cache_bytes_max,
    };
    let after = args.after.map(Span::longest_ms);
    let rules = rules(&settings.retention_rules, &args.rule_series, &fleet)?;
    let plan = Plan::new(&fleet, (&settings.granularities, &rules), &bounds, after);
    anyhow::ensure!(
        args.histograms <= args.metrics,
        "--histograms: a machine has {}, of which {} cannot be histograms: use more --metrics",
        with_noun(args.metrics, "series"),
        args.histograms,
    );
    let histograms = PlannedHistograms { series: args.histograms, buckets: args.buckets };
    let settings_of_plan = (&settings.granularities, &bounds);
    let plan = plan.with_histograms(&fleet, histograms, settings_of_plan, after);
    let machine = machine(&settings)?;
    let lacks = plan.lacks(&machine);
    let is_given =
        |rule: &RetentionRule| args.rule_series.iter().any(|(name, _)| *name == rule.name);
    let without = settings.retention_rules.iter().filter(|rule| !is_given(rule));
    let notes: Vec<_> = without
        .map(|RetentionRule { name, .. }| {
            format!("rule {name} is planned without series: add --rule-series {name}=COUNT")
        })
        .collect();
    if args.json {
        let mut plan = as_json(&plan, &machine, &lacks);
        plan["notes"] = json!(notes);
        screen::print_json(&serde_json::to_string_pretty(&plan)?)?;
    } else {
        let lines: Vec<_> = std::iter::once(shown(&plan, &machine, &lacks)).chain(notes).collect();
        screen::print(&lines.join("\n"))?;
    }
    Ok(if lacks.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(TOO_SMALL) })
}

fn rule_series(text: &str) -> Result<(String, u64), String> {
    let parts = text.split_once('=').and_then(|(rule, count)| {
        let count = count.parse().ok()?;
        (!rule.is_empty()).then(|| (rule.to_owned(), count))
    });
    parts.ok_or_else(|| {
        "use the name of a rule and a number of series, such as debug=500".to_owned()
    })
}

/// Returns each rule with the number of its series.
fn rules(
    rules: &[RetentionRule],
    given: &[(String, u64)],
    fleet: &Fleet,
) -> anyhow::Result<Vec<(RetentionRule, u64)>> {
    if let Some((name, _)) =
        given.iter().find(|(name, _)| !rules.iter().any(|rule| rule.name == *name))
    {
        let names: Vec<_> = rules.iter().map(|rule| rule.name.as_str()).collect();
        let remedy = match &*names {
            [] => {
                "the settings have no rules of retention; pass their file with --config".to_owned()
            }
            names => format!("use one of {}", names.join(", ")),
        };
        anyhow::bail!("--rule-series: there is no rule {name}: {remedy}");
    }
    let with_series = |rule: &RetentionRule| {
        let of_rule = given.iter().filter(|(name, _)| *name == rule.name);
        (rule.clone(), of_rule.map(|(_, count)| *count).fold(0, u64::saturating_add))
    };
    let rules: Vec<_> = rules.iter().map(with_series).collect();
    let of_rules = rules.iter().map(|(_, series)| *series).fold(0, u64::saturating_add);
    anyhow::ensure!(
        of_rules <= fleet.series(),
        "--rule-series: the rules have {}, the fleet has {}: use more --hosts or --metrics",
        with_noun(of_rules, "series"),
        fleet.series(),
    );
    Ok(rules)
}

/// Returns the resources of this machine, or of its container.
fn machine(settings: &Settings) -> anyhow::Result<Machine> {
    let info = rustix::system::sysinfo();
    let memory: u64 = info.totalram.saturating_mul(info.mem_unit.into());
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    let disk = DiskSpace::of(&settings.storage.data_dir)?;
    Ok(Machine {
        memory: limit.trim().parse().map_or(memory, |limit: u64| limit.min(memory)),
        disk_free: disk.free,
        disk_max: settings.storage.disk_max.map(|max| max.bytes(disk.total)),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    })
}

fn bytes(count: u64) -> String {
    format!("{}B", short(count as f64))
}

fn shown(plan: &Plan, machine: &Machine, lacks: &[String]) -> String {
    let header =
        ["on disk", "slots of a series", "bytes a slot", "bytes", "random values", "period end"];
    let mut disk = table(header.map(str::to_owned));
    for granularity in &plan.granularities {
        disk.add_row([
            right(&granularity.name),
            right(granularity.slots),
            right(short(granularity.bytes_per_slot)),
            right(bytes(granularity.bytes)),
            right(bytes(granularity.bytes_at_most)),
            right(bytes(granularity.turn_bytes)),
        ]);
    }
    let mut parts = vec![("head", plan.head), ("journal", plan.journal), ("log", plan.log)];
    if plan.open > 0 {
        parts.push(("open histograms", plan.open));
    }
    for (name, count) in parts {
        let (name, count, none) = (right(name), right(bytes(count)), || right(""));
        disk.add_row([name, none(), none(), count.clone(), count, none()]);
    }
    let [reserve, most] = [plan.reserve, plan.reserve_at_most].map(bytes);
    disk.add_row([right("reserved"), right(""), right(""), right(reserve), right(most), right("")]);
    let (all, most) = (bytes(plan.disk()), bytes(plan.disk_at_most()));
    disk.add_row([right("all"), right(""), right(""), right(all), right(most), right("")]);
    let mut needs = table(["", "takes", "this machine has"].map(str::to_owned));
    let rows = [
        ("memory", bytes(plan.memory), bytes(machine.memory)),
        ("disk", bytes(plan.disk()), format!("{} free", bytes(machine.disk_free))),
        ("written", format!("{}/s", bytes(plan.written_per_second)), "-".to_owned()),
        ("cores", short(plan.cores), machine.cores.to_string()),
    ];
    for (name, takes, has) in rows {
        needs.add_row([right(name), right(takes), right(has)]);
    }
    if let Some(budget) = machine.disk_max {
        let share = short(plan.share_within(budget) * 100.0);
        let kept = format!("{share}% of each retention fits");
        needs.add_row([right("disk_max"), right(bytes(budget)), right(kept)]);
    }
    let verdict = match lacks {
        [] => "this machine is large enough".to_owned(),
        lacks => format!("this machine is too small: {}", lacks.join("; ")),
    };
    format!(
        "{} series, {} samples a second\n{disk}\n{needs}\n{verdict}",
        plan.series,
        short(plan.samples_per_second)
    )
}

fn as_json(plan: &Plan, machine: &Machine, lacks: &[String]) -> Value {
    let granularities = plan.granularities.iter().map(|granularity| {
        json!({
            "name": granularity.name,
            "slots": granularity.slots,
            "bytes_per_slot": granularity.bytes_per_slot,
            "bytes": granularity.bytes,
            "bytes_at_most": granularity.bytes_at_most,
            "turn_bytes": granularity.turn_bytes,
        })
    });
    json!({
        "series": plan.series,
        "samples_per_second": plan.samples_per_second,
        "memory_bytes": plan.memory,
        "disk_bytes": plan.disk(),
        "disk_bytes_at_most": plan.disk_at_most(),
        "granularities": granularities.collect::<Vec<_>>(),
        "head_bytes": plan.head,
        "journal_bytes": plan.journal,
        "log_bytes": plan.log,
        "open_bytes": plan.open,
        "reserved_bytes": plan.reserve,
        "reserved_bytes_at_most": plan.reserve_at_most,
        "written_bytes_per_second": plan.written_per_second,
        "cores": plan.cores,
        "machine": {
            "memory_bytes": machine.memory,
            "disk_free_bytes": machine.disk_free,
            "disk_max_bytes": machine.disk_max,
            "cores": machine.cores,
        },
        "kept_share": machine.disk_max.map_or(1.0, |budget| plan.share_within(budget)),
        "lacks": lacks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GranularitySet, KeySelector};

    #[test]
    fn the_series_of_a_rule_are_read_and_a_wrong_option_is_explained() {
        assert_eq!(rule_series("debug=500"), Ok(("debug".to_owned(), 500)));
        for wrong in ["debug", "=5", "debug=many", "debug=-1"] {
            assert!(rule_series(wrong).unwrap_err().contains("such as debug=500"), "{wrong}");
        }
        let selector = KeySelector::new(Vec::new()).unwrap();
        let rule = RetentionRule::new("debug", selector, &[], &GranularitySet::default()).unwrap();
        let fleet = Fleet { hosts: 10, metrics: 100, interval_ms: 10_000 };
        let read = |known: &[RetentionRule], given: &[(&str, u64)]| {
            let given: Vec<_> =
                given.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            let read = rules(known, &given, &fleet).map_err(|cause| cause.to_string())?;
            Ok::<_, String>(read.into_iter().map(|(_, series)| series).collect::<Vec<_>>())
        };
        let known = std::slice::from_ref(&rule);
        assert_eq!(read(known, &[("debug", 1000)]), Ok(vec![1000]));
        assert_eq!(read(known, &[]), Ok(vec![0]));
        for (known, given, remedy) in [
            (known, ("debug", 1001), "the fleet has 1000: use more --hosts or --metrics"),
            (known, ("other", 1), "use one of debug"),
            (&[], ("debug", 1), "pass their file with --config"),
        ] {
            let fault = read(known, &[given]).unwrap_err();
            assert!(fault.contains(remedy), "{fault}");
        }
    }
}
