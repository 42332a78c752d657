# needs: pip sherlock==0.4.1 redis==8.1.0
# nodes: one
# lacks: extend token (its renewal can only start over with the same TTL)
# has: wait
"""sherlock's RedisLock: SETNX and EXPIRE in one script, and polling."""

import redis
import sherlock

PACKAGES = ["sherlock", "redis"]


class Client:
    def __init__(self, nodes):
        [(host, port)] = nodes
        self.redis = redis.Redis(host=host, port=port)

    def acquire(self, key, ttl, _token):
        # It counts whole seconds.
        self.lock = sherlock.RedisLock(key, client=self.redis, expire=max(1, ttl // 1000), retry_interval=0.05)
        return self.lock.acquire(blocking=False)

    def wait(self, key, ttl):
        self.lock = sherlock.RedisLock(key, client=self.redis, expire=ttl // 1000, timeout=20, retry_interval=0.05)
        return self.lock.acquire()

    def query(self):
        return self.lock.locked()

    def release(self):
        try:
            self.lock.release()
        except sherlock.LockException:
            return False
        return True
