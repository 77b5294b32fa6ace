//! Refused callers, joined by address, reason and minute, so that a flood becomes one record.
//!
//! Must never know: where records are stored.

use std::{collections::BTreeMap, net::IpAddr};

use super::failures::network;
use crate::model::{AuditKind, AuditOutcome, AuditRecord, UnixMillis, audit_text};

/// The maximum number of records in a minute; the refusals of further addresses are counted
/// together, by reason.
const JOINED_MAX: usize = 1000;
const PERIOD_MS: i64 = 60_000;
/// The text in place of the object when the joined refusals name several callers.
const SEVERAL: &str = "several names";

/// The caller of a refused request. A successful login has the same properties; see
/// [`RefusedCaller::accepted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedCaller<'a> {
    /// The credential.
    pub kind: AuditKind,
    /// The name that the caller has or claims; empty when there is none.
    pub who: &'a str,
    /// The address.
    pub address: Option<IpAddr>,
    /// The method and the route, or `login`.
    pub action: &'a str,
    /// The path of the request.
    pub object: &'a str,
    /// The status of the response.
    pub status: u16,
    /// The reason.
    pub reason: &'static str,
}

impl RefusedCaller<'_> {
    /// Returns the record of the same request as one that was accepted.
    pub fn accepted(&self, now: UnixMillis) -> AuditRecord {
        AuditRecord { outcome: AuditOutcome::Done, ..self.record(self.address, now) }
    }

    fn record(&self, address: Option<IpAddr>, now: UnixMillis) -> AuditRecord {
        AuditRecord {
            seq: 0,
            at: now.0,
            kind: self.kind,
            who: audit_text(self.who),
            address: address.map_or(String::new(), |address| address.to_canonical().to_string()),
            action: audit_text(self.action),
            object: audit_text(self.object),
            outcome: AuditOutcome::Refused,
            status: self.status,
            reason: self.reason.to_owned(),
            count: 1,
        }
    }
}

/// The refusals of the current minute of each address.
#[derive(Debug, Default)]
pub struct JoinedRefusals(BTreeMap<(Option<IpAddr>, &'static str), AuditRecord>);

impl JoinedRefusals {
    /// Adds a refusal.
    pub fn add(&mut self, refused: &RefusedCaller<'_>, now: UnixMillis) {
        let mut address = refused.address.map(network);
        if self.0.len() >= JOINED_MAX && !self.0.contains_key(&(address, refused.reason)) {
            address = None;
        }
        let shown = address.and(refused.address);
        let first = || AuditRecord { count: 0, ..refused.record(shown, now) };
        let record = self.0.entry((address, refused.reason)).or_insert_with(first);
        record.count += 1;
        if record.who != audit_text(refused.who) {
            record.who.clear();
            SEVERAL.clone_into(&mut record.object);
        }
    }

    /// Removes the records whose minute has ended, and returns them in the order of their times.
    /// After the clock was set back, all minutes count as ended.
    pub fn take_ended(&mut self, now: UnixMillis) -> Vec<AuditRecord> {
        let is_current = |record: &AuditRecord| (0..PERIOD_MS).contains(&(now.0 - record.at));
        let mut ended = Vec::new();
        self.0.retain(|_, record| {
            let stays = is_current(record);
            if !stays {
                ended.push(record.clone());
            }
            stays
        });
        in_order(ended)
    }

    /// Removes all records, and returns them in the order of their times.
    pub fn take_all(&mut self) -> Vec<AuditRecord> {
        in_order(std::mem::take(&mut self.0).into_values().collect())
    }
}

fn in_order(mut records: Vec<AuditRecord>) -> Vec<AuditRecord> {
    records.sort_by_key(|record| record.at);
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_764_000_000_000);

    fn refused<'a>(who: &'a str, address: &str, reason: &'static str) -> RefusedCaller<'a> {
        RefusedCaller {
            kind: AuditKind::User,
            who,
            address: address.parse().ok(),
            action: "login",
            object: "",
            status: 401,
            reason,
        }
    }

    #[test]
    fn refusals_of_an_address_are_one_record_a_minute() {
        let mut joined = JoinedRefusals::default();
        for at in 0..100 {
            joined.add(&refused("ann", "192.0.2.1", "password"), NOW.plus(at));
        }
        joined.add(&refused("ann", "192.0.2.1", "key"), NOW.plus(1));
        joined.add(&refused("bob", "192.0.2.2", "password"), NOW.plus(2));
        joined.add(&refused("eve\n", "192.0.2.2", "password"), NOW.plus(PERIOD_MS));
        assert_eq!(joined.take_ended(NOW.plus(PERIOD_MS - 1)), []);
        let ended = joined.take_ended(NOW.plus(PERIOD_MS));
        assert_eq!((ended.len(), ended[0].count, &*ended[0].who), (1, 100, "ann"));
        let rest = joined.take_all();
        let shown: Vec<_> = rest
            .iter()
            .map(|record| (&*record.who, &*record.address, &*record.object, record.count))
            .collect();
        assert_eq!(shown, [("ann", "192.0.2.1", "", 1), ("", "192.0.2.2", SEVERAL, 2)]);
        assert_eq!(joined.take_all(), []);
    }

    #[test]
    fn a_flood_from_many_addresses_takes_bounded_memory() {
        let mut joined = JoinedRefusals::default();
        for number in 0..5000_u32 {
            let address = IpAddr::from(number.to_be_bytes()).to_string();
            joined.add(&refused("", &address, "key"), NOW);
        }
        let all = joined.take_all();
        let others = all.iter().find(|record| record.address.is_empty()).unwrap();
        assert_eq!((all.len(), others.count), (JOINED_MAX + 1, 5000 - JOINED_MAX as u64));
    }
}
