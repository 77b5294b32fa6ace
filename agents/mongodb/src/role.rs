//! The role of a server, from its response to `hello`.

use mongodb::bson::Document;

use crate::field::{is_true, text, value};

/// The role of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    /// A mongod without a replica set.
    #[default]
    Standalone,
    /// The member that accepts writes.
    Primary,
    /// A member that replicates from the primary.
    Secondary,
    /// A member that votes but has no data.
    Arbiter,
    /// Any other member: it starts up, recovers, or rolls back.
    Recovering,
    /// A router of a sharded cluster.
    Mongos,
}

/// The role and replica set of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerRole {
    pub(crate) role: Role,
    /// True for a config server of a sharded cluster.
    pub(crate) is_config: bool,
    /// The name of the replica set.
    pub(crate) set: Option<String>,
}

impl ServerRole {
    /// Parses a response to `hello`, or to `isMaster` of older servers.
    pub(crate) fn of(hello: &Document) -> Self {
        let set = text(hello, "setName").map(str::to_owned);
        let is_primary = is_true(hello, "isWritablePrimary") || is_true(hello, "ismaster");
        let role = if text(hello, "msg") == Some("isdbgrid") {
            Role::Mongos
        } else if is_true(hello, "arbiterOnly") {
            Role::Arbiter
        } else if is_true(hello, "secondary") {
            Role::Secondary
        } else if set.is_none() && !is_true(hello, "isreplicaset") {
            Role::Standalone
        } else if is_primary {
            Role::Primary
        } else {
            Role::Recovering
        };
        Self { role, is_config: value(hello, "configsvr").is_some(), set }
    }

    /// Returns the value of the host's tag `role`. The role of a config server is its role in its
    /// replica set.
    pub(crate) fn name(&self) -> &'static str {
        match self.role {
            Role::Standalone => "standalone",
            Role::Primary => "primary",
            Role::Secondary => "secondary",
            Role::Arbiter => "arbiter",
            Role::Recovering => "recovering",
            Role::Mongos => "mongos",
        }
    }

    /// Returns true when the server can report the state of its replica set.
    pub(crate) fn is_member(&self) -> bool {
        !matches!(self.role, Role::Standalone | Role::Mongos)
    }

    /// Returns true when the server has data, and therefore databases and, in a set, an oplog.
    pub(crate) fn has_data(&self) -> bool {
        matches!(self.role, Role::Standalone | Role::Primary | Role::Secondary)
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    #[test]
    fn each_role_is_derived_from_hello() {
        let member = |more: Document| {
            let mut hello = doc! { "setName": "rs0", "ok": 1.0 };
            hello.extend(more);
            hello
        };
        for (hello, name, is_config) in [
            (doc! { "isWritablePrimary": true }, "standalone", false),
            (doc! { "ismaster": true }, "standalone", false),
            (member(doc! { "isWritablePrimary": true, "secondary": false }), "primary", false),
            (member(doc! { "ismaster": true, "secondary": false }), "primary", false),
            (member(doc! { "isWritablePrimary": false, "secondary": true }), "secondary", false),
            (member(doc! { "isWritablePrimary": false, "arbiterOnly": true }), "arbiter", false),
            (member(doc! { "isWritablePrimary": false, "secondary": false }), "recovering", false),
            (doc! { "isWritablePrimary": false, "isreplicaset": true }, "recovering", false),
            (doc! { "isWritablePrimary": true, "msg": "isdbgrid" }, "mongos", false),
            (member(doc! { "isWritablePrimary": true, "configsvr": 2 }), "primary", true),
            (doc! {}, "standalone", false),
        ] {
            let role = ServerRole::of(&hello);
            assert_eq!((role.name(), role.is_config), (name, is_config), "{hello}");
        }
    }
}
