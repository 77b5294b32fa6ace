#!/usr/bin/env python3
"""Native histograms, compared with Prometheus and with the raw data.

    benches/histograms_peers.py target/debug/granary

An exporter observes latencies of three shapes in native histograms of schema 7. Prometheus 2.40 or
later scrapes it, and sends everything to Granary by remote write. The script compares the
buckets of the newest histograms, which it gets from Granary by remote read. Then it compares the quantiles of PromQL
with each other and with the raw latencies.
"""

import http.server
import json
import math
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

SCHEMA = 7
SHAPES = ("lognormal", "pareto", "two_peaks")
QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
EXPORTER, PROMETHEUS, GRANARY = 9461, 9462, 9463
SCRAPES = 12


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def zigzag(number):
    return number << 1 ^ number >> 63


class Shape:
    """Latencies of one shape, and their histogram."""

    def __init__(self, name):
        self.name, self.random = name, random.Random(name)
        self.values, self.buckets, self.sum = [], {}, 0.0

    def observe(self, count):
        for _ in range(count):
            draw = self.random
            if self.name == "lognormal":
                value = draw.lognormvariate(-3, 0.8)
            elif self.name == "pareto":
                value = 0.002 * draw.paretovariate(1.2)
            else:
                peak, width = (0.01, 0.1) if draw.random() < 0.7 else (0.9, 0.3)
                value = peak * math.exp(draw.gauss(0, width))
            self.values.append(value)
            self.sum += value
            index = math.ceil(math.log2(value) * 2**SCHEMA)
            self.buckets[index] = self.buckets.get(index, 0) + 1

    def message(self):
        """Returns the MetricFamily of io.prometheus.client, with its length."""
        out = field(1, len(self.values)) + field(2, self.sum)
        out += field(5, zigzag(SCHEMA)) + field(6, 2.0**-128) + field(7, 0)
        spans, deltas, end, last = b"", b"", 0, 0
        runs = []
        for index in sorted(self.buckets):
            if runs and runs[-1][-1] + 1 == index:
                runs[-1].append(index)
            else:
                runs.append([index])
        for run in runs:
            spans += field(12, field(1, zigzag(run[0] - end)) + field(2, len(run)))
            end = run[-1] + 1
            for index in run:
                deltas += varint(zigzag(self.buckets[index] - last))
                last = self.buckets[index]
        out += spans + field(13, deltas)
        label = field(1, b"shape") + field(2, self.name.encode())
        return field(4, field(1, label) + field(7, out))


class Exporter(http.server.BaseHTTPRequestHandler):
    shapes = [Shape(name) for name in SHAPES]
    scrapes = 0

    def do_GET(self):
        if Exporter.scrapes < SCRAPES:
            for shape in self.shapes:
                shape.observe(3000)
        Exporter.scrapes += 1
        family = field(1, b"latency_seconds") + field(3, 4)
        family += b"".join(shape.message() for shape in self.shapes)
        self.send_response(200)
        kind = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily"
        self.send_header("Content-Type", kind + "; encoding=delimited")
        self.end_headers()
        self.wfile.write(varint(len(family)) + family)

    def log_message(self, *_):
        pass


def query(port, text, at):
    arguments = urllib.parse.urlencode({"query": text, "time": at})
    url = f"http://127.0.0.1:{port}/api/v1/query?{arguments}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        result = json.load(answer)["data"]["result"]
    return {entry["metric"].get("shape"): float(entry["value"][1]) for entry in result}


def unsnappy(data):
    """Decompresses a block of Snappy."""
    shift = 0
    while data[shift] & 0x80:
        shift += 1
    at, out = shift + 1, bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = (tag >> 2) + 1
            if length > 60:
                size = length - 60
                length = int.from_bytes(data[at:at + size], "little") + 1
                at += size
            out += data[at:at + length]
            at += length
            continue
        if tag & 3 == 1:
            length, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            size = 2 if tag & 3 == 2 else 4
            length, offset = (tag >> 2) + 1, int.from_bytes(data[at:at + size], "little")
            at += size
        for _ in range(length):
            out.append(out[-offset])
    return bytes(out)


