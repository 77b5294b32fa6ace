//! The processes that use the most CPU, memory and I/O in each round, by name.
//!
//! A name is a series, so their number is limited: at most [`TOP`] names a round and resource,
//! [`NAMES_MAX`] names at a time and [`NEW_NAMES_MAX`] new names a day. Further new names among the
//! first are summed up as [`OTHERS`]; all other processes are not sampled.

use std::{collections::HashMap, fs, path::Path, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::{host::Host, named_processes::parse_stat};

/// The number of names of a round, for each resource.
const TOP: usize = 5;
/// The maximum number of names that are known at a time.
const NAMES_MAX: usize = 30;
/// A name makes room for another when it was not among the first for this time: short jobs of the
/// night must not hide the name of a process that is hot in the morning.
const ABSENT_MS: i64 = 3_600_000;
/// The maximum number of new names a day.
const NEW_NAMES_MAX: usize = 100;
const DAY_MS: i64 = 24 * 3_600_000;
/// The name of all processes whose names are one too many.
const OTHERS: &str = "(others)";
/// The maximum number of scanned processes.
const PROCESSES_MAX: usize = 20_000;
/// Processes below these shares are no cause: of a core, and bytes per second.
const CPU_MIN: f64 = 0.01;
const IO_PER_SECOND_MIN: f64 = 4096.0;

/// The source of the metrics of the first processes.
#[derive(Debug)]
pub(crate) struct TopProcesses {
    host: Arc<Host>,
    before_ms: Option<i64>,
    /// The start of the previous round, in ticks since boot.
    before_ticks: u64,
    /// The usage of each process in the previous round, by process ID and start time.
    before: HashMap<(u32, u64), Usage>,
    names: KnownNames,
}

/// The CPU time and I/O of a process since its start.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Usage {
    ticks: u64,
    /// Bytes from and to storage; `None` when the agent may not read them.
    io_bytes: Option<u64>,
}

impl Usage {
    /// The usage of a process at its start.
    const START: Self = Self { ticks: 0, io_bytes: Some(0) };
}

/// The sums over the processes of a name.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sums {
    cpu_seconds: f64,
    io_bytes: f64,
    resident_bytes: f64,
}

/// The names that are series.
#[derive(Debug, Default)]
struct KnownNames {
    /// The last time at which each name was among the first.
    last_ms: HashMap<String, i64>,
    /// The day, in UTC, and the number of its new names.
    day: i64,
    new_names: usize,
}

impl KnownNames {
    /// Returns the value of the tag for a name: the name, or [`OTHERS`] when there are too many.
    fn tag<'a>(&mut self, name: &'a str, now_ms: i64) -> &'a str {
        if let Some(last_ms) = self.last_ms.get_mut(name) {
            *last_ms = now_ms;
            return name;
        }
        if !self.make_room(now_ms) {
            return OTHERS;
        }
        self.new_names += 1;
        self.last_ms.insert(name.to_owned(), now_ms);
        name
    }

    /// Returns true if there is room for a new name, after removing the name that was absent for
    /// the longest time if necessary.
    fn make_room(&mut self, now_ms: i64) -> bool {
        let day = now_ms.div_euclid(DAY_MS);
        if day != self.day {
            (self.day, self.new_names) = (day, 0);
        }
        if self.new_names >= NEW_NAMES_MAX || self.last_ms.len() < NAMES_MAX {
            return self.new_names < NEW_NAMES_MAX;
        }
        let longest = self.last_ms.iter().min_by_key(|(name, last_ms)| (**last_ms, *name));
        let Some((name, last_ms)) = longest.map(|(name, last_ms)| (name.clone(), *last_ms)) else {
            return true;
        };
        let is_absent = now_ms - last_ms >= ABSENT_MS;
        if is_absent {
            self.last_ms.remove(&name);
        }
        is_absent
    }
}

impl TopProcesses {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        let (before, names) = (HashMap::new(), KnownNames::default());
        Self { host, before_ms: None, before_ticks: 0, before, names }
    }

    /// Adds the values of the first names; those without a place are one value.
    fn push_first(
        &mut self,
        sums: &HashMap<String, Sums>,
        now_ms: i64,
        (value_of, min): (impl Fn(&Sums) -> f64, f64),
        mut push: impl FnMut(&str, f64),
    ) {
        let values = sums.iter().map(|(name, sums)| (name.as_str(), value_of(sums)));
        let mut values: Vec<_> = values.filter(|(_, value)| *value >= min).collect();
        values.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let mut others = 0.0;
        for (name, value) in values.into_iter().take(TOP) {
            match self.names.tag(name, now_ms) {
                OTHERS => others += value,
                name => push(name, value),
            }
        }
        if others > 0.0 {
            push(OTHERS, others);
        }
    }
}

