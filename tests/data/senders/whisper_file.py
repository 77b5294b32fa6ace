"""Writes a whisper file with the library of Graphite and prints what the library reads from it.

Usage: whisper_file.py FILE NOW AGGREGATION
Prints {"time": value} as JSON: each time from the finest archive that covers it.
"""

import json
import sys

import whisper

path, now, aggregation = sys.argv[1], int(sys.argv[2]), sys.argv[3]
# 1m for an hour, 5m for a day, 1h for 30 days.
whisper.create(path, [(60, 60), (300, 288), (3600, 720)], 0.0, aggregation)
# The library reads the time from its clock only, so the clock is set.
whisper.time.time = lambda: now
for at in range(now - 20 * 86400, now - 86400, 1800):
    whisper.update(path, (at // 1800) % 97 + 0.5, at)
for at in range(now - 86400, now - 3600, 120):
    whisper.update(path, (at // 120) % 89 + 0.25, at)
for at in range(now - 3600 + 60, now + 1, 60):
    whisper.update(path, (at // 60) % 83, at)

points = {}
taken_from = now + 1
for archive in whisper.info(path)["archives"]:
    step, retention = archive["secondsPerPoint"], archive["retention"]
    # A query of the archive's whole range makes the library choose the archive.
    (start, end, got_step), values = whisper.fetch(path, now - retention, now, now)
    assert got_step == step, (got_step, step)
    own = {start + i * step: v for i, v in enumerate(values) if v is not None}
    # A coarse point that overlaps finer ones represents these.
    for at in sorted(own):
        if at < taken_from < at + step:
            points = {t: v for t, v in points.items() if t >= at + step}
            taken_from = at + step
    points.update({t: v for t, v in own.items() if t < taken_from})
    taken_from = min(taken_from, start)
print(json.dumps(points))
