# needs: pip redis==8.1.0 pytest==9.2.0 pytest-asyncio==1.5.0 packaging==26.4
"""redis-py's own lock tests, out of its source distribution, sync and async, RESP2 and RESP3.

They run on a node and on redis-server: every test that passes there must pass on the node. Where
there is no redis-server, all of them must. Then the connection itself: logging in, scripts, bytes.
"""

import glob
import importlib.metadata
import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree

import redis
import redis.backoff
import redis.retry

VERSION = importlib.metadata.version("redis")
TESTS = ["tests/test_lock.py", "tests/test_asyncio/test_lock.py"]
PACKAGES = os.environ["INTEROP_PACKAGES"]
# A test that hangs must not hang the run; the whole suite takes seconds.
SUITE_SECONDS = 120


def source():
    """The directory of redis-py's source distribution, fetched once."""
    directory = os.path.join(PACKAGES, "source")
    unpacked = os.path.join(directory, f"redis-{VERSION}")
    if not os.path.exists(os.path.join(unpacked, TESTS[0])):
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        download += ["--no-binary", "redis", "--dest", directory, f"redis=={VERSION}"]
        subprocess.run(download, check=True)
        with tarfile.open(glob.glob(os.path.join(directory, "redis-*.tar.gz"))[0]) as archive:
            archive.extractall(directory)
    return unpacked


def passing(address, protocol):
    """The tests that pass on a node, and all that ran."""
    url = f"redis://{address}/0"
    results = os.path.join(PACKAGES, "results.xml")
    # What an earlier run has left is not this one's.
    if os.path.exists(results):
        os.remove(results)
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    command += ["-W", "ignore", "--junitxml", results, *TESTS]
    command += ["--redis-url", url, "--redis-mod-url", url, "--protocol", str(protocol)]
    print(f"-- {address} under RESP{protocol}", flush=True)
    done = subprocess.run(command, cwd=source(), timeout=SUITE_SECONDS, check=False)
    # 0: all passed, 1: some failed; anything else means that the tests did not run.
    assert done.returncode in (0, 1), f"pytest ended with {done.returncode}"
    ran, passed = set(), set()
    for case in xml.etree.ElementTree.parse(results).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        ran.add(name)
        if not any(case.findall(kind) for kind in ("failure", "error", "skipped")):
            passed.add(name)
    return passed, ran


def suite(protocol):
    """Runs the suite under one protocol and returns how many tests passed, in words."""
    node = os.environ["INTEROP_NODES"].split(",")[0]
    passed, ran = passing(node, protocol)
    reference = os.environ["INTEROP_REFERENCE"]
    expected = passing(reference, protocol)[0] if reference else ran
    missing = sorted(expected - passed)
    again = ""
    if missing:
        # Some of the tests measure short waits, which a busy machine makes longer on any server.
        # They get a second try, and the report says so.
        print(f"-- again, since these failed: {missing}")
        passed |= passing(node, protocol)[0]
        again = f" ({len(missing)} at the second try)"
    missing = sorted(expected - passed)
    assert not missing, f"RESP{protocol}: these fail here and pass on redis-server: {missing}"
    assert passed, "no test ran"
    return f"RESP{protocol} {len(passed)} passed{again}"


def connection(protocol):
    """What the lock tests leave out: logging in, databases, bytes, a script that was forgotten."""
    host, port = os.environ["INTEROP_AUTH_NODE"].split(":")
    password = os.environ["INTEROP_PASSWORD"]
    # By itself the client would try ten times more, with pauses, after a refusal.
    retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
    at = {"host": host, "port": int(port), "protocol": protocol, "retry": retry}
    for wrong in ({}, {"password": "wrong"}):
        try:
            redis.Redis(**at, **wrong).ping()
            raise AssertionError(f"let in with {wrong}")
        except redis.AuthenticationError:
            pass
    client = redis.Redis(**at, password=password, db=3, client_name="interop")
    assert client.client_getname() in ("interop", b"interop")
    everything = bytes(range(256)) + b"\r\n$-1\r\n"
    assert client.set("interop:login", everything, nx=True, px=30_000)
    assert client.get("interop:login") == everything
    release = client.register_script(
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
    )
    client.script_flush()
    assert release(["interop:login"], [b"other"]) == 0
    client.script_flush()
    assert release(["interop:login"], [everything]) == 1
    assert redis.Redis(**at, username="default", password=password).get("interop:login") is None


counts = []
# CI has the time for one of them.
for version in (3,) if "INTEROP_FAST" in os.environ else (2, 3):
    connection(version)
    counts.append(suite(version))
what = f"{' and '.join(TESTS)}: {', '.join(counts)}; AUTH, bytes, script flush"
print(f"redis-py {VERSION} ({what})")
