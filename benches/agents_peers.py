#!/usr/bin/env python3
"""The cost of several agents on one machine: CPU, memory, series and bytes sent.

    benches/agents_peers.py DAEMON AGENT_HOST AGENT [--seconds 600] [--mongodb host:port]

Granary's host agent, its agent with ten targets, its agent of several collectors (this host, ten
targets, MongoDB if named), Prometheus in agent mode and vmagent with node exporter, collectd and Netdata run if they are installed.
All sample every 10 s (Netdata every second, its default) and send to one daemon; Netdata does not send.
CPU is user and system time, from half a minute after the start. Memory is resident: at the end, the
share of it (PSS: pages of files that several processes use are divided among them), and the most
since the start. The peers report the bytes that they sent; `agents.py wire` measures those of
Granary's agents.
Needs Python 3.9 and nothing else.
"""
import argparse, json, os, re, shutil, subprocess, sys, tempfile, time, urllib.parse, urllib.request

PORT, EXPORTER, TICKS = 7396, 7397, os.sysconf("SC_CLK_TCK")
TARGETS = 10
COLLECTD = """
Hostname "collectd"
Interval 10
PluginDir "/usr/lib/collectd"
TypesDB "/usr/share/collectd/types.db"
PIDFile "{folder}/collectd.pid"
BaseDir "{folder}"
LoadPlugin cpu
LoadPlugin df
LoadPlugin disk
LoadPlugin interface
LoadPlugin load
LoadPlugin memory
LoadPlugin processes
LoadPlugin swap
LoadPlugin uptime
LoadPlugin vmem
LoadPlugin write_http
<Plugin write_http>
  <Node "granary">
    URL "http://127.0.0.1:{port}/collectd"
    Format "JSON"
  </Node>
</Plugin>
"""


def ask(port, path, **query):
    query = urllib.parse.urlencode(query)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}?{query}", timeout=30) as answer:
        return answer.read().decode()


