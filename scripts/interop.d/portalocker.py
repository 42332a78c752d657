# needs: pip portalocker==4.4.2 redis==8.1.0
# nodes: one
# away: killed=fails (its lock lasts as long as its connection)
# lacks: extend token flush expiry refusal (its lock is a subscription on a connection of its own)
# has: wait
# holds: channel
"""portalocker's RedisLock: whoever is subscribed to a channel holds the lock."""

import portalocker
import redis

PACKAGES = ["portalocker", "redis"]


class Client:
    def __init__(self, nodes):
        [(host, port)] = nodes
        self.redis = redis.Redis(host=host, port=port, decode_responses=True)

    def try_for(self, key, seconds):
        self.lock = portalocker.RedisLock(
            key, connection=self.redis, timeout=seconds, check_interval=0.05, unavailable_timeout=2, interrupt_on_lost=False
        )
        try:
            self.lock.acquire(fail_when_locked=seconds == 0)
        except portalocker.AlreadyLocked:
            return False
        return True

    def acquire(self, key, _ttl, _token):
        return self.try_for(key, 0)

    def wait(self, key, ttl):
        return self.try_for(key, ttl // 1000)

    def query(self):
        return self.lock.pubsub is not None and not self.lock.lost

    def release(self):
        self.lock.release()
