#!/usr/bin/env python3
"""All hosts down at once: the messages that a receiver gets, their delay, and the cost.

    benches/hosts_down.py target/release/granary [--hosts 100000]

All hosts ping every 30 s for three minutes, then stop. deploy/rules/hosts.yml treats a host as down
after 240 s without a ping. The output lists each message of a webhook with the seconds since the last
host reached that limit, the daemon's memory, its CPU time before and around the message, and the
response times of /healthz. The exit code is 1 unless exactly one message of HostDown arrived within a
minute.
"""
import argparse, http.client, http.server, json, os, signal, subprocess, sys, tempfile, threading, time
import urllib.request

PORT, WEBHOOK_PORT = 7460, 7461
RULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../deploy/rules/hosts.yml")
DOWN_AFTER, PING_INTERVAL = 240, 30
NOTIFICATIONS = """
route: {{receiver: all, group_by: [alertname], group_wait: 10s, group_interval: 1m}}
receivers:
- {{name: all, webhook_configs: [{{url: 'http://127.0.0.1:{port}/'}}]}}
"""


class Webhook:
    def __init__(self):
        self.messages = []
        webhook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                size = int(self.headers["Content-Length"])
                webhook.messages.append((time.time(), size, json.loads(self.rfile.read(size))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", WEBHOOK_PORT), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def messages_of(self, name, status, since):
        return [(received, size, body) for received, size, body in self.messages
                if received >= since and body["status"] == status and body["commonLabels"].get("alertname") == name]


def ping_all(hosts, started):
    """Sends one ping of each host; returns the times of the first request and last response, and the longest delay."""
    connection, first_request, slowest = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60), time.time(), 0
    for first_host in range(0, hosts, 1000):
        now = int(time.time() * 1000)
        pings = [{"agent": f"h{n:06}", "program": "script", "version": "1.0", "started": started,
                  "interval_ms": 30000, "sent": now} for n in range(first_host, min(first_host + 1000, hosts))]
        sent = time.time()
        connection.request("POST", "/api/v1/ping", json.dumps({"pings": pings}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        slowest = max(slowest, time.time() - sent)
        assert answer.status == 200 and not body["refused"], body
    return first_request, time.time(), slowest


def poll_health(times):
    while True:
        sent = time.time()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz", timeout=30).read()
        except OSError:
            return  # The daemon was stopped.
        times.append(time.time() - sent)
        time.sleep(0.1)


def memory_mib(pid, key):
    return next(int(line.split()[1]) // 1024 for line in open(f"/proc/{pid}/status") if line.startswith(key))


def cpu_seconds(pid):
    return sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def describe(message, since):
    received, size, body = message
    left_out = [alert["annotations"] for alert in body["alerts"] if "left_out" in alert["labels"]]
    return (f"  {received - since:+7.1f} s {body['status']:8} {body['commonLabels'].get('alertname')}: {len(body['alerts'])} alerts "
            f"listed, {body['truncatedAlerts']} more counted, {size // 1024} KiB {left_out or ''}")


def run(binary, hosts, work):
    webhook, health_times = Webhook(), []
    open(f"{work}/notifications.yml", "w").write(NOTIFICATIONS.format(port=WEBHOOK_PORT))
    open(f"{work}/granary.toml", "w").write(
        f"[alerts]\nrules = ['{os.path.abspath(RULES)}']\nnotifications = '{work}/notifications.yml'\n")
    log = open(f"{work}/log", "w")
    daemon = subprocess.Popen([binary, "serve", "--config", f"{work}/granary.toml", "--data-dir", f"{work}/data",
                               "--listen", f"127.0.0.1:{PORT}"], stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{PORT}"
        subprocess.run([binary, "ready", "--url", url, "--pid", str(daemon.pid), "--wait", "30s"], check=True)
        threading.Thread(target=poll_health, args=(health_times,), daemon=True).start()
        started, run_start = int(time.time() * 1000), time.time()
        for round_number in range(6):
            first, last, slowest = ping_all(hosts, started)
            print(f"ping {round_number}: {last - first:.1f} s for {hosts} hosts, the slowest 1,000 {slowest * 1000:.0f} ms", flush=True)
            time.sleep(max(0, run_start + PING_INTERVAL * (round_number + 1) - time.time()))
        cpu_after_pings, checks_after_pings = cpu_seconds(daemon.pid), len(health_times)
        all_down = last + DOWN_AFTER  # From here on each host is down.
        time.sleep(max(0, all_down - 30 - time.time()))
        cpu_before, checks_before = cpu_seconds(daemon.pid), len(health_times)
        while time.time() < all_down + 120:
            time.sleep(1)
        print(f"memory {memory_mib(daemon.pid, 'VmRSS')} MiB, most {memory_mib(daemon.pid, 'VmHWM')} MiB; CPU "
              f"{cpu_before - cpu_after_pings:.1f} s in {all_down - 30 - run_start - PING_INTERVAL * 6:.0f} s of silence, "
              f"{cpu_seconds(daemon.pid) - cpu_before:.1f} s in the 150 s around the message")
        periods = {"before": health_times[checks_after_pings:checks_before], "around the message": health_times[checks_before:]}
        for period, durations in periods.items():
            print(f"/healthz {period}: p99 {sorted(durations)[int(len(durations) * 0.99)] * 1000:.1f} ms, most {max(durations) * 1000:.0f} ms")
        messages = webhook.messages_of("HostDown", "firing", run_start)
        pinged_again, resolved = time.time(), None
        while time.time() < pinged_again + 180 and not resolved:
            ping_all(hosts, started)
            time.sleep(15)
            resolved = webhook.messages_of("HostDown", "resolved", pinged_again)
        print("messages, by the moment at which all hosts were down:")
        for message in webhook.messages:
            print(describe(message, all_down))
        print(f"the first ping after it: {pinged_again - all_down:+.1f} s; " + (f"the resolved message arrived {resolved[0][0] - pinged_again:.1f} s later" if resolved else "no end"))
        print("readyz:", urllib.request.urlopen(url + "/readyz").read().decode().strip()[:600])
        metrics = urllib.request.urlopen(url + "/metrics").read().decode().splitlines()
        print("\n".join(line for line in metrics if line.startswith(("granary_rule", "granary_notification", "granary_hosts")) and "_bucket" not in line))
        return [message for message in messages if message[0] <= all_down + 60]
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
        warnings = [line for line in open(f"{work}/log") if " WARN " in line or "ERROR" in line]
        print(f"{len(warnings)} warnings in the log", *warnings[:5], sep="\n  ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--hosts", type=int, default=100_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        messages = run(os.path.abspath(args.binary), args.hosts, work)
    sys.exit(0 if len(messages) == 1 else 1)


if __name__ == "__main__":
    main()
