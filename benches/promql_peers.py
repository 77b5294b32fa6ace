"""Sends the same queries to Prometheus and Granary over the same scrapes, and prints the differences of
the results. Prometheus scrapes node exporter and forwards the samples to Granary by remote_write.

usage: promql_peers.py PROMETHEUS_URL GRANARY_URL MINUTES
"""

import json
import sys
import time
import urllib.parse
import urllib.request

QUERIES = [
    # Queries of node exporter dashboards.
    "100 - avg by (instance) (rate(node_cpu_seconds_total{mode=\"idle\"}[5m])) * 100",
    "sum by (mode) (rate(node_cpu_seconds_total[5m]))",
    "sum by (mode) (irate(node_cpu_seconds_total[5m]))",
    "count(node_cpu_seconds_total{mode=\"idle\"}) by (instance)",
    "node_load1", "node_load5", "node_load15",
    "node_load1 / count without (cpu, mode) (node_cpu_seconds_total{mode=\"idle\"})",
    "node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes",
    "1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes",
    "node_memory_MemTotal_bytes - node_memory_MemFree_bytes - node_memory_Buffers_bytes - node_memory_Cached_bytes",
    "rate(node_vmstat_pgmajfault[5m])",
    "node_filesystem_avail_bytes{fstype!~\"tmpfs|ramfs\"}",
    "1 - node_filesystem_avail_bytes / node_filesystem_size_bytes",
    "max by (device) (node_filesystem_size_bytes)",
    "predict_linear(node_filesystem_avail_bytes{mountpoint=\"/\"}[10m], 3600)",
    "node_filesystem_files_free / node_filesystem_files",
    "rate(node_disk_read_bytes_total[5m])", "rate(node_disk_written_bytes_total[5m])",
    "rate(node_disk_io_time_seconds_total[5m])",
    "sum(rate(node_disk_reads_completed_total[5m])) + sum(rate(node_disk_writes_completed_total[5m]))",
    "rate(node_disk_read_time_seconds_total[5m]) / rate(node_disk_reads_completed_total[5m])",
    "rate(node_network_receive_bytes_total{device!=\"lo\"}[5m]) * 8",
    "rate(node_network_transmit_bytes_total{device!=\"lo\"}[5m]) * 8",
    "increase(node_network_receive_packets_total[5m])",
    "rate(node_network_receive_errs_total[5m])",
    "rate(node_context_switches_total[5m])", "rate(node_intr_total[5m])", "rate(node_forks_total[5m])",
    "node_procs_running", "node_procs_blocked", "node_boot_time_seconds", "time() - node_boot_time_seconds",
    "node_filefd_allocated / node_filefd_maximum", "node_sockstat_TCP_inuse", "node_netstat_Tcp_CurrEstab",
    "rate(node_netstat_Tcp_InSegs[5m])", "node_uname_info", "node_timex_offset_seconds",
    "changes(node_boot_time_seconds[10m])", "resets(node_context_switches_total[10m])",
    # Queries about scrapes and the server itself.
    "up", "sum(up)", "avg_over_time(up[5m])", "count_over_time(up[5m])", "scrape_duration_seconds",
    "scrape_samples_scraped", "rate(prometheus_http_requests_total[5m])",
    "sum by (handler) (increase(prometheus_http_requests_total[10m]))",
    "histogram_quantile(0.9, sum by (le) (rate(prometheus_http_request_duration_seconds_bucket[5m])))",
    "rate(process_cpu_seconds_total[5m])", "process_resident_memory_bytes",
    "max_over_time(process_resident_memory_bytes[10m])", "min_over_time(node_load1[10m])",
    "topk(3, rate(node_cpu_seconds_total[5m]))", "bottomk(2, node_filesystem_avail_bytes)",
    "label_replace(up, \"host\", \"$1\", \"instance\", \"(.*):.*\")", "absent(nothing_like_this)",
    "quantile(0.5, rate(node_cpu_seconds_total[5m]))", "stddev(node_load1) or vector(0)",
    "deriv(node_memory_MemAvailable_bytes[10m])", "node_load1 offset 2m",
    "max_over_time(sum(rate(node_cpu_seconds_total[2m]))[6m:1m])",
    "prometheus_tsdb_head_series", "sum(rate(prometheus_tsdb_head_samples_appended_total[5m]))",
]


def ask(url, query, start, end):
    form = urllib.parse.urlencode({"query": query, "start": start, "end": end, "step": 60})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query_range?{form}") as response:
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        return None, json.load(error).get("error", "")
    series = {}
    for entry in answer["data"]["result"]:
        labels = tuple(sorted(entry["metric"].items()))
        series[labels] = {at: float(value) for at, value in entry["values"]}
    return series, ""


def main():
    prometheus, granary, minutes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    end = int(time.time()) // 60 * 60 - 60
    start = end - minutes * 60
    close_queries = 0
    for query in QUERIES:
        theirs, _ = ask(prometheus, query, start, end)
        ours, error = ask(granary, query, start, end)
        if ours is None:
            print(f"ERROR    {query}: {error}")
            continue
        compared, equal, differences, worst, missing = 0, 0, [], 0.0, 0
        for labels, points in theirs.items():
            scale = max((abs(v) for v in points.values() if v == v), default=0.0)
            for at, value in points.items():
                own = ours.get(labels, {}).get(at)
                if own is None:
                    missing += 1
                    continue
                compared += 1
                both_nan = own != own and value != value
                difference = 0.0 if both_nan or own == value else abs(own - value) / (scale or 1.0)
                equal += difference < 1e-9
                differences.append(difference)
                worst = max(worst, difference)
        more = sum(len(p) for p in ours.values()) - compared
        median = sorted(differences)[len(differences) // 2] if differences else 0.0
        verdict = "equal" if worst < 1e-9 and not missing and not more else (
            "close" if median < 0.05 and missing <= max(2, compared // 10) else "DIFFERS")
        close_queries += verdict != "DIFFERS"
        print(f"{verdict:8} {query[:96]}: {equal} of {compared} equal, median {median:.2%}, worst "
              f"{worst:.2%} of the series' largest, {missing} missing, {more} more")
    print(f"{close_queries} of {len(QUERIES)} equal or close")


main()
