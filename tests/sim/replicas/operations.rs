//! The operations of the leader: every kind of change, with random arguments.

use granary::{
    model::{
        AcceptedBatch, BatchNumber, Deduplication, DefinitionVerdict, Kind, SeriesId, SeriesInfo,
        SeriesLimits, UnixMillis, replica::Replica,
    },
    store::{
        Appender, ChangeAction, ErasureRequest, LogFault, Matcher, NewReading, Renaming,
        SeriesChange, Store, StoreError, StoreLimits,
    },
};

use super::{Cluster, levels};
use crate::setup::{DAY, HOUR, MINUTE, SECOND, series};

/// The events that must happen in a default run.
pub(super) const EVENTS: [&str; 31] = [
    "batches",
    "changed hosts",
    "changed objects",
    "changed retentions",
    "changes of kinds",
    "changes of series",
    "compared answers of the past",
    "comparisons",
    "conflicts of objects",
    "cuts",
    "deleted objects",
    "erasures",
    "failed applications",
    "failed operations",
    "failovers",
    "fences",
    "forgotten senders",
    "forgotten series",
    "forgotten senders for others",
    "late samples",
    "maintenance",
    "new nodes",
    "replaced readings",
    "replicas behind their files",
    "restarts",
    "restarts after faults",
    "retries",
    "samples beyond every retention",
    "samples of unselected replicas",
    "takeovers",
    "unsettled objects",
];

/// Prometheus' stale marker.
const STALE: u64 = 0x7ff0_0000_0000_0002;
const SENDERS: u64 = 5;
/// The number of the first operation that changes objects or hosts.
const OBJECTS: u8 = 44;
const LIMITS: StoreLimits =
    StoreLimits { series_max: 60, sender_series_max: 60, senders_max: 4, sender_idle_ms: 2 * HOUR };

impl Cluster {
    /// Runs an operation on the leader.
    pub(super) fn write(&mut self) {
        let (node, operation) = (self.leader, self.rng.u8(0..52));
        let now = self.clock(node);
        self.nodes[node].appender().set_limits(LIMITS);
        let before = Counts::of(&self.store(node));
        let (event, outcome) = match operation {
            0..24 => ("batches", self.send(now)),
            24..27 => ("changes of series", self.change(now)),
            27..29 => ("changes of kinds", self.change_kinds(now)),
            29..31 => ("forgotten senders", self.forget_senders(now)),
            31..37 => ("forgotten series", self.forget_series(now)),
            37..40 => ("erasures", self.erase(now)),
            40..43 => ("replaced readings", self.replace(now)),
            43 => ("changed retentions", self.change_retentions(now)),
            OBJECTS..50 => ("changed objects", self.change_object(now)),
            _ => ("changed hosts", self.keep_hosts(now)),
        };
        let is_done = outcome.is_ok();
        match outcome {
            Ok(changed) if changed => self.note(event),
            Ok(_) => {}
            // The next operation appends the record again.
            Err(StoreError::Log(fault))
                if operation >= OBJECTS
                    && matches!(*fault, LogFault::Unknown { .. })
                    && self.rng.bool() =>
            {
                self.is_unsettled = true;
                self.note("unsettled objects");
            }
            Err(fault) => self.fail(node, &fault),
        }
        if is_done {
            // A change of objects settles an earlier one, even when it is refused.
            self.is_unsettled &= operation < OBJECTS;
            let after = Counts::of(&self.store(node));
            after.note(&before, self);
        }
    }

    /// Continues after a failed operation: a node must follow before it leads again.
    fn fail(&mut self, node: usize, fault: &StoreError) {
        let is_of_log = matches!(fault, StoreError::Log(_));
        assert!(self.nodes[node].had_fault() || is_of_log, "{}", fault.with_causes());
        self.note("failed operations");
        if self.rng.bool() && !self.nodes[node].has_lost_power() {
            self.nodes[node].medium.lift();
            if self.appender().retry().is_ok_and(|is_done| is_done) {
                self.note("retries");
                return;
            }
        }
        self.nodes[node].stop_leading();
        if self.nodes[node].has_lost_power() {
            self.recover(node);
        }
        self.nodes[node].medium.lift();
        self.take_over(node);
    }

