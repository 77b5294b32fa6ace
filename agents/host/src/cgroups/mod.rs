//! Containers and services by their control groups (version 2): CPU, throttling, memory, disks.

mod detection;
mod names;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use granary_agent_kit::{Readings, Source, SourceError};

use self::{
    detection::{Cgroup, GroupKind, find_groups},
    names::{ContainerNames, read_names},
};
use crate::host::Host;

/// The interval of scans for control groups.
const SCAN_INTERVAL_MS: i64 = 60_000;

/// The source of the metrics of control groups.
#[derive(Debug)]
pub(crate) struct Cgroups {
    host: Arc<Host>,
    groups: Vec<Cgroup>,
    names: ContainerNames,
    /// The folder with the sockets of container runtimes, normally `/run`.
    run: PathBuf,
    next_scan_ms: i64,
}

/// The field of `cpu.stat`, the metric of a container, the unit, and the divisor.
const CPU: [(&str, &str, &str, f64); 5] = [
    ("user_usec", "container_cpu_user", "seconds", 1e6),
    ("system_usec", "container_cpu_kernel", "seconds", 1e6),
    ("throttled_usec", "container_cpu_throttled", "seconds", 1e6),
    ("nr_throttled", "container_cpu_throttled_periods", "periods", 1.0),
    ("nr_periods", "container_cpu_periods", "periods", 1.0),
];

/// The field of `io.stat`, the metric and the unit.
const IO: [(&str, &str, &str); 4] = [
    ("rbytes", "container_io_bytes_read", "bytes"),
    ("wbytes", "container_io_bytes_written", "bytes"),
    ("rios", "container_io_operations_read", "operations"),
    ("wios", "container_io_operations_write", "operations"),
];

impl Cgroups {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        let (groups, names, run) = (Vec::new(), ContainerNames::new(), PathBuf::from("/run"));
        Self { host, groups, names, run, next_scan_ms: i64::MIN }
    }

    /// Finds the groups, and the names of the containers among them.
    fn scan(&mut self, readings: &mut Readings) {
        self.groups = find_groups(&self.host.sys.join("fs/cgroup"));
        self.names.clear();
        if self.groups.iter().any(|group| matches!(group.kind, GroupKind::Container(_))) {
            self.names = read_names(&self.run, |socket, cause| {
                readings.problem(format!("names of containers in {}", socket.display()), cause);
            });
        }
    }
}

impl Source for Cgroups {
    fn name(&self) -> &'static str {
        "cgroups"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        if now_ms >= self.next_scan_ms
            || self.next_scan_ms.saturating_sub(now_ms) > SCAN_INTERVAL_MS
        {
            self.scan(readings);
            self.next_scan_ms = now_ms.saturating_add(SCAN_INTERVAL_MS);
        }
        for group in &self.groups {
            match &group.kind {
                GroupKind::Container(name) => {
                    let tags = [("container", &**name), ("host", &*self.host.name)];
                    push_container(&group.folder, &tags, readings);
                    if let Some(found) = self.names.get(name) {
                        let of_runtime = [("image", &*found.image), ("name", &*found.name)];
                        let tags = [tags[0], tags[1], of_runtime[0], of_runtime[1]];
                        readings.gauge("container_info", "", &tags, 1.0);
                    }
                }
                GroupKind::Unit(name) => {
                    let tags = [("host", &*self.host.name), ("unit", &**name)];
                    push_unit(&group.folder, &tags, readings);
                }
            }
        }
        Ok(())
    }
}

/// Reads a file of a group. The file is missing when the group has ended, or its controller is
/// disabled.
fn read_text(folder: &Path, file: &str) -> Option<String> {
    fs::read_to_string(folder.join(file)).ok()
}

/// Returns the number in a file of a group.
fn number_in(folder: &Path, file: &str) -> Option<f64> {
    read_text(folder, file)?.trim().parse::<u64>().ok().map(|value| value as f64)
}

