"""The acknowledgement times of ingest without queries, and with 200 clients that send heavy queries.

usage: benches/heavy_queries.py [SECONDS]

Needs `cargo build --release`. Starts a daemon with 50,000 series, and sends 10,000
samples a second.
"""

import collections
import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
GRANARY = ROOT / "target/release/granary"
SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
CLIENTS = 200
HOST = "127.0.0.1:7118"
URL = f"http://{HOST}"
FLEET = ["--hosts", "500", "--metrics", "100"]


def run_bench(*options):
    command = [f"{GRANARY}-bench", "--url", URL, "--keep", "--json", *FLEET, *options]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def queries(now):
    """Returns heavy queries: all series at 15 s steps, ten years at 1 s, a huge pattern, wide joins and charts."""
    day = {"start": now - 86_400, "end": now, "step": 15}
    hour = {"start": now - 3600, "end": now, "step": 15}
    return [
        ("query_range", {"query": 'sum(rate({__name__=~"bench.*"}[5m]))', **hour}),
        ("query_range", {"query": '{__name__=~"bench.+"}', **day}),
        ("query_range", {"query": "bench_gauge_00", "start": now - 315_000_000, "end": now, "step": 1}),
        ("query", {"query": 'max_over_time({__name__=~"bench.*"}[10y:1s])'}),
        ("query", {"query": '{__name__=~"((a{1000}){1000}){1000}"}'}),
        ("query_range", {"query": 'quantile by (host) (0.9, {__name__=~"bench.*"})', **hour}),
        ("query_range", {"query": 'topk(5, {__name__=~"bench.*"} * on (host) group_left bench_gauge_00{device="d3"})', **hour}),
        ("chart", {"metric": "bench_gauge_00", "tags": "device=d3", "range": "2d", "resolution": "1m"}),
        ("documents", {"metric": "bench_gauge_00", "tags": "device=d3", "range": "2h", "resolution": "1m"}),
    ]


def ask_repeatedly(first_query, end, outcomes):
    connection = http.client.HTTPConnection(HOST, timeout=300)
    turn = first_query
    while time.time() < end:
        heavy_queries = queries(int(time.time()))
        path, form = heavy_queries[turn % len(heavy_queries)]
        turn += 1
        try:
            connection.request("GET", f"/api/v1/{path}?" + urllib.parse.urlencode(form))
            response = connection.getresponse()
            body = response.read()
            message = ""
            if response.status != 200:
                answer = json.loads(body)
                message = answer.get("message", answer["error"]).rsplit("raise ", 1)[-1][:60]
            outcomes[(response.status, message)] += 1
        except (http.client.HTTPException, OSError) as cause:
            outcomes[("closed", type(cause).__name__)] += 1
            connection.close()


def memory(pid, what):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) // 1024
    return None


def main():
    with tempfile.TemporaryDirectory() as folder:
        log = open(pathlib.Path(folder) / "log", "w")
        command = [GRANARY, "serve", "--data-dir", f"{folder}/data", "--listen", HOST]
        daemon = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            while True:
                try:
                    http.client.HTTPConnection(HOST).request("GET", "/readyz")
                    break
                except OSError:
                    time.sleep(0.05)
            # The history is an hour with a sample every 30 s.
            run_bench("--interval", "30s", "--rounds", "120", "--pace", "max")
            rounds = str(max(SECONDS // 5, 1))
            live = ["--interval", "5s", "--rounds", rounds, "--pace", "real"]
            idle = run_bench(*live)
            print("idle", json.dumps(idle), memory(daemon.pid, "VmHWM"), "MiB")
            outcomes = collections.Counter()
            end = time.time() + SECONDS
            clients = [
                threading.Thread(target=ask_repeatedly, args=(first_query, end, outcomes))
                for first_query in range(CLIENTS)
            ]
            for client in clients:
                client.start()
            busy = run_bench(*live)
            print("busy", json.dumps(busy), memory(daemon.pid, "VmHWM"), "MiB")
            for client in clients:
                client.join()
            for outcome, count in sorted(outcomes.items(), key=str):
                print(count, *outcome)
        finally:
            daemon.terminate()
            daemon.wait()


main()
