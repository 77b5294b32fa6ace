//! The files: journal, dictionary, catalog, head, documents, objects. FORMAT.md describes the
//! bytes.
//!
//! The only user of redb; only `documents/partition/rows` lays out BSON documents. Must never know:
//! HTTP, actors, settings files. The writer thread calls [`Appender`]; everybody else holds a
//! [`Store`].

// The shared test setup refers to this crate as `granary`.
#[cfg(test)]
extern crate self as granary;
#[cfg(test)]
#[path = "../../tests/support/setup.rs"]
#[allow(dead_code, clippy::panic, reason = "the tests in tests/ use more of it")]
mod setup;

// Paths are those of the crate granary, which reexports these crates.
use crate as store;
use granary_model as model;

mod append;
mod apply;
mod audit;
mod catalog;
mod checkpoint;
mod classes;
mod dictionary;
mod documents;
mod downgrade;
mod due;
mod encoding;
mod erasure;
mod error;
#[cfg(test)]
#[path = "../../tests/support/faulty/mod.rs"]
#[expect(dead_code, reason = "the simulation needs more of it")]
#[allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
pub(crate) mod faulty;
mod file;
mod followed;
mod fuzzing;
mod handle;
mod head;
mod histograms;
mod journal;
mod limits;
mod migrate;
mod objects;
mod rebuild;
mod recovery;
mod replica;
mod snapshot;
mod states;
mod transfer;
mod verify;
mod view;

pub use append::{Appender, CheckpointBounds, ErasureReport, Room};
pub use catalog::senders::SenderInfo;
pub use checkpoint::CheckpointReport;
pub use classes::ClassSpan;
pub use dictionary::{
    Dictionary, Matcher, ProjectDictionary,
    changes::{ChangeAction, ChangeRefusal, PARTS_MAX, Renaming, SeriesChange, SeriesUpdate},
};
pub use documents::{
    Columns, DocumentSpace, PartitionInfo, ShellsOfSpan, Slot,
    partition::rows::layout::DocumentLayout,
    stored::{DocumentState, StoredDocument, StoredPart, StoredSlot},
};
pub use downgrade::{DOWNGRADE_VERSION, DowngradeReport, downgrade};
pub use erasure::{
    cut::RefusedSlot,
    plan::{ERASED_DOCUMENTS_MAX, ERASED_SERIES_MAX, ErasedLevel, ErasureRefusal, ErasureRequest},
    replace::{NewReading, REPLACED_MAX, ReplaceRefusal, ReplaceVerdict},
};
pub use error::{LogFault, StoreError, is_disk_full};
pub use file::{folder::Folder, medium::Medium, space::DiskSpace, version::FORMAT_VERSION};
pub use followed::{ChangedSeries, FollowedPartition, SeriesSet, start_of_partition};
pub use fuzzing::{fuzz_head, fuzz_rows, fuzz_sealed};
pub use handle::{
    CheckedFile, ClosedStore, Count, Counters, LastSample, SealReport, Store, append_audit,
};
pub use head::row::{HeadRow, HeadRowWriter};
pub use journal::{
    file_log::FileLog,
    record_log::{RECORD_BYTES_MAX, RecordLog, RecordSink, RecordVisitor},
};
pub use limits::StoreLimits;
pub use migrate::{MigrationReport, StoreHome, migrate};
pub use objects::{
    KEYS_MAX, ListedObject, OBJECT_BYTES_MAX, OBJECT_NAME_BYTES_MAX, OBJECTS_BYTES_MAX,
    OBJECTS_MAX, Object, ObjectKind, ObjectRefusal,
};
pub use rebuild::{RebuildReport, RebuildWork, RebuiltLevel, RebuiltTimes, plan_rebuild, rebuild};
pub use recovery::RecoveryReport;
pub use replica::{Applied, DigestDifference, Replica, ReplicaFault, StoreDigest};
pub use snapshot::{SnapshotReport, folder::SnapshotFolder, restore};
pub use transfer::{
    CopyLimits, OutgoingCopy, ReceivedCopy, TransferError,
    incoming::receive_copy,
    replacing::{discard_replica, finish_transfer},
};
pub use verify::{Fault, VerifyProgress, VerifyReport, verify};
pub use view::{SampleLocations, Stretch, View};
