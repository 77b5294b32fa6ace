//! Fifty agents whose daemon is unreachable for half an hour, with a simulated clock. Everything
//! from the spool's file to the socket is real, but no thread sleeps.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    net::{SocketAddr, TcpStream},
    sync::Mutex,
    thread::JoinHandle,
};

use super::*;
use crate::sending::test_server::{batches_of, read_request, send_response};

const AGENTS: usize = 50;
/// Milliseconds of the simulated clock.
const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const INTERVAL: u64 = 20 * SECOND;
const STOPPED_AT: u64 = 2 * MINUTE;
const RETURNED_AT: u64 = STOPPED_AT + 30 * MINUTE;
const END: u64 = RETURNED_AT + 5 * MINUTE;
/// The duration of a request.
const REQUEST_DURATION: u64 = 20;

/// The number of times that the daemon received each batch, by agent and number.
type ReceiveCounts = Arc<Mutex<HashMap<(String, u64), u64>>>;

/// A daemon that recognizes duplicates, like the real daemon, until a test stops it.
struct Daemon {
    address: SocketAddr,
    thread: JoinHandle<()>,
}

impl Daemon {
    fn listen(address: &str, received: ReceiveCounts) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            loop {
                let (stream, _) = listener.accept().unwrap();
                let (head, body) = read_request(&stream);
                if head.starts_with("POST /stop ") {
                    return send_response(stream, 200, "", "{}");
                }
                let (mut accepted, mut duplicates) = (0, 0);
                for batch in batches_of(&head, &body) {
                    let mut received = received.lock().unwrap();
                    let times = received.entry((batch.agent, batch.seq)).or_default();
                    *times += 1;
                    let count = if *times == 1 { &mut accepted } else { &mut duplicates };
                    *count += batch.values.len();
                }
                let response = format!(r#"{{"accepted":{accepted},"duplicates":{duplicates}}}"#);
                send_response(stream, 200, "", &response);
            }
        });
        Self { address, thread }
    }

    fn stop(self) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(b"POST /stop HTTP/1.1\r\nContent-Length: 0\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        self.thread.join().unwrap();
    }
}

struct Agent {
    spool: Arc<Spool>,
    sender: Sender,
    totals: Arc<Totals>,
    name: String,
    rounds: u64,
    is_idle: bool,
    /// The time after the return of the daemon at which it first received the newest round.
    live_again_at: Option<u64>,
    _folder: TempDir,
}

impl Agent {
    fn new(number: usize, url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("agent{number}");
        let spool = Arc::new(Spool::open(folder.path(), &name, 1 << 30, 5).unwrap());
        let (sender, totals) = sender(&spool, url, None);
        Self {
            spool,
            sender,
            totals,
            name,
            rounds: 0,
            is_idle: true,
            live_again_at: None,
            _folder: folder,
        }
    }

    fn sample(&mut self) {
        let series = if self.rounds == 0 { vec![definition(0), definition(1)] } else { Vec::new() };
        self.rounds += 1;
        let (agent, values) = (self.name.clone(), vec![1.0, 2.0]);
        let times = vec![i64::try_from(self.rounds * INTERVAL).unwrap()];
        let mut batch =
            Batch { agent, series, refs: vec![0, 1], times, values, ..Batch::default() };
        self.spool.append(&mut batch).unwrap();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Stop,
    Return,
    Round(usize),
    Attempt(usize),
}

struct Fleet {
    agents: Vec<Agent>,
    url: String,
    daemon: Option<Daemon>,
    received: ReceiveCounts,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    requests_by_second: HashMap<u64, usize>,
}

impl Fleet {
    fn new() -> Self {
        let received = ReceiveCounts::default();
        let daemon = Daemon::listen("127.0.0.1:0", Arc::clone(&received));
        let url = format!("http://{}", daemon.address);
        let agents = (0..AGENTS).map(|number| Agent::new(number, &url)).collect();
        let mut events = BinaryHeap::from([
            Reverse((STOPPED_AT, Event::Stop)),
            Reverse((RETURNED_AT, Event::Return)),
        ]);
        // The agents started at different times.
        let spread = INTERVAL / AGENTS as u64;
        events.extend(
            (0..AGENTS).map(|number| Reverse((number as u64 * spread, Event::Round(number)))),
        );
        let requests_by_second = HashMap::new();
        Self { agents, url, daemon: Some(daemon), received, events, requests_by_second }
    }

    fn run(&mut self) {
        while let Some(Reverse((now, event))) = self.events.pop() {
            match event {
                Event::Stop => self.daemon.take().unwrap().stop(),
                Event::Return => {
                    let address = self.url.strip_prefix("http://").unwrap();
                    self.daemon = Some(Daemon::listen(address, Arc::clone(&self.received)));
                }
                Event::Round(number) if now < END => self.round(now, number),
                Event::Round(_) => {}
                Event::Attempt(number) => self.attempt(now, number),
            }
        }
        self.daemon.take().unwrap().stop();
    }

    fn round(&mut self, now: u64, number: usize) {
        let agent = &mut self.agents[number];
        agent.sample();
        self.events.push(Reverse((now + INTERVAL, Event::Round(number))));
        if std::mem::take(&mut agent.is_idle) {
            self.events.push(Reverse((now, Event::Attempt(number))));
        }
    }

    fn attempt(&mut self, now: u64, number: usize) {
        let agent = &mut self.agents[number];
        let pause = match agent.sender.attempt(TIMEOUT).unwrap() {
            Attempt::Progress => Some(REQUEST_DURATION),
            Attempt::Retry { delay, .. } => Some(u64::try_from(delay.as_millis()).unwrap()),
            Attempt::Idle => None,
        };
        if pause == Some(REQUEST_DURATION) {
            *self.requests_by_second.entry(now / SECOND).or_default() += 1;
        }
        let newest = (agent.name.clone(), agent.rounds);
        if now >= RETURNED_AT && self.received.lock().unwrap().contains_key(&newest) {
            agent.live_again_at.get_or_insert(now);
        }
        agent.is_idle = pause.is_none();
        self.events.extend(pause.map(|pause| Reverse((now + pause, Event::Attempt(number)))));
    }
}

#[test]
fn after_an_outage_a_fleet_delivers_each_batch_once_and_live_data_first() {
    let mut fleet = Fleet::new();
    fleet.run();
    let received = fleet.received.lock().unwrap();
    let rounds: u64 = fleet.agents.iter().map(|agent| agent.rounds).sum();
    assert_eq!(received.len() as u64, rounds);
    assert!(received.values().all(|times| *times == 1), "{received:?}");
    for agent in &fleet.agents {
        assert_eq!(agent.totals.samples_acknowledged.get(), 2 * agent.rounds, "{}", agent.name);
        assert_eq!(waiting_batches(&agent.spool), 0, "{}", agent.name);
        let after = agent.live_again_at.unwrap() - RETURNED_AT;
        assert!(after <= 10 * SECOND, "{} delivered live data after {after} ms", agent.name);
    }
    // Jitter spreads the requests of the agents.
    let max = fleet.requests_by_second.values().max().unwrap();
    assert!(*max <= 2 * AGENTS, "{max} requests in a second");
}