    fn appender(&mut self) -> &mut Appender {
        let leader = self.leader;
        self.nodes[leader].appender()
    }

    /// Returns a random series; the metric determines the kind at first.
    fn info(&mut self) -> SeriesInfo {
        let (metric, host) = (self.rng.usize(0..6), self.rng.u8(0..4).to_string());
        let kind = [Kind::Gauge, Kind::Counter, Kind::Delta][metric % 3];
        let info = series(&format!("m{metric}"), &[("host", &host)], kind);
        SeriesInfo { sender: format!("agent{host}").into(), ..info }
    }

    fn send(&mut self, now: UnixMillis) -> Result<bool, StoreError> {
        let infos: Vec<_> = (0..self.rng.usize(1..4)).map(|_| self.info()).collect();
        let verdicts = self.appender().commit(&infos, &[], now)?.definitions;
        let ids: Vec<_> = verdicts.into_iter().filter_map(id_of).collect();
        let batches: Vec<_> = (0..self.rng.usize(1..4)).map(|_| self.batch(&ids, now)).collect();
        if self.appender().names_forgotten(&batches) {
            return Ok(false);
        }
        self.appender().commit(&[], &batches, now)?;
        Ok(true)
    }

    fn batch(&mut self, ids: &[SeriesId], now: UnixMillis) -> AcceptedBatch {
        let mut batch = AcceptedBatch::default();
        let count = if ids.is_empty() { 0 } else { self.rng.usize(0..9) };
        for _ in 0..count {
            batch.series.push(ids[self.rng.usize(0..ids.len())]);
            let age = match self.rng.u8(0..10) {
                0..7 => self.rng.i64(0..10 * MINUTE),
                7 => self.rng.i64(0..8 * HOUR),
                8 => self.rng.i64(0..4 * DAY),
                _ => self.rng.i64(0..7 * 365 * DAY),
            };
            if age > HOUR {
                self.note("late samples");
            }
            // Foreign senders repeat times.
            batch.times.push((now.0 - age) / SECOND * SECOND);
            // Sums of these numbers depend on the order of additions.
            batch.values.push(match self.rng.u8(0..20) {
                0 => f64::from_bits(STALE),
                1 => -0.0,
                _ => f64::from(self.rng.u32(0..100_000)) * 0.1,
            });
        }
        if self.rng.bool() {
            batch.starts = vec![now.0 - self.rng.i64(0..2 * HOUR)];
        }
        let sender = self.rng.u64(0..SENDERS);
        batch.deduplication = match self.rng.u8(0..4) {
            0 => Deduplication::Never,
            1 => Deduplication::ByTime { window_ms: 10 * MINUTE },
            _ => {
                let (sender, seq) = (format!("agent{sender}").into(), self.rng.u64(1..2000));
                Deduplication::ByNumber(BatchNumber { sender, epoch: self.rng.i64(1..7), seq })
            }
        };
        if self.rng.u8(0..4) == 0 {
            batch.replica = Some(Replica { group: 0, failover_ms: 30_000, sender });
        }
        batch
    }

    fn matchers(&mut self) -> Vec<Matcher> {
        let info = self.info();
        let value = info.key.tag("host").unwrap_or_default().to_owned();
        let host = Matcher { tag: "host".to_owned(), value };
        let metric = Matcher { tag: "__name__".to_owned(), value: info.key.metric().to_owned() };
        if self.rng.bool() { vec![host, metric] } else { vec![metric] }
    }

    fn change(&mut self, now: UnixMillis) -> Result<bool, StoreError> {
        let matchers = self.matchers();
        let host = self.rng.u8(0..4).to_string();
        let tags = vec![("host".to_owned(), host)];
        let renaming = Renaming { metric: None, tags, limits: SeriesLimits::default() };
        let action = match self.rng.u8(0..3) {
            0 => ChangeAction::Delete,
            1 => ChangeAction::Rename(renaming),
            _ => ChangeAction::Merge(renaming),
        };
        let changed = self.appender().change(&SeriesChange { matchers, action }, now)?;
        Ok(changed.is_ok_and(|count| count > 0))
    }

