//! Services of systemd: their state and restarts.
//!
//! The source runs `systemctl`, because a control group only shows that a service exists.

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use granary_agent_kit::{Readings, Source, SourceError, run_program};

use crate::host::Host;

/// The folder that exists when systemd runs.
const RUNNING_FOLDER: &str = "/run/systemd/system";
/// The interval of this source. Each query starts a process, which takes a few milliseconds.
pub(crate) const INTERVAL_MS: u64 = 60_000;
/// The time limit of a query.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of the output; a unit takes about 60 bytes.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// The maximum number of units.
const UNITS_MAX: usize = 2_000;

/// The source of systemd services.
#[derive(Debug)]
pub(crate) struct Systemd(pub(crate) Arc<Host>);

/// The properties of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Unit<'a> {
    name: &'a str,
    state: &'a str,
    restarts: Option<u32>,
}

impl Source for Systemd {
    fn name(&self) -> &'static str {
        "systemd"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        if !Path::new(RUNNING_FOLDER).exists() {
            return Ok(());
        }
        let mut command = Command::new("systemctl");
        command
            .args(["show", "--type=service", "--all", "--no-pager", "*"])
            .arg("--property=Id,ActiveState,NRestarts")
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        let finished = run_program(&mut command, TIMEOUT, OUTPUT_BYTES_MAX, None)?;
        if !finished.status.success() {
            return Err(format!("systemctl show: {}", finished.status).into());
        }
        push_units(&String::from_utf8_lossy(&finished.output), &self.0, readings);
        Ok(())
    }
}

fn push_units(text: &str, host: &Host, readings: &mut Readings) {
    let mut failed = 0.0;
    for Unit { name, state, restarts } in parse_units(text) {
        let name = name.strip_suffix(".service").unwrap_or(name);
        let tags = [("host", &*host.name), ("unit", name)];
        let is_failed = state == "failed";
        failed += f64::from(u8::from(is_failed));
        // Inactive units are skipped, because many units of a host are never started.
        if state == "inactive" || state.is_empty() {
            continue;
        }
        readings.gauge("unit_active", "", &tags, f64::from(u8::from(state == "active")));
        readings.gauge("unit_failed", "", &tags, f64::from(u8::from(is_failed)));
        if let Some(restarts) = restarts {
            readings.counter("unit_restarts", "restarts", &tags, f64::from(restarts), None);
        }
    }
    host.gauges(readings, "units", [("system_units_failed", failed)]);
}

/// Parses units, which are separated by empty lines.
fn parse_units(text: &str) -> impl Iterator<Item = Unit<'_>> {
    text.split("\n\n").take(UNITS_MAX).filter_map(parse_unit)
}

fn parse_unit(block: &str) -> Option<Unit<'_>> {
    let value =
        |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let name = value("Id").filter(|name| !name.is_empty())?;
    let restarts = value("NRestarts").and_then(|count| count.parse().ok());
    Some(Unit { name, state: value("ActiveState").unwrap_or_default(), restarts })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OUTPUT: &str = "NRestarts=3\nId=nginx.service\nActiveState=active\n\n\
        NRestarts=0\nId=backup.service\nActiveState=inactive\n\n\
        NRestarts=7\nId=broken.service\nActiveState=failed\n";

    #[test]
    fn running_and_failed_units_are_read_with_their_restarts() {
        let mut readings = Readings::default();
        push_units(OUTPUT, &Host::for_tests(), &mut readings);
        let unit = |tags: &[(std::borrow::Cow<'static, str>, String)]| {
            tags.iter().find(|(key, _)| key == "unit").map_or("", |(_, name)| name).to_owned()
        };
        let all = readings.as_slice().iter();
        let values: Vec<_> = all.map(|r| (unit(&r.tags), r.metric.to_string(), r.value)).collect();
        let expected = [
            ("nginx", "unit_active", 1.0),
            ("nginx", "unit_failed", 0.0),
            ("nginx", "unit_restarts", 3.0),
            ("broken", "unit_active", 0.0),
            ("broken", "unit_failed", 1.0),
            ("broken", "unit_restarts", 7.0),
            ("", "system_units_failed", 1.0),
        ];
        assert_eq!(values, expected.map(|(u, m, v)| (u.to_owned(), m.to_owned(), v)));
    }

    proptest! {
        #[test]
        fn any_output_is_parsed(text in "[ -~\\n]{0,300}") {
            push_units(&text, &Host::for_tests(), &mut Readings::default());
        }
    }
}
