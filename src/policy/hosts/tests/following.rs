//! Clients that follow the list of hosts by its changes.

use std::collections::BTreeMap;

use super::{super::*, START, at, ping};
use crate::model::{HostState, StoredHosts};

/// A client that follows the list by its changes: the version, the name, state and last ping of
/// each host, and their tags.
#[derive(Debug, Default)]
pub(super) struct Follower {
    version: Option<HostsVersion>,
    pub(super) known: BTreeMap<String, (HostState, i64, BTreeMap<String, String>)>,
}

impl Follower {
    pub(super) fn refresh(&mut self, hosts: &Hosts, now: ListeningTime) {
        let changed = self.version.and_then(|version| hosts.changed_since(version, now));
        let changed = changed.unwrap_or_else(|| {
            self.known.clear();
            ChangedHosts { hosts: hosts.list(None, now), ..ChangedHosts::default() }
        });
        for host in changed.hosts {
            self.known.insert(host.host, (host.state, host.pinged, host.tags));
        }
        for (name, pinged) in changed.pings {
            let known = self.known.get_mut(&name).unwrap();
            (known.0, known.1) = (HostState::Up, pinged);
        }
        self.version = Some(hosts.version(now));
    }
}

/// Following a fleet costs little: a host is listed again only when more than its ping is new.
#[test]
fn the_changes_contain_new_facts_and_the_times_of_other_pings() {
    let mut hosts = Hosts::new(10, StoredHosts::default(), UnixMillis(START));
    for name in ["silent", "steady", "tagged"] {
        hosts.ping(ping(name, name, at(0).at), at(0)).unwrap();
    }
    let version = hosts.version(at(60_000));
    hosts.ping(ping("steady", "steady", at(80_000).at), at(80_000)).unwrap();
    let tags = [("role".to_owned(), "db".to_owned())].into();
    hosts.ping(Ping { tags, ..ping("tagged", "tagged", at(81_000).at) }, at(81_000)).unwrap();
    let changed = |version: HostsVersion, now| {
        let changed = hosts.changed_since(version, now)?;
        let names = changed.hosts.into_iter().map(|host| host.host).collect::<Vec<_>>();
        Some((names.join(" "), changed.pings.into_keys().collect::<Vec<_>>().join(" ")))
    };
    let both = |hosts: &str, pings: &str| Some((hosts.to_owned(), pings.to_owned()));
    assert_eq!(changed(version, at(85_000)), both("tagged", "steady"));
    assert_eq!(changed(version, at(95_000)), both("silent tagged", "steady"));
    assert_eq!(changed(hosts.version(at(95_000)), at(105_000)), both("", ""));
    // A version of another run, or of the future, has no changes.
    let other = Hosts::new(10, StoredHosts::default(), UnixMillis(START + 1));
    assert_eq!(changed(other.version(at(60_000)), at(85_000)), None);
    assert_eq!(changed(hosts.version(at(90_000)), at(85_000)), None);
    assert_eq!(version.to_string().parse(), Ok(version));
    assert!("17".parse::<HostsVersion>().unwrap_err().contains("since"));
}
