//! The protocol that a listening program probably speaks, by its name or its port.
//!
//! A program that waits for one connection, or a printer, must not get a request of another
//! protocol, so ports without a suggestion are only tried on demand.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The maximum number of file descriptors that are read, of all processes together.
const DESCRIPTORS_MAX: usize = 200_000;

/// The request that follows when a program does not answer the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suggestion {
    /// The first answer is enough: the program greets, or answers HTTP with an answer or an error.
    FirstAnswer,
    Postgres,
    Memcached,
    MongoDb,
}

/// The names of programs, as the kernel shortens them to 15 bytes.
const PROGRAMS: [(&str, Suggestion); 14] = [
    ("postgres", Suggestion::Postgres),
    ("memcached", Suggestion::Memcached),
    ("mongod", Suggestion::MongoDb),
    ("mongos", Suggestion::MongoDb),
    ("redis-server", Suggestion::FirstAnswer),
    ("valkey-server", Suggestion::FirstAnswer),
    ("keydb-server", Suggestion::FirstAnswer),
    ("nginx", Suggestion::FirstAnswer),
    ("mysqld", Suggestion::FirstAnswer),
    ("mariadbd", Suggestion::FirstAnswer),
    ("haproxy", Suggestion::FirstAnswer),
    ("beam.smp", Suggestion::FirstAnswer),
    ("prometheus", Suggestion::FirstAnswer),
    ("alertmanager", Suggestion::FirstAnswer),
];

/// Returns the suggestion for a port, by the name of its program if it is known.
pub(super) fn suggestion_of(port: u16, program: Option<&str>) -> Option<Suggestion> {
    let by_name = program.and_then(|program| {
        let known = PROGRAMS.iter().find(|(name, _)| *name == program);
        let is_exporter = program.contains("_export");
        known.map(|(_, suggestion)| *suggestion).or(is_exporter.then_some(Suggestion::FirstAnswer))
    });
    by_name.or(match port {
        5432 => Some(Suggestion::Postgres),
        11_211 => Some(Suggestion::Memcached),
        27_017..=27_019 => Some(Suggestion::MongoDb),
        // HTTP, MySQL, RabbitMQ, Redis, HAProxy, and Prometheus' exporters. Port 9100 is also that
        // of printers, which print any request.
        80 | 3306 | 5672 | 6379 | 8080 | 8404 | 9090 | 9101..=9499 | 15_692 => {
            Some(Suggestion::FirstAnswer)
        }
        _ => None,
    })
}

/// Returns the names of the processes that own these sockets, by the sockets' inodes. Processes of
/// other users can only be read by root.
pub(super) fn owners(sockets: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    let mut owners = BTreeMap::new();
    let mut left = DESCRIPTORS_MAX;
    for process in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
        let is_process = process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        if is_process {
            add_sockets(&process.path(), sockets, &mut left, &mut owners);
        }
    }
    owners
}

/// Adds the sockets of a process. Returns `None` when it ends meanwhile, or belongs to another
/// user; its ports then count by their numbers.
fn add_sockets(
    process: &Path,
    sockets: &BTreeSet<u64>,
    left: &mut usize,
    owners: &mut BTreeMap<u64, String>,
) -> Option<()> {
    for descriptor in fs::read_dir(process.join("fd")).ok()? {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let target = fs::read_link(descriptor.ok()?.path()).ok()?;
        let inode = target.to_str().and_then(|target| target.strip_prefix("socket:["));
        let inode = inode.and_then(|inode| inode.strip_suffix(']')?.parse().ok());
        if let Some(inode) = inode.filter(|inode| sockets.contains(inode)) {
            let name = fs::read_to_string(process.join("comm")).ok()?;
            owners.insert(inode, name.trim_end().to_owned());
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_program_or_port_suggests_a_request() {
        let check = |port, program, expected| {
            assert_eq!(suggestion_of(port, program), expected, "{port} {program:?}");
        };
        check(4444, Some("socat"), None);
        check(9100, Some("p910nd"), None);
        check(9100, Some("node_exporter"), Some(Suggestion::FirstAnswer));
        check(1234, Some("postgres_export"), Some(Suggestion::FirstAnswer));
        check(1234, Some("postgres"), Some(Suggestion::Postgres));
        check(27_017, None, Some(Suggestion::MongoDb));
        check(6379, Some("docker-proxy"), Some(Suggestion::FirstAnswer));
        check(22, None, None);
    }

    #[test]
    fn the_owner_of_a_socket_is_found() {
        use std::os::fd::AsRawFd;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let link = format!("/proc/self/fd/{}", listener.as_raw_fd());
        let link = fs::read_link(link).unwrap();
        let inode = link.to_str().unwrap().trim_matches(|c: char| !c.is_ascii_digit());
        let inode: u64 = inode.parse().unwrap();
        let own_name = fs::read_to_string("/proc/self/comm").unwrap();
        let expected = BTreeMap::from([(inode, own_name.trim_end().to_owned())]);
        assert_eq!(owners(&BTreeSet::from([inode])), expected);
    }
}
