//! The spreading of shards over nodes, as pure decisions: who becomes a member, who takes a shard
//! first, and when a holder hands over.
//!
//! Each shard orders all nodes by a hash of both names, so that a node that appears or disappears
//! changes only its own shards. Must never know: the medium, threads.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::replication::{
    entry::{NodeName, ShardRow},
    medium::NodeRow,
};

/// The time without a beat after which a node is down.
pub const DOWN_MS: u64 = 6000;
/// The time without a beat after which a node's shards get another member.
pub const GONE_MS: u64 = 600_000;
/// The time for which a node must be up before a shard moves to it.
pub const STEADY_MS: u64 = 30_000;

/// The time between two reads of all nodes that counts at most.
const READ_MS_MAX: u64 = 3000;

/// The beats of nodes, in time of one's own with successful reads: while MongoDB is away, no node
/// can beat, and none is down for that.
#[derive(Debug, Default)]
pub struct Beats {
    nodes: BTreeMap<NodeName, Beat>,
    /// The time that counted.
    clock_ms: u64,
    read_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Beat {
    last: i64,
    seen_ms: u64,
    changed_ms: Option<u64>,
    up_since_ms: u64,
}

impl Beats {
    /// Notes a read of all nodes. A node counts as up from its first change on: an old row does
    /// not beat.
    pub fn note(&mut self, rows: &[NodeRow], now_ms: u64) {
        let since_ms = self.read_ms.map_or(0, |last| now_ms.saturating_sub(last));
        self.clock_ms += since_ms.min(READ_MS_MAX);
        self.read_ms = Some(now_ms);
        let now_ms = self.clock_ms;
        self.nodes.retain(|node, _| rows.iter().any(|row| row.node == *node));
        for row in rows {
            let first =
                Beat { last: row.beat, seen_ms: now_ms, changed_ms: None, up_since_ms: now_ms };
            let beat = self.nodes.entry(row.node.clone()).or_insert(first);
            if beat.last != row.beat {
                let was_down = beat.changed_ms.is_none_or(|last| now_ms > last + DOWN_MS);
                beat.up_since_ms = if was_down { now_ms } else { beat.up_since_ms };
                (beat.last, beat.changed_ms) = (row.beat, Some(now_ms));
            }
        }
    }

    /// Returns the nodes that are not down, and have been up for `steady_ms`.
    pub fn up(&self, steady_ms: u64) -> Vec<NodeName> {
        self.filter(|beat| {
            beat.changed_ms.is_some_and(|last| self.clock_ms <= last + DOWN_MS)
                && self.clock_ms >= beat.up_since_ms + steady_ms
        })
    }

    /// Returns the nodes that are not gone. A node that this one has not yet seen beat may have
    /// done so before this one started.
    pub fn known(&self) -> Vec<NodeName> {
        self.filter(|beat| self.clock_ms <= beat.changed_ms.unwrap_or(beat.seen_ms) + GONE_MS)
    }

    fn filter(&self, is_found: impl Fn(&Beat) -> bool) -> Vec<NodeName> {
        let found = self.nodes.iter().filter(|(_, beat)| is_found(beat));
        found.map(|(node, _)| node.clone()).collect()
    }
}

/// Sorts nodes by the preference of a shard.
pub fn sort_by_preference(shard: u16, nodes: &mut [NodeName]) {
    nodes.sort_by_cached_key(|node| {
        std::cmp::Reverse(xxh3_64_with_seed(node.as_str().as_bytes(), u64::from(shard)))
    });
}

/// The assignment of a node in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment {
    /// The number of members that are preferred as holders.
    pub rank: u32,
    /// True if the node becomes a member.
    pub joins: bool,
    /// True if the node, as the holder, hands over.
    pub hands_over: bool,
}

