#!/usr/bin/env python3
"""The cost of ingest per sample, of memory per series, of queries and of a start, for 10,000 to 2,500,000
series. Each size has a new daemon and folder; hosts have 100 series with a sample a minute,
and send over two connections as fast as the daemon responds.

usage: benches/growth.py [SERIES ...]        GRANARY=target/release/granary, PORT=7119

Prints a row per size. Queries read the last minutes, which are still in memory: medians of 20 responses
over one HTTP connection. A start is measured after a clean stop, until /healthz responds. Bytes
written cover the whole process including its stop, so the folder (TMPDIR) must be on a disk.
"""

import http.client
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

GRANARY = os.environ.get("GRANARY", "target/release/granary")
PORT = int(os.environ.get("PORT", "7119"))
SIZES = [int(size) for size in sys.argv[1:]] or [10_000, 100_000, 1_000_000, 2_500_000]
METRICS = 100
ROUNDS = 10
RESPONSES = 20
QUERIES = {
    "a host's 100": ('{host="bench-00001"}', 480),
    "one metric of 100 hosts": ('sum(rate(bench_counter_00{device="d0",host=~"bench-000.."}[2m]))', 480),
    "one metric of all hosts": ('topk(10, bench_gauge_00{device="d3"})', 0),
}


def start(folder):
    before = time.perf_counter()
    command = [GRANARY, "serve", "--data-dir", folder, "--listen", f"127.0.0.1:{PORT}"]
    env = os.environ | {
        "GRANARY__TELEMETRY__INTERVAL": "",
        "GRANARY__LIMITS__SERIES_MAX": "4000000",
        "GRANARY__PROMQL__SERIES_MAX": "4000000",
    }
    log = open(f"{folder}.log", "a")
    daemon = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    while True:
        try:
            if get("/healthz")[0] == 200:
                return daemon, time.perf_counter() - before
        except OSError:
            assert daemon.poll() is None, f"the daemon has ended, see {folder}.log"
        time.sleep(0.005)


def stop(daemon):
    """Stops the daemon; returns the bytes that it wrote to disks."""
    daemon.send_signal(signal.SIGTERM)
    _, status, used = os.wait4(daemon.pid, 0)
    daemon.returncode = os.waitstatus_to_exitcode(status)
    assert daemon.returncode == 0, f"the daemon ended with {daemon.returncode}"
    return used.ru_oublock * 512


def get(path, connection=None):
    connection = connection or http.client.HTTPConnection("127.0.0.1", PORT)
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, response.read()


def metrics():
    lines = get("/metrics")[1].decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def resident_bytes(daemon):
    with open(f"/proc/{daemon.pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def median_latency(query, length, end, connection):
    form = {"query": query, "time": end, "start": end - length, "end": end, "step": 15}
    path = "/api/v1/query_range?" if length else "/api/v1/query?"
    times = []
    for _ in range(RESPONSES):
        before = time.perf_counter()
        status, body = get(path + urllib.parse.urlencode(form), connection)
        times.append((time.perf_counter() - before) * 1000)
        assert status == 200 and json.loads(body)["data"]["result"], body[:300]
    return statistics.median(times)


def measure(series, folder):
    daemon, _ = start(folder)
    try:
        # The last round is a minute before `end`, however long sending takes.
        end = int(time.time()) // 60 * 60
        load = ["--hosts", str(series // METRICS), "--metrics", str(METRICS), "--interval", "60s"]
        load += ["--rounds", str(ROUNDS), "--connections", "2", "--batches-per-request", "1"]
        command = [f"{GRANARY}-bench", "--url", f"http://127.0.0.1:{PORT}", *load, "--keep", "--json"]
        report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        used_bytes, values = resident_bytes(daemon), metrics()
        connection = http.client.HTTPConnection("127.0.0.1", PORT)
        queries = [median_latency(*query, end, connection) for query in QUERIES.values()]
        written = stop(daemon)
        daemon, start_seconds = start(folder)
        bytes_after_start = resident_bytes(daemon)
    finally:
        if daemon.returncode is None:
            stop(daemon)
    parts = {name[len('granary_memory_bytes{part="'):-2]: float(value) / series
             for name, value in values.items() if name.startswith("granary_memory_bytes")}
    cpu = report["daemon_cpu_seconds_per_million_samples"]
    return cpu, [f"{report['seconds']:.0f}", f"{written / report['samples_accepted']:.0f}",
            *(f"{query:.1f}" for query in queries), f"{start_seconds:.2f}",
            f"{used_bytes / series:.0f}", f"{bytes_after_start / series:.0f}",
            ", ".join(f"{name} {count:.0f}" for name, count in sorted(parts.items()))]


def main():
    columns = ["series", "CPU us a sample", "to the smallest", "s", "bytes written a sample",
               *(f"{name}, ms" for name in QUERIES), "start, s",
               "bytes a series", "after a start", "parts"]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    smallest = None
    for series in sorted(SIZES):
        root = tempfile.mkdtemp()
        try:
            cpu, cells = measure(series, os.path.join(root, "data"))
            smallest = smallest or cpu
            row = [f"{series:,}", f"{cpu:.2f}", f"{cpu / smallest:.2f}", *cells]
            print("| " + " | ".join(row) + " |", flush=True)
        finally:
            shutil.rmtree(root)


main()
