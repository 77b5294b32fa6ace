#!/usr/bin/env python3
"""Compares notifications of alerts, as benches/alerts_scene.py records them.

    benches/alerts_compare.py FOLDER/messages.json

Each alert of each receiver has a sequence of transitions: firing, resolved, firing ... The output lists
the transitions that only one side sent, each with the last fault before it, and the time differences
of all others.
"""
import collections, json, statistics, sys


def transitions(messages, side):
    """The transitions of each alert of each receiver: time, status, annotations; and the number of repetitions."""
    told, again = collections.defaultdict(list), 0
    for at, _, receiver, body in (message for message in messages if message[1] == side):
        for alert in body["alerts"]:
            sequence = told[receiver, tuple(sorted(alert["labels"].items()))]
            if sequence and sequence[-1][1] == alert["status"]:
                again += 1
            elif sequence or alert["status"] == "firing":
                sequence.append((at, alert["status"], alert["annotations"]))
    return told, again


def align(ours, theirs):
    """Pairs of transitions of one alert; None where only one side sent it."""
    mine, other = 0, 0
    while mine < len(ours) or other < len(theirs):
        one = ours[mine] if mine < len(ours) else None
        two = theirs[other] if other < len(theirs) else None
        if one and two and one[1] == two[1] and abs(one[0] - two[0]) <= 150:
            yield one, two
            mine, other = mine + 1, other + 1
        elif two is None or (one and one[0] <= two[0]):
            yield one, None
            mine += 1
        else:
            yield None, two
            other += 1


def has_limit(messages, side, receiver):
    """Whether a message to the receiver only counted some of its alerts."""
    return any(body.get("truncatedAlerts") for _, own, name, body in messages if (own, name) == (side, receiver))


def compare(log, messages, side):
    """Prints the differences of a side from Prometheus; returns the number of missed transitions."""
    ours, again = transitions(messages, side)
    theirs, again_there = transitions(messages, "prometheus")
    apart, single, texts, counted = collections.defaultdict(list), [], [], 0
    limited = has_limit(messages, side, "fleet")
    for key in sorted(ours.keys() | theirs.keys()):
        for one, two in align(ours.get(key, []), theirs.get(key, [])):
            if one and two:
                apart[key[0]].append((one[0] - two[0], one[0], key))
                if one[2] != two[2]:
                    texts.append((one[0], one[2], two[2]))
            elif two and key[0] == "fleet" and limited:
                counted += 1
            else:
                single.append((one or two, key, "more" if one else "MISSED"))
    print(f"\n{side}: {sum(map(len, apart.values()))} transitions as from Prometheus, {len(texts)} with other texts; "
          f"{again} repetitions, {again_there} of Prometheus' Alertmanager; {counted} transitions of hosts only counted")
    fault = lambda at: next((text for begin, text in reversed(log) if begin <= at), "start")
    for receiver, values in sorted(apart.items()):
        seconds = [value[0] for value in values]
        print(f"  {receiver:6} {len(values):5} transitions, relative to Prometheus {min(seconds):+.1f} to {max(seconds):+.1f} s, "
              f"median {statistics.median(seconds):+.1f} s")
        late = collections.Counter((fault(at), dict(key[1])["alertname"]) for apart_by, at, key in values if apart_by > 20)
        for (after, name), count in late.items():
            print(f"         over 20 s later: {count} of {name} (after: {after})")
    for at, own, other in texts[:5]:
        print(f"  text   {at:7.1f} s {own}, from Prometheus {other}")
    kinds = collections.Counter()
    for (at, status, _), (receiver, labels), what in sorted(single, key=lambda one: one[0][0]):
        kinds[what] += 1
        labels = dict(labels)
        print(f"  {what:6} {at:7.1f} s {status:8} {receiver:5} {labels.get('alertname')} {labels.get('instance', '')} "
              f"(after: {fault(at)})")
    return kinds["MISSED"]


def report(record):
    print({side: sum(message[1] == side for message in record["messages"]) for side in ("own", "sent", "prometheus")},
          "messages")
    return sum([compare(record["log"], record["messages"], side) for side in ("own", "sent")])


if __name__ == "__main__":
    sys.exit(1 if report(json.load(open(sys.argv[1]))) else 0)
