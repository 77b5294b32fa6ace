"""Sends known numbers with the OpenTelemetry SDK: otel.py URL"""
import sys

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

exporter = OTLPMetricExporter(endpoint=sys.argv[1] + "/v1/metrics")
reader = PeriodicExportingMetricReader(exporter, export_interval_millis=200)
resource = Resource.create({"service.name": "shop"})
provider = MeterProvider(metric_readers=[reader], resource=resource)
meter = provider.get_meter("granary")
orders = meter.create_counter("orders", unit="1")
latency = meter.create_histogram("latency", unit="ms")
lab = {"room": "lab"}
meter.create_observable_gauge("temperature", callbacks=[lambda _: [Observation(21.5, lab)]])
for value in range(50):
    orders.add(2, {"kind": "a"})
    latency.record(value)
# The shutdown triggers the last export.
provider.shutdown()
