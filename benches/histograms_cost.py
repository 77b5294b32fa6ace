#!/usr/bin/env python3
"""The cost of native histograms, compared with Prometheus and VictoriaMetrics: bytes on disk and CPU
seconds after 30 days of cumulative latencies of three shapes, a histogram a minute, and the time of
the p99 over these days by the hour.

usage: benches/histograms_cost.py [SERIES [DAYS]] [granary|granary-1m|prometheus|victoria ...]

granary-1m keeps the slots of 1m and 5m for all days, so that it has the histograms of Prometheus at
the same times. VictoriaMetrics of Debian has no native histograms: it receives a counter
per bucket with the label vmrange, as JSON, and the same bounds. Schema 3 has the default growth
factor of Prometheus' clients. Needs `cargo build --release`, and Debian's prometheus and
victoria-metrics.
"""

import http.client
import itertools
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse

import remote_write
from remote_write import field, varint

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))
import sealed_reader  # noqa: E402

SIZES = [int(word) for word in sys.argv[1:] if word.isdigit()]
SERIES, DAYS = (SIZES + [12, 30][len(SIZES):])[:2]
PEERS = [word for word in sys.argv[1:] if not word.isdigit()]
PEERS = PEERS or ["granary", "granary-1m", "prometheus", "victoria"]
SCHEMA = int(os.environ.get("SCHEMA", "3"))
OBSERVATIONS = int(os.environ.get("OBSERVATIONS", "120"))
PORT = int(os.environ.get("PORT", "7118"))
SHAPES = ("lognormal", "pareto", "two_peaks")
DRAWS, MINUTES_A_REQUEST, ROUNDS = 3000, 60, 11
# Granary seals a partition a minute or two after its last change.
SETTLED_SECONDS = {"granary": 130, "granary-1m": 130}
END = int(time.time()) // 3600 * 3600
MINUTES = DAYS * 24 * 60


def latency(rng, shape):
    if shape == "lognormal":
        return rng.lognormvariate(-3, 0.8)
    if shape == "pareto":
        return 0.002 * rng.paretovariate(1.2)
    peak, width = (0.01, 0.1) if rng.random() < 0.7 else (0.9, 0.3)
    return peak * math.exp(rng.gauss(0, width))


