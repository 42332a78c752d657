"""The load of the Python clients, under the contract in ../src/client/mod.rs: one thread per lock in flight.

A client's file gives `run` a function that makes, from the (host, port) of every node and the number of
threads, a function that acquires a key and returns a function that releases it, or None; and a title.
"""

import json
import math
import os
import platform
import resource
import sys
import threading
import time

TTL_MS = 10_000
WARM_UP_SHARE = 2


def cycle(acquire, keys, deadline, latencies, failures):
    number = 0
    while (started := time.perf_counter()) < deadline:
        number += 1
        try:
            release = acquire(f"{keys}:{number}")
            if release is None:
                failures.append("not acquired")
                continue
            latencies.append((time.perf_counter() - started) * 1e6)
            release()
        except Exception as error:
            failures.append(repr(error))


def work(acquire, in_flight, seconds, phase):
    latencies, failures = [], []
    deadline = time.perf_counter() + seconds
    workers = [
        threading.Thread(
            target=cycle,
            args=(acquire, f"bench:{os.getpid()}:{phase}:{worker}", deadline, latencies, failures),
            # A thread that waits for a silent node must not outlive the harness' patience.
            daemon=True,
        )
        for worker in range(in_flight)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sorted(latencies), failures


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def percentile(ordered, percent):
    if not ordered:
        return 0
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def run(connect, title):
    addresses, in_flight, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    pairs = (address.rsplit(":", 1) for address in addresses.split(","))
    acquire = connect([(host, int(port)) for host, port in pairs], in_flight)
    work(acquire, in_flight, seconds / WARM_UP_SHARE, "w")
    print("warm", flush=True)
    sys.stdin.readline()
    cpu, started = cpu_seconds(), time.perf_counter()
    latencies, failures = work(acquire, in_flight, seconds, "m")
    report = {
        "client": f"{title} (Python {platform.python_version()}, a thread per lock)",
        "cycles": len(latencies),
        "failures": len(failures),
        "wall_s": time.perf_counter() - started,
        "cpu_s": cpu_seconds() - cpu,
        "p50_us": percentile(latencies, 50),
        "p99_us": percentile(latencies, 99),
    }
    for reason in failures[:1]:
        print(reason, file=sys.stderr)
    print(json.dumps(report), flush=True)
    # A thread of a library may wait for a silent node without end.
    os._exit(0)
