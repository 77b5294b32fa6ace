#!/usr/bin/env python3
"""The cost of a fifth level of 10 s, kept for 6 hours, beside the four default levels: CPU per sample
and peak memory of the whole process, from start to a clean stop that writes everything, and bytes
on disk after it. Both take turns, each on fresh data.

usage: benches/levels.py [fleet|hosts|history ...]        GRANARY=target/release/granary, PORT=7119, PAIRS=3

fleet: 100,000 series, a sample every 10 s, 60 rounds. hosts: 30,000 series, a sample every 10 s, 4
hours. history: 1,000 series, a sample every 60 s, 30 days. OLD=another/granary measures a second
binary in the same turns. TOOL="valgrind --tool=callgrind" runs the daemon within a tool, and SCALE=0.1
reduces the number of hosts. Needs `cargo build --release --workspace`.
"""

import json
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
GRANARY = os.environ.get("GRANARY", str(ROOT / "target/release/granary"))
BINARIES = {"": GRANARY} | ({"old ": os.environ["OLD"]} if "OLD" in os.environ else {})
PORT = os.environ.get("PORT", "7119")
PAIRS = int(os.environ.get("PAIRS", "3"))
TOOL = shlex.split(os.environ.get("TOOL", ""))
SCALE = float(os.environ.get("SCALE", "1"))
URL = f"http://127.0.0.1:{PORT}"
WORKLOADS = {
    "fleet": (1000, ["--metrics", "100", "--interval", "10s", "--rounds", "60"]),
    "hosts": (300, ["--metrics", "100", "--interval", "10s", "--rounds", "1440"]),
    "history": (10, ["--metrics", "100", "--interval", "60s", "--rounds", "43200"]),
}
SECONDS = '[[granularity]]\nslot = "10s"\ndocument = "10m"\npartition = "1h"\nretention = "6h"\n\n'
# Ten minutes of samples in ten seconds would include the cost of a whole hour of shells.
SETTINGS = {"GRANARY__TELEMETRY__INTERVAL": "", "GRANARY__PREALLOCATION__ENABLED": "false"}


def configuration(folder, levels):
    text = (ROOT / "config/default.toml").read_text()
    if levels == 5:
        text = text.replace("[[granularity]]", SECONDS + "[[granularity]]", 1)
    path = folder / "granary.toml"
    path.write_text(text)
    return str(path)


def run(binary, levels, workload):
    """Returns the CPU microseconds per sample, the peak memory in MiB, and the MB on disk."""
    hosts, load = WORKLOADS[workload]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        data = folder / "data"
        command = [binary, "serve", "--config", configuration(folder, levels),
                   "--data-dir", str(data), "--listen", f"127.0.0.1:{PORT}"]
        log = open(folder / "log", "w")
        daemon = subprocess.Popen(TOOL + command, env=os.environ | SETTINGS, stdout=log, stderr=log)
        while True:
            try:
                urllib.request.urlopen(f"{URL}/healthz")
                break
            except (urllib.error.URLError, ConnectionError):
                if daemon.poll() is not None:
                    raise SystemExit((folder / "log").read_text())
                time.sleep(0.05)
        send = [f"{GRANARY}-bench", "--url", URL, "--hosts", str(max(1, round(hosts * SCALE))), *load,
                "--connections", "2", "--keep", "--json"]
        report = json.loads(subprocess.run(send, check=True, capture_output=True).stdout)
        daemon.send_signal(signal.SIGTERM)
        _, status, used = os.wait4(daemon.pid, 0)
        daemon.returncode = os.waitstatus_to_exitcode(status)
        assert daemon.returncode == 0, (folder / "log").read_text()
        disk = subprocess.run(["du", "-s", "--block-size=1", data], check=True, capture_output=True)
        cpu = used.ru_utime + used.ru_stime
        return (cpu * 1e6 / report["samples_accepted"], used.ru_maxrss / 1024,
                int(disk.stdout.split()[0]) / 1e6)


def main():
    for workload in sys.argv[1:] or WORKLOADS:
        kinds = [(name, levels) for name in BINARIES for levels in (4, 5)]
        results = {kind: [] for kind in kinds}
        for pair in range(PAIRS):
            for kind in kinds if pair % 2 == 0 else reversed(kinds):
                results[kind].append(run(BINARIES[kind[0]], kind[1], workload))
        for (name, levels), rows in results.items():
            medians = [statistics.median(column) for column in zip(*rows)]
            first = [statistics.median(column) for column in zip(*results[name, 4])]
            ratios = " ".join(f"{value / base:.2f}" for value, base in zip(medians, first))
            spread = " ".join(f"{row[0]:.3f}" for row in rows)
            print(f"{workload:8} {name}{levels} levels: CPU {medians[0]:.3f} us a sample ({spread}), "
                  f"peak {medians[1]:.0f} MiB, disk {medians[2]:.1f} MB; ratios {ratios}", flush=True)


main()
