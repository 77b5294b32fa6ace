#!/usr/bin/env python3
"""Alerts of Granary and Prometheus side by side. Both evaluate the same rules every 5 s, over the same
targets, which Prometheus and `granary-agent scrape` scrape every 5 s. During the 20 minutes, a target is
down, a value is above its threshold for 3 minutes, a target shows nothing for 2 minutes, and a value
flaps. The output has the transitions of each alert and the time differences; the exit code is 1 when a
transition is missing or differs by more than an evaluation and a scrape. Alerts on rates may differ:
where a window cuts a slot, Granary knows how much a counter grew in that slot, not when.

    benches/alerts_peers.py target/debug/granary target/debug/granary-agent

Needs Debian's prometheus. MINUTES=6 is a shorter run with the same faults.
"""
import collections, http.server, json, os, signal, subprocess, sys, tempfile, threading, time, urllib.request

GRANARY, SCRAPER = (os.path.abspath(path) for path in sys.argv[1:3])
MINUTES = float(os.environ.get("MINUTES", "20"))
INTERVAL, SCALE = 5, MINUTES / 20
WARM_UP = 30  # Seconds until both have scraped and evaluated; earlier transitions are ignored.
PORTS = {"granary": 7334, "prometheus": 7335}
TARGETS = {"steady": 7336, "faulty": 7337}
# The start and the end of each fault, in minutes of a run of 20.
FAULTS = {"high": [(2, 5)], "down": [(6, 8)], "gap": [(10, 12)], "flapping": [(13, 17)]}

RULES = """groups:
- name: own
  interval: 5s
  rules:
  - record: level:max
    expr: max by (job) (level)
  - {alert: TargetDown, expr: up == 0, for: 20s}
  - {alert: High, expr: level > 90, for: 30s}
  - {alert: HighAtOnce, expr: level > 90}
  - {alert: HighKept, expr: level > 90, keep_firing_for: 30s}
  - {alert: HighRecorded, expr: level:max > 90}
  - {alert: Missing, expr: 'absent(level{job="faulty"})', for: 10s}
  - {alert: Flapping, expr: flapping > 0, for: 15s}
  - {alert: FlappingAtOnce, expr: flapping > 0}
  - {alert: Errors, expr: 'rate(errors_total[2m]) > 0.5', for: 10s}
"""
START = time.time()


def is_on(fault):
    minute = (time.time() - START) / 60 / SCALE
    return any(begin <= minute < end for begin, end in FAULTS[fault])


def exposition(job):
    seconds = time.time() - START
    if job == "faulty" and is_on("gap"):
        return ""
    high = job == "faulty" and is_on("high")
    flaps = job == "faulty" and is_on("flapping") and int(seconds) % 50 < 25
    burst = 2 * 60 * SCALE  # Errors begin in the second minute and last three minutes.
    errors = min(max(seconds - burst, 0), 180 * SCALE) if job == "faulty" else 0
    return (f"# TYPE level gauge\nlevel {95 if high else 10}\n# TYPE flapping gauge\nflapping {int(flaps)}\n"
            f"# TYPE errors_total counter\nerrors_total {errors:.0f}\n")


def serve(job):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if job == "faulty" and is_on("down"):
                return self.send_error(503)
            body = exposition(job).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", TARGETS[job]), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def ask(name, path):
    return urllib.request.urlopen(f"http://127.0.0.1:{PORTS[name]}{path}", timeout=10).read()


def start_programs(work):
    open(f"{work}/rules.yml", "w").write(RULES)
    jobs = "".join(f"- {{job_name: {job}, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}\n"
                   for job, port in TARGETS.items())
    config = (f"global: {{scrape_interval: {INTERVAL}s, scrape_timeout: 4s, evaluation_interval: {INTERVAL}s}}\n"
              f"scrape_configs:\n{jobs}")
    open(f"{work}/scrape.yml", "w").write(config)
    open(f"{work}/prometheus.yml", "w").write(config + f"rule_files: [{work}/rules.yml]\n")
    open(f"{work}/granary.toml", "w").write(f"[alerts]\nrules = ['{work}/rules.yml']\n")
    listen = [f"127.0.0.1:{PORTS[name]}" for name in ("granary", "prometheus")]
    commands = {
        "granary": [GRANARY, "serve", "--config", f"{work}/granary.toml", "--data-dir", f"{work}/granary",
                    "--listen", listen[0]],
        "prometheus": ["prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/prometheus",
                       f"--web.listen-address={listen[1]}"],
        "scraper": [SCRAPER, "scrape", "--scrape-config", f"{work}/scrape.yml", "--url", f"http://{listen[0]}",
                    "--spool-dir", f"{work}/spool", "--interval", "1s"],
    }
    return [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(f"{work}/{name}.log", "w"))
            for name, command in commands.items()]


def states(name):
    """Returns each pending or firing alert with its state."""
    try:
        alerts = json.loads(ask(name, "/api/v1/alerts"))["data"]["alerts"]
    except OSError:
        return None
    return {tuple(sorted(alert["labels"].items())): alert["state"] for alert in alerts}


def record_transitions(name, until, found):
    time.sleep(max(START + WARM_UP - time.time(), 0))
    before = states(name) or {}
    while time.time() < until:
        now = states(name)
        if now is not None:
            for labels in before.keys() | now.keys():
                state = now.get(labels, "inactive")
                if state != before.get(labels, "inactive"):
                    found[labels].append((time.time() - START, state))
            before = now
        time.sleep(0.25)


def describe(labels):
    rest = dict(labels)
    return f"{rest.pop('alertname')} {' '.join(f'{name}={value}' for name, value in sorted(rest.items()))}"


def compare(found):
    """Prints the transitions of both; returns the number of differences."""
    different, total, largest = 0, 0, 0.0
    allowed = 2 * INTERVAL + 1  # An evaluation, and a scrape at another time within it.
    for labels in sorted(found["granary"].keys() | found["prometheus"].keys()):
        own, other = found["granary"][labels], found["prometheus"][labels]
        print(describe(labels))
        if [state for _, state in own] != [state for _, state in other]:
            different += 1
            print(f"  DIFFERS: granary {own}\n           prometheus {other}")
            continue
        for (own_time, state), (other_time, _) in zip(own, other):
            total, largest = total + 1, max(largest, abs(own_time - other_time))
            is_late = abs(own_time - other_time) > allowed
            different += is_late
            print(f"  {state:9} {own_time:7.1f} s, Prometheus {other_time:7.1f} s, {own_time - other_time:+.1f} s{' TOO LATE' if is_late else ''}")
    print(f"{total} transitions in both, {different} differ, at most {largest:.1f} s apart")
    return different


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        for job in TARGETS:
            serve(job)
        processes = start_programs(work)
        try:
            found = {name: collections.defaultdict(list) for name in PORTS}
            until = START + MINUTES * 60
            watchers = [threading.Thread(target=record_transitions, args=(name, until, found[name])) for name in PORTS]
            for watcher in watchers:
                watcher.start()
            for watcher in watchers:
                watcher.join()
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                process.wait()
    sys.exit(1 if compare(found) or not found["granary"] else 0)


main()
