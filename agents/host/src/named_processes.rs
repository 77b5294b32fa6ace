//! CPU and memory of processes by name, such as all `mongod` processes.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::Read,
    path::Path,
    sync::Arc,
};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::{Host, rounded};

/// The maximum number of scanned processes.
const PROCESSES_MAX: usize = 100_000;
/// The size to which the kernel truncates process names.
const NAME_BYTES: usize = 15;
/// The number of bytes that are read from a command line, which begins with program and script.
const COMMAND_BYTES: u64 = 4096;
/// The number of times of a process: user and kernel time, of itself and of its reaped children.
const TIME_KINDS: usize = 4;
/// The metrics of each time: in percent of a core, and in percent of all cores.
const METRICS: [(&str, &str); TIME_KINDS] = [
    ("process_cpu_user", "process_normalized_cpu_user"),
    ("process_cpu_kernel", "process_normalized_cpu_kernel"),
    ("process_cpu_children_user", "process_normalized_cpu_children_user"),
    ("process_cpu_children_kernel", "process_normalized_cpu_children_kernel"),
];

/// The source of the metrics of processes by name.
#[derive(Debug)]
pub(crate) struct NamedProcesses {
    host: Arc<Host>,
    names: Vec<String>,
    cores: f64,
    before_ms: Option<i64>,
    /// The start of the previous round, in ticks since boot.
    before_ticks: u64,
    /// The ticks of each process in the previous round, by process ID and start time.
    before: HashMap<(u32, u64), [u64; TIME_KINDS]>,
}

/// The values of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Process<'a> {
    pub(crate) name: &'a str,
    pub(crate) times: [u64; TIME_KINDS],
    threads: u64,
    pub(crate) started: u64,
    virtual_bytes: u64,
    pub(crate) resident_pages: u64,
}

/// The sums over the processes of a name.
#[derive(Debug, Default)]
struct ProcessSums {
    processes: u64,
    threads: u64,
    virtual_bytes: u64,
    resident_pages: u64,
    /// The ticks since the previous round.
    growth: [u64; TIME_KINDS],
}

impl NamedProcesses {
    pub(crate) fn new(host: Arc<Host>, names: Vec<String>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        Self { host, names, cores, before_ms: None, before_ticks: 0, before: HashMap::new() }
    }
}

impl Source for NamedProcesses {
    fn name(&self) -> &'static str {
        "named processes"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let mut sums: Vec<ProcessSums> =
            self.names.iter().map(|_| ProcessSums::default()).collect();
        let mut now = HashMap::new();
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
            let index = self.index_of(process.name, &entry.path());
            let Some(sum) = index.and_then(|index| sums.get_mut(index)) else { continue };
            let key = (id, process.started);
            // A process that had another name before may be old: it counts from this round on.
            let is_new = process.started >= self.before_ticks;
            let unknown = if is_new { [0; TIME_KINDS] } else { process.times };
            let before = self.before.get(&key).copied().unwrap_or(unknown);
            sum.add(&process, before);
            now.insert(key, process.times);
        }
        let elapsed =
            self.before_ms.replace(now_ms).map(|before| (now_ms - before) as f64 / 1000.0);
        (self.before, self.before_ticks) = (now, now_ticks);
        for (name, sum) in self.names.iter().zip(sums) {
            self.push_metrics(name, &sum, elapsed.filter(|elapsed| *elapsed > 0.0), readings);
        }
        Ok(())
    }
}

impl NamedProcesses {
    /// Returns the index of the configured name that a process has. A name that may be truncated is
    /// completed from the command line.
    fn index_of(&self, name: &str, folder: &Path) -> Option<usize> {
        let may_be_truncated = name.len() >= NAME_BYTES;
        let position = |full: &str| self.names.iter().position(|known| known == full);
        if !may_be_truncated
            || !self.names.iter().any(|known| known.len() > name.len() && known.starts_with(name))
        {
            return position(name);
        }
        match full_name(name, folder) {
            Some(full) => position(&full).or_else(|| position(name)),
            // The command line is empty or was overwritten, so only the truncated name is known.
            None => position(name)
                .or_else(|| self.names.iter().position(|known| known.starts_with(name))),
        }
    }
}

