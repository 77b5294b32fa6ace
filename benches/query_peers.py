"""Sends the queries of a workload to one peer over one HTTP connection; see query_peers.sh.

usage: query_peers.py history|fleet NAME URL END
"""

import http.client
import json
import re
import statistics
import sys
import time
import urllib.parse

DAY = 86_400
ROUNDS = 50
CPU = re.compile(r"(granary_)?process_cpu_seconds_total ")
workload, name, url, end = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
host = urllib.parse.urlsplit(url).netloc
connection = http.client.HTTPConnection(host)

ONE_SERIES = 'bench_gauge_00{host="bench-00001",device="d3"}'
HISTORY = {
    "a: one series, 30 d at 1h": (f"avg_over_time({ONE_SERIES}[1h])", 30 * DAY, 3600),
    "b: one series, 30 d at 1d": (f"avg_over_time({ONE_SERIES}[1d])", 30 * DAY, DAY),
    "c: 100 series, 24 h at 5m": (
        'avg_over_time(bench_gauge_00[5m])', DAY, 300),
    "d: sum of 10 hosts, 30 d at 1h": (
        'sum(avg_over_time(bench_gauge_00{device="d3",host=~"bench-0000."}[1h]))', 30 * DAY, 3600),
}
# Without a length, the query is only evaluated at the end.
FLEET = {
    "a: sum of rates of 1,000, 8 min": (
        'sum by (datacenter) (rate(bench_counter_00_total{device="d0"}[2m]))', 480, 15),
    "b: topk(10) of 1,000": ('topk(10, bench_gauge_00{device="d3"})', 0, 0),
    "c: sum of all 100,000": ('sum({__name__=~"bench_.+"})', 0, 0),
    "d: 1,000 series, 8 min": ('bench_gauge_00{device="d3"}', 480, 15),
    "e: one host's 100, 8 min": ('{__name__=~"bench_.+",host="bench-00001"}', 480, 15),
}
QUERIES = FLEET if workload == "fleet" else HISTORY


def ask(query, length, step):
    form = {"query": query, "start": end - length, "end": end, "step": step, "nocache": 1}
    path = "/api/v1/query_range?"
    if not length:
        form, path = {"query": query, "time": end, "nocache": 1}, "/api/v1/query?"
    before = time.perf_counter()
    connection.request("GET", path + urllib.parse.urlencode(form))
    response = connection.getresponse()
    body = response.read()
    duration = time.perf_counter() - before
    return duration * 1000, response.status, body


def cpu_seconds():
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    return sum(float(line.split()[1]) for line in lines if CPU.match(line))


for label, query in QUERIES.items():
    cold, status, body = ask(*query)
    answer = json.loads(body)
    assert status == 200, body[:500]
    series = answer["data"]["result"]
    points = sum(len(entry.get("values", "1")) for entry in series)
    before = cpu_seconds()
    times = [ask(*query)[0] for _ in range(ROUNDS)]
    cpu = (cpu_seconds() - before) / ROUNDS * 1000
    print(f"{name:10} {label:32} {len(series):4} series {points:6} points   "
          f"median {statistics.median(times):8.2f} ms   fastest {min(times):8.2f} ms   "
          f"CPU {cpu:8.2f} ms   "
          f"first after the start {cold:8.2f} ms"
          + (f"   warnings {answer['warnings'][:2]}" if answer.get("warnings") else ""))
