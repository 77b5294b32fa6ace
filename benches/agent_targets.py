#!/usr/bin/env python3
"""The effect of bad targets on an agent: one granary-agent has healthy targets only, another one also has
targets that hang, are huge, lie or vanish.

    benches/agent_targets.py target/release/granary target/release/granary-agent [--minutes 60]

Both agents sample this host, scrape ten healthy targets every 10 s and send to one daemon. The output
has memory and CPU of both every five minutes, then the samples of the healthy targets, which must be
equal, and the successful scrapes of each bad target. The exit code is 1 when a healthy sample is
missing or the agent used more memory than its unit allows.
"""
import argparse, gzip, http.server, json, os, re, signal, socket, subprocess, sys, tempfile, threading, time
import urllib.parse, urllib.request

DAEMON_PORT, HEALTHY_PORT, BAD_PORT = 7465, 7466, 7470
HEALTHY_TARGETS, METRICS, INTERVAL = 10, 200, 10
UNIT_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../deploy/granary-agent.service")
TEXT = b"text/plain; version=0.0.4"


def healthy_body():
    return b"".join(b"# TYPE m%d gauge\nm%d %d\n" % (n, n, n) for n in range(METRICS))


def response_head(length, kind=TEXT, extra=b""):
    return b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\n" + extra + (
        b"" if length is None else b"Content-Length: %d\r\n" % length) + b"Connection: close\r\n\r\n"


def hanging(connection):
    time.sleep(60)


def dripping(connection):
    """Sends a byte per second without end."""
    connection.sendall(response_head(None))
    for byte in iter(lambda: b"a", None):
        connection.sendall(byte)
        time.sleep(1)


def huge(connection):
    """Sends 100 MB of valid lines, each a different series."""
    connection.sendall(response_head(None))
    for part in range(1000):
        connection.sendall(b"".join(b'huge{part="%d",line="%d",padding="%s"} 1\n' % (part, line, b"x" * 60) for line in range(1000)))


def one_line(connection):
    """Sends 100 MB without a line end."""
    connection.sendall(response_head(100 << 20))
    for _ in range(100):
        connection.sendall(b"x" * (1 << 20))


def bomb(connection):
    connection.sendall(response_head(None, extra=b"Content-Encoding: gzip\r\n") + BOMB)


def too_short(connection):
    connection.sendall(response_head(1 << 20) + healthy_body())


def too_long(connection):
    connection.sendall(response_head(50) + healthy_body())


def garbage(connection):
    connection.sendall(response_head(65536, kind=b"image/png") + os.urandom(65536))


def wrong_kind(connection):
    """Announces protobuf and sends text."""
    body = healthy_body()
    connection.sendall(response_head(len(body), kind=b"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "
                     b"encoding=delimited") + body)


def redirected(connection):
    connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def endless_head(connection):
    while True:
        connection.sendall(b"X-Padding: " + b"x" * 65536 + b"\r\n")


def vanishing(connection):
    body = healthy_body()
    connection.sendall(response_head(len(body)) + body)


def resetting(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.sendall(response_head(1000) + b"a 1\n")


BAD_TARGETS = [hanging, dripping, huge, one_line, bomb, too_short, too_long, garbage, wrong_kind, redirected,
               endless_head, vanishing, resetting]
BOMB = gzip.compress(b'bomb{a="b"} 1\n' * 8_000_000, 9)


def serve_connection(connection, behavior):
    try:
        connection.settimeout(60)
        connection.recv(65536)
        behavior(connection)
    except OSError:
        pass
    finally:
        connection.close()


def listen(port):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen(100)
    return server


def serve(port, behavior):
    """Serves a target; the target `vanishing` is unreachable every other minute."""
    server = listen(port)
    while True:
        if behavior is vanishing and int(time.time() / 60) % 2:
            server.close()
            time.sleep(60 - time.time() % 60)
            server = listen(port)
        server.settimeout(1)
        try:
            connection, _ = server.accept()
        except TimeoutError:
            continue
        threading.Thread(target=serve_connection, args=(connection, behavior), daemon=True).start()


def start_healthy_server():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = healthy_body()
            self.send_response(200)
            self.send_header("Content-Type", TEXT.decode())
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", HEALTHY_PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def start_agent(binary, work, name, bad_targets):
    jobs = [{"job_name": "healthy", "static_configs": [
        {"targets": [f"127.0.0.1:{HEALTHY_PORT}"], "labels": {"target": str(n), "via": name}} for n in range(HEALTHY_TARGETS)]}]
    jobs += [{"job_name": behavior.__name__, "static_configs": [{"targets": [f"127.0.0.1:{BAD_PORT + n}"], "labels": {"via": name}}]}
             for n, behavior in enumerate(bad_targets)]
    json.dump({"global": {"scrape_interval": f"{INTERVAL}s"}, "scrape_configs": jobs}, open(f"{work}/{name}.yml", "w"))
    open(f"{work}/{name}.toml", "w").write(
        f'[agent]\nurl = "http://127.0.0.1:{DAEMON_PORT}"\ninterval = "{INTERVAL}s"\nagent_id = "{name}"\n'
        f'spool_dir = "{work}/{name}"\n[host]\n[scrape]\nconfig = "{name}.yml"\n')
    return subprocess.Popen([binary, "--config", f"{work}/{name}.toml"], stderr=open(f"{work}/{name}.log", "w"))


def ask(query):
    url = f"http://127.0.0.1:{DAEMON_PORT}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    return {tuple(sorted(series["metric"].items())): float(series["value"][1])
            for series in json.load(urllib.request.urlopen(url, timeout=60))["data"]["result"]}