/// Returns the full name of a process with a truncated name: its program, or the script of its
/// interpreter.
fn full_name(name: &str, folder: &Path) -> Option<String> {
    let mut line = Vec::new();
    let limited_file = File::open(folder.join("cmdline")).map(|file| file.take(COMMAND_BYTES));
    limited_file.and_then(|mut file| file.read_to_end(&mut line)).ok()?;
    let words = line.split(|byte| *byte == 0).take(2).map(String::from_utf8_lossy);
    let file_names = words.map(|word| word.rsplit('/').next().unwrap_or_default().to_owned());
    let executable = fs::read_link(folder.join("exe")).ok();
    let executable = executable.as_deref().and_then(Path::file_name);
    let mut candidates =
        file_names.chain(executable.map(|name| name.to_string_lossy().into_owned()));
    candidates.find(|full| full.starts_with(name))
}

impl ProcessSums {
    fn add(&mut self, process: &Process<'_>, before: [u64; TIME_KINDS]) {
        self.processes += 1;
        self.threads = self.threads.saturating_add(process.threads);
        self.virtual_bytes = self.virtual_bytes.saturating_add(process.virtual_bytes);
        self.resident_pages = self.resident_pages.saturating_add(process.resident_pages);
        for (growth, (now, before)) in self.growth.iter_mut().zip(process.times.iter().zip(before))
        {
            *growth = growth.saturating_add(now.saturating_sub(before));
        }
    }
}

impl NamedProcesses {
    fn push_metrics(
        &self,
        name: &str,
        sum: &ProcessSums,
        elapsed: Option<f64>,
        readings: &mut Readings,
    ) {
        let tags = [("host", &*self.host.name), ("process", name)];
        let resident = sum.resident_pages.saturating_mul(procfs::page_size());
        for (metric, unit, value) in [
            ("process_count", "processes", sum.processes),
            ("process_threads", "threads", sum.threads),
            ("process_memory_resident", "bytes", resident),
            ("process_memory_virtual", "bytes", sum.virtual_bytes),
        ] {
            readings.gauge(metric, unit, &tags, value as f64);
        }
        // The first round has no previous values.
        let Some(elapsed) = elapsed else { return };
        for ((of_a_core, normalized), ticks) in METRICS.into_iter().zip(sum.growth) {
            let percent = ticks as f64 / self.host.ticks_per_second / elapsed * 100.0;
            readings.gauge(of_a_core, "percent", &tags, rounded(percent));
            readings.gauge(normalized, "percent", &tags, rounded(percent / self.cores));
        }
    }
}

