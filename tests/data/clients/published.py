"""Compares the documents that the daemon published in MongoDB with the daemon's own answers.

Usage: published.py URL PORT STEP. Each step waits until MongoDB has what it expects.
"""

import datetime
import json
import sys
import time
import urllib.parse
import urllib.request

from pymongo import MongoClient
from pymongo.errors import PyMongoError

url, port, step = sys.argv[1], int(sys.argv[2]), sys.argv[3]
db = MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=2000)["granary"]
UTC = datetime.timezone.utc


def ask(path, body=None):
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(url + path, body and json.dumps(body).encode(), head)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def wait_until(what, is_done, seconds=60):
    deadline, last = time.monotonic() + seconds, None
    while time.monotonic() < deadline:
        try:
            last = is_done()
            if last is True:
                return
        except PyMongoError as fault:
            last = fault
        time.sleep(0.2)
    raise AssertionError(f"timed out waiting for {what}: {last}")


def date(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC).replace(tzinfo=None)


def published(granularity):
    """All published documents of a granularity, by identity."""
    names = [name for name in db.list_collection_names() if name.startswith(granularity + ".")]
    documents = [document for name in names for document in db[name].find()]
    by_id = {document["_id"]: document for document in documents}
    assert len(by_id) == len(documents), "a document is in two collections"
    return by_id


def own(granularity, metric, start, end):
    query = {"metric": metric, "resolution": granularity, "start": start, "end": end}
    return ask("/api/v1/documents?" + urllib.parse.urlencode(query))["documents"]


def shape(document, timestamp, at):
    """The parts of a nested document that both sides have."""
    values = {number: {name: value for name, value in slot.items() if value is not None}
              for number, slot in document["values"].items()}
    tags = document.get("tags", {key: document[key] for key in ("host", "sensor_id") if key in document})
    tags = {key: str(value) for key, value in tags.items()}
    return (document["metric"], tuple(sorted(tags.items())), timestamp, at,
            document["num_samples"], document["total_samples"], json.dumps(values, sort_keys=True))


def is_equal(granularity, timestamp, metrics, start, end):
    """Whether all documents with samples are published, once and with equal values."""
    found = [document for document in published(granularity).values()
             if document["metric"] in metrics and document["num_samples"] > 0]
    found = sorted(shape(document, timestamp, str(document[timestamp])) for document in found)
    expected = [document for metric in metrics for document in own(granularity, metric, start, end)]
    assert expected, "the daemon has no documents"
    expected = sorted(shape(document, timestamp, str(date(document[timestamp]))) for document in expected)
    if found == expected:
        return True
    missing = [document for document in expected if document not in found]
    return f"{len(found)} published, {len(expected)} expected, {len(missing)} differ: {missing[:1]}"


PUBLISHED_QUERY = [
    {"$match": {"location": 1, "scientist": "langstroth"}},
    {"$unwind": "$days"},
    {"$match": {"$and": [{"days.date": {"$gte": datetime.datetime(2015, 8, 18)}},
                         {"days.date": {"$lte": datetime.datetime(2015, 8, 20)}}]}},
    {"$project": {"_id": 0, "location": 1, "scientist": 1, "butterflies": "$days.butterflies"}},
    {"$group": {"_id": {"location": "$location", "scientist": "$scientist"},
                "butterflies": {"$sum": "$butterflies"}}}]


def written(value):
    """The JSON of a pipeline."""
    if isinstance(value, dict):
        return {name: written(item) for name, item in value.items()}
    if isinstance(value, list):
        return [written(item) for item in value]
    return {"$date": value.isoformat() + "Z"} if isinstance(value, datetime.datetime) else value


def aggregate(collection, pipeline, **more):
    return ask("/api/v1/aggregate", {"collection": collection, "pipeline": written(pipeline), **more})["documents"]


def butterflies():
    wait_until("the month", lambda: list(db["1d.2015-01-01"].aggregate(PUBLISHED_QUERY)) == [
        {"_id": {"location": 1, "scientist": "langstroth"}, "butterflies": 23.0}])
    [found] = aggregate("insects", PUBLISHED_QUERY)
    assert found["butterflies"] == 23.0, found


