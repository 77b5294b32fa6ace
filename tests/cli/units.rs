//! The units of deploy/, as systemd reads them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{manual::root, peers::need};

/// The highest exposure, of 10, that `systemd-analyze security` may report for the daemon.
const DAEMON_EXPOSURE_MAX: f64 = 2.5;
/// The highest exposure of an agent; some agents read files of the whole machine.
const AGENT_EXPOSURE_MAX: f64 = 3.0;

/// Returns the paths of the units.
fn units() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("deploy")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let units: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "service"))
        .collect();
    assert_eq!(units.len(), 4);
    units
}

fn systemd_analyze(arguments: &[&str], unit: &Path) -> Output {
    Command::new("systemd-analyze").args(arguments).arg(unit).output().unwrap()
}

/// Returns the exposure in a report of `systemd-analyze security`.
fn exposure(report: &str) -> Option<f64> {
    let line = report.lines().find(|line| line.contains("Overall exposure level"))?;
    line.rsplit(": ").next()?.split_whitespace().next()?.parse().ok()
}

#[test]
#[ignore = "needs systemd-analyze; .ci/run runs this where it exists"]
fn systemd_accepts_the_units() {
    need("systemd-analyze");
    let folder = tempfile::tempdir().unwrap();
    for path in units() {
        // The programs are not installed here.
        let text = fs::read_to_string(&path).unwrap();
        let replaced = |line: &str| match line.strip_prefix("ExecStart=") {
            Some(_) => format!("ExecStart={}\n", env!("CARGO_BIN_EXE_granary")),
            None => format!("{line}\n"),
        };
        let unit = folder.path().join(path.file_name().unwrap());
        fs::write(&unit, text.lines().map(replaced).collect::<String>()).unwrap();
        let output = systemd_analyze(&["verify"], &unit);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.is_empty(), "{}: {text}", path.display());
    }
}

#[test]
#[ignore = "needs systemd-analyze; .ci/run runs this where it exists"]
fn systemd_finds_the_units_hardened() {
    need("systemd-analyze");
    for path in units() {
        let name = path.file_name().unwrap().to_string_lossy();
        let limit =
            if name == "granary.service" { DAEMON_EXPOSURE_MAX } else { AGENT_EXPOSURE_MAX };
        let output = systemd_analyze(&["security", "--offline=true", "--no-pager"], &path);
        let report = String::from_utf8_lossy(&output.stdout);
        let exposure = exposure(&report).unwrap_or_else(|| panic!("{name}: {output:?}"));
        assert!(exposure < limit, "{name}: {exposure}\n{report}");
    }
}
