//! The scopes of a key: what its caller may do.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A permission that a key can have.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    EnumString,
    IntoStaticStr,
    VariantArray,
    Serialize,
    Deserialize,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Sends samples.
    Ingest,
    /// Queries samples, hosts, alerts and objects.
    Read,
    /// Changes dashboards, annotations, silences and acknowledgements; includes `read`.
    Objects,
    /// Deletes and renames series, removes hosts and senders, manages keys; includes `ingest`,
    /// `read` and `objects`.
    Admin,
    /// Reads the state of the daemon, such as its metrics, log and settings.
    Operate,
}

impl Scope {
    /// All scopes.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Returns the scopes that this one includes.
    const fn included(self) -> Scopes {
        match self {
            Self::Ingest | Self::Read | Self::Operate => Scopes(self.bit()),
            Self::Objects => Scopes(self.bit() | Self::Read.bit()),
            Self::Admin => {
                Scopes(self.bit() | Self::Ingest.bit() | Self::Read.bit() | Self::Objects.bit())
            }
        }
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Scope>", into = "Vec<Scope>")]
pub struct Scopes(u8);

impl Scopes {
    /// No scopes.
    pub const NONE: Self = Self(0);

    /// Returns the set that contains only these scopes.
    pub const fn of(scopes: &[Scope]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < scopes.len() {
            bits |= scopes[at].bit();
            at += 1;
        }
        Self(bits)
    }

    /// Returns these scopes and those that they include.
    pub fn granted(self) -> Self {
        self.iter().fold(Self::NONE, |all, scope| Self(all.0 | scope.included().0))
    }

    /// Returns true when this set contains all scopes of another.
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns the scopes in their order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |scope| self.0 & scope.bit() != 0)
    }
}

impl From<Vec<Scope>> for Scopes {
    fn from(scopes: Vec<Scope>) -> Self {
        Self::of(&scopes)
    }
}

impl From<Scopes> for Vec<Scope> {
    fn from(scopes: Scopes) -> Self {
        scopes.iter().collect()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { ", " }, scope.as_str())?;
        }
        Ok(())
    }
}
