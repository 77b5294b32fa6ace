"""Evaluates targets with graphite-web over whisper files: the folder, then JSON on standard input with
`series` (path -> [[seconds, value], ...]), `from`, `until` and `targets`. Prints JSON: for each target its lines as
[name, {seconds: value}], or the error."""

import json
import os
import sys
import warnings
from datetime import datetime, timezone

sys.path.append("/usr/lib/python3/dist-packages")
warnings.simplefilter("ignore")
os.environ["DJANGO_SETTINGS_MODULE"] = "graphite.settings"
os.environ["GRAPHITE_STORAGE_DIR"] = sys.argv[1]

import whisper
from django.conf import settings

given = json.load(sys.stdin)
folder = os.path.join(sys.argv[1], "whisper")
for path, points in given["series"].items():
    name = os.path.join(folder, *path.split(".")) + ".wsp"
    os.makedirs(os.path.dirname(name), exist_ok=True)
    whisper.create(name, [(60, 1440)], 0.0, "average")
    whisper.update_many(name, points)

settings.STORAGE_DIR = sys.argv[1]
settings.WHISPER_DIR = folder
settings.STANDARD_DIRS = [folder]
settings.STORAGE_FINDERS = ["graphite.finders.standard.StandardFinder"]
settings.TAGDB = None
settings.LOG_DIR = sys.argv[1]
settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
settings.CARBONLINK_HOSTS = []
settings.DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}

import django

django.setup()
from graphite.render.evaluator import evaluateTarget


def utc(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc)


def lines(target):
    context = {
        "startTime": utc(given["from"]),
        "endTime": utc(given["until"]),
        "now": utc(given["until"]),
        "tzinfo": timezone.utc,
        "localOnly": True,
        "template": None,
        "data": [],
        "prefetched": {},
        "xFilesFactor": 0,
        "requestContext": None,
    }
    try:
        found = evaluateTarget(context, [target])
    except Exception as cause:
        return repr(cause)
    times = lambda line: range(int(line.start), int(line.start) + int(line.step) * len(line), int(line.step))
    return [[line.name, {at: value for at, value in zip(times(line), line)}] for line in found]


print(json.dumps([lines(target) for target in given["targets"]]))
