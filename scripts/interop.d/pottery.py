# needs: pip pottery==3.0.1 redis==8.1.0
# away: down=ok quarantine=ok
"""pottery's Redlock: SET PX NX, and EVALSHA of three scripts with SCRIPT LOAD on NOSCRIPT."""

import importlib.metadata
import os
import sys

# In place of this directory, whose files are called like the libraries.
sys.path[0] = os.path.join(os.path.dirname(__file__), "story")
import pottery
import redis
import story


class Client:
    def __init__(self):
        self.masters = {redis.Redis(host=host, port=port) for host, port in story.node_addresses()}

    def acquire(self, resource, ttl):
        lock = pottery.Redlock(key=resource, masters=self.masters, auto_release_time=ttl / 1000)
        if not lock.acquire(blocking=False):
            return None
        assert 0 < lock.locked() <= ttl / 1000, lock.locked()
        return lock

    def extend(self, handle, ttl):
        handle.auto_release_time = ttl / 1000
        handle.extend()
        return True

    def release(self, handle):
        handle.release()


steps = story.tell(
    Client,
    key=f"redlock:{story.RESOURCE}",
    lost=(pottery.ReleaseUnlockedLock, pottery.ExtendUnlockedLock),
)
version = importlib.metadata.version
print(f"pottery {version('pottery')} on redis-py {version('redis')} ({steps}, query)")
