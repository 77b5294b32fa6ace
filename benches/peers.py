#!/usr/bin/env python3
"""Granary, VictoriaMetrics and Prometheus side by side: the same remote-write bodies over two
connections, then the same queries. Prints one table with the median of all pairs, the lowest and
highest figure in brackets, and the ratio of Granary to each peer.

    benches/peers.py [--quick] [--pairs N] [--peers victoria,prometheus] [fleet|sealed|history ...]

fleet: 100,000 series of 1,000 hosts, a sample every 10 s, the last ten minutes. sealed: the same
two hours ago, when its documents are written. history: 1,000 series, a sample every minute, 30
days. Each peer starts with an empty directory, stops after the last sample, and starts again for
the queries. CPU is that of the whole process, from its start to the clean stop that writes
everything. --quick: one pair, and 10 instead of 50 responses of each query. `disk_peers.py` measures
disk space: the values of `granary-bench` repeat, which makes compression look better.

Needs `cargo build --release --workspace --bins`, and Debian's victoria-metrics and prometheus.
"""

import argparse
import http.client
import json
import pathlib
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
GRANARY = ROOT / "target/release/granary"
HOUR, DAY = 3600, 86_400
PORT = 7119
FLEET = ["--hosts", "1000", "--metrics", "100", "--interval", "10s", "--rounds", "60",
         "--hosts-per-request", "10", "--batches-per-request", "1"]
HISTORY = ["--hosts", "25", "--metrics", "40", "--interval", "60s", "--rounds", "43200",
           "--hosts-per-request", "1", "--batches-per-request", "100"]
# The load of a workload, and the seconds between its last sample and now.
LOADS = {"fleet": (FLEET, 0), "sealed": (FLEET, 2 * HOUR), "history": (HISTORY, 0)}
# Name: expression, length of the range and step in seconds. Without a length, the expression is
# evaluated at the last minute alone.
FLEET_QUERIES = {
    "sum by of rates, 1,000 series, 8 min":
        ('sum by (datacenter) (rate(bench_counter_00_total{device="d0"}[2m]))', 480, 15),
    "topk(10) of 1,000 series": ('topk(10, bench_gauge_00{device="d3"})', 0, 0),
    "sum of all 100,000 series": ('sum({__name__=~"bench_.+"})', 0, 0),
    "1,000 series, 8 min": ('bench_gauge_00{device="d3"}', 480, 15),
    "one host's 100 series, 8 min": ('{__name__=~"bench_.+",host="bench-00001"}', 480, 15),
}
ONE = 'bench_gauge_00{host="bench-00001",device="d3"}'
TEN = 'bench_gauge_00{device="d3",host=~"bench-0000."}'
HISTORY_QUERIES = {
    "one series, 30 d by 1 h": (f"avg_over_time({ONE}[1h])", 30 * DAY, HOUR),
    "one series, 30 d by 1 d": (f"avg_over_time({ONE}[1d])", 30 * DAY, DAY),
    "sum of 10 hosts, 30 d by 1 h": (f"sum(avg_over_time({TEN}[1h]))", 30 * DAY, HOUR),
    "100 series, 24 h by 5 min": ('avg_over_time(bench_gauge_00[5m])', DAY, 300),
}


