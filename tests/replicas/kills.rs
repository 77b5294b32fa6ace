//! Three nodes as processes, killed, stopped for longer than the TTL, and stopped cleanly, while
//! the server is killed too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    client::{Ack, Progress, append_until_stopped, now, query_until_stopped, request},
    node::{FOLDER, NAME, NODES, SHARDS, URI},
    server::{Server, wait_until},
};

/// The length of the test, without the variable that sets it.
const SECONDS: u64 = 30;
/// The time for which a node is stopped before it may be struck: longer than the TTL of 6 seconds,
/// so that other nodes hold its shards.
const STOPPED: Duration = Duration::from_secs(8);
/// The time for which a node stays stopped, so that the log is cut behind it.
const STRUCK: Duration = Duration::from_secs(2);

/// The loss of a shard's holder.
struct Loss {
    at: Instant,
    shard: u16,
    epoch: u64,
    is_ordered: bool,
}

struct Cluster {
    folder: PathBuf,
    server: Server,
    nodes: Vec<Option<Child>>,
    losses: Vec<Loss>,
    /// Kills of nodes, stops, clean stops, kills of the server.
    events: [u32; 4],
}

impl Cluster {
    fn start_node(&mut self, node: usize) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "node::runs_as_a_process_of_the_other_test", "--ignored"]);
        command.env(NAME, NODES[node]).env(FOLDER, &self.folder).env(URI, self.server.uri());
        let log = self.folder.join(format!("{}.log", NODES[node]));
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        command.arg("--nocapture").stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.nodes[node] = Some(command.spawn().unwrap());
    }

    fn signal(&self, node: usize, signal: &str) {
        let pid = self.nodes[node].as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Notes which shards a node holds, right before it is lost.
    fn note_loss(&mut self, node: usize, is_ordered: bool) {
        for shard in 0..SHARDS {
            let answer = request(&self.folder, NODES[node], &format!("epoch {shard}"));
            let epoch = answer
                .and_then(|answer| answer.strip_prefix("Some(")?.strip_suffix(')')?.parse().ok());
            if let Some(epoch) = epoch {
                self.losses.push(Loss { at: now(), shard, epoch, is_ordered });
            }
        }
    }

    /// Waits for the end of a process that was killed or stops.
    fn reap(&mut self, node: usize) {
        let mut process = self.nodes[node].take().unwrap();
        let mut status = None;
        wait_until("the end of a node", 20, || {
            status = process.try_wait().unwrap();
            status.is_some()
        });
    }

    /// Returns a node, mostly one that holds a shard.
    fn choose_node(&self) -> usize {
        let is_holder = |node: &usize| {
            let epoch = |shard| request(&self.folder, NODES[*node], &format!("epoch {shard}"));
            (0..SHARDS).any(|shard| epoch(shard).is_some_and(|epoch| epoch != "None"))
        };
        let holders: Vec<_> = (0..NODES.len()).filter(is_holder).collect();
        let any = fastrand::usize(..NODES.len());
        if fastrand::u32(..4) == 0 { any } else { fastrand::choice(holders).unwrap_or(any) }
    }

    fn disturb(&mut self, round: u32) {
        let node = self.choose_node();
        match round % 5 {
            0 | 4 => {
                self.events[0] += 1;
                self.note_loss(node, false);
                self.signal(node, "-KILL");
                self.reap(node);
                thread::sleep(Duration::from_millis(fastrand::u64(..9000)));
                self.start_node(node);
            }
            3 => {
                self.events[1] += 1;
                self.note_loss(node, false);
                self.signal(node, "-STOP");
                thread::sleep(STOPPED);
                if self.events[1] % 2 == 1 {
                    self.strike(node);
                    thread::sleep(STRUCK);
                }
                self.signal(node, "-CONT");
            }
            2 => {
                self.events[2] += 1;
                self.note_loss(node, true);
                // The second connection wakes the listener.
                for _ in 0..2 {
                    request(&self.folder, NODES[node], "stop 0");
                }
                self.reap(node);
                thread::sleep(Duration::from_millis(fastrand::u64(..3000)));
                self.start_node(node);
            }
            // Long after the last clean stop, whose takeover is over.
            _ => {
                self.events[3] += 1;
                self.server.kill();
                thread::sleep(Duration::from_millis(fastrand::u64(..2000)));
                self.server.restart();
                // A takeover during an outage takes as long as the outage.
                self.losses.retain(|loss| loss.at.elapsed() > Duration::from_secs(12));
            }
        }
        thread::sleep(Duration::from_millis(fastrand::u64(500..3000)));
    }

    /// Lets the holders remove a node, which must be seeded when it continues.
    fn strike(&mut self, node: usize) {
        for shard in 0..SHARDS {
            for other in NODES.iter().filter(|other| **other != NODES[node]) {
                request(&self.folder, other, &format!("strike {shard} {node}"));
            }
        }
    }

    /// Returns the states of a shard on all nodes; an empty state of a node that does not answer.
    fn states(&self, shard: u16) -> Vec<String> {
        let ask = |node: &&str| {
            let answer = request(&self.folder, node, &format!("state {shard}"));
            // Whether the node is the holder differs.
            answer.and_then(|answer| Some(answer.split_once(' ')?.1.to_owned()))
        };
        NODES.iter().map(|node| ask(node).unwrap_or_default()).collect()
    }

    /// Waits until all replicas have equal states with all acknowledged batches.
    fn check_states(&self, shard: u16, acked: u32) {
        let mut states = Vec::new();
        wait_until(&format!("equal replicas of {shard}: {:?}", self.states(shard)), 60, || {
            states = self.states(shard);
            states.iter().all(|state| *state == states[0] && !state.is_empty())
                && states[0].split(' ').next().unwrap().parse::<u32>().unwrap() >= acked
        });
        let words: Vec<u64> = states[0].split(' ').map(|word| word.parse().unwrap()).collect();
        // Batches have consecutive numbers: the last one, their count, and copies of one of them.
        assert_eq!((words[1], words[2]), (words[0], 1), "shard {shard}: {states:?}");
        assert!(words[0] >= u64::from(acked), "shard {shard}: {states:?}, acknowledged {acked}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for mut process in self.nodes.iter_mut().filter_map(Option::take) {
            // A process that ended already is fine.
            drop(process.kill());
            drop(process.wait());
        }
    }
}

