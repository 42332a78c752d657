# needs: pip huey==3.5.4 redis==8.1.0
# nodes: one
# lacks: extend token expiry ownership (anybody may clear a task's lock)
# holds: hash
# key: huey.results.interopresource
"""huey's lock_task: HSETNX into the hash of its results, and HDEL."""

import huey
import huey.exceptions

PACKAGES = ["huey", "redis"]


class Client:
    def __init__(self, nodes):
        [(host, port)] = nodes
        self.huey = huey.RedisHuey("interopresource", host=host, port=port)

    def acquire(self, key, _ttl, _token):
        self.lock = self.huey.lock_task(key)
        try:
            return self.lock.acquire()
        except huey.exceptions.TaskLockedException:
            return False

    def query(self):
        return self.lock.is_locked()

    def release(self):
        return self.lock.release()
