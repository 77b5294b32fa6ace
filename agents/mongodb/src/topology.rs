//! The servers of a replica set or a sharded cluster, as its members and routers report them.
//!
//! Pure: `discovery` starts and stops the sampling of servers. The configuration with the highest
//! version wins, so a member that was removed and still answers does not bring others back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use mongodb::bson::{Bson, Document};

use crate::field::{number, text, time_ms};

/// The maximum number of members of a set; a set has at most 50.
const MEMBERS_MAX: usize = 100;
/// The maximum number of sets, and of routers.
const SETS_MAX: usize = 1_000;
/// A router that has not reported to the cluster for this long has left it. Routers report every
/// 30 seconds.
const ROUTER_SILENCE_MAX_MS: i64 = 300_000;
/// A set that no router has reported for this long has left the cluster. A router that cannot reach
/// the config servers reports an old map.
const SET_SILENCE_MAX_MS: i64 = 600_000;
/// The time without a report of a configuration after which an earlier version replaces it: the set
/// was created again under its name.
const VERSION_AGE_MAX_MS: i64 = 300_000;
/// The age from which a set's view of a member is outdated.
const VIEW_AGE_MAX_MS: i64 = 60_000;

/// A server of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Host and port.
    pub(crate) address: String,
    /// The replica set; routers have none.
    pub(crate) set: Option<String>,
    /// True for an arbiter, which stores no users.
    pub(crate) is_arbiter: bool,
    /// True for a member that may be a server of the settings under another name: neither answers.
    pub(crate) may_be_seed: bool,
}

/// A member as the other members of its set see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct View {
    pub(crate) state: f64,
    pub(crate) is_healthy: bool,
    at_ms: i64,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Set {
    /// The version of the set's configuration; `None` before a member answered.
    version: Option<f64>,
    /// The time of the last report of this version.
    version_ms: i64,
    /// The time of the last report by a router.
    listed_ms: Option<i64>,
    /// The members; true for arbiters.
    members: BTreeMap<String, bool>,
    views: BTreeMap<String, View>,
    shard: Option<String>,
}

/// The topology of a target, which its servers update.
pub(crate) type SharedTopology = Arc<Mutex<Topology>>;

/// The known servers of a target.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    /// The addresses in the settings, with the name under which the cluster knows the server.
    seeds: BTreeMap<String, Option<String>>,
    sets: BTreeMap<String, Set>,
    routers: BTreeSet<String>,
}

impl Topology {
    /// Creates a topology that only contains the addresses of the settings.
    pub(crate) fn new(seeds: impl Iterator<Item = String>) -> Self {
        Self { seeds: seeds.map(|seed| (seed, None)).collect(), ..Self::default() }
    }

    /// Records a member's `hello` and, if it may be read, its `replSetGetStatus`, which also
    /// contains hidden members.
    pub(crate) fn note_member(
        &mut self,
        address: &str,
        hello: &Document,
        status: Option<&Document>,
        now_ms: i64,
    ) {
        if let (Some(name), Some(me)) = (self.seeds.get_mut(address), text(hello, "me")) {
            *name = Some(me.to_owned());
        }
        let Some(name) = text(hello, "setName") else { return };
        // A member of a set that has left the cluster does not bring it back.
        let is_new = !self.sets.contains_key(name);
        if is_new && (self.sets.len() >= SETS_MAX || !self.seeds.contains_key(address)) {
            return;
        }
        let set = self.sets.entry(name.to_owned()).or_default();
        let arbiters: BTreeSet<&str> = texts(hello, "arbiters").collect();
        let listed = ["hosts", "passives", "arbiters"].into_iter().flat_map(|f| texts(hello, f));
        let in_status = members_of(status).filter_map(|member| text(member, "name"));
        let found: BTreeMap<String, bool> = listed
            .chain(in_status)
            .take(MEMBERS_MAX)
            .map(|member| (member.to_owned(), arbiters.contains(member)))
            .collect();
        let version = number(hello, "setVersion").unwrap_or(0.0);
        match set.version {
            Some(known) if known > version && set.version_age_ms(now_ms) < VERSION_AGE_MAX_MS => {
                return set.note_views(status, now_ms);
            }
            // An unprivileged user sees no hidden members, which other members reported.
            Some(known) if known == version => set.members.extend(found),
            Some(_) | None => (set.version, set.members) = (Some(version), found),
        }
        set.version_ms = now_ms;
        set.note_views(status, now_ms);
    }