def fields(message):
    """Yields the numbers and values of a message's fields."""
    def number():
        nonlocal at
        out = shift = 0
        while True:
            byte = message[at]
            at += 1
            out |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return out
    at = 0
    while at < len(message):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        elif key & 7 == 1:
            at += 8
            yield key >> 3, struct.unpack("<d", message[at - 8:at])[0]
        else:
            length = number()
            at += length
            yield key >> 3, message[at - length:at]


def signed(number):
    return number >> 1 ^ -(number & 1)


def read_histogram(message):
    """Returns time, count, sum, schema and positive buckets of prometheus.Histogram."""
    found = {"at": 0, "count": 0.0, "sum": 0.0, "schema": 0}
    spans, counts = [], []
    for key, value in fields(message):
        if key in (1, 2):
            found["count"] = float(value)
        elif key == 3:
            found["sum"] = value
        elif key == 4:
            found["schema"] = signed(value)
        elif key == 11:
            span = dict(fields(value))
            spans.append((signed(span.get(1, 0)), span.get(2, 0)))
        elif key == 12:
            # A message of varints in field 0 is a list of its numbers.
            numbers, at = [], 0
            while at < len(value):
                end = at
                while value[end] & 0x80:
                    end += 1
                parts = value[at:end + 1]
                numbers.append(sum((byte & 0x7F) << 7 * place for place, byte in enumerate(parts)))
                at = end + 1
            last = 0
            for number in numbers:
                last += signed(number)
                counts.append(float(last))
        elif key == 13:
            counts += struct.unpack(f"<{len(value) // 8}d", value)
        elif key == 15:
            found["at"] = value
    index, buckets = 0, {}
    for offset, length in spans:
        index += offset
        for _ in range(length):
            buckets[index] = counts.pop(0)
            index += 1
    found["buckets"] = {index: count for index, count in buckets.items() if count}
    return found


def newest(port):
    """Returns the newest histogram of each shape by remote read."""
    now = int(time.time() * 1000)
    matcher = field(2, b"__name__") + field(3, b"latency_seconds")
    body = field(1, field(1, now - 60_000) + field(2, now) + field(3, matcher))
    # A block of Snappy with one literal.
    length = len(body) - 1
    body = varint(len(body)) + bytes([61 << 2, length & 0xFF, length >> 8]) + body
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/read", data=body, headers={
        "Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"})
    answer = unsnappy(urllib.request.urlopen(request, timeout=10).read())
    out = {}
    for _, result in fields(answer):
        for _, series in fields(result):
            labels, histograms = {}, []
            for key, value in fields(series):
                if key == 1:
                    pair = dict(fields(value))
                    labels[pair[1].decode()] = pair[2].decode()
                elif key == 4:
                    histograms.append(read_histogram(value))
            out[labels["shape"]] = max(histograms, key=lambda found: found["at"])
    return out


def peer_histograms():
    """Returns count, sum, and upper bounds with counts of Prometheus' newest histograms."""
    url = f"http://127.0.0.1:{PROMETHEUS}/api/v1/query?query=latency_seconds"
    with urllib.request.urlopen(url, timeout=10) as answer:
        result = json.load(answer)["data"]["result"]
    out = {}
    for entry in result:
        found = entry["histogram"][1]
        buckets = [(float(upper), float(count)) for _, _, upper, count in found["buckets"]]
        out[entry["metric"]["shape"]] = float(found["count"]), float(found["sum"]), buckets
    return out


