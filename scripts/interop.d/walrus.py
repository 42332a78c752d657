# needs: pip walrus==0.9.8 redis==8.1.0
# nodes: one
# lacks: extend query token
# has: wait
# prefix: lock:
"""walrus's Lock: SETNX and PEXPIRE in a script, a release that pushes to a list, and BLPOP of it."""

import walrus

PACKAGES = ["walrus", "redis"]


class Client:
    def __init__(self, nodes):
        [(host, port)] = nodes
        self.database = walrus.Database(host=host, port=port)

    def acquire(self, key, ttl, _token):
        self.lock = self.database.lock(key, ttl)
        return self.lock.acquire(block=False)

    def wait(self, key, ttl):
        self.lock = self.database.lock(key, ttl)
        return self.lock.acquire()

    def release(self):
        return self.lock.release()
