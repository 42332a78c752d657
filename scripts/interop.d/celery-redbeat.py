# needs: pip celery-redbeat==2.4.2 celery==5.7.0 redis==8.1.0
# nodes: one
# lacks: token
# key: interop:lock
"""The lock by which one of several RedBeat schedulers runs, taken as Celery's beat takes it."""

import types

import celery
import redis.exceptions
from redbeat import schedulers

PACKAGES = ["celery-redbeat", "redis"]


class Client:
    def __init__(self, nodes):
        [(host, port)] = nodes
        self.app = celery.Celery()
        self.app.conf.redbeat_redis_url = f"redis://{host}:{port}/0"
        self.app.conf.redbeat_key_prefix = "interop"
        schedulers.ensure_conf(self.app)
        self.redis = schedulers.get_redis(self.app)

    def acquire(self, key, ttl, _token):
        # The handler of Celery's signal waits for as long as it takes; what it does is done once here.
        self.lock = self.redis.lock("interop:lock", timeout=ttl / 1000, blocking=False)
        self.lock.lua_extend = self.redis.register_script(schedulers.LUA_EXTEND_TO_SCRIPT)
        return self.lock.acquire()

    def extend(self, ttl):
        try:
            return self.lock.extend(ttl / 1000)
        except redis.exceptions.LockError:
            return False

    def query(self):
        return self.lock.owned()

    def release(self):
        try:
            self.lock.release()
        except redis.exceptions.LockError:
            return False
        return True
