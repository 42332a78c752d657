# needs: pip pottery==3.0.1 redis==8.1.0
# away: down=ok quarantine=ok
# lacks: token
# prefix: redlock:
"""pottery's Redlock: SET PX NX, and EVALSHA of three scripts with SCRIPT LOAD on NOSCRIPT."""

import pottery
import redis

PACKAGES = ["pottery", "redis"]


class Client:
    def __init__(self, nodes):
        self.masters = {redis.Redis(host=host, port=port) for host, port in nodes}

    def acquire(self, key, ttl, _token):
        self.lock = pottery.Redlock(key=key, masters=self.masters, auto_release_time=ttl / 1000)
        return self.lock.acquire(blocking=False)

    def extend(self, ttl):
        self.lock.auto_release_time = ttl / 1000
        try:
            self.lock.extend()
        except pottery.ExtendUnlockedLock:
            return False
        return True

    def query(self):
        return int(self.lock.locked() * 1000)

    def release(self):
        try:
            self.lock.release()
        except pottery.ReleaseUnlockedLock:
            return False
        return True
