//! State that outlives requests and that several roles share: rules, hosts, silences, alerts of
//! other programs, dashboards, annotations, keys, codes, users, snapshots, the settings in use,
//! cardinality. Most of this state is in the store's objects. [`LiveValue`] is a setting or other
//! value that can be replaced.
//!
//! A type such as `KnownRules` is a handle to one kind of state. Its clones are cheap; it validates
//! its input and works on the caller's thread. Must never know: HTTP, actors, rendering.
//!
//! | handle | limit and overflow rule |
//! |---|---|
//! | posted alerts | 10,000 alerts and 16 MiB; others are refused and counted |
//! | silences, keys, codes, users, texts of rules and receivers | one change at a time; others wait |
//! | audit | 1,024 records of changes wait; further changes are refused |
//! | snapshots | one at a time; others are refused |

pub mod annotation;
pub mod annotations;
mod audit;
mod cardinality;
mod codes;
pub mod dashboard;
pub mod dashboards;
mod hosts;
mod keys;
mod live;
mod near_names;
mod people;
mod posted;
mod records;
mod rules;
mod settings;
mod silences;
mod snapshots;

pub use annotation::{Annotation, AnnotationSource, NewAnnotation};
pub use annotations::{ANNOTATIONS_ANSWERED_MAX, Annotations, AnnotationsAnswer, AnnotationsQuery};
pub use audit::{
    AUDIT_RECORDS_ANSWERED_MAX, Audit, AuditAnswer, AuditPermit, AuditQuery, LoginOutcome,
};
pub use cardinality::{CardinalityAnswer, CountedName, KnownCardinality};
pub use codes::{CodeAnswer, KnownCodes, NewCodeAnswer};
pub use dashboard::Dashboard;
pub use dashboards::{DashboardAnswer, DashboardFiles, DashboardsAnswer};
pub use hosts::{KnownHosts, ListedHosts};
pub use keys::{KeyAnswer, KeyFault, KnownKeys, NewKeyAnswer};
pub use live::LiveValue;
pub use near_names::{NearName, NearNames};
pub use people::{
    KnownPeople, LoginRequest, NewSession, NewUser, OwnChange, PeopleFault, SessionAnswer,
    UserAnswer, UserChange,
};
pub use posted::KnownPostedAlerts;
pub(crate) use records::{Records, fault_of};
pub(crate) use rules::{ACKNOWLEDGEMENTS_MAX, AcknowledgeResult, LoadedRules};
pub use rules::{
    Acknowledge, AcknowledgeFault, AlertText, CheckedText, GroupStatus, KnownRules, NotifiedGroup,
    ReadRules, RuleSet, RuleSources, SavedText, SourceFault, TEXT_BYTES_MAX, TextAnswer, TextFault,
    TextFaultAnswer, TextsAnswer, read_routing,
};
pub use settings::{
    KeptSetting, KnownSettings, ReloadAnswer, ReloadRequest, SettingChange, SettingsAnswer,
};
pub use silences::{KnownSilences, SilencingFault};
pub use snapshots::{SnapshotFault, SnapshotSettings, Snapshots};

use crate::store::{ObjectRefusal, StoreError};

/// The maximum length of the name of an object that people name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The reason why an object is not shown or changed.
#[derive(Debug, thiserror::Error)]
pub enum ObjectFault {
    /// The object is invalid; the message begins with the location.
    #[error("{0}")]
    Invalid(String),
    /// The object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The store refuses the object: it has changed since it was read, is too large, or exceeds the
    /// quota.
    #[error(transparent)]
    Refused(#[from] ObjectRefusal),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks the name of an object that people name, which is part of addresses.
fn check_object_name(kind: &str, name: &str) -> Result<(), String> {
    let is_plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(format!("{name:?} is not a {kind} name: use 1 to {NAME_BYTES_MAX} of a-z, 0-9 and -"))
}

/// Refuses a text that is too long or has control characters other than tabs and line breaks.
fn check_text(location: &str, text: &str, bytes_max: usize) -> Result<(), ObjectFault> {
    if text.len() > bytes_max {
        let length = text.len();
        let message = format!("{location}: {length} bytes exceed the limit of {bytes_max}");
        return Err(ObjectFault::Invalid(message));
    }
    let is_refused = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    if text.contains(is_refused) {
        return Err(ObjectFault::Invalid(format!("{location}: it has a control character")));
    }
    Ok(())
}

/// Refuses a text that is empty, has several lines, or that [`check_text`] refuses.
fn check_line(location: &str, text: &str, bytes_max: usize) -> Result<(), ObjectFault> {
    if text.trim().is_empty() {
        return Err(ObjectFault::Invalid(format!("{location}: it is empty")));
    }
    if text.contains(['\n', '\r']) {
        return Err(ObjectFault::Invalid(format!("{location}: it has more than one line")));
    }
    check_text(location, text, bytes_max)
}