    /// Records a router's response to `getShardMap`: sets of shards, and the config servers. The
    /// map of a router that starts is empty.
    pub(crate) fn note_shard_map(&mut self, response: &Document, now_ms: i64) {
        let Ok(map) = response.get_document("map") else { return };
        if map.is_empty() {
            return;
        }
        for (shard, hosts) in map.iter().take(SETS_MAX) {
            let parts = hosts.as_str().and_then(|hosts| hosts.split_once('/'));
            let Some((name, hosts)) = parts else { continue };
            let set = self.sets.entry(name.to_owned()).or_default();
            set.listed_ms = Some(now_ms);
            set.shard = (shard != "config").then(|| shard.clone()).or(set.shard.take());
            if set.version.is_none() {
                let members = hosts.split(',').take(MEMBERS_MAX);
                set.members = members.map(|member| (member.to_owned(), false)).collect();
            }
        }
        let seeds = &self.seeds;
        let has_seed = |set: &Set| {
            let is_seed = |(seed, name): (&String, &Option<String>)| {
                set.members.contains_key(name.as_ref().unwrap_or(seed))
            };
            seeds.iter().any(is_seed)
        };
        let is_listed = |at_ms: i64| now_ms.saturating_sub(at_ms) < SET_SILENCE_MAX_MS;
        self.sets.retain(|_, set| set.listed_ms.is_some_and(is_listed) || has_seed(set));
    }

    /// Records the documents of `config.mongos`.
    pub(crate) fn note_routers(&mut self, response: &Document) {
        let Ok(cursor) = response.get_document("cursor") else { return };
        let Ok(batch) = cursor.get_array("firstBatch") else { return };
        let routers: Vec<(&str, i64)> = batch
            .iter()
            .filter_map(Bson::as_document)
            .filter_map(|router| Some((text(router, "_id")?, time_ms(router, "ping")?)))
            .take(SETS_MAX)
            .collect();
        // The times are those of the routers, which report every few seconds.
        let latest_ms = routers.iter().map(|(_, ping_ms)| *ping_ms).max().unwrap_or(0);
        let is_alive = |ping_ms: i64| latest_ms.saturating_sub(ping_ms) < ROUTER_SILENCE_MAX_MS;
        let alive = routers.iter().filter(|(_, ping_ms)| is_alive(*ping_ms));
        self.routers = alive.map(|(name, _)| (*name).to_owned()).collect();
    }

    /// Returns the servers that are not in the settings.
    pub(crate) fn found(&self) -> Vec<Found> {
        let is_seed = |address: &String| {
            let mut names = self.seeds.iter();
            names.any(|(seed, name)| seed == address || name.as_ref() == Some(address))
        };
        let is_known = |(seed, name): (&String, &Option<String>)| {
            name.is_some() || self.sets.values().any(|set| set.members.contains_key(seed))
        };
        let are_seeds_known = self.seeds.iter().all(is_known);
        let members = self.sets.iter().flat_map(|(name, set)| {
            set.members.iter().map(move |(address, is_arbiter)| {
                let is_down = set.views.get(address).is_some_and(|view| !view.is_healthy);
                Found {
                    address: address.clone(),
                    set: Some(name.clone()),
                    is_arbiter: *is_arbiter,
                    may_be_seed: is_down && !are_seeds_known,
                }
            })
        });
        let router = |address: &String| Found {
            address: address.clone(),
            set: None,
            is_arbiter: false,
            may_be_seed: false,
        };
        let all = members.chain(self.routers.iter().map(router));
        all.filter(|found| !is_seed(&found.address)).collect()
    }

    /// Returns the shard of a set.
    pub(crate) fn shard_of(&self, set: &str) -> Option<&str> {
        self.sets.get(set)?.shard.as_deref()
    }

    /// Returns a member as the other members of its set saw it in the last minute.
    pub(crate) fn view_of(&self, set: &str, address: &str, now_ms: i64) -> Option<View> {
        let name = self.seeds.get(address).and_then(Option::as_deref).unwrap_or(address);
        let view = self.sets.get(set)?.views.get(name)?;
        (now_ms.abs_diff(view.at_ms) <= VIEW_AGE_MAX_MS.unsigned_abs()).then_some(*view)
    }
}

impl Set {
    fn version_age_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_sub(self.version_ms)
    }

    fn note_views(&mut self, status: Option<&Document>, now_ms: i64) {
        for member in members_of(status).filter(|member| number(member, "self").is_none()) {
            let parts = (text(member, "name"), number(member, "state"), number(member, "health"));
            let (Some(name), Some(state), Some(health)) = parts else { continue };
            let view = View { state, is_healthy: health > 0.0, at_ms: now_ms };
            // A member that reaches it knows more than one that does not.
            let is_better =
                |known: &View| known.is_healthy && !view.is_healthy && known.at_ms == view.at_ms;
            if !self.views.get(name).is_some_and(is_better) {
                self.views.insert(name.to_owned(), view);
            }
        }
        let members = &self.members;
        self.views.retain(|name, _| members.contains_key(name));
    }
}

fn texts<'a>(document: &'a Document, field: &str) -> impl Iterator<Item = &'a str> {
    let values = document.get_array(field).map(Vec::as_slice).unwrap_or_default();
    values.iter().filter_map(Bson::as_str)
}

fn members_of(status: Option<&Document>) -> impl Iterator<Item = &Document> {
    let members = status.and_then(|status| status.get_array("members").ok());
    members.into_iter().flatten().take(MEMBERS_MAX).filter_map(Bson::as_document)
}
#[cfg(test)]
mod tests;
