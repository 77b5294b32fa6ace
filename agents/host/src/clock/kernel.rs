//! The kernel's own estimate of the clock, which NTP clients such as ntpd and systemd's set
//! (adjtimex(2)).

use std::{fs, path::Path};

use rtime_clock::adjtime::{Timex, adjtimex};

use super::Distance;

/// The variable by which a unit declares that its filter of system calls permits adjtimex.
const PERMISSION: &str = "GRANARY_KERNEL_CLOCK";
/// The state of a clock that is not synchronized (`TIME_ERROR`).
const NOT_SYNCHRONIZED: i32 = 5;
/// The bit of the status that announces an offset in nanoseconds (`STA_NANO`).
const IN_NANOSECONDS: i32 = 0x2000;

/// The kernel's estimate.
pub(super) struct KernelState {
    pub(super) is_synchronized: bool,
    pub(super) distance: Distance,
}

/// Returns true when this process may call adjtimex. systemd's filters of system calls kill a
/// process for a forbidden call, so under a filter the unit must declare the permission.
pub(super) fn is_permitted(proc: &Path) -> bool {
    let status = fs::read_to_string(proc.join("self/status")).unwrap_or_default();
    may_call(&status, std::env::var_os(PERMISSION).is_some_and(|value| value == "yes"))
}

fn may_call(status: &str, is_declared: bool) -> bool {
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| is_declared || mode.trim() == "0")
}

/// Returns the estimate, or `None` when the kernel refuses, as in some containers.
pub(super) fn state() -> Option<KernelState> {
    let mut timex = Timex::new();
    let outcome = adjtimex(&mut timex).ok()?;
    Some(decode(outcome, &timex))
}

fn decode(outcome: i32, timex: &Timex) -> KernelState {
    let per_second = if timex.0.status & IN_NANOSECONDS == 0 { 1e6 } else { 1e9 };
    let distance = Distance {
        offset: timex.0.offset as f64 / per_second,
        estimated_error: timex.0.esterror as f64 / 1e6,
        maximum_error: timex.0.maxerror as f64 / 1e6,
    };
    KernelState { is_synchronized: outcome != NOT_SYNCHRONIZED, distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_in_microseconds_or_nanoseconds_and_errors_are_in_microseconds() {
        let mut timex = Timex::new();
        (timex.0.offset, timex.0.esterror, timex.0.maxerror) = (-250, 40, 30_000);
        let state = decode(0, &timex);
        assert!(state.is_synchronized);
        assert_eq!(state.distance.offset, -0.000_25);
        assert_eq!((state.distance.estimated_error, state.distance.maximum_error), (4e-5, 0.03));
        timex.0.status = IN_NANOSECONDS;
        let state = decode(NOT_SYNCHRONIZED, &timex);
        assert!(!state.is_synchronized);
        assert_eq!(state.distance.offset, -2.5e-7);
    }

    /// A forbidden call kills the process, and its unit restarts it forever.
    #[test]
    fn under_a_filter_the_unit_must_declare_the_permission() {
        let (free, filtered) = ("Name:\ta\nSeccomp:\t0\n", "Seccomp:\t2\nSeccomp_filters:\t1\n");
        assert!(may_call(free, false) && may_call(free, true));
        assert!(!may_call(filtered, false) && may_call(filtered, true));
        assert!(!may_call("", true), "an unknown state");
    }
}
