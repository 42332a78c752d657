# needs: pip redis==8.1.0
"""README's Python block on a lab as it starts, and the locks that redis-py's users take first: no timeout, ten minutes.

It starts a lab of its own. Other servers have no such lab: there it is skipped.
"""

import importlib.metadata
import os
import re
import subprocess
import sys

import redis

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BINARY = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release", "locknode")


def block():
    """README's Python block, with the work in it extending the lock a second and a third time."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as readme:
        found = re.search(r"```python\n(.*?)```", readme.read(), re.DOTALL)
    assert found and "lock.extend(" in found[1], "README shows no lock that is extended"
    return found[1]


def first_minutes(port):
    client = redis.Redis(port=port)
    code = block().replace("port=7101", f"port={port}")
    # Once as it stands, and once by somebody whose work takes longer.
    longer = re.sub(r"^( *)(lock\.extend\(.*)$", r"\1\2\n\1lock.extend(30)\n\1lock.extend(30)", code, flags=re.M)
    for text in (code, longer):
        work = re.sub(r"^( *)\.\.\. .*$", r"\1held.append(1)", text, flags=re.M)
        scope = {"held": []}
        exec(compile(work, "README.md", "exec"), scope)
        assert scope["held"] == [1], "not acquired"
        assert client.pttl("invoice:7") == -2, "not released"
    assert longer.count("lock.extend") == 3
    for timeout in (None, 600, 86_400):
        lock = client.lock("first", timeout=timeout)
        assert lock.acquire(blocking=False), timeout
        assert not client.lock("first", timeout=timeout).acquire(blocking=False), timeout
        lock.release()
    assert client.set("django", 1, nx=True, ex=300)


if not os.path.exists(BINARY) or os.environ["INTEROP_SERVER"] != "locknode":
    print("no lab here")
    sys.exit(77)
for flags in ([], ["--faults"]):
    command = [BINARY, "lab", "--port", "0", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as lab:
        try:
            line = ""
            while "listening on" not in line:
                line = lab.stdout.readline()
                assert line, f"{command} ended before it served"
            first_minutes(int(line.rsplit(":", 1)[1]))
        finally:
            lab.terminate()
            lab.stdout.read()
version = importlib.metadata.version("redis")
print(f"first-minutes: redis-py {version}, README's block, locks without timeout and of ten minutes and a day, on lab")
