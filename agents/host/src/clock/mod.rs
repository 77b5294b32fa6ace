//! The system clock compared with NTP: as chrony's daemon reports it, else by the kernel's own
//! estimate, else by the file of systemd's NTP client.

mod chrony;
mod kernel;

use std::{path::PathBuf, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};

use self::chrony::Chrony;
use crate::host::Host;

/// The file that systemd's NTP client creates when the clock is synchronized.
const TIMESYNC_FILE: &str = "/run/systemd/timesync/synchronized";

/// The source of the metrics of the clock.
#[derive(Debug)]
pub(crate) struct Clock {
    host: Arc<Host>,
    chrony: Chrony,
    /// True when the process may ask the kernel.
    may_ask_kernel: bool,
    timesync_file: PathBuf,
}

/// The distance of the clock from NTP, in seconds.
struct Distance {
    /// Positive when the clock is behind.
    offset: f64,
    estimated_error: f64,
    maximum_error: f64,
}

impl Clock {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        let may_ask_kernel = kernel::is_permitted(&host.proc);
        let (chrony, timesync_file) = (Chrony::of_this_machine(), TIMESYNC_FILE.into());
        Self { host, chrony, may_ask_kernel, timesync_file }
    }

    /// Adds the state of the clock. Without a source of time, the distance is a constant.
    fn push(&self, is_synchronized: bool, distance: Option<&Distance>, readings: &mut Readings) {
        let level = f64::from(u8::from(is_synchronized));
        self.host.gauges(readings, "", [("system_clock_synchronized", level)]);
        if let Some(distance) = distance.filter(|_| is_synchronized) {
            self.host.gauges(
                readings,
                "seconds",
                [
                    ("system_clock_offset", distance.offset),
                    ("system_clock_estimated_error", distance.estimated_error),
                    ("system_clock_maximum_error", distance.maximum_error),
                ],
            );
        }
    }
}

impl Source for Clock {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        // The kernel's offset is constantly zero with chrony.
        if let Some(tracking) = self.chrony.request()? {
            let estimated_error = tracking.root_dispersion + tracking.root_delay / 2.0;
            let maximum_error = estimated_error + tracking.offset.abs();
            let distance = Distance { offset: tracking.offset, estimated_error, maximum_error };
            self.push(tracking.is_synchronized, Some(&distance), readings);
            if tracking.is_synchronized {
                let stratum = f64::from(tracking.stratum);
                self.host.gauges(readings, "", [("system_clock_stratum", stratum)]);
            }
        } else if let Some(state) = self.may_ask_kernel.then(kernel::state).flatten() {
            self.push(state.is_synchronized, Some(&state.distance), readings);
        } else if self.timesync_file.parent().is_some_and(std::path::Path::exists) {
            // With another NTP client, the state is unknown.
            self.push(self.timesync_file.exists(), None, readings);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        net::{SocketAddr, UdpSocket},
        thread,
    };

    use super::{
        chrony::{encode, tests::response},
        *,
    };

    fn clock(address: SocketAddr) -> Clock {
        let timesync_file = PathBuf::from("/nonexistent/folder/synchronized");
        let host = Arc::new(Host::for_tests());
        Clock { chrony: Chrony::for_tests(address), timesync_file, ..Clock::new(host) }
    }

    fn sample(clock: &mut Clock) -> BTreeMap<String, f64> {
        let mut readings = Readings::default();
        clock.sample(0, &mut readings).unwrap();
        readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect()
    }

    #[test]
    fn the_state_of_chrony_becomes_metrics_and_other_responses_are_ignored() {
        let chrony = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut clock = clock(chrony.local_addr().unwrap());
        let server = thread::spawn(move || {
            let mut request = [0; 200];
            let (length, from) = chrony.recv_from(&mut request).unwrap();
            let late = encode(6);
            for message in [&late[..], b"?", &response()] {
                chrony.send_to(message, from).unwrap();
            }
            request[..length].to_vec()
        });
        let found = sample(&mut clock);
        assert_eq!(server.join().unwrap(), encode(7));
        let rounded = |name: &str| (found[name] * 1e9).round() / 1e9;
        assert_eq!(found.len(), 5);
        assert_eq!((found["system_clock_synchronized"], found["system_clock_stratum"]), (1.0, 9.0));
        assert_eq!(rounded("system_clock_offset"), 0.249_998_927);
        assert_eq!(rounded("system_clock_estimated_error"), 0.000_003_783);
        assert_eq!(rounded("system_clock_maximum_error"), 0.250_002_71);
    }

    #[test]
    fn without_chrony_the_file_of_systemd_tells_whether_the_clock_is_synchronized() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut clock = clock(closed);
        assert_eq!(sample(&mut clock), BTreeMap::new());
        let folder = tempfile::tempdir().unwrap();
        clock.timesync_file = folder.path().join("synchronized");
        let synchronized =
            |value| BTreeMap::from([("system_clock_synchronized".to_owned(), value)]);
        assert_eq!(sample(&mut clock), synchronized(0.0));
        std::fs::write(&clock.timesync_file, "").unwrap();
        assert_eq!(sample(&mut clock), synchronized(1.0));
    }

    #[test]
    fn a_daemon_that_does_not_answer_is_reported() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut clock = clock(silent.local_addr().unwrap());
        let fault = clock.sample(0, &mut Readings::default()).unwrap_err();
        assert!(fault.to_string().contains("chrony did not answer"), "{fault}");
    }

    #[test]
    fn without_chrony_the_kernel_is_asked_if_the_sandbox_permits_it() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut clock = clock(closed);
        clock.may_ask_kernel = kernel::is_permitted("/proc".as_ref());
        let expected = clock.may_ask_kernel.then(kernel::state).flatten();
        let found = sample(&mut clock);
        let is_synchronized = expected.map(|state| f64::from(u8::from(state.is_synchronized)));
        assert_eq!(found.get("system_clock_synchronized").copied(), is_synchronized);
        let has_distance = found.contains_key("system_clock_maximum_error");
        assert_eq!(has_distance, is_synchronized == Some(1.0), "{found:?}");
    }
}
