#!/usr/bin/env python3
"""The cost of a cluster beside an embedded daemon: CPU per sample of each process, bytes per sample from
and to MongoDB, peak memory of each process, and the time of an answer to a batch (p50, p99), for one
embedded daemon and clusters of one, two and four nodes.

usage: benches/cluster.py [--uri mongodb://...] [--nodes 0,1,2,4] [--batches 300] [--samples 2000]
                          [--step-down-every SECONDS]

Without --uri, the test server of tests/cli is the database: its speed says nothing about MongoDB, so only
CPU, bytes and memory of the nodes are comparable. With --uri, databases `granary-bench-N` of that replica
set are used and dropped, and --step-down-every lets its primary step down meanwhile (needs the right to,
and pymongo); every batch is repeated until it is acknowledged, and each must count once at the end.

GRANARY=target/release/granary, SECANTUS=target/python/bin/secantusd-py. `replicas` is the number of
nodes, at most 3. Needs `cargo build --release --workspace`.
"""

import argparse
import http.client
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests/data"))
from links import Link, free_port, wait_until

GRANARY = os.environ.get("GRANARY", str(ROOT / "target/release/granary"))
SECANTUS = os.environ.get("SECANTUS", str(ROOT / "target/python/bin/secantusd-py"))
TICKS = os.sysconf("SC_CLK_TCK")


def request(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_mib(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def start_nodes(folder, count, uri, database):
    nodes = []
    for node in range(max(count, 1)):
        port, home = free_port(), folder / str(node)
        home.mkdir()
        settings = ""
        if count:
            server, _, query = uri.partition("?")
            settings = (f'[cluster]\nuri = "{server.rstrip("/")}/{database}?{query}"\n'
                        f'replicas = {min(count, 3)}\nadvertise = "http://127.0.0.1:{port}"\n')
        (home / "granary.toml").write_text(settings)
        env = dict(os.environ, GRANARY__TELEMETRY__INTERVAL="")
        log = open(home / "log", "wb")
        command = [GRANARY, "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", home / "data",
                   "--config", home / "granary.toml"]
        nodes.append((subprocess.Popen(command, env=env, stdout=log, stderr=log), port))
    for _, port in nodes:
        wait_until("a node", lambda port=port: request(port, "GET", "/readyz")[0] == 200)
    return nodes


def send(nodes, options):
    """Sends all batches over the nodes in turn; returns the times of their answers."""
    times = []
    for number in range(1, options.batches + 1):
        samples = [{"metric": f"load{series % 50}", "tags": {"host": f"web{series // 50}"},
                    "value": series + number} for series in range(options.samples)]
        samples.append({"metric": "batches", "kind": "delta", "value": 1})
        body = json.dumps({"agent": "bench", "epoch": 1, "seq": number, "samples": samples})
        begin, turn = time.monotonic(), number
        while True:
            try:
                status, answer = request(nodes[turn % len(nodes)][1], "POST", "/api/v1/ingest", body)
            except (OSError, http.client.HTTPException):
                status, answer = 503, b""
            if status == 200:
                break
            if status not in (429, 503):
                raise SystemExit(f"{status}: {answer}")
            turn += 1
            time.sleep(0.02)
        times.append((time.monotonic() - begin) * 1000)
    return times


def step_downs(uri, every, stops):
    import pymongo
    while not stops.wait(every):
        try:
            pymongo.MongoClient(uri).admin.command("replSetStepDown", 10)
        except pymongo.errors.PyMongoError as cause:
            print(f"step down: {cause}")


def run(count, options, server):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder, link, uri = pathlib.Path(folder), None, options.uri
        if count and not uri:
            link = Link(("127.0.0.1", server))
            uri = f"mongodb://127.0.0.1:{link.port}/?directConnection=true"
        database = f"granary-bench-{count}"
        nodes, stops = start_nodes(folder, count, uri, database), threading.Event()
        try:
            if count and options.step_down_every:
                arguments = (options.uri, options.step_down_every, stops)
                threading.Thread(target=step_downs, args=arguments, daemon=True).start()
            before = [cpu_seconds(process) for process, _ in nodes]
            moved = dict(link.bytes) if link else None
            times = send(nodes, options)
            time.sleep(2)
            total = options.batches * (options.samples + 1)
            cpu = [(cpu_seconds(process) - start) * 1e6 / total
                   for (process, _), start in zip(nodes, before)]
            moved = [link.bytes[way] - moved[way] for way in ("up", "down")] if link else None
            path = "/api/v1/chart?metric=batches&display=total&resolution=1m&range=6h"
            answer = json.loads(request(nodes[0][1], "GET", path)[1])
            counted = sum(point[1] or 0 for point in answer["series"][0]["points"])
            if counted != options.batches:
                raise SystemExit(f"{counted} batches count, {options.batches} were acknowledged")
            name = f"{count} nodes" if count else "embedded"
            times.sort()
            print(f"{name}: CPU {'+'.join(f'{one:.2f}' for one in cpu)} us a sample, memory "
                  f"{'+'.join(f'{peak_mib(process):.0f}' for process, _ in nodes)} MiB, "
                  f"answers p50 {statistics.median(times):.1f} p99 "
                  f"{times[int(len(times) * 0.99)]:.1f} ms"
                  + (f", {moved[0] / total:.2f} B a sample to MongoDB and {moved[1] / total:.2f} "
                     "from it" if moved else ""), flush=True)
        finally:
            stops.set()
            for process, _ in nodes:
                process.kill()
                process.wait()
            if options.uri and count:
                import pymongo
                pymongo.MongoClient(options.uri).drop_database(database)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--uri")
    parser.add_argument("--nodes", default="0,1,2,4")
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--step-down-every", type=float, default=0)
    options = parser.parse_args()
    if options.step_down_every and not options.uri:
        parser.error("--step-down-every needs --uri of a replica set")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server, port = None, free_port()
        if not options.uri:
            log = open(pathlib.Path(folder) / "log", "wb")
            (pathlib.Path(folder) / "db").mkdir()
            command = [SECANTUS, "--host", "127.0.0.1", "--port", str(port), "--sync-on-commit",
                       "--storage-path", pathlib.Path(folder) / "db"]
            server = subprocess.Popen(command, stdout=log, stderr=log)
            wait_until("the test server", lambda: socket.create_connection(("127.0.0.1", port)))
        try:
            for count in options.nodes.split(","):
                run(int(count), options, port)
        finally:
            if server:
                server.kill()


if __name__ == "__main__":
    main()
