//! NFS: the calls of the kernel's client and server, from /proc/net/rpc.

use std::{fs, io, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::Host;

/// The values: file, line, position after the name of the line, metric, unit.
const VALUES: [(&str, &str, usize, &str, &str); 6] = [
    ("nfs", "rpc", 0, "system_nfs_client_calls", "calls"),
    ("nfs", "rpc", 1, "system_nfs_client_retransmissions", "calls"),
    ("nfsd", "rpc", 0, "system_nfs_server_calls", "calls"),
    ("nfsd", "rpc", 1, "system_nfs_server_bad_calls", "calls"),
    ("nfsd", "io", 0, "system_nfs_server_bytes_read", "bytes"),
    ("nfsd", "io", 1, "system_nfs_server_bytes_written", "bytes"),
];

/// The source of metrics about NFS.
#[derive(Debug)]
pub(crate) struct Nfs(pub(crate) Arc<Host>);

impl Source for Nfs {
    fn name(&self) -> &'static str {
        "nfs"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        for name in ["nfs", "nfsd"] {
            let path = self.0.proc.join("net/rpc").join(name);
            let text = match fs::read_to_string(&path) {
                Ok(text) => text,
                // The module is not loaded.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
                Err(cause) => return Err(format!("{}: {cause}", path.display()).into()),
            };
            for (_, line, position, metric, unit) in VALUES.iter().filter(|row| row.0 == name) {
                if let Some(value) = value_of(&text, line, *position) {
                    self.0.counters(readings, unit, [(metric, value)]);
                }
            }
        }
        Ok(())
    }
}

fn value_of(text: &str, line: &str, position: usize) -> Option<f64> {
    text.lines().find_map(|words| {
        let mut words = words.split_whitespace();
        (words.next() == Some(line)).then(|| words.nth(position))??.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_and_server_have_series_when_their_modules_are_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host { proc: folder.path().to_owned(), ..Host::for_tests() };
        let mut nfs = Nfs(Arc::new(host));
        let mut sample = || {
            let mut readings = Readings::default();
            nfs.sample(0, &mut readings).unwrap();
            readings.as_slice().iter().map(|reading| reading.value).collect::<Vec<_>>()
        };
        assert_eq!(sample(), Vec::<f64>::new());
        fs::create_dir_all(folder.path().join("net/rpc")).unwrap();
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join("net/rpc").join(name), text).unwrap();
        };
        write("nfs", "net 70 70 69 45\nrpc 1218785755 374636 1218815394\n");
        assert_eq!(sample(), [1_218_785_755.0, 374_636.0]);
        write("nfsd", "rc 0 6 18622\nfh 0 0\nio 157286400 72864\nth 8 0\nrpc 18628 3 0 0 0\n");
        assert_eq!(sample()[2..], [18_628.0, 3.0, 157_286_400.0, 72_864.0]);
    }
}
