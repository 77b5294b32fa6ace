"""Sends known numbers with the InfluxDB clients of versions 1 and 2: influx.py HOST PORT"""
import sys
import time

import influxdb
from influxdb_client import InfluxDBClient, Point
from influxdb_client.client.write_api import SYNCHRONOUS

host, port = sys.argv[1], int(sys.argv[2])
now = int(time.time())
with InfluxDBClient(url=f"http://{host}:{port}", token="any", org="any") as client:
    write = client.write_api(write_options=SYNCHRONOUS)
    for step in range(10):
        point = Point("room").tag("name", "lab").field("temperature", 20.0 + step)
        write.write(bucket="any", record=point.time((now - 10 + step) * 10**9))
client = influxdb.InfluxDBClient(host=host, port=port, database="any")
client.ping()
client.create_database("any")
fields = {"value": 3.5, "count": 4}
assert client.write_points([{"measurement": "old", "tags": {"a": "b"}, "fields": fields}])
