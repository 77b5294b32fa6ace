//! The settings of a node of a cluster.
//!
//! Must never know: how nodes share a store.

use super::{faults::Faults, publish::check_database, sections::Sections};
use crate::{cluster::shards::SHARDS_MAX, publish::MongoUri, replication::NodeName};

/// The maximum number of replicas of a shard.
const REPLICAS_MAX: usize = 16;

/// The database of the log when the address names none.
const DATABASE: &str = "granary-cluster";

/// The log that the nodes share, and the node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "config/default.toml explains each key")]
pub struct ClusterSettings {
    pub uri: MongoUri,
    pub database: String,
    pub replicas: usize,
    pub shards: u16,
    /// The address at which other nodes reach this one, such as `https://node1:7117`.
    pub advertise: String,
    /// The name of the node, which follows from its address.
    pub node: NodeName,
}

/// Checks the settings; `None` for an embedded daemon.
pub(super) fn cluster(sections: &Sections, faults: &mut Faults) -> Option<ClusterSettings> {
    let given = &sections.cluster;
    if given.uri.is_empty() {
        if !given.advertise.is_empty() {
            faults.0.push("cluster.advertise needs cluster.uri".to_owned());
        }
        return None;
    }
    let uri = MongoUri::parse(&given.uri);
    let uri = uri.map_err(|problem| faults.0.push(format!("cluster.uri: {problem}"))).ok();
    let database = uri.as_ref().and_then(MongoUri::database).unwrap_or(DATABASE).to_owned();
    check_database("cluster.uri: the database", &database, false, faults);
    if !(1..=REPLICAS_MAX).contains(&given.replicas) {
        let replicas = given.replicas;
        faults
            .0
            .push(format!("cluster.replicas = {replicas} must be between 1 and {REPLICAS_MAX}"));
    }
    if !(1..=SHARDS_MAX).contains(&given.shards) {
        let shards = given.shards;
        faults.0.push(format!("cluster.shards = {shards} must be between 1 and {SHARDS_MAX}"));
    }
    if given.shards > 1 && !sections.ingest.ha_senders.is_empty() {
        // The choice of the sender that counts is made by each shard.
        faults.0.push(
            "ingest.ha_senders: senders that deliver the same samples would count twice in a \
             cluster with several shards; use cluster.shards = 1"
                .to_owned(),
        );
    }
    if given.shards > 1 && !sections.publish.uri.is_empty() {
        faults.0.push(
            "publish.uri: documents cannot be published from a cluster with several shards; use \
             cluster.shards = 1"
                .to_owned(),
        );
    }
    if !sections.graphite.listen.is_empty() {
        faults.0.push(
            "graphite.listen cannot be used with cluster.uri, because a node that does not hold the \
             store cannot forward these connections; remove it"
                .to_owned(),
        );
    }
    let advertise = given.advertise.trim_end_matches('/');
    let node = node_of(advertise).map_err(|problem| {
        faults.0.push(format!("cluster.advertise = {advertise:?}: {problem}"));
    });
    let replicas = given.replicas;
    Some(ClusterSettings {
        uri: uri?,
        database,
        replicas,
        shards: given.shards,
        advertise: advertise.to_owned(),
        node: node.ok()?,
    })
}

/// Returns the name of the node with an address: its host and port, with `_` for dots.
fn node_of(address: &str) -> Result<NodeName, String> {
    let example = "use the address at which other nodes reach this one, with its port, such as \
                   \"https://node1:7117\"";
    let rest = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"));
    let (host, port) = rest.and_then(|rest| rest.rsplit_once(':')).ok_or(example)?;
    if !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err(example.to_owned());
    }
    let is_address = host.starts_with('[') && host.ends_with(']');
    let host = host.trim_matches(['[', ']']).replace('.', "_");
    let host = if is_address { host.replace(':', "-") } else { host };
    NodeName::parse(&format!("{host}-{port}")).map_err(|_| example.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read;

    #[test]
    fn a_node_is_named_after_its_address() {
        for (address, name) in [
            ("https://node1.example.com:7117", "node1_example_com-7117"),
            ("http://10.0.0.7:80", "10_0_0_7-80"),
            ("http://[fd00::7]:80", "fd00--7-80"),
        ] {
            assert_eq!(node_of(address).unwrap().as_str(), name);
        }
        for address in ["", "node1:7117", "http://node1", "http://node1:0", "http://a/b:80"] {
            assert!(node_of(address).unwrap_err().contains("https://node1:7117"), "{address}");
        }
    }

    #[test]
    fn faults_name_the_setting_and_no_password_is_shown() {
        let uri = "cluster.uri = 'mongodb://ann:s3cret@b'\n";
        for (text, part) in [
            ("cluster.advertise = 'http://a:1'", "needs cluster.uri"),
            ("cluster.uri = 'mongodb+srv://ann:s3cret@b'", "cluster.uri: b: mongodb+srv"),
            (uri, "cluster.advertise"),
            (&format!("{uri}cluster.replicas = 0"), "between 1 and 16"),
            (&format!("{uri}cluster.shards = 65"), "between 1 and 64"),
            (
                &format!("{uri}cluster.shards = 2\npublish.uri = 'mongodb://b'"),
                "cannot be published",
            ),
            (
                &format!("{uri}cluster.shards = 2\ningest.ha_senders = {{ a- = '30s' }}"),
                "would count twice",
            ),
            ("cluster.uri = 'mongodb://ann:s3cret@b/admin'", "cluster.uri: the database"),
            (&format!("{uri}graphite.listen = '127.0.0.1:2003'"), "graphite.listen"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(part) && !message.contains("s3cret"), "{text}: {message}");
        }
        let settings = read(&format!("{uri}cluster.advertise = 'http://a:1/'")).unwrap();
        assert!(!format!("{settings:?}").contains("s3cret"), "{settings:?}");
        let cluster = settings.cluster_settings.unwrap();
        assert_eq!((cluster.advertise.as_str(), cluster.replicas), ("http://a:1", 2));
        assert_eq!(read("").unwrap().cluster_settings, None);
    }
}
