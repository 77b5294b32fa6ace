//! Comparison of the emitted metrics with METRICS.md: kind, unit and tags agree in both directions.

use std::collections::{BTreeMap, BTreeSet};

use granary_agent_kit::{Readings, SELF_METRICS};

use super::*;

/// Returns the rows of METRICS.md: kind, unit and tags by name.
fn documented_metrics() -> BTreeMap<String, [String; 3]> {
    include_str!("../METRICS.md")
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<_> = line.split('|').map(|cell| cell.trim().replace('`', "")).collect();
            (cells[1].clone(), [cells[2].clone(), cells[3].clone(), cells[4].clone()])
        })
        .collect()
}

fn choice(names: &[String]) -> ProcessChoice<'_> {
    ProcessChoice { names, has_top: true }
}

fn sample_this_machine() -> Readings {
    let host = Arc::new(Host::of_this_machine("test".to_owned()).unwrap());
    let mut readings = Readings::default();
    let mut last_round = Readings::default();
    for mut source in all_sources(&host, choice(&["granary_agent_h".to_owned()])) {
        // Percentages refer to the time between two rounds.
        source.sample(1000, &mut last_round).unwrap();
        source.sample(1500, &mut readings).unwrap();
    }
    readings
}

#[test]
fn every_emitted_metric_agrees_with_its_row_in_the_documentation() {
    let documented = documented_metrics();
    for reading in sample_this_machine().as_slice() {
        let keys: BTreeSet<&str> = reading.tags.iter().map(|(key, _)| key.as_ref()).collect();
        let tags = keys.into_iter().collect::<Vec<_>>().join(", ");
        let unit = if reading.unit.is_empty() { "-" } else { &reading.unit };
        let emitted = [reading.kind.to_string(), unit.to_owned(), tags];
        assert_eq!(documented.get(reading.metric.as_ref()), Some(&emitted), "{}", reading.metric);
    }
}

#[test]
fn every_documented_metric_is_in_the_sources() {
    let sources = [
        include_str!("cgroups/mod.rs"),
        include_str!("cpu.rs"),
        include_str!("load.rs"),
        include_str!("memory.rs"),
        include_str!("disk.rs"),
        include_str!("filesystem.rs"),
        include_str!("network.rs"),
        include_str!("processes.rs"),
        include_str!("files.rs"),
        include_str!("tcp.rs"),
        include_str!("connections.rs"),
        include_str!("uptime.rs"),
        include_str!("pressure.rs"),
        include_str!("kernel.rs"),
        include_str!("clock/mod.rs"),
        include_str!("temperature.rs"),
        include_str!("systemd.rs"),
        include_str!("raid.rs"),
        include_str!("zfs.rs"),
        include_str!("nfs.rs"),
        include_str!("smart/mod.rs"),
        include_str!("named_processes.rs"),
        include_str!("top_processes.rs"),
    ];
    for metric in documented_metrics().keys() {
        let quoted = format!("\"{metric}\"");
        let is_emitted = sources.iter().any(|source| source.contains(&quoted));
        assert!(is_emitted || SELF_METRICS.contains(&metric.as_str()), "{metric}");
    }
    for metric in SELF_METRICS {
        assert!(documented_metrics().contains_key(metric), "{metric} is not in METRICS.md");
    }
}

#[test]
fn a_machine_has_a_hundred_series_with_the_tag_host() {
    let readings = sample_this_machine();
    let series: BTreeSet<_> =
        readings.as_slice().iter().map(|r| format!("{} {:?}", r.metric, r.tags)).collect();
    assert_eq!(series.len(), readings.as_slice().len(), "no series is read twice");
    assert!(series.len() + SELF_METRICS.len() >= 100, "{} series", series.len());
    for reading in readings.as_slice() {
        assert!(reading.tags.contains(&("host".into(), "test".to_owned())), "{reading:?}");
    }
}

#[test]
fn every_counter_has_a_start_and_never_decreases() {
    use granary_protocol::Kind;
    let host = Arc::new(Host::of_this_machine("test".to_owned()).unwrap());
    assert!(host.boot_ms > 1_500_000_000_000, "boot at {}", host.boot_ms);
    let mut sources = all_sources(&host, choice(&["granary_agent_h".to_owned()]));
    let mut last: BTreeMap<String, f64> = BTreeMap::new();
    for _ in 0..3 {
        let mut readings = Readings::default();
        for source in &mut sources {
            source.sample(1000, &mut readings).unwrap();
        }
        for reading in readings.as_slice().iter().filter(|r| r.kind == Kind::Counter) {
            // The kernel does not report the start of containers and services.
            let is_control_group =
                ["container_", "unit_"].iter().any(|prefix| reading.metric.starts_with(prefix));
            // The agent counts these failures.
            let is_own = reading.metric == "system_disk_smart_failures";
            let since_boot = Some(host.boot_ms).filter(|_| !is_control_group);
            let expected_start = if is_own { Some(1000) } else { since_boot };
            assert_eq!(reading.start_ms, expected_start, "{reading:?}");
            let before =
                last.insert(format!("{}{:?}", reading.metric, reading.tags), reading.value);
            assert!(before.is_none_or(|before| before <= reading.value), "{before:?} {reading:?}");
        }
    }
}

