# needs: pip aioredlock==0.7.3 aioredis==1.3.1
# away: down=ok quarantine=ok
# lacks: token refusal (its scripts answer with an error for "not yours")
"""aioredlock: every step is an EVALSHA."""

import asyncio

import aioredlock

PACKAGES = ["aioredlock", "aioredis"]
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
run = loop.run_until_complete


class Client:
    def __init__(self, nodes):
        addresses = [{"host": host, "port": port} for host, port in nodes]
        self.manager = aioredlock.Aioredlock(addresses, retry_count=1)

    def acquire(self, key, ttl, _token):
        try:
            self.lock = run(self.manager.lock(key, lock_timeout=ttl / 1000))
        except aioredlock.LockError:
            return False
        return True

    def extend(self, ttl):
        try:
            run(self.manager.extend(self.lock, ttl / 1000))
        # A handle that was released is "not valid" to the library whatever the nodes say.
        except (aioredlock.LockError, RuntimeError):
            return False
        return True

    def query(self):
        return run(self.manager.is_locked(self.lock))

    def release(self):
        try:
            run(self.manager.unlock(self.lock))
        except aioredlock.LockError:
            return False
        return True

    def close(self):
        run(self.manager.destroy())
