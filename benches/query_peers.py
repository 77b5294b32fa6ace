"""Asks one peer the four queries over HTTP on a kept connection; see query_peers.sh.

usage: query_peers.py NAME URL END
"""

import http.client
import json
import statistics
import sys
import time
import urllib.parse

DAY = 86_400
ROUNDS = 50
name, url, end = sys.argv[1], sys.argv[2], int(sys.argv[3])
host = urllib.parse.urlsplit(url).netloc
connection = http.client.HTTPConnection(host)

ONE = 'bench_gauge_00{host="bench-00001",device="d3"}'
QUERIES = {
    "a: one series, 30 d at 1h": (f"avg_over_time({ONE}[1h])", 30 * DAY, 3600),
    "b: one series, 30 d at 1d": (f"avg_over_time({ONE}[1d])", 30 * DAY, DAY),
    "c: 100 series, 24 h at 5m": (
        'avg_over_time(bench_gauge_00[5m])', DAY, 300),
    "d: sum of 10 hosts, 30 d at 1h": (
        'sum(avg_over_time(bench_gauge_00{device="d3",host=~"bench-0000."}[1h]))', 30 * DAY, 3600),
}


def ask(query, length, step):
    form = {"query": query, "start": end - length, "end": end, "step": step, "nocache": 1}
    before = time.perf_counter()
    connection.request("GET", "/api/v1/query_range?" + urllib.parse.urlencode(form))
    response = connection.getresponse()
    body = response.read()
    took = time.perf_counter() - before
    return took * 1000, response.status, body


for label, query in QUERIES.items():
    cold, status, body = ask(*query)
    answer = json.loads(body)
    assert status == 200, body[:500]
    series = answer["data"]["result"]
    points = sum(len(one["values"]) for one in series)
    times = [ask(*query)[0] for _ in range(ROUNDS)]
    print(f"{name:10} {label:32} {len(series):4} series {points:6} points   "
          f"median {statistics.median(times):8.2f} ms   fastest {min(times):8.2f} ms   "
          f"first after the start {cold:8.2f} ms"
          + (f"   warnings {answer['warnings'][:2]}" if answer.get("warnings") else ""))
