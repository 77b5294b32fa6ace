//! The kinds of objects, their limits, and the reasons for which a change is refused.
//!
//! Must never know: how objects are stored.

use std::fmt;

use strum::{IntoStaticStr, VariantArray};

use crate::model::UnixMillis;

/// The maximum size of a name in bytes.
pub const OBJECT_NAME_BYTES_MAX: usize = 256;
/// The maximum size of an object in bytes.
pub const OBJECT_BYTES_MAX: usize = 1 << 20;
/// The maximum number of objects of one kind other than keys.
pub const OBJECTS_MAX: u64 = 10_000;
/// The maximum number of keys: one for each agent of the largest fleets.
pub const KEYS_MAX: u64 = 120_000;
/// The maximum size of all objects of one kind in bytes.
pub const OBJECTS_BYTES_MAX: u64 = 64 << 20;

/// The kind of an object. Each kind has its own limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ObjectKind {
    /// A page of charts.
    Dashboard,
    /// A note on charts.
    Annotation,
    /// A time in which notifications of some alerts are not sent.
    Silence,
    /// The alerts of a group of rules, as of its last evaluation.
    AlertState,
    /// Past alerts of a group of rules.
    AlertHistory,
    /// A group of alerts, with the messages that were delivered to its receiver or wait for
    /// delivery.
    Notification,
    /// The numbers of series at the beginning of a day.
    Cardinality,
    /// A key of access control, with the digests of its secrets.
    Key,
    /// A one-time code, with the digest of its secret.
    Code,
    /// A user, with the hash of the password.
    User,
    /// A session of a user; its name is the digest of its cookie.
    Session,
    /// A text of rules, in the format of rule files.
    RuleText,
    /// The text of the receivers, in the format of notification files.
    ReceiversText,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Returns the name in keys.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the noun in messages to people.
    pub fn noun(self) -> String {
        match self {
            Self::RuleText => "text of rules".to_owned(),
            Self::ReceiversText => "text of receivers".to_owned(),
            Self::Dashboard
            | Self::Annotation
            | Self::Silence
            | Self::AlertState
            | Self::AlertHistory
            | Self::Notification
            | Self::Cardinality
            | Self::Key
            | Self::Code
            | Self::User
            | Self::Session => self.as_str().replace('_', " "),
        }
    }

    /// Returns the maximum number of objects of the kind.
    pub fn count_max(self) -> u64 {
        if self == Self::Key { KEYS_MAX } else { OBJECTS_MAX }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The version, which the next change must contain.
    pub version: u64,
    /// The time of the last change.
    pub changed_at: UnixMillis,
    /// The content.
    pub bytes: Vec<u8>,
}

/// An object in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// The name.
    pub name: String,
    /// The version; `None` when the object is damaged.
    pub version: Option<u64>,
}

/// The reason why an object was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectRefusal {
    /// The version in the change is not the current version.
    #[error(
        "the {} {name:?} was changed meanwhile: read it again, and repeat the change",
        .kind.noun()
    )]
    Conflict {
        /// The object's kind.
        kind: ObjectKind,
        /// The name of the object.
        name: String,
        /// The current version; `None`: the object does not exist, or is damaged.
        found: Option<u64>,
    },
    /// The name is not valid.
    #[error(
        "the name of a {} is empty, has control characters, or more than {OBJECT_NAME_BYTES_MAX} bytes",
        .0.noun()
    )]
    BadName(ObjectKind),
    /// The object is too large.
    #[error(
        "{bytes} bytes are more than a {} may have ({OBJECT_BYTES_MAX}): make it smaller",
        .kind.noun()
    )]
    TooLarge {
        /// The object's kind.
        kind: ObjectKind,
        /// Bytes of the object.
        bytes: usize,
    },
    /// The objects of this kind have reached their quota.
    #[error(
        "the quota is reached: each kind has at most {OBJECTS_MAX} objects ({KEYS_MAX} keys), and \
         {OBJECTS_BYTES_MAX} bytes in all; delete some"
    )]
    QuotaReached,
}
