//! Services of systemd: their state and restarts.
//!
//! The source runs `systemctl` once a minute, because a control group only shows that a service
//! exists.

use std::{path::Path, process::Command, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::Host;

/// The folder that exists when systemd runs.
const RUNNING_FOLDER: &str = "/run/systemd/system";
/// The interval of queries. Each query starts a process, which takes a few milliseconds.
const QUERY_INTERVAL_MS: i64 = 60_000;
/// The maximum number of units.
const UNITS_MAX: usize = 2_000;

/// The source of systemd services.
#[derive(Debug)]
pub(crate) struct Systemd {
    host: Arc<Host>,
    next_query_ms: i64,
}

/// The properties of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Unit<'a> {
    name: &'a str,
    state: &'a str,
    restarts: Option<u32>,
}

impl Systemd {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host, next_query_ms: i64::MIN }
    }
}

impl Source for Systemd {
    fn name(&self) -> &'static str {
        "systemd"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let is_waiting = now_ms < self.next_query_ms
            && self.next_query_ms.saturating_sub(now_ms) <= QUERY_INTERVAL_MS;
        if is_waiting || !Path::new(RUNNING_FOLDER).exists() {
            return Ok(());
        }
        self.next_query_ms = now_ms.saturating_add(QUERY_INTERVAL_MS);
        let arguments = ["show", "--type=service", "--all", "--no-pager", "*"];
        let output = Command::new("systemctl")
            .args(arguments)
            .arg("--property=Id,ActiveState,NRestarts")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .output()
            .map_err(|cause| format!("systemctl: {cause}"))?;
        if !output.status.success() {
            return Err(format!("systemctl show: {}", output.status).into());
        }
        push_units(&String::from_utf8_lossy(&output.stdout), &self.host, readings);
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