/// No acknowledged record of an epoch is behind the fence of a higher one, in the nodes' logs.
/// Returns the numbers of fences and of seeded replicas.
fn check_fences(folder: &Path) -> (usize, usize) {
    let (mut fences, mut records, mut seeds) = (BTreeSet::new(), Vec::new(), 0);
    for node in NODES {
        for line in fs::read_to_string(folder.join(node).join("events")).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |index: usize| words[index].parse::<u64>().unwrap();
            seeds += usize::from(line.ends_with(" Seeded"));
            match words[0] {
                "took" => {
                    fences.insert((number(1), number(2), number(3)));
                }
                "committed" => records.push((number(1), number(2), number(3))),
                _ => assert!(!line.contains("Damaged"), "{node}: {line}"),
            }
        }
    }
    for (shard, epoch, number) in &records {
        let higher = fences.range((*shard, epoch + 1, 0)..(*shard + 1, 0, 0));
        for fence in higher {
            assert!(fence.2 > *number, "record {number} of epoch {epoch} is behind {fence:?}");
        }
    }
    let epochs: BTreeMap<_, _> =
        fences.iter().map(|(shard, epoch, number)| ((shard, epoch), number)).collect();
    assert_eq!(epochs.len(), fences.len(), "two nodes had one epoch: {fences:?}");
    (fences.len(), seeds)
}

/// Returns the times from losses of holders to the next acknowledgement, in order.
fn takeover_times(losses: &[Loss], acks: &[Vec<Ack>], is_ordered: bool) -> Vec<f64> {
    let losses = losses.iter().filter(|loss| loss.is_ordered == is_ordered);
    let mut times: Vec<f64> = losses
        .filter_map(|loss| {
            let mut acks = acks[usize::from(loss.shard)].iter();
            let next = acks.find(|ack| ack.at > loss.at && ack.epoch > loss.epoch)?;
            Some(next.at.duration_since(loss.at).as_secs_f64())
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

fn print_times(name: &str, times: &[f64]) {
    let at = |share: f64| times.get(((times.len() as f64 * share) as usize).min(times.len() - 1));
    if !times.is_empty() {
        let (half, most) = (at(0.5).unwrap(), at(0.99).unwrap());
        eprintln!("{name}: {} takeovers, p50 {half:.2} s, p99 {most:.2} s", times.len());
    }
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn acknowledged_records_are_on_all_replicas_once_whatever_is_killed() {
    let seconds = std::env::var("GRANARY_REPLICA_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |seconds| seconds.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster {
        folder: dir.path().to_owned(),
        server: Server::start(),
        nodes: NODES.iter().map(|_| None).collect(),
        losses: Vec::new(),
        events: [0; 4],
    };
    (0..NODES.len()).for_each(|node| cluster.start_node(node));
    let progress: Vec<_> = (0..SHARDS).map(|_| Arc::new(Progress::default())).collect();
    let mut clients = Vec::new();
    for (shard, progress) in (0..).zip(&progress) {
        let (folder, append, query) = (cluster.folder.clone(), progress.clone(), progress.clone());
        let folder_of_queries = folder.clone();
        clients.push((
            thread::spawn(move || append_until_stopped(&folder, shard, &append)),
            thread::spawn(move || query_until_stopped(&folder_of_queries, shard, &query)),
        ));
    }
    wait_until("the first batches", 60, || {
        progress.iter().all(|shard| shard.acked.load(Ordering::SeqCst) > 5)
    });
    let begin = now();
    for round in 0.. {
        if begin.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        cluster.disturb(round);
    }
    // All shards are available again.
    let acked = |shard: &Arc<Progress>| shard.acked.load(Ordering::SeqCst);
    let last: Vec<_> = progress.iter().map(acked).collect();
    wait_until("batches after the last kill", 60, || {
        progress.iter().zip(&last).all(|(shard, last)| acked(shard) > *last + 10)
    });
    for shard in &progress {
        shard.stops.store(true, Ordering::SeqCst);
    }
    let (mut acks, mut answers) = (Vec::new(), (0, 0));
    for (append, query) in clients {
        acks.push(append.join().unwrap());
        let (fresh, all) = query.join().unwrap();
        answers = (answers.0 + fresh, answers.1 + all);
    }
    for (shard, progress) in (0..).zip(&progress) {
        cluster.check_states(shard, acked(progress));
    }
    assert!(answers.0 > 0, "no holder answered up to date");
    let (takes, seeds) = check_fences(&cluster.folder);
    let [kills, stops, ordered, server] = cluster.events;
    let total: u32 = progress.iter().map(acked).sum();
    eprintln!(
        "{total} records acknowledged, {takes} epochs, {seeds} seeds; {kills} kills and {stops} \
         stops of nodes, {ordered} clean stops, {server} kills of the server; {} of {} answers \
         up to date",
        answers.0, answers.1
    );
    print_times("lost holders", &takeover_times(&cluster.losses, &acks, false));
    print_times("clean stops", &takeover_times(&cluster.losses, &acks, true));
}
