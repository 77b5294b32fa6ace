"""Runs random pipelines over the same documents here and in SecantusDB, which follows MongoDB."""

import datetime
import json
import math
import random
import sys
import urllib.error
import urllib.request

from pymongo import MongoClient
from pymongo.errors import PyMongoError

url, port, seed, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
random.seed(seed)


def send(path, body):
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), head)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as fault:
        return {"fault": json.load(fault)}


def dates(value):
    """Converts dates of extended JSON to those of Python and back."""
    if isinstance(value, dict):
        if set(value) == {"$date"}:
            text = value["$date"].replace("Z", "+00:00")
            return datetime.datetime.fromisoformat(text).replace(tzinfo=None)
        return {name: dates(item) for name, item in value.items()}
    return [dates(item) for item in value] if isinstance(value, list) else value


def written(value):
    """The JSON of a request."""
    if isinstance(value, dict):
        return {name: written(item) for name, item in value.items()}
    if isinstance(value, list):
        return [written(item) for item in value]
    if isinstance(value, datetime.datetime):
        return {"$date": value.isoformat(timespec="milliseconds") + "Z"}
    return value


def plain(value):
    """A value with rounded numbers and sorted names, so that only its meaning is compared."""
    if isinstance(value, dict):
        return {name: plain(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        # MongoDB's $count returns no document for an empty input; that server returns 0.
        return [plain(item) for item in value if item != {"n": 0}]
    if isinstance(value, bool) or value is None or isinstance(value, (str, datetime.datetime)):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return 0.0 if abs(value) < 1e-9 else float(f"{value:.9g}")


# The daemon's own samples are filtered out.
FLEET = {"fleet": "random"}
hour = 3_600_000
start = int(datetime.datetime.now().timestamp() * 1000) // hour * hour - 40 * hour
samples = []
for host in ["web1", "web2", "db-1", "db-2"]:
    for number in range(40):
        if random.random() < 0.8:
            for _ in range(random.randint(1, 3)):
                samples.append({
                    "metric": random.choice(["load", "heat"]), "tags": {"host": host, "rack": "r" + host[-1], **FLEET},
                    "time": start + number * hour + random.randrange(hour),
                    "value": random.choice([random.randint(-3, 9), random.uniform(-5, 5)])})
answer = send("/api/v1/ingest", {"samples": samples})
assert answer["accepted"] == len(samples), answer

documents = dates(send("/api/v1/aggregate", {"find": "1h", "tags": FLEET})["documents"])
assert len(documents) > 50
collection = MongoClient("127.0.0.1", port).pipelines.slots
collection.drop()
collection.insert_many([{"_id": number, **item} for number, item in enumerate(documents)])

NUMBERS = ["$n", "$sum", "$min", "$max", "$first", "$last", "$value", "$none"]
TEXTS = ["$host", "$rack", "$metric", "$none"]
ZONES = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "+05:30", "-03:00", "America/New_York"]
PARTS = ["$year", "$month", "$dayOfMonth", "$dayOfWeek", "$dayOfYear", "$week", "$isoWeek",
         "$isoWeekYear", "$isoDayOfWeek", "$hour", "$minute", "$second", "$millisecond"]
LETTERS = "bBdGHjLmMSuUVwYzZ%"
pick = random.choice


def date():
    if random.random() < 0.6:
        return "$date"
    years = datetime.timedelta(days=random.uniform(-9000, 9000))
    whole = datetime.datetime(2024, 2, 29) + years
    return whole.replace(microsecond=whole.microsecond // 1000 * 1000)


def of_dates():
    kind = random.randrange(4)
    if kind == 0:
        return {pick(PARTS): pick([date(), {"date": date(), "timezone": pick(ZONES)}])}
    if kind == 1:
        form = " ".join("%" + pick(LETTERS) for _ in range(random.randint(1, 6)))
        # Without a format, MongoDB writes a Z only in UTC; that server writes it always.
        options = {"date": pick([date(), "$none"])}
        if random.random() < 0.8:
            options |= {"format": form, "timezone": pick(ZONES)}
        return {"$dateToString": options}
    if kind == 2:
        return {"$dateToParts": {"date": date(), "timezone": pick(ZONES), "iso8601": pick([True, False])}}
    unit = pick(["millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"])
    options = {"date": date(), "unit": unit, "timezone": pick(ZONES)}
    if random.random() < 0.6:
        options["binSize"] = pick([1, 2, 3, 5, 7, 12, 100])
    if unit == "week" and random.random() < 0.6:
        options["startOfWeek"] = pick(["monday", "Sunday", "wed", "saturday"])
    return {"$dateTrunc": options}


def number(depth=0):
    kind = random.randrange(8 if depth < 2 else 2)
    if kind < 2:
        return pick([pick(NUMBERS), random.randint(-3, 9), 0.5])
    if kind == 2:
        return {pick(["$add", "$multiply"]): [number(depth + 1) for _ in range(random.randint(1, 3))]}
    if kind == 3:
        return {pick(["$subtract", "$divide"]): [number(depth + 1), number(depth + 1)]}
    if kind == 4:
        return {"$cond": [test(depth + 1), number(depth + 1), number(depth + 1)]}
    if kind == 5:
        return {"$ifNull": [number(depth + 1), number(depth + 1)]}
    if kind == 6:
        return {pick(["$sum", "$avg", "$min", "$max", "$stdDevPop", "$stdDevSamp"]):
                [number(depth + 1), number(depth + 1), number(depth + 1)]}
    return {"$cmp": [number(depth + 1), number(depth + 1)]}


def test(depth=0):
    comparison = pick(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
    if random.random() < 0.2 and depth < 3:
        return {pick(["$and", "$or"]): [test(depth + 1), test(depth + 1)]}
    if random.random() < 0.2:
        return {"$regexMatch": {"input": pick(TEXTS), "regex": pick(["^web", "1$", "[a-d]b", "."])}}
    if random.random() < 0.3:
        return {comparison: [pick(TEXTS), pick(["web1", "load", "r1"])]}
    return {comparison: [number(depth + 1), number(depth + 1)]}


def value():
    return pick([number, of_dates, lambda: pick(TEXTS), test])()


def condition(depth=0):
    kind = random.randrange(7 if depth < 2 else 4)
    comparison = pick(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
    if kind == 0:
        return {pick(NUMBERS)[1:]: {comparison: pick([random.randint(-3, 5), 1.5])}}
    if kind == 1:
        return {pick(TEXTS)[1:]: {comparison: pick(["web1", "db-1", "load", "r2"])}}
    if kind == 2:
        pattern = {"$regex": pick(["^WEB", "\\d$", "b.?1", "^$", "a|e"]), "$options": pick(["", "i"])}
        return {pick(TEXTS)[1:]: pick([pattern, {"$not": pattern}])}
    if kind == 3:
        return {pick(TEXTS)[1:]: {pick(["$in", "$nin"]): ["web1", "heat"]}}
    if kind == 4:
        # The order of evaluating conditions is undefined, and so whether one of them fails.
        return {"$expr": next(item for item in iter(test, None) if "$divide" not in str(item))}
    if kind == 5:
        return {pick(NUMBERS)[1:]: {"$exists": pick([True, False])}}
    return {pick(["$and", "$or", "$nor"]): [condition(depth + 1), condition(depth + 1)]}


def accumulators():
    names = ["$sum", "$avg", "$min", "$max", "$stdDevPop", "$stdDevSamp"]
    out = {f"a{at}": {pick(names): number(1)} for at in range(random.randint(1, 3))}
    # That server reads $first of anything but a field as the one of lists.
    out["f"] = {pick(["$first", "$last"]): pick(NUMBERS)}
    return out | ({"n": {"$sum": 1}} if random.random() < 0.5 else {})


ORDER = {"$sort": {"date": 1, "host": 1, "metric": 1}}


def bounds():
    return sorted(random.sample([-9, -4, -1, 0, 1, 2.5, 4, 9, 30], random.randint(2, 5)))


def stage(inside=False):
    kind = random.randrange(10 if not inside else 9)
    if kind == 0:
        return [{"$match": condition()}]
    if kind == 1:
        return [{"$group": {"_id": value(), **accumulators()}}, {"$sort": {"_id": 1}}]
    if kind == 2:
        options = {"groupBy": number(1), "boundaries": bounds()}
        if random.random() < 0.7:
            options["default"] = pick(["other", 100])
        if random.random() < 0.7:
            options["output"] = accumulators()
        return [{"$bucket": options}]
    if kind == 3:
        return [{"$sortByCount": pick(["$host", "$none"])}, {"$match": {"count": {"$gt": 300}}}]
    if kind == 4:
        return [{"$project": {"_id": 0, "x": [value()], "y": [value()]}}]
    if kind == 5:
        return [{"$addFields": {"x": value()}}, {"$project": {"x": 1, "host": 1, "_id": 0}}]
    if kind == 6:
        return [{"$skip": random.randint(1, 9)}, {"$limit": random.randint(1, 30)}]
    if kind == 7:
        return [{"$sort": {"sum": pick([1, -1]), "date": 1, "host": 1, "metric": 1}},
                {"$unset": ["n", "_id"]}]
    if kind == 8:
        return [{"$match": condition()}, {"$count": "n"}]
    return [{"$facet": {f"f{at}": stage(True) for at in range(random.randint(1, 3))}}]


def compare(asked, ours, theirs):
    """The answers of both servers, or their errors."""
    is_fault = isinstance(ours, dict) and "fault" in ours
    if is_fault != isinstance(theirs, PyMongoError) or \
            (not is_fault and plain(ours) != plain(theirs)):
        shown = json.dumps(written(asked))
        sys.exit(f"seed {seed}: {shown}\nhere:  {str(ours)[:1500]}\nthere: {str(theirs)[:1500]}")
    return is_fault


def attempt(run):
    try:
        return run()
    except PyMongoError as fault:
        return fault


def found(body, name):
    answer = send("/api/v1/aggregate", written({"tags": FLEET, **body}))
    return dates(answer[name]) if name in answer else answer


faults = 0
for _ in range(rounds):
    pipeline = [{"$match": condition()}] * random.randint(0, 1) + [ORDER] + stage()
    ours = found({"aggregate": "1h", "pipeline": pipeline}, "documents")
    theirs = attempt(lambda: list(collection.aggregate([{"$unset": "_id"}] + pipeline)))
    faults += compare(pipeline, ours, theirs)
    query, key = condition(), pick(NUMBERS + TEXTS)[1:]
    count = found({"count": "1h", "query": query}, "n")
    compare(query, count, attempt(lambda: collection.count_documents(query)))
    values = found({"distinct": "1h", "key": key, "query": query}, "values")
    theirs = attempt(lambda: collection.distinct(key, query))
    if isinstance(theirs, list):
        theirs = sorted(theirs)
    compare([key, query], values, theirs)
    projection = pick([{"host": 1, "sum": 1, "_id": 0}, {"n": 0, "_id": 0, "date": 0}])
    order, skip, limit = {"date": pick([1, -1]), "host": 1, "metric": 1}, random.randint(0, 3), random.randint(0, 5)
    ours = found({"find": "1h", "filter": query, "projection": projection, "sort": order, "skip": skip,
                  "limit": limit}, "documents")
    theirs = attempt(lambda: list(
        collection.find(query, projection).sort(list(order.items())).skip(skip).limit(limit)))
    compare(["find", query, projection], ours, theirs)
print(f"{rounds} pipelines agree, {faults} of them refused")
