//! The roles that write and maintain an open store: the start and the clean stop.
//!
//! Must never know: requests, which shard the store is.

use std::{sync::Arc, time::Duration};

use actix::{Addr, Arbiter};
use anyhow::Context;
use tokio::task::spawn_blocking;

use super::{
    notice_changes, start_on_arbiter,
    storing::{checker, checkpointer, preallocator, publisher, retention, sealer, writer_parts},
    within,
};
use crate::{
    actors::{
        Checker, Checkpointer, Lifelines, Preallocator, PublishedState, Publisher, Retention,
        Sealer, Stop, StopFlag, Writer, WriterHandle,
    },
    clock::{Clock, TrustedClock},
    config::LiveSettings,
    kept::KnownCardinality,
    store::{Appender, Store},
    telemetry::Metrics,
};

/// The roles of a store.
pub(super) struct StoreRoles {
    writer: Writer,
    writer_handle: WriterHandle,
    checkpointer: Addr<Checkpointer>,
    preallocator: Addr<Preallocator>,
    retention: Addr<Retention>,
    sealer: Addr<Sealer>,
    checker: Option<Addr<Checker>>,
    publisher: Option<Publisher>,
    /// Aborts the current work of the sealer, the checker and the publisher.
    background_stop: StopFlag,
    arbiters: Vec<Arbiter>,
}

impl StoreRoles {
    /// Starts the roles. `cardinality` has the numbers of series of each project.
    pub(super) fn start(
        settings: &mut LiveSettings,
        (store, appender): (&Store, Appender),
        clock: &TrustedClock,
        (metrics, published): (&Metrics, &PublishedState),
        cardinality: &[(Store, KnownCardinality)],
        lifelines: &Lifelines,
    ) -> anyhow::Result<Self> {
        let (mut arbiters, health) = (Vec::new(), &published.health);
        let reports = (metrics, published);
        let any: Arc<dyn Clock> = Arc::new(clock.clone());
        let role = checkpointer(settings, store, &any, metrics, published, lifelines);
        let checkpointer = start_on_arbiter(&mut arbiters, role);
        notice_changes(settings, "the checkpointer", checkpointer.clone().recipient());
        let mailbox = checkpointer.clone().recipient();
        let parts = writer_parts(settings, store, appender, &any, reports, lifelines, mailbox);
        let (writer, writer_handle) = Writer::start(parts).context("start the writer thread")?;
        let role = preallocator(settings, store, &any, health, lifelines);
        let preallocator = start_on_arbiter(&mut arbiters, role);
        let role =
            retention(settings, store, clock, reports, cardinality, &writer_handle, lifelines);
        let retention = start_on_arbiter(&mut arbiters, role);
        let background_stop = StopFlag::default();
        let role = sealer(settings, store, clock, health, &background_stop, lifelines);
        let sealer = start_on_arbiter(&mut arbiters, role);
        let publisher = publisher(settings, store, clock, reports, &background_stop, lifelines)?;
        let checker = checker(settings, store, clock, &background_stop, lifelines)
            .map(|role| start_on_arbiter(&mut arbiters, role));
        Ok(Self {
            writer,
            writer_handle,
            checkpointer,
            preallocator,
            retention,
            sealer,
            checker,
            publisher,
            background_stop,
            arbiters,
        })
    }

    /// Returns the handle of the writer.
    pub(super) fn writer(&self) -> &WriterHandle {
        &self.writer_handle
    }

    /// Commits the batches that wait for the journal; later ones are refused.
    pub(super) async fn commit(&self, step: Duration) {
        within("the writer", step, self.writer_handle.stop()).await;
    }

    /// Ends the roles that write in the background.
    pub(super) async fn end_background(&mut self, step: Duration) {
        within("the preallocator", step, self.preallocator.send(Stop)).await;
        within("retention", step, self.retention.send(Stop)).await;
        self.background_stop.set();
        within("the sealer", step, self.sealer.send(Stop)).await;
        if let Some(checker) = &self.checker {
            within("the checker", step, checker.send(Stop)).await;
        }
        if let Some(publisher) = self.publisher.take() {
            within("the publisher", step, spawn_blocking(|| publisher.join())).await;
        }
    }

    /// Runs a last checkpoint, which leaves nothing to replay for the next start, and ends the
    /// threads.
    pub(super) async fn finish(self, step: Duration) {
        within("the last checkpoint", step * 2, self.checkpointer.send(Stop)).await;
        let writer = self.writer;
        within("the writer's thread", step, spawn_blocking(|| writer.join())).await;
        self.arbiters.iter().for_each(|arbiter| {
            arbiter.stop();
        });
    }
}
