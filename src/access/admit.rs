//! The decision whether a caller may use a route.

use super::scopes::{Scope, Scopes};

/// The right that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// None: the page's files, health checks, and routes that check a code themselves.
    Open,
    /// None but valid credentials: the caller's own profile.
    Own,
    /// Sending samples.
    Ingest,
    /// Reading.
    Read,
    /// Changing objects.
    Objects,
    /// Deleting data, and managing keys.
    Manage,
    /// Reading the state of the daemon.
    Operate,
    /// Changing the state of the daemon.
    Control,
}

impl Right {
    /// All rights.
    pub const ALL: [Self; 8] = [
        Self::Open,
        Self::Own,
        Self::Ingest,
        Self::Read,
        Self::Objects,
        Self::Manage,
        Self::Operate,
        Self::Control,
    ];

    /// Returns the scopes that a caller must have, all of them.
    pub const fn scopes(self) -> Scopes {
        match self {
            Self::Open | Self::Own => Scopes::NONE,
            Self::Ingest => Scopes::of(&[Scope::Ingest]),
            Self::Read => Scopes::of(&[Scope::Read]),
            Self::Objects => Scopes::of(&[Scope::Objects]),
            Self::Manage => Scopes::of(&[Scope::Admin]),
            Self::Operate => Scopes::of(&[Scope::Operate]),
            Self::Control => Scopes::of(&[Scope::Admin, Scope::Operate]),
        }
    }
}

/// The reason why a caller may not use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// The caller sent neither a key nor the cookie of a session.
    Unknown,
    /// The caller lacks some of these scopes.
    Lacks(Scopes),
}

/// Decides whether a caller with these scopes, or one without credentials, has a right.
///
/// # Errors
/// The caller is unknown, or lacks a scope.
pub fn admit(right: Right, caller: Option<Scopes>) -> Result<(), Denial> {
    let required = right.scopes();
    match caller {
        _ if right == Right::Open => Ok(()),
        None => Err(Denial::Unknown),
        Some(scopes) if scopes.granted().contains(required) => Ok(()),
        Some(_) => Err(Denial::Lacks(required)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_grants_what_it_includes_and_nothing_else() {
        let granted = |scopes: &[Scope]| -> Vec<_> {
            let is_granted = |right: &Right| admit(*right, Some(Scopes::of(scopes))).is_ok();
            Right::ALL.into_iter().filter(is_granted).collect()
        };
        assert_eq!(granted(&[]), [Right::Open, Right::Own]);
        assert_eq!(granted(&[Scope::Ingest]), [Right::Open, Right::Own, Right::Ingest]);
        assert_eq!(granted(&[Scope::Read]), [Right::Open, Right::Own, Right::Read]);
        assert_eq!(
            granted(&[Scope::Objects]),
            [Right::Open, Right::Own, Right::Read, Right::Objects]
        );
        assert_eq!(granted(&[Scope::Operate]), [Right::Open, Right::Own, Right::Operate]);
        let all_but_the_last_two = &Right::ALL[..6];
        assert_eq!(granted(&[Scope::Admin]), all_but_the_last_two);
        assert_eq!(granted(&[Scope::Admin, Scope::Operate]), Right::ALL);
        for right in Right::ALL {
            let expected = if right == Right::Open { Ok(()) } else { Err(Denial::Unknown) };
            assert_eq!(admit(right, None), expected, "{right:?}");
        }
    }
}
