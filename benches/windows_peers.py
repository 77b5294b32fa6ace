#!/usr/bin/env python3
"""Windows of PromQL beside Prometheus: both receive the same samples by remote write, and evaluate the
same functions over the same windows at every second of five minutes. Prints the differences of Granary's
results from Prometheus' in percent: median, 90th and 99th percentile, and maximum.

    benches/windows_peers.py [target/release/granary] [closed|live|alerts ...]

- closed: all samples have arrived, and all slots are complete.
- live: at each second, only samples up to that second have arrived.
- alerts: three minutes in real time; rules at 5 s and 30 s fire in both or in none.

Needs Debian's prometheus.
"""
import json, os, random, signal, subprocess, sys, tempfile, time, urllib.parse, urllib.request
import remote_write

GRANARY = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/release/granary")
PARTS = sys.argv[2:] or ["closed", "live", "alerts"]
PORTS = {"granary": 7349, "prometheus": 7348}
WINDOWS = ["1m", "90s", "2m", "5m", "7m"]
COUNTER = ["rate", "increase", "count_over_time", "min_over_time", "max_over_time"]
GAUGE = ["avg_over_time", "sum_over_time", "count_over_time", "min_over_time", "max_over_time"]
SECONDS = 300


def series():
    """Returns the name, interval and readings of each series: seconds from the beginning, value."""
    rng = random.Random(int(os.environ.get("SEED", "7")))
    out, end = {}, 1100
    out["steady_total"] = [(t, 1000 + t) for t in range(2, end, 5)]
    out["steady_15s_total"] = [(t, 1000 + 3 * t) for t in range(4, end, 15)]
    out["steady_on_edges_total"] = [(t, 1000 + t) for t in range(0, end, 10)]
    value, bursty = 0, []
    for t in range(3, end, 5):
        value += rng.choice([0, 1, 1, 2, 2, 3, 60])
        bursty.append((t, value))
    out["bursty_total"] = bursty
    gaps = [(430, 480), (600, 605), (690, 790)]
    out["gapped_total"] = [(t, 5000 + 2 * t) for t in range(1, end, 5)
                           if not any(a <= t < b for a, b in gaps)]
    value, resets = 0, []
    for t in range(4, end, 10):
        value = 0 if rng.random() < 0.08 else value + rng.choice([8, 10, 12])
        resets.append((t, value))
    out["resets_total"] = resets
    value, noisy = 50.0, []
    for t in range(2, end, 5):
        value = max(1.0, value + rng.gauss(0, 4))
        noisy.append((t, value))
    out["noisy"] = noisy
    out["slow"] = [(t, 100 + 10 * ((t // 97) % 5) + t / 50) for t in range(7, end, 15)]
    return out


def request(samples):
    """Encodes a remote write request: times in milliseconds and values by name."""
    return remote_write.request((remote_write.labels(name, instance="a", job="windows"), points)
                                for name, points in samples.items())


def url(name, path):
    return f"http://127.0.0.1:{PORTS[name]}{path}"


def send(name, samples):
    samples = {key: points for key, points in samples.items() if points}
    if samples:
        urllib.request.urlopen(urllib.request.Request(url(name, "/api/v1/write"), request(samples), remote_write.HEADERS)).read()


def ask(name, path, **form):
    text = urllib.request.urlopen(url(name, f"/api/v1/{path}?{urllib.parse.urlencode(form)}"), timeout=60).read()
    return json.loads(text)["data"]


def wait_until_ready(name, process, log):
    until = time.time() + 60
    while True:
        try:
            return urllib.request.urlopen(url(name, "/-/ready" if name == "prometheus" else "/readyz")).read()
        except OSError:
            if time.time() > until or process.poll() is not None:
                sys.exit(f"{name} does not start: see {log}")
            time.sleep(0.1)


def start(name, work, rules=""):
    os.makedirs(f"{work}/{name}")
    log = f"{work}/{name}.log"
    if name == "granary":
        open(f"{work}/granary.toml", "w").write(f"[alerts]\nrules = [{repr(rules) if rules else ''}]\n")
        command = [GRANARY, "serve", "--config", f"{work}/granary.toml", "--data-dir", f"{work}/granary",
                   "--listen", f"127.0.0.1:{PORTS[name]}"]
    else:
        open(f"{work}/prometheus.yml", "w").write(f"rule_files: [{rules}]\n")
        command = ["prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/prometheus",
                   "--web.enable-remote-write-receiver", f"--web.listen-address=127.0.0.1:{PORTS[name]}"]
    env = dict(os.environ, GRANARY__TELEMETRY__INTERVAL="")
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=open(log, "w"))
    wait_until_ready(name, process, log)
    return process


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait()


def expressions():
    for name in series():
        for function in COUNTER if name.endswith("_total") else GAUGE + ["delta"]:
            for window in WINDOWS:
                yield name, function, window


def range_results(name, first):
    """Returns the results at every second, by expression and time."""
    out = {}
    for key in expressions():
        metric, function, window = key
        found = ask(name, "query_range", query=f"{function}({metric}[{window}])", start=first,
                    end=first + SECONDS - 1, step=1)["result"]
        out[key] = {at: float(value) for at, value in (found[0]["values"] if found else [])}
    return out


def live_results(first, samples):
    """Returns Granary's results at every second, before later samples arrive."""
    out = {key: {} for key in expressions()}
    sent = {key: 0 for key in samples}
    for at in range(first, first + SECONDS):
        new = {}
        for key, points in samples.items():
            sent_now = sum(point[0] <= at * 1000 for point in points)
            new[key], sent[key] = points[sent[key]:sent_now], sent_now
        send("granary", new)
        for key in out:
            metric, function, window = key
            found = ask("granary", "query", query=f"{function}({metric}[{window}])", time=at)["result"]
            if found:
                out[key][at] = float(found[0]["value"][1])
    return out


def report(title, ours, theirs):
    def percentiles(differences):
        differences = sorted(differences) or [0.0]
        return [100 * differences[min(len(differences) - 1, int(len(differences) * part))] for part in (0.5, 0.9, 0.99, 1.0)]

    print(f"\n{title}\n{'':42}{'median':>8}{'p90':>8}{'p99':>8}{'max':>8}{'missing':>9}{'more':>6}")
    by_function = {}
    for key, expected in theirs.items():
        metric, function, window = key
        mean = sum(abs(value) for value in expected.values()) / max(1, len(expected)) or 1.0
        differences = [abs(ours[key][at] - value) / (abs(value) or mean)
                 for at, value in expected.items() if at in ours[key]]
        missing = sum(at not in ours[key] for at in expected)
        more = sum(at not in expected for at in ours[key])
        for group in (f"{function}({metric})", f"{function} [{window}]", f"{function} of all"):
            total = by_function.setdefault(group, [[], 0, 0])
            total[0] += differences
            total[1] += missing
            total[2] += more
    for group, (differences, missing, more) in sorted(by_function.items()):
        print(f"{group:42}" + "".join(f"{value:8.2f}" for value in percentiles(differences)) + f"{missing:9}{more:6}")


def write_rules(work):
    """Returns alerts around the true rate: thresholds above it must never fire, those below it must."""
    text = "groups:\n"
    for interval in ("5s", "30s"):
        text += f"- name: each{interval}\n  interval: {interval}\n  rules:\n"
        for window in ("1m", "2m", "5m"):
            for name, test in [("over", "> 1.02"), ("under", "< 0.98"), ("at", "> 0.98")]:
                text += f"  - alert: {name}_{window}_{interval}\n    expr: rate(live_total[{window}]) {test}\n"
    open(f"{work}/rules.yml", "w").write(text)
    return f"{work}/rules.yml"


def compare_alerts(work):
    path = write_rules(work)
    processes = [start(name, work, path) for name in PORTS]
    begin, seconds_fired = int(time.time()), {name: {} for name in PORTS}
    history = {"live_total": [(at * 1000, 1000 + at - begin) for at in range(begin - 600, begin, 5)]}
    for name in PORTS:
        send(name, history)
    try:
        for second in range(180):
            at = begin + second
            time.sleep(max(0.0, at + 0.2 - time.time()))
            for name in PORTS:
                if second % 5 == 0:
                    send(name, {"live_total": [(at * 1000, 1000 + second)]})
                if second >= 40:
                    for alert in ask(name, "alerts")["alerts"]:
                        key = alert["labels"]["alertname"]
                        seconds_fired[name][key] = seconds_fired[name].get(key, 0) + 1
    finally:
        for process in processes:
            stop(process)
    print("\nalerts: seconds of 140 in which each fired")
    for key in sorted(set(seconds_fired["granary"]) | set(seconds_fired["prometheus"])):
        print(f"{key:20} granary {seconds_fired['granary'].get(key, 0):4}  prometheus {seconds_fired['prometheus'].get(key, 0):4}")


def main():
    base = (int(time.time()) - 1500) // 60 * 60
    # The times avoid whole seconds, because Prometheus 2 includes a reading at a window's start.
    samples = {name: [((base + t) * 1000 + 370, value) for t, value in points] for name, points in series().items()}
    first = base + 540
    if "closed" in PARTS or "live" in PARTS:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
            process = start("prometheus", work)
            send("prometheus", samples)
            theirs = range_results("prometheus", first)
            stop(process)
    if "closed" in PARTS:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
            process = start("granary", work)
            send("granary", samples)
            report("closed slots", range_results("granary", first), theirs)
            stop(process)
    if "live" in PARTS:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
            process = start("granary", work)
            report("slot under way", live_results(first, samples), theirs)
            stop(process)
    if "alerts" in PARTS:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
            compare_alerts(work)


main()
