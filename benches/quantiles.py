#!/usr/bin/env python3
"""Percentiles of native histograms, compared with the raw data: latencies of three shapes, 100 series,
30 days, a cumulative histogram of schema 7 every 5 minutes. Prints for each level the largest
relative error of p50, p90, p99 and p99.9 over all slots, of each series, of the merged series of
each shape, and of all series.

usage: benches/quantiles.py [SERIES [DAYS]]

Needs `cargo build --release`.
"""

import array
import json
import math
import pathlib
import random
import shutil
import sys
import tempfile
import urllib.parse

import remote_write
from histograms_cost import END, SHAPES, ask, encoded, latency, start
from remote_write import field

SIZES = [int(word) for word in sys.argv[1:]]
SERIES, DAYS = (SIZES + [100, 30][len(SIZES):])[:2]
SCHEMA, STEP, OBSERVATIONS, STEPS_A_REQUEST = 7, 300, 20, 12
STEPS = DAYS * 86_400 // STEP
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
# The width of a slot, and the days that are compared, which its retention covers.
LEVELS = {"1m": (60, 1), "5m": (300, 13), "1h": (3600, DAYS), "1d": (86_400, DAYS)}


def time_of(step):
    """Returns the time of a histogram: within a slot of every level."""
    return END - (STEPS - step) * STEP + 90


class Source:
    """A series with its raw latencies; the first histogram is empty."""

    def __init__(self, number):
        self.shape, self.random = SHAPES[number % len(SHAPES)], random.Random(number)
        self.labels = remote_write.labels("latency_seconds", shape=self.shape, instance=f"web{number}")
        self.raw, self.buckets, self.total = array.array("d"), {}, 0.0

    def observe(self):
        for _ in range(OBSERVATIONS):
            value = latency(self.random, self.shape)
            self.raw.append(value)
            self.total += value
            index = math.ceil(math.log2(value) * 2**SCHEMA)
            self.buckets[index] = self.buckets.get(index, 0) + 1

    def slots(self, width, since):
        """Returns the observations of each slot that begins at a time or later."""
        out = {}
        for step in range(1, STEPS):
            slot = time_of(step) // width * width
            if slot >= since:
                at = (step - 1) * OBSERVATIONS
                out.setdefault(slot, []).extend(self.raw[at:at + OBSERVATIONS])
        return out


def send(sources):
    for first in range(0, STEPS, STEPS_A_REQUEST):
        body = []
        for source in sources:
            out = []
            for step in range(first, min(first + STEPS_A_REQUEST, STEPS)):
                if step:
                    source.observe()
                out.append(encoded(source.buckets, source.total, time_of(step) * 1000, SCHEMA))
            body.append(field(1, source.labels + b"".join(out)))
        ask("POST", "/api/v1/write", remote_write.snappy(b"".join(body)), remote_write.HEADERS)


def lines(level, since, **selected):
    """Returns the percentiles of a chart's line by word and slot."""
    form = {"metric": "latency_seconds", "resolution": level, "start": since, "end": END,
            "display": ",".join(SHARES), **selected}
    answer = json.loads(ask("GET", "/api/v1/chart?" + urllib.parse.urlencode(form))[0])
    assert len(answer["series"]) == len(SHARES), (form, len(answer["series"]))
    return {line["display"]: {int(at) // 1000: value for at, value in line["points"] if value is not None}
            for line in answer["series"]}


def compare(found, slots):
    """Returns the largest relative error. A rank between two observations is either of them."""
    worst = 0.0
    for values in slots.values():
        values.sort()
    for word, share in SHARES.items():
        assert found[word].keys() == slots.keys(), (word, len(found[word]), len(slots))
        for at, values in slots.items():
            rank = share * len(values)
            low = values[max(math.ceil(rank - 1e-6) - 1, 0)]
            high = values[min(math.floor(rank + 1e-6), len(values) - 1)]
            number = found[word][at]
            worst = max(worst, 1 - number / low, number / high - 1)
    return worst


def main():
    work = pathlib.Path(tempfile.mkdtemp())
    process = start("granary", work, work / "granary")
    try:
        sources = [Source(number) for number in range(SERIES)]
        send(sources)
        total, worst = 0, 0.0
        for level, (width, days) in LEVELS.items():
            since = -(-(END - days * 86_400) // width) * width
            errors, merged, all_slots = [], {shape: {} for shape in SHAPES}, {}
            for number, source in enumerate(sources):
                slots = source.slots(width, since)
                errors.append(compare(lines(level, since, tags=f"instance=web{number}"), slots))
                total += len(slots)
                for at, values in slots.items():
                    merged[source.shape].setdefault(at, []).extend(values)
                    all_slots.setdefault(at, []).extend(values)
            of_shapes = [compare(lines(level, since, tags=f"shape={shape}", merge="true"), slots)
                         for shape, slots in merged.items()]
            of_all = compare(lines(level, since, merge="true"), all_slots)
            worst = max(worst, *errors, *of_shapes, of_all)
            print(f"{level:3} each of {SERIES} series {100 * max(errors):.3f} %, merged by shape "
                  f"{100 * max(of_shapes):.3f} %, all merged {100 * of_all:.3f} %", flush=True)
        print(f"worst of {total * len(SHARES)} percentiles of series: {100 * worst:.3f} %")
        sys.exit(0 if worst <= 0.01 else 1)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