impl Source for TopProcesses {
    fn name(&self) -> &'static str {
        "top processes"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let mut sums: HashMap<String, Sums> = HashMap::new();
        let mut now = HashMap::new();
        let page_bytes = procfs::page_size() as f64;
        let now_ticks = self.host.ticks_since_boot()?;
        for entry in fs::read_dir(&self.host.proc)?.flatten().take(PROCESSES_MAX) {
            let file = entry.file_name();
            let Some(id) = file.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            // A process may have ended in the meantime.
            let Ok(line) = fs::read(entry.path().join("stat")) else { continue };
            let line = String::from_utf8_lossy(&line);
            let Some(process) = parse_stat(&line) else { continue };
            let [user, kernel, ..] = process.times;
            let usage =
                Usage { ticks: user.saturating_add(kernel), io_bytes: io_bytes(&entry.path()) };
            let key = (id, process.started);
            // A process that was not scanned before may be old: it counts from this round on.
            let is_new = process.started >= self.before_ticks;
            let unknown = if is_new { Usage::START } else { usage };
            let before = self.before.get(&key).copied().unwrap_or(unknown);
            let sum = sums.entry(family(process.name)).or_default();
            let ticks = usage.ticks.saturating_sub(before.ticks);
            sum.cpu_seconds += ticks as f64 / self.host.ticks_per_second;
            if let (Some(now), Some(before)) = (usage.io_bytes, before.io_bytes) {
                sum.io_bytes += now.saturating_sub(before) as f64;
            }
            sum.resident_bytes += process.resident_pages as f64 * page_bytes;
            now.insert(key, usage);
        }
        (self.before, self.before_ticks) = (now, now_ticks);
        let host = Arc::clone(&self.host);
        self.push_first(&sums, now_ms, (|sums| sums.resident_bytes, 1.0), |name, bytes| {
            let tags = [("host", host.name.as_str()), ("process", name)];
            readings.gauge("process_top_memory_resident", "bytes", &tags, bytes);
        });
        // The first round has no previous values.
        let elapsed = self.before_ms.replace(now_ms).map(|before| (now_ms - before) as f64 / 1e3);
        let Some(elapsed) = elapsed.filter(|elapsed| *elapsed > 0.0) else { return Ok(()) };
        let cpu_min = CPU_MIN * elapsed;
        self.push_first(&sums, now_ms, (|sums| sums.cpu_seconds, cpu_min), |name, seconds| {
            let tags = [("host", host.name.as_str()), ("process", name)];
            readings.delta("process_top_cpu", "seconds", &tags, seconds);
        });
        let io_min = IO_PER_SECOND_MIN * elapsed;
        self.push_first(&sums, now_ms, (|sums| sums.io_bytes, io_min), |name, bytes| {
            let tags = [("host", host.name.as_str()), ("process", name)];
            readings.delta("process_top_io", "bytes", &tags, bytes);
        });
        Ok(())
    }
}

/// Returns the name without the number of a kernel's thread: `kworker/0:1-events` is `kworker`.
/// Control characters, which tags cannot have, are replaced.
fn family(name: &str) -> String {
    let family = name.split('/').next().unwrap_or(name).trim();
    let family = if family.is_empty() { "(unnamed)" } else { family };
    family.replace(char::is_control, "\u{fffd}")
}

