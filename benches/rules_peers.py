#!/usr/bin/env python3
"""Rules of Granary and Prometheus side by side: 1,000 rules over 100,000 series with a sample every 15 s,
evaluated every 15 s. Two processes of each, one with the rules and one without, receive the same remote
writes at the same time: the cost of the rules is the difference. Prints the CPU seconds of an
evaluation, and the acknowledgement times of samples in both cases.

    benches/rules_peers.py [target/release/granary]

Half of the rules record (rates and averages by data center), half are alerts, of which some fire; each
rule reads 100 series, and all rules together read each series once. Needs Debian's prometheus and 12 minutes.
"""
import json, os, signal, subprocess, sys, tempfile, time, urllib.request

GRANARY = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/release/granary")
ROUNDS, INTERVAL = int(os.environ.get("ROUNDS", "16")), 15
PORTS = {"granary": 7339, "prometheus": 7338, "granary idle": 7337, "prometheus idle": 7336}
TICKS = os.sysconf("SC_CLK_TCK")


def rule(number):
    metric, digit = divmod(number, 10)
    kind = "counter" if metric % 5 < 3 else "gauge"
    selector = (f'bench_{kind}_{metric // 10:02}{{device="d{metric % 10}",'
                f'host=~"bench-.*{digit}"}}')
    if number % 2:
        expression = f"rate({selector}[1m]) > 1e9" if kind == "counter" else f"{selector} > 99"
        return f"  - alert: Own{number}\n    expr: '{expression}'\n    for: 30s\n" \
               f"    labels: {{severity: page}}\n    annotations: {{summary: '{{{{ $labels.host }}}} is high'}}\n"
    operand = f"rate({selector}[1m])" if kind == "counter" else selector
    return f"  - record: own:{number}\n    expr: 'sum by (datacenter) ({operand})'\n"


def rules():
    groups = []
    for group in range(50):
        group_rules = "".join(rule(group * 20 + place) for place in range(20))
        groups.append(f"- name: group{group}\n  interval: {INTERVAL}s\n  rules:\n{group_rules}")
    return "groups:\n" + "".join(groups)


def url(name, path):
    return f"http://127.0.0.1:{PORTS[name]}{path}"


def ask(name, path, method="GET"):
    return urllib.request.urlopen(urllib.request.Request(url(name, path), method=method), timeout=60).read()


def cpu_seconds(process):
    fields = open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def command(name, work):
    base, port = f"{work}/{name}", PORTS[name]
    rules = "" if "idle" in name else f"{work}/rules.yml"
    open(base + ".yml", "w").write(f"global: {{evaluation_interval: {INTERVAL}s}}\nrule_files: [{rules}]\n")
    open(base + ".toml", "w").write(f"[alerts]\nrules = [{repr(rules) if rules else ''}]\n")
    if name.startswith("granary"):
        return [GRANARY, "serve", "--config", base + ".toml", "--data-dir", base, "--listen", f"127.0.0.1:{port}"]
    return ["prometheus", f"--config.file={base}.yml", f"--storage.tsdb.path={base}",
            "--web.enable-remote-write-receiver", f"--web.listen-address=127.0.0.1:{port}"]


def start(work):
    open(f"{work}/rules.yml", "w").write(rules())
    env = dict(os.environ, GRANARY__TELEMETRY__INTERVAL="")
    processes = {}
    for name in PORTS:
        processes[name] = subprocess.Popen(command(name, work), env=env, stdout=subprocess.DEVNULL,
                                         stderr=open(f"{work}/{name}.log", "w"))
        until = time.time() + 60
        while True:
            try:
                ask(name, "/-/ready" if "prometheus" in name else "/readyz")
                break
            except OSError:
                if time.time() > until:
                    sys.exit(f"{name} does not start: see {work}/{name}.log")
                time.sleep(0.1)
    return processes


def send_rounds(rounds):
    """Sends to all peers at the same time; returns the result of each load."""
    command = [f"{GRANARY}-bench", "--protocol", "remote-write", "--pace", "real", "--interval",
               f"{INTERVAL}s", "--rounds", str(rounds), "--hosts", "1000", "--metrics", "100",
               "--hosts-per-request", "10", "--connections", "1", "--keep", "--json", "--url"]
    loads = {name: subprocess.Popen(command + [url(name, "")], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL) for name in PORTS}
    return {name: json.loads(process.communicate()[0]) for name, process in loads.items()}


def evaluations(name):
    metric = {"granary": "granary_rule_evaluations_total",
              "prometheus": "prometheus_rule_evaluations_total"}[name]
    lines = ask(name, "/metrics").decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(metric))


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        processes = start(work)
        try:
            send_rounds(4)
            peers = ["granary", "prometheus"]
            before = {name: cpu_seconds(process) for name, process in processes.items()}
            evaluations_before = {name: evaluations(name) for name in peers}
            reports = send_rounds(ROUNDS)
            used = {name: cpu_seconds(process) - before[name] for name, process in processes.items()}
            cpu_per_evaluation = {}
            for name in peers:
                idle, count = f"{name} idle", evaluations(name) - evaluations_before[name]
                cpu_per_evaluation[name] = (used[name] - used[idle]) / max(count, 1)
                acks = [reports[variant]["ack_p99_ms"] for variant in (idle, name)]
                print(f"{name:10} {count:.0f} evaluations, {cpu_per_evaluation[name] * 1e6:.0f} us of CPU each; "
                      f"CPU {used[idle]:.1f} s without rules, {used[name]:.1f} s with; "
                      f"ack p99 {acks[0]:.1f} ms and {acks[1]:.1f} ms (ratio {acks[1] / acks[0]:.2f})")
            print(f"CPU of an evaluation: {cpu_per_evaluation['granary'] / cpu_per_evaluation['prometheus']:.2f} of Prometheus'")
            firing = {name: len(json.loads(ask(name, "/api/v1/alerts"))["data"]["alerts"]) for name in peers}
            print(f"alerts pending or firing: {firing}")
        finally:
            for process in processes.values():
                process.send_signal(signal.SIGTERM)
            for process in processes.values():
                process.wait()


main()
