#!/usr/bin/env python3
"""The time of `/api/v1/moved` over all series of a fleet, with the default settings.

    benches/moved.py target/release/granary [--hosts 1000] [--metrics 200] [--set KEY=VALUE ...]

The hosts send a sample a minute for 40 minutes, up to now, with `granary-bench` from the folder of
the daemon. Each stretch ends at the last whole minute. The first answer to each follows a start of
the daemon, whose caches are empty; CPU is that of the daemon.
"""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROUNDS = 5
STRETCHES_MIN = [5, 10, 20]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Daemon:
    def __init__(self, binary, folder, settings):
        self.url = f"http://127.0.0.1:{free_port()}"
        keys = dict(setting.split("=", 1) for setting in settings)
        names = {f"GRANARY__{key.upper().replace('.', '__')}": keys[key] for key in keys}
        command = [binary, "serve", "--data-dir", folder / "data", "--listen", self.url.split("//")[1]]
        with open(folder / "log", "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | names)
        for _ in range(1200):
            if self.process.poll() is not None:
                break
            try:
                self.get("/readyz")
                return
            except OSError:
                time.sleep(0.1)
        sys.exit(f"the daemon is not ready:\n{(folder / 'log').read_text()[-2000:]}")

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=150) as response:
            return response.read()

    def cpu_seconds(self):
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def measure(daemon, stretch_min, end):
    """Prints the time and the CPU of the first answer, and the lowest ones of all others."""
    path = f"/api/v1/moved?start={(end - stretch_min * 60) * 1000}&end={end * 1000}"
    figures = []
    for _ in range(ROUNDS):
        before, cpu = time.perf_counter(), daemon.cpu_seconds()
        answer = json.loads(daemon.get(path))
        figures.append((time.perf_counter() - before, daemon.cpu_seconds() - cpu))
    texts = [f"{seconds:.2f} s ({cpu:.2f} CPU)" for seconds, cpu in (figures[0], min(figures[1:]))]
    print(f"| {stretch_min} min | {answer['compared']} | {answer['resolution']} | {texts[0]} "
          f"| {texts[1]} |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--hosts", default="1000")
    parser.add_argument("--metrics", default="200")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    binary = options.binary.resolve()
    with tempfile.TemporaryDirectory(prefix="granary-moved-") as folder:
        folder = pathlib.Path(folder)
        daemon = Daemon(binary, folder, options.set)
        end = int(time.time()) // 60 * 60
        subprocess.run(
            [f"{binary}-bench", "--url", daemon.url, "--hosts", options.hosts, "--metrics",
             options.metrics, "--interval", "60s", "--rounds", "40", "--keep", "--json"],
            check=True, stdout=subprocess.DEVNULL)
        daemon.stop()
        print("| stretch | series | slots | first answer | next ones |\n|---|---|---|---|---|")
        for stretch_min in STRETCHES_MIN:
            daemon = Daemon(binary, folder, options.set)
            measure(daemon, stretch_min, end)
            daemon.stop()


main()