#[test]
fn related_values_agree() {
    let readings = sample_this_machine();
    let value = |metric: &str| {
        readings.as_slice().iter().find(|r| r.metric == metric).map(|r| r.value).unwrap()
    };
    let (total, used) = (value("system_memory_total"), value("system_memory_used"));
    assert!(total > 1e8 && used > 0.0 && used < total, "{used} of {total}");
    assert_eq!(used + value("system_memory_available"), total);
    assert!(value("system_uptime") > 0.0);
    assert!(value("system_processes_total") >= 2.0);
    let cpu: f64 = readings
        .as_slice()
        .iter()
        .filter(|r| r.metric.starts_with("system_cpu_") && r.metric != "system_cpu_guest")
        .filter(|r| r.unit == "seconds")
        .filter(|r| !r.metric.starts_with("system_cpu_core_"))
        .map(|r| r.value)
        .sum();
    let cores = readings.as_slice().iter().filter(|r| r.metric == "system_cpu_core_user").count();
    let expected = value("system_uptime") * cores as f64;
    assert!((0.5..1.2).contains(&(cpu / expected)), "{cpu} s of CPU time, {expected} s expected");
}

#[test]
fn a_failing_source_names_the_file_and_stops_no_other_source() {
    let folder = tempfile::tempdir().unwrap();
    let host = Arc::new(Host { proc: folder.path().to_owned(), ..Host::for_tests() });
    std::fs::write(folder.path().join("loadavg"), "0.24 0.08 0.02 3/105 12117\n").unwrap();
    let mut readings = Readings::default();
    let failed: Vec<String> = all_sources(&host, choice(&["granary_agent_h".to_owned()]))
        .iter_mut()
        .filter_map(|source| source.sample(1, &mut readings).err().map(|e| e.to_string()))
        .collect();
    assert_eq!(failed.len(), 12, "{failed:?}");
    assert!(failed[0].contains(&folder.path().join("stat").display().to_string()), "{failed:?}");
    let load = readings.as_slice().iter().find(|r| r.metric == "system_load_1m").unwrap();
    assert_eq!(load.value, 0.24);
}

#[test]
fn no_series_is_the_sum_of_other_series_of_its_metric() {
    // Regression: `group_by=host` of system_cpu_user added the machine's total to its cores.
    let readings = sample_this_machine();
    let value = |metric: &str| {
        let found = readings.as_slice().iter().filter(|r| r.metric == metric);
        found.map(|r| r.value).collect::<Vec<_>>()
    };
    let (total, cores) = (value("system_cpu_user"), value("system_cpu_core_user"));
    let sum: f64 = cores.iter().sum();
    assert_eq!(total.len(), 1);
    assert!((sum - total[0]).abs() <= 0.02 * total[0] + 1.0, "{sum} in cores, {total:?} in all");
    for reading in readings.as_slice() {
        let of_core = reading.tags.iter().any(|(name, _)| name == "core");
        assert_eq!(of_core, reading.metric.starts_with("system_cpu_core_"), "{reading:?}");
    }
}

#[test]
fn named_processes_report_their_cpu_and_memory() {
    let readings = sample_this_machine();
    let value = |metric: &str| {
        let found = readings.as_slice().iter().find(|r| r.metric == metric);
        found.map_or_else(|| panic!("no {metric}"), |r| r.value)
    };
    assert!(value("process_count") >= 1.0);
    assert!(value("process_memory_resident") > 1e6);
    assert!(value("process_cpu_user") >= 0.0);
}

#[test]
fn sources_that_may_block_have_their_own_threads() {
    let host = Arc::new(Host::of_this_machine("test".to_owned()).unwrap());
    let all = all_sources(&host, choice(&[]));
    let names: BTreeSet<&str> = all.iter().map(|source| source.name()).collect();
    assert!(SLOW.iter().all(|(name, _)| names.contains(name)), "{names:?}");
    let count = all.len();
    let mut combined = with_threads(all).unwrap();
    assert_eq!(combined.len(), count - SLOW.len() + 1);
    let mut readings = Readings::default();
    combined[0].sample(1000, &mut readings).unwrap();
    assert!(readings.as_slice().iter().any(|r| r.metric == "disk_partition_space_total"));
}
