# needs: pip redis==8.1.0
"""The plain Redlock loop of the failure kit's example, on nodes that forget and on nodes that do not.

It starts a lab of its own, breaks it by FAULT commands through redis-py, and expects two holders of one lock without the
restart guard, and one with it. Other servers have no such lab: there it is skipped.
"""

import importlib.metadata
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BINARY = os.environ["INTEROP_BINARY"]
EXAMPLE = os.path.join(ROOT, "crates", "locknode-testkit", "examples", "plain_redlock.py")
# The story takes a second or two; a lab that hangs must not hang the run.
STORY_SECONDS = 60


def story(*flags):
    """Starts five nodes, tells the story on them, and returns the example's exit code and its output."""
    command = [BINARY, "lab", "--faults", "--port", "0", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as lab:
        try:
            addresses = []
            while len(addresses) < 5:
                line = lab.stdout.readline()
                if not line:
                    sys.exit(f"{command} ended before it served")
                addresses += re.findall(r"127\.0\.0\.1:\d+", line)
            run = [sys.executable, "-B", EXAMPLE, *addresses[:5]]
            done = subprocess.run(run, capture_output=True, text=True, timeout=STORY_SECONDS, check=False)
            print(done.stdout + done.stderr)
            return done.returncode, done.stdout
        finally:
            lab.terminate()
            lab.stdout.read()


if not BINARY:
    print("other servers have no such lab")
    sys.exit(77)
code, text = story("--restart-guard", "off")
assert code == 1 and "TWO CLIENTS HOLD ONE LOCK" in text, (code, text)
code, text = story()
assert code == 0 and "client 2 does not get it" in text, (code, text)
print(f"crash-story: redis-py {importlib.metadata.version('redis')}, two holders without the restart guard, one with it")
