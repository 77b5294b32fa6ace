#!/usr/bin/env python3
"""Compares notifications of alerts, as benches/alerts_scene.py records them.

    benches/alerts_compare.py FOLDER/messages.json

Each alert of each receiver has a sequence of transitions: firing, resolved, firing ... The output lists
the transitions that only one side sent, each with the last fault before it, and the time differences
of all others.
"""
import collections, json, statistics, sys


def transitions(messages, side):
    """Returns the transitions of each alert of each receiver: time, status, annotations; and the number of repetitions."""
    sequences, repeats = collections.defaultdict(list), 0
    for at, _, receiver, body in (message for message in messages if message[1] == side):
        for alert in body["alerts"]:
            sequence = sequences[receiver, tuple(sorted(alert["labels"].items()))]
            if sequence and sequence[-1][1] == alert["status"]:
                repeats += 1
            elif sequence or alert["status"] == "firing":
                sequence.append((at, alert["status"], alert["annotations"]))
    return sequences, repeats


def align(ours, theirs):
    """Returns pairs of transitions of one alert; None where only one side sent it."""
    our_index, their_index = 0, 0
    while our_index < len(ours) or their_index < len(theirs):
        ours_now = ours[our_index] if our_index < len(ours) else None
        theirs_now = theirs[their_index] if their_index < len(theirs) else None
        if ours_now and theirs_now and ours_now[1] == theirs_now[1] and abs(ours_now[0] - theirs_now[0]) <= 150:
            yield ours_now, theirs_now
            our_index, their_index = our_index + 1, their_index + 1
        elif theirs_now is None or (ours_now and ours_now[0] <= theirs_now[0]):
            yield ours_now, None
            our_index += 1
        else:
            yield None, theirs_now
            their_index += 1


def has_limit(messages, side, receiver):
    """Returns true when a message to the receiver only counted some of its alerts."""
    return any(body.get("truncatedAlerts") for _, own, name, body in messages if (own, name) == (side, receiver))


def compare(log, messages, side):
    """Prints the differences of a side from Prometheus; returns the number of missed transitions."""
    ours, repeats = transitions(messages, side)
    theirs, peer_repeats = transitions(messages, "prometheus")
    differences, unmatched, other_texts, counted = collections.defaultdict(list), [], [], 0
    limited = has_limit(messages, side, "fleet")
    for key in sorted(ours.keys() | theirs.keys()):
        for ours_now, theirs_now in align(ours.get(key, []), theirs.get(key, [])):
            if ours_now and theirs_now:
                differences[key[0]].append((ours_now[0] - theirs_now[0], ours_now[0], key))
                if ours_now[2] != theirs_now[2]:
                    other_texts.append((ours_now[0], ours_now[2], theirs_now[2]))
            elif theirs_now and key[0] == "fleet" and limited:
                counted += 1
            else:
                unmatched.append((ours_now or theirs_now, key, "more" if ours_now else "MISSED"))
    print(f"\n{side}: {sum(map(len, differences.values()))} transitions as from Prometheus, {len(other_texts)} with other texts; "
          f"{repeats} repetitions, {peer_repeats} of Prometheus' Alertmanager; {counted} transitions of hosts only counted")
    fault_before = lambda at: next((text for begin, text in reversed(log) if begin <= at), "start")
    for receiver, values in sorted(differences.items()):
        seconds = [value[0] for value in values]
        print(f"  {receiver:6} {len(values):5} transitions, relative to Prometheus {min(seconds):+.1f} to {max(seconds):+.1f} s, "
              f"median {statistics.median(seconds):+.1f} s")
        late = collections.Counter((fault_before(at), dict(key[1])["alertname"]) for difference, at, key in values if difference > 20)
        for (after, name), count in late.items():
            print(f"         over 20 s later: {count} of {name} (after: {after})")
    for at, own, peer in other_texts[:5]:
        print(f"  text   {at:7.1f} s {own}, from Prometheus {peer}")
    kinds = collections.Counter()
    for (at, status, _), (receiver, labels), what in sorted(unmatched, key=lambda entry: entry[0][0]):
        kinds[what] += 1
        labels = dict(labels)
        print(f"  {what:6} {at:7.1f} s {status:8} {receiver:5} {labels.get('alertname')} {labels.get('instance', '')} "
              f"(after: {fault_before(at)})")
    return kinds["MISSED"]


def report(record):
    print({side: sum(message[1] == side for message in record["messages"]) for side in ("own", "sent", "prometheus")},
          "messages")
    return sum([compare(record["log"], record["messages"], side) for side in ("own", "sent")])


if __name__ == "__main__":
    sys.exit(1 if report(json.load(open(sys.argv[1]))) else 0)
