//! The audit: who changed what, and who was refused, written to the store.
//!
//! A change gets a permit for its record before it is made, and the record is durable before the
//! response is sent; records that wait at the same time are written together. Equal refusals are
//! combined, and written by [`Audit::write_refusals`]. Must never know: HTTP, what a change does.

use std::{
    net::IpAddr,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    access::{JoinedRefusals, RefusedCaller},
    model::{AuditKind, AuditRecord, UnixMillis, with_causes},
    store::{Store, StoreError},
    telemetry::Metrics,
};

/// The maximum number of changes whose records wait; further changes are refused.
const WAITING_MAX: usize = 1024;
/// The maximum number of records in an answer.
pub const AUDIT_RECORDS_ANSWERED_MAX: usize = 1000;

/// The audit of a daemon. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Audit(Arc<SharedAudit>);

#[derive(Debug)]
struct SharedAudit {
    store: Store,
    metrics: Metrics,
    permits: Arc<Semaphore>,
    /// The records that wait for the thread that writes.
    waiting: Mutex<Vec<AuditRecord>>,
    /// Held by the thread that writes.
    write_lock: Mutex<()>,
    refusals: Mutex<JoinedRefusals>,
    is_failing: AtomicBool,
}

/// A permit for the record of a change.
#[derive(Debug)]
pub struct AuditPermit(
    #[expect(dead_code, reason = "held until the record is written")] OwnedSemaphorePermit,
);

/// A query of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditQuery {
    /// The earliest time.
    pub since: UnixMillis,
    /// The latest time, exclusive.
    pub until: UnixMillis,
    /// The name of the caller; `None` for any caller.
    pub who: Option<String>,
    /// The exclusive upper bound of the records' numbers.
    pub before: u64,
    /// The maximum number of records.
    pub limit: usize,
}

/// The records of an answer, newest first.
#[derive(Debug, Serialize)]
pub struct AuditAnswer {
    /// The records.
    pub records: Vec<AuditRecord>,
    /// The value of `before` for the next older records; `None` when there are none.
    pub before: Option<u64>,
}

/// The outcome of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginOutcome {
    /// The person is logged in.
    Done,
    /// The login was refused for a reason, such as `password`, with a status.
    Refused {
        /// The reason.
        reason: &'static str,
        /// The status of the response.
        status: u16,
    },
}

impl Audit {
    /// Returns the audit of a store.
    pub fn new(store: &Store, metrics: &Metrics) -> Self {
        Self(Arc::new(SharedAudit {
            store: store.clone(),
            metrics: metrics.clone(),
            permits: Arc::new(Semaphore::new(WAITING_MAX)),
            waiting: Mutex::default(),
            write_lock: Mutex::default(),
            refusals: Mutex::default(),
            is_failing: AtomicBool::new(false),
        }))
    }

    /// Returns a permit for the record of a change; `None` when too many records wait.
    pub fn reserve(&self) -> Option<AuditPermit> {
        self.0.permits.clone().try_acquire_owned().ok().map(AuditPermit)
    }

    /// Writes the record of a change, durably, on the caller's thread. A failure is logged: the
    /// change is made, and a full disk must not prevent the deletions that free it.
    pub fn write(&self, record: AuditRecord, _permit: AuditPermit) {
        self.0.waiting.lock().push(record);
        let _write_lock = self.0.write_lock.lock();
        // Another thread may have written the record together with its own.
        let records = std::mem::take(&mut *self.0.waiting.lock());
        self.append(records);
    }

    /// Writes the record of a change that no request made, durably, on the caller's thread.
    pub fn write_other(&self, record: AuditRecord) {
        let _write_lock = self.0.write_lock.lock();
        self.append(vec![record]);
    }

    /// Adds a refused caller, whose record is written later.
    pub fn note_refusal(&self, refused: &RefusedCaller<'_>, now: UnixMillis) {
        self.0.refusals.lock().add(refused, now);
    }

    /// Notes the outcome of a login with a password; see [`Audit::note_login_at`].
    pub fn note_login(
        &self,
        name: &str,
        address: Option<IpAddr>,
        outcome: LoginOutcome,
        now: UnixMillis,
    ) {
        self.note_login_at("", name, address, outcome, now);
    }

    /// Notes the outcome of a login; `object` is the provider, or empty for a login with a
    /// password. A successful login is written at once, on the caller's thread.
    pub fn note_login_at(
        &self,
        object: &str,
        name: &str,
        address: Option<IpAddr>,
        outcome: LoginOutcome,
        now: UnixMillis,
    ) {
        let (status, reason) = match outcome {
            LoginOutcome::Done => (200, ""),
            LoginOutcome::Refused { reason, status } => (status, reason),
        };
        let kind = AuditKind::User;
        let action = "login";
        let caller = RefusedCaller { kind, who: name, address, action, object, status, reason };
        if outcome == LoginOutcome::Done {
            let _write_lock = self.0.write_lock.lock();
            self.append(vec![caller.accepted(now)]);
        } else {
            self.note_refusal(&caller, now);
        }
    }

    /// Writes the refusals whose minute has ended.
    pub fn write_refusals(&self, now: UnixMillis) {
        let ended = self.0.refusals.lock().take_ended(now);
        let _write_lock = self.0.write_lock.lock();
        self.append(ended);
    }

    /// Writes all refusals.
    pub fn write_all_refusals(&self) {
        let all = self.0.refusals.lock().take_all();
        let _write_lock = self.0.write_lock.lock();
        self.append(all);
    }

    fn append(&self, records: Vec<AuditRecord>) {
        if records.is_empty() {
            return;
        }
        let count = records.len() as u64;
        let joined: u64 = records.iter().map(|record| record.count - 1).sum();
        let is_failing = match self.0.store.append_audit(records) {
            Ok(()) => {
                self.0.metrics.people.audit_records.inc_by(count);
                self.0.metrics.people.audit_joined.inc_by(joined);
                false
            }
            Err(cause) => {
                self.0.metrics.people.audit_lost.inc_by(count);
                if !self.0.is_failing.load(Ordering::Relaxed) {
                    let cause = with_causes(&cause);
                    tracing::error!(cause, "cannot write the audit; changes continue without it");
                }
                true
            }
        };
        if self.0.is_failing.swap(is_failing, Ordering::Relaxed) && !is_failing {
            tracing::info!("the audit is written again");
        }
    }

    /// Returns records, newest first, including all refusals until now.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn read(&self, query: &AuditQuery) -> Result<AuditAnswer, StoreError> {
        self.write_all_refusals();
        let (mut records, mut before) = (Vec::new(), None);
        let limit = query.limit.clamp(1, AUDIT_RECORDS_ANSWERED_MAX);
        let times = query.since.0..query.until.0;
        self.0.store.visit_audit_backwards(query.before, &mut |record| {
            let fits = times.contains(&record.at)
                && query.who.as_ref().is_none_or(|who| *who == record.who);
            if !fits {
                return ControlFlow::Continue(());
            }
            if records.len() == limit {
                before = records.last().map(|last: &AuditRecord| last.seq);
                return ControlFlow::Break(());
            }
            records.push(record);
            ControlFlow::Continue(())
        })?;
        Ok(AuditAnswer { records, before })
    }
}