class Peer:
    """A running store with its data below a folder."""

    def __init__(self, name, folder):
        listen = f"127.0.0.1:{PORT}"
        data = folder / name
        if name == "granary":
            # Shells for the next hour are created in the second half of each hour: ten minutes of
            # samples in ten seconds would include the cost of a whole hour of shells.
            command = ["env", "GRANARY__TELEMETRY__INTERVAL=",
                       "GRANARY__PREALLOCATION__ENABLED=false", GRANARY, "serve", "--data-dir", data,
                       "--listen", listen]
        elif name == "victoria":
            command = ["victoria-metrics", "-storageDataPath", data, "-httpListenAddr", listen,
                       "-retentionPeriod", "5y", "-search.latencyOffset", "0"]
        else:
            settings = folder / "prometheus.yml"
            settings.write_text("storage: {tsdb: {out_of_order_time_window: 40d}}\n")
            command = ["prometheus", "--config.file", settings, "--storage.tsdb.path", data,
                       "--storage.tsdb.retention.time", "5y", "--web.listen-address", listen,
                       "--web.enable-remote-write-receiver"]
        self.name, self.data, self.log = name, data, folder / f"{name}.log"
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log)
        self.wait_until_ready()

    def wait_until_ready(self):
        path = {"granary": "/readyz", "victoria": "/health", "prometheus": "/-/ready"}[self.name]
        while True:
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended: {self.log.read_text()[-2000:]}")
            try:
                connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
                connection.request("GET", path)
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)

    def use(self):
        """Returns the CPU seconds and the peak memory in MiB of the process."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
        return (int(stat[11]) + int(stat[12])) / 100, peak

    def stop(self):
        """Stops the process; returns its CPU seconds and its peak memory in MiB."""
        _, peak = self.use()
        before = children_seconds()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        return children_seconds() - before, peak


def children_seconds():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def ingest(peer, workload):
    """Sends a workload and stops the peer; returns its figures and the time of the last minute."""
    load, ago = LOADS[workload]
    end = int(time.time()) - ago
    command = [f"{GRANARY}-bench", "--url", f"http://127.0.0.1:{PORT}", "--protocol", "remote-write",
               "--connections", "2", "--ended", f"{ago}s", "--keep", "--json", *load]
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert report["samples_refused"] == 0, report
    cpu, peak = peer.stop()
    figures = {
        "CPU-s a million samples": cpu / report["samples_accepted"] * 1e6,
        "million samples a second": report["samples_per_second"] / 1e6,
        "peak memory, MiB": peak,
    }
    return figures, end // 60 * 60


def answers(peer, workload, end, rounds):
    """Returns the milliseconds of each query (the median of its responses), and the results."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT)
    if workload == "history":
        end = end // HOUR * HOUR
    figures, results = {}, {}
    for label, (query, length, step) in queries_of(workload).items():
        form = {"query": query, "start": end - length, "end": end, "step": step, "nocache": 1}
        path = "/api/v1/query_range?"
        if not length:
            form, path = {"query": query, "time": end, "nocache": 1}, "/api/v1/query?"
        times = []
        for _ in range(rounds + 1):
            before = time.perf_counter()
            connection.request("GET", path + urllib.parse.urlencode(form))
            response = connection.getresponse()
            body = response.read()
            times.append((time.perf_counter() - before) * 1000)
            if response.status != 200:
                sys.exit(f"{peer.name} answered {query} with {response.status}: {body[:500]}")
        # The first response fills caches.
        figures[f"{label}, ms"] = statistics.median(times[1:])
        results[label] = len(json.loads(body)["data"]["result"])
    return figures, results


def queries_of(workload):
    return HISTORY_QUERIES if workload == "history" else FLEET_QUERIES


def measure(name, workload, rounds):
    """Returns the figures of one peer, and the number of series in each result."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="granary-peers-"))
    try:
        figures, end = ingest(Peer(name, folder), workload)
        peer = Peer(name, folder)
        times, results = answers(peer, workload, end, rounds)
        peer.stop()
        return figures | times, results
    finally:
        shutil.rmtree(folder)


def shown(values):
    if not values:
        return "-"
    number = lambda value: f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    spread = f" ({number(min(values))} to {number(max(values))})" if len(values) > 1 else ""
    return number(statistics.median(values)) + spread


def print_table(workload, pairs, peers):
    print(f"\n## {workload}\n\n| | Granary |" + "".join(f" {peer} | ratio |" for peer in peers))
    print("|---|---|" + "---|---|" * len(peers))
    for label in pairs[0]["granary"]:
        of = lambda peer: [pair[peer][label] for pair in pairs if peer in pair]
        ratios = lambda peer: [pair["granary"][label] / pair[peer][label] for pair in pairs]
        cells = "".join(f" {shown(of(peer))} | {shown(ratios(peer))} |" for peer in peers)
        print(f"| {label} | {shown(of('granary'))} |{cells}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--quick", action="store_true", help="one pair, 10 responses of each query")
    parser.add_argument("--pairs", type=int, help="number of pairs (default: 3)")
    parser.add_argument("--peers", default="victoria", help="names with commas (default: victoria)")
    options = parser.parse_args()
    unknown = set(options.workloads) - set(LOADS)
    if unknown:
        parser.error(f"unknown workload {unknown.pop()}; use {', '.join(LOADS)}")
    peers = options.peers.split(",")
    for workload in options.workloads or LOADS:
        pairs = []
        for number in range(options.pairs or (1 if options.quick else 3)):
            pair, counts = {}, {}
            for peer in ["granary", *peers]:
                print(f"{workload}, pair {number + 1}: {peer}", file=sys.stderr)
                pair[peer], counts[peer] = measure(peer, workload, 10 if options.quick else 50)
            for peer in peers:
                if counts[peer] != counts["granary"]:
                    print(f"results differ: {counts['granary']}, {peer}: {counts[peer]}", file=sys.stderr)
            pairs.append(pair)
        print_table(workload, pairs, peers)


if __name__ == "__main__":
    main()
