# needs: pip aioredlock==0.7.3 aioredis==1.3.1
# away: down=ok quarantine=ok
"""aioredlock: every step is an EVALSHA whose script answers with an error for "not yours"."""

import asyncio
import importlib.metadata
import os
import sys

# In place of this directory, whose files are called like the libraries.
sys.path[0] = os.path.join(os.path.dirname(__file__), "story")
import aioredlock
import story

loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
managers = []


class Client:
    def __init__(self):
        self.manager = aioredlock.Aioredlock(
            [{"host": host, "port": port} for host, port in story.node_addresses()], retry_count=1
        )
        managers.append(self.manager)

    def acquire(self, resource, ttl):
        try:
            return loop.run_until_complete(self.manager.lock(resource, lock_timeout=ttl / 1000))
        except aioredlock.LockError:
            return None

    def extend(self, handle, ttl):
        loop.run_until_complete(self.manager.extend(handle, ttl / 1000))
        return True

    def release(self, handle):
        assert loop.run_until_complete(self.manager.is_locked(handle))
        loop.run_until_complete(self.manager.unlock(handle))


# A handle that was released is "not valid" to the library whatever the nodes say.
steps = story.tell(Client, lost=(aioredlock.LockError, RuntimeError), refuses_by_error=True)
for manager in managers:
    loop.run_until_complete(manager.destroy())
version = importlib.metadata.version
print(f"aioredlock {version('aioredlock')} on aioredis {version('aioredis')} ({steps}, query)")
