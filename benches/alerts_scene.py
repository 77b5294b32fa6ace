#!/usr/bin/env python3
"""Alerts under faults, compared with Prometheus and Alertmanager: the same rules over the same samples.

    benches/alerts_scene.py target/release/granary [--minutes 120] [--hosts 5000] [--keep FOLDER]

Webhooks record the notifications of three senders: Granary's own receivers, an Alertmanager behind
Granary, and an Alertmanager behind Prometheus. Samples arrive by remote write every 10 s. The faults
begin at fixed fractions of the run: values above thresholds, hosts down, gaps, flapping, and all hosts
down at once; unreachable receivers; kill -9 of Granary and Prometheus together, once with the
Alertmanagers; rules that are changed, broken and restored; and with libfaketime Granary's clock 40 s
ahead, 40 s behind, and an hour ahead. Prometheus' clock stays right, because Go programs do not call
the C library for the time.

benches/alerts_compare.py compares the notifications, and repeats that from FOLDER/messages.json. The
exit code is 1 when Granary missed a notification that Prometheus sent. The scene needs Debian's
prometheus and prometheus-alertmanager, and libfaketime for the clock.
"""
import argparse, collections, glob, http.server, json, os, queue, signal, subprocess, sys
import tempfile, threading, time, urllib.error, urllib.request
import alerts_compare, remote_write

PORTS = {"granary": 7450, "prometheus": 7451, "am-granary": 7452, "am-prometheus": 7453}
SINKS = {"own": 7455, "sent": 7456, "prometheus": 7457}
INTERVAL = 10

# The times at which values are abnormal, in minutes of an hour; the run's length scales them.
VALUES = {
    "high": [(3, 6), (22, 25), (44, 46), (48, 50), (56, 58)],
    "down": [(5, 9), (10.5, 11.8), (29, 32)],
    "slow": [(4, 8), (29, 33)],
    "gap": [(8, 10.5), (30.5, 33)],
    "flapping": [(12, 16)],
    "errors": [(3, 6), (40, 43), (55.5, 58)],
    "filling": [(13, 20)],
    "mass": [(36, 41)],
}
BOTH = ["granary", "prometheus"]
# The disturbances of programs: minute of an hour, seconds after it, name and action.
ACTIONS = [
    (10, 0, "receivers away", lambda scene: scene.set_receivers_away(True)),
    (13, 0, "receivers back", lambda scene: scene.set_receivers_away(False)),
    (17, 0, "killed", lambda scene: scene.kill(BOTH, 5)),
    (22, 20, "killed while pending", lambda scene: scene.kill(BOTH, 60)),
    (24, 20, "all killed while firing", lambda scene: scene.kill(PORTS, 20)),
    (26, 0, "rules changed", lambda scene: scene.set_rules(CHANGED)),
    (30, 0, "rules broken", lambda scene: scene.set_rules("groups: [{name: own, rules: [{alert: A, expr: '('}]}]")),
    (33, 30, "rules restored", lambda scene: scene.set_rules(RULES)),
    (38, 30, "killed in a mass outage", lambda scene: scene.kill(BOTH, 15)),
    (43, 0, "clock 40 s ahead", lambda scene: scene.set_clock("+40")),
    (47, 0, "clock 40 s behind", lambda scene: scene.set_clock("-40")),
    (51, 0, "clock right", lambda scene: scene.set_clock("+0")),
    (52, 0, "clock an hour ahead", lambda scene: scene.set_clock("+3600")),
    (53.5, 0, "clock right again", lambda scene: scene.set_clock("+0")),
]

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "alerts_scene_files")
RULES = open(f"{FILES}/rules.yml").read()
NOTIFICATIONS = open(f"{FILES}/notifications.yml").read()
CHANGED = (RULES.replace("  - {alert: Watchdog, expr: vector(1)}\n", "  - {alert: Added, expr: vector(2) > 1}\n")
           .replace("flapping > 0, for: 20s", "flapping > 5, for: 20s"))

