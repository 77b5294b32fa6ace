//! `granary diagnose`: one archive for a report of a problem, without secrets.

mod archive;
mod stopped;

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use serde_json::{Value, json};

use super::{
    http::{Daemon, read},
    screen,
};
use crate::{
    clock::{Clock, SystemClock},
    config::{self, SettingsSource},
    kept::SettingsAnswer,
    policy::fleet_plan::{Fleet, Plan, PlanBounds},
};
use archive::Archive;

/// The parts of a running daemon: the file in the archive, and the path.
const PARTS: [(&str, &str); 5] = [
    ("status.json", "api/v1/status"),
    ("settings.json", "api/v1/admin/settings"),
    ("storage.json", "api/v1/storage"),
    ("metrics.txt", "metrics"),
    ("log.json", "api/v1/admin/log"),
];

/// Write an archive that describes a daemon, for a report of a problem
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary diagnose
  granary diagnose --output granary.tar.gz
  granary diagnose --data-dir /var/lib/granary --config /etc/granary/granary.toml

The archive contains the settings, the status, the storage, the metrics, the last 1,000 lines of the
log, a plan for the series of the store, and the versions. With --data-dir, no daemon may run: the
archive contains the result of `granary verify` and the list of files instead. Passwords, tokens, keys
and the users of addresses are left out. Names of metrics, tags and hosts may appear: read the files
before you pass them on.")]
pub(super) struct DiagnoseArgs {
    #[command(flatten)]
    daemon: Daemon,
    /// The archive [default: granary-diagnosis-TIME.tar.gz in this folder]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Data directory of a daemon that does not run
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Settings of a daemon that does not run
    #[arg(long, value_name = "FILE", requires = "data_dir")]
    config: Option<PathBuf>,
}

pub(super) fn diagnose(args: &DiagnoseArgs) -> anyhow::Result<ExitCode> {
    let name = format!("granary-diagnosis-{}", SystemClock.now().0 / 1000);
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.tar.gz")));
    // The first answer shows whether a daemon is running; without a daemon, no archive is created.
    let status = match args.data_dir {
        None => Some(args.daemon.get("status", &[])?),
        Some(_) => None,
    };
    let mut archive = Archive::create(&path, &name)?;
    let mut daemon_version = Value::Null;
    match (&args.data_dir, status) {
        (Some(dir), _) => {
            let source = SettingsSource { file: args.config.clone(), ..SettingsSource::default() };
            stopped::add(&mut archive, dir, &source)?;
        }
        (None, status) => {
            let status: Value = read(&status.unwrap_or_default())?;
            daemon_version = status["version"].clone();
            running(&mut archive, &args.daemon, &status)?;
        }
    }
    let system = rustix::system::uname();
    let versions = json!({
        "command": env!("CARGO_PKG_VERSION"),
        "daemon": daemon_version,
        "system": system.sysname().to_string_lossy(),
        "kernel": system.release().to_string_lossy(),
        "machine": system.machine().to_string_lossy(),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
    });
    archive.add_json("versions.json", &versions)?;
    archive.finish()?;
    screen::print(&format!("wrote {}", path.display()))
}

/// Adds the parts of a running daemon. A part that the daemon refuses does not end the diagnosis.
fn running(archive: &mut Archive, daemon: &Daemon, status: &Value) -> anyhow::Result<()> {
    let (mut settings, mut storage) = (None, Value::Null);
    for (file, path) in PARTS {
        match daemon.get_path(path) {
            Ok(text) => {
                archive.add(file, &text)?;
                if file == "settings.json" {
                    settings = read::<SettingsAnswer>(&text).ok();
                }
                if file == "storage.json" {
                    storage = read(&text).unwrap_or_default();
                }
            }
            Err(cause) => archive.add(&format!("{file}.error"), &format!("{cause:#}\n"))?,
        }
    }
    if let Some(SettingsAnswer { settings, .. }) = settings {
        match plan(settings, status, &storage) {
            Ok(plan) => archive.add_json("plan.json", &plan)?,
            Err(cause) => archive.add("plan.json.error", &format!("{cause:#}\n"))?,
        }
    }
    Ok(())
}

/// Returns the resources that the store's series need with these settings, at their present rate.
fn plan(settings: Value, status: &Value, storage: &Value) -> anyhow::Result<Value> {
    let settings = config::from_shown(settings)?;
    let all = |part: &str| status[part].as_array().cloned().unwrap_or_default();
    let accepted = all("protocols").into_iter().filter_map(|one| one["accepted"].as_u64());
    let samples = accepted.sum::<u64>().max(1);
    let series = all("limits").into_iter().find(|limit| limit["name"] == "series");
    let series = series.and_then(|limit| limit["used"].as_u64()).unwrap_or(0);
    let time = |part: &str| status[part].as_u64().unwrap_or(0);
    let uptime_ms = time("now").saturating_sub(time("started")).max(1);
    let interval_ms = (uptime_ms.saturating_mul(series.max(1)) / samples).clamp(1000, 3_600_000);
    let fleet = Fleet { hosts: 1, metrics: series, interval_ms: interval_ms as i64 };
    let bounds = PlanBounds {
        checkpoint_interval_ms: settings.storage.checkpoint_interval.as_millis() as i64,
        cell_bytes_max: config::bounds::CHECKPOINT_BOUNDS.cell_bytes_max,
        cache_bytes_max: settings.storage.cache_bytes_max,
    };
    let of_rule = |name: &str| {
        let rule = storage["rules"].as_array()?.iter().find(|rule| rule["name"] == *name)?;
        rule["series"].as_u64()
    };
    let rules = settings.retention_rules.iter();
    let rules: Vec<_> =
        rules.map(|rule| (rule.clone(), of_rule(&rule.name).unwrap_or(0))).collect();
    let plan = Plan::new(&fleet, (&settings.granularities, &rules), &bounds, None);
    let granularities = plan.granularities.iter().map(|granularity| {
        json!({ "name": granularity.name, "bytes": granularity.bytes,
            "bytes_at_most": granularity.bytes_at_most })
    });
    Ok(json!({
        "series": series,
        "interval_ms": interval_ms,
        "granularities": granularities.collect::<Vec<_>>(),
        "reserved": plan.reserve,
        "disk": plan.disk(),
        "disk_at_most": plan.disk_at_most(),
        "memory": plan.memory,
        "cores": plan.cores,
    }))
}
