//! One replica with its medium and its clock.

use std::sync::Arc;

use fastrand::Rng;
use granary::{
    model::UnixMillis,
    store::{Appender, RecordSink, Replica, ReplicaFault, Store},
};

use crate::faulty::{Call, EIO, Effect, Fault, FaultyMedium};

/// The role of an open replica.
enum Role {
    Follows(Replica),
    Leads(Appender),
}

/// A replica, open or closed.
pub(super) struct Node {
    pub(super) medium: FaultyMedium,
    /// The offset of the clock from the true time.
    pub(super) clock_offset: i64,
    open: Option<(Store, Role)>,
    had_fault: bool,
}

impl Node {
    pub(super) fn new(seed: u64, clock_offset: i64) -> Self {
        Self { medium: FaultyMedium::new(seed), clock_offset, open: None, had_fault: false }
    }

    /// Opens the replica; an armed fault may fail the first attempt.
    pub(super) fn open(&mut self, first: &[u8], now: UnixMillis) {
        for attempt in 0.. {
            let opened = Replica::open(Arc::new(self.medium.clone()), Some(first), now);
            let fault = match opened {
                Ok((store, replica)) => {
                    store.set_segment_documents_min(1 + now.0 as usize % 3 * 200);
                    self.open = Some((store, Role::Follows(replica)));
                    return;
                }
                Err(fault) => fault,
            };
            assert!(attempt == 0 && self.had_fault(), "{}", fault.with_causes());
            self.close();
        }
    }

    /// Ends the process; the power returns if it was cut, and faults end.
    pub(super) fn close(&mut self) {
        self.note_faults();
        if self.medium.is_power_cut() {
            self.open = None;
            self.medium.power_up();
        } else {
            self.medium.kill();
            self.open = None;
        }
        self.medium.lift();
    }

    pub(super) fn store(&self) -> Store {
        self.open.as_ref().unwrap().0.clone()
    }

    pub(super) fn appender(&mut self) -> &mut Appender {
        let Some((_, Role::Leads(appender))) = &mut self.open else { panic!("it does not lead") };
        appender
    }

    fn replica(&mut self) -> &mut Replica {
        self.stop_leading();
        let Some((_, Role::Follows(replica))) = &mut self.open else { panic!("it is closed") };
        replica
    }

    pub(super) fn applied(&mut self) -> u64 {
        self.replica().applied()
    }

    pub(super) fn is_behind_files(&mut self) -> bool {
        self.replica().is_behind_files()
    }

    pub(super) fn durable_floor(&mut self) -> u64 {
        self.replica().durable_floor().unwrap()
    }

    /// Applies a record; `None` is a fence.
    pub(super) fn apply(&mut self, number: u64, record: Option<&[u8]>) -> Result<(), ReplicaFault> {
        let replica = self.replica();
        match record {
            Some(record) => replica.apply(number, record).map(drop),
            None => replica.pass(number).map(drop),
        }
    }

    pub(super) fn stop_leading(&mut self) {
        self.open = self.open.take().map(|(store, role)| match role {
            Role::Leads(appender) => (store, Role::Follows(appender.follow().unwrap())),
            follows @ Role::Follows(_) => (store, follows),
        });
    }

    pub(super) fn lead(&mut self, log: Box<dyn RecordSink>) {
        self.stop_leading();
        self.open = self.open.take().map(|(store, role)| match role {
            Role::Follows(replica) => (store, Role::Leads(replica.lead(log))),
            leads @ Role::Leads(_) => (store, leads),
        });
    }

    pub(super) fn arm(&self, rng: &mut Rng) {
        let call = [Call::Sync, Call::Sync, Call::Write, Call::Rename][rng.usize(0..4)];
        let effect = if rng.u8(0..3) > 0 { Effect::PowerCut } else { Effect::Error(EIO) };
        self.medium.arm(Fault { call, after: rng.u64(0..40), times: rng.u64(1..3), effect });
    }

    fn note_faults(&mut self) {
        self.had_fault |= !self.medium.take_hits().is_empty();
    }

    /// Returns true when the medium failed since the last call.
    pub(super) fn had_fault(&mut self) -> bool {
        self.note_faults();
        std::mem::take(&mut self.had_fault)
    }

    pub(super) fn has_lost_power(&self) -> bool {
        self.medium.is_power_cut()
    }
}
