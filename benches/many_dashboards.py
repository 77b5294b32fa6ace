#!/usr/bin/env python3
"""Many dashboards at once beside ingest: Granary, VictoriaMetrics and Prometheus in turn, each with the
same load. Prints the response times of the panels, those of ingest's requests, and the CPU of the store.

    benches/many_dashboards.py [--dashboards 200] [--panels 20] [--metrics 1000] [--seconds 60]
                               [--peers victoria,prometheus]

1,000 hosts send `--metrics` series each, every 10 s at real pace: 100,000 samples a second. They have a
past of ten minutes. Each dashboard refreshes every 10 s, at a time of its own within these 10 s, and
requests its panels one after the other: rates and gauges of one host over 15 minutes by 15 s; every
tenth dashboard has two panels that aggregate 1,000 hosts. As Grafana does, a panel aligns its range to
the step, so that dashboards of the same host ask the same questions. "late" is the share of refreshes
that began more than a second after their time, because earlier ones took too long.

Needs `cargo build --release --workspace --bins`, and Debian's victoria-metrics and prometheus.
"""

import argparse
import http.client
import json
import multiprocessing
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.parse

from peers import GRANARY, PORT, Peer

REFRESH, STEP, RANGE = 10, 15, 900
WORKERS = 8


def panels_of(dashboard, count):
    """Returns the expressions of a dashboard."""
    host = f'host="bench-{dashboard * 37 % 1000:05}"'
    names = [("gauge", "{}"), ("counter", "rate({}[2m])")]
    expressions = []
    for panel in range(count):
        kind, form = names[panel % 2]
        suffix = "_total" if kind == "counter" else ""
        expressions.append(form.format(f"bench_{kind}_{panel % 10:02}{suffix}{{{host}}}"))
    if dashboard % 10 == 0:
        expressions[0] = 'sum by (datacenter) (rate(bench_counter_00_total{device="d0"}[2m]))'
        expressions[-1] = 'topk(5, bench_gauge_00{device="d3"})'
    return expressions


def refresh(dashboards, count, start, until, out):
    """Refreshes some dashboards until a time; returns milliseconds of panels, refreshes and late ones."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=120)
    due = sorted((start + dashboard % 200 * REFRESH / 200, dashboard) for dashboard in dashboards)
    times, refreshes, late, failed = [], 0, 0, 0
    while due[0][0] < until:
        at, dashboard = due.pop(0)
        time.sleep(max(0, at - time.time()))
        late += time.time() > at + 1
        refreshes += 1
        end = int(time.time()) // STEP * STEP
        for expression in panels_of(dashboard, count):
            form = {"query": expression, "start": end - RANGE, "end": end, "step": STEP}
            before = time.perf_counter()
            connection.request("GET", "/api/v1/query_range?" + urllib.parse.urlencode(form))
            response = connection.getresponse()
            response.read()
            failed += response.status != 200
            times.append((time.perf_counter() - before) * 1000)
        due.append((at + REFRESH, dashboard))
        due.sort()
    out.put((times, refreshes, late, failed))


def percentile(values, part):
    return sorted(values)[int((len(values) - 1) * part)]


def measure(name, options):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="granary-many-"))
    peer = Peer(name, folder)
    load = [f"{GRANARY}-bench", "--url", f"http://127.0.0.1:{PORT}", "--protocol", "remote-write", "--keep",
            "--json", "--hosts", "1000", "--metrics", str(options.metrics), "--interval", "10s",
            "--hosts-per-request", "1", "--pace", "real", "--history", "10m", "--connections", "8",
            "--rounds", str(options.seconds // 10 + 2)]
    try:
        ingest = subprocess.Popen(load, stdout=subprocess.PIPE)
        wait_for_present(peer)
        cpu_before, _ = peer.use()
        start, out = time.time() + 1, multiprocessing.Queue()
        workers = [
            multiprocessing.Process(target=refresh, args=(
                range(worker, options.dashboards, WORKERS), options.panels, start,
                start + options.seconds, out))
            for worker in range(min(WORKERS, options.dashboards))
        ]
        for worker in workers:
            worker.start()
        parts = [out.get() for _ in workers]
        cpu, peak = peer.use()
        seconds = time.time() - start
        times = [value for part in parts for value in part[0]]
        refreshes, late, failed = (sum(part[index] for part in parts) for index in (1, 2, 3))
        ingest_report = json.loads(ingest.communicate()[0])
        print(f"| {name} | {len(times) / seconds:.0f} | {percentile(times, .5):.2f} | {percentile(times, .99):.1f} | "
              f"{late / refreshes:.1%} | {failed} | {(cpu - cpu_before) / seconds:.0%} | {peak:.0f} | "
              f"{json.dumps({key: value for key, value in ingest_report.items() if '_ms' in key or 'refused' in key})} |",
              flush=True)
    finally:
        ingest.kill()
        peer.stop()
        shutil.rmtree(folder)


def wait_for_present(peer):
    """Waits until the past was sent: until every host has a sample of the last 20 seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=120)
    recent = 'count(timestamp(bench_gauge_00{device="d3"}) > time() - 20)'
    while True:
        form = {"query": recent, "time": time.time(), "nocache": 1}
        connection.request("GET", "/api/v1/query?" + urllib.parse.urlencode(form))
        result = json.loads(connection.getresponse().read())["data"]["result"]
        if result and float(result[0]["value"][1]) >= 1000:
            return
        time.sleep(1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dashboards", type=int, default=200)
    parser.add_argument("--panels", type=int, default=20)
    parser.add_argument("--metrics", type=int, default=1000, help="series of each host")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--peers", default="victoria,prometheus", help="names with commas")
    options = parser.parse_args()
    print("| store | panels a second | p50, ms | p99, ms | late | failed | CPU of a core | peak MiB | ingest |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in ["granary", *filter(None, options.peers.split(","))]:
        measure(name, options)


if __name__ == "__main__":
    main()
