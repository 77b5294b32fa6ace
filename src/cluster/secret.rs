//! The secret with which the nodes of a cluster recognize each other.
//!
//! The first node creates it in the database, whose readers can read everything anyway. Must never
//! know: requests.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use subtle::ConstantTimeEq;

use crate::replication::medium::MongoMedium;

/// The name of the secret in the database.
const NAME: &str = "secret";
/// The number of random bytes of a secret.
const BYTES: usize = 32;
/// The interval between attempts to read the secret.
const RETRY: Duration = Duration::from_secs(1);
/// The beginning of the header `Authorization` of requests between nodes.
const SCHEME: &str = "Bearer ";

/// A secret, which no log shows.
#[derive(Clone)]
pub struct ClusterSecret(Arc<str>);

impl ClusterSecret {
    /// Returns the secret of a text; `None` when it is too short to be one.
    fn parse(text: &str) -> Option<Self> {
        let is_plain = text.len() >= 2 * BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_plain.then(|| Self(text.into()))
    }

    /// Returns the header `Authorization` of a request to another node.
    pub(super) fn authorization(&self) -> String {
        format!("{SCHEME}{}", self.0)
    }

    /// Returns true if a request has the secret. The time does not depend on the characters.
    pub fn admits(&self, authorization: &str) -> bool {
        let token = authorization.strip_prefix(SCHEME).unwrap_or_default();
        token.as_bytes().ct_eq(self.0.as_bytes()).into()
    }
}

impl fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSecret")
    }
}

/// The secret of the cluster, once it was read. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct KnownSecret(Arc<OnceLock<ClusterSecret>>);

impl KnownSecret {
    /// Returns the secret; `None` while MongoDB was not reachable yet.
    pub fn get(&self) -> Option<&ClusterSecret> {
        self.0.get()
    }

    /// Reads the secret, or creates it. Runs until MongoDB has answered.
    pub(super) async fn learn(self, medium: MongoMedium) {
        loop {
            match read(&medium).await {
                Ok(secret) => {
                    self.0.get_or_init(|| secret);
                    return;
                }
                Err(fault) => tracing::debug!(fault, "the secret of the cluster is not known yet"),
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

async fn read(medium: &MongoMedium) -> Result<ClusterSecret, String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|cause| cause.to_string())?;
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16);
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let proposed: String = digits.filter_map(digit).collect();
    let text = medium.shared_text(NAME, &proposed).await.map_err(|fault| fault.to_string())?;
    ClusterSecret::parse(&text).ok_or_else(|| "the secret in the database is damaged".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_admits_itself_alone_and_is_not_shown() {
        let secret = ClusterSecret::parse(&"0a".repeat(BYTES)).unwrap();
        assert!(secret.admits(&secret.authorization()));
        let other = ClusterSecret::parse(&"0b".repeat(BYTES)).unwrap();
        let [mut longer, shorter] = [secret.authorization(), "Bearer 0a".to_owned()];
        longer.push('0');
        for text in ["", "Bearer ", &"0a".repeat(BYTES), &longer, &shorter, &other.authorization()]
        {
            assert!(!secret.admits(text), "{text}");
        }
        assert_eq!(format!("{secret:?}"), "ClusterSecret");
        for text in ["", "0a", &"0x".repeat(BYTES)] {
            assert!(ClusterSecret::parse(text).is_none(), "{text}");
        }
    }
}
