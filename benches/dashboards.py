#!/usr/bin/env python3
"""The response times of a dashboard, alone and beside one heavy pipeline and one heavy chart.

    benches/dashboards.py target/release/granary [--seconds 20]

Starts a daemon with 1,000 series of 14 days. A dashboard sends four small PromQL queries every 100 ms;
meanwhile one client repeats a pipeline over all documents of a day, and another a chart that merges
all series. Prints the dashboard's p50 and p99. Needs Python 3.9 and nothing else.
"""
import argparse, http.client, json, multiprocessing as mp, os, subprocess, tempfile, time
from urllib.parse import urlencode

HOST, PORT = "127.0.0.1", 7394
METRIC = "bench"


def ask(connection, method, path, body=None):
    headers = {"Content-Type": "application/json"} if body else {}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def connect():
    return http.client.HTTPConnection(HOST, PORT, timeout=120)


def run_dashboard(metric, until, out):
    connection, times, now = connect(), [], time.time()
    paths = [f"/api/v1/query_range?{urlencode({'query': query, 'start': now - 3600, 'end': now, 'step': 60})}"
             for query in (f'{metric}{{host="bench-0"}}', f"topk(3, {metric})",
                           f"sum(avg_over_time({metric}[5m]))", f"max({metric})")]
    while time.time() < until:
        for path in paths:
            start = time.time()
            status, _ = ask(connection, "GET", path)
            assert status == 200, status
            times.append(time.time() - start)
        time.sleep(0.1)
    out.put(times)


def send_heavy_query(method, path, body, until, counts):
    os.nice(5)
    connection = connect()
    while time.time() < until:
        status, _ = ask(connection, method, path, body)
        counts.put(status)


def percentile(times, part):
    return sorted(times)[int((len(times) - 1) * part)] * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    url = f"http://{HOST}:{PORT}"
    with tempfile.TemporaryDirectory() as folder:
        daemon = subprocess.Popen([options.binary, "serve", "--data-dir", folder + "/data", "--listen", f"{HOST}:{PORT}"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            subprocess.run([options.binary, "ready", "--url", url, "--pid", str(daemon.pid), "--wait", "30s"], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([f"{options.binary}-bench", "--url", url, "--keep", "--json", "--hosts", "10", "--metrics", "100",
                            "--interval", "60s", "--rounds", "20160", "--batches-per-request", "100", "--pace", "max"],
                           check=True, stdout=subprocess.DEVNULL)
            listed = json.loads(ask(connect(), "GET", "/api/v1/series")[1])["series"]
            metric = next(series["metric"] for series in listed if series["kind"] == "gauge")
            pipeline = json.dumps({"collection": "5m", "range": "1d", "pipeline": [
                {"$group": {"_id": "$host", "n": {"$sum": "$n"}, "most": {"$max": "$max"}}}]})
            chart = f"/api/v1/chart?{urlencode({'metric': metric, 'range': '13d', 'resolution': '1h', 'group_by': 'host'})}"
            loads = {"idle": [], "pipeline": [("POST", "/api/v1/aggregate", pipeline)],
                     "chart": [("GET", chart, None)],
                     "both": [("POST", "/api/v1/aggregate", pipeline), ("GET", chart, None)]}
            for name, heavy_queries in loads.items():
                until, out, counts = time.time() + options.seconds, mp.Queue(), mp.Queue()
                heavy_clients = [mp.Process(target=send_heavy_query, args=(*query, until, counts)) for query in heavy_queries]
                dashboard = mp.Process(target=run_dashboard, args=(metric, until, out))
                for process in [dashboard, *heavy_clients]:
                    process.start()
                times = out.get()
                statuses = []
                for process in [dashboard, *heavy_clients]:
                    process.join(10)
                while not counts.empty():
                    statuses.append(counts.get())
                print(f"{name:10} {len(times):5} queries, p50 {percentile(times, .5):7.2f} ms, p99 {percentile(times, .99):7.2f} ms;"
                      f" heavy answers {len(statuses)} {sorted(set(statuses))}", flush=True)
        finally:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main()
