"""pottery's Redlock on redis-py: the nodes at the same time, each in a thread of a pool made per lock."""

import importlib.metadata
import sys

# In place of this directory, whose files are called like the libraries.
directory, sys.path[0] = sys.path[0], ""
import pottery
import redis

sys.path[0] = directory
import load


def connect(nodes, threads):
    # redis-py would have no more than a hundred connections; a lock's pool may outlive the lock for a moment.
    most = 2 * threads + 8
    masters = {redis.Redis(host=host, port=port, max_connections=most) for host, port in nodes}

    def acquire(key):
        lock = pottery.Redlock(key=key, masters=masters, auto_release_time=load.TTL_MS / 1000)
        return lock.release if lock.acquire(blocking=False) else None

    return acquire


version = importlib.metadata.version
load.run(connect, f"pottery {version('pottery')} on redis-py {version('redis')}")
