"""Writes library by behaviour, as a run of interop shows it, between the marks of a page.

usage: matrix.py RESULTS CLIENTS REDIS PAGE

RESULTS has a line for each story: client, pass, server, exit code and log, separated by tabs; CLIENTS is the directory
of the clients; REDIS is what redis-server says of its version.
"""

import datetime
import glob
import json
import os
import re
import sys

MARKS = "<!-- interop: begin -->\n", "<!-- interop: end -->\n"
LANGUAGES = {
    "py": "Python", "mjs": "JavaScript", "rs": "Rust", "rb": "Ruby", "php": "PHP", "pl": "Perl", "cpp": "C++",
    "go": "Go", "java": "Java", "sh": "Tools",
}
# The columns, and the steps of the story that they stand for.
STEPS = {
    "acquire": ["acquire", "acquire again"],
    "contend": ["contend", "foreign release", "foreign extend"],
    "extend": ["extend", "stale extend"],
    "watchdog": ["watchdog"],
    "re-enter": ["reenter"],
    "wait": ["wait", "orphan"],
    "release": ["release", "script flush"],
    "expiry": ["expire"],
    "stale release": ["stale release"],
}
# What a library has to be able to do for a column to say anything of it.
CAPABILITIES = {"extend": "extend", "expiry": "expiry", "stale release": "ownership"}
AWAY = {"down": "one down", "quarantine": "one in quarantine", "killed": "killed and back"}
SKIPPED = 77
ABSENT = "\u00b7"


class Story:
    """What one client did in one pass on one server."""

    def __init__(self, code, log):
        self.code = int(code)
        self.result = {}
        if os.path.exists(f"{log}.json"):
            with open(f"{log}.json", encoding="utf-8") as file:
                self.result = json.load(file)
        with open(log, encoding="utf-8", errors="replace") as file:
            self.last = (file.read().splitlines() or [""])[-1]
        self.failed, _, self.why = self.result.get("failed", "").partition(": ")

    def cell(self, column, steps):
        """Whether every variant did the steps; the last one is where the story ended, if it failed."""
        is_extra = column in ("watchdog", "re-enter", "wait")
        if is_extra and steps[0] not in self.result.get("has", []):
            return ABSENT
        if CAPABILITIES.get(column) in self.result.get("lacks", []):
            return ABSENT
        told = list(self.result.get("steps", {}).values())
        if self.failed in steps:
            return "**no**"
        if told and all(steps[0] in variant for variant in told):
            return "yes"
        # What comes after a failure is not known.
        return "?" if self.code else ABSENT


def stories(results):
    """The stories of each client by pass and server."""
    found = {}
    with open(results, encoding="utf-8") as file:
        for line in file:
            client, which, server, code, log = line.rstrip("\n").split("\t")
            found.setdefault(client, {})[which, server] = Story(code, log)
    return found


def reason(file):
    """Why it cannot lock while a node is away, as the client's file says."""
    with open(file, encoding="utf-8") as client:
        said = re.search(r"^[^a-z\n]*away: [^(\n]*\((.*)\)", client.read(), re.M)
    return said[1] if said else ""


def away(told, which, notes, why):
    """A cell about a node that is away, with a note where the library cannot lock then."""
    here = told.get((which, "locknode"))
    if not here or here.code == SKIPPED:
        return ABSENT
    if here.code == 0:
        return "yes"
    there = told.get((which, "redis"))
    text = why or here.why
    if there and there.code == 0:
        text = f"works on Redis; {text}"
    if text not in notes:
        notes.append(text)
    return f"no [{notes.index(text) + 1}]"


def compared(told, plain):
    """How the same story ended on Redis."""
    redis = told.get(("redis", "redis"))
    if not redis:
        return ABSENT
    if redis.code == plain.code:
        return "same"
    return "**works**" if redis.code == 0 else f"fails: {redis.why or redis.last}"


def table(found, clients):
    """The lines of the page between its marks, without the heading."""
    libraries, programs, skipped, notes, failures = [], [], [], [], []
    for client, told in found.items():
        [file] = glob.glob(f"{clients}/{client}.*") or glob.glob(f"{clients}/programs/{client}.*")
        language = LANGUAGES.get(file.rpartition(".")[2], "")
        # On nodes that forget and as they ship; of the two the one that failed.
        here = [told[which, "locknode"] for which in ("plain", "shipped") if (which, "locknode") in told]
        plain = max(here or told.values(), key=lambda story: story.code)
        if plain.code == SKIPPED:
            skipped.append(f"| {language} | {client} | {plain.last} |")
        elif not plain.result:
            works = "**no**" if plain.code else "yes"
            programs.append(f"| {language} | {client if plain.code else plain.last} | {works} |")
        else:
            title = plain.result.get("title", client)
            if variants := ", ".join(filter(None, plain.result["steps"])):
                title += f": {variants}"
            cells = [plain.cell(column, steps) for column, steps in STEPS.items()]
            cells += [away(told, which, notes, reason(file)) for which in AWAY]
            row = " | ".join([language, title, *cells, compared(told, plain)])
            libraries.append((language, title.lower(), f"| {row} |"))
            if plain.failed:
                failures.append(f"* {title}: {plain.failed}: {plain.why}")
    heads = ["", "library", *STEPS, *AWAY.values(), "on Redis"]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    yield from (line for _, _, line in sorted(libraries))
    yield ""
    yield from (f"{number}. {note}" for number, note in enumerate(notes, 1))
    if failures:
        yield from ["", "What failed:", "", *failures]
    if programs:
        yield from ["", "| | program | works |", "|---|---|---|", *sorted(programs)]
    if skipped:
        yield from ["", "Not run, because its packages were not there:", ""]
        yield from ["| | client | reason |", "|---|---|---|", *sorted(skipped)]


def main(results, clients, redis, page):
    version = re.search(r"v=(\S+)", redis)
    compared_with = f"redis-server {version[1]}" if version else "no redis-server"
    with open(page, encoding="utf-8") as file:
        before, _, rest = file.read().partition(MARKS[0])
        _, _, after = rest.partition(MARKS[1])
    lines = [f"Run on {datetime.date.today()}, compared with {compared_with}.", "", *table(stories(results), clients), ""]
    with open(page, "w", encoding="utf-8") as file:
        file.write(before + MARKS[0] + "\n".join(lines) + MARKS[1] + after)


main(*sys.argv[1:])
