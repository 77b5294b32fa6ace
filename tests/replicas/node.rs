//! A node as a process of its own: replicas of all shards, and a port for requests of lines.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::sync_channel,
    },
    thread,
    time::Duration,
};

use granary_publish::MongoUri;
use granary_replication::{
    Event, NodeName, Refusal, Replica, Shard, Timing,
    medium::MongoMedium,
    runner::{self, Connections, ReplicaHandle, Spreader, Writer, start},
};
use tokio::runtime::Runtime;

use crate::{server::wait_until, toy::Toy};

/// The nodes of the cluster.
pub(crate) const NODES: [&str; 3] = ["a", "b", "c"];
pub(crate) const SHARDS: u16 = 3;
/// The variable with the node's name, which makes a process of this test a node.
pub(crate) const NAME: &str = "GRANARY_REPLICA_NODE";
pub(crate) const FOLDER: &str = "GRANARY_REPLICA_FOLDER";
pub(crate) const URI: &str = "GRANARY_REPLICA_URI";
/// The time that a request may take in a node.
const REQUEST_SECONDS_MAX: u64 = 3;

type Replicas = Arc<Vec<Arc<ReplicaHandle<Toy>>>>;

#[test]
#[ignore = "a process of the test with kills, which does nothing by itself"]
fn runs_as_a_process_of_the_other_test() {
    let Ok(name) = std::env::var(NAME) else { return };
    let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
    let uri = MongoUri::parse(&std::env::var(URI).unwrap()).unwrap();
    fs::create_dir_all(folder.join(&name)).unwrap();
    let runtime = Runtime::new().unwrap();
    let medium = Arc::new(runtime.block_on(MongoMedium::open(&uri, "granary")).unwrap());
    let writer = Writer::start(runtime.handle(), medium.clone());
    let connections =
        Connections { runtime: runtime.handle().clone(), medium: medium.clone(), writer };
    let replicas: Replicas = Arc::new(
        (0..SHARDS)
            .map(|shard| Arc::new(start_replica(&folder, &name, shard, connections.clone())))
            .collect(),
    );
    let running = runner::Replicas::default();
    for (shard, replica) in (0..).zip(&*replicas) {
        running.add(shard, replica);
    }
    let spreader = Spreader {
        node: NodeName::parse(&name).unwrap(),
        address: String::new(),
        runs: next_run(&folder.join(&name)),
        rules: Arc::default(),
        replicas_per_shard: NODES.len(),
        hands_over: true,
        replicas: running,
        nodes: Arc::default(),
    };
    let spreader = runtime.spawn(spreader.run(medium));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let temporary = folder.join(format!("{name}.port.new"));
    fs::write(&temporary, port).unwrap();
    fs::rename(temporary, folder.join(format!("{name}.port"))).unwrap();
    let stops = Arc::new(AtomicBool::new(false));
    for stream in listener.incoming() {
        let (replicas, stops_here) = (replicas.clone(), stops.clone());
        let stream = stream.unwrap();
        if stops.load(Ordering::SeqCst) {
            break;
        }
        thread::spawn(move || serve(&stream, &replicas, &stops_here));
    }
    // A clean stop: the connection that woke the listener was the last one.
    spreader.abort();
    assert!(runtime.block_on(spreader).unwrap_err().is_cancelled());
    wait_until("the end of requests", 10, || Arc::strong_count(&replicas) == 1);
    let replicas = Arc::into_inner(replicas).expect("no request runs");
    for replica in replicas {
        Arc::into_inner(replica).expect("the spreader has ended").stop().unwrap();
    }
}

/// Returns the number of this process, and that of the last one with the same folder.
fn next_run(folder: &Path) -> (i64, Option<i64>) {
    let path = folder.join("run");
    let previous = fs::read_to_string(&path).ok().and_then(|text| text.parse().ok());
    let run = fastrand::i64(..);
    fs::write(path, run.to_string()).unwrap();
    (run, previous)
}

