//! Senders whose batches and series are in several stores: their list equals that of one store with
//! all of them.

use std::{collections::BTreeSet, time::Duration};

use granary::{
    model::{AcceptedBatch, BatchNumber, Deduplication, Kind, SeriesInfo, UnixMillis},
    query::{Budget, QueryResources, Scheduler, SendersRequest},
    store::{Appender, Store},
};

use crate::setup::{self, HOUR, MINUTE};

const START: UnixMillis = UnixMillis(1_795_219_200_000);
const NOW: UnixMillis = UnixMillis(START.0 + HOUR);

struct Opened {
    store: Store,
    appender: Appender,
    _dir: tempfile::TempDir,
}

fn open() -> Opened {
    let dir = tempfile::tempdir().unwrap();
    let (store, appender) = setup::open(dir.path(), START);
    Opened { store, appender, _dir: dir }
}

/// Registers a series of a sender, and sends a batch if it has a number.
fn send(to: &mut Opened, (sender, name): (&str, &str), number: Option<(i64, u64)>, minute: i64) {
    let at = UnixMillis(START.0 + minute * MINUTE);
    let info = setup::series("load", &[("name", name)], Kind::Gauge);
    let id =
        setup::define(&mut to.appender, &[SeriesInfo { sender: sender.into(), ..info }], at)[0];
    if let Some((epoch, seq)) = number {
        let number = BatchNumber { sender: sender.into(), epoch, seq };
        let deduplication = Deduplication::ByNumber(number);
        let batch = AcceptedBatch { deduplication, ..setup::samples(id, [(at.0, 1.0)]) };
        setup::send(&mut to.appender, batch, at);
    }
}

#[test]
fn names_of_senders_take_memory_only_if_they_are_requested() {
    let mut shard = open();
    for sender in 0..100 {
        let name = format!("rows{sender}");
        send(&mut shard, (&name, &name), None, 1);
    }
    let resources = QueryResources::new(Scheduler::for_this_machine(), 1000);
    let budget = resources.budget(Duration::from_secs(600));
    let part = |prefix: &str| {
        let prefix = prefix.to_owned();
        SendersRequest { prefix, ..SendersRequest::default() }.part(&shard.store, &budget)
    };
    let refused = part("").unwrap_err();
    assert!(refused.to_string().contains("memory"), "{refused}");
    budget.shrink_to(0);
    part("rows99").unwrap();
    assert!((1..1000).contains(&budget.reserved()), "{}", budget.reserved());
}

#[test]
fn senders_of_shards_are_listed_as_those_of_one_store() {
    let (mut whole, mut shards) = (open(), [open(), open(), open()]);
    for (shard, sender, name, number, minute) in [
        (0, "web1", "a", Some((1, 7)), 1),
        (0, "web1", "b", Some((2, 1)), 2),
        (0, "web3", "c", Some((1, 1)), 3),
        // These batches and series are in two shards.
        (1, "web2", "d", Some((1, 4)), 4),
        (2, "web2", "e", Some((1, 9)), 50),
        (2, "web2", "f", Some((3, 2)), 51),
        // The sender also sends rows without numbers.
        (1, "web3", "g", None, 55),
        // A sender without numbers is not listed.
        (2, "rows", "h", None, 56),
    ] {
        for to in [&mut whole, &mut shards[shard]] {
            send(to, (sender, name), number, minute);
        }
    }
    let named = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    for (names, prefix, idle_ms, expected) in [
        (&[][..], "", None, &["web1", "web2", "web3"][..]),
        (&["web2"], "", None, &["web2"]),
        (&[], "web", Some(20 * MINUTE), &["web1", "web3"]),
        // The later batch of another shard decides.
        (&["web2"], "", Some(20 * MINUTE), &[]),
        (&["web2"], "", Some(5 * MINUTE), &["web2"]),
        (&["web2", "web3"], "x", None, &[]),
    ] {
        let request = SendersRequest { names: named(names), prefix: prefix.to_owned(), idle_ms };
        let part = |shard: &Opened| request.part(&shard.store, &Budget::UNLIMITED).unwrap();
        let parts = shards.iter().map(part).collect();
        let found = request.join(parts, &Budget::UNLIMITED, NOW).unwrap();
        assert_eq!(found, request.list(&whole.store, NOW), "{request:?}");
        let listed: Vec<_> = found.senders.iter().map(|sender| &*sender.agent).collect();
        assert_eq!((listed.as_slice(), found.total), (expected, expected.len()), "{request:?}");
        if let Some(sender) = found.senders.iter().find(|sender| sender.agent == "web2") {
            let epochs: Vec<_> =
                sender.epochs.iter().map(|epoch| (epoch.epoch, epoch.seq)).collect();
            assert_eq!((epochs, sender.series), (vec![(3, 2), (1, 9)], 3));
        }
    }
}