def minutes_of(shape):
    """Returns the buckets and the sums of many minutes of observations."""
    rng, out = random.Random(shape), []
    for _ in range(DRAWS):
        buckets, total = {}, 0.0
        for _ in range(rng.randrange(OBSERVATIONS // 2, OBSERVATIONS * 3 // 2)):
            value = latency(rng, shape)
            index = math.ceil(math.log2(value) * 2**SCHEMA)
            buckets[index], total = buckets.get(index, 0) + 1, total + value
        out.append((buckets, total))
    return out


def series():
    """Returns the number, the shape, and the growth of each minute of each series."""
    growths = {shape: minutes_of(shape) for shape in SHAPES}
    for number in range(SERIES):
        shape, rng = SHAPES[number % len(SHAPES)], random.Random(number)
        yield number, shape, (growths[shape][rng.randrange(DRAWS)] for _ in range(MINUTES))


def at(minute):
    return END - (MINUTES - 1 - minute) * 60


SMALL = [varint(number << 1 ^ number >> 63 & (1 << 64) - 1) for number in range(4096)]


def zigzag(number):
    return SMALL[number] if 0 <= number < 4096 else varint(number << 1 if number >= 0 else (-number << 1) - 1)


def encoded(buckets, total, at_ms, schema=SCHEMA):
    """Encodes prometheus.Histogram of a counter."""
    if not buckets:
        return field(4, b"\x08\x00\x20" + zigzag(schema) + b"\x78" + varint(at_ms))
    spans, deltas, end, last, run = b"", [], 0, 0, None
    for index in sorted(buckets):
        if run is None or index != run[0] + run[1]:
            if run is not None:
                spans += field(11, b"\x08" + zigzag(run[0] - end) + b"\x10" + varint(run[1]))
                end = run[0] + run[1]
            run = [index, 0]
        run[1] += 1
        deltas.append(zigzag(buckets[index] - last))
        last = buckets[index]
    spans += field(11, b"\x08" + zigzag(run[0] - end) + b"\x10" + varint(run[1]))
    head = b"\x08" + varint(sum(buckets.values())) + b"\x19" + struct.pack("<d", total)
    head += b"\x20" + zigzag(schema) + b"\x29" + struct.pack("<d", 2.0**-128) + b"\x30\x00"
    return field(4, head + spans + field(12, b"".join(deltas)) + b"\x78" + varint(at_ms))


def write_bodies(folder):
    """Writes the bodies of remote write, an hour of all series each, in the order of time."""
    labels = [remote_write.labels("latency_seconds", shape=SHAPES[number % 3], instance=f"web{number}")
              for number in range(SERIES)]
    states = [(growth, {}, [0.0]) for _, _, growth in series()]
    for first in range(0, MINUTES, MINUTES_A_REQUEST):
        body = b""
        for encoded_labels, (growth, buckets, total) in zip(labels, states):
            out = []
            for minute, (grown, added) in zip(range(first, first + MINUTES_A_REQUEST), growth):
                for index, count in grown.items():
                    buckets[index] = buckets.get(index, 0) + count
                total[0] += added
                out.append(encoded(buckets, total[0], at(minute) * 1000))
            body += field(1, encoded_labels + b"".join(out))
        (folder / f"{first:08}").write_bytes(remote_write.snappy(body))


def victoria_bodies():
    """Returns lines of VictoriaMetrics' import, a series of buckets each."""
    for number, shape, growth in series():
        columns, grown = {}, list(growth)
        indexes = sorted(set(itertools.chain.from_iterable(buckets for buckets, _ in grown)))
        for index in indexes:
            increases = [buckets.get(index, 0) for buckets, _ in grown]
            first = next(minute for minute, count in enumerate(increases) if count)
            columns[index] = first, list(itertools.accumulate(increases))[first:]
        for index, (first, counts) in columns.items():
            low, high = (2 ** (place / 2**SCHEMA) for place in (index - 1, index))
            metric = {"__name__": "latency_seconds_bucket", "shape": shape, "instance": f"web{number}",
                      "vmrange": f"{low:.3e}...{high:.3e}"}
            times = [at(minute) * 1000 for minute in range(first, MINUTES)]
            yield json.dumps({"metric": metric, "values": counts, "timestamps": times})


def command(peer, work, folder):
    listen = f"127.0.0.1:{PORT}"
    if peer == "prometheus":
        (work / "prometheus.yml").write_text("storage: { tsdb: { out_of_order_time_window: 0s } }\n")
        return ["prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={folder}",
                "--storage.tsdb.retention.time=5y", "--web.enable-remote-write-receiver",
                "--enable-feature=native-histograms", f"--web.listen-address={listen}"]
    if peer == "victoria":
        return ["victoria-metrics", "-storageDataPath", folder, "-httpListenAddr", listen, "-retentionPeriod", "5y",
                "-search.latencyOffset", "0", "-search.maxQueryDuration", "10m", "-import.maxLineLen", "100000000"]
    settings = (ROOT / "config/default.toml").read_text()
    if peer == "granary-1m":
        settings = settings.replace('retention = "48h"', 'retention = "60d"').replace('"14d"', '"60d"')
    (work / "granary.toml").write_text(settings)
    return [ROOT / "target/release/granary", "serve", "--config", work / "granary.toml", "--data-dir", folder,
            "--listen", listen]


def ask(method, path, body=None, headers=None):
    """Returns the body of a response, and the milliseconds that it took."""
    before = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=900)
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    text = response.read()
    if response.status in (429, 503) and method == "POST":
        time.sleep(0.1)
        return ask(method, path, body, headers)
    assert response.status < 300, (path, response.status, text[:500])
    return text, (time.perf_counter() - before) * 1000


def send(peer, bodies):
    if peer == "victoria":
        for line in victoria_bodies():
            ask("POST", "/api/v1/import", line)
        return
    for path in sorted(bodies.iterdir()):
        ask("POST", "/api/v1/write", path.read_bytes(), remote_write.HEADERS)


def start(peer, work, folder):
    environment = os.environ | {"GRANARY__TELEMETRY__INTERVAL": "", "GRANARY__STORAGE__CHECKPOINT_INTERVAL": "10s"}
    log = open(work / f"{peer}.log", "w")
    process = subprocess.Popen(command(peer, work, folder), env=environment, stdout=log, stderr=log)
    path = {"prometheus": "/-/ready", "victoria": "/health"}.get(peer, "/readyz")
    for _ in range(600):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
            connection.request("GET", path)
            if connection.getresponse().status < 300:
                return process
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit((work / f"{peer}.log").read_text())


def stop(process):
    """Stops a peer; returns the CPU seconds that it used."""
    process.terminate()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def megabytes(path):
    usage = subprocess.run(["du", "-s", "--block-size=1", path], capture_output=True)
    return int(usage.stdout.split()[0] or 0) / 1e6


def wait_until_settled(folder, seconds):
    last, since = None, time.monotonic()
    while time.monotonic() - since < seconds:
        now = megabytes(folder)
        if last is None or abs(now - last) > 0.05:
            last, since = now, time.monotonic()
        time.sleep(0.5)


def print_levels(folder):
    """Prints the bytes per slot in the segments of each granularity: of histograms, and of their counts."""
    for level in sorted(path.name for path in (folder / "partitions").iterdir()):
        slots, sizes = [0, 0], [0, 0]
        for path in (folder / "partitions" / level).glob("*.sealed"):
            for number, _, _, times, block, head in sealed_reader.blocks(path.read_bytes()):
                part = number < sealed_reader.HISTOGRAMS
                lanes = int.from_bytes(head[:8], "little").bit_count()
                slots[part] += len(times)
                sizes[part] += len(block) + len(head) / lanes
        each = [size / max(count, 1) for size, count in zip(sizes, slots)]
        print(f"{'':12}{level:4} {slots[0]:8} slots, {each[0]:6.1f} bytes each, and {each[1]:5.1f} of the count; "
              f"{megabytes(folder / 'partitions' / level):.1f} MB with open documents")


def print_query(peer):
    by = "shape, vmrange" if peer == "victoria" else "shape"
    metric = "latency_seconds_bucket" if peer == "victoria" else "latency_seconds"
    query = f"histogram_quantile(0.99, sum by ({by}) (increase({metric}[1h])))"
    form = {"query": query, "start": END - (DAYS * 24 - 1) * 3600, "end": END, "step": 3600, "nocache": 1}
    path = "/api/v1/query_range?" + urllib.parse.urlencode(form)
    text, first = ask("GET", path)
    found = {one["metric"]["shape"]: {int(at): float(value) for at, value in one["values"]}
             for one in json.loads(text)["data"]["result"]}
    times = [ask("GET", path)[1] for _ in range(ROUNDS if first < 5000 else 2)]
    points = sum(map(len, found.values()))
    print(f"{'':12}p99 by the hour: {points} points, median {statistics.median(times):.1f} ms, first {first:.1f} ms")
    return found


def main():
    work = pathlib.Path(tempfile.mkdtemp())
    answers = {}
    try:
        (work / "bodies").mkdir()
        if PEERS != ["victoria"]:
            write_bodies(work / "bodies")
        count = SERIES * MINUTES
        for peer in PEERS:
            folder = work / peer
            process = start(peer, work, folder)
            try:
                send(peer, work / "bodies")
                wait_until_settled(folder, SETTLED_SECONDS.get(peer, 20))
                cpu = stop(process)
                parts = sorted(((megabytes(path), path.name) for path in folder.iterdir()), reverse=True)[:4]
                blocks = sum(megabytes(path) for path in folder.glob("01*"))
                print(f"{peer:12}{count} histograms: {megabytes(folder):.1f} MB, "
                      f"{megabytes(folder) * 1e6 / count:.1f} bytes each, {cpu * 1e6 / count:.1f} us of CPU each; "
                      + ", ".join(f"{name[:12]} {size:.1f}" for size, name in parts)
                      + (f"; {blocks * 1e6 / count:.1f} bytes each in blocks" if blocks else ""), flush=True)
                if peer.startswith("granary"):
                    print_levels(folder)
                process = start(peer, work, folder)
                answers[peer] = print_query(peer)
            finally:
                process.kill()
                process.wait()
            if os.environ.get("KEEP") is None:
                shutil.rmtree(folder)
        if "granary" in answers and "prometheus" in answers:
            pairs = [(answers["granary"][shape].get(at), value)
                     for shape, values in answers["prometheus"].items() for at, value in values.items()]
            off = [abs(ours / theirs - 1) for ours, theirs in pairs if ours]
            print(f"p99 of granary from prometheus: {100 * statistics.median(off):.3f} % in the median, "
                  f"at most {100 * max(off):.3f} %, {len(pairs) - len(off)} of {len(pairs)} missing")
    finally:
        if os.environ.get("KEEP") is None:
            shutil.rmtree(work)
        else:
            print(work)


if __name__ == "__main__":
    main()
