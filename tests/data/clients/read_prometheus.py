"""Reads with PyPI's prometheus-api-client what the test wrote: URL START_SECONDS"""
import sys
from datetime import datetime, timezone

from prometheus_api_client import PrometheusConnect

url, start = sys.argv[1], int(sys.argv[2])
at = lambda seconds: datetime.fromtimestamp(start + seconds, timezone.utc)
prometheus = PrometheusConnect(url=url)
assert prometheus.check_prometheus_connection()
assert prometheus.all_metrics() == ["level", "requests_total"], prometheus.all_metrics()
assert prometheus.get_label_names() == ["__name__", "job", "service.name"]
assert prometheus.get_label_values("job") == ["db", "web"]
series = prometheus.get_series(at(0), at(600), params={"match[]": "requests_total"})
assert [one["job"] for one in series] == ["db", "web"], series
found = prometheus.custom_query("sum(level)", params={"time": start + 585})
assert found == [{"metric": {}, "value": [start + 585, "2.5"]}], found
found = prometheus.custom_query_range("level", at(300), at(420), "60s")
assert [value for _, value in found[0]["values"]] == ["2.5"] * 3, found
found = prometheus.get_current_metric_value(
    "requests_total", {"job": "web"}, params={"time": start + 585}
)
assert [one["value"][1] for one in found] == ["1170"], found
found = prometheus.get_metric_range_data("level", start_time=at(0), end_time=at(585))
assert found[0]["metric"]["service.name"] == "shop" and len(found[0]["values"]) > 5, found
metadata = prometheus.get_metric_metadata("requests_total")
assert metadata[0]["type"] == "counter", metadata
assert prometheus.get_targets()["activeTargets"] == []
try:
    prometheus.custom_query("sum(")
except Exception as fault:
    assert "parse error" in str(fault), fault
else:
    raise AssertionError("no fault")
