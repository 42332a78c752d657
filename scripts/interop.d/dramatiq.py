# needs: pip dramatiq==2.2.1 redis==8.1.0
# nodes: one
# lacks: extend query token ownership (it counts holders and does not know them)
# holds: counter
"""dramatiq's ConcurrentRateLimiter for one holder: SET NX PX, then WATCH, GET, MULTI, SET, EXEC."""

import contextlib

from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import RedisBackend

PACKAGES = ["dramatiq", "redis"]


class Client:
    def __init__(self, nodes):
        [(host, port)] = nodes
        self.backend = RedisBackend(host=host, port=port)

    def acquire(self, key, ttl, _token):
        self.held = contextlib.ExitStack()
        limiter = ConcurrentRateLimiter(self.backend, key, limit=1, ttl=ttl)
        return self.held.enter_context(limiter.acquire(raise_on_failure=False))

    def release(self):
        self.held.close()