def month_of_levels():
    group = {"_id": "$days.date", "butterflies": {"$sum": "$days.butterflies"},
             "honeybees": {"$sum": "$days.honeybees"}}
    pipeline = [{"$match": {"date": datetime.datetime(2015, 8, 1)}}, {"$unwind": "$days"},
                {"$group": group}, {"$sort": {"_id": 1}}]
    theirs = list(db["1d.2015-01-01"].aggregate(pipeline))
    assert len(theirs) == 31, theirs
    ours = aggregate("insects", pipeline)
    assert [(str(day["_id"]), day["butterflies"], day["honeybees"]) for day in theirs] == \
        [(str(date(day["_id"]["$date"])), day["butterflies"], day["honeybees"]) for day in ours]
    # Every level has its own sum.
    month = db["1d.2015-01-01"].find_one({"scientist": "perpetua", "location": 2, "metric": "butterflies"})
    assert (month["butterflies"], month["days"][17]["butterflies"]) == (15.0, 15.0), month
    assert month["days"][0] == {"date": datetime.datetime(2015, 8, 1), "num_samples": 0}, month["days"][0]


def hour_bucket():
    wait_until("the bucket", lambda: db["1m.2019-01-31T0600"].count_documents({"sensor_id": 12345}) == 1)
    bucket = db["1m.2019-01-31T0600"].find_one({"sensor_id": 12345})
    assert bucket["start_date"] == datetime.datetime(2019, 1, 31, 10), bucket
    assert bucket["end_date"] == datetime.datetime(2019, 1, 31, 10, 59, 59), bucket
    assert (bucket["transaction_count"], bucket["sum_temperature"]) == (42, 1783.0), bucket
    computed = [{"$match": {"sensor_id": 12345}},
                {"$project": {"_id": 0, "average": {"$divide": ["$sum_temperature", "$transaction_count"]}}}]
    measured = [{"$unwind": "$measurements"}, {"$match": {"sensor_id": 12345}},
                {"$group": {"_id": None, "average": {"$avg": "$measurements.temperature"}}}]
    ours = aggregate("1h", [{"$group": {"_id": None, "average": {"$avg": "$value"}}}], metric="temperature",
                     start="2019-01-31T10:00:00Z", end="2019-01-31T11:00:00Z")[0]["average"]
    for pipeline in (computed, measured):
        [theirs] = db["1m.2019-01-31T0600"].aggregate(pipeline)
        assert abs(theirs["average"] - ours) < 1e-9, (theirs, ours)


def minute_document():
    query = {"page": "/index.htm", "timestamp_minute": datetime.datetime(2019, 1, 31, 10, 5)}
    collection = db["1s.2019-01-31T1000"]
    wait_until("the minute", lambda: collection.count_documents(query) == 1)
    minute = collection.find_one(query)
    [ours] = own("1s", "views", "2019-01-31T10:05:00Z", "2019-01-31T10:06:00Z")
    assert minute["total_views"] == sum(minute["seconds"].values()) == ours["total_samples"], minute
    slots = {number: slot["sum"] for number, slot in ours["values"].items() if slot["n"] > 0}
    assert minute["seconds"] == slots and minute["seconds"]["25"] == 2.0, minute


def erased():
    """Erased samples leave their documents."""
    bucket = {"sensor_id": 12345}
    span = {"start": "2019-01-31T10:00:00Z", "end": "2019-01-31T10:20:00Z"}
    ask("/api/v1/admin/series/delete", {"selector": {"metric": "temperature"}, **span})
    rest = aggregate("1m", [{"$group": {"_id": None, "n": {"$sum": "$n"}, "sum": {"$sum": "$sum"}}}],
                     metric="temperature")[0]
    assert rest["n"] == 22, rest

    def is_corrected():
        document = db["1m.2019-01-31T0600"].find_one(bucket)
        return (document["transaction_count"], document["sum_temperature"]) == (22, rest["sum"]) or document
    wait_until("the erasure", is_corrected)


def equal():
    metrics = ("kept", "load")
    wait_until("equal documents", lambda: is_equal("1h", "timestamp_day", metrics, "2015-01-01", "2016-01-01"))
    wait_until("equal months", lambda: is_equal("1d", "timestamp_month", metrics, "2015-01-01", "2016-01-01"))


def dropped():
    old = "1h.2015-08-17"
    wait_until("the drop", lambda: old not in db.list_collection_names())
    assert any(name.startswith("1d.2015") for name in db.list_collection_names())
    # A late write creates the collection again, beside collections of others.
    db[old].insert_one({"_id": "late"})
    db["1h.mine"].insert_one({"_id": 1})
    wait_until("the second drop", lambda: old not in db.list_collection_names())
    assert "1h.mine" in db.list_collection_names()


def superseded():
    """A newer document stays, and only its collection is behind."""
    db["1h.2015-08-17"].update_many({}, {"$set": {"through": 1 << 60, "total_samples": -1.0}})


steps = {"pipelines": (butterflies, month_of_levels, hour_bucket, minute_document), "erased": (erased,),
         "equal": (equal,), "dropped": (dropped,), "superseded": (superseded,)}
for check in steps[step]:
    check()