/// Returns the bytes that a process has read from and written to storage; `None` when the agent may
/// not read them.
fn io_bytes(process: &Path) -> Option<u64> {
    let text = fs::read_to_string(process.join("io")).ok()?;
    let field = |name: &str| -> Option<u64> {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    let written = field("write_bytes:")?.saturating_sub(field("cancelled_write_bytes:")?);
    Some(field("read_bytes:")?.saturating_add(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of the tests: its name, ticks, pages and bytes of I/O.
    fn write(proc: &Path, id: u32, name: &str, ticks: u64, pages: u64, io: Option<u64>) {
        let folder = proc.join(id.to_string());
        fs::create_dir_all(&folder).unwrap();
        let line = format!(
            "{id} ({name}) S 1 7 7 0 -1 4194560 1 2 3 4 {ticks} 0 9 9 20 0 5 0 7 4096000 {pages} 1 1\n"
        );
        fs::write(folder.join("stat"), line).unwrap();
        if let Some(io) = io {
            let text = format!(
                "rchar: 9\nread_bytes: {io}\nwrite_bytes: 1000\ncancelled_write_bytes: 1000\n"
            );
            fs::write(folder.join("io"), text).unwrap();
        }
    }

    fn sampled(top: &mut TopProcesses, now_ms: i64) -> Vec<(String, String, f64)> {
        let mut readings = Readings::default();
        top.sample(now_ms, &mut readings).unwrap();
        let reading = |r: &granary_agent_kit::Reading| {
            let (_, process) = r.tags.iter().find(|(name, _)| name == "process").unwrap();
            (r.metric.to_string(), process.clone(), r.value)
        };
        readings.as_slice().iter().map(reading).collect()
    }

    fn of<'a>(found: &'a [(String, String, f64)], metric: &str) -> Vec<(&'a str, f64)> {
        let found = found.iter().filter(|(name, ..)| name == metric);
        found.map(|(_, process, value)| (process.as_str(), *value)).collect()
    }

    fn write_uptime(proc: &Path, seconds: f64) {
        fs::write(proc.join("uptime"), format!("{seconds:.2} 0.00\n")).unwrap();
    }

    /// Creates a source whose processes start, at 7 ticks, in the first round.
    fn top_in(proc: &Path) -> TopProcesses {
        write_uptime(proc, 0.07);
        let host = Arc::new(Host { proc: proc.to_owned(), ..Host::for_tests() });
        TopProcesses::new(host)
    }

    #[test]
    fn the_first_names_of_each_resource_are_summed_and_the_others_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path();
        for id in 1..=9 {
            write(proc, id, &format!("p{id}"), 100, u64::from(id), None);
        }
        write(proc, 20, "java", 1000, 50, Some(0));
        write(proc, 21, "java", 1000, 50, Some(0));
        write(proc, 22, "kworker/0:1-ev", 0, 0, Some(0));
        let mut top = top_in(proc);
        let first = sampled(&mut top, 10_000);
        let page = procfs::page_size() as f64;
        let memory = [("java", 100.0), ("p9", 9.0), ("p8", 8.0), ("p7", 7.0), ("p6", 6.0)];
        let expected = memory.map(|(name, pages)| (name, pages * page));
        assert_eq!(of(&first, "process_top_memory_resident"), expected);
        assert_eq!(first.len(), 5, "the first round has no previous times: {first:?}");
        // Ten seconds later: 100 ticks are a second.
        write(proc, 20, "java", 1500, 50, Some(900_000));
        write(proc, 21, "java", 1700, 50, Some(100_000));
        write(proc, 22, "kworker/0:1-ev", 300, 0, Some(0));
        write(proc, 23, "kworker/1:0", 200, 0, Some(0));
        write(proc, 1, "p1", 109, 1, None);
        let second = sampled(&mut top, 20_000);
        assert_eq!(of(&second, "process_top_cpu"), [("java", 12.0), ("kworker", 5.0)]);
        assert_eq!(of(&second, "process_top_io"), [("java", 1e6)]);
    }

    /// Regression: a process that had not been scanned before counted since its start.
    #[test]
    fn a_process_counts_from_its_start_only_if_it_started_since_the_previous_round() {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path();
        let mut top = top_in(proc);
        write(proc, 1, "denied", 100, 1, None);
        sampled(&mut top, 10_000);
        write(proc, 1, "denied", 100, 1, Some(500_000));
        write(proc, 2, "new", 1000, 1, Some(100_000));
        write_uptime(proc, 10.07);
        let second = sampled(&mut top, 20_000);
        assert_eq!(of(&second, "process_top_cpu"), [("new", 10.0)]);
        assert_eq!(of(&second, "process_top_io"), [("new", 1e5)]);
        // This process, too, started at 7 ticks.
        write(proc, 3, "old", 360_000, 1, Some(1 << 30));
        write_uptime(proc, 20.07);
        let third = sampled(&mut top, 30_000);
        assert_eq!(of(&third, "process_top_cpu"), []);
        assert_eq!(of(&third, "process_top_io"), []);
        write(proc, 1, "denied", 100, 1, Some(600_000));
        write(proc, 3, "old", 360_500, 1, Some((1 << 30) + 200_000));
        let fourth = sampled(&mut top, 40_000);
        assert_eq!(of(&fourth, "process_top_cpu"), [("old", 5.0)]);
        assert_eq!(of(&fourth, "process_top_io"), [("old", 2e5), ("denied", 1e5)]);
    }

    #[test]
    fn control_characters_of_names_are_replaced() {
        assert_eq!(family("a\nb\u{7f}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(family("kworker/0:1-ev"), "kworker");
    }

    #[test]
    fn names_that_are_gone_for_an_hour_make_room_and_a_day_has_a_limited_number() {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path();
        let mut top = top_in(proc);
        let round = |top: &mut TopProcesses, k: u32, now_ms: i64| {
            write(proc, 1, &format!("job{k}"), 0, 10, None);
            let found = sampled(top, now_ms);
            of(&found, "process_top_memory_resident")[0].0.to_owned()
        };
        // A new name each minute: the places are taken after half an hour, and free half an hour
        // later.
        for k in 0..120 {
            let expected = if k / 30 % 2 == 0 { &format!("job{k}") } else { OTHERS };
            assert_eq!(round(&mut top, k, i64::from(k) * 60_000), expected);
        }
        // A new name every six minutes: the day has 60 names already.
        let later: Vec<_> =
            (120..220).map(|k| round(&mut top, k, i64::from(k - 100) * 360_000)).collect();
        assert_eq!(later.iter().filter(|name| *name != OTHERS).count(), NEW_NAMES_MAX - 60);
        assert_eq!(later.last().unwrap(), OTHERS);
        assert_eq!(round(&mut top, 300, DAY_MS), "job300");
    }

    #[test]
    fn this_machine_has_processes_with_memory() {
        let host = Arc::new(Host { proc: "/proc".into(), ..Host::for_tests() });
        let found = sampled(&mut TopProcesses::new(host), 1000);
        let memory = of(&found, "process_top_memory_resident");
        assert!(!memory.is_empty() && memory.len() <= TOP, "{memory:?}");
        assert!(memory.iter().all(|(_, bytes)| *bytes > 0.0), "{memory:?}");
    }
}
