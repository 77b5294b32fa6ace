#!/usr/bin/env python3
"""Agents that are killed, agents whose daemon was unreachable, and the size of their batches.

    benches/agents.py kills  DAEMON AGENT_HOST [--kills 100] [--agents 5]
    benches/agents.py return DAEMON AGENT_HOST [--agents 50] [--away 600] [--interval 5]
    benches/agents.py wire   AGENT_HOST [--seconds 300] [--interval 10] [--linger 0,10,20,40]

kills: SIGKILL ends agents at random moments, and they restart. Each round of a spool must be in the
store once: a gauge has as many values as the spool's last number, at each granularity.
return: the daemon is away for a number of seconds and returns. The output has the delays until live
samples and the whole backlog are stored, and whether each round counts once at each granularity.
wire: bytes per sample of the bodies, sent to a server that reads packed batches and to one that does
not.
Needs Python 3.9 and nothing else.
"""
import argparse, http.server, json, os, random, re, signal, subprocess, sys, tempfile, threading, time
import urllib.parse, urllib.request

METRIC = "system_load_1m"


class Daemon:
    def __init__(self, binary, folder, port):
        self.binary, self.folder, self.port = binary, folder, port
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [self.binary, "serve", "--data-dir", f"{self.folder}/data", "--listen", f"127.0.0.1:{self.port}"],
            stderr=open(f"{self.folder}/daemon.log", "a"))
        while True:
            try:
                return self.get("/readyz")
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(f"the daemon ended: {self.folder}/daemon.log")
                time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def get(self, path, **query):
        query = urllib.parse.urlencode(query)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}?{query}", timeout=60) as answer:
            return answer.read()

    def series(self, resolution, display, span="2d"):
        """Returns the points of each host."""
        answer = json.loads(self.get("/api/v1/chart", metric=METRIC, range=span,
                                     resolution=resolution, display=display))
        return {series["tags"]["host"]: series["points"] for series in answer["series"]}

    def counts(self, resolution):
        """Returns the number of values of each host."""
        return {host: sum(count or 0 for _, count in points)
                for host, points in self.series(resolution, "count").items()}


class Agent:
    def __init__(self, binary, name, folder, port, interval, extra_arguments=()):
        self.name, self.log = name, f"{folder}/{name}.log"
        self.command = [binary, "--url", f"http://127.0.0.1:{port}", "--agent-id", name, "--interval", interval,
                      "--spool-dir", f"{folder}/{name}", *extra_arguments]
        self.process = None

    def start(self):
        env = dict(os.environ, RUST_LOG="granary_agent_kit=debug", NO_COLOR="1")
        self.process = subprocess.Popen(self.command, stderr=open(self.log, "a"), env=env)

    def end(self, signal_number):
        self.process.send_signal(signal_number)
        self.process.wait()

    def last_number(self):
        """Returns the last number of a spool whose agent stopped cleanly: all earlier ones were acknowledged."""
        log = open(self.log).read()
        assert "begins" not in log and "dropped" not in log.split("stopped")[0], self.log
        return max(int(number) for number in re.findall(r"through=(?:Some\()?(\d+)", log))


def compare(daemon, agents):
    """Returns true when each round is stored once at each granularity."""
    expected = {agent.name: agent.last_number() for agent in agents}
    all_equal = True
    for resolution in ("1m", "5m", "1h", "1d"):
        counts = daemon.counts(resolution)
        wrong = {name: (counts.get(name), number) for name, number in expected.items()
                 if counts.get(name) != number}
        all_equal &= not wrong
        print(f"  {resolution}: {sum(counts.values()):.0f} values of {sum(expected.values())} rounds"
              + (f"; wrong: {wrong}" if wrong else ""))
    print("each round is stored once" if all_equal else "FAILED")
    return all_equal


def measure_kills(args, folder):
    daemon = Daemon(args.daemon, folder, args.port)
    daemon.start()
    # Each round is written at once, because rounds in memory are lost with their agent.
    write_at_once = ("--spool-linger", "0s")
    agents = [Agent(args.agent, f"a{n}", folder, args.port, "100ms", write_at_once)
              for n in range(args.agents)]
    for agent in agents:
        agent.start()
    rng = random.Random(7)
    for kill in range(args.kills):
        time.sleep(rng.uniform(0.02, 1.2) / len(agents) + 0.1)
        agent = agents[kill % len(agents)]
        agent.end(signal.SIGKILL)
        agent.start()
        if kill % 33 == 20:
            daemon.stop()
            time.sleep(1)
            daemon.start()
    time.sleep(5)
    for agent in agents:
        agent.end(signal.SIGTERM)
    print(f"{args.kills} kills of {len(agents)} agents, {args.kills // 33} restarts of the daemon")
    is_stored_once = compare(daemon, agents)
    daemon.stop()
    return is_stored_once