def compare_buckets():
    """Compares the newest histograms of both and of the exporter."""
    ours, theirs = newest(GRANARY), peer_histograms()
    for shape in Exporter.shapes:
        left, (count, total, buckets) = ours[shape.name], theirs[shape.name]
        exact = {index: float(count) for index, count in shape.buckets.items()}
        assert left["schema"] == SCHEMA and left["buckets"] == exact, shape.name
        assert (left["count"], left["sum"]) == (count, total), (shape.name, left, count, total)
        in_order = [exact[index] for index in sorted(exact)]
        assert [number for _, number in buckets] == in_order, shape.name
        for index, (upper, _) in zip(sorted(exact), buckets):
            assert abs(2 ** (index / 2**SCHEMA) / upper - 1) < 1e-12, (shape.name, index, upper)
        print(f"{shape.name:>10}: {len(exact)} buckets, count {count:.0f}, sum {total}: equal in "
              "Granary, Prometheus and the exporter")


def wait(port, path):
    for _ in range(200):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2).read()
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nothing answers on port {port}")


def compare():
    """Prints and returns the largest differences."""
    worst_raw = worst_peer = 0.0
    at = time.time()
    count = query(GRANARY, "histogram_count(latency_seconds)", at)
    for shape in Exporter.shapes:
        shape.values.sort()
        expected = float(len(shape.values))
        assert count.get(shape.name) == expected, (shape.name, count, expected)
    for q in QUANTILES:
        text = f"histogram_quantile({q}, latency_seconds)"
        ours, theirs = query(GRANARY, text, at), query(PROMETHEUS, text, at)
        for shape in Exporter.shapes:
            exact = shape.values[max(0, math.ceil(q * len(shape.values)) - 1)]
            raw = abs(ours[shape.name] / exact - 1)
            peer = abs(ours[shape.name] / theirs[shape.name] - 1)
            worst_raw, worst_peer = max(worst_raw, raw), max(worst_peer, peer)
            print(f"{shape.name:>10} q{q:<6} {ours[shape.name]:.6f} raw {exact:.6f} "
                  f"error {100 * raw:.3f} % from Prometheus {100 * peer:.5f} %")
    print(f"worst: {100 * worst_raw:.3f} % from the raw data, "
          f"{100 * worst_peer:.6f} % from Prometheus")
    return worst_raw, worst_peer


def main(granary):
    folder = tempfile.mkdtemp()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", EXPORTER), Exporter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open(f"{folder}/prometheus.yml", "w") as config:
        config.write(f"""
global: {{ scrape_interval: 1s }}
scrape_configs:
  - job_name: latencies
    static_configs: [{{ targets: ["127.0.0.1:{EXPORTER}"] }}]
remote_write:
  - url: http://127.0.0.1:{GRANARY}/api/v1/write
    send_native_histograms: true
""")
    log = open(f"{folder}/log", "w")
    start = [granary, "serve", "--data-dir", f"{folder}/granary"]
    start += ["--listen", f"127.0.0.1:{GRANARY}"]
    ours = subprocess.Popen(start, stdout=log, stderr=log)
    wait(GRANARY, "/healthz")
    theirs = subprocess.Popen(
        ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/p",
         f"--web.listen-address=127.0.0.1:{PROMETHEUS}", "--enable-feature=native-histograms"],
        stdout=log, stderr=log)
    try:
        wait(PROMETHEUS, "/-/ready")
        while Exporter.scrapes < SCRAPES + 15:
            time.sleep(0.2)
        metrics = wait(GRANARY, "/metrics").decode()
        refused = [line for line in metrics.splitlines()
                   if line.startswith("granary_samples_refused_total") and not line.endswith(" 0")]
        print("refused:", refused or "none")
        compare_buckets()
        raw, peer = compare()
        sys.exit(0 if raw <= 0.01 and peer < 1e-9 and not refused else 1)
    finally:
        for process in (theirs, ours):
            process.terminate()
            process.wait()
        print(open(f"{folder}/log").read()[-2000:] if "-v" in sys.argv else "", end="")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