/// Returns the number in the line that begins with a name.
fn value_of(text: &str, name: &str) -> Option<f64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.trim().parse::<u64>().ok().map(|value| value as f64)
}

/// Returns the sum over the devices of `io.stat`, with lines such as `8:0 rbytes=1 wbytes=2`.
fn sum_of_devices(text: &str, name: &str) -> f64 {
    let values = text.split_ascii_whitespace().filter_map(|word| word.strip_prefix(name));
    let values = values.filter_map(|rest| rest.strip_prefix('=')?.parse::<u64>().ok());
    values.fold(0.0, |sum, value| sum + value as f64)
}

fn push_container(folder: &Path, tags: &[(&'static str, &str)], readings: &mut Readings) {
    let cpu = read_text(folder, "cpu.stat").unwrap_or_default();
    for (name, metric, unit, divisor) in CPU {
        if let Some(total) = value_of(&cpu, name) {
            readings.counter(metric, unit, tags, total / divisor, None);
        }
    }
    for (file, metric, unit) in [
        ("memory.current", "container_memory_used", "bytes"),
        // Without a limit, the file contains `max`, and the gauge is left out.
        ("memory.max", "container_memory_limit", "bytes"),
        ("pids.current", "container_processes", "processes"),
    ] {
        if let Some(value) = number_in(folder, file) {
            readings.gauge(metric, unit, tags, value);
        }
    }
    if let Some(kills) =
        read_text(folder, "memory.events").and_then(|text| value_of(&text, "oom_kill"))
    {
        readings.counter("container_oom_kills", "processes", tags, kills, None);
    }
    if let Some(io) = read_text(folder, "io.stat") {
        for (name, metric, unit) in IO {
            readings.counter(metric, unit, tags, sum_of_devices(&io, name), None);
        }
    }
}

fn push_unit(folder: &Path, tags: &[(&'static str, &str)], readings: &mut Readings) {
    let cpu = read_text(folder, "cpu.stat").and_then(|text| value_of(&text, "usage_usec"));
    if let Some(micros) = cpu {
        readings.counter("unit_cpu", "seconds", tags, micros / 1e6, None);
    }
    for (file, metric, unit) in [
        ("memory.current", "unit_memory_used", "bytes"),
        ("pids.current", "unit_processes", "processes"),
    ] {
        if let Some(value) = number_in(folder, file) {
            readings.gauge(metric, unit, tags, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        io::{Read, Write},
        os::unix::net::UnixListener,
    };

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_container_and_a_service_are_read_from_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let id = "0123456789ab".repeat(5) + "cdef";
        let docker = format!("fs/cgroup/system.slice/docker-{id}.scope");
        for (file, text) in [
            ("fs/cgroup/cgroup.controllers".to_owned(), "cpu memory io pids"),
            (
                format!("{docker}/cpu.stat"),
                "usage_usec 900\nuser_usec 2500000\nsystem_usec 500000\nnr_periods 10\n\
                 nr_throttled 4\nthrottled_usec 1500000\n",
            ),
            (format!("{docker}/memory.current"), "1048576\n"),
            (format!("{docker}/memory.max"), "max\n"),
            (format!("{docker}/memory.events"), "low 0\noom 3\noom_kill 2\n"),
            (
                format!("{docker}/io.stat"),
                "8:0 rbytes=100 wbytes=200 rios=3 wios=4 dbytes=0 dios=0\n8:16 rbytes=1 wbytes=2\n",
            ),
            ("fs/cgroup/system.slice/ssh.service/cpu.stat".to_owned(), "usage_usec 7000000\n"),
            ("fs/cgroup/system.slice/ssh.service/memory.current".to_owned(), "4096\n"),
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let host = Arc::new(Host { sys: folder.path().to_owned(), ..Host::for_tests() });
        let run = folder.path().join("run");
        fs::create_dir(&run).unwrap();
        let server = answer_as_docker(&run, &id);
        let mut readings = Readings::default();
        let mut source = Cgroups { run, ..Cgroups::new(host) };
        source.sample(1, &mut readings).unwrap();
        server.join().unwrap();
        let values: BTreeMap<&str, f64> =
            readings.as_slice().iter().map(|r| (r.metric.as_ref(), r.value)).collect();
        let expected = [
            ("container_cpu_kernel", 0.5),
            ("container_cpu_periods", 10.0),
            ("container_cpu_throttled", 1.5),
            ("container_cpu_throttled_periods", 4.0),
            ("container_cpu_user", 2.5),
            ("container_info", 1.0),
            ("container_io_bytes_read", 101.0),
            ("container_io_bytes_written", 202.0),
            ("container_io_operations_read", 3.0),
            ("container_io_operations_write", 4.0),
            ("container_memory_used", 1_048_576.0),
            ("container_oom_kills", 2.0),
            ("unit_cpu", 7.0),
            ("unit_memory_used", 4096.0),
        ];
        assert_eq!(values, expected.into());
        let memory_used = readings.as_slice().iter().find(|r| r.metric == "container_memory_used");
        let tags = &memory_used.unwrap().tags;
        assert!(tags.contains(&("container".into(), "0123456789ab".to_owned())), "{tags:?}");
        let info = |readings: &Readings| {
            let info = readings.as_slice().iter().find(|r| r.metric == "container_info").unwrap();
            info.tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
        };
        let expected = ["container=0123456789ab", "host=test", "image=nginx:1.29", "name=web"];
        assert_eq!(info(&readings), expected);
        // The server has ended: until the next scan, the names are cached.
        let mut readings = Readings::default();
        source.sample(2, &mut readings).unwrap();
        assert_eq!(info(&readings), expected);
        assert!(readings.problems().is_empty());
    }

    /// Regression: a hanging Docker held back all control groups and units.
    #[test]
    fn control_groups_are_read_although_docker_hangs() {
        let folder = tempfile::tempdir().unwrap();
        let id = "0123456789ab".repeat(5) + "cdef";
        for (file, text) in [
            ("cgroup.controllers".to_owned(), "cpu memory\n"),
            (format!("system.slice/docker-{id}.scope/memory.current"), "1\n"),
            ("system.slice/ssh.service/memory.current".to_owned(), "2\n"),
        ] {
            let path = folder.path().join("fs/cgroup").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let run = folder.path().join("run");
        fs::create_dir(&run).unwrap();
        let _hanging = UnixListener::bind(run.join("docker.sock")).unwrap();
        let host = Arc::new(Host { sys: folder.path().to_owned(), ..Host::for_tests() });
        let mut readings = Readings::default();
        Cgroups { run, ..Cgroups::new(host) }.sample(1, &mut readings).unwrap();
        let values = readings.as_slice().iter().map(|r| (r.metric.as_ref(), r.value));
        let expected = [("container_memory_used", 1.0), ("unit_memory_used", 2.0)];
        assert_eq!(values.collect::<BTreeMap<_, _>>(), expected.into());
        assert_eq!(readings.problems().len(), 1);
    }

    /// Answers one request on Docker's socket.
    fn answer_as_docker(run: &Path, id: &str) -> std::thread::JoinHandle<()> {
        let listener = UnixListener::bind(run.join("docker.sock")).unwrap();
        let containers = format!(r#"[{{"Id":"{id}","Names":["/web"],"Image":"nginx:1.29"}}]"#);
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 64];
            let length = stream.read(&mut request).unwrap();
            assert!(request[..length].starts_with(b"GET /containers/json HTTP/1.0\r\n"));
            write!(stream, "HTTP/1.0 200 OK\r\n\r\n{containers}").unwrap();
        })
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(text in "[ -~\\n]{0,200}", name in "[a-w]{1,8}", value: u64) {
            prop_assert!(sum_of_devices(&text, &name).is_finite());
            prop_assert!(value_of(&text, &name).is_none_or(f64::is_finite));
            let line = format!("x 1\n{name} {value}\n");
            prop_assert_eq!(value_of(&line, &name), Some(value as f64));
        }
    }
}
