//! The number of shards of a cluster, which is fixed when its database is made.
//!
//! Must never know: what a shard contains.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use tokio::sync::watch;

use super::remembered::read_origin;
use crate::{
    replication::{Answer, Command, Fault, Medium as _, medium::MongoMedium},
    store::{Folder, Medium, Replica},
};

/// The first shard, whose holder has the objects, rules and hosts, and forwards all other work.
pub const FIRST: u16 = 0;
/// The maximum number of shards.
pub const SHARDS_MAX: u16 = 64;
/// The name of the number in the database.
const NAME: &str = "shards";
/// The interval between attempts to read the number.
const RETRY: Duration = Duration::from_secs(1);

/// The number of shards, once it was read. Clones are cheap.
#[derive(Debug, Clone)]
pub struct KnownShards(watch::Receiver<Option<u16>>);

impl KnownShards {
    /// Returns the number, and the means to store it.
    pub(super) fn unknown() -> (watch::Sender<Option<u16>>, Self) {
        let (sender, receiver) = watch::channel(None);
        (sender, Self(receiver))
    }

    /// Returns the number; `None` while MongoDB was not reachable yet.
    pub fn get(&self) -> Option<u16> {
        *self.0.borrow()
    }

    /// Waits for the number; forever when the node ends before it is known.
    pub async fn known(&self) -> u16 {
        match self.0.clone().wait_for(Option::is_some).await.map(|number| *number) {
            Ok(Some(number)) => number,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

/// Returns the folder with the shards after the first one.
pub fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("shards")
}

/// Returns true when a data directory has a store that begins a new log, because it was migrated
/// from an embedded daemon or restored from a snapshot. All its samples are in the first shard.
///
/// # Errors
/// When the files cannot be read, or belong to an embedded daemon.
pub(super) fn begins_log(folder: &Path) -> anyhow::Result<bool> {
    if read_origin(folder)?.is_some() {
        return Ok(false);
    }
    let context = || format!("open the replica in {}", folder.display());
    let medium: Arc<dyn Medium> = Arc::new(Folder::new(folder).with_context(context)?);
    Replica::exists(&medium).with_context(context)
}

/// The number of shards that a node wants.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedShards {
    /// The number of a new database, according to the settings.
    pub(super) configured: u16,
    /// True if the data directory [begins a log](begins_log).
    pub(super) begins_log: bool,
}

/// Reads the number, or stores the wanted one in a new database. Runs until MongoDB has answered.
///
/// # Errors
/// The reason why this node cannot be one of the cluster.
pub(super) async fn learn(
    medium: &MongoMedium,
    wanted: WantedShards,
    known: &watch::Sender<Option<u16>>,
) -> Result<u16, String> {
    let mut is_reported = false;
    let text = loop {
        match read(medium, wanted).await {
            Ok(text) => break text,
            Err(Fault(fault)) if !is_reported => {
                tracing::warn!(fault, "cannot read the number of shards yet; trying again");
                is_reported = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(RETRY).await;
    };
    let number = admit(parse(&text)?, wanted)?;
    known.send_replace(Some(number));
    Ok(number)
}

async fn read(medium: &MongoMedium, wanted: WantedShards) -> Result<String, Fault> {
    // Nodes of earlier releases made databases with one shard and without its number.
    let answer = medium.execute(Command::ReadNodes).await?;
    let is_used = matches!(answer, Answer::Nodes(nodes) if !nodes.is_empty());
    let proposed = if is_used || wanted.begins_log { 1 } else { wanted.configured };
    medium.shared_text(NAME, &proposed.to_string()).await
}

fn parse(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|number| (1..=SHARDS_MAX).contains(number));
    number.ok_or_else(|| {
        format!(
            "the number of shards in the database of the cluster is {text:?}, and this release \
             knows 1 to {SHARDS_MAX}: use the release of the other nodes"
        )
    })
}

/// Refuses a store that one shard contains in a database with several.
fn admit(number: u16, wanted: WantedShards) -> Result<u16, String> {
    let WantedShards { configured, begins_log } = wanted;
    if begins_log && number > 1 {
        return Err(format!(
            "the store in the data directory was migrated or restored, so it needs a cluster with \
             one shard, and the database has {number}: name an empty database in cluster.uri, \
             or empty the data directory"
        ));
    }
    if begins_log && configured > 1 {
        tracing::warn!(
            "the store in the data directory was migrated or restored, so the cluster has one \
             shard: cluster.shards = {configured} has no effect"
        );
    } else if number != configured {
        tracing::warn!(
            number,
            "the number of shards in the settings (cluster.shards = {configured}) has no effect, \
             because the database was made with another one"
        );
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_shards_is_between_1_and_the_maximum() {
        assert_eq!((parse("1"), parse("64")), (Ok(1), Ok(64)));
        for text in ["", "0", "65", "-1", "twelve"] {
            let refusal = parse(text).unwrap_err();
            assert!(refusal.contains("use the release"), "{text}: {refusal}");
        }
    }

    #[test]
    fn a_store_that_begins_a_log_needs_one_shard() {
        for (configured, begins_log, number, is_admitted) in
            [(4, false, 4, true), (4, false, 1, true), (4, true, 1, true), (1, true, 4, false)]
        {
            let admitted = admit(number, WantedShards { configured, begins_log });
            assert_eq!(admitted.is_ok(), is_admitted, "{configured} {begins_log} {number}");
        }
    }
}
