//! The live tail: events, slow subscribers, and the daemon's stop.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::Stdio,
    time::Duration,
};

use granary::clock::Stopwatch;
use serde_json::{Value, json};

use crate::daemon::{Daemon, client, granary};

/// The time after which a test gives up.
const DEADLINE: Duration = Duration::from_secs(30);

struct Subscriber(Box<dyn BufRead>);

fn subscribe(daemon: &Daemon, query: &str) -> Result<Subscriber, u16> {
    let response = client().get(format!("{}/api/v1/tail?{query}", daemon.url)).call().unwrap();
    if response.status() != 200 {
        return Err(response.status().as_u16());
    }
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    Ok(Subscriber(Box::new(BufReader::new(response.into_body().into_reader()))))
}

impl Subscriber {
    /// Returns the next non-empty line, or `None` at the end.
    fn next_line(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if !line.trim().is_empty() {
                return Some(line.trim().to_owned());
            }
        }
    }

    /// Returns the cells of the next event.
    fn next_cells(&mut self) -> Vec<Value> {
        assert_eq!(self.next_line().unwrap(), "event: cells");
        let line = self.next_line().unwrap();
        let event: Value = serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(event["resolution"], "1d");
        event["cells"].as_array().unwrap().clone()
    }
}

fn send(daemon: &Daemon, host: &str, value: f64) {
    let sample = json!({"metric": "load", "tags": {"host": host}, "value": value});
    assert_eq!(daemon.post_json(&json!({"samples": [sample]})).status, 200);
}

// Slots of a day seldom end during a test.
#[test]
fn a_subscriber_sees_the_state_and_then_each_change_until_the_daemon_stops() {
    let mut daemon = Daemon::start("");
    send(&daemon, "a", 1.5);
    let mut tail = subscribe(&daemon, "metric=load&resolution=1d").ok().unwrap();
    let mut subscriber_without_state =
        subscribe(&daemon, "metric=load&resolution=1d&state=false").ok().unwrap();
    let cells = tail.next_cells();
    let [cell] = &cells[..] else { panic!("{cells:?}") };
    assert_eq!((&cell["tags"], &cell["kind"]), (&json!({"host": "a"}), &json!("gauge")));
    let numbers = ["n", "sum", "min", "max", "first", "last"].map(|name| cell[name].as_f64());
    assert_eq!(numbers, [1.0, 1.5, 1.5, 1.5, 1.5, 1.5].map(Some));
    // The comment shows that the tail is established.
    assert!(subscriber_without_state.next_line().unwrap().starts_with(':'));

    send(&daemon, "b", 2.0);
    for tail in [&mut tail, &mut subscriber_without_state] {
        let cells = tail.next_cells();
        assert!(cells.len() == 1 && cells[0]["tags"]["host"] == "b", "{cells:?}");
    }
    send(&daemon, "a", 2.5);
    let cells = tail.next_cells();
    assert!(cells.len() == 1 && cells[0]["tags"]["host"] == "a", "{cells:?}");

    let mut command = granary();
    command.args(["tail", "--metric", "load", "--resolution", "1d", "--url", &daemon.url]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = printed.next().unwrap().unwrap();
    assert!(line.contains("load{host=") && line.contains("sum="), "{line}");

    let watch = Stopwatch::start();
    assert_eq!(daemon.stop(), Some(0));
    assert!(watch.elapsed() < Duration::from_secs(5), "the stop took {:?}", watch.elapsed());
    assert!(!daemon.log().contains("is late"), "{}", daemon.log());
    while tail.next_line().is_some() {}
    assert!(child.wait().unwrap().success());
}

/// The maximum number of live tails.
const TAILS_MAX: usize = 16;

#[test]
fn live_tails_are_limited() {
    let daemon = Daemon::start("limits.query_points_max = 80");
    for host in ["a", "b"] {
        send(&daemon, host, 1.0);
    }
    for query in ["", "metric=load&resolution=7m", "metric=load&since=now"] {
        assert_eq!(subscribe(&daemon, query).err(), Some(400), "{query}");
    }
    let mut tail = subscribe(&daemon, "metric=load&resolution=1d").ok().unwrap();
    assert_eq!(tail.next_cells().len(), 2);
    let _others: Vec<_> =
        (1..TAILS_MAX).map(|_| subscribe(&daemon, "metric=other").ok().unwrap()).collect();
    assert_eq!(subscribe(&daemon, "metric=load").err(), Some(429));
    send(&daemon, "c", 1.0);
    assert_eq!(tail.next_line().unwrap(), "event: error");
    assert!(tail.next_line().unwrap().contains("3 series match, more than 2"));
    assert_eq!(tail.next_line(), None);
    let watch = Stopwatch::start();
    while subscribe(&daemon, "metric=load").err() == Some(429) {
        assert!(watch.elapsed() < DEADLINE, "the tail that ended keeps its place");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(subscribe(&daemon, "metric=load").err(), Some(422));
}

#[test]
fn a_subscriber_that_reads_nothing_is_disconnected_and_uses_no_memory() {
    /// The number of series, each with a tag of a kilobyte.
    const SERIES: usize = 1000;
    let daemon = Daemon::start("server.client_timeout = '5s'");
    let send_round = |value: usize| {
        let text = "x".repeat(1000);
        let sample = |i: usize| json!({"metric": "load", "tags": {"host": format!("{i}{text}")}, "value": value});
        let samples: Vec<_> = (0..SERIES).map(sample).collect();
        assert_eq!(daemon.post_json(&json!({ "samples": samples })).status, 200);
    };
    send_round(0);
    let address = daemon.url.trim_start_matches("http://");
    let mut silent_subscriber = TcpStream::connect(address).unwrap();
    write!(silent_subscriber, "GET /api/v1/tail?metric=load HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut head = [0; 12];
    silent_subscriber.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    let _others: Vec<_> =
        (1..TAILS_MAX).map(|_| subscribe(&daemon, "metric=other").ok().unwrap()).collect();
    assert_eq!(subscribe(&daemon, "metric=load").err(), Some(429));
    let peak_memory = || {
        let metrics = daemon.metrics();
        let mut lines = metrics.lines();
        let name = "granary_process_resident_memory_peak_bytes ";
        lines.find_map(|line| line.strip_prefix(name)?.parse::<f64>().ok()).unwrap()
    };
    // The first rounds allocate the memory that requests need.
    (1..5).for_each(&send_round);
    let before = peak_memory();
    let watch = Stopwatch::start();
    let mut rounds = 5;
    while subscribe(&daemon, "metric=load").err() == Some(429) {
        assert!(watch.elapsed() < DEADLINE * 2, "the silent subscriber is not disconnected");
        send_round(rounds);
        rounds += 1;
    }
    let growth = peak_memory() - before;
    // Requests under way need up to 40 MB. Kept rounds would need a megabyte each.
    let limit = (rounds as f64 * 0.5e6).max(48e6);
    assert!(growth < limit, "{rounds} rounds of a megabyte took {growth} bytes");
}