/// Parses a line of `/proc/PID/stat`; the name may contain spaces and parentheses.
pub(crate) fn parse_stat(line: &str) -> Option<Process<'_>> {
    let (head, rest) = line.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let words: Vec<&str> = rest.split_ascii_whitespace().take(24).collect();
    let number = |index: usize| words.get(index)?.parse::<u64>().ok();
    Some(Process {
        name,
        times: [number(11)?, number(12)?, number(13)?, number(14)?],
        threads: number(17)?,
        started: number(19)?,
        virtual_bytes: number(20)?,
        resident_pages: number(21)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stat_line(name: &str, times: [u64; TIME_KINDS], started: u64) -> String {
        let [user, kernel, child_user, child_kernel] = times;
        format!(
            "7 ({name}) S 1 7 7 0 -1 4194560 1 2 3 4 {user} {kernel} {child_user} {child_kernel} 20 \
             0 5 0 {started} 4096000 100 18446744073709551615 1 1 0\n"
        )
    }

    fn sample_values(named: &mut NamedProcesses, now_ms: i64) -> HashMap<String, f64> {
        let mut readings = Readings::default();
        named.sample(now_ms, &mut readings).unwrap();
        readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect()
    }

    #[test]
    fn processes_of_a_name_are_summed_and_their_times_are_percent_of_a_core() {
        let folder = tempfile::tempdir().unwrap();
        let write = |id: u32, text: String| {
            let process = folder.path().join(id.to_string());
            fs::create_dir_all(&process).unwrap();
            fs::write(process.join("stat"), text).unwrap();
        };
        write(7, stat_line("mongod", [100, 50, 0, 0], 5));
        write(8, stat_line("a (mongod) b", [900, 900, 0, 0], 5));
        // The first round is at 900 ticks.
        fs::write(folder.path().join("uptime"), "9.00 0.00\n").unwrap();
        let host = Arc::new(Host { proc: folder.path().to_owned(), ..Host::for_tests() });
        let mut named = NamedProcesses::new(host, vec!["mongod".to_owned(), "none".to_owned()]);
        named.cores = 4.0;
        let first = sample_values(&mut named, 10_000);
        assert_eq!(first.get("process_cpu_user"), None, "the first round has no previous times");
        write(7, stat_line("mongod", [1100, 250, 3, 0], 5));
        // This process started after the first round.
        write(9, stat_line("mongod", [400, 0, 0, 0], 900));
        // This process is old, but had another name.
        write(8, stat_line("mongod", [950, 900, 0, 0], 5));
        let mut readings = Readings::default();
        named.sample(20_000, &mut readings).unwrap();
        let value_of = |name: &str, metric: &str| {
            let found = readings.as_slice().iter().find(|r| {
                r.metric == metric && r.tags.contains(&("process".into(), name.to_owned()))
            });
            found.map(|r| r.value)
        };
        assert_eq!(value_of("mongod", "process_cpu_user"), Some(140.0));
        assert_eq!(value_of("mongod", "process_normalized_cpu_user"), Some(35.0));
        assert_eq!(value_of("mongod", "process_cpu_kernel"), Some(20.0));
        assert_eq!(value_of("mongod", "process_cpu_children_user"), Some(0.3));
        assert_eq!(value_of("mongod", "process_count"), Some(3.0));
        assert_eq!(value_of("mongod", "process_threads"), Some(15.0));
        assert_eq!(
            value_of("none", "process_count"),
            Some(0.0),
            "a name without a process has the count 0"
        );
    }

    /// Regression: the kernel truncates names to 15 bytes, so longer names were never found.
    #[test]
    fn a_truncated_name_is_completed_from_the_command_line() {
        let folder = tempfile::tempdir().unwrap();
        let write = |id: u32, name: &str, command: Option<&str>| {
            let process = folder.path().join(id.to_string());
            fs::create_dir_all(&process).unwrap();
            fs::write(process.join("stat"), stat_line(name, [1, 1, 0, 0], 5)).unwrap();
            if let Some(command) = command {
                fs::write(process.join("cmdline"), command.replace(' ', "\0")).unwrap();
            }
        };
        write(1, "granary-agent-s", Some("/usr/bin/granary-agent-scrape --scrape-config x"));
        write(2, "granary-agent-s", Some("granary-agent-statsd"));
        write(3, "granary-agent-s", Some("granary-agent-statsd"));
        write(4, "a-script-with-a", Some("/usr/bin/python3 /opt/a-script-with-a-long-name.py"));
        write(5, "quite-a-long-wo", Some("quite: a changed title"));
        write(6, "quite-a-long-wo", None);
        write(7, "mongod", Some("/usr/bin/mongod-of-another-name"));
        fs::write(folder.path().join("uptime"), "9.00 0.00\n").unwrap();
        let names = [
            ("granary-agent-scrape", 1.0),
            ("granary-agent-statsd", 2.0),
            ("granary-agent-s", 0.0),
            ("a-script-with-a-long-name.py", 1.0),
            ("quite-a-long-worker", 2.0),
            ("mongod", 1.0),
            ("mongod-of-another-name", 0.0),
        ];
        let host = Arc::new(Host { proc: folder.path().to_owned(), ..Host::for_tests() });
        let mut named = NamedProcesses::new(host, names.map(|(name, _)| name.to_owned()).into());
        let mut readings = Readings::default();
        named.sample(1000, &mut readings).unwrap();
        for (name, expected) in names {
            let tag = ("process".into(), name.to_owned());
            let mut candidates = readings.as_slice().iter();
            let count =
                candidates.find(|r| r.metric == "process_count" && r.tags.contains(&tag)).unwrap();
            assert_eq!(count.value, expected, "{name}");
        }
    }

    /// Samples a real process of the real kernel.
    #[test]
    fn a_real_process_with_a_long_name_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("sleeps-for-the-test-{}", std::process::id());
        let program = folder.path().join(&name);
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let host = Arc::new(Host { proc: "/proc".into(), ..Host::for_tests() });
        let mut named = NamedProcesses::new(host, vec![name]);
        let counted = sample_values(&mut named, 1000)["process_count"];
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(counted, 1.0);
    }

    proptest! {
        #[test]
        fn any_line_is_parsed_or_rejected(line in "[ -~\\n]{0,200}", name in "[ -~]{0,20}") {
            prop_assert!(parse_stat(&line).is_none_or(|process| line.contains(process.name)));
            let good = format!("7 ({name}) S{}", " 1".repeat(30));
            prop_assert_eq!(parse_stat(&good).map(|process| process.name.to_owned()), Some(name));
        }
    }
}