def memory(pid, key):
    return next(int(line.split()[1]) / 1024 for line in open(f"/proc/{pid}/status") if line.startswith(key))


def cpu(pid):
    return sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def print_usage(agents, start):
    for name, process in agents.items():
        if process.poll() is not None:
            sys.exit(f"{name} ended with {process.returncode}")
    print(f"{(time.time() - start) / 60:5.1f} min  " + "   ".join(
        f"{name}: {memory(agent.pid, 'VmRSS'):.1f} MiB (most {memory(agent.pid, 'VmHWM'):.1f}), {cpu(agent.pid):.1f} s of CPU"
        for name, agent in agents.items()), flush=True)


def report(window):
    """Compares the samples of healthy targets; returns the number that is missing with bad targets."""
    missing = 0
    for name, query in (("samples of ten healthy targets", f"sum by (via) (count_over_time({{job='healthy', __name__=~'m[0-9]+'}}[{window}]))"),
                        ("of them up", f"sum by (via) (sum_over_time(up{{job='healthy'}}[{window}]))"),
                        ("samples of the host", f"sum by (agent, host) (count_over_time(system_load_1m[{window}]))")):
        counts = {dict(key).get("via") or dict(key)["host"]: int(value) for key, value in ask(query).items()}
        print(f"{name}: {counts}")
        missing += max(0, counts["plain"] - counts["faulty"])
    up = ask(f"sum by (job) (sum_over_time(up{{via='faulty', job!='healthy'}}[{window}]))")
    scrapes = ask(f"sum by (job) (count_over_time(up{{via='faulty', job!='healthy'}}[{window}]))")
    for key, count in sorted(scrapes.items()):
        print(f"  {dict(key)['job']:13} up in {up.get(key, 0):.0f} of {count:.0f} scrapes")
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("daemon")
    parser.add_argument("agent")
    parser.add_argument("--minutes", type=float, default=60)
    args = parser.parse_args()
    limit_mib = int(re.search(r"MemoryMax=(\d+)M", open(UNIT_FILE).read())[1])
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        start_healthy_server()
        for n, behavior in enumerate(BAD_TARGETS):
            threading.Thread(target=serve, args=(BAD_PORT + n, behavior), daemon=True).start()
        daemon = subprocess.Popen([args.daemon, "serve", "--data-dir", f"{work}/data", "--listen", f"127.0.0.1:{DAEMON_PORT}"],
                                  stderr=open(f"{work}/daemon.log", "w"))
        subprocess.run([args.daemon, "ready", "--url", f"http://127.0.0.1:{DAEMON_PORT}", "--wait", "30s"], check=True)
        start = time.time()
        agents = {"plain": start_agent(args.agent, work, "plain", []), "faulty": start_agent(args.agent, work, "faulty", BAD_TARGETS)}
        try:
            time.sleep(5)
            while time.time() < start + args.minutes * 60:
                print_usage(agents, start)
                time.sleep(min(300, max(1, start + args.minutes * 60 - time.time())))
            print_usage(agents, start)
            peak_mib = memory(agents["faulty"].pid, "VmHWM")
            for process in agents.values():
                process.send_signal(signal.SIGTERM)
                process.wait()
            missing = report(f"{int(args.minutes * 60) + 60}s")
            for name in agents:
                log = open(f"{work}/{name}.log").read().splitlines()
                print(f"{name}: {len(log)} lines in the log, {sum(' WARN ' in re.sub(chr(27) + '[^m]*m', '', line) for line in log)} warnings")
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
            for process in agents.values():
                process.kill()
    print(f"samples missing compared with the plain agent: {missing}; most memory {peak_mib:.1f} MiB of {limit_mib} in the unit")
    sys.exit(0 if missing == 0 and peak_mib < limit_mib else 1)


if __name__ == "__main__":
    main()
