#!/usr/bin/env python3
"""The compressed size of a slot by metric: a day of the host agent's samples, simulated by
`granary-bench --like host`, a sample every 10 s, sent as fast as the daemon accepts them.

usage: benches/disk_kinds.py [HOSTS]        GRANARY=target/release/granary, PORT=7119

Prints a row per metric: its kind, the number of series, and the bytes per slot of sealed 1m and 5m
documents, including each series' share of the common parts of its tile. tests/sealed_reader.py reads
the segments. Needs `cargo build --release`.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))
import sealed_reader  # noqa: E402

GRANARY = os.environ.get("GRANARY", str(ROOT / "target/release/granary"))
PORT = os.environ.get("PORT", "7119")
URL = f"http://127.0.0.1:{PORT}"
HOSTS = sys.argv[1] if len(sys.argv) > 1 else "20"
GRANULARITIES = ["1m", "5m"]
SETTINGS = {"GRANARY__STORAGE__CHECKPOINT_INTERVAL": "10s", "GRANARY__TELEMETRY__INTERVAL": ""}


def ask(path, **params):
    return json.load(urllib.request.urlopen(f"{URL}{path}?{urllib.parse.urlencode(params)}"))


def start(data_dir):
    command = [GRANARY, "serve", "--data-dir", data_dir, "--listen", f"127.0.0.1:{PORT}"]
    daemon = subprocess.Popen(command, env=os.environ | SETTINGS, stderr=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL)
    while daemon.poll() is None:
        try:
            urllib.request.urlopen(f"{URL}/healthz")
            return daemon
        except urllib.error.URLError:
            time.sleep(0.05)
    raise SystemExit(f"the daemon ended with {daemon.returncode}")


def metrics_by_id():
    """Returns the metric and kind of each series' id, which the bytes of a preallocated document show."""
    ahead = int(time.time()) + 3600
    end = time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(ahead + 3600))
    subprocess.run([GRANARY, "preallocate", "--url", URL, "--end", end], check=True,
                   stdout=subprocess.DEVNULL)
    metrics = {}
    for metric in ask("/api/v1/label/__name__/values")["data"]:
        for series in ask("/api/v1/series", metric=metric)["series"]:
            if "bench" in series["tags"]:
                tags = ",".join(f"{name}={value}" for name, value in series["tags"].items())
                stored = ask("/api/v1/storage/document", metric=metric, tags=tags, resolution="1m", time=ahead)
                header = {part["name"]: part["value"] for part in stored["document"]["header"]}
                metrics[int(header["series"])] = (metric, series["kind"])
    return metrics


def count_slots_and_bytes(data_dir, granularity, metrics):
    """Returns for each metric the slots and bytes in the sealed documents of a granularity."""
    slots, sizes = collections.Counter(), collections.Counter()
    for segment in pathlib.Path(data_dir, "partitions", granularity).glob("*.sealed"):
        for series, _, _, times, block, head in sealed_reader.blocks(segment.read_bytes()):
            metric = metrics.get(series)
            lanes = int.from_bytes(head[:8], "little").bit_count()
            slots[metric] += len(times)
            sizes[metric] += len(block) + len(head) / lanes
    return slots, sizes


def main():
    with tempfile.TemporaryDirectory() as data_dir:
        daemon = start(data_dir)
        send = ["--url", URL, "--like", "host", "--hosts", HOSTS, "--interval", "10s"]
        try:
            subprocess.run([f"{GRANARY}-bench", *send, "--history", "26h", "--pace", "max", "--keep", "--json"],
                           check=True, stdout=subprocess.DEVNULL)
            metrics = metrics_by_id()
        finally:
            daemon.terminate()
            if daemon.wait() != 0:
                raise SystemExit(f"the daemon ended with {daemon.returncode}: is port {PORT} in use?")
        counts = [count_slots_and_bytes(data_dir, granularity, metrics) for granularity in GRANULARITIES]
        series = collections.Counter(metrics.values())
        print(f"{'metric':36}{'kind':>8}{'series':>8}" + "".join(f"{g:>8}" for g in GRANULARITIES))
        for metric in sorted(series):
            per_slot = (sizes[metric] / max(slots[metric], 1) for slots, sizes in counts)
            print(f"{metric[0]:36}{metric[1]:>8}{series[metric]:>8}" +
                  "".join(f"{value:>8.2f}" for value in per_slot))
        for granularity, (slots, sizes) in zip(GRANULARITIES, counts):
            total = sum(sizes.values()) / max(sum(slots.values()), 1)
            print(f"all, {granularity}: {total:.2f} bytes a slot, {sum(slots.values())} slots")


main()