class Scene:
    def __init__(self, binary, work, minutes, hosts):
        self.binary, self.work, self.scale, self.start_time = binary, work, minutes / 60, time.time()
        self.messages, self.servers, self.processes = [], {}, {}
        self.queues = {name: queue.Queue() for name in BOTH}
        self.refused, self.log = collections.Counter(), []
        self.fleet = [remote_write.labels("up", job="fleet", instance=f"h{n:05}") for n in range(hosts)]
        self.web = [(f"web{n}", [remote_write.labels(metric, job="web", instance=f"web{n}")
                                 for metric in ("up", "latency_seconds", "level", "flapping", "free_bytes")])
                    for n in range(10)]
        self.errors = remote_write.labels("errors_total", job="web", instance="web0")
        self.gap = remote_write.labels("level", job="gap", instance="gap0")
        self.faketime = (glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1") or [None])[0]

    # -- samples

    def minute(self):
        return (time.time() - self.start_time) / 60 / self.scale

    def is_on(self, what, minute):
        return any(begin <= minute < end for begin, end in VALUES[what])

    def samples(self, minute, errors):
        on = {what: self.is_on(what, minute) for what in VALUES}
        flaps = on["flapping"] and int((time.time() - self.start_time) / 60) % 2 == 0
        fill = next((minute - begin for begin, end in VALUES["filling"] if begin <= minute < end), 0)
        for n, (_, series) in enumerate(self.web):
            values = [0 if on["down"] and n < 4 else 1, 5 if on["slow"] and n in (2, 3, 7) else 0.2,
                      95 if on["high"] and n < 3 else 10, 1 if flaps and n < 2 else 0,
                      1e9 - (fill * 1e8 if n == 0 else 0)]
            yield from zip(series, values)
        yield self.errors, errors
        if not on["gap"]:
            yield self.gap, 10
        for series in self.fleet:
            yield series, 0 if on["mass"] else 1

    def queue_rounds(self, until):
        errors, due = 0, time.time()
        while time.time() < until:
            minute, at = self.minute(), int(time.time() * 1000)
            errors += INTERVAL * 2 if self.is_on("errors", minute) else 0
            body = remote_write.request((series, [(at, value)]) for series, value in self.samples(minute, errors))
            for bodies in self.queues.values():
                bodies.put(body)
            due += INTERVAL
            time.sleep(max(0, due - time.time()))

    def send_queue(self, name):
        """Sends the queue in order and retries, as senders of remote write do."""
        while True:
            body, sent = self.queues[name].get(), False
            while not sent:
                try:
                    url = f"http://127.0.0.1:{PORTS[name]}/api/v1/write"
                    urllib.request.urlopen(urllib.request.Request(url, body, remote_write.HEADERS), timeout=30).read()
                    sent = True
                except urllib.error.HTTPError as error:
                    sent = error.code < 500 and error.code != 429
                    self.refused[f"{name} {error.code}"] += 1
                    time.sleep(1)
                except OSError:
                    time.sleep(1)

    # -- receivers

    def start_receiver(self, side):
        scene = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                scene.messages.append((time.time() - scene.start_time, side, self.path[1:], body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", SINKS[side]), Handler)
        self.servers[side] = server
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def set_receivers_away(self, is_away):
        for side in SINKS:
            if is_away:
                self.servers[side].shutdown()
                self.servers[side].server_close()
            else:
                self.start_receiver(side)

    # -- programs

    def start(self, name):
        work, listen, env = self.work, f"127.0.0.1:{PORTS[name]}", dict(os.environ)
        if name == "granary":
            command = [self.binary, "serve", "--config", f"{work}/granary.toml", "--data-dir", f"{work}/granary",
                       "--listen", listen]
            if self.faketime:
                env.update(LD_PRELOAD=self.faketime, FAKETIME_TIMESTAMP_FILE=f"{work}/clock", FAKETIME_CACHE_DURATION="1",
                           FAKETIME_DONT_FAKE_MONOTONIC="1", DONT_FAKE_MONOTONIC="1", NO_FAKE_STAT="1")
        elif name == "prometheus":
            command = ["prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/prometheus",
                       "--web.enable-lifecycle", "--web.enable-remote-write-receiver", f"--web.listen-address={listen}"]
        else:
            command = ["prometheus-alertmanager", f"--config.file={work}/{name}.yml", f"--storage.path={work}/{name}",
                       f"--web.listen-address={listen}", "--cluster.listen-address="]
        log = open(f"{work}/{name}.log", "a")
        self.processes[name] = subprocess.Popen(command, env=env, stdout=log, stderr=log)

    def kill(self, names, seconds):
        for name in names:
            self.processes[name].kill()
            self.processes[name].wait()
        time.sleep(seconds)
        for name in names:
            self.start(name)

    def set_rules(self, text):
        with open(f"{self.work}/rules.yml", "w") as file:
            file.write(text)
        for name in BOTH:
            self.reload(name)

    def reload(self, name):
        """Retries until the program answers, because it may be starting."""
        while True:
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{PORTS[name]}/-/reload", b"", timeout=30).read()
            except urllib.error.HTTPError as error:
                return print(f"  {name}: reload answered {error.code}")
            except OSError:
                time.sleep(0.5)

    def set_clock(self, offset):
        with open(f"{self.work}/clock.new", "w") as file:
            file.write(offset + "\n")
        os.replace(f"{self.work}/clock.new", f"{self.work}/clock")

    def run(self, minutes):
        write = lambda name, text: open(f"{self.work}/{name}", "w").write(text)
        write("rules.yml", RULES)
        write("own.yml", NOTIFICATIONS.replace("PORT", str(SINKS["own"])))
        write("am-granary.yml", NOTIFICATIONS.replace("PORT", str(SINKS["sent"])))
        write("am-prometheus.yml", NOTIFICATIONS.replace("PORT", str(SINKS["prometheus"])))
        write("granary.toml", f"[alerts]\nrules = ['{self.work}/rules.yml']\nnotifications = '{self.work}/own.yml'\n"
              f"alertmanagers = ['http://127.0.0.1:{PORTS['am-granary']}']\n")
        write("prometheus.yml", f"rule_files: ['{self.work}/rules.yml']\nalerting: {{alertmanagers: [{{static_configs: "
              f"[{{targets: ['127.0.0.1:{PORTS['am-prometheus']}']}}]}}]}}\n")
        self.set_clock("+0")
        for side in SINKS:
            self.start_receiver(side)
        for name in PORTS:
            self.start(name)
        until = self.start_time + minutes * 60
        for name in BOTH:
            threading.Thread(target=self.send_queue, args=(name,), daemon=True).start()
        threading.Thread(target=self.queue_rounds, args=(until,), daemon=True).start()
        for minute, seconds, what, action in ACTIONS:
            if "clock" in what and not self.faketime:
                continue
            time.sleep(max(0, self.start_time + minute * 60 * self.scale + seconds - time.time()))
            self.log.append((time.time() - self.start_time, what))
            print(f"{self.log[-1][0]:7.1f} s  {what}", flush=True)
            action(self)
        time.sleep(max(0, until - time.time()))


def cpu_seconds(pid):
    parts = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return sum(map(int, parts[11:13])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--hosts", type=int, default=5000)
    parser.add_argument("--keep", help="a folder for logs and messages")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        work = os.path.abspath(args.keep or work)
        os.makedirs(work, exist_ok=True)
        scene = Scene(os.path.abspath(args.binary), work, args.minutes, args.hosts)
        try:
            scene.run(args.minutes)
            ready = urllib.request.urlopen(f"http://127.0.0.1:{PORTS['granary']}/readyz").read().decode()
            for name, process in scene.processes.items():
                print(f"{name}: {cpu_seconds(process.pid):.1f} s of CPU since its last start")
        finally:
            for process in scene.processes.values():
                process.send_signal(signal.SIGTERM)
            for process in scene.processes.values():
                process.wait()
            record = {"log": scene.log, "messages": scene.messages}
            json.dump(record, open(f"{work}/messages.json", "w"))
        print(f"readyz: {ready.strip()}\nrequests answered by errors: {dict(scene.refused)}")
        missed = alerts_compare.report(record)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
