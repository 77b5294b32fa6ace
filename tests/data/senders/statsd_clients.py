"""Sends known numbers with the clients of StatsD and of DogStatsD: senders/statsd_clients.py HOST PORT"""
import sys

import statsd
from datadog.dogstatsd.base import DogStatsd

host, port = sys.argv[1], int(sys.argv[2])
client = statsd.StatsClient(host, port, prefix="shop", maxudpsize=60000)
# One datagram, so that its lines belong to one interval.
with client.pipeline() as pipe:
    for number in range(1, 11):
        pipe.incr("orders", number)
    pipe.decr("orders", 5)
    pipe.gauge("depth", 12)
    pipe.gauge("depth", -4, delta=True)
    pipe.gauge("depth", 2.5, delta=True)
    pipe.gauge("cold", -3)
    for millis in range(1, 101):
        pipe.timing("wait", millis)
    for user in ["ann", "bob", "ann", "eve"]:
        pipe.set("users", user)
# One datagram for each call.
for number in range(200):
    client.incr("clicks")
with client.timer("block"):
    pass

# One datagram again.
buffer = {"max_buffer_len": 60000, "flush_interval": 60}
dog = DogStatsd(host=host, port=port, disable_telemetry=True, disable_aggregation=True, **buffer)
for number in range(5):
    dog.increment("page.views", 2, tags=["page:home", "env:prod"])
    dog.increment("page.views", 3, tags=["env:prod", "page:cart"])
dog.decrement("page.views", 1, tags=["page:cart", "env:prod"])
dog.gauge("queue.depth", 7.25, tags=["queue:mail", "urgent"])
for value in [4, 1, 3, 2]:
    dog.histogram("body.bytes", value * 100, tags=["page:home"])
    dog.distribution("answer.size", value + 0.5, tags=["page:home"])
    dog.timing("answer.time", value * 10)
for user in ["ann", "bob", "ann"]:
    dog.set("visitors", user, tags=["page:home"])
dog.flush()
