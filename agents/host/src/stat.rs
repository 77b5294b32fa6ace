//! The parser of `/proc/stat`, because procfs lacks core numbers and interrupt totals.

use granary_agent_kit::SourceError;

/// The CPU time of a core by state, in ticks.
pub(crate) type Ticks = [u64; STATES];

/// The number of states: user, nice, kernel, idle, iowait, irq, softirq, steal, guest.
pub(crate) const STATES: usize = 9;

/// The content of `/proc/stat`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The times of the machine (`None`), and of each online core by its number.
    pub(crate) cores: Vec<(Option<String>, Ticks)>,
    /// The boot time, Unix seconds.
    pub(crate) boot_seconds: i64,
    pub(crate) interrupts: u64,
    pub(crate) soft_interrupts: u64,
    pub(crate) context_switches: u64,
    pub(crate) forks: u64,
    pub(crate) running: u64,
    pub(crate) blocked: u64,
}

impl Stat {
    /// Parses the text; states that an old kernel lacks are 0.
    pub(crate) fn parse(text: &str) -> Result<Self, SourceError> {
        let mut stat = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let key = words.next().unwrap_or_default();
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
            if let Some(core) = key.strip_prefix("cpu") {
                let mut ticks = [0; STATES];
                for state in &mut ticks {
                    *state = number().unwrap_or(0);
                }
                let core = (!core.is_empty()).then(|| core.to_owned());
                stat.cores.push((core, ticks));
                continue;
            }
            let first = number().unwrap_or(0);
            match key {
                "btime" => stat.boot_seconds = i64::try_from(first)?,
                "intr" => stat.interrupts = first,
                "softirq" => stat.soft_interrupts = first,
                "ctxt" => stat.context_switches = first,
                "processes" => stat.forks = first,
                "procs_running" => stat.running = first,
                "procs_blocked" => stat.blocked = first,
                _ => {}
            }
        }
        if stat.cores.is_empty() || stat.boot_seconds == 0 {
            return Err("/proc/stat: no line \"cpu\" or \"btime\"".into());
        }
        Ok(stat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_keep_their_numbers_when_a_core_is_offline() {
        let text = "cpu 10 1 2 3 4 5 6 7 8 9\ncpu0 5 0 1\ncpu2 5 1 1 3 4 5 6 7 8 9\n\
            intr 99 1 2\nctxt 77\nbtime 1795234648\nprocesses 12\nprocs_running 3\nprocs_blocked 1\n\
            softirq 55 1\n";
        let stat = Stat::parse(text).unwrap();
        let cores: Vec<_> = stat.cores.iter().map(|(core, _)| core.as_deref()).collect();
        assert_eq!(cores, [None, Some("0"), Some("2")]);
        assert_eq!(stat.cores[0].1, [10, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(stat.cores[1].1, [5, 0, 1, 0, 0, 0, 0, 0, 0]);
        let rest = (stat.interrupts, stat.soft_interrupts, stat.context_switches, stat.forks);
        assert_eq!(rest, (99, 55, 77, 12));
        assert_eq!((stat.running, stat.blocked, stat.boot_seconds), (3, 1, 1_795_234_648));
        assert!(Stat::parse("ctxt 5\n").is_err());
    }
}
