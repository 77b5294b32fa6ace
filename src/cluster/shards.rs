//! The number of shards of a cluster, which is fixed when its database is made.
//!
//! Must never know: what a shard contains.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::sync::watch;

use crate::replication::{Answer, Command, Fault, Medium, medium::MongoMedium};

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

/// Reads the number, or stores the proposed one in a new database. Runs until MongoDB has answered.
pub(super) async fn learn(
    medium: &MongoMedium,
    proposed: u16,
    known: &watch::Sender<Option<u16>>,
) -> u16 {
    loop {
        match read(medium, proposed).await {
            Ok(number) => {
                if number != proposed {
                    tracing::warn!(
                        number,
                        "the number of shards in the settings (cluster.shards = {proposed}) has no \
                         effect, because the database was made with another one"
                    );
                }
                known.send_replace(Some(number));
                return number;
            }
            Err(Fault(fault)) => {
                tracing::debug!(fault, "the number of shards of the cluster is not known yet");
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn read(medium: &MongoMedium, proposed: u16) -> Result<u16, Fault> {
    // Nodes of earlier releases made databases with one shard and without its number.
    let answer = medium.execute(Command::ReadNodes).await?;
    let is_used = matches!(answer, Answer::Nodes(nodes) if !nodes.is_empty());
    let proposed = if is_used { 1 } else { proposed };
    parse(&medium.shared_text(NAME, &proposed.to_string()).await?)
}

fn parse(text: &str) -> Result<u16, Fault> {
    let number = text.parse().ok().filter(|number| (1..=SHARDS_MAX).contains(number));
    number.ok_or_else(|| Fault(format!("the database has {text:?} shards: use a newer release")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_shards_is_between_1_and_the_maximum() {
        assert_eq!((parse("1"), parse("64")), (Ok(1), Ok(64)));
        for text in ["", "0", "65", "-1", "twelve"] {
            assert!(parse(text).unwrap_err().0.contains("a newer release"), "{text}");
        }
    }
}
