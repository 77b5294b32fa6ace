//! The delays after wrong logins. Each user at an address has a delay, and each address has one for
//! all of its users; a delay doubles with each wrong login, up to a minute. No user is ever locked
//! out: other addresses have their own delays, and a login during a delay does not lengthen it.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    net::IpAddr,
};

use super::{
    failures::network,
    token::{self, Digest},
};
use crate::model::UnixMillis;

/// The maximum number of remembered addresses, and of users at addresses; a new one replaces the
/// one that was added first.
pub const DELAYS_MAX: usize = 10_000;
/// The number of wrong logins of a user at an address that are not delayed.
const USER_FREE: u32 = 3;
/// The number of wrong logins of an address that are not delayed.
const ADDRESS_FREE: u32 = 20;
const FIRST_DELAY_MS: i64 = 1_000;
const DELAY_MAX_MS: i64 = 60_000;
/// The time after which wrong logins are forgotten.
const FORGET_MS: i64 = 15 * 60_000;

/// The wrong logins of users and addresses.
#[derive(Debug)]
pub struct Lockout {
    users: Delays<(IpAddr, Digest)>,
    addresses: Delays<IpAddr>,
}

/// A login that is being checked. It counts as wrong until its result is known, so that many
/// logins at the same time are delayed like many in a row.
#[derive(Debug)]
pub struct Attempt {
    user: (IpAddr, Digest),
    address: IpAddr,
    /// True when no other wrong login of the address is remembered.
    pub is_first: bool,
}

impl Default for Lockout {
    fn default() -> Self {
        Self { users: Delays::new(USER_FREE), addresses: Delays::new(ADDRESS_FREE) }
    }
}

impl Lockout {
    /// Begins a login of a user, who may be unknown.
    ///
    /// # Errors
    /// The delay has not ended; the error is the rest of it in milliseconds.
    pub fn begin(&mut self, user: &str, address: IpAddr, now: UnixMillis) -> Result<Attempt, i64> {
        let address = network(address);
        let user = (address, token::digest(user.as_bytes()));
        let wait = self.users.wait_ms(&user, now).max(self.addresses.wait_ms(&address, now));
        if wait > 0 {
            return Err(wait);
        }
        self.users.add(user, now);
        let is_first = self.addresses.add(address, now) == 1;
        Ok(Attempt { user, address, is_first })
    }

    /// Ends the delay of a user who logged in. The other wrong logins of the address still count,
    /// so that an attacker cannot clear them by logging in as another user.
    pub fn succeed(&mut self, attempt: &Attempt) {
        self.users.clear(&attempt.user);
        self.addresses.undo(&attempt.address);
    }

    /// Removes a login whose password was not checked.
    pub fn undo(&mut self, attempt: &Attempt) {
        self.users.undo(&attempt.user);
        self.addresses.undo(&attempt.address);
    }
}

#[derive(Debug)]
struct Delays<K> {
    by_key: HashMap<K, Failures>,
    /// The keys in the order in which they were added.
    order: VecDeque<K>,
    free: u32,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: UnixMillis,
}

impl<K: Copy + Eq + Hash> Delays<K> {
    fn new(free: u32) -> Self {
        Self { by_key: HashMap::new(), order: VecDeque::new(), free }
    }

    fn wait_ms(&mut self, key: &K, now: UnixMillis) -> i64 {
        let Some(failures) = self.by_key.get_mut(key) else { return 0 };
        // After the clock was set back, the delay begins again, but is not longer.
        failures.last = failures.last.min(now);
        let elapsed = now.0 - failures.last.0;
        if elapsed >= FORGET_MS {
            failures.count = 0;
        }
        match failures.count.checked_sub(self.free) {
            None | Some(0) => 0,
            Some(beyond) => {
                let delay = FIRST_DELAY_MS << (beyond - 1).min(16);
                (delay.min(DELAY_MAX_MS) - elapsed).max(0)
            }
        }
    }