def process_tree(root):
    """Returns a process and its descendants."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(pid)] = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    tree, new = {root}, {root}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - tree
        tree |= new
    return tree


def cpu_seconds(root):
    seconds = 0
    for pid in process_tree(root):
        try:
            seconds += sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:15]))
        except OSError:
            pass
    return seconds / TICKS


def memory_mib(root, file, key):
    """Returns the sum of a line of a file over the process and its descendants."""
    total = 0
    for pid in process_tree(root):
        try:
            total += int(re.search(rf"^{key}:\s+(\d+)", open(f"/proc/{pid}/{file}").read(), re.M)[1])
        except (OSError, TypeError):
            pass
    return total / 1024


def metric(port, name):
    """Returns the sum of a metric over all labels."""
    lines = re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", ask(port, "/metrics"), re.M)
    return sum(map(float, lines))


class Peer:
    """A group of processes, and the number of bytes that they report as sent."""

    def __init__(self, name, commands, folder, sent=None):
        self.name, self.sent = name, sent
        log = open(f"{folder}/{name.replace(' ', '-')}.log", "w")
        self.processes = [subprocess.Popen(command, stdout=log, stderr=log) for command in commands]

    def usage(self):
        for process in self.processes:
            if process.poll() is not None:
                sys.exit(f"{self.name} has ended: {process.args}")
        return sum(cpu_seconds(process.pid) for process in self.processes), self.sent() if self.sent else None

    def memory(self):
        """Returns the resident memory, the share of it, and the most since the start."""
        kinds = (("status", "VmRSS"), ("smaps_rollup", "Pss"), ("status", "VmHWM"))
        return [sum(memory_mib(process.pid, *kind) for process in self.processes) for kind in kinds]

    def end(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def write_file(folder, name, text):
    path = f"{folder}/{name}"
    with open(path, "w") as file:
        file.write(text)
    return path


def scrape_config(label, count, **extra):
    """Returns a prometheus.yml with a number of targets, all on one exporter, and additional lines."""
    static_configs = [{"targets": [f"127.0.0.1:{EXPORTER}"], "labels": {"via": f"{label}-{k}"}} for k in range(count)]
    return json.dumps({
        "global": {"scrape_interval": "10s"},
        "scrape_configs": [{"job_name": label, "static_configs": static_configs}],
        **extra,
    })


def start_own_agents(args, folder):
    url, spool = f"http://127.0.0.1:{PORT}", f"{folder}/spool"
    yield Peer("granary host", [[
        args.agent_host, "--url", url, "--interval", "10s", "--spool-dir", f"{spool}-host",
        "--agent-id", "beside-host",
    ]], folder)
    write_file(folder, "scrape.yml", scrape_config("granary", TARGETS))
    yield Peer(f"granary scrape {TARGETS}", [[
        args.agent, "scrape", "--scrape-config", f"{folder}/scrape.yml", "--url", url, "--interval", "10s",
        "--spool-dir", f"{spool}-scrape", "--agent-id", "beside-scrape",
    ]], folder)
    text = f'[agent]\nurl = "{url}"\ninterval = "10s"\nagent_id = "beside-all"\n'
    text += f'spool_dir = "{spool}-all"\n[host]\n'
    text += '[scrape]\nconfig = "scrape.yml"\n'
    if args.mongodb:
        write_file(folder, "mongodb.toml", f'[[target]]\nuri = "mongodb://{args.mongodb}"\n')
        text += '[mongodb]\ntargets = "mongodb.toml"\ninterval = "10s"\n'
    yield Peer("granary all", [[args.agent, "--config", write_file(folder, "agent.toml", text)]], folder)


def start_other_agents(folder):
    for count in (1, TARGETS):
        exporter = lambda port: [["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}"]]
        if shutil.which("vmagent"):
            port = 7400 + count
            yield Peer(f"vmagent {count}", (exporter(7430) if count == 1 else []) + [[
                "vmagent", f"-promscrape.config={write_file(folder, f'vm{count}.yml', scrape_config('vmagent', count))}",
                f"-remoteWrite.url=http://127.0.0.1:{PORT}/api/v1/write",
                f"-remoteWrite.tmpDataPath={folder}/vmagent{count}", f"-httpListenAddr=127.0.0.1:{port}",
            ]], folder, lambda port=port: metric(port, "vmagent_remotewrite_conn_bytes_written_total"))
        if shutil.which("prometheus"):
            port = 7414 + count
            writes = [{"url": f"http://127.0.0.1:{PORT}/api/v1/write"}]
            config = scrape_config("prometheus", count, remote_write=writes)
            yield Peer(f"prometheus {count}", (exporter(7431) if count == 1 else []) + [[
                "prometheus", "--enable-feature=agent", f"--storage.agent.path={folder}/prometheus{count}",
                f"--config.file={write_file(folder, f'prom{count}.yml', config)}",
                f"--web.listen-address=127.0.0.1:{port}",
            ]], folder, lambda port=port: metric(port, "prometheus_remote_storage_bytes_total"))
    if os.path.exists("/usr/sbin/collectd"):
        config = write_file(folder, "collectd.conf", COLLECTD.format(folder=folder, port=PORT))
        yield Peer("collectd", [["/usr/sbin/collectd", "-f", "-C", config]], folder)
    if os.path.exists("/usr/sbin/netdata"):
        yield Peer("netdata", [["/usr/sbin/netdata", "-D", "-p", "7429"]], folder)


def report(peers, first, last, seconds):
    print(f"{'':17} {'% of a core':>11} {'MiB':>7} {'PSS':>7} {'most':>7} {'bytes/s':>9}")
    for peer, (cpu0, sent0), (cpu1, sent1) in zip(peers, first, last):
        rate = "" if sent0 is None else f"{(sent1 - sent0) / seconds:9.0f}"
        memory = " ".join(f"{mib:7.1f}" for mib in peer.memory())
        print(f"{peer.name:17} {100 * (cpu1 - cpu0) / seconds:11.3f} {memory} {rate:>9}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("daemon")
    parser.add_argument("agent_host")
    parser.add_argument("agent")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--mongodb", help="a MongoDB server to monitor")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="granary-beside-")
    daemon = Peer("daemon", [[args.daemon, "serve", "--data-dir", f"{folder}/data", "--listen", f"127.0.0.1:{PORT}"]], folder)
    exporter = Peer("exporter", [["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{EXPORTER}"]], folder)
    peers = []
    try:
        time.sleep(3)
        peers += [*start_own_agents(args, folder), *start_other_agents(folder)]
        time.sleep(30)
        first, start = [peer.usage() for peer in peers], time.monotonic()
        time.sleep(args.seconds)
        last, seconds = [peer.usage() for peer in peers], time.monotonic() - start
        report(peers, first, last, seconds)
        for sender in json.loads(ask(PORT, "/api/v1/status"))["senders"]["top"]:
            print(f"series of {sender['agent']}: {sender['series']}")
    finally:
        for peer in [*peers, exporter, daemon]:
            peer.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
