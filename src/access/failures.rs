//! Failed keys by address: an address with many failures gets a shorter answer, and fewer lines in
//! the log. A valid key is never refused, because its address may be that of a proxy.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
};

use crate::model::UnixMillis;

/// The number of failures of one address in a minute; further ones are answered with 429.
pub const FAILURES_MAX: u32 = 30;
/// The maximum number of addresses; a new address replaces the one that was added first.
pub const ADDRESSES_MAX: usize = 10_000;
const PERIOD_MS: i64 = 60_000;

/// The failures of each address in its current minute.
#[derive(Debug, Default)]
pub struct FailedKeys {
    by_address: HashMap<IpAddr, Failures>,
    /// The addresses in the order in which they were added.
    order: VecDeque<IpAddr>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    since: UnixMillis,
    count: u32,
}

impl FailedKeys {
    /// Counts a failure of an address; returns the number of its failures in this minute.
    pub fn count(&mut self, address: IpAddr, now: UnixMillis) -> u32 {
        let address = network(address);
        let first = Failures { since: now, count: 0 };
        if !self.by_address.contains_key(&address) {
            if self.order.len() >= ADDRESSES_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_address.remove(&oldest);
            }
            self.order.push_back(address);
        }
        let failures = self.by_address.entry(address).or_insert(first);
        // A clock that was set back begins another minute.
        let is_current = (0..PERIOD_MS).contains(&(now.0 - failures.since.0));
        if !is_current {
            *failures = first;
        }
        failures.count = failures.count.saturating_add(1);
        failures.count
    }
}

/// Returns the address under which a host is counted. An IPv6 host has all addresses of a /64, so
/// these count as one.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn failures_count_by_minute_and_by_host() {
        let (mut failed, start) = (FailedKeys::default(), UnixMillis(1_000_000));
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        assert_eq!(failed.count(one, start), 1);
        assert_eq!(failed.count(one, start.plus(PERIOD_MS - 1)), 2);
        assert_eq!(failed.count(other, start), 1);
        assert_eq!(failed.count(one, start.plus(PERIOD_MS)), 1);
        assert_eq!(failed.count(one, start), 1, "the clock was set back");
        assert_eq!(failed.count(address("2001:db8::1"), start), 1);
        assert_eq!(failed.count(address("2001:db8::2"), start), 2);
        assert_eq!(failed.count(address("2001:db8:0:1::2"), start), 1);
        // A listener on IPv6 sees the addresses of IPv4 in this form.
        assert_eq!(failed.count(address("::ffff:192.0.2.3"), start), 1);
        assert_eq!(failed.count(address("192.0.2.3"), start), 2);
        assert_eq!(failed.count(address("::ffff:192.0.2.4"), start), 1);
    }

    #[test]
    fn a_flood_of_addresses_takes_bounded_memory() {
        let mut failed = FailedKeys::default();
        for number in 0..3 * ADDRESSES_MAX as u32 {
            failed.count(IpAddr::from(number.to_be_bytes()), UnixMillis(0));
        }
        assert_eq!((failed.by_address.len(), failed.order.len()), (ADDRESSES_MAX, ADDRESSES_MAX));
        let newest = IpAddr::from((3 * ADDRESSES_MAX as u32 - 1).to_be_bytes());
        assert_eq!(failed.count(newest, UnixMillis(0)), 2);
        assert_eq!(failed.count(IpAddr::from([0, 0, 0, 0]), UnixMillis(0)), 1);
    }
}
