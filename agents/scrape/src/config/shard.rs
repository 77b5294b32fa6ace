//! A share of the targets, for several agents with equal settings.

use std::str::FromStr;

/// The maximum number of shares.
const SHARES_MAX: u64 = 1_000;

/// One of several equal shares of all targets, written `2/5`. Each target is in one share, which
/// follows from its URL and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    count: u64,
}

impl Default for Shard {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('/').and_then(|(number, count)| {
            Some((number.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
        });
        match numbers {
            Some((number, count)) if (1..=count).contains(&number) && count <= SHARES_MAX => {
                Ok(Self { index: number - 1, count })
            }
            _ => Err(format!(
                "{text:?} is not a share; use 2/5 for the second of 5, up to {SHARES_MAX}"
            )),
        }
    }
}

impl Shard {
    /// Returns true when a target with this hash is in the share. The lower half of the hash
    /// determines the target's offset in its interval.
    pub(crate) fn contains(self, hash: u64) -> bool {
        (hash >> 32) % self.count == self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_a_number_and_a_count() {
        assert_eq!("1/1".parse(), Ok(Shard::default()));
        assert_eq!("2/5".parse(), Ok(Shard { index: 1, count: 5 }));
        for invalid in ["", "2", "0/5", "6/5", "1/0", "-1/5", "1/1001", "a/b", "1/5/2"] {
            assert!(invalid.parse::<Shard>().unwrap_err().contains("use 2/5"), "{invalid}");
        }
    }

    #[test]
    fn each_hash_is_in_one_share_and_shares_are_of_equal_size() {
        let shares: Vec<Shard> = (1..=5).map(|n| format!("{n}/5").parse().unwrap()).collect();
        let mut sizes = [0; 5];
        for n in 0..10_000_u64 {
            let hash = xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes());
            let mut owners = (0..5).filter(|share| shares[*share].contains(hash));
            sizes[owners.next().unwrap()] += 1;
            assert_eq!(owners.next(), None);
        }
        assert!(sizes.iter().all(|size| (1_800..2_200).contains(size)), "{sizes:?}");
    }
}
