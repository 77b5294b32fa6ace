#!/usr/bin/env python3
"""The disk space of the same history in Granary, VictoriaMetrics and InfluxDB: 1,000 series, a sample
every 60 s, 30 days, as line protocol, each in an empty directory. Prints the megabytes of the data
directory and of its largest parts when they no longer change and after a clean stop, and the CPU
seconds of the process from start to end.

usage: benches/disk_peers.py [granary|victoria|influx ...]

Three of five series are counters that grow by an irregular amount, two are gauges that wander with
one decimal. (The values of `granary-bench` repeat after 1,000 rounds, which makes compression
look better.) Needs `cargo build --release`, and Debian's victoria-metrics and influxdb.
"""

import http.client
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOSTS, FIELDS, MINUTES, MINUTES_A_REQUEST = 10, 100, 30 * 24 * 60, 60
PORT = 7118
SETTLED_SECONDS = 90


def command(peer, folder):
    """Returns the command of a peer; all options besides the defaults make it keep the 30 days."""
    listen = f"127.0.0.1:{PORT}"
    if peer == "granary":
        # All samples are old enough that checkpoints and sealing need not wait.
        return ["env", "GRANARY__TELEMETRY__INTERVAL=", "GRANARY__STORAGE__CHECKPOINT_INTERVAL=10s", ROOT / "target/release/granary", "serve", "--data-dir", folder, "--listen", listen]
    if peer == "victoria":
        return ["victoria-metrics", "-storageDataPath", folder, "-httpListenAddr", listen,
                "-retentionPeriod", "5y"]
    config = folder.with_suffix(".conf")
    config.write_text(f"""reporting-disabled = true
bind-address = "127.0.0.1:7108"
[meta]
dir = "{folder}/meta"
[data]
dir = "{folder}/data"
wal-dir = "{folder}/wal"
[http]
bind-address = "{listen}"
log-enabled = false
""")
    return ["influxd", "-config", config]


def wait_until_it_answers(peer):
    path = {"granary": "/readyz", "victoria": "/health", "influx": "/ping"}[peer]
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
            connection.request("GET", path)
            if connection.getresponse().status < 300:
                return
        except OSError:
            pass
        time.sleep(0.05)


def bodies(end):
    """Returns bodies in line protocol, an hour of one host at a time, oldest first, the same for all peers."""
    rng = random.Random(1)
    counters = [index % 5 < 3 for index in range(FIELDS)]
    names = [f"m{index:02}" + "_total" * counters[index] for index in range(FIELDS)]
    state = [[rng.uniform(0, 1000) // 1 for _ in names] for _ in range(HOSTS)]
    for first in range(0, MINUTES, MINUTES_A_REQUEST):
        for host, values in enumerate(state):
            lines = []
            for minute in range(first, first + MINUTES_A_REQUEST):
                for index, is_counter in enumerate(counters):
                    step = rng.gauss(0, 1)
                    if is_counter:
                        values[index] += int(10_000 * (index + 1) * abs(step))
                    else:
                        values[index] = round(min(max(values[index] + step, 0), 1000), 1)
                fields = ",".join(f"{name}={value:g}" if name[-1] != "l" else f"{name}={value:.0f}"
                                  for name, value in zip(names, values))
                at = end - (MINUTES - minute) * 60
                lines.append(f"disk,host=web{host} {fields} {at}")
            yield "\n".join(lines)


def megabytes(path):
    # The exit code is ignored, because files appear and disappear meanwhile.
    usage = subprocess.run(["du", "-s", "--block-size=1", path], capture_output=True)
    return int(usage.stdout.split()[0] or 0) / 1e6


def wait_until_settled(folder):
    """Waits until the folder has not changed for a while."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < SETTLED_SECONDS:
        now = megabytes(folder)
        if last is None or abs(now - last) > 0.1:
            last, since = now, time.monotonic()
        time.sleep(1)


def describe_parts(folder):
    sizes = sorted(((megabytes(path), path.name) for path in folder.iterdir()), reverse=True)
    return ", ".join(f"{name} {size:.1f}" for size, name in sizes if size >= 0.1)


def main():
    end = int(time.time()) // 60 * 60
    for peer in sys.argv[1:] or ["granary", "victoria", "influx"]:
        work = pathlib.Path(tempfile.mkdtemp())
        folder = work / "data"
        environment = {**os.environ, "GRANARY__INGEST__OUT_OF_ORDER_WINDOW": "1h"}
        process = subprocess.Popen(command(peer, folder), env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until_it_answers(peer)
            connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
            if peer == "influx":
                connection.request("POST", "/query?q=CREATE%20DATABASE%20d")
                connection.getresponse().read()
            for body in bodies(end):
                while True:
                    connection.request("POST", "/write?precision=s&db=d", body)
                    answer = connection.getresponse()
                    text = answer.read()
                    if answer.status not in (429, 503):
                        break
                    time.sleep(0.1)
                assert answer.status == 204, (answer.status, text[:500])
            wait_until_settled(folder)
            settled_megabytes, before = megabytes(folder), resource.getrusage(resource.RUSAGE_CHILDREN)
            process.terminate()
            process.wait()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            samples = HOSTS * FIELDS * MINUTES
            print(f"{peer:10} {samples / 1e6:.1f} M samples   {settled_megabytes:8.1f} MB, stopped "
                  f"{megabytes(folder):.1f} ({describe_parts(folder)})   "
                  f"{megabytes(folder) * 1e6 / samples:6.2f} bytes a sample   {cpu:.1f} s of CPU",
                  flush=True)
        finally:
            process.kill()
            shutil.rmtree(work)


main()
