"""redlock-py on redis-py: the nodes one after the other."""

import importlib.metadata
import sys

# In place of this directory, whose files are called like the libraries.
directory, sys.path[0] = sys.path[0], ""
import redlock

sys.path[0] = directory
import load


def connect(nodes, threads):
    # redis-py would have no more than a hundred connections.
    servers = [{"host": host, "port": port, "max_connections": threads} for host, port in nodes]
    # A key that nobody holds needs no second try; one that fails is to be seen.
    manager = redlock.Redlock(servers, retry_count=1, retry_delay=0.001)

    def acquire(key):
        lock = manager.lock(key, load.TTL_MS)
        return (lambda: manager.unlock(lock)) if lock else None

    return acquire


version = importlib.metadata.version
load.run(connect, f"redlock-py {version('redlock-py')} on redis-py {version('redis')}")