fn start_replica(
    folder: &Path,
    name: &str,
    shard: u16,
    connections: Connections,
) -> ReplicaHandle<Toy> {
    let me = NodeName::parse(name).unwrap();
    let replica = Replica::new(shard, me, Timing::default(), fastrand::u64(..));
    let log = folder.join(name).join("events");
    let mut log = fs::File::options().create(true).append(true).open(log).unwrap();
    let on_event = move |event: &Event, state: &Toy| {
        let line = match event {
            Event::Committed { number, epoch } => format!("committed {shard} {epoch} {number}\n"),
            Event::Took { epoch } => format!("took {shard} {epoch} {}\n", state.applied()),
            Event::Fenced
            | Event::Stopped
            | Event::Seeded
            | Event::NotSeeded(_)
            | Event::Foreign(_)
            | Event::Damaged(_) => format!("other {shard} {event:?}\n"),
        };
        log.write_all(line.as_bytes()).unwrap();
        ControlFlow::Continue(())
    };
    start(replica, Toy::open(folder, name, shard), connections, on_event).unwrap()
}

fn serve(stream: &TcpStream, replicas: &Replicas, stops: &AtomicBool) {
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(line)) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words.get(index).and_then(|word| word.parse::<u32>().ok());
        let replica = number(1).and_then(|shard| replicas.get(shard as usize));
        let mut stream = stream;
        let answer = match (words[0], replica) {
            ("stop", _) => {
                stops.store(true, Ordering::SeqCst);
                return;
            }
            ("append", Some(replica)) => append(replica, number(2).unwrap()),
            ("state", Some(replica)) => ask(replica, |toy, is_fresh| {
                let last = toy.batches.last_key_value().map_or(0, |(batch, _)| *batch);
                let copies = toy.batches.values().copied().max().unwrap_or(0);
                let (count, digest) = (toy.batches.len(), toy.digest);
                format!("{is_fresh} {last} {count} {copies} {} {digest}", toy.applied())
            }),
            ("strike", Some(replica)) => {
                let node = NodeName::parse(NODES[number(2).unwrap() as usize]).unwrap();
                format!("{:?}", replica.strike(node))
            }
            ("epoch", Some(replica)) => format!("{:?}", replica.status().epoch),
            ("status", Some(replica)) => format!("{:?}", replica.status()),
            ("snapshot", Some(replica)) => {
                let bytes = ask(replica, |toy, _| toy.snapshot());
                // The other side checks what came.
                drop(stream.write_all(&bytes));
                return;
            }
            _ => return,
        };
        if writeln!(stream, "{answer}").is_err() {
            return;
        }
    }
}

fn append(replica: &ReplicaHandle<Toy>, batch: u32) -> String {
    let record =
        move |toy: &Toy| (!toy.batches.contains_key(&batch)).then(|| batch.to_le_bytes().to_vec());
    let outcome = match replica.append(Box::new(record)) {
        Ok(outcome) => {
            let answer = outcome.recv_timeout(Duration::from_secs(REQUEST_SECONDS_MAX));
            answer.unwrap_or(Err(Refusal::Busy))
        }
        Err(refusal) => Err(refusal),
    };
    match outcome {
        Ok(()) => format!("ok {}", replica.status().epoch.unwrap_or(0)),
        Err(refusal) => format!("no {refusal}"),
    }
}

fn ask<T: Send + Default + 'static>(
    replica: &ReplicaHandle<Toy>,
    question: impl FnOnce(&Toy, bool) -> T + Send + 'static,
) -> T {
    let (reply, answer) = sync_channel(1);
    let query = move |toy: &Toy, is_fresh: bool| drop(reply.send(question(toy, is_fresh)));
    if replica.query(Box::new(query)).is_err() {
        return T::default();
    }
    answer.recv_timeout(Duration::from_secs(REQUEST_SECONDS_MAX)).unwrap_or_default()
}