    /// Counts a wrong login. Returns the number of wrong logins of the key that are remembered.
    fn add(&mut self, key: K, now: UnixMillis) -> u32 {
        if !self.by_key.contains_key(&key) {
            if self.order.len() >= DELAYS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_key.remove(&oldest);
            }
            self.order.push_back(key);
        }
        let failures = self.by_key.entry(key).or_insert(Failures { count: 0, last: now });
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
        failures.count
    }

    fn clear(&mut self, key: &K) {
        if let Some(failures) = self.by_key.get_mut(key) {
            failures.count = 0;
        }
    }

    fn undo(&mut self, key: &K) {
        if let Some(failures) = self.by_key.get_mut(key) {
            failures.count = failures.count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    const NOW: UnixMillis = UnixMillis(1_000_000_000);

    #[test]
    fn the_delay_of_a_user_doubles_to_a_minute_and_another_address_has_none() {
        let (mut lockout, mut now) = (Lockout::default(), NOW);
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        let mut waits = Vec::new();
        for _ in 0..12 {
            if let Err(wait) = lockout.begin("ann", one, now) {
                waits.push(wait / 1000);
                let wait_again = lockout.begin("ann", one, now.plus(1)).unwrap_err();
                assert_eq!(wait_again, wait - 1, "a login during the delay does not lengthen it");
                now = now.plus(wait);
                lockout.begin("ann", one, now).unwrap();
            }
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(lockout.begin("ann", other, now).is_ok());
        assert!(lockout.begin("bob", one, now).is_ok());
        // A login ends the delay, and so does a quarter of an hour.
        now = now.plus(60_000);
        let attempt = lockout.begin("ann", one, now).unwrap();
        lockout.succeed(&attempt);
        assert!(lockout.begin("ann", one, now).is_ok());
        (0..9).for_each(|_| drop(lockout.begin("eve", other, now)));
        assert!(lockout.begin("eve", other, now.plus(999)).is_err());
        assert!(lockout.begin("eve", other, now.plus(FORGET_MS)).is_ok());
    }

    #[test]
    fn an_address_is_delayed_for_all_names_and_cannot_clear_its_delay() {
        let mut lockout = Lockout::default();
        let one = address("2001:db8::1");
        for number in 0..ADDRESS_FREE {
            let _wrong = lockout.begin(&format!("other{number}"), one, NOW).unwrap();
            let own = lockout.begin("own", one, NOW).unwrap();
            lockout.succeed(&own);
        }
        let _wrong = lockout.begin("other", one, NOW).unwrap();
        assert_eq!(lockout.begin("own", address("2001:db8::2"), NOW).unwrap_err(), 1000);
        assert!(lockout.begin("own", address("2001:db8:0:1::1"), NOW).is_ok());
        let later = NOW.plus(1_000);
        let undone = lockout.begin("own", one, later).unwrap();
        lockout.undo(&undone);
        let _wrong = lockout.begin("own", one, later.plus(1_000)).unwrap();
        assert_eq!(lockout.begin("own", one, later.plus(1_000)).unwrap_err(), 2_000);
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_for_longer() {
        let (mut lockout, one) = (Lockout::default(), address("192.0.2.1"));
        while lockout.begin("ann", one, NOW).is_ok() {}
        let before = NOW.plus(-86_400_000);
        assert_eq!(lockout.begin("ann", one, before).unwrap_err(), 1_000);
        assert!(lockout.begin("ann", one, before.plus(1_000)).is_ok());
    }

    #[test]
    fn a_flood_of_names_and_addresses_takes_bounded_memory() {
        let mut lockout = Lockout::default();
        for number in 0..3 * DELAYS_MAX as u32 {
            let address = IpAddr::from(number.to_be_bytes());
            drop(lockout.begin(&number.to_string(), address, NOW));
        }
        let sizes = [lockout.users.by_key.len(), lockout.users.order.len()];
        assert_eq!(sizes, [DELAYS_MAX; 2]);
        assert_eq!(
            [lockout.addresses.by_key.len(), lockout.addresses.order.len()],
            [DELAYS_MAX; 2]
        );
    }
}