    fn change_kinds(&mut self, now: UnixMillis) -> Result<bool, StoreError> {
        let kind = [Kind::Gauge, Kind::Counter, Kind::Delta][self.rng.usize(0..3)];
        let infos: Vec<_> = (0..3).map(|_| SeriesInfo { kind, ..self.info() }).collect();
        let before = self.store(self.leader).counters().kinds_changed.get();
        self.appender().change_kinds(&infos, now)?;
        Ok(self.store(self.leader).counters().kinds_changed.get() > before)
    }

    fn forget_senders(&mut self, now: UnixMillis) -> Result<bool, StoreError> {
        let sender = format!("agent{}", self.rng.u64(0..SENDERS)).into();
        Ok(self.appender().forget(&[sender], now)? > 0)
    }

    fn forget_series(&mut self, now: UnixMillis) -> Result<bool, StoreError> {
        let unused = self.store(self.leader).series_without_samples(now, 9);
        Ok(self.appender().forget_series(&unused, now)? > 0)
    }

    fn erase(&mut self, now: UnixMillis) -> Result<bool, StoreError> {
        let (matchers, age) = (self.matchers(), self.rng.i64(0..3 * DAY));
        let start = now.minus(age).0 / MINUTE * MINUTE;
        let start = if self.rng.bool() { start / DAY * DAY } else { start };
        let range = UnixMillis(start)..UnixMillis(start + self.rng.i64(1..30) * HOUR);
        let request = ErasureRequest { matchers, range };
        let report = self.appender().erase(&request, false, now)?;
        if self.rng.bool() {
            self.store(self.leader).complete_erasure()?;
        }
        Ok(report.is_ok_and(|report| report.series > 0))
    }

    fn replace(&mut self, now: UnixMillis) -> Result<bool, StoreError> {
        let count = self.store(self.leader).dictionary().id_count() as u32;
        if count == 0 {
            return Ok(false);
        }
        let series = SeriesId(self.rng.u32(0..count));
        let store = self.store(self.leader);
        let is_living = store.dictionary().key(series).is_some();
        let last = store.last_samples(&[series])[0];
        let Some(last) = last.filter(|_| is_living) else { return Ok(false) };
        let at = last.at.minus(self.rng.i64(0..2) * self.rng.i64(0..HOUR));
        let reading = NewReading { series, at, value: f64::from(self.rng.u8(..)) };
        Ok(self.appender().replace(&[reading], now)?.is_some())
    }

    fn change_retentions(&mut self, now: UnixMillis) -> Result<bool, StoreError> {
        let set = levels(["4h", "6h", "1d"][self.rng.usize(0..3)]);
        let rules = self.rules.clone();
        Ok(self.appender().change_retentions(&set, &rules, now)? > 0)
    }
}

fn id_of(verdict: DefinitionVerdict) -> Option<SeriesId> {
    match verdict {
        DefinitionVerdict::Known(id) | DefinitionVerdict::KindConflict(id, _) => Some(id),
        DefinitionVerdict::StoreLimit
        | DefinitionVerdict::SenderLimit
        | DefinitionVerdict::MetricLimit
        | DefinitionVerdict::ProjectLimit => None,
    }
}

/// Counters of a store whose increase is an event.
struct Counts([(&'static str, u64); 4]);

impl Counts {
    fn of(store: &Store) -> Self {
        let counters = store.counters();
        Self([
            ("failovers", counters.failovers.get()),
            ("samples of unselected replicas", counters.samples_of_replicas.get()),
            ("samples beyond every retention", counters.samples_not_kept.get()),
            ("forgotten senders for others", counters.senders_forgotten.get()),
        ])
    }

    fn note(&self, before: &Self, cluster: &mut Cluster) {
        for ((event, after), (_, before)) in self.0.iter().zip(before.0) {
            if *after > before {
                cluster.note(event);
            }
        }
    }
}
