"""Ports, waits and TCP proxies for scripts that run several daemons on this machine."""

import http.client
import random
import socket
import threading
import time


def free_port():
    """Returns a port below those that Linux gives to clients: a client of a stopped server could
    get such a port as its own and keep the server from starting again."""
    while True:
        with socket.socket() as s:
            port = random.randrange(10_000, 32_000)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def wait_until(what, is_done, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if is_done():
                return
        except (OSError, http.client.HTTPException, ValueError):
            pass
        time.sleep(0.05)
    raise SystemExit(f"timed out waiting for {what}")


class Link:
    """A TCP proxy that counts bytes. A cut direction keeps its bytes until it is healed, as TCP does;
    both ends see connections that stay open and silent."""

    def __init__(self, upstream):
        self.upstream = upstream
        self.cut = {"up": False, "down": False}
        self.bytes, self.counting = {"up": 0, "down": 0}, threading.Lock()
        self.delay = 0.0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.open, args=(client,), daemon=True).start()

    def open(self, client):
        self.wait("up")
        try:
            server = socket.create_connection(self.upstream, timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        for source, target, way in [(client, server, "up"), (server, client, "down")]:
            threading.Thread(target=self.copy, args=(source, target, way), daemon=True).start()

    def wait(self, way):
        while self.cut[way]:
            time.sleep(0.02)

    def copy(self, source, target, way):
        try:
            while data := source.recv(1 << 18):
                if self.delay:
                    time.sleep(self.delay)
                self.wait(way)
                with self.counting:
                    self.bytes[way] += len(data)
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
