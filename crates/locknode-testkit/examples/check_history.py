"""Judges a history of the failure kit with a checker that shares nothing with the kit's own: who held a lock, and when?

    locknode sim --seed 7 --history world.jsonl
    python3 check_history.py world.jsonl

It needs Python and nothing else. The format is described at History::json_lines of the crate locknode-testkit: a JSON
object in each line, times in nanoseconds of true time. It prints each lock that two clients held at the same time and each
fencing token that is not above that of an earlier lock, and ends with 1 if there were any, with 0 otherwise.
"""

import json
import math
import sys


def beliefs(events):
    """The times in which clients believed that they held a lock, each as a dictionary, in the order in which they began."""
    held, ended, called = {}, [], {}

    def end(lock, at):
        belief = held.pop(lock, None)
        if belief is not None:
            belief["until"] = max(belief["from"], min(belief["until"], at))
            ended.append(belief)

    for event in events:
        name, at = event["event"], event.get("at")
        lock = event.get("lock")
        if name == "calls":
            called[lock] = at
        elif name == "acquired":
            held[lock] = {
                "client": event["client"],
                "key": event["key"],
                "called": called.get(lock, at),
                "from": at,
                "until": never_or(event["valid_until"]),
                "fencing": event["fencing"],
            }
        elif name == "validity" and lock in held:
            # What has ended by the client's own clock begins again by an extension only.
            if held[lock]["until"] > at or event["is_extension"]:
                held[lock]["until"] = never_or(event["valid_until"])
        elif name in ("releases", "lost"):
            end(lock, at)
        elif name == "client_down":
            for lock in [lock for lock, belief in held.items() if belief["client"] == event["client"]]:
                end(lock, at)
    for lock in list(held):
        end(lock, math.inf)
    return sorted(ended, key=lambda belief: belief["from"])


def never_or(time):
    return math.inf if time is None else time


def overlaps(beliefs_of_key):
    """Pairs of beliefs in one lock at one time."""
    last = None
    for belief in beliefs_of_key:
        if belief["until"] == belief["from"]:
            continue
        if last is not None and belief["from"] < last["until"]:
            yield last, belief
        if last is None or belief["until"] > last["until"]:
            last = belief


def disorders(beliefs_of_key):
    """Pairs of which the second was called for when the first was held, or later, and has no higher token."""
    fenced = [belief for belief in beliefs_of_key if belief["fencing"] is not None]
    by_call = sorted(fenced, key=lambda belief: belief["called"])
    known, highest = 0, None
    for belief in by_call:
        while known < len(fenced) and fenced[known]["from"] <= belief["called"]:
            if highest is None or fenced[known]["fencing"] > highest["fencing"]:
                highest = fenced[known]
            known += 1
        if highest is not None and highest is not belief and belief["fencing"] <= highest["fencing"]:
            yield highest, belief


def seconds(time):
    return "for ever" if time == math.inf else f"{time / 1e9:.6f}s"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_history.py FILE; write one with: locknode sim --seed 7 --history FILE")
    with open(sys.argv[1], encoding="utf-8") as file:
        head = json.loads(next(file, "{}"))
        if head.get("locknode_history") != 1:
            sys.exit(f"{sys.argv[1]} is no history, or of a version that this program does not know")
        events = [json.loads(line) for line in file]
    found = beliefs(events)
    broken = 0
    for number, key in enumerate(head["keys"]):
        of_key = [belief for belief in found if belief["key"] == number]
        for first, second in overlaps(of_key):
            broken += 1
            until = min(first["until"], second["until"])
            print(
                f"clients {first['client']} and {second['client']} held {key} at the same time, "
                f"from {seconds(second['from'])} to {seconds(until)}"
            )
        for first, second in disorders(of_key):
            broken += 1
            print(
                f"client {second['client']} has the fencing token {second['fencing']} for {key}, called for at "
                f"{seconds(second['called'])}, after {first['fencing']} of client {first['client']}"
            )
    print(f"{len(found)} locks were held on {head['nodes']} nodes; {broken or 'no'} broken promise{'s'[:broken != 1]}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