/// Decides the assignment of a node in a shard that has `replicas` members.
pub fn decide(
    shard: u16,
    me: &NodeName,
    row: &ShardRow,
    beats: &Beats,
    replicas: usize,
) -> Assignment {
    let sorted = |mut nodes: Vec<NodeName>| {
        sort_by_preference(shard, &mut nodes);
        nodes
    };
    let is_member = |node: &NodeName| row.members.contains_key(node);
    let known = sorted(beats.known());
    let joins = known.iter().take(replicas).any(|node| node == me);
    let up = sorted(beats.up(0));
    // A shard is only taken from a holder that is gone, so the present one does not come first.
    let can_take =
        |node: &&NodeName| is_member(node) && (*node == me || row.holder.as_ref() != Some(*node));
    let rank = up.iter().filter(can_take).take_while(|node| *node != me).count();
    // A member below the cut cannot take the shard before it is seeded.
    let is_ready = |node: &&NodeName| row.has_cut(node) || *node == me;
    let steady = sorted(beats.up(STEADY_MS));
    let preferred = steady.iter().find(is_ready);
    let hands_over = row.holder.as_ref() == Some(me) && preferred.is_some_and(|node| node != me);
    Assignment { rank: rank as u32, joins, hands_over }
}

/// Returns the member that the holder removes: the least preferred one, when the preferred
/// `replicas` nodes are members that have what was cut.
pub fn surplus(
    shard: u16,
    me: &NodeName,
    row: &ShardRow,
    beats: &Beats,
    replicas: usize,
) -> Option<NodeName> {
    let mut known = beats.known();
    sort_by_preference(shard, &mut known);
    let (wanted, _) = known.split_at(replicas.min(known.len()));
    if wanted.len() < replicas || !wanted.iter().all(|node| row.has_cut(node)) {
        return None;
    }
    let mut others: Vec<_> = row.members.keys().cloned().collect();
    others.retain(|node| !wanted.contains(node) && node != me);
    sort_by_preference(shard, &mut others);
    others.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeName {
        NodeName::parse(name).unwrap()
    }

    fn rows(names: &[&str], beat: i64) -> Vec<NodeRow> {
        let row = |name: &&str| NodeRow {
            node: node(name),
            address: String::new(),
            beat,
            run: 1,
            rules: String::new(),
        };
        names.iter().map(row).collect()
    }

    /// Beats of nodes that are up since second 0, until a second.
    fn beats(names: &[&str], until: u64) -> Beats {
        let mut beats = Beats::default();
        for second in 0..=until {
            beats.note(&rows(names, second as i64), second * 1000);
        }
        beats
    }

    fn holder(name: &str, floors: &[(&str, u64)], cut: u64) -> ShardRow {
        let members = floors.iter().map(|(name, floor)| (node(name), *floor)).collect();
        ShardRow { epoch: 1, holder: Some(node(name)), cut, members, ..ShardRow::default() }
    }

    fn first(shard: u16, names: &[&str]) -> String {
        let mut nodes: Vec<_> = names.iter().map(|name| node(name)).collect();
        sort_by_preference(shard, &mut nodes);
        nodes[0].to_string()
    }

    #[test]
    fn shards_are_spread_and_only_those_of_a_lost_node_move() {
        let firsts: Vec<_> = (0..300).map(|shard| first(shard, &["a", "b", "c"])).collect();
        for name in ["a", "b", "c"] {
            let count = firsts.iter().filter(|node| *node == name).count();
            assert!((70..130).contains(&count), "{name}: {count}");
        }
        for shard in 0..300 {
            let before = first(shard, &["a", "b", "c"]);
            let after = first(shard, &["a", "b"]);
            assert!(before == "c" || before == after, "shard {shard} moved from {before}");
        }
    }

    #[test]
    fn a_node_is_up_from_its_first_change_until_its_beats_end() {
        let mut beats = Beats::default();
        let mut second = 0;
        let mut note = |beats: &mut Beats, beat: i64| {
            second += 1;
            beats.note(&rows(&["a"], beat), second * 1000);
        };
        note(&mut beats, 5);
        assert_eq!(beats.up(0), [], "an old row");
        note(&mut beats, 6);
        (0..6).for_each(|_| note(&mut beats, 6));
        assert_eq!(beats.up(0), [node("a")]);
        note(&mut beats, 6);
        assert_eq!((beats.up(0), beats.known()), (vec![], vec![node("a")]));
        (0..30).for_each(|_| note(&mut beats, 6));
        note(&mut beats, 7);
        assert_eq!((beats.up(0), beats.up(STEADY_MS)), (vec![node("a")], vec![]), "it restarted");
        beats.note(&[], 99_000);
        assert_eq!((beats.up(0), beats.known()), (vec![], vec![]));
    }

    #[test]
    fn neither_an_outage_nor_a_start_makes_another_node_look_gone() {
        let mut beats = beats(&["a", "b"], 40);
        // MongoDB was away for a day: nobody could beat.
        beats.note(&rows(&["a", "b"], 40), 86_400_000);
        assert_eq!(beats.up(STEADY_MS), [node("a"), node("b")]);
        let mut fresh = Beats::default();
        for second in 0..=601 {
            fresh.note(&rows(&["a", "b"], 40), second * 1000);
            assert_eq!(fresh.known().len(), if second <= 600 { 2 } else { 0 }, "{second}");
        }
    }

    #[test]
    fn a_shard_moves_only_to_a_preferred_member_that_is_steady_and_above_the_cut() {
        let shard = (0..99).find(|shard| first(*shard, &["a", "b"]) == "b").unwrap();
        let hands_over = |row: &ShardRow, until: u64| {
            let beats = beats(&["a", "b"], until);
            decide(shard, &node("a"), row, &beats, 2).hands_over
        };
        let row = holder("a", &[("a", 9), ("b", 5)], 5);
        assert!(hands_over(&row, 31));
        assert!(!hands_over(&row, 20), "not steady");
        assert!(!hands_over(&holder("a", &[("a", 9), ("b", 4)], 5), 31), "below the cut");
        assert!(!hands_over(&holder("a", &[("a", 9)], 5), 31), "no member");
        assert!(!hands_over(&holder("b", &[("a", 9), ("b", 5)], 5), 31), "not the holder");
    }

    #[test]
    fn a_shard_gets_a_member_only_when_a_preferred_node_is_gone() {
        let names = ["a", "b", "c"];
        let mut nodes: Vec<_> = names.iter().map(|name| node(name)).collect();
        sort_by_preference(7, &mut nodes);
        let [one, two, three] = [0, 1, 2].map(|index| nodes[index].clone());
        let mut beats = beats(&names, 10);
        let joins =
            |beats: &Beats, me: &NodeName| decide(7, me, &ShardRow::default(), beats, 2).joins;
        assert!(joins(&beats, &one) && joins(&beats, &two) && !joins(&beats, &three));
        for second in 11..=611 {
            let mut rows = rows(&[one.as_str(), three.as_str()], second);
            rows.push(NodeRow { node: two.clone(), beat: 10, ..rows[0].clone() });
            beats.note(&rows, second as u64 * 1000);
            assert_eq!(joins(&beats, &three), second == 611, "after {second} s");
        }
    }

    #[test]
    fn a_surplus_member_goes_when_the_preferred_ones_have_what_was_cut() {
        let names = ["a", "b", "c"];
        let mut nodes: Vec<_> = names.iter().map(|name| node(name)).collect();
        sort_by_preference(7, &mut nodes);
        let [one, two, three] = [0, 1, 2].map(|index| nodes[index].as_str());
        let beats = beats(&names, 10);
        let check = |floors: &[(&str, u64)], me: &str| {
            surplus(7, &node(me), &holder(me, floors, 5), &beats, 2)
        };
        assert_eq!(check(&[(one, 5), (two, 6), (three, 9)], one), Some(node(three)));
        assert_eq!(check(&[(one, 5), (two, 4), (three, 9)], one), None, "two is not seeded");
        assert_eq!(check(&[(one, 5), (two, 6)], one), None);
        assert_eq!(check(&[(one, 5), (two, 6), (three, 9)], three), None, "never itself");
    }
}
