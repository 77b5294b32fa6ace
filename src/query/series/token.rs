//! Tokens of series, for requests that continue others. An id would not do: ids count the series of
//! all projects.
//!
//! Must never know: which requests continue others.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::model::SeriesKey;

/// A text that identifies a series of a project, also after a restart: the hash of its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SeriesToken(String);

/// The text that stands for no series.
const NOTHING: &str = "-";
/// The character between the tokens of shards.
const SEPARATOR: char = '.';

impl SeriesToken {
    /// Returns the token that stands for no series.
    pub(crate) fn nothing() -> Self {
        Self(NOTHING.to_owned())
    }

    /// Returns true when the token stands for no series.
    pub(crate) fn is_nothing(&self) -> bool {
        self.0 == NOTHING
    }

    /// Returns one token for a series of each shard.
    pub(crate) fn of_shards(tokens: impl IntoIterator<Item = Self>) -> Self {
        let texts: Vec<_> = tokens.into_iter().map(|token| token.0).collect();
        Self(texts.join(&SEPARATOR.to_string()))
    }

    /// Returns the token of a shard; `None` for a token that was not made for this shard.
    pub(crate) fn of_shard(&self, shard: usize) -> Option<Self> {
        self.0.split(SEPARATOR).nth(shard).map(|text| Self(text.to_owned()))
    }

    pub(crate) fn new(key: &SeriesKey) -> Self {
        Self(format!("{:032x}", xxh3_128(key.as_bytes())))
    }

    /// Returns the hash that the token stands for; `None` for another text.
    pub(crate) fn hash(&self) -> Option<u128> {
        u128::from_str_radix(&self.0, 16).ok()
    }
}

/// Returns the hash in the token of a series.
pub(crate) fn hash_of(key: &SeriesKey) -> u128 {
    xxh3_128(key.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup;

    #[test]
    fn a_token_stands_for_one_key() {
        let [key, other] = ["a", "b"].map(|host| setup::key("m", &[("host", host)]));
        let token = SeriesToken::new(&key);
        assert_eq!(token.hash(), Some(hash_of(&key)));
        assert_ne!(token.hash(), Some(hash_of(&other)));
        assert_eq!(SeriesToken("é".into()).hash(), None);
        let of_shards = [token.clone(), SeriesToken::nothing(), SeriesToken::new(&other)];
        let joined = SeriesToken::of_shards(of_shards.clone());
        let parts = of_shards.map(Some).into_iter().chain([None]);
        assert!(parts.enumerate().all(|(shard, part)| joined.of_shard(shard) == part));
        assert_eq!((joined.hash(), SeriesToken::nothing().hash()), (None, None));
        let text = serde_json::to_string(&token).unwrap();
        assert_eq!(text.len(), 34);
        assert_eq!(serde_json::from_str::<SeriesToken>(&text).unwrap(), token);
    }
}