def measure_return(args, folder):
    daemon = Daemon(args.daemon, folder, args.port)
    daemon.start()
    agents = [Agent(args.agent, f"a{n}", folder, args.port, f"{args.interval}s") for n in range(args.agents)]
    for agent in agents:
        agent.start()
    time.sleep(60)
    daemon.stop()
    print(f"{len(agents)} agents, a round each {args.interval} s; away for {args.away} s", flush=True)
    time.sleep(args.away)
    daemon.start()
    returned_at, live_delays, all_stored = time.time(), {}, None
    while all_stored is None and time.time() - returned_at < 900:
        time.sleep(0.5)
        for host, points in daemon.series("1m", "count", "30m").items():
            # Live samples are from the minute of the return or later.
            if host not in live_delays and any(count and at / 1000 >= returned_at // 60 * 60 for at, count in points):
                live_delays[host] = time.time() - returned_at
        waiting = [agent for agent in agents if is_behind(agent)]
        if not waiting:
            all_stored = time.time() - returned_at
    delays = sorted(live_delays.values())
    print(f"live data of {len(live_delays)} agents, the last after {delays[-1] if delays else -1:.1f} s; "
          f"no agent was behind after {all_stored} s")
    text = daemon.get("/metrics").decode()
    for line in text.splitlines():
        if re.match(r"granary_ingest_requests_total|process_resident_memory_bytes", line):
            print(" ", line)
    for agent in agents:
        agent.end(signal.SIGTERM)
    is_good = compare(daemon, agents) and len(live_delays) == len(agents) and delays[-1] <= 10
    daemon.stop()
    return is_good


def is_behind(agent):
    """Returns true when the last requests were full, which means that a backlog remains."""
    lines = [line for line in open(agent.log).read().splitlines()[-40:] if "acknowledged" in line]
    sizes = [int(re.search(r"batches=(\d+)", line).group(1)) for line in lines[-3:]]
    return not sizes or max(sizes) > 3


def measure_wire(args, _folder):
    body_sizes = {}

    class Sink(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = b'{"accepted":1,"refused":[]}'
            variant = self.path.strip("/").split("/")[0]
            if self.path.endswith("/ingest"):
                body_sizes.setdefault(variant, []).append(len(body))
                answer = b'{"accepted":1,"duplicates":0}'
            self.send_response(200)
            if variant != "bson":
                self.send_header("Accept-Post", "application/vnd.granary.packed")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", args.port), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    variants = [("bson", "0")] + [(f"packed-{linger}", linger) for linger in args.linger.split(",")]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        agents = []
        for variant, linger in variants:
            agent = Agent(args.agent, variant, folder, args.port, f"{args.interval}s", ["--linger", f"{linger}s"])
            agent.command[2] += f"/{variant}"
            agents.append(agent)
            agent.start()
        time.sleep(args.seconds)
        for agent in agents:
            agent.end(signal.SIGTERM)
        for (variant, linger), agent in zip(variants, agents):
            log = open(agent.log).read()
            samples = int(re.search(r"samples_collected=(\d+)", log).group(1))
            rounds = int(re.search(r"rounds=(\d+)", log).group(1))
            # The first request has the definitions of all series.
            first, *rest = body_sizes[variant]
            first_rounds = int(re.search(r"acknowledged batches=(\d+)", log).group(1))
            later_samples = samples * (rounds - first_rounds) / rounds
            print(f"{variant:12} {rounds} rounds of {samples / rounds:.0f} samples, {len(rest)} requests: "
                  f"{sum(rest) / later_samples:.2f} bytes a sample; the first request {first} bytes")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["kills", "return", "wire"])
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--agents", type=int)
    parser.add_argument("--away", type=int, default=600)
    parser.add_argument("--interval", type=int)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--linger", default="0,10,20,40")
    parser.add_argument("--port", type=int, default=7395)
    args = parser.parse_args()
    args.agent = args.programs[-1]
    args.daemon = args.programs[0]
    args.agents = args.agents or (5 if args.what == "kills" else 50)
    args.interval = args.interval or (10 if args.what == "wire" else 5)
    run = {"kills": measure_kills, "return": measure_return, "wire": measure_wire}[args.what]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        sys.exit(0 if run(args, folder) else 1)


if __name__ == "__main__":
    main()
